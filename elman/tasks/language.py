"""Language models: p(next token | tokens so far), a network or n-grams; they score text, and they write it.

model = elman.fit("lm", train="shakespeare.txt", out="runs/shakespeare")
model.generate("ROMEO:", length=100)
model.score("To be, or not to be")
"""

import shlex
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, overload

import numpy as np
from pydantic import Field, model_validator

from elman.baselines.kneser_ney import KneserNey
from elman.batches.batches import Ids, LineBatches, Reversed, StreamBatches, StreamWindows, reverse_line
from elman.batches.ids import line_ids, line_stream_ids, stream_ids
from elman.batches.stream import IdStream
from elman.decode import Sampling, StopStrings, exhaustive, generate
from elman.decode.step_model import StepModel
from elman.errors import UserError, nearest
from elman.metrics.metric import Metric
from elman.metrics.perplexity import Scores, unigram_loss
from elman.records.records import Part, Record, RecordFiles
from elman.records.running_text import TextFiles
from elman.runtime import Engine, LanguageParts
from elman.runtime.quantise import Arrays
from elman.runtime.weights import Shapes
from elman.tasks.folder import Config
from elman.tasks.memory import built
from elman.tasks.model import Model, listed
from elman.tasks.next_tokens import NextOptions, NextToken, next_tokens, next_words, read_prompts, written_next
from elman.tasks.predict import PredictOptions
from elman.tasks.reading import Reading, on_disk
from elman.tasks.sections import DataSection, EmbeddingSection, ForcingSection, Name, OutputSection, column
from elman.tasks.task import Data, Say, Score, Source, Task, Training
from elman.tasks.vectors import Embedded, VectorsSection
from elman.text import Tokenizer, TokenizerSettings
from elman.train.recipe import BatchSection, Section, TrainSettings, parse

if TYPE_CHECKING:
    from elman.nn.language import LanguageNetwork
    from elman.tasks.adapting import AdaptingModel, Asked
    from elman.tasks.report import Report
    from elman.train.progress import Reporter
    from elman.train.task import Loss


SAMPLED_AT = 0.8  # the temperature of what a model writes while it is trained


# The recipe


class DataSettings(DataSection):
    """Where the text comes from: a corpus of the catalogue, or the user's own files."""

    dev_fraction: float = Field(0.1, gt=0, lt=1, description="held out from the end of train where dev is not given")
    dev_characters: int = Field(500_000, ge=2, description="held out at most")
    unit: Literal["stream", "line"] = Field("stream", description="one running text, or one text a line")
    text_column: Name | None = Field(None, description="name or number of the column, in tables")
    label_column: Name | None = Field(None, description="the model is told this column's value")
    texts_of: Literal["classify", "tag"] | None = Field(
        None, description="the files are those of this task: their texts are read, without labels"
    )
    format: str | None = Field(None, description="how files of another task are written, as that task calls it")

    @model_validator(mode="after")
    def _labels_need_lines(self) -> "DataSettings":
        if self.texts_of is not None and self.label_column is not None:
            raise ValueError("data.texts_of reads texts without labels: leave data.label_column out")
        if self.label_column is not None and self.unit != "line":
            raise ValueError('data.label_column needs data.unit = "line"')
        if self.format is not None and self.texts_of is None:
            raise ValueError("data.format is that of another task's files: say of which with data.texts_of")
        return self


class ModelSettings(VectorsSection, EmbeddingSection, OutputSection):
    """The network, or the n-gram model in its place."""

    kind: Literal["recurrent", "window", "ngram"] = "recurrent"
    layers: int = Field(2, ge=1, le=64)
    hidden: int = Field(256, ge=1)
    label_embedding: int = Field(16, ge=1)
    direction: Literal["forward", "backward", "both"] = "forward"
    tied: bool = Field(False, description="one matrix for embedding and softmax")
    softmax: Literal["full", "sampled", "adaptive"] = "full"
    samples: int = Field(4096, ge=1, description="negative words of the sampled softmax")
    dropout: float = Field(0.2, ge=0, lt=1, description="between layers")
    input_dropout: float = Field(0.0, ge=0, lt=1, description="of embedded tokens")
    output_dropout: float = Field(0.2, ge=0, lt=1, description="before the softmax")
    locked: bool = Field(True, description="these three have the same mask for all steps of a window")
    embedding_dropout: float = Field(0.0, ge=0, lt=1, description="of whole words")
    window: int = Field(5, ge=1, description="tokens the window model sees")
    order: int = Field(5, ge=1, le=12, description="of the n-gram model")

    @model_validator(mode="after")
    def _parts_fit(self) -> "ModelSettings":
        if self.tied and not self.embedding:
            raise ValueError("model.tied needs model.embedding above 0")
        if self.tied and self.softmax == "adaptive":
            raise ValueError("model.tied does not go with the adaptive softmax")
        if self.kind != "recurrent" and self.output == "combined":
            raise ValueError('model.output = combined goes with model.kind = "recurrent" only')
        if self.vectors and (self.kind == "ngram" or not self.embedding):
            raise ValueError("model.vectors are for an embedding: n-grams and one-hot input have none")
        if self.kind == "ngram" and self.direction != "forward":
            raise ValueError('model.kind = "ngram" reads forward only')
        if self.kind == "window" and self.learned_state:
            raise ValueError('model.learned_state is of recurrent layers: model.kind = "window" has none')
        return self


class BatchSettings(BatchSection):
    """How text is cut into batches."""

    chosen: ClassVar[tuple[str, int, int]] = ("size", 32, 8)

    size: int | None = Field(
        None, ge=1, description="streams, or lines, side by side; 32, or down to 8 for small data, if not given"
    )
    steps: int = Field(64, ge=1, description="tokens the gradient reaches back")
    bptt: Literal["regular", "random", "full"] = "regular"
    reset_documents: bool = Field(True, description="forget the state where a document begins")
    forget: float = Field(0.01, ge=0, le=1, description="chance to drop a stream's state before a window")


class BaselineSettings(Section):
    """The n-gram model that every report shows beside the network."""

    order: int = Field(5, ge=0, le=12, description="0 leaves it out")
    tokens: int = Field(1_000_000, ge=1, description="of the training text, at most")


class SampleSettings(Section):
    """What the model writes at every evaluation of its training, with the same seed each time."""

    length: int = Field(80, ge=0, description="tokens that are written at every evaluation; 0 turns it off")
    prompt: str = Field("", description="what they continue")


class LanguageRecipe(Section):
    """Everything a language-model run depends on."""

    task: Literal["lm"] = "lm"
    data: DataSettings = DataSettings()
    text: TokenizerSettings = TokenizerSettings()
    model: ModelSettings = ModelSettings()
    loss: ForcingSection = ForcingSection()
    batch: BatchSettings = BatchSettings()
    train: TrainSettings = TrainSettings()
    baseline: BaselineSettings = BaselineSettings()
    sample: SampleSettings = SampleSettings()

    @model_validator(mode="after")
    def _parts_fit(self) -> "LanguageRecipe":
        if self.loss != ForcingSection() and self.model.kind == "ngram":
            raise ValueError('model.kind = "ngram" counts and is told every token: leave loss.teacher_forcing out')
        if self.data.label_column is not None and self.model.kind == "ngram":
            raise ValueError('model.kind = "ngram" cannot be told labels: leave data.label_column out')
        if self.text.kind == "codepoints" and self.model.softmax == "adaptive":
            raise ValueError(
                'model.softmax = "adaptive" needs ids in the order of their frequency, and code points have their own: '
                'take text.kind = "characters"'
            )
        return self


# The model


@dataclass(frozen=True)
class TokenScore:
    """One token of a text and the natural logarithm of its probability."""

    token: str
    log_prob: float


class Continuation(NamedTuple):
    """One way of going on with a text: the natural logarithm of its probability, its tokens, and whether it ended."""

    text: str
    log_prob: float
    tokens: list[str]
    finished: bool
    """Whether the end token follows; else it has as many tokens as were asked for."""


class LanguageConfig(Config):
    """What a language model's config.json holds."""

    model: ModelSettings
    reading: Reading
    labels: tuple[str, ...]


class LanguageModel(Model[LanguageConfig, Tokenizer, "LanguageNetwork", list[Engine]]):
    """p(text), forwards, backwards or both; a network or an n-gram model; with labels or without."""

    task = "lm"
    Config, Recipe = LanguageConfig, LanguageRecipe
    folder: Path | None = None
    """Where it was loaded from."""
    adapts: ClassVar[bool] = False
    """Whether it gets used to what it reads."""

    @property
    def settings(self) -> ModelSettings:
        """Those of its network."""
        return self.config.model

    @property
    def tokenizer(self) -> Tokenizer:
        """What it reads with."""
        return self.vocabulary

    @property
    def reading(self) -> Reading:
        """How it reads text."""
        return self.config.reading

    @property
    def labels(self) -> list[str]:
        """What it can be told to write."""
        return list(self.config.labels)

    @cached_property
    def ngrams(self) -> KneserNey | None:
        """The counts of an n-gram model; None where it is a network."""
        if self.settings.kind != "ngram":
            return None
        return KneserNey.from_state(dict(self.weights()), self.tokenizer.size)

    @property
    def _in_integers(self) -> bool:
        """Whether the engine reads for it: int8, unless PyTorch is asked for."""
        return self.int8 is not None and self.backend != "torch"

    @property
    def compiled(self) -> bool:
        """Whether the compiled engine answers."""
        return self._runtime() is not None

    # What comes next

    @overload
    def predict(self, texts: str, **options: Any) -> list[NextToken]: ...

    @overload
    def predict(self, texts: Iterable[str], **options: Any) -> list[list[NextToken]]: ...

    def predict(self, texts: str | Iterable[str], **options: Any) -> Any:
        """The likeliest next tokens after a text, or after each of several, with their probabilities.

        Options are those of `NextOptions`: `top` is how many, `label` what a model with labels is told; with `words`,
        whole words are looked for where tokens are less than that. A model that reads backwards says what stands
        before the text. What it never saw in training is read as `<unk>`, as `score` reads it.
        """
        several = listed(texts)
        for number, text in enumerate(several, 1):
            if not isinstance(text, str):
                raise UserError(f"text {number} of {len(several)} is a {type(text).__name__}: give it as a str")
        found = self._next(several, parse(NextOptions, options, where="the prediction"))
        return found[0] if isinstance(texts, str) else found

    def _next(self, texts: Sequence[str], asked: NextOptions) -> list[list[NextToken]]:
        return (next_words if asked.words else next_tokens)(self, texts, top=asked.top, label=asked.label)

    def read(self, lines: Iterable[str], options: PredictOptions) -> Iterator[tuple[Record, NextOptions]]:
        asked = parse(NextOptions, options.asked, where="the prediction")
        self._label_place(asked.label)  # what no line can have is said before the first is read
        return ((record, asked) for record in read_prompts(self, lines, options))

    def length(self, record: tuple[Record, NextOptions]) -> int:
        return len(record[0].text)

    def answers(self, records: Sequence[tuple[Record, NextOptions]]) -> list[list[NextToken]]:
        return self._next([record.text for record, _ in records], records[0][1])

    def written(
        self, record: tuple[Record, NextOptions], answer: list[NextToken], options: PredictOptions
    ) -> Iterator[str]:
        return written_next(record[0], answer, options)

    # Scoring

    def log_probs(self, ids: Ids, tower: int = 0, reading: Reading | None = None) -> np.ndarray:
        """The log-probability of every token of encoded text, in the order of the text."""
        from elman.tasks.scoring import EngineReader, network_log_probs, text_log_probs

        backward = tower == 1 or self.settings.direction == "backward"
        reading = reading or self.reading
        if self.ngrams is not None:
            return self.ngrams.log_probs(ids.read(0, len(ids)), reading.documents(ids))
        if self._in_integers:
            return text_log_probs(EngineReader(self.engine(tower)), ids, reading, backward=backward)
        return network_log_probs(self.network, ids, reading, backward=backward, tower=tower)

    def line_log_probs(self, texts: str | Iterable[str]) -> list[float]:
        """log p of each of several lines of text, each on its own, its end counted.

        A model of running text has learned that a line end stands there, one of lines the end token.
        """
        self._checked_label(None)
        texts = [texts] if isinstance(texts, str) else list(texts)
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
        return self._scores(found, ids)

    def _scores(self, found: Sequence[np.ndarray], ids: IdStream) -> dict[str, float]:
        """The report of what was found in each direction."""
        each = [Scores.from_total(-float(log_probs.sum()), len(ids)) for log_probs in found]
        mean = Scores(sum(scores.loss for scores in each) / len(each), len(ids))
        report = mean.to_dict(ids.characters)
        if len(each) > 1:
            report |= {"forward_perplexity": each[0].perplexity, "backward_perplexity": each[1].perplexity}
        return report

    def score(self, text: str, label: str | None = None, state: Any = None) -> list[TokenScore]:
        """The log-probability of every token of `text`, given what stands before it (or, for a model that reads
        backwards, behind it).

        `state` is what the network begins with in the place of its own start, as in `generate`.
        """
        labels = self.labels or None
        record = Record(text, self._checked_label(label))
        ids, _, _ = line_ids([record], self.tokenizer, labels)
        tokens = ids.read(0, len(ids))
        if self.reading.unit == "stream":  # a running text has no end of its own
            ids, tokens = ids.view(0, len(ids) - 1), tokens[:-1]
        log_probs = self.log_probs(ids) if state is None else self._log_probs_from(tokens, state, label)
        found = zip(tokens, log_probs, strict=True)
        return [TokenScore(self.tokenizer.tokens[token], float(log_prob)) for token, log_prob in found]

    def _log_probs_from(self, tokens: np.ndarray, state: Any, label: str | None) -> np.ndarray:
        """The log-probability of each token of one text, in its order, beginning with a state."""
        from elman.tasks.beginnings import language_log_probs

        turn = _forward
        if self.settings.direction == "backward":
            turn = reverse_line if self.reading.unit == "line" else _backward
        return turn(language_log_probs(self, turn(tokens).astype(np.int64), state, label))

    def adapting(
        self,
        *,
        cache: "Asked" = False,
        adapt: "Asked" = False,
        adapt_from: "Path | str | Ids | None" = None,
        data_dir: Path | str | None = None,
        say: Say = lambda line: None,
    ) -> "AdaptingModel":
        """A model of its own that starts as this one and gets used to what it reads.

        By a `cache` of late words, or by dynamic evaluation (`adapt`), or by both: True, or settings by key such as
        `{"size": 500}`, which go over those that were kept for the model. Dynamic evaluation divides by the size of the
        gradients in training. Where that was not kept, it is measured on the training text, looked for in `data_dir`,
        or on the text `adapt_from`. This model and its folder stay as they are.
        """
        from elman.tasks.adapting import adapting

        return adapting(self, cache=cache, adapt=adapt, adapt_from=adapt_from, data_dir=data_dir, say=say)

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
        state: Any = None,
    ) -> list[str]:
        """Continue `prompt`; returns the continuations without the prompt, each up to the first of the `stop` texts.

        A model that reads backwards writes what stands before the prompt. `state` is what a recurrent network begins
        with in the place of its own start: vectors by layer and letter, {"1.h": ..., "1.c": ...}, as
        `states(text).final` has them; parts that are not given are those of its start. What stands before every text,
        and the prompt, are read from there.
        """
        texts = [""] * samples
        for row, piece in self.stream(
            prompt, label=label, length=length, samples=samples, sampling=sampling, stop=stop, state=state
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
        state: Any = None,
    ) -> Iterator[tuple[int, str]]:
        """As `generate`, but in pieces (number of the sample, text) as they are made; a mistake is told at once."""
        if samples < 1:
            raise UserError(f"the number of samples should be at least 1, not {samples}")
        stop = [stop] if isinstance(stop, str) else list(stop)
        backward = self.settings.direction == "backward"
        stops = [StopStrings(s[::-1] if backward else s for s in stop) for _ in range(samples)]
        start, (ends, suppress) = self._prompt_ids(prompt), self.ending_ids()
        options: dict[str, Any] = {
            "length": length,
            "stop_ids": ends,
            "suppress": suppress,
            "stop_when": lambda row: stops[row].stopped,
        }
        chosen = sampling or Sampling()
        if state is not None:
            from elman.tasks.beginnings import language_steps

            steps = generate(language_steps(self, state, label), [start] * samples, sampling=chosen, **options)
        elif self._runtime() is not None:
            place = self._label_place(label)
            steps = self.engine().generate([start] * samples, label=place, **asdict(chosen), **options)
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
            yield row, self.backward_text(ids, stop)

    def backward_text(self, ids: Sequence[int], stop: Sequence[str]) -> str:
        """The text of ids that were written from its end, behind the last of the `stop` texts."""
        text = self.tokenizer.decode(ids[::-1])
        return text[max((text.rfind(s) + len(s) for s in stop if s in text), default=0) :]

    def ending_ids(self) -> tuple[set[int], set[int]]:
        """The ids that end a text that is written, and those that are never written."""
        eos, known = self.tokenizer.eos_id, bool(self.tokenizer.counts[self.tokenizer.eos_id])
        never = self.tokenizer.unwritten | {self.tokenizer.unk_id} | (set() if known else {eos})
        return {eos} if self.reading.ends_text and known else set(), never

    def stepper(self, label: str | None = None) -> StepModel[Any]:
        """The model as something that reads one id at a time: what `elman.decode` searches."""
        from elman.tasks.steps import EngineSteps, NetworkSteps, NgramSteps

        place = self._label_place(label)
        if self.ngrams is not None:
            return NgramSteps(self.ngrams)
        if self._in_integers:
            return EngineSteps(self.engine(), place)
        return NetworkSteps(self.network, place)

    def exhaustive(self, prompt: str = "", *, length: int, label: str | None = None) -> list[Continuation]:
        """Every continuation of `prompt` of up to `length` tokens with its log-probability, best first.

        Continuations of different tokens stand apart, also where they are the same text, and so does a text that has
        ended from one of `length` tokens that may go on: the probabilities of all sum to one. For tiny vocabularies
        only: it is the proof of what greedy writing and sampling miss.
        """
        from elman.tasks.steps import Continued

        start, stepper = self._prompt_ids(prompt), self.stepper(label)
        stop_id = self.tokenizer.eos_id if self.reading.ends_text else None
        found = exhaustive(Continued(stepper, start), start_id=start[-1], length=length, stop_id=stop_id)
        step = -1 if self.settings.direction == "backward" else 1
        return [self._continuation(ids, log_prob, stop_id, step) for ids, log_prob in found]

    def _continuation(self, ids: list[int], log_prob: float, stop_id: int | None, step: int) -> Continuation:
        finished = stop_id is not None and ids[-1] == stop_id
        written = (ids[:-1] if finished else ids)[::step]
        return Continuation(
            self.tokenizer.decode(written), log_prob, [self.tokenizer.tokens[id] for id in written], finished
        )

    def _prompt_ids(self, prompt: str) -> list[int]:
        unknown = self.tokenizer.unknown(prompt)
        if unknown:
            shown = ", ".join(repr(piece) for piece in unknown[:5])
            kind = "characters" if all(len(piece) == 1 for piece in unknown) else "words"
            raise UserError(f"the prompt has {kind} that the model never saw in training: {shown}; leave them out")
        return self.read_ids(prompt)

    def read_ids(self, text: str) -> list[int]:
        """The ids of a text in the order in which the model reads them, the one that stands before all first."""
        ids = [int(i) for i in self.tokenizer.encode(text)]
        if self.settings.direction == "backward":
            ids.reverse()
        return [self.reading.start_id, *ids]

    def _label_place(self, label: str | None) -> int | None:
        """The number of a label, None for a model without; one that it does not know, or needs, is told."""
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

    # The folder and the network

    @classmethod
    def load_vocabulary(cls, folder: Path, config: Any) -> Tokenizer:
        return Tokenizer.load(folder / "tokenizer.json")

    def check(self, folder: Path) -> None:
        self.folder = folder.absolute()
        if not 0 <= self.reading.start_id < self.tokenizer.size:
            raise UserError(
                f"{folder / 'config.json'} is damaged: 'reading.start_id' = {self.reading.start_id}: "
                f"the vocabulary has ids from 0 to {self.tokenizer.size - 1}"
            )

    def _check_weights(self, folder: Path) -> None:
        if self.settings.kind == "ngram":
            try:
                _ = self.ngrams
            except (UserError, ValueError, IndexError, KeyError) as error:
                raise UserError(f"{folder / 'model.safetensors'} is damaged, or its tokenizer.json: {error}") from None
            return
        super()._check_weights(folder)
        if self._in_integers:
            self.engine()  # says at once if it cannot run here

    def to_int8(self) -> "LanguageModel":
        if (reason := self.refusal()) is not None:
            raise UserError(f"this model cannot be rounded to int8: {reason}")
        return super().to_int8()

    def about(self) -> str:
        kinds = {"window": f"a window of {self.settings.window}", "ngram": f"{self.settings.order}-grams"}
        what = kinds.get(self.settings.kind, self.settings.words())
        return f"{what}, {self.tokenizer.size:,} {self.tokenizer.settings.kind}"

    @classmethod
    def build(cls, config: LanguageConfig, tokenizer: Tokenizer) -> "LanguageNetwork":
        from torch import nn

        from elman.nn.language import LanguageNetwork

        settings, labels = config.model, len(config.labels)
        embedding: Any = settings.fresh_embedding(tokenizer.size)
        if settings.tied:  # as the softmax's matrix it has to begin small
            nn.init.uniform_(embedding.weight, -0.1, 0.1)
        label_embedding = nn.Embedding(labels, settings.label_embedding) if labels else None
        input_size = embedding.embedding_dim + (settings.label_embedding if labels else 0)
        bodies: Any = [_body(settings, input_size) for _ in range(2 if settings.direction == "both" else 1)]
        width = bodies[0].output_size
        # A tied matrix wants hidden states of the embedding's size.
        to_softmax = nn.Linear(width, settings.embedding) if settings.tied and width != settings.embedding else None
        tied = embedding.weight if settings.tied else None
        network = LanguageNetwork(
            embedding,
            bodies,
            _softmax(settings, settings.embedding if to_softmax else width, tokenizer, tied),
            labels=label_embedding,
            to_softmax=to_softmax,
            embedding_dropout=settings.embedding_dropout,
            input_dropout=settings.input_dropout,
            output_dropout=settings.output_dropout,
            locked=settings.locked,
        )
        return settings.initialised(network, *(bodies if settings.kind == "recurrent" else ()))

    # The compiled engine

    def refusal(self) -> str | None:
        return "it is an n-gram model, not a network" if self.settings.kind == "ngram" else super().refusal()

    def described(self) -> list[LanguageParts]:
        """Its network in plain words, of each direction that it reads in."""
        settings, vocabulary, labels = self.settings, self.tokenizer.size, len(self.config.labels)
        label_size = settings.label_embedding if labels else 0
        width = (settings.embedding or vocabulary) + label_size
        towers = range(2 if settings.direction == "both" else 1)
        layers = [settings.described(f"bodies.{tower}", width) for tower in towers]
        bridged = settings.tied and layers[0].output_size != settings.embedding
        softmax = (settings.embedding if bridged else 0, settings.tied, settings.softmax)
        return [LanguageParts(one, vocabulary, settings.embedding, labels, label_size, *softmax) for one in layers]

    def shapes(self) -> Shapes | None:
        parts = self.described()
        known = self.settings.kind == "recurrent" and parts[0].layers.mode and self.settings.softmax != "adaptive"
        if not known:
            return None
        drawn = {"softmax.inclusion": (self.tokenizer.size,)} if self.settings.softmax == "sampled" else {}
        return {**{name: shape for part in parts for name, shape in part.shapes().items()}, **drawn}

    def why_not_compiled(self) -> str | None:
        if self.settings.kind != "recurrent":
            return f"the engine runs recurrent networks, and this is a {self.settings.kind}"
        return self.described()[0].refusal()

    def compile(self, weights: Arrays) -> list[Engine]:
        weights = self.settings.shortened(weights, "embedding.weight")
        return [Engine(part, weights) for part in self.described()]

    def engine(self, tower: int = 0) -> Engine:
        """The compiled engine with the weights as they are now; of a model that reads both ways, either of two."""
        return self.runtime()[tower]


def _forward(row: np.ndarray) -> np.ndarray:
    return row


def _backward(row: np.ndarray) -> np.ndarray:
    return row[::-1].copy()


def _body(settings: ModelSettings, input_size: int) -> Any:
    """What stands between embedding and softmax."""
    from elman.nn.window import FixedWindow

    if settings.kind == "window":
        return FixedWindow(input_size, settings.window, settings.hidden, dropout=settings.dropout)
    return settings.body(input_size, locked_dropout=settings.locked, batch_first=True)


def _softmax(settings: ModelSettings, width: int, tokenizer: Tokenizer, tied: Any) -> Any:
    import torch

    from elman.nn.softmax import AdaptiveSoftmax, ChunkedSoftmax, SampledSoftmax

    if settings.softmax == "adaptive":
        return AdaptiveSoftmax(width, tokenizer.size)
    counts = torch.from_numpy(tokenizer.counts)
    if settings.softmax == "full":
        softmax = ChunkedSoftmax(width, tokenizer.size, tied=tied)
    else:
        samples = min(settings.samples, tokenizer.size)
        softmax = SampledSoftmax(width, tokenizer.size, samples=samples, tied=tied, frequencies=counts)
    # The frequency of words is known before training: beginning there saves learning it.
    if softmax.bias is not None:
        softmax.bias.data.copy_(((counts + 1) / (counts + 1).sum()).log())
    return softmax


# The task


class Language(Task[Any, LanguageModel]):
    """p(text). The records are no list: text may be larger than memory, so its ids lie on disk."""

    name = "lm"
    about = "Train a language model over characters, bytes, words or sub-words."
    records, command, tried = "text", "generate", ""
    Recipe, Model, Options = LanguageRecipe, LanguageModel, NextOptions
    inherited = ("unit",)
    metrics = (
        Metric("loss", "loss (nats)", lower_is_better=True, digits=4),
        Metric("perplexity", lower_is_better=True),
        Metric("bits_per_token", "bits/token", lower_is_better=True, digits=3),
        Metric("bits_per_character", "bits/character", lower_is_better=True, digits=3),
    )
    headlines = metrics[1:2]

    # Text

    def open(self, recipe: LanguageRecipe, sources: Mapping[str, Source], vocabulary: Any, say: Say) -> Data[Any]:
        """Read and encode what the recipe names; encoded text is kept and found again.

        A run that goes on brings its tokenizer: it is used in place of a new one, since fitting again need not give
        the same.
        """
        if vocabulary is None and recipe.train.start is not None:
            vocabulary = Tokenizer.load(Path(recipe.train.start) / "tokenizer.json")
        files = {split: on_disk(source, recipe.data) for split, source in sources.items()}
        read = self._lines if recipe.data.unit == "line" else self._streams
        return read(recipe, files, vocabulary)

    def _streams(self, recipe: LanguageRecipe, files: dict[str, Sequence[Path]], tokenizer: Any) -> Data[Any]:
        encoding = recipe.data.encoding
        text = TextFiles(files["train"], encoding)
        share = 1.0 if "dev" in files else 1.0 - _held_share(recipe.data, text.survey().characters)
        train, tokenizer = stream_ids(text, tokenizer or recipe.text, stop=share)
        if "dev" in files:
            dev, _ = stream_ids(TextFiles(files["dev"], encoding), tokenizer)
        else:
            dev, _ = stream_ids(text, tokenizer, start=share)
        test = stream_ids(TextFiles(files["test"], encoding), tokenizer)[0] if "test" in files else None
        for name, ids in (("training", train), ("held-out", dev)):
            if len(ids) < 2:
                raise UserError(f"the {name} text has fewer than two tokens: give more text")
        return Data(train, dev, test, {"tokenizer": tokenizer, "labels": []})  # type: ignore[arg-type]

    def _lines(self, recipe: LanguageRecipe, files: dict[str, Sequence[Path]], tokenizer: Any) -> Data[Any]:
        records = {split: _records(recipe.data, paths) for split, paths in files.items()}
        for split in {"train", "dev"} & set(records):
            if records[split].facts().count < 2:
                raise UserError(f"{files[split][0]} has fewer than two lines of text: give more")
        kept = held = None
        if "dev" not in records:  # lines are often sorted, so the end of them will not do
            facts = records["train"].facts()
            count = max(1, int(facts.count * _held_share(recipe.data, facts.characters)))
            kept, held = (Part(count, recipe.train.seed, inside) for inside in (False, True))
            records["dev"] = records["train"]
        train, tokenizer, labels = line_stream_ids(records["train"], tokenizer or recipe.text, part=kept)
        dev = line_stream_ids(records["dev"], tokenizer, labels, part=held)[0]
        test = line_stream_ids(records["test"], tokenizer, labels)[0] if "test" in records else None
        return Data(train, dev, test, {"tokenizer": tokenizer, "labels": labels or []})  # type: ignore[arg-type]

    def read_set(self, model: LanguageModel, recipe: LanguageRecipe, source: Source, name: str, say: Say) -> IdStream:
        if recipe.data.unit == "line":
            records = _records(recipe.data, on_disk(source, recipe.data))
            return line_stream_ids(records, model.tokenizer, model.labels or None)[0]
        return stream_ids(TextFiles(on_disk(source, recipe.data), recipe.data.encoding), model.tokenizer)[0]

    # The network

    def fit_vocabulary(self, recipe: LanguageRecipe, data: Data[Any]) -> Tokenizer:
        return data.facts["tokenizer"]  # type: ignore[no-any-return]

    def vocabulary_counts(self, vocabulary: Tokenizer) -> Iterator[tuple[np.ndarray, str]]:
        yield vocabulary.counts, "training tokens"

    def embedded(self, vocabulary: Tokenizer) -> dict[str, Embedded]:
        return {"vectors": Embedded("embedding", vocabulary.tokens, vocabulary.counts)}

    def examples(self, recipe: LanguageRecipe, data: Data[Any], vocabulary: Tokenizer) -> Any:
        return data.train

    def amount(self, recipe: LanguageRecipe, data: Data[Any], examples: Any) -> float | None:
        """How much an epoch has of what stands side by side in a batch: lines, or windows of a stream."""
        if recipe.model.kind == "ngram":
            return None
        if recipe.data.unit == "line":
            return len(examples.documents)
        if recipe.batch.bptt == "full":  # whatever the batch, one update is an epoch
            return recipe.batch.amount
        return len(examples) / recipe.batch.steps

    def smaller_batches_help(self, recipe: LanguageRecipe) -> bool:
        return recipe.batch.bptt != "full"

    def make(self, recipe: LanguageRecipe, data: Data[Any], vocabulary: Tokenizer, examples: Any) -> LanguageModel:
        config = LanguageConfig.new(
            "lm",
            recipe,
            model=recipe.model,
            reading=_reading(recipe, vocabulary, examples),
            labels=data.facts["labels"],
        )
        if recipe.model.kind == "ngram":
            ids, reading = examples.read(0, len(examples)), config.reading
            documents = reading.documents(examples)
            counts = KneserNey.fit(ids, vocabulary.size, recipe.model.order, documents, reading.start_id)
            return LanguageModel(config, vocabulary, dict(counts.state_dict()))
        return LanguageModel(config, vocabulary, built(lambda: LanguageModel.build(config, vocabulary), recipe.model))

    def batches(self, run: Training[Any, LanguageModel]) -> "TowerBatches":
        """One run of batches for each direction that the model reads in."""
        run.model._prompt_ids(run.recipe.sample.prompt)  # one that cannot be read is told before training
        from elman.nn.towers import BACKWARD

        towers = [self._tower(run, backward) for backward in BACKWARD[run.recipe.model.direction]]
        return TowerBatches(towers, run.examples.fingerprint())

    def _tower(self, run: Training[Any, LanguageModel], backward: bool) -> StreamBatches | LineBatches:
        batch, ids, reading, seed = run.recipe.batch, run.examples, run.model.reading, run.recipe.train.seed
        if reading.unit == "line":
            size = min(batch.amount, len(ids.documents))
            return LineBatches(ids, size, start_id=reading.start_id, backward=backward, seed=seed)
        return StreamBatches(
            Reversed(ids) if backward else ids,
            min(batch.amount, len(ids)),
            batch.steps,
            start_id=reading.start_id,
            bptt=batch.bptt,
            reset_documents=batch.reset_documents,
            forget=batch.forget,
            seed=seed,
        )

    def loss(self, run: Training[Any, LanguageModel], batch: list[Any], state: Any) -> "Loss":
        """The mean loss of one window; of both directions, the sum of the two is what the gradient is of."""
        import torch

        from elman.nn.forcing import Forcing
        from elman.nn.language import detach
        from elman.tasks.scoring import fed_hidden_and_targets, hidden_and_targets
        from elman.train.task import Loss

        loss: ForcingSection = run.recipe.loss
        share = loss.teacher_forcing if run.current is None else loss.forcing(run.recipe.train, run.current)
        forcing = Forcing(share, loss.teacher_forcing_by, run.model.tokenizer.eos_id)
        states = state or [None] * len(batch)
        parts, tokens, after = [], 0, []
        for tower, (part, before) in enumerate(zip(batch, states, strict=True)):
            if share == 1:
                hidden, targets, carried = hidden_and_targets(run.network, part, before, tower)
            else:
                hidden, targets, carried = fed_hidden_and_targets(run.network, part, before, forcing, tower)
            parts.append(run.network.softmax.loss(hidden, targets))
            tokens += len(targets)
            after.append(detach(carried))
        weight = float(len(parts))
        if run.recipe.batch.bptt == "random" and isinstance(
            batch[0], StreamWindows
        ):  # a shorter window weighs less: every token of the text counts alike
            weight *= batch[0].targets.shape[1] / run.recipe.batch.steps
        return Loss(torch.stack(parts).mean(), tokens, after, weight)

    def watch(self, run: Training[Any, LanguageModel]) -> dict[str, float]:
        return run.model.scores(run.data.dev)

    def sample(self, run: Training[Any, LanguageModel]) -> str | None:
        settings, model = run.recipe.sample, run.model
        if not settings.length:
            return None
        sampling = Sampling(temperature=SAMPLED_AT, seed=run.recipe.train.seed)  # which has random numbers of its own
        label = model.labels[0] if model.labels else None
        (text,) = model.generate(settings.prompt, label=label, length=settings.length, sampling=sampling)
        prompt = str(settings.prompt)
        return text + prompt if model.settings.direction == "backward" else prompt + text

    def learn(
        self, run: Training[Any, LanguageModel], out: Path, resume: bool, reporter: "Reporter"
    ) -> dict[str, float]:
        if run.recipe.model.kind != "ngram":
            facts = super().learn(run, out, resume, reporter)
            facts.pop(self.records)
            return facts
        began = time.monotonic()
        run.model.write(out)
        seconds, tokens = time.monotonic() - began, len(run.examples)
        return {"seconds": seconds, "steps": 1, "epochs": 1.0, "tokens_per_second": tokens / max(seconds, 1e-9)}

    # Scores

    def baselines_need_data(self, recipe: LanguageRecipe) -> bool:
        return bool(recipe.baseline.order) and recipe.model.kind != "ngram"

    def read_again(self, model: LanguageModel, recipe: LanguageRecipe, sources: Mapping[str, Source]) -> Any:
        data = self.open(recipe, sources, None, lambda line: None)
        if data.facts["tokenizer"].fingerprint() != model.tokenizer.fingerprint():
            raise UserError("the training text has changed since the model was trained")
        return data.train

    def score(self, model: LanguageModel, records: Any, recipe: LanguageRecipe, train: Any) -> dict[str, Any]:
        return model.scores(records)

    def baselines(self, model: LanguageModel, train: Any, recipe: LanguageRecipe, say: Say) -> dict[str, Score]:
        """How frequent each token is, and n-grams counted on the training text."""

        def unigram(ids: Any) -> dict[str, Any]:
            counts = model.tokenizer.counts
            loss = unigram_loss(counts, _counts(ids, len(counts)))
            return Scores(loss, len(ids)).to_dict(ids.characters)

        rivals: dict[str, Score] = {"unigram": unigram}
        if len(train) and recipe.baseline.order and model.settings.kind != "ngram":
            part = train.view(0, min(len(train), recipe.baseline.tokens))
            documents, start = model.reading.documents(part), model.reading.start_id
            order, ids = recipe.baseline.order, part.read(0, len(part))
            ngrams = KneserNey.fit(ids, model.tokenizer.size, order, documents=documents, start_id=start)

            def counted(ids: Any) -> dict[str, Any]:
                found = ngrams.log_probs(ids.read(0, len(ids)), model.reading.documents(ids))
                return Scores.from_total(-float(found.sum()), len(found)).to_dict(ids.characters)

            rivals[f"Kneser-Ney {order}-gram"] = counted
        return rivals

    # Words

    def describe(self, run: Training[Any, LanguageModel]) -> str:
        data, settings = run.data, run.recipe.model
        what = settings.words() if settings.kind == "recurrent" else settings.kind
        return (
            f"{what}, {run.model.parameters:,} parameters; {len(data.train):,} tokens to train on, "
            f"{len(data.dev):,} held out; {run.model.tokenizer.size:,} {run.recipe.text.kind}"
        )

    def sentence(self, recipe: LanguageRecipe, report: "Report") -> str:
        model = recipe.model
        kinds = {"recurrent": f"{model.layers} x {model.cell} of {model.hidden}", "ngram": f"{model.order}-grams"}
        kind = kinds.get(model.kind, f"a window of {model.window}")
        return f"A language model over {recipe.text.kind} that reads {model.direction}: {kind}"

    def use(self, recipe: LanguageRecipe, report: "Report") -> tuple[Sequence[str], str]:
        label = next(iter(report.get("labels", ())), None)
        command = 'elman generate {model} --prompt ""' + (f" --label {shlex.quote(label)}" if label else "")
        example = f"model.generate(length=100{f', label={label!r}' if label else ''})"
        return (command, "elman evaluate {model} FILE"), example

    def facts(self, model: LanguageModel) -> dict[str, Any]:
        return {**super().facts(model), **({"labels": model.labels} if model.labels else {})}


class TowerBatches:
    """Batches for each direction, side by side."""

    def __init__(self, towers: list[StreamBatches | LineBatches], text: str) -> None:
        self.towers, self.text = towers, text

    @property
    def progress(self) -> float:
        """Epochs gone by."""
        return self.towers[0].progress

    def __len__(self) -> int:
        return len(self.towers[0])

    def __next__(self) -> list[Any]:
        return [next(tower) for tower in self.towers]

    def state_dict(self) -> dict[str, Any]:
        """The positions, and the text that they are positions in."""
        return {"text": self.text, "towers": [tower.state_dict() for tower in self.towers]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from saved positions."""
        if state["text"] != self.text:
            raise UserError("the training text has changed since the run began: bring it back, or use --force")
        for tower, saved in zip(self.towers, state["towers"], strict=True):
            tower.load_state_dict(saved)


def _counts(ids: IdStream, size: int, block: int = 1 << 20) -> np.ndarray:
    """How often each id stands in a text that may be larger than memory."""
    counts = np.zeros(size, dtype=np.int64)
    for start in range(0, len(ids), block):
        counts += np.bincount(ids.read(start, min(start + block, len(ids))), minlength=size)
    return counts


def _reading(recipe: LanguageRecipe, tokenizer: Tokenizer, text: IdStream) -> Reading:
    """How the model reads: before a text that has no end tokens in it stands a line end, if it has those."""
    start_id, unit = tokenizer.start_id, recipe.data.unit
    begins = unit == "line" or (len(text.documents) > 1 and recipe.batch.reset_documents)
    if tokenizer.settings.bos and not begins:
        raise UserError(
            "text.bos = true puts a token where a text begins, and this is one running text: say -s data.unit=line, "
            "give several files (with batch.reset_documents), or leave it out"
        )
    if not tokenizer.settings.bos and not tokenizer.counts[start_id] and not tokenizer.unknown("\n"):
        start_id = int(tokenizer.encode("\n")[-1])
    ends_text = not (unit == "stream" and recipe.text.kind == "words")
    return Reading(unit, start_id, ends_text, recipe.batch.reset_documents)


def _held_share(data: DataSettings, characters: int) -> float:
    """The share of a text to hold out where no held-out text is given."""
    return min(data.dev_fraction, data.dev_characters / characters)


def _records(data: DataSettings, paths: Sequence[Path]) -> RecordFiles:
    return RecordFiles(list(paths), column(data.text_column), column(data.label_column), data.encoding)
