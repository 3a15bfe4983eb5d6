"""Word vectors: words that stand in like company get like vectors (word2vec); neighbours and analogies.

model = elman.fit("embed", train="text.txt", out="runs/words")
model.nearest("king")
model.analogy(["king", "woman"], ["man"])
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from elman.batches.ids import stream_ids
from elman.batches.phrases import PhraseSettings, join_phrases
from elman.batches.stream import IdStream
from elman.errors import UserError
from elman.metrics.metric import Metric, first_of
from elman.metrics.words import analogy_scores, similarity_scores, spelling_scores
from elman.records.places import RecordError
from elman.records.records import Record, RecordReader
from elman.records.running_text import TextFiles
from elman.records.word_tests import Analogies, WordTest, read_word_test
from elman.runtime.quantise import dequantise
from elman.runtime.weights import Shapes
from elman.tasks.folder import Config
from elman.tasks.model import Model
from elman.tasks.predict import PredictOptions
from elman.tasks.reading import on_disk
from elman.tasks.sections import DataSection
from elman.tasks.task import Data, Say, Score, Source, Task, Training
from elman.text import Tokenizer, TokenizerSettings
from elman.text.ngrams import Ngrams
from elman.text.settings import Kind
from elman.text.tokenizer import normaliser
from elman.text.vector_files import read_vectors
from elman.text.vectors import Floats, Method, Neighbour, WordVectors
from elman.text.words import WordTokenizer
from elman.train.recipe import BatchSection, Section, TrainSettings, parse

if TYPE_CHECKING:
    from elman.nn.fast.embedder import Embedder, EmbedderSettings
    from elman.nn.vectors import VectorNetwork
    from elman.tasks.report import Report

Tests = list[WordTest]
SHORT = 2000  # words of a text of which nothing can be held out
SEED = 1  # of what is drawn to score a text


# The recipe


class DataSettings(DataSection):
    """Where the text comes from; dev and test are files of analogies, or of pairs of words with a number."""

    dev_fraction: float = Field(0.01, gt=0, lt=1, description="of the text, its end, to watch the loss; with dev none")
    dev_words: int = Field(100_000, ge=2, description="held out so, at most")


class TextSettings(TokenizerSettings):
    """What has a vector: words, or whatever a tokenizer makes; and pairs of words that are one."""

    kind: Kind = "words"
    min_count: int = Field(5, ge=1, strict=True)
    phrases: int = Field(0, ge=0, le=8, strict=True, description="passes that join pairs of words; 0 is none")
    phrase_threshold: float = Field(
        100.0, ge=0, strict=True, allow_inf_nan=False, description="the score from which two words are one"
    )
    phrase_discount: float = Field(
        5.0,
        ge=0,
        strict=True,
        allow_inf_nan=False,
        description="taken off a pair's count, so that rare ones do not win",
    )

    @model_validator(mode="after")
    def _phrases_are_of_words(self) -> "TextSettings":
        if self.phrases and self.kind != "words":
            raise ValueError("text.phrases joins words: it needs text.kind = words")
        return self


class ModelSettings(Section):
    """What is learned, and from what."""

    kind: Literal["skip-gram", "cbow"] = Field("skip-gram", description="words around one by one, or their mean")
    embedding: int = Field(100, ge=1, le=4096, description="dimensions of a vector")
    window: int = Field(5, ge=1, le=1000, description="words that are looked at on either side, at most")
    dynamic: bool = Field(True, description="how many is drawn anew at each place, so that near ones count more")
    objective: Literal["negative", "hierarchical", "softmax"] = Field(
        "negative", description="negative sampling, a hierarchical softmax, or a full one for tiny vocabularies"
    )
    negatives: int = Field(5, ge=1, le=1000, description="words drawn at each place by negative sampling")
    power: float = Field(0.75, ge=0, le=1, description="of a word's count, by which it is drawn")
    sample: float = Field(
        1e-3, ge=0, lt=1, description="words with a larger share are left out now and then; 0 is none"
    )
    ngram_min: int = Field(3, ge=1, le=100, description="characters of the n-grams that words are made of")
    ngram_max: int = Field(0, ge=0, le=100, description="0: a word is a vector of its own, and no n-grams")
    buckets: int = Field(0, ge=0, le=2**26, description="that n-grams share by their hash; 0: each has a vector")

    @model_validator(mode="after")
    def _ngrams_fit(self) -> "ModelSettings":
        if 0 < self.ngram_max < self.ngram_min:
            raise ValueError("model.ngram_max should be 0, or at least model.ngram_min")
        if self.buckets and not self.ngram_max:
            raise ValueError("model.buckets are for n-grams: give model.ngram_max")
        return self

    def words(self) -> str:
        """The model in a few words."""
        parts = f"{self.kind} {self.embedding}, window {self.window}, "
        parts += f"{self.negatives} negative" if self.objective == "negative" else f"{self.objective} softmax"
        return parts + (f", n-grams of {self.ngram_min} to {self.ngram_max}" if self.ngram_max else "")


class BatchSettings(BatchSection):
    """How much of the text is handed to the kernel at a time."""

    chosen: ClassVar[tuple[str, int, int]] = ("size", 100_000, 1000)

    size: int | None = Field(
        None, ge=2, le=2**28, description="words of an update; 100,000, or down to 1,000 for small data, if not given"
    )


class VectorTrainSettings(TrainSettings):
    """How to train: plain stochastic gradient descent at a rate that falls evenly, as word2vec's does."""

    optimizer: Literal["sgd"] = "sgd"
    lr: float = Field(0.025, gt=0)
    schedule: Literal["constant", "linear", "cosine", "exponential", "plateau"] = "linear"
    final_lr: float = Field(0.004, ge=0, description="fraction of lr at the end of linear, cosine, exponential")
    clip_norm: None = None
    clip_value: None = None
    average: Literal["none"] = "none"
    log_every: int = Field(10, ge=1)

    @model_validator(mode="after")
    def _is_plain(self) -> "VectorTrainSettings":
        for key in ("momentum", "weight_decay", "accumulate", "patience", "unfreeze", "layer_factor"):
            if getattr(self, key) != type(self).model_fields[key].default:
                raise ValueError(f"train.{key} means nothing to word vectors: leave it out")
        return self


class EmbedRecipe(Section):
    """Everything that a run of word vectors depends on."""

    task: Literal["embed"] = "embed"
    data: DataSettings = DataSettings()
    text: TextSettings = TextSettings()
    model: ModelSettings = ModelSettings()
    batch: BatchSettings = BatchSettings()
    train: VectorTrainSettings = VectorTrainSettings()

    @model_validator(mode="before")
    @classmethod
    def _rate_of_cbow(cls, value: Any) -> Any:
        """The gradient of a mean is smaller than those of its parts: CBOW wants a higher rate (İrsoy et al. 2021)."""
        if isinstance(value, Mapping) and isinstance(value.get("model"), Mapping | ModelSettings):
            kind, train = dict(value["model"]).get("kind"), value.get("train", {})
            if kind == "cbow" and isinstance(train, Mapping) and "lr" not in train:
                return {**value, "train": {**train, "lr": 0.075}}
        return value


class EmbedOptions(Section):
    """What may be asked of neighbours."""

    neighbours: int = Field(10, ge=1, le=100_000, description="Words that are named.")
    method: Method = Field("add", description="Of an analogy: add (3CosAdd), or mul (3CosMul).")
    odd_one_out: bool = Field(False, description="Of the words of a text, the one that does not belong.")


# The model


class VectorConfig(Config):
    """What config.json holds."""

    model: ModelSettings
    outputs: int = Field(ge=0)
    """Output vectors; 0 where the vectors come from a file, so that they cannot be trained further."""


class VectorModel(Model[VectorConfig, Tokenizer, "VectorNetwork", None]):
    """Words with vectors: their neighbours, analogies, the odd one out.

    >>> made = VectorModel.of(WordVectors(["cat", "dog", "car"], np.array([[1, 0], [1, 0.1], [0, 1]], np.float32)))
    >>> made.nearest("cat", 1)[0].word, round(made.similarity("cat", "car"), 3)
    ('dog', 0.0)
    """

    task = "embed"
    Config, Recipe = VectorConfig, EmbedRecipe
    _kept: WordVectors | None = None
    _spelled: Ngrams | None = None

    @classmethod
    def of(cls, vectors: WordVectors) -> "VectorModel":
        """A model of words and vectors that come from elsewhere."""
        settings, recipe = TokenizerSettings(kind="words"), EmbedRecipe()
        special = settings.special_tokens
        own = [word for word in vectors.words if word not in special]
        place = {word: row for row, word in enumerate([*special, *own])}
        matrix = np.zeros((len(place), vectors.size), np.float32)
        matrix[[place[word] for word in vectors.words]] = vectors.matrix
        tokenizer = WordTokenizer(settings, own, [0] * len(place))
        model = ModelSettings(embedding=vectors.size)
        recipe = recipe.model_copy(update={"model": model, "text": TextSettings(min_count=1)})
        config = VectorConfig.new("embed", recipe, model=model, outputs=0)
        return cls(config, tokenizer, {"vectors": matrix, "output": np.zeros((0, vectors.size), np.float32)})

    # Questions

    @property
    def vectors(self) -> WordVectors:
        """All words but the special tokens, the most frequent first, and their vectors."""
        if self._network is not None:  # which may be learning
            return self._words()
        if self._kept is None:
            self._kept = self._words()
        return self._kept

    def vector(self, word: str) -> Floats:
        """The vector of a word; with n-grams every word has one."""
        return self.vectors.vector(self.spelled(word))

    def similarity(self, one: str, other: str) -> float:
        """The cosine of two words."""
        return self.vectors.similarity(self.spelled(one), self.spelled(other))

    def nearest(self, word: str | Floats, count: int = 10) -> list[Neighbour]:
        """The words with the largest cosine to a word, or to a vector."""
        return self.vectors.nearest(self.spelled(word) if isinstance(word, str) else word, count)

    def analogy(
        self, positive: Sequence[str], negative: Sequence[str] = (), count: int = 10, method: Method = "add"
    ) -> list[Neighbour]:
        """What is near the positive words and far from the negative ones: king + woman - man."""
        plus, minus = ([self.spelled(word) for word in words] for words in (positive, negative))
        return self.vectors.analogy(plus, minus, count, method)

    def odd_one_out(self, words: Sequence[str]) -> str:
        """The word that is least like the others."""
        return words[self.vectors.odd_one_out_place([self.spelled(word) for word in words])]

    def predict(self, texts: Any, *, neighbours: int = 10, method: Method = "add") -> Any:
        """The neighbours of a text, or of each of several: a word, or words with signs, `king - man + woman`."""
        from elman.tasks.model import check_texts, listed

        given = listed(texts)
        check_texts(given)
        found = self.answers(given, EmbedOptions(neighbours=neighbours, method=method))
        return found[0] if isinstance(texts, str) else found

    def answers(self, records: Sequence[Record | str], options: EmbedOptions | None = None) -> list[Any]:
        options = options or EmbedOptions()
        texts = [record if isinstance(record, str) else record.text for record in records]
        if options.odd_one_out:
            return [self.odd_one_out(text.split()) for text in texts]
        return [self._asked(text, options) for text in texts]

    def _asked(self, text: str, options: EmbedOptions) -> list[Neighbour]:
        whole = self.spelled(text)
        if whole in self.vectors or len(text.split()) == 1:
            return self.vectors.nearest(whole, options.neighbours)
        return self.analogy(*signed_words(text), options.neighbours, options.method)

    def spelled(self, word: str) -> str:
        """A word as the vocabulary writes it: in small letters where it has only those, a phrase as one word."""
        if not isinstance(word, str):
            raise UserError(f"a word is a str, not a {type(word).__name__}")
        ready = normaliser(self.vocabulary.settings)(word)
        joined = "_".join(ready.split())
        return joined if joined != ready and joined in self.vectors else ready

    # Lines of `elman predict`

    def predict_lines(
        self, lines: Iterable[str], options: PredictOptions, answers: Callable[[list[Any]], Sequence[Any]] | None = None
    ) -> Iterator[str]:
        asked = parse(EmbedOptions, options.asked, where="the options")

        def each(records: list[Record]) -> list[Any]:
            return [self._answer(record, asked, options) for record in records]

        return super().predict_lines(lines, options, answers or each)

    def _answer(self, record: Record, asked: EmbedOptions, options: PredictOptions) -> Any:
        """The answer for a line; None for one with unknown words that is passed over."""
        try:
            return self.answers([record], asked)[0]
        except UserError as error:
            if record.where is None:
                raise
            options.bad(RecordError(record.where, f"cannot be answered: {error}"))
            return None

    def length(self, record: Record) -> int:
        return 1

    def written(self, record: Record, answer: Any, options: PredictOptions) -> Iterator[str]:
        if answer is None:
            return
        if isinstance(answer, str):
            found: dict[str, Any] = {"text": record.text, "odd_one_out": answer}
            yield options.to_json(record.where, record.fields, found) if options.as_json else answer
        elif options.as_json:
            near = [{"word": one.word, "score": round(one.score, 6)} for one in answer]
            yield options.to_json(record.where, record.fields, {"text": record.text, "nearest": near})
        else:
            yield "  ".join(f"{one.word} {one.score:.3f}" for one in answer)

    # The folder

    @classmethod
    def load_vocabulary(cls, folder: Path, config: Any) -> Tokenizer:
        return Tokenizer.load(folder / "tokenizer.json")

    @classmethod
    def build(cls, config: VectorConfig, vocabulary: Tokenizer) -> "VectorNetwork":
        from elman.nn.vectors import VectorNetwork

        rows = vocabulary.size + (made.count if (made := _ngrams(config.model, vocabulary)) is not None else 0)
        return VectorNetwork(rows, config.outputs, config.model.embedding)

    def shapes(self) -> Shapes:
        size, ngrams = self.config.model.embedding, self.ngrams
        rows = self.vocabulary.size + (0 if ngrams is None else ngrams.count)
        return {"vectors": (rows, size), "output": (self.config.outputs, size)}

    def about(self) -> str:
        return f"{self.vocabulary.size - self.first:,} vectors, {self.config.model.words()}"

    @property
    def first(self) -> int:
        """The first id that is no special token."""
        return len(self.vocabulary.settings.special_tokens)

    @property
    def ngrams(self) -> Ngrams | None:
        """The n-grams that words are made of, where they are."""
        if self._spelled is None:
            self._spelled = _ngrams(self.config.model, self.vocabulary)
        return self._spelled

    def _words(self) -> WordVectors:
        rows = dequantise({"vectors": self.weights()["vectors"]} | self._scales())["vectors"]
        tokens, ngrams = self.vocabulary.tokens, self.ngrams
        if ngrams is None:
            return WordVectors(tokens[self.first :], rows[self.first : len(tokens)])
        matrix = np.stack([_sum(rows, [row, *(len(tokens) + ngrams.rows(token))])
                           for row, token in enumerate(tokens) if row >= self.first])  # fmt: skip

        def unseen(word: str) -> Floats | None:
            places = len(tokens) + ngrams.rows(word)
            return _sum(rows, places) if len(places) else None

        return WordVectors(tokens[self.first :], matrix, unseen)

    def _scales(self) -> dict[str, Any]:
        return {name: array for name, array in self.weights().items() if name.startswith("vectors.")}


def _sum(rows: Floats, places: Any) -> Floats:
    return (rows[np.asarray(places)].sum(axis=0) / np.sqrt(len(places))).astype(np.float32)  # type: ignore[no-any-return]


def _ngrams(settings: ModelSettings, vocabulary: Tokenizer) -> Ngrams | None:
    if not settings.ngram_max:
        return None
    words = vocabulary.tokens[len(vocabulary.settings.special_tokens) :]
    return Ngrams(words, settings.ngram_min, settings.ngram_max, settings.buckets)


def signed_words(text: str) -> tuple[list[str], list[str]]:
    """The words of `king - man + woman` to be added, and those to be taken away.

    >>> signed_words("king - man + woman")
    (['king', 'woman'], ['man'])
    >>> signed_words("king -")
    Traceback (most recent call last):
    elman.errors.UserError: no word follows the last sign of 'king -': write king - man + woman
    """
    plus: list[str] = []
    minus: list[str] = []
    side = plus
    for word in text.split():
        if word in ("+", "-", "−"):
            side = plus if word == "+" else minus
        else:
            side.append(word)
            side = plus
    if text.split()[-1:] in (["+"], ["-"], ["−"]):
        raise UserError(f"no word follows the last sign of {text!r}: write king - man + woman")
    return plus, minus


def load_vectors(path: Path | str) -> VectorModel:
    """The word vectors of a model's folder, or of a file: word2vec as text or binary, or GloVe."""
    path = Path(path)
    return VectorModel.load(path) if path.is_dir() else VectorModel.of(read_vectors(path))


# The task


@dataclass(frozen=True, repr=False)
class WordBlock:
    """Some ids of a text, and the seed of all that is random about them; shown as where they stand."""

    ids: np.ndarray
    seed: int
    place: str

    def __repr__(self) -> str:
        return self.place


class WordBlocks:
    """A text from its beginning to its end, again and again, some ids at a time."""

    def __init__(self, ids: IdStream, size: int, seed: int) -> None:
        self.ids, self.size, self.seed = ids, min(size, len(ids)), seed
        self.epoch = self.position = 0

    @property
    def progress(self) -> float:
        """Epochs gone by."""
        return self.epoch + self.position / len(self.ids)

    def __next__(self) -> WordBlock:
        stop = min(self.position + self.size, len(self.ids))
        seed = int(np.random.SeedSequence([self.seed, self.epoch, self.position]).generate_state(1, np.uint64)[0])
        block = WordBlock(self.ids.read(self.position, stop), seed, f"words {self.position} to {stop}")
        self.position = stop
        if stop == len(self.ids):
            self.epoch, self.position = self.epoch + 1, 0
        return block

    def state_dict(self) -> dict[str, Any]:
        """The position, and the text that it is one in."""
        return {"text": self.ids.fingerprint(), "epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved position."""
        if state["text"] != self.ids.fingerprint():
            raise UserError("the training text has changed since the run began: bring it back, or use --force")
        self.epoch, self.position = state["epoch"], state["position"]


Run = Training[Any, VectorModel]


class Embed(Task[Any, VectorModel]):
    """Words by the company that they keep. The text lies on disk as ids; a compiled kernel learns from it."""

    name = "embed"
    about = "Train word vectors: CBOW or skip-gram, of words, phrases or n-grams inside words."
    records, unit, counted, tried = "words", "words", "questions", "WORD"
    learns_alone = keeps_last = True
    Recipe, Model, Options = EmbedRecipe, VectorModel, EmbedOptions
    metrics = (
        Metric("analogies", percent=True),
        Metric("spearman", "Spearman", digits=3),
        Metric("coverage", percent=True),
        Metric("text_loss", "loss (nats)", lower_is_better=True, digits=4),
    )
    headlines = (metrics[0], metrics[1], metrics[3])
    example = 'model.nearest("word")'

    # Text

    def reader(self, data: DataSettings) -> RecordReader:
        return RecordReader(encoding=data.encoding)

    def open(self, recipe: EmbedRecipe, sources: Mapping[str, Source], vocabulary: Any, say: Say) -> Data[Any]:
        """Encode the text, which is kept and found again, and read the tests. Those of a corpus are texts: left out."""
        tokenizer: TokenizerSettings | Tokenizer = recipe.text.tokenizer
        if recipe.train.start is not None:
            if recipe.text.phrases:
                raise UserError("a run that starts from a trained model cannot learn phrases: say -s text.phrases=0")
            try:
                tokenizer = VectorModel.load(recipe.train.start).vocabulary
            except UserError as error:
                raise UserError(f"train.start: {error}") from None
        files = on_disk(sources["train"], recipe.data)
        ids, known = stream_ids(TextFiles(files, recipe.data.encoding), tokenizer)
        if recipe.text.phrases and isinstance(known, WordTokenizer):
            text = recipe.text
            ids, known = join_phrases(
                ids, known, PhraseSettings(text.phrases, text.phrase_threshold, text.phrase_discount)
            )
        if known.size < len(known.settings.special_tokens) + 2:
            raise UserError("the text has fewer than two known words: give more text, or a lower text.min_count")
        own = {"dev": recipe.data.dev, "test": recipe.data.test}
        given = {split for split in own if split in sources and (own[split] or sources[split].objects is not None)}
        tests = {split: self._tests(sources[split], recipe) if split in given else None for split in own}
        train, dev = (ids, tests["dev"]) if tests["dev"] else self._held_out(ids, recipe, say)
        return Data(train, dev, tests["test"] or [], {"tokenizer": known})  # type: ignore[arg-type]

    def _held_out(self, ids: IdStream, recipe: EmbedRecipe, say: Say) -> tuple[IdStream, IdStream]:
        if len(ids) < SHORT:
            say("the text is too short to hold some of it out: the loss that is shown is that of the training text")
            return ids, ids
        cut = len(ids) - min(max(int(len(ids) * recipe.data.dev_fraction), SHORT // 10), recipe.data.dev_words)
        return ids.view(0, cut), ids.view(cut, len(ids))

    def _tests(self, source: Source, recipe: EmbedRecipe) -> Tests:
        if source.objects is not None:
            raise UserError(
                f"{source.name} should be files of analogies, or of pairs of words with a number: name them"
            )
        encoding = recipe.data.encoding
        return [read_word_test(path, encoding) for path in TextFiles(list(source.paths), encoding).paths]

    def read_set(self, model: VectorModel, recipe: EmbedRecipe, source: Source, name: str, say: Say) -> Tests:
        return self._tests(source, recipe)

    def fit_vocabulary(self, recipe: EmbedRecipe, data: Data[Any]) -> Tokenizer:
        return data.facts["tokenizer"]  # type: ignore[no-any-return]

    def vocabulary_counts(self, vocabulary: Tokenizer) -> Iterator[tuple[np.ndarray, str]]:
        yield vocabulary.counts, "words of the text"

    def examples(self, recipe: EmbedRecipe, data: Data[Any], vocabulary: Tokenizer) -> IdStream:
        return data.train  # type: ignore[return-value]

    # Training

    def config_parts(self, recipe: EmbedRecipe, data: Data[Any], examples: Any) -> dict[str, Any]:
        tokenizer = data.facts["tokenizer"]
        inner = tokenizer.size - len(tokenizer.settings.special_tokens) - 1
        return {"outputs": inner if recipe.model.objective == "hierarchical" else tokenizer.size}

    def check_start(self, start: VectorModel, data: Data[Any]) -> None:
        if not start.config.outputs:
            raise UserError("the vectors to start from come from a file, without what they were trained against")

    def batches(self, run: Run) -> WordBlocks:
        return WordBlocks(run.examples, run.recipe.batch.amount, run.recipe.train.seed)

    def update(self, run: Run, batch: WordBlock, rate: float) -> Any:
        """A pass of the kernel over a block, on all threads, without locks."""
        import torch

        from elman import kernels
        from elman.train.task import Loss

        embedder = run.once("embedder", lambda: embedder_of(run.model))
        seen = embedder.learn(batch.ids, rate, batch.seed, kernels.threads())
        return Loss(torch.tensor(seen.loss / max(seen.pairs, 1)), len(batch.ids))

    def watch(self, run: Run) -> dict[str, float]:
        """The loss of the text that is held out, or the scores of the tests; the last model is kept in any case."""
        found = self.score(run.model, run.data.dev, run.recipe, ())
        shown = {metric.key: value for metric in self.metrics if (value := metric.of(found)) is not None}
        shown.pop("text_loss", None)
        return {"loss": found["loss"], **shown, "error": -run.current.progress}

    # Scores

    def baselines_need_data(self, recipe: EmbedRecipe) -> bool:
        return False

    def score(self, model: VectorModel, records: Any, recipe: EmbedRecipe, train: Any) -> dict[str, Any]:
        """Analogies and correlations of tests; of a text its loss."""
        if isinstance(records, IdStream):
            ids = records.read(0, min(len(records), recipe.data.dev_words))
            seen = embedder_of(model).learn(ids, 0.0, SEED, 1)
            loss = seen.loss / max(seen.pairs, 1)
            return {"loss": loss, "text_loss": loss}
        vectors = model.vectors
        return self._scores(records, partial(analogy_scores, vectors), partial(similarity_scores, vectors))

    def _scores(self, tests: Sequence[WordTest], analogies: Any, similarities: Any) -> dict[str, Any]:
        """The scores of several tests together: the share of all analogies, the mean of the correlations."""
        each = {test.name: (analogies if isinstance(test, Analogies) else similarities)(test) for test in tests}
        total = sum(found["questions"] for found in each.values())
        scores: dict[str, Any] = {
            "questions": total,
            "coverage": sum(found["coverage"] * found["questions"] for found in each.values()) / max(total, 1),
        }
        asked = [found for found in each.values() if "analogies" in found]
        if weight := sum(found["coverage"] * found["questions"] for found in asked):
            right = sum(found["analogies"] * found["coverage"] * found["questions"] for found in asked)
            scores["analogies"] = right / weight
        if correlations := [found["spearman"] for found in each.values() if "spearman" in found]:
            scores["spearman"] = sum(correlations) / len(correlations)
        headline = first_of(self.headlines, scores)
        return {"loss": 1.0 - (headline.of(scores) or 0.0), **scores, "tests": each}

    def baselines(self, model: VectorModel, train: Any, recipe: EmbedRecipe, say: Say) -> dict[str, Score]:
        """Analogies without the relation, likeness by spelling, and the loss of vectors that are all zeros."""

        def third_word(records: Any) -> dict[str, Any]:
            if isinstance(records, IdStream) or not any(isinstance(test, Analogies) for test in records):
                return {}
            alone = [test for test in records if isinstance(test, Analogies)]
            return self._scores(alone, partial(analogy_scores, model.vectors, offset=False), None)

        def spelling(records: Any) -> dict[str, Any]:
            alone = [] if isinstance(records, IdStream) else [one for one in records if not isinstance(one, Analogies)]
            return self._scores(alone, None, partial(spelling_scores, model.vectors)) if alone else {}

        def nothing(records: Any) -> dict[str, Any]:
            return {"text_loss": _untrained(model)} if isinstance(records, IdStream) else {}

        rivals = {"nearest to the third word": third_word, "spelling": spelling, "vectors of zeros": nothing}
        return dict(rivals)

    # Words

    def describe(self, run: Run) -> str:
        known, counts = run.model.vocabulary, run.model.vocabulary.counts
        share = counts[run.model.first :].sum() / max(counts.sum() - counts[known.eos_id], 1)
        return f"{run.model.about()}; {len(run.data.train):,} words to train on, {share:.0%} known"

    def sentence(self, recipe: EmbedRecipe, report: "Report") -> str:
        return f"Word vectors: {report['about']}"

    def details(self, scores: Mapping[str, Any]) -> str:
        """Each test, and each section of analogies."""
        lines: list[str] = []
        for name, found in scores.get("tests", {}).items():
            what = "no score"
            if "analogies" in found:
                what = f"{found['analogies']:.1%}"
            elif "spearman" in found:
                what = f"Spearman {found['spearman']:.3f}"
            known = round(found["coverage"] * found["questions"])
            lines.append(f"{name}: {what}; {known:,} of {found['questions']:,} have vectors for all their words")
            lines += [f"  {section:<28} {each['analogies']:6.1%} of {each['questions']:,}"
                      for section, each in found.get("sections", {}).items()]  # fmt: skip
        return "\n".join(lines)

    def use(self, recipe: EmbedRecipe, report: "Report") -> tuple[Sequence[str], str]:
        word = report.get("word", "word")
        commands = (f"elman predict {{model}} {word}", "elman export {model} --format word2vec --out vectors.txt")
        return commands, f"model.nearest({word!r})"

    def facts(self, model: VectorModel) -> dict[str, Any]:
        long = (word for word in model.vectors.words[:1000] if word.isalpha() and len(word) > 4)
        return {**super().facts(model), "word": next(long, model.vectors.words[0])}


def embedder_of(model: VectorModel) -> "Embedder":
    """What trains a model's network."""
    from elman.nn.fast.embedder import Embedder

    tokens, ngrams = model.vocabulary.tokens, model.ngrams
    bags = None if ngrams is None else ngrams.bags(tokens, model.first, len(tokens))
    options: dict[str, Any] = {"first": model.first, "end": model.vocabulary.eos_id, "bags": bags}
    return Embedder(model.network, model.vocabulary.counts, _learning(model.config.model), **options)


def _learning(settings: ModelSettings) -> "EmbedderSettings":
    from elman.nn.fast.embedder import EmbedderSettings

    same = ("objective", "negatives", "power", "window", "dynamic", "sample")
    return EmbedderSettings(cbow=settings.kind == "cbow", **{name: getattr(settings, name) for name in same})


def _untrained(model: VectorModel) -> float:
    """The mean loss of an example where all scores are zero."""
    settings, counts = model.config.model, model.vocabulary.counts[model.first :]
    if settings.objective == "softmax":
        return log(len(counts))
    if settings.objective == "negative":
        return (1 + settings.negatives) * log(2)
    from elman.nn.vectors import huffman_tree

    return float(np.average(np.diff(huffman_tree(counts).places), weights=np.maximum(counts, 1))) * log(2)
