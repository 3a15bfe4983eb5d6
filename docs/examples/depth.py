"""How deep do brackets nest? A number for a text: a complete task in one file, registered from outside the package.

python docs/examples/depth.py train depth --train brackets.csv --out runs/depth     # the whole command line, with it
python docs/examples/depth.py predict runs/depth "(())()"
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

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
from elman.tasks.memory import built
from elman.tasks.model import Model
from elman.tasks.predict import PredictOptions, heading
from elman.tasks.sections import DataSection, LayersSection
from elman.tasks.task import Data, Say, Score, Task, Training
from elman.train.recipe import BatchSection, Section, TrainSettings

IDS = {"(": 0, ")": 1}
Run = Training[Record, "DepthModel"]


# The recipe: what can be set with -s


class ModelSettings(LayersSection):
    """The network: recurrent layers over embedded brackets."""

    hidden: int = Field(32, ge=1)
    embedding: int = Field(8, ge=1)


class BatchSettings(BatchSection):
    """How texts are put together."""

    chosen: ClassVar[tuple[str, int, int]] = ("size", 32, 8)  # the key; for large data; at least, for small ones
    size: int | None = Field(None, ge=1, description="texts side by side")


class DepthRecipe(Section):
    """Everything that a run depends on."""

    task: Literal["depth"] = "depth"
    data: DataSection = DataSection()
    model: ModelSettings = ModelSettings()
    batch: BatchSettings = BatchSettings()
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
        encoded = encode([record if isinstance(record, str) else record.text for record in records])
        runtime = self._runtime()
        values = self.by_torch(encoded) if runtime is None else runtime(encoded.data, encoded.lengths)
        return [round(value, 4) for value in values[:, 0].tolist()]

    def by_torch(self, encoded: Ragged) -> np.ndarray[Any, Any]:
        """What the network says (B x 1)."""
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
            yield json.dumps({**heading(record.where, record.text, record.fields), "depth": answer})
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
    Recipe, Model = DepthRecipe, DepthModel
    metrics = (Metric("error", "mean error", lower_is_better=True, digits=3), Metric("exact", percent=True))
    headlines = metrics[:1]

    def reader(self, data: DataSection) -> RecordReader:
        return RecordReader(guess_label=True, encoding=data.encoding)

    def key(self, record: Record) -> tuple[str, str | None]:
        return record.text, record.label

    def examples(self, recipe: DepthRecipe, data: Data[Record], vocabulary: None) -> Ragged:
        data.facts["depths"] = depths(data.train)
        return encode([record.text for record in data.train])

    def lengths(self, examples: Ragged) -> np.ndarray[Any, Any]:
        return examples.lengths

    def make(self, recipe: DepthRecipe, data: Data[Record], vocabulary: None, examples: Ragged) -> DepthModel:
        config = DepthConfig.new(self.name, recipe, model=recipe.model)
        return DepthModel(config, None, built(lambda: DepthModel.build(config, None), recipe.model))

    def batch(self, run: Run, rows: np.ndarray[Any, Any]) -> Any:
        return run.examples.take(rows), run.data.facts["depths"][rows]

    def loss(self, run: Run, batch: Any, state: Any) -> Any:
        import torch
        from torch.nn.functional import mse_loss

        from elman.nn.inputs import Inputs
        from elman.train.task import Loss

        encoded, truth = batch
        return Loss(mse_loss(run.network(Inputs.of(encoded))[:, 0], torch.from_numpy(truth)), len(truth))

    def watch(self, run: Run) -> dict[str, float]:
        scores = self.score(run.model, run.data.dev, run.recipe, ())
        return {"loss": scores["loss"], "error": scores["error"]}

    def score(self, model: DepthModel, records: Sequence[Record], recipe: Any, train: Any) -> dict[str, Any]:
        encoded, truth = encode([record.text for record in records]), depths(records)
        guesses = model.by_torch(encoded)[:, 0]
        return {"loss": float(np.mean((guesses - truth) ** 2)), **errors(guesses, truth)}

    def baselines(self, model: DepthModel, train: Sequence[Record], recipe: Any, say: Say) -> dict[str, Score]:
        if not train:
            return {}
        usual = np.median(depths(train))
        return {"always the median": lambda records: errors(np.full(len(records), usual), depths(records))}


def encode(texts: Sequence[str]) -> Ragged:
    """Texts as ids of brackets; anything else is left out."""
    rows = [[IDS[character] for character in text if character in IDS] for text in texts]
    for text, row in zip(texts, rows, strict=True):
        if not row:
            raise UserError(f"there is no bracket in {text!r}: give texts of ( and )")
    return Ragged.of([np.array(row, np.int64) for row in rows])


def depths(records: Sequence[Record]) -> np.ndarray[Any, Any]:
    """The right answers."""
    for record in records:
        if record.label is None or not record.label.isdecimal():
            raise UserError(f"{record.where} has {record.label!r} as its depth: give a whole number")
    return np.array([int(str(record.label)) for record in records], np.float32)


def errors(guesses: np.ndarray[Any, Any], truth: np.ndarray[Any, Any]) -> dict[str, Any]:
    """What guesses scored, whoever made them."""
    exact = np.rint(guesses) == truth
    return {"texts": len(truth), "error": float(np.abs(guesses - truth).mean()), "exact": float(exact.mean())}


TASKS["depth"] = Depth()

if __name__ == "__main__":
    from elman.cli.main import run

    run()
