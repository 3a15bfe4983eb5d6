"""An axis: where numbers stand between two ends, and which of them are written beside it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from elman.draw.panels import Bars, Range

LARGEST = 1e150  # what is larger has no place on an axis, and neither has what is no number


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, evenly or by powers of ten."""

    low: float
    high: float
    log: bool = False

    @classmethod
    def around(
        cls, values: Iterable[float | None], log: bool = False, ends: Range | None = None, margin: float = 0.0
    ) -> "Axis":
        """One that holds all of some numbers, and a share of its length on either side; `ends` go before them.

        >>> Axis.around([1.0, None, 3.0])
        Axis(low=1.0, high=3.0, log=False)
        """
        known = [float(value) for value in ends or values if value is not None and abs(value) < LARGEST]
        known = [value for value in known if value > 1 / LARGEST] if log else known
        low, high = (min(known), max(known)) if known else (1.0, 10.0) if log else (0.0, 1.0)
        if low == high == 0:
            return cls(0.0, 1.0)
        if low == high:
            low, high = (low / 2, high * 2) if log else (low - (abs(low) / 2 or 0.5), high + (abs(high) / 2 or 0.5))
        if ends is None and log:
            reach = math.exp((math.log(high) - math.log(low)) * margin)
            low, high = low / reach, high * reach
        elif ends is None:
            low, high = low - (high - low) * margin, high + (high - low) * margin
        return cls(low, high, log)

    def share(self, value: float | None) -> float | None:
        """Where a number stands, 0 at the low end and 1 at the high one; None for what has no place on the axis.

        >>> Axis(1, 100, log=True).share(10), Axis(1, 100, log=True).share(-1)
        (0.5, None)
        """
        if value is None or not abs(value) < LARGEST or (self.log and value <= 1 / LARGEST):
            return None
        if self.log:
            return (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (value - self.low) / (self.high - self.low)

    def ticks(self, most: int = 6) -> list[float]:
        """Round numbers along the axis.

        >>> Axis(0, 10).ticks(), Axis(1, 1000, log=True).ticks()
        ([0.0, 2.0, 4.0, 6.0, 8.0, 10.0], [1.0, 10.0, 100.0, 1000.0])
        """
        from matplotlib.ticker import LogLocator, MaxNLocator  # slow to import, and only needed here

        if self.log and self.high >= 10 * self.low:
            found = LogLocator(numticks=most).tick_values(self.low, self.high)
        else:
            found = MaxNLocator(nbins=most - 1, steps=[1, 2, 5, 10]).tick_values(self.low, self.high)
        slack = 0.0 if self.log else (self.high - self.low) * 1e-9
        return [float(f"{tick:.10g}") for tick in found if self.low - slack <= tick <= self.high + slack]


def bar_reach(panel: Bars) -> Range:
    """The ends of the axis of bars: 0 and all that they reach, with their errors.

    >>> bar_reach(Bars("", ["a", "b"], [3.0, -1.0], [1.0, 0.5]))
    (-1.5, 4.0)
    """
    if panel.x_range:
        return panel.x_range
    errors = panel.errors or [0.0] * len(panel.values)
    ends = [value + sign * error for value, error in zip(panel.values, errors, strict=True) for sign in (-1, 1)]
    ends = [end for end in ends if abs(end) < LARGEST]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    return (low, high) if low < high else (0.0, 1.0)
