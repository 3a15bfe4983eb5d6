"""A trained language model: it scores text, it writes text, it lives in a folder.

model = LanguageModel.load(Path("runs/shakespeare"))
model.generate("ROMEO:", length=100)
model.score("To be, or not to be")
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from elman.baselines import KneserNey
from elman.batches import IdStream
from elman.batches.batches import Ids
from elman.batches.ids import line_ids
from elman.decode import Sampling, StopStrings, exhaustive, generate
from elman.decode.step_model import StepModel
from elman.errors import UserError, nearest
from elman.metrics import Scores
from elman.nn.language import LanguageNetwork
from elman.records.tables import Record
from elman.runtime import Engine, quantise, refusal
from elman.runtime.quantise import Arrays, numbers, tensors
from elman.tasks import folder as folders
from elman.tasks.language.network import build_network
from elman.tasks.language.scoring import EngineReader, Reading, network_log_probs, text_log_probs
from elman.tasks.language.settings import ModelSettings
from elman.tasks.language.steps import Continued, EngineSteps, NetworkSteps, NgramSteps
from elman.text import Tokenizer

TASK = "lm"


@dataclass(frozen=True)
class TokenScore:
    """One token of a text and the natural logarithm of its probability."""

    token: str
    log_prob: float


class LanguageConfig(folders.Config):
    """What a language model's config.json holds."""

    model: ModelSettings
    reading: Reading
    labels: tuple[str, ...]


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
        self.int8: Arrays | None = None  # the weights as integers, for a model that was exported so
        self._runtimes: dict[int, tuple[Any, Engine]] = {}  # by tower, with the weights' versions

    # The folder

    @classmethod
    def load(cls, folder: Path | str) -> "LanguageModel":
        """Read a model folder."""
        folder = Path(folder)
        config = folders.read_config(folder, LanguageConfig, TASK)
        tokenizer = Tokenizer.load(folder / "tokenizer.json")
        settings, labels = config.model, config.labels
        if not 0 <= config.reading.start_id < tokenizer.size:
            raise UserError(
                f"{folder / 'config.json'} is damaged: 'reading.start_id' = {config.reading.start_id}: "
                f"the vocabulary has ids from 0 to {tokenizer.size - 1}"
            )
        if settings.kind == "ngram":
            return cls._of_ngrams(config, tokenizer, folder)
        network, int8 = folders.load_network(
            lambda: build_network(settings, tokenizer, len(labels), trained=False), folder
        )
        model = cls(settings, tokenizer, network, config.reading, labels)
        model.recipe, model.int8 = config.recipe, int8
        if int8 is not None:
            model.runtime()  # checks them, and says at once if it cannot run here
        return model

    @classmethod
    def _of_ngrams(cls, config: "LanguageConfig", tokenizer: Tokenizer, folder: Path) -> "LanguageModel":
        try:
            ngrams = KneserNey.from_state(folders.arrays_of(folder), tokenizer.size)
        except (UserError, ValueError, IndexError) as error:
            raise UserError(f"{folder / 'model.safetensors'} is damaged, or its tokenizer.json: {error}") from None
        model = cls(config.model, tokenizer, ngrams, config.reading, config.labels)
        model.recipe = config.recipe
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
            weights = tensors(self.engine.state_dict())
        elif self.int8 is not None:
            weights = tensors(self.int8)
        else:
            weights = folders.weights_of(self.engine)
        folders.write_model(folder, TASK, config, weights, self.tokenizer)

    def to_int8(self) -> "LanguageModel":
        """The same model with its matrices rounded to 8 bits: a quarter of the size, and quicker to write."""
        reason = self.refusal()
        if reason is not None:
            raise UserError(f"this model cannot be rounded to int8: {reason}")
        assert isinstance(self.engine, LanguageNetwork)
        twin = LanguageModel(self.settings, self.tokenizer, self.engine, self.reading, self.labels)
        twin.recipe, twin.int8 = self.recipe, self.int8 or quantise(folders.weights_of(self.engine))
        return twin

    @property
    def parameters(self) -> int:
        """How many numbers the model consists of."""
        if isinstance(self.engine, KneserNey):
            return sum(array.size for array in self.engine.state_dict().values())
        return sum(p.numel() for p in self.engine.parameters())

    # The compiled engine

    def refusal(self) -> str | None:
        """Why the compiled engine does not run this model, so that PyTorch does; None if it does."""
        if isinstance(self.engine, KneserNey):
            return "it is an n-gram model, not a network"
        if next(self.engine.parameters()).device.type != "cpu":
            return "its network is not on the CPU"
        return refusal(self.engine)

    def runtime(self, tower: int = 0) -> Engine:
        """The compiled engine with the weights as they are now."""
        reason = self.refusal()
        if reason is not None:
            raise UserError(f"the compiled engine does not run this model: {reason}")
        assert isinstance(self.engine, LanguageNetwork)
        versions = [parameter._version for parameter in self.engine.parameters()]
        if self._runtimes.get(tower, (None,))[0] != versions:
            arrays = self.int8 or {name: numbers(tensor) for name, tensor in folders.weights_of(self.engine).items()}
            self._runtimes[tower] = versions, Engine.of_arrays(self.engine, arrays, tower=tower)
        return self._runtimes[tower][1]

    # Scoring

    def log_probs(self, ids: Ids, tower: int = 0, reading: Reading | None = None) -> np.ndarray:
        """The log-probability of every token of encoded text, in the order of the text."""
        backward = tower == 1 or self.settings.direction == "backward"
        reading = reading or self.reading
        if isinstance(self.engine, KneserNey):
            return self.engine.log_probs(ids.read(0, len(ids)), reading.documents(ids))
        if self.int8 is not None:
            return text_log_probs(EngineReader(self.runtime(tower)), ids, reading, backward=backward)
        return network_log_probs(self.engine, ids, reading, backward=backward, tower=tower)

    def line_log_probs(self, texts: Sequence[str]) -> list[float]:
        """log p of each of several lines of text, each on its own, its end counted.

        A model of running text has learned that a line end stands there, one of lines the end token.
        """
        self._checked_label(None)
        texts = [texts] if isinstance(texts, str) else texts
        if not texts:
            return []
        stream, end = self.reading.unit == "stream", [self.tokenizer.eos_id]
        lines = [
            self.tokenizer.encode(text + "\n") if stream else np.append(self.tokenizer.encode(text), end)
            for text in texts
        ]
        starts = np.cumsum([0, *map(len, lines)])[:-1]
        each = self.log_probs(
            IdStream(np.concatenate(lines).astype(np.uint32), starts), reading=replace(self.reading, unit="line")
        )
        return np.add.reduceat(each, starts).tolist()  # type: ignore[no-any-return]

    def scores(self, ids: IdStream) -> dict[str, float]:
        """Mean loss, perplexity and bits on encoded text.

        A model that reads both ways has the mean of its two losses, and the perplexity of each.
        """
        found = [self.log_probs(ids)]
        if self.settings.direction == "both":
            found.append(self.log_probs(ids, tower=1))
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
        stop: str | Sequence[str] = (),
    ) -> list[str]:
        """Continue `prompt`; returns the continuations without the prompt, each up to the first of the `stop` texts.

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
        stop: str | Sequence[str] = (),
    ) -> Iterator[tuple[int, str]]:
        """As `generate`, but in pieces (number of the sample, text) as they are made; a mistake is told at once."""
        if samples < 1:
            raise UserError(f"the number of samples should be at least 1, not {samples}")
        stop = [stop] if isinstance(stop, str) else list(stop)
        backward = self.settings.direction == "backward"
        stops = [StopStrings(s[::-1] if backward else s for s in stop) for _ in range(samples)]
        eos = self.tokenizer.eos_id
        ends = self.reading.ends_text and self.tokenizer.counts[eos] > 0
        suppress = {self.tokenizer.unk_id} | (set() if self.tokenizer.counts[eos] else {eos})
        start = self._prompt_ids(prompt)
        options: dict[str, Any] = {
            "length": length,
            "stop_ids": {eos} if ends else (),
            "suppress": suppress,
            "stop_when": lambda row: stops[row].stopped,
        }
        chosen = sampling or Sampling()
        if self.refusal() is None:
            place = self._label_place(label)
            steps = self.runtime().generate([start] * samples, label=place, **asdict(chosen), **options)
        else:
            steps = generate(self.stepper(label), [start] * samples, sampling=chosen, **options)
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
        place = self._label_place(label)
        if isinstance(self.engine, KneserNey):
            return NgramSteps(self.engine)
        if self.int8 is not None:
            return EngineSteps(self.runtime(), place)
        return NetworkSteps(self.engine, place)

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

    def _label_place(self, label: str | None) -> int | None:
        label = self._checked_label(label)
        return None if label is None else self.labels.index(label)

    def _checked_label(self, label: str | None) -> str | None:
        if label is None and self.labels:
            raise UserError(f"this model writes by label: give one of {', '.join(self.labels)}")
        if label is not None and not self.labels:
            raise UserError(f"this model knows no labels, so '{label}' means nothing to it: leave the label out")
        if label is not None and label not in self.labels:
            raise UserError(f"the model does not know the label '{label}': {nearest(label, self.labels)}")
        return label
