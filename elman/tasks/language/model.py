"""A trained language model: it scores text, it writes text, it lives in a folder.

model = LanguageModel.load(Path("runs/shakespeare"))
model.generate("ROMEO:", length=100)
model.score("To be, or not to be")
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elman.corpora import IdStream
from elman.corpora.batches import Ids
from elman.corpora.ids import line_ids
from elman.corpora.tables import Record
from elman.decode import Sampling, StopStrings, exhaustive, generate
from elman.decode.step_model import StepModel
from elman.errors import UserError, nearest
from elman.metrics import KneserNey, Scores
from elman.nn.language import LanguageNetwork
from elman.tasks import folder as folders
from elman.tasks.language.network import build_network
from elman.tasks.language.scoring import Reading, network_log_probs
from elman.tasks.language.settings import ModelSettings
from elman.text import Tokenizer

TASK = "lm"


@dataclass(frozen=True)
class TokenScore:
    """One token of a text and the natural logarithm of its probability."""

    token: str
    log_prob: float


class LanguageModel:
    """p(text), forwards, backwards or both; a network or an n-gram model; with labels or without."""

    def __init__(
        self,
        settings: ModelSettings,
        tokenizer: Tokenizer,
        engine: LanguageNetwork | KneserNey,
        reading: Reading,
        labels: Sequence[str] = (),
    ) -> None:
        self.settings, self.tokenizer, self.engine = settings, tokenizer, engine
        self.reading, self.labels = reading, list(labels)
        self.recipe: dict[str, Any] = {}  # what it was trained by; kept in its config

    # The folder

    @classmethod
    def load(cls, folder: Path | str) -> "LanguageModel":
        """Read a model folder."""
        folder = Path(folder)
        config = folders.read_config(folder, TASK)
        tokenizer = Tokenizer.load(folder / "tokenizer.json")
        try:
            settings = ModelSettings.model_validate(config["model"])
            reading, labels = Reading(**config["reading"]), list(config["labels"])
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{folder / 'config.json'} is damaged: {str(error).splitlines()[0]}") from None
        engine: LanguageNetwork | KneserNey
        if settings.kind == "ngram":
            arrays = {name: tensor.numpy() for name, tensor in folders.read_weights(folder).items()}
            engine = KneserNey.from_state(arrays, tokenizer.size)
        else:
            engine = build_network(settings, tokenizer, len(labels))
            folders.load_weights(engine, folder)
            engine.eval()
        model = cls(settings, tokenizer, engine, reading, labels)
        model.recipe = config.get("recipe", {})
        return model

    def save(self, folder: Path) -> None:
        """Write the model folder's config, tokenizer and weights."""
        config = {
            "model": self.settings.model_dump(mode="json"),
            "reading": self.reading.to_dict(),
            "labels": self.labels,
            "recipe": self.recipe,
        }
        if isinstance(self.engine, KneserNey):
            weights = {name: torch.from_numpy(array) for name, array in self.engine.state_dict().items()}
        else:
            weights = folders.weights_of(self.engine)
        folders.write_model(folder, TASK, config, weights, self.tokenizer)

    @property
    def parameters(self) -> int:
        """How many numbers the model consists of."""
        if isinstance(self.engine, KneserNey):
            return sum(array.size for array in self.engine.state_dict().values())
        return sum(p.numel() for p in self.engine.parameters())

    # Scoring

    def log_probs(self, ids: Ids) -> np.ndarray:
        """The log-probability of every token of encoded text, in the order of the text."""
        if isinstance(self.engine, KneserNey):
            return self.engine.log_probs(ids.read(0, len(ids)), self.reading.documents(ids))
        return network_log_probs(self.engine, ids, self.reading, backward=self.settings.direction == "backward")

    def scores(self, ids: IdStream) -> dict[str, float]:
        """Mean loss, perplexity and bits on encoded text.

        A model that reads both ways has the mean of its two losses, and the perplexity of each.
        """
        found = [self.log_probs(ids)]
        if isinstance(self.engine, LanguageNetwork) and self.settings.direction == "both":
            found.append(network_log_probs(self.engine, ids, self.reading, backward=True, tower=1))
        each = [Scores.from_total(-float(log_probs.sum()), len(ids)) for log_probs in found]
        mean = Scores(sum(scores.loss for scores in each) / len(each), len(ids))
        report = mean.to_dict(ids.characters)
        if len(each) > 1:
            report |= {"forward_perplexity": each[0].perplexity, "backward_perplexity": each[1].perplexity}
        return report

    def score(self, text: str, label: str | None = None) -> list[TokenScore]:
        """The log-probability of every token of `text`, given what stands before it (or, for a model that reads
        backwards, behind it)."""
        labels = self.labels or None
        record = Record(text, self._checked_label(label))
        ids, _, _ = line_ids([record], self.tokenizer, labels)
        tokens = ids.read(0, len(ids))
        if self.reading.unit == "stream":  # a running text has no end of its own
            ids, tokens = ids.view(0, len(ids) - 1), tokens[:-1]
        found = zip(tokens, self.log_probs(ids), strict=True)
        return [TokenScore(self.tokenizer.tokens[token], float(log_prob)) for token, log_prob in found]

    # Writing

    def generate(
        self,
        prompt: str = "",
        *,
        label: str | None = None,
        length: int = 200,
        samples: int = 1,
        sampling: Sampling | None = None,
        stop: Sequence[str] = (),
    ) -> list[str]:
        """Continue `prompt`; returns the continuations without the prompt.

        A model that reads backwards writes what stands before the prompt.
        """
        texts = [""] * samples
        for row, piece in self.stream(
            prompt, label=label, length=length, samples=samples, sampling=sampling, stop=stop
        ):
            texts[row] += piece
        return texts

    def stream(
        self,
        prompt: str = "",
        *,
        label: str | None = None,
        length: int = 200,
        samples: int = 1,
        sampling: Sampling | None = None,
        stop: Sequence[str] = (),
    ) -> Iterator[tuple[int, str]]:
        """As `generate`, but in pieces (number of the sample, text) as they are made; a mistake is told at once."""
        if samples < 1:
            raise UserError(f"the number of samples should be at least 1, not {samples}")
        backward = self.settings.direction == "backward"
        stops = [StopStrings(s[::-1] if backward else s for s in stop) for _ in range(samples)]
        eos = self.tokenizer.eos_id
        ends = self.reading.ends_text and self.tokenizer.counts[eos] > 0
        suppress = {self.tokenizer.unk_id} | (set() if self.tokenizer.counts[eos] else {eos})
        start = self._prompt_ids(prompt)
        steps = generate(
            self.stepper(label),
            [start] * samples,
            length=length,
            sampling=sampling or Sampling(),
            stop_ids={eos} if ends else (),
            suppress=suppress,
            stop_when=lambda row: stops[row].stopped,
        )
        return self._backward_pieces(steps, stops, stop) if backward else self._pieces(steps, stops, start)

    def _pieces(
        self, steps: Iterator[dict[int, int]], stops: list[StopStrings], start: list[int]
    ) -> Iterator[tuple[int, str]]:
        decoders = [self.tokenizer.stream() for _ in stops]
        for decoder in decoders:  # which knows then whether a blank stands before the first new word
            for token in start[1:]:
                decoder.push(token)
        for new in steps:
            for row, token in new.items():
                yield row, stops[row].push(decoders[row].push(token))
        for row, decoder in enumerate(decoders):
            yield row, stops[row].push(decoder.finish()) + stops[row].flush()

    def _backward_pieces(
        self, steps: Iterator[dict[int, int]], stops: list[StopStrings], stop: Sequence[str]
    ) -> Iterator[tuple[int, str]]:
        """What is written backwards is known only when it is all there."""
        written: list[list[int]] = [[] for _ in stops]
        for new in steps:
            for row, token in new.items():
                written[row].append(token)
                stops[row].push(self.tokenizer.decode([token])[::-1])
        for row, ids in enumerate(written):
            text = self.tokenizer.decode(ids[::-1])
            cut = max((text.rfind(s) + len(s) for s in stop if s in text), default=0)
            yield row, text[cut:]

    def stepper(self, label: str | None = None) -> StepModel[Any]:
        """The model as something that reads one id at a time: what `elman.decode` searches."""
        label = self._checked_label(label)
        if isinstance(self.engine, KneserNey):
            return NgramSteps(self.engine)
        return NetworkSteps(self.engine, self.labels.index(label) if label is not None else None)

    def exhaustive(self, prompt: str = "", *, length: int, label: str | None = None) -> list[tuple[str, float]]:
        """Every continuation of `prompt` of up to `length` tokens with its log-probability, best first.

        For tiny vocabularies only: it is the proof of what greedy writing and sampling miss.
        """
        start, stepper = self._prompt_ids(prompt), self.stepper(label)
        stop_id = self.tokenizer.eos_id if self.reading.ends_text else None
        found = exhaustive(Continued(stepper, start), start_id=start[-1], length=length, stop_id=stop_id)
        step = -1 if self.settings.direction == "backward" else 1
        return [(self.tokenizer.decode(ids[::step]), log_prob) for ids, log_prob in found]

    def _prompt_ids(self, prompt: str) -> list[int]:
        unknown = self.tokenizer.unknown(prompt)
        if unknown:
            shown = ", ".join(repr(piece) for piece in unknown[:5])
            kind = "characters" if all(len(piece) == 1 for piece in unknown) else "words"
            raise UserError(f"the prompt has {kind} that the model never saw in training: {shown}; leave them out")
        ids = [int(i) for i in self.tokenizer.encode(prompt)]
        if self.settings.direction == "backward":
            ids.reverse()
        return [self.reading.start_id, *ids]

    def _checked_label(self, label: str | None) -> str | None:
        if label is None and self.labels:
            raise UserError(f"this model writes by label: give one of {', '.join(self.labels)}")
        if label is not None and not self.labels:
            raise UserError(f"this model knows no labels, so '{label}' means nothing to it: leave the label out")
        if label is not None and label not in self.labels:
            raise UserError(f"the model does not know the label '{label}': {nearest(label, self.labels)}")
        return label


class NetworkSteps:
    """A network, one id at a time. The state is explicit; nothing is kept on the network."""

    def __init__(self, network: LanguageNetwork, label: int | None = None) -> None:
        self.network, self.label = network, label

    def start(self, batch_size: int) -> Any:
        """Nothing read yet."""
        return None

    @torch.no_grad()
    def step(self, ids: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Read one id a row; log-probabilities of the next."""
        labels = None if self.label is None else torch.full_like(ids, self.label)
        hidden, state = self.network.hidden(ids.unsqueeze(1), state, labels=labels)  # B x 1 x H
        return self.network.softmax.log_probs(hidden[:, 0]), state

    def select(self, state: Any, rows: Tensor) -> Any:
        """The state of some rows."""
        return self.network.select(state, rows)


class NgramSteps:
    """An n-gram model, one id at a time; the state is the last ids of each row, None before the first."""

    def __init__(self, model: KneserNey) -> None:
        self.model = model

    def start(self, batch_size: int) -> list[list[int] | None]:
        """Nothing read yet."""
        return [None] * batch_size

    def step(self, ids: Tensor, state: list[list[int] | None]) -> tuple[Tensor, list[list[int] | None]]:
        """Read one id a row; log-probabilities of the next."""
        read = [self._read(row, int(new)) for row, new in zip(state, ids, strict=True)]
        rows = np.stack([self.model.distribution(row) for row in read])
        return torch.from_numpy(np.log(rows)), list(read)

    def _read(self, row: list[int] | None, new: int) -> list[int]:
        if row is None:  # the model puts the start before a text by itself
            return [] if new == self.model.start else [new]
        return [*row, new][-max(self.model.order - 1, 1) :]

    def select(self, state: list[list[int] | None], rows: Tensor) -> list[list[int] | None]:
        """The state of some rows."""
        return [state[int(row)] for row in rows]


class Continued:
    """A step model that has already read all but the last of some ids."""

    def __init__(self, model: StepModel[Any], ids: list[int]) -> None:
        self.model, self.step, self.select = model, model.step, model.select
        self.state = model.start(1)
        for new in ids[:-1]:
            _, self.state = model.step(torch.tensor([new]), self.state)
        self.fresh = len(ids) == 1

    def start(self, batch_size: int) -> Any:
        """The state after those ids, for every row."""
        if self.fresh:
            return self.model.start(batch_size)
        return self.model.select(self.state, torch.zeros(batch_size, dtype=torch.long))
