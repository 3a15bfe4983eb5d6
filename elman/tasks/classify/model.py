"""A trained classifier: it says which class a text belongs to, and how sure it is; it lives in a folder.

model = TextClassifier.load(Path("runs/names"))
model.predict("Nakamura").label                         # 'Japanese'
model.predict(["Nakamura", "O'Neill"])[1].probabilities
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from pydantic import Field

from elman.batches.examples import by_length, in_order
from elman.nn.recurrent import Recurrent
from elman.tasks import folder as folders
from elman.tasks.classify.compiled import CompiledClassifier
from elman.tasks.classify.inputs import Reader, load_reader
from elman.tasks.classify.network import ClassifierNetwork, build_network
from elman.tasks.classify.scoring import THRESHOLD
from elman.tasks.classify.settings import ModelSettings, TextSettings
from elman.tasks.compiled import CompiledModel
from elman.tasks.predict import PredictOptions, trained_with
from elman.tasks.texts import TextRecord, check_texts, read_texts

TASK = "classify"
BATCH_TOKENS = 1 << 15  # at most in one batch, so that long texts need no more memory than short ones


@dataclass(frozen=True)
class Prediction:
    """The labels of a text (one, or of several those more likely than not), and the probability of every class.

    >>> Prediction(("spam",), {"ham": 0.25, "spam": 0.75}).label
    'spam'
    """

    labels: tuple[str, ...]
    probabilities: dict[str, float]

    @property
    def label(self) -> str:
        """The most probable class."""
        return max(self.probabilities, key=self.probabilities.__getitem__)

    @property
    def probability(self) -> float:
        """That of the most probable class."""
        return max(self.probabilities.values())


class ClassifierConfig(folders.Config):
    """What a classifier's config.json holds."""

    model: ModelSettings
    text: TextSettings
    labels: tuple[str, ...] = Field(min_length=1)
    several: bool


class TextClassifier(CompiledModel[CompiledClassifier]):
    """p(class | text): one class a text, or any number of them."""

    def __init__(
        self,
        settings: ModelSettings,
        text: TextSettings,
        reader: Reader,
        network: ClassifierNetwork,
        labels: Sequence[str],
        several: bool = False,
    ) -> None:
        self.settings, self.text, self.reader = settings, text, reader
        self.network: ClassifierNetwork = network
        self.labels, self.several = list(labels), several
        self.recipe: dict[str, Any] = {}  # what it was trained by; kept in its config

    # The folder

    @classmethod
    def load(cls, folder: Path | str) -> "TextClassifier":
        """Read a model folder."""
        folder = Path(folder)
        config = folders.read_config(folder, ClassifierConfig, TASK)
        reader = load_reader(folder / "tokenizer.json", config.text, config.model)
        network, int8 = folders.load_network(
            lambda: build_network(config.model, reader, len(config.labels), trained=False), folder
        )
        model = cls(config.model, config.text, reader, network, config.labels, config.several)
        model.recipe, model.int8 = config.recipe, int8
        return model

    def save(self, folder: Path) -> None:
        """Write the model folder's config, tokenizer and weights."""
        config = {
            "model": self.settings.model_dump(mode="json"),
            "text": self.text.model_dump(mode="json"),
            "labels": self.labels,
            "several": self.several,
            "recipe": self.recipe,
        }
        folders.write_model(folder, TASK, config, self._kept_weights(), self.reader)

    # The compiled network

    def _bodies(self) -> list[Recurrent]:
        spelling = self.network.spelling
        return [self.network.body, *([] if spelling is None else [spelling.body])]

    def _compile(self) -> CompiledClassifier:
        return CompiledClassifier(self.reader, self.network, self.int8)

    # Predicting

    @overload
    def predict(self, texts: str) -> Prediction: ...  # type: ignore[overload-overlap]

    @overload
    def predict(self, texts: Sequence[str]) -> list[Prediction]: ...

    def predict(self, texts: str | Sequence[str]) -> Prediction | list[Prediction]:
        """The label and all probabilities of a text, or of each of several."""
        if isinstance(texts, str):
            return self.predict([texts])[0]
        check_texts(texts)
        return [self._prediction(row) for row in self.probabilities(texts).tolist()]

    def _prediction(self, row: list[float]) -> Prediction:
        probabilities = dict(zip(self.labels, row, strict=True))
        if self.several:
            return Prediction(tuple(name for name, p in probabilities.items() if p >= THRESHOLD), probabilities)
        return Prediction((max(probabilities, key=probabilities.__getitem__),), probabilities)

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """The probability of every class for each text (N x C); of several labels each has its own."""
        texts = [texts] if isinstance(texts, str) else texts
        encoded, runtime = [self.reader.encode(text) for text in texts], self._runtime()
        logits = torch.from_numpy(self.scores(encoded) if runtime is None else runtime.scores(encoded))
        return (logits.sigmoid() if self.several else logits.softmax(dim=1)).numpy()

    @torch.inference_mode()
    def scores(self, encoded: Sequence[Any]) -> np.ndarray:
        """What the network says to texts that were encoded already (N x C).

        For reports: by PyTorch, whose last digit does not depend on how many threads there are; but in int8 where the
        model is so.
        """
        runtime = None if self.int8 is None else self._runtime()
        if runtime is not None:
            return runtime.scores(encoded)
        found = np.zeros((len(encoded), len(self.labels)), np.float32)
        training = self.network.training
        if training:  # changing the mode of every layer takes longer than some answers
            self.network.eval()
        for rows in by_length([len(tokens) for tokens in encoded], 256, tokens=BATCH_TOKENS):
            found[rows] = self.network(self.reader.pack([encoded[index] for index in rows])).numpy()
        if training:
            self.network.train()
        return found

    def predict_lines(self, lines: Iterable[str], options: PredictOptions) -> Iterator[str]:
        """A line for each text in `lines`, in their order; what the lines are is for the options to say."""
        found = in_order(
            read_texts(lines, options, trained_with(self.recipe, "text_column")),
            lambda record: len(record.text),
            lambda batch: self.predict([record.text for record in batch]),
            batch_size=options.window,  # `scores` cuts by the number of tokens
            window=options.window,
        )
        for record, prediction in found:
            yield self._json(record, prediction) if options.as_json else self._line(prediction)

    def _line(self, prediction: Prediction) -> str:
        if not self.several:
            return f"{prediction.label}\t{prediction.probability:.4f}"
        return "\t".join(f"{label}={prediction.probabilities[label]:.4f}" for label in prediction.labels)

    def _json(self, record: TextRecord, prediction: Prediction) -> str:
        ordered = sorted(prediction.probabilities.items(), key=lambda pair: -pair[1])
        answer: dict[str, Any] = {"labels": list(prediction.labels)} if self.several else {"label": prediction.label}
        value = {
            "line": record.line,
            "text": record.text,
            **answer,
            "probabilities": {label: round(p, 6) for label, p in ordered},
        }
        return json.dumps(value, ensure_ascii=False)
