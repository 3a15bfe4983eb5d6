"""Windows of numbers: the steps that a forecast looks back, on a scale of their own, and the steps that come after."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from elman.errors import UserError
from elman.files import Stored
from elman.ragged import Ints, Ragged
from elman.records.places import source_of
from elman.records.series import Series

Floats = NDArray[np.float64]
SMALL = 1e-14  # a spread below this share of the values is that of numbers that do not change
LEAST = 1e-100  # and one below this, whatever the values
CLEAR = 0.3  # the autocorrelation from which on a season is believed
RISE = 0.1  # and how far it is above the lowest one before it: that of a random walk falls, with small bumps
LONGEST_SEASON = 1000
FAR = 1e18  # naive errors: a change that no score can be made of


@dataclass(frozen=True)
class Windows:
    """B windows, each shifted to its last value and divided by its spread: value = offset + scale * number."""

    inputs: Ragged
    """N x I float32: the numbers to forecast, then those beside them."""
    channels: NDArray[np.float32]
    """B x C x T: those to forecast, a row for each channel; windows shorter than T begin with their first value."""
    offset: Floats
    """B x 1 x C."""
    scale: Floats
    """B x 1 x C."""
    targets: NDArray[np.float32]
    """B x h x C, on the windows' scales; empty where they are not known."""
    naive: Floats
    """B x 1 x C: the naive error in training of the series that each comes from, of which MASE is a multiple."""

    def __len__(self) -> int:
        return len(self.inputs)

    def __repr__(self) -> str:
        return f"of {len(self)} windows"

    @property
    def lengths(self) -> Ints:
        """B: steps that each looks back."""
        return self.inputs.lengths

    def take(self, rows: Ints) -> "Windows":
        """Some of the windows."""
        targets = self.targets[rows] if len(self.targets) else self.targets
        own = (self.channels[rows], self.offset[rows], self.scale[rows], targets, self.naive[rows])
        return Windows(self.inputs.take(rows), *own)

    def values(self, numbers: NDArray[Any]) -> Floats:
        """Numbers on the windows' scales (B x ... x h x C) as values."""
        shape = (len(self), *[1] * (numbers.ndim - 3), 1, -1)
        return np.asarray(numbers * self.scale.reshape(shape) + self.offset.reshape(shape), np.float64)

    def forecasts(self, outputs: NDArray[Any], horizon: int) -> Floats:
        """What a network says of each window (B x O) as values of mean and quantiles, B x 1+Q x h x C."""
        shape = (len(self), -1, self.scale.shape[2], horizon)
        values = self.values(outputs.reshape(shape).transpose(0, 1, 3, 2).astype(np.float64))
        return np.concatenate([values[:, :1], np.sort(values[:, 1:], axis=1)], axis=1)  # quantiles never cross

    def history(self) -> Floats:
        """The values of each window, B x T x C; not for windows whose targets are labels, on another scale."""
        return self.values(self.channels.transpose(0, 2, 1))

    def truth(self) -> Floats:
        """The values that came after each window, B x h x C."""
        return self.values(self.targets)


class SeriesFrame(Stored):
    """How series become windows: what was chosen and counted on the training series, and is kept with the model."""

    channels: int = Field(ge=1)
    """Columns to forecast."""
    covariates: tuple[tuple[float, float], ...] = ()
    """Mean and spread of each column beside them."""
    label: tuple[float, float] | None = None
    """Mean and spread of the numbers that series have, where these are to be predicted and not the steps to come."""
    horizon: int = Field(ge=1)
    """Steps ahead."""
    context: int = Field(ge=1)
    """Steps that a forecast looks back."""
    season: int = Field(1, ge=1)
    naive: dict[str, tuple[Annotated[float, Field(gt=0)], ...]] = Field(min_length=1)
    """By the name of each series, the mean error of the seasonal value in each column."""

    @model_validator(mode="after")
    def _one_error_for_each_column(self) -> "SeriesFrame":
        columns = self.channels if self.label is None else 1
        if any(len(errors) != columns for errors in self.naive.values()):
            raise ValueError(f"frame.naive has {columns} numbers for each series")
        return self

    @classmethod
    def fit(cls, train: Sequence[Series], horizon: int, context: int = 0, season: int = 0) -> "SeriesFrame":
        """That of some series; a context of 0 is two seasons or three horizons, a season of 0 is looked for.

        >>> wave = Series("a", np.sin(np.arange(120) * 2 * np.pi / 12)[:, None], np.zeros((120, 0)))
        >>> frame = SeriesFrame.fit([wave], horizon=6)
        >>> frame.season, frame.context
        (12, 24)
        """
        longest, beside = max(map(len, train)), np.concatenate([one.covariates for one in train])
        spreads = tuple(zip(beside.mean(axis=0).tolist(), beside.std(axis=0).tolist(), strict=True))
        channels = train[0].values.shape[1]
        labels = np.array([one.label for one in train if one.label is not None])
        if len(labels):
            spread, usual = float(labels.std()), float(np.abs(labels - labels.mean()).mean())
            label, naive = (float(labels.mean()), spread), {"": (usual or 1.0,)}
            own = {"label": label, "horizon": 1, "context": context or longest, "naive": naive}
            return cls(channels=channels, covariates=spreads, **own)
        season = season or find_season(train)
        context = context or min(max(2 * season, 3 * horizon, 8), max(1, longest // 3))
        if longest < context + horizon + 2:
            less = f", or say -s data.horizon={max(1, longest // 8)} -s data.context={longest // 4}"
            raise UserError(
                f"the longest series has {longest} steps to train on, too few to look back {context} and ahead "
                f"{horizon}: give more{less if longest >= 4 else ''}"
            )
        naive = {one.name: tuple(naive_errors(one.values, season).tolist()) for one in train}
        steps = {"horizon": horizon, "context": context, "season": season}
        return cls(channels=channels, covariates=spreads, naive=naive, **steps)

    @property
    def width(self) -> int:
        """Columns that are looked at."""
        return self.channels + len(self.covariates)

    @property
    def numbers(self) -> int:
        """How many are forecast of a window: each step of each column, or the label."""
        return self.channels * self.horizon if self.label is None else 1

    def sizes(self, quantiles: int, linear: bool) -> dict[str, int]:
        """Of the network: the mean and quantiles that it gives; the steps that its linear part reads and gives."""
        skipped = self.context if linear and self.label is None else 0
        return {"outputs": self.numbers * (1 + quantiles), "skipped": skipped, "steps": self.horizon}

    @property
    def steps(self) -> dict[str, int]:
        """What a recipe has to say for windows like these."""
        return {"context": self.context} | ({} if self.label else {"horizon": self.horizon, "season": self.season})

    def said(self, train: Sequence[Series]) -> str:
        """What is forecast of the training series, how far back that looks, and what is left out, in a line."""
        columns, short = train[0].columns, sum(len(one) < self.context + self.horizon for one in train)
        season = f"a season of {self.season} steps" if self.season > 1 else "no season"
        text = f"; left out, as they hold text: {_some(columns.left_out)}" if columns.left_out else ""
        few = f"; {short} of {len(train)} series are too short to train on, and left out" if short else ""
        return f"forecasting {_some(columns.target)}: {season}; forecasts look back {self.context} steps{text}{few}"

    def too_short(self, series: Series) -> str | None:
        """What there is to say of a series to forecast that has fewer steps than are looked at."""
        if len(series) >= self.context or self.label is not None:
            return None
        name = f" {series.name!r}" if series.name else ""
        return (
            f"{series.where}: the series{name} has {len(series)} steps, and forecasts look back {self.context}: its "
            "first value stands for those before it"
        )

    def going_on(self, other: "SeriesFrame") -> "SeriesFrame":
        """That of a network which was trained on the windows of this one and goes on with series of the other."""
        parts = [(len(one.covariates), one.channels, one.label is None) for one in (self, other)]
        if parts[0] != parts[1]:
            raise UserError("the model to start from has other columns: name its own with -s data.target=NAME")
        own = {key: (getattr(self, key), getattr(other, key)) for key in ("horizon", "context", "season")}
        if changed := [key for key, (old, new) in own.items() if old != new]:
            told = " ".join(f"-s data.{key}={own[key][0]}" for key in changed)
            raise UserError(f"the model to start from was trained otherwise, and cannot be changed: say {told}")
        return self.model_copy(update={"naive": {**self.naive, **other.naive}})

    def every(self, series: Sequence[Series]) -> Windows:
        """Every window of some series, with what came after it; whole series where each has one number."""
        if self.label is not None:
            return self.before([(one, len(one)) for one in series])
        places = origins(series, self.context, self.horizon)
        if not places:
            raise UserError(
                f"{source_of(series[0].where if series else None)}: no series is long enough to look back "
                f"{self.context} steps and ahead {self.horizon}: give longer ones"
            )
        return self.before(places)

    def before(self, places: Sequence[tuple[Series, int]]) -> Windows:
        """The window before each place, a number of steps into a series.

        With a `label`, what is to be said of a window is the one number of its series, and not the steps that follow.
        """
        for one, _ in places:
            self._check(one)
        seen = [one.values[max(0, place - self.context) : place] for one, place in places]  # each T x C
        beside = [one.covariates[max(0, place - self.context) : place] for one, place in places]
        last = np.array([rows[-1] for rows in seen])  # B x C
        spread = np.array([np.abs(rows - rows.mean(axis=0)).mean(axis=0) for rows in seen])
        others_naive = np.mean(list(self.naive.values()), axis=0)  # for series that were not there in training
        naive = np.array([self.naive.get(one.name, others_naive) for one, _ in places])  # B x C, or B x 1
        size = np.array([np.abs(rows).max(axis=0) for rows in seen])
        spread = _or_size(spread, size, None if self.label is not None else self._usual(places, size, naive))
        own = [(rows - a) / b for rows, a, b in zip(seen, last, spread, strict=True)]
        mean, width = np.array(self.covariates or np.empty((0, 2))).T
        others = [(rows - mean) / _or_size(width, np.abs(mean)) for rows in beside]
        with np.errstate(over="ignore"):  # what has no place in a float32 is refused below
            inputs = [np.concatenate(both, axis=1).astype(np.float32) for both in zip(own, others, strict=True)]
        steps = np.arange(-self.context, 0)
        channels = [rows[np.maximum(len(rows) + steps, 0)].T for rows in own]  # the first value where there are too few
        if self.label is not None:
            middle, spread = (np.full((len(places), 1), number) for number in self.label)
            last, spread = middle, _or_size(spread, np.abs(middle))
            ahead = [np.array([[one.label]]) if one.label is not None else np.empty((0, 1)) for one, _ in places]
        else:
            ahead = [one.values[place : place + self.horizon] for one, place in places]
        offset, scale = last[:, None], spread[:, None]
        known = all(len(rows) == self.horizon for rows in ahead)
        targets = (np.array(ahead) - offset) / scale if known else np.empty(0)
        with np.errstate(over="ignore"):
            numbers, aims = np.array(channels, np.float32), targets.astype(np.float32)
        made = Windows(Ragged.of(inputs), numbers, offset, scale, aims, naive[:, None])
        steep = known and (np.abs(np.array(ahead) - offset) > FAR * naive[:, None]).any()
        if steep or not (np.isfinite(made.inputs.data).all() and np.isfinite(made.targets).all()):
            raise UserError(
                f"{source_of(places[0][0].where)} has numbers that are too far from those before them to be learnt: "
                "mend them, or name other columns with -s data.target=NAME (elman predict: --column NAME)"
            )
        return made

    def _usual(self, places: Sequence[tuple[Series, int]], size: Floats, naive: Floats) -> Floats:
        """What stands for the spread of a window that has none: the naive error of its series in training.

        Of a series that was not there it is at most the size of its values, as those of the others may be far larger.
        """
        known = np.array([[one.name in self.naive or len(self.naive) == 1] for one, _ in places])  # B x 1
        return np.where(known | (size <= LEAST), naive, np.minimum(naive, size))

    def _check(self, one: Series) -> None:
        found, beside = one.values.shape[1], one.covariates.shape[1]
        if found != self.channels or beside != len(self.covariates):
            raise UserError(
                f"{one.where or 'the series'} has {found} columns to forecast and {beside} covariates, and the model "
                f"was trained on {self.channels} and {len(self.covariates)}: name the columns with -s data.target=NAME "
                "and -s data.covariates=NAME (elman predict: --column NAME)"
            )


def naive_errors(history: Floats, season: int = 1) -> Floats:
    """The mean error of saying what was there a season before, for each column of a history (T x C).

    Where seasons are all the same it is that of the step before, and the value itself where nothing ever changes.

    >>> naive_errors(np.array([[1.0, 5.0], [2.0, 5.0], [4.0, 5.0]])).tolist()
    [1.5, 5.0]
    """
    size = np.abs(history).max(axis=0)
    if len(history) < 2:
        return _or_size(np.zeros_like(size), size)
    steps = _or_size(np.abs(np.diff(history, axis=0)).mean(axis=0), size)
    if len(history) <= season:
        return steps
    return _or_size(np.abs(history[season:] - history[:-season]).mean(axis=0), size, steps)


def _or_size(spread: Floats, size: Floats, otherwise: Floats | None = None) -> Floats:
    """Spreads of values of such a size, to divide by; where there is none what is said `otherwise`, else the size.

    Of nothing but zeros it is one.
    """
    otherwise = np.where(size > LEAST, size, 1.0) if otherwise is None else otherwise
    return np.where(spread > np.maximum(SMALL * size, LEAST), spread, otherwise)


def _some(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def origins(series: Sequence[Series], context: int, horizon: int) -> list[tuple[Series, int]]:
    """Every place of every series that has enough before it to look back, and enough behind it to look ahead.

    >>> one = Series("", np.arange(7.0)[:, None], np.zeros((7, 0)))
    >>> [place for _, place in origins([one], context=3, horizon=2)]
    [3, 4, 5]
    """
    return [(one, place) for one in series for place in range(min(context, len(one)), len(one) - horizon + 1)]


def hold_out_ends(
    train: list[Series], shares: dict[str, float], horizon: int, context: int, season: int
) -> tuple[list[Series], dict[str, list[Series]], SeriesFrame]:
    """Series without their last parts, those parts by name, and how windows are made, which is chosen without them."""
    known = train
    for share in shares.values():
        known, _ = cut_ends(known, share, horizon, 0)
    frame, parts = SeriesFrame.fit(known, horizon, context, season), dict[str, list[Series]]()
    for name, share in shares.items():
        train, parts[name] = cut_ends(train, share, horizon, frame.context)
    return train, parts, frame


def cut_ends(series: Sequence[Series], share: float, least: int, context: int) -> tuple[list[Series], list[Series]]:
    """Series without their last part, and those parts, each with the steps before it that a forecast looks back at.

    >>> one = Series("", np.arange(10.0)[:, None], np.zeros((10, 0)))
    >>> [part[0].values.ravel().tolist() for part in cut_ends([one], 0.2, least=1, context=3)]
    [[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [5.0, 6.0, 7.0, 8.0, 9.0]]
    """
    cuts = [max(0, len(one) - max(least, round(len(one) * share))) for one in series]
    kept = [one.part(0, cut) if cut else one for one, cut in zip(series, cuts, strict=True)]
    return kept, [one.part(cut - context, len(one)) for one, cut in zip(series, cuts, strict=True) if cut]


def find_season(series: Sequence[Series]) -> int:
    """The lag at which the steps of the longest series are most like themselves; 1 where they are not.

    >>> wave = np.sin(np.arange(120) * 2 * np.pi / 12)[:, None]
    >>> find_season([Series("", wave, np.zeros((120, 0)))])
    12
    """
    longest = max(series, key=len).values[:, 0]
    most, steps = min(len(longest) // 3, LONGEST_SEASON + 2), np.arange(len(longest))
    if most < 3:
        return 1
    flat = longest - np.polyval(np.polyfit(steps, longest, 1), steps)
    if not flat.std() > max(1e-8 * np.abs(longest).max(), LEAST):  # a straight line, but for rounding
        return 1
    likeness = autocorrelations(flat / np.abs(flat).max(), most)
    rise = likeness - np.minimum.accumulate(likeness)
    peaks = [lag for lag in range(2, most - 1) if likeness[lag - 1] < likeness[lag] >= likeness[lag + 1]]
    peaks = [lag for lag in peaks if rise[lag] >= RISE]
    highest = max((likeness[lag] for lag in peaks), default=0.0)
    # Two seasons are about as alike as one: the first peak that is nearly the highest is the season.
    return next((lag for lag in peaks if likeness[lag] > max(CLEAR, 0.9 * highest)), 1)


def autocorrelations(values: Floats, count: int) -> Floats:
    """Pearson's correlation of values (T) with those of 0, 1, ..., `count` - 1 steps later, by a Fourier transform.

    >>> autocorrelations(np.array([1.0, 3.0, 1.0, 3.0, 1.0, 3.0]), 3).round(6).tolist()
    [1.0, -1.0, 1.0]
    """
    lags, length = np.arange(count), len(values)
    left = length - lags  # pairs at each lag
    padded = np.fft.rfft(values, 1 << (2 * length).bit_length())  # so that the end does not meet the beginning
    products = np.fft.irfft(padded * padded.conj())[:count]
    sums, squares = (np.concatenate([[0.0], np.cumsum(values**power)]) for power in (1, 2))
    first, second = sums[left], sums[-1] - sums[lags]
    spread = (squares[left] - first**2 / left) * (squares[-1] - squares[lags] - second**2 / left)
    return np.asarray((products - first * second / left) / np.sqrt(np.maximum(spread, LEAST)))
