"""A metric: what a score is called, which way is better, and how it is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Metric:
    """One figure among the scores of a model or a baseline.

    >>> accuracy = Metric("accuracy", percent=True)
    >>> accuracy.shown(accuracy.of({"accuracy": 0.8551}))
    '85.51 %'
    >>> Metric("spans.f1", "span F1").of({"spans": {"f1": 0.5}}), Metric("bleu").of({})
    (0.5, None)
    """

    key: str
    """Where it stands among the scores; a dot leads into a table of them."""
    title: str = ""
    """How tables call it; as the key where nothing is given."""
    percent: bool = False
    """A share, written as a percentage."""
    lower_is_better: bool = False
    digits: int = 2

    @property
    def name(self) -> str:
        """How tables call it."""
        return self.title or self.key

    def of(self, scores: Mapping[str, Any]) -> float | None:
        """Its value among some scores; None where they have none."""
        value: Any = scores
        for part in self.key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return None if value is None else float(value)

    def shown(self, value: float | None) -> str:
        """A value as tables have it; nothing where there is none."""
        if value is None:
            return ""
        return f"{100 * value:.{self.digits}f} %" if self.percent else f"{value:,.{self.digits}f}"

    def shown_with_spread(self, mean: float, spread: float) -> str:
        """A mean and its spread.

        >>> Metric("accuracy", percent=True).shown_with_spread(0.9, 0.01)
        '90.00 ± 1.00 %'
        """
        return f"{self.scaled(mean):,.{self.digits}f} ± {self.scaled(spread):,.{self.digits}f}{' %' * self.percent}"

    def scaled(self, value: float) -> float:
        """A value in the unit that it is written in."""
        return 100 * value if self.percent else value

    def worse(self, value: float) -> float:
        """A number that grows as the value gets worse: to sort by.

        >>> sorted([0.1, 0.3, 0.2], key=Metric("accuracy").worse)
        [0.3, 0.2, 0.1]
        """
        return value if self.lower_is_better else -value


def first_of(metrics: Sequence[Metric], scores: Mapping[str, Any]) -> Metric:
    """The first of some metrics that the scores have; the last one where they have none."""
    return next((metric for metric in metrics if metric.of(scores) is not None), metrics[-1])
