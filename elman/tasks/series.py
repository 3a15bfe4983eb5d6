"""Forecasters: numbers over time, h steps ahead or one number for each series; their mean and quantiles.

model = elman.fit("series", train="co2.csv", out="runs/co2", settings={"data.horizon": 26})
model.predict(numbers).mean
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from elman.baselines.series import series_baselines
from elman.batches.numbers import SeriesFrame, Windows, hold_out_ends
from elman.draw.forecast import draw_forecast, shown_forecast
from elman.metrics.forecast import forecast_scores
from elman.metrics.metric import Metric
from elman.records.series import Missing, Series, SeriesReader
from elman.runtime.forecaster import CompiledForecaster, Forecast
from elman.runtime.layers import Layers
from elman.runtime.quantise import Arrays
from elman.runtime.weights import Shapes
from elman.tasks.folder import Config
from elman.tasks.model import Model
from elman.tasks.predict import PredictOptions, read_texts
from elman.tasks.sections import Cell, DataSection, LayersSection, Name, Names, Shares, SizeSection
from elman.tasks.task import Data, Say, Score, Task, Training, hold_out
from elman.train.recipe import Section, TrainSettings, parse

if TYPE_CHECKING:
    from elman.tasks.report import Report
    from elman.train.progress import Reporter

Run = Training[Series, "Forecaster"]


# The recipe


class GapSettings(Section):
    """What is done where a table does not say everything; `elman predict` may be told again."""

    missing: Missing = Field("refuse", description="what a gap in a column does: refuse, previous or interpolate")
    uneven: bool = Field(False, description="steps of time may differ: rows are counted")


class DataSettings(GapSettings, DataSection):
    """Where the series come from, and what of them is forecast."""

    target: Names = Field((), description="columns to forecast; every other one of numbers if not given")
    time: Name | None = Field(None, description="the column of times; found by its name")
    key: Name | None = Field(None, description="the column that tells series apart")
    covariates: Names = Field((), description="columns that are looked at and not forecast")
    label: Name | None = Field(None, description="a column with one number a series, predicted in place of steps")
    horizon: int = Field(12, ge=1, description="steps ahead")
    context: int = Field(0, ge=0, description="steps that a forecast looks back; 0 is two seasons or three horizons")
    season: int = Field(0, ge=0, description="steps of a season; 0 is found in the data, 1 is none")
    test_fraction: float = Field(0.1, ge=0, lt=1, description="the last part of each series, where test is not given")


class ModelSettings(LayersSection):
    """The network: recurrent layers over a window, a linear autoregression beside them."""

    cell: Cell = "gru"
    hidden: int = Field(32, ge=1)
    quantiles: Shares = Field((0.1, 0.9), description="beside the mean; the outermost make the interval")
    linear: bool = Field(True, description="a linear function of the window is added")
    output_dropout: float = Field(0.1, ge=0, lt=1, description="of the last hidden state")


class SeriesRecipe(Section):
    """Everything that a forecaster's run depends on."""

    task: Literal["series"] = "series"
    data: DataSettings = DataSettings()
    model: ModelSettings = ModelSettings()
    batch: SizeSection = SizeSection()
    train: TrainSettings = TrainSettings(average="ema", average_decay=0.99)


# The model


class ForecasterConfig(Config):
    """What a forecaster's config.json holds."""

    model: ModelSettings
    frame: SeriesFrame

    @property
    def sizes(self) -> dict[str, int]:
        """Of the network's parts."""
        return self.frame.sizes(len(self.model.quantiles), self.model.linear)


class Forecaster(Model[ForecasterConfig, None, Any, CompiledForecaster]):
    """p(steps to come | steps so far)."""

    task = "series"
    Config, Recipe = ForecasterConfig, SeriesRecipe

    def predict(self, series: Any) -> Any:
        """The forecast of one series, T or T x C numbers; a list of forecasts for the series of a data frame."""
        frame = self.config.frame
        records, several = SeriesTask().reader(self._data()).given(series, frame.channels, frame.width)
        return self.answers(records) if several else self.answers(records)[0]

    def answers(self, records: Sequence[Series]) -> list[Forecast]:
        if not records:
            return []
        values = self.values(self.config.frame.before([(one, len(one)) for one in records]), self._runtime())
        return Forecast.each([one.name for one in records], values, self.config.model.quantiles)

    def values(self, given: Windows, runtime: CompiledForecaster | None) -> np.ndarray:
        """Mean and quantiles after each window (B x 1+Q x h x C)."""
        if runtime is not None:
            return given.forecasts(runtime(given.inputs, given.channels), self.config.frame.horizon)
        with self.evaluating() as network:
            return given.forecasts(network.outputs(given.inputs, given.channels), self.config.frame.horizon)

    def read(self, lines: Iterable[str], options: PredictOptions) -> Iterator[Series]:
        told = parse(GapSettings, options.asked, where="the options").model_dump(include=set(options.asked))
        for series in read_texts(SeriesTask().reader(self._data().model_copy(update=told)), lines, options):
            if (sentence := self.config.frame.too_short(series)) is not None:
                options.say(sentence)
            yield series

    def written(self, record: Series, answer: Forecast, options: PredictOptions) -> Iterable[str]:
        return [options.to_json(record.where, {}, answer.to_dict())] if options.as_json else answer.lines()

    def about(self) -> str:
        what = "one number a series" if self.config.frame.label else f"{self.config.frame.horizon} steps ahead"
        return f"{what}, {self.config.model.words()}"

    def layers(self) -> list[Layers]:
        return [self.config.model.described("body", self.config.frame.width)]

    def other_shapes(self) -> Shapes:
        return CompiledForecaster.shapes(self.layers()[0].output_size, **self.config.sizes)

    @classmethod
    def build(cls, config: ForecasterConfig, vocabulary: None) -> Any:
        from elman.nn.forecaster import ForecastNetwork

        body = config.model.body(config.frame.width)
        network = ForecastNetwork(body, dropout=config.model.output_dropout, **config.sizes)
        return config.model.initialised(network, body)

    def compile(self, weights: Arrays) -> CompiledForecaster:
        return CompiledForecaster(self.layers()[0], weights)


# The task


class SeriesTask(Task[Series, Forecaster]):
    """Numbers over time."""

    name = "series"
    about = "Train a forecaster: numbers over time, steps ahead or one number for each series."
    records, unit, counted, nats, tried = "series", "windows", "windows", False, "FILE"
    Recipe, Model, Options = SeriesRecipe, Forecaster, GapSettings
    metrics = (
        Metric("mase", "MASE", lower_is_better=True, digits=3),
        Metric("smape", "sMAPE", percent=True, lower_is_better=True),
        Metric("coverage", "interval coverage", percent=True),
    )
    headlines = metrics[:1]
    inherited = ("target", "covariates", "label", "horizon", "context", "season")

    def reader(self, data: DataSettings) -> SeriesReader:
        names = ("target", "time", "key", "covariates", "label", "missing", "uneven", "encoding")
        return SeriesReader(**{name: getattr(data, name) for name in names})

    def key(self, record: Series) -> Any:
        return record.name, record.values.tolist(), record.label, record.covariates.tolist()

    def knowing(self, recipe: SeriesRecipe, train: list[Series], **more: int) -> SeriesRecipe:
        names = train[0].columns.kept(time=recipe.data.time is not None)
        return recipe.model_copy(update={"data": recipe.data.model_copy(update=names | more)})

    def settle(self, parts: dict[str, list[Series]], recipe: SeriesRecipe, say: Say) -> Data[Series]:
        """Hold out the end of each series, or some series where each has one number."""
        data, train = recipe.data, parts["train"]
        if data.label is not None:
            if "test" not in parts and data.test_fraction:
                train, parts["test"] = hold_out(train, data.test_fraction, recipe.train.seed, self.records)
            held = super().settle({**parts, "train": train}, recipe, say)
            return replace(held, facts={"frame": SeriesFrame.fit(held.train, data.horizon, data.context)})
        shares = {"test": data.test_fraction, "dev": data.dev_fraction}
        shares = {split: share for split, share in shares.items() if share and split not in parts}
        train, ends, frame = hold_out_ends(train, shares, data.horizon, data.context, data.season)
        say(frame.said(train))
        parts |= ends
        held = Data(train, parts.get("dev", []), parts.get("test", []), {"frame": frame})
        for records in held.held_out.values():
            frame.every(records)  # what cannot be forecast is refused before anything is written
        return held

    def check_start(self, start: Forecaster, data: Data[Series]) -> None:
        data.facts["frame"] = start.config.frame.going_on(data.facts["frame"])
        start.config = start.config.model_copy(update={"frame": data.facts["frame"]})

    def make(self, recipe: SeriesRecipe, data: Data[Series], vocabulary: None, examples: Windows) -> Forecaster:
        """What was found in the data is part of the model, so that it reads others by it."""
        found = self.knowing(recipe, data.train, **data.facts["frame"].steps)
        return super().make(found, data, vocabulary, examples)

    def examples(self, recipe: SeriesRecipe, data: Data[Series], vocabulary: None) -> Windows:
        return data.facts["frame"].every(data.train)  # type: ignore[no-any-return]

    def learn(self, run: Run, out: Path, resume: bool, reporter: "Reporter") -> dict[str, float]:
        return {**super().learn(run, out, resume, reporter), "series": len(run.data.train)}  # each has many windows

    def loss(self, run: Run, batch: Windows, state: Any) -> Any:
        from elman.nn.forecaster import forecast_loss
        from elman.train.task import Loss

        outputs = run.network(batch.inputs, batch.channels)
        return Loss(forecast_loss(outputs, batch.targets, run.recipe.model.quantiles), len(batch))

    def score(self, model: Forecaster, records: Sequence[Series], recipe: SeriesRecipe, train: Any) -> dict[str, Any]:
        given = model.config.frame.every(records)
        values, truth = model.values(given, model._runtime() if model.int8 else None), given.truth()
        scores = forecast_scores(values, truth, given.naive)
        history = None if model.config.frame.label else given.history()
        return {"loss": scores["mase"], **scores, "shown": shown_forecast(values, truth, history)}

    def baselines(self, model: Forecaster, train: Sequence[Series], recipe: SeriesRecipe, say: Say) -> dict[str, Score]:
        frame = model.config.frame

        def scored(rival: Any, records: Sequence[Series]) -> dict[str, Any]:
            given = frame.every(records)
            return forecast_scores(rival(given.history())[:, None], given.truth(), given.naive)

        fitted = ((known := frame.every(train)).history(), known.truth()) if train else None
        rivals = series_baselines(frame.horizon, frame.season, fitted, mean=frame.label and frame.label[0])
        return {who: partial(scored, rival) for who, rival in rivals.items()}

    def draw(self, report: "Report", folder: Path) -> dict[str, str]:
        draw_forecast(report[report.sets[-1]]["shown"], folder / "forecast.png")
        return {"forecast.png": "forecast, interval and truth"}

    def use(self, recipe: Any, report: "Report") -> tuple[Sequence[str], str]:
        return super().use(recipe, report)[0], f"model.predict([[0.0] * {report['columns']}] * 20).mean"

    def facts(self, model: Forecaster) -> dict[str, Any]:
        return {**super().facts(model), "columns": model.layers()[0].input_size}
