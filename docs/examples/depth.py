"""How deep do brackets nest? A number for a text: a complete task in one file, registered from outside the package.

python docs/examples/depth.py train depth --train brackets.csv --out runs/depth     # the whole command line, with it
python docs/examples/depth.py predict runs/depth "(())()"
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field

from elman.batches.examples import by_length
from elman.errors import UserError
from elman.metrics.metric import Metric
from elman.ragged import Ragged
from elman.records.records import Record, RecordReader
from elman.runtime import Encoder, Layers
from elman.runtime.quantise import Arrays
from elman.runtime.weights import Shapes
from elman.tasks import TASKS
from elman.tasks.folder import Config
from elman.tasks.model import Model
from elman.tasks.predict import PredictOptions
from elman.tasks.sections import DataSection, LayersSection, SizeSection
from elman.tasks.task import Data, Say, Score, Task, Training
from elman.train.recipe import Section, TrainSettings

IDS = {"(": 0, ")": 1}
Run = Training[Record, "DepthModel"]


# The recipe: what can be set with -s


class ModelSettings(LayersSection):
    """The network: recurrent layers over embedded brackets."""

    hidden: int = Field(32, ge=1)
    embedding: int = Field(8, ge=1)


class DepthRecipe(Section):
    """Everything that a run depends on."""

    task: Literal["depth"] = "depth"
    data: DataSection = DataSection()
    model: ModelSettings = ModelSettings()
    batch: SizeSection = SizeSection()
    train: TrainSettings = TrainSettings()


# The model: what its folder holds, how it answers


class DepthConfig(Config):
    """What config.json holds beside what every model's does."""

    model: ModelSettings


class DepthModel(Model[DepthConfig, None, Any, Encoder]):
    """The depth of a string of brackets."""

    task = "depth"
    Config, Recipe = DepthConfig, DepthRecipe

    def predict(self, texts: Any) -> Any:
        """The depth of a text, or of each of several."""
        return self.predict_each(texts)

    def answers(self, records: Sequence[Record | str]) -> list[float]:
        """The depth of each text."""
        encoded, runtime = encode(records), self._runtime()
        values = self.scores(encoded) if runtime is None else runtime(encoded.data, encoded.lengths)
        return [round(value, 4) for value in values[:, 0].tolist()]

    def scores(self, encoded: Ragged) -> np.ndarray:
        """What the network says (B x 1), for reports.

        By PyTorch, whose last digit does not depend on how many threads there are; but in int8 where the model is so.
        """
        runtime = None if self.int8 is None else self._runtime()
        if runtime is not None:
            return runtime(encoded.data, encoded.lengths)
        import torch

        from elman.nn.inputs import Inputs

        values = np.zeros((len(encoded), 1), np.float32)
        with torch.inference_mode(), self.evaluating() as network:
            for rows in by_length(encoded.lengths, 256):
                values[rows] = network(Inputs.of(encoded.take(rows))).numpy()
        return values

    def length(self, record: Record) -> int:
        return len(record.text)

    def written(self, record: Record, answer: float, options: PredictOptions) -> Iterator[str]:
        if options.as_json:
            yield options.to_json(record.where, record.fields, {"text": record.text, "depth": answer})
        else:
            yield f"{answer:.2f}"

    def about(self) -> str:
        return f"depth of brackets, {self.config.model.words()}"

    @classmethod
    def build(cls, config: DepthConfig, vocabulary: None) -> Any:
        from torch import nn

        from elman.nn.classifier import ClassifierNetwork
        from elman.nn.pooling import LastPooling

        body = config.model.body(config.model.embedding)
        embedding = nn.Embedding(len(IDS), config.model.embedding)
        return ClassifierNetwork(embedding, None, body, LastPooling(body), nn.Linear(body.output_size, 1))

    # These three make it run without PyTorch. Without them PyTorch predicts.

    def layers(self) -> list[Layers]:
        return [self.config.model.described("body", self.config.model.embedding)]

    def other_shapes(self) -> Shapes:
        sizes = self.config.model
        return {
            "embedding.weight": (len(IDS), sizes.embedding),
            "output.weight": (1, sizes.hidden),
            "output.bias": (1,),
        }

    def compile(self, weights: Arrays) -> Encoder:
        return Encoder(self.layers()[0], weights, embedding="embedding", pooling="last", output="output")


# The task: records, ids, loss, scores


class Depth(Task[Record, DepthModel]):
    """A number for a string of brackets."""

    name = "depth"
    about = "Train a model that says how deep brackets nest."
    records, unit, counted = "texts", "texts", "texts"
    nats = False  # the loss is a squared error
    Recipe, Model = DepthRecipe, DepthModel
    metrics = (Metric("mean_error", "mean error", lower_is_better=True, digits=3), Metric("exact", percent=True))
    headlines = metrics[:1]

    def reader(self, data: DataSection) -> RecordReader:
        return RecordReader(guess_label=True, encoding=data.encoding)

    def key(self, record: Record) -> tuple[str, str | None]:
        return record.text, record.label

    def examples(self, recipe: DepthRecipe, data: Data[Record], vocabulary: None) -> Ragged:
        return encode(data.train)

    def batch(self, run: Run, rows: np.ndarray) -> Any:
        truth = run.once("depths", lambda: depths(run.data.train))
        return run.examples.take(rows), truth[rows]

    def loss(self, run: Run, batch: Any, state: Any) -> Any:
        import torch
        from torch.nn.functional import mse_loss

        from elman.nn.inputs import Inputs
        from elman.train.task import Loss

        encoded, truth = batch
        return Loss(mse_loss(run.network(Inputs.of(encoded))[:, 0], torch.from_numpy(truth)), len(truth))

    def score(self, model: DepthModel, records: Sequence[Record], recipe: Any, train: Any) -> dict[str, Any]:
        guesses, truth = model.scores(encode(records))[:, 0], depths(records)
        return {"loss": float(np.mean((guesses - truth) ** 2)), **errors(guesses, truth)}

    def baselines(self, model: DepthModel, train: Sequence[Record], recipe: Any, say: Say) -> dict[str, Score]:
        if not train:
            return {}
        median = np.median(depths(train))
        return {"always the median": lambda records: errors(np.full(len(records), median), depths(records))}


def encode(records: Sequence[Record | str]) -> Ragged:
    """Texts as ids of brackets; anything else is left out."""
    rows = []
    for record in records:
        text, where = (record, repr(record)) if isinstance(record, str) else (record.text, record.where)
        rows.append(np.array([IDS[character] for character in text if character in IDS], np.int64))
        if not len(rows[-1]):
            raise UserError(f"there is no bracket in {where}: give texts of ( and )")
    return Ragged.of(rows)


def depths(records: Sequence[Record]) -> np.ndarray:
    """The right answers."""
    for record in records:
        if record.label is None or not record.label.isdecimal():
            raise UserError(f"{record.where} has {record.label!r} as its depth: give a whole number")
    return np.array([int(str(record.label)) for record in records], np.float32)


def errors(guesses: np.ndarray, truth: np.ndarray) -> dict[str, Any]:
    """What guesses scored, whoever made them."""
    exact = np.rint(guesses) == truth
    return {"texts": len(truth), "mean_error": float(np.abs(guesses - truth).mean()), "exact": float(exact.mean())}


TASKS["depth"] = Depth()

if __name__ == "__main__":
    from elman.cli.main import run

    run()
