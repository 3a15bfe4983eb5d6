"""Classifiers: p(class | text), one class for a text or any number of them.

model = elman.fit("classify", train="reviews.csv", out="runs/reviews")
model.predict("A fine film.").label
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from pydantic import Field, field_validator, model_validator

from elman.baselines.lexicon import CharacterNgrams, MostFrequentClass, MultilabelCharacterNgrams
from elman.batches.examples import by_length
from elman.errors import UserError, nearest
from elman.metrics import classification
from elman.metrics.metric import Metric
from elman.ragged import Ragged
from elman.records.classes import check_classes, check_known, overlap, seen, stratified_folds, stratified_split
from elman.records.labelled import Classes, Format, LabelledReader, LabelledText
from elman.records.places import Place, source_of
from elman.runtime import CompiledCharacters, Layers
from elman.runtime import Encoder as CompiledLayers
from elman.runtime.encoder import ngram_scores, pooled_size
from elman.runtime.quantise import Arrays, dequantised
from elman.runtime.weights import Shapes
from elman.tasks.ensemble import EnsembleConfig, EnsembleModel, EnsembleOptions, MembersSection
from elman.tasks.predict import PredictOptions
from elman.tasks.sections import (
    Cell,
    EmbeddingSection,
    Name,
    OutputSection,
    SizeSection,
    TransferSettings,
    TwoWaySection,
    UnlabelledSection,
    column,
)
from elman.tasks.task import Data, Say, Score, Source, Task, Training, draw_labelled
from elman.tasks.transfer import StartSection, extended, put_under, same_rows
from elman.tasks.vectors import Embedded, VectorsSection, fit_with_vectors, words_beside
from elman.text import Tokenizer, TokenizerSettings
from elman.text.encoder import TokenEncoder, WordEncoder
from elman.text.settings import Kind
from elman.train.recipe import Section

if TYPE_CHECKING:
    from torch import Tensor

    from elman.nn.classifier import ClassifierNetwork
    from elman.tasks.report import Report
    from elman.train.task import Loss

WATCHED = 2000  # training texts that are scored now and then where nothing is held out
THRESHOLD = 0.5  # a label of several is given to a text from this probability on
BATCH, TOKENS = 256, 1 << 15  # texts and tokens computed on at a time, at most
MISTAKES, SHOWN = 10, 60  # mistakes that a report shows, and how many characters of each
ALONE = {"characters": 0, "output": "state"}  # over a language model, whose layers know its tokens' vectors only

Encoder = TokenEncoder | WordEncoder


# The recipe


class DataSettings(UnlabelledSection):
    """Where the texts come from: a corpus of the catalogue, or the user's own files."""

    format: Format | None = Field(None, description="guessed from names and first lines where it is not given")
    text_column: Name | None = Field(None, description="name or number; guessed if not given")
    label_column: Name | None = Field(None, description="name or number; guessed if not given")
    separator: str | None = Field(None, min_length=1, description="cuts a label into several")
    several: bool | None = Field(None, description="several labels a text; seen from the texts if not given")
    classes: Classes = "fine"
    phrases: bool = Field(False, description="of sentiment trees: the phrases in training sentences are texts too")
    dev_fraction: float = Field(0.1, ge=0, lt=1, description="of train, held out where dev is not given")
    test_fraction: float = Field(0.0, ge=0, lt=1, description="of train, held out where test is not given")
    folds: int = Field(0, ge=0, description="parts of a cross-validation; 0 is none")
    fold: int | None = Field(None, ge=1, description="the part to test on, where only one is to be run")
    encoding: str | None = Field(None, description="the corpus' own, or utf-8")  # type: ignore[assignment]

    @model_validator(mode="after")
    def _parts_fit(self) -> "DataSettings":
        if self.folds and self.unlabelled:
            raise ValueError("data.unlabelled does not go with data.folds: leave one out")
        if self.folds == 1:
            raise ValueError("data.folds should be 0, or 2 and more")
        if self.folds and (self.test or self.test_fraction):
            raise ValueError("data.folds makes test sets of the training texts: leave data.test out")
        if self.fold is not None and self.fold > self.folds:
            raise ValueError("data.fold should be at most data.folds")
        if self.dev_fraction + self.test_fraction >= 1:
            raise ValueError("data.dev_fraction and data.test_fraction leave nothing to train on")
        if self.several is False and self.separator is not None:
            raise ValueError("data.separator makes several labels of one: leave it out, or data.several")
        return self


class TextSettings(TokenizerSettings):
    """What a token is. Sub-words unless told otherwise, since they can read any text."""

    kind: Kind = "bpe"
    lowercase: bool = True
    vector_words: int = Field(50_000, ge=0, description="words of model.vectors that are known beside those of train")


class ModelSettings(VectorsSection, StartSection, EmbeddingSection, TwoWaySection, OutputSection):
    """The network."""

    cell: Cell = "gru"
    bidirectional: bool = True
    pooling: Literal["last", "mean", "max", "attention", "last-max-mean"] = Field(
        "max", description="how steps become one vector"
    )
    embedding_scale: float = Field(
        0.1, gt=0, description="of the random vectors that tokens begin with; small for words"
    )
    characters: int = Field(0, ge=0, description="hidden size of a character-level network beside the words; 0 is none")
    character_embedding: int = Field(32, ge=1)
    edges: bool = Field(True, description="an end token stands before and behind each text")
    longest: int = Field(2000, ge=1, description="tokens of a text that are read; what comes after is left out")
    token_dropout: float = Field(0.0, ge=0, lt=1, description="share of tokens that are made unknown")
    input_dropout: float = Field(0.3, ge=0, lt=1, description="of embedded tokens")
    output_dropout: float = Field(0.5, ge=0, lt=1, description="of the text's vector")
    locked: bool = Field(False, description="input_dropout and dropout have the same mask for all steps of a text")
    ngrams: int = Field(
        0, ge=0, le=8, description="longest n-grams of tokens that are scored beside the network; 0 is none"
    )
    ngram_buckets: int = Field(65_536, ge=1, le=2**24, description="rows that n-grams share, by their hash")
    ngram_dropout: float = Field(0.5, ge=0, lt=1, description="share of n-grams that are left out")

    @model_validator(mode="after")
    def _merges_two(self) -> "ModelSettings":
        if self.merge != "concat" and not self.bidirectional:
            raise ValueError("model.merge joins two directions: it needs model.bidirectional = true")
        return self

    @classmethod
    def following(cls, key: str, language: Any) -> dict[str, Any]:
        return {**super().following(key, language), **ALONE}

    @classmethod
    def made(cls, table: Mapping[str, Any]) -> dict[str, Any]:
        return {**super().made(table), **ALONE}


class LossSettings(Section):
    """What the network is trained to do."""

    smoothing: float = Field(0.0, ge=0, lt=1, description="share of the probability that is spread over all classes")
    class_weights: tuple[str, ...] = Field(
        (), description='"balanced" by how rare a class is, or `["spam=2.5"]`; what is not named weighs 1'
    )

    @field_validator("class_weights", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("class_weights")
    @classmethod
    def _each_a_weight(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if value != ("balanced",):
            for entry in value:
                try:
                    positive = float(entry.rpartition("=")[2]) > 0 and "=" in entry
                except ValueError:
                    positive = False
                if not positive:
                    raise ValueError(f'loss.class_weights: {entry!r} should be "balanced", or LABEL=WEIGHT')
        return value


class BaselineSettings(Section):
    """The character n-gram regression that every report shows beside the network."""

    ngrams: bool = True
    texts: int = Field(50_000, ge=1, description="of the training texts, at most")


class ClassifyRecipe(Section):
    """Everything a classifier's run depends on."""

    task: Literal["classify"] = "classify"
    data: DataSettings = DataSettings()
    text: TextSettings = TextSettings()
    model: ModelSettings = ModelSettings()
    loss: LossSettings = LossSettings()
    batch: SizeSection = SizeSection()
    train: MembersSection = MembersSection()
    baseline: BaselineSettings = BaselineSettings()
    transfer: TransferSettings = TransferSettings()

    @model_validator(mode="after")
    def _characters_need_words(self) -> "ClassifyRecipe":
        if self.model.characters and self.text.kind != "words":
            raise ValueError('model.characters spells words: it needs text.kind = "words"')
        if self.model.characters and self.model.ngrams:
            raise ValueError("model.ngrams does not go with model.characters: leave one out")
        return self

    @model_validator(mode="after")
    def _begins_with_one(self) -> "ClassifyRecipe":
        if self.data.unlabelled and self.model.vectors:
            raise ValueError("data.unlabelled makes a language model, which has vectors: leave model.vectors out")
        return self


# The model


class ClassifierConfig(EnsembleConfig):
    """What a classifier's config.json holds."""

    model: ModelSettings
    text: TextSettings
    labels: tuple[str, ...] = Field(min_length=1)
    several: bool
    edge: int | None = Field(None, ge=0)
    """The id that stands before and behind each text; none is the end token."""


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


class TextClassifier(EnsembleModel[ClassifierConfig, Encoder, "ClassifierNetwork", "CompiledClassifier"]):
    """p(class | text): one class a text, or any number of them."""

    task = "classify"
    Config, Recipe = ClassifierConfig, ClassifyRecipe

    @property
    def labels(self) -> list[str]:
        """The classes."""
        return list(self.config.labels)

    @property
    def several(self) -> bool:
        """Whether a text may have any number of them."""
        return self.config.several

    @overload
    def predict(self, texts: str) -> Prediction: ...  # type: ignore[overload-overlap]

    @overload
    def predict(self, texts: Iterable[str]) -> list[Prediction]: ...

    def predict(self, texts: str | Iterable[str]) -> Prediction | list[Prediction]:
        """The label and all probabilities of a text, or of each of several."""
        return self.predict_each(texts)  # type: ignore[no-any-return]

    def answers(self, records: Sequence[LabelledText | str]) -> list[Prediction]:
        texts = [record if isinstance(record, str) else record.text for record in records]
        return [self._prediction(row) for row in self.probabilities(texts).tolist()]

    def length(self, record: LabelledText) -> int:
        return len(record.text)

    def _prediction(self, row: list[float]) -> Prediction:
        probabilities = dict(zip(self.config.labels, row, strict=True))
        if self.several:
            return Prediction(tuple(name for name, p in probabilities.items() if p >= THRESHOLD), probabilities)
        return Prediction((max(probabilities, key=probabilities.__getitem__),), probabilities)

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """The probability of every class for each text (N x C); of several labels each has its own."""
        texts = [texts] if isinstance(texts, str) else list(texts)
        if not texts:
            return np.zeros((0, len(self.config.labels)), np.float32)

        def scores(one: TextClassifier) -> np.ndarray:
            encoded, runtime = one.vocabulary.encode(texts), one._runtime()
            return one.scores(encoded) if runtime is None else runtime.scores(encoded)

        return chances(self.averaged(scores), self.several)

    def check_beside(self, other: "TextClassifier") -> None:
        if (other.labels, other.several) != (self.labels, self.several):
            raise UserError("models of an ensemble need the same classes: train them on the same data")

    def scores(self, encoded: Ragged) -> np.ndarray:
        """What its network says to texts that were encoded already (N x C).

        For reports by PyTorch, whose last digit does not depend on how many threads there are; but in int8 where the
        model is so.
        """
        runtime = None if self.int8 is None else self._runtime()
        if runtime is not None:
            return runtime.scores(encoded)
        import torch

        from elman.nn.inputs import Inputs

        found = np.zeros((len(encoded), len(self.config.labels)), np.float32)
        with torch.inference_mode(), self.evaluating() as network:
            for rows in by_length(encoded.lengths, BATCH, tokens=TOKENS):
                found[rows] = network(Inputs.of(*self.vocabulary.spelled(encoded.take(rows)))).numpy()
        return found

    # The folder and the network

    @classmethod
    def load_vocabulary(cls, folder: Path, config: Any) -> Encoder:
        path, options = folder / "tokenizer.json", {"edges": config.model.edges, "longest": config.model.longest}
        if config.model.characters:
            return WordEncoder.load(path, config.text, **options)
        return TokenEncoder(Tokenizer.load(path), edge=config.edge, **options)

    def check(self, folder: Path) -> None:
        if self.config.edge is not None and self.config.edge >= self.vocabulary.size:
            raise UserError(
                f"{folder / 'config.json'} is damaged: 'edge' = {self.config.edge}: the vocabulary has ids from 0 to "
                f"{self.vocabulary.size - 1}"
            )

    @classmethod
    def build(cls, config: ClassifierConfig, vocabulary: Encoder) -> "ClassifierNetwork":
        from torch import nn

        from elman.nn.classifier import ClassifierNetwork
        from elman.nn.embedding import clear_padding
        from elman.nn.features import CharacterEncoder
        from elman.nn.ngrams import NGramScores
        from elman.nn.pooling import POOLINGS

        settings = config.model
        embedding = settings.fresh_embedding(vocabulary.size)
        if isinstance(embedding, nn.Embedding) and settings.embedding_scale != 1:  # which PyTorch has drawn already
            # A rare token keeps most of the vector that it began with: a small one is no noise to the others.
            nn.init.normal_(embedding.weight, std=settings.embedding_scale)
            clear_padding(embedding)
        spelling = None
        if isinstance(vocabulary, WordEncoder) and vocabulary.speller.characters is not None:
            spelling = CharacterEncoder(
                vocabulary.speller.characters.size,
                settings.character_embedding,
                settings.characters,
                cell=settings.cell,
                dropout=settings.input_dropout,
            )
        width = embedding.embedding_dim + (spelling.output_size if spelling else 0)
        body = settings.body(width, bidirectional=settings.bidirectional, locked_dropout=settings.locked)
        pooling, ngrams = POOLINGS[settings.pooling](body), None
        if settings.ngrams:
            ngrams = NGramScores(settings.ngram_buckets, len(config.labels), settings.ngrams, settings.ngram_dropout)
        network = ClassifierNetwork(
            embedding,
            spelling,
            body,
            pooling,
            nn.Linear(pooling.output_size, len(config.labels)),
            ngrams,
            token_dropout=settings.token_dropout,
            input_dropout=settings.input_dropout,
            output_dropout=settings.output_dropout,
            locked=settings.locked,
        )
        network = settings.initialised(network, body)
        if ngrams is not None:
            nn.init.zeros_(ngrams.weight)  # however weights are drawn: n-grams that were never met say nothing
        return network

    def about(self) -> str:
        return f"{len(self.config.labels)} classes, {self.config.model.words()}, {self.config.text.kind}"

    def written(self, record: LabelledText, answer: Prediction, options: PredictOptions) -> Iterator[str]:
        if options.as_json:
            ordered = sorted(answer.probabilities.items(), key=lambda pair: -pair[1])
            labels: dict[str, Any] = {"labels": list(answer.labels)} if self.several else {"label": answer.label}
            shown = {**labels, "probabilities": {label: round(p, 6) for label, p in ordered}}
            yield options.to_json(record.where, record.fields, {"text": record.text, **shown})
        elif self.several:
            yield "\t".join(f"{label}={answer.probabilities[label]:.4f}" for label in answer.labels)
        else:
            yield f"{answer.label}\t{answer.probability:.4f}"

    # The compiled network

    def layers(self) -> list[Layers]:
        """Those over tokens, and those over the characters of words where these are spelled."""
        settings, spelled = self.config.model, isinstance(self.vocabulary, WordEncoder)
        width = (settings.embedding or self.vocabulary.size) + 2 * settings.characters * spelled
        body = settings.described("body", width, bidirectional=settings.bidirectional)
        size, hidden = settings.character_embedding, settings.characters
        return [body, *([Layers("spelling.body", settings.cell, size, hidden, bidirectional=True)] if spelled else [])]

    def other_shapes(self) -> Shapes:
        width, classes = self.layers()[0].output_size, len(self.config.labels)
        size = self.config.model.embedding
        shapes: Shapes = {"embedding.weight": (self.vocabulary.size, size)} if size else {}
        if isinstance(self.vocabulary, WordEncoder) and (characters := self.vocabulary.speller.characters) is not None:
            shapes["spelling.embedding.weight"] = (characters.size, self.config.model.character_embedding)
        if self.config.model.pooling == "attention":
            shapes |= {"pooling.W.weight": (width, width), "pooling.W.bias": (width,), "pooling.v.weight": (1, width)}
        if self.config.model.ngrams:
            shapes["ngrams.weight"] = (self.config.model.ngram_buckets, classes)
        pooled = pooled_size(self.config.model.pooling, width)
        return shapes | {"output.weight": (classes, pooled), "output.bias": (classes,)}

    def compile(self, weights: Arrays) -> "CompiledClassifier":
        return CompiledClassifier(self, self.config.model.shortened(weights, "embedding.weight"))


class CompiledClassifier:
    """Encoded texts to a score for each class, with no PyTorch call inside."""

    def __init__(self, model: TextClassifier, weights: Arrays) -> None:
        body, *spelling = model.layers()
        reads: dict[str, Any] = {"embedding": "embedding"} if model.config.model.embedding else {"one_hot": True}
        if isinstance(model.vocabulary, WordEncoder):
            self.speller, size = model.vocabulary.speller, model.vocabulary.size
            embedded = "embedding.weight" in weights
            self.embedding = dequantised(weights, "embedding.weight") if embedded else np.eye(size, dtype=np.float32)
            self.characters = CompiledCharacters("spelling", weights, spelling[0])
            reads = {"words": self._vectors}
        pooling = model.config.model.pooling
        self.encoder = CompiledLayers(body, weights, pooling=pooling, output="output", **reads)
        self.order = model.config.model.ngrams
        self.ngrams = dequantised(weights, "ngrams.weight") if self.order else None

    def scores(self, encoded: Ragged) -> np.ndarray:
        """The scores of each text (N x C)."""
        if len(encoded) == 1:
            return self._read(encoded)
        groups = list(by_length(encoded.lengths, len(encoded), tokens=TOKENS))
        found = np.concatenate([self._read(encoded.take(rows)) for rows in groups])
        return np.ascontiguousarray(found[np.argsort(np.concatenate(groups))])

    def _read(self, encoded: Ragged) -> np.ndarray:
        found = self.encoder(encoded.data, encoded.lengths)
        return found if self.ngrams is None else found + ngram_scores(self.ngrams, encoded, self.order)

    def _vectors(self, words: list[str]) -> np.ndarray:
        """Distinct words to the vectors of the word and of its characters, side by side."""
        spelled = self.speller(words)
        characters = self.characters(spelled.characters, spelled.lengths)  # W x 2H
        return np.concatenate([self.embedding.take(spelled.ids, axis=0), characters], axis=1)


def chances(logits: np.ndarray, several: bool) -> np.ndarray:
    """Probabilities of classes (N x C): of one class a text, or of each class by itself.

    >>> chances(np.array([[0.0, 0.0]]), several=False).tolist()
    [[0.5, 0.5]]
    """
    exact = logits.astype(np.float64)
    if several:
        return (0.5 * (1 + np.tanh(exact / 2))).astype(np.float32)
    exps = np.exp(exact - exact.max(axis=1, keepdims=True))
    return np.asarray(exps / exps.sum(axis=1, keepdims=True), np.float32)


# The task


class Classify(Task[LabelledText, TextClassifier]):
    """A label for a text, or several."""

    name = "classify"
    about = "Train a classifier: one label for a text, or several."
    records, unit, counted = "texts", "texts", "texts"
    Recipe, Model, Options = ClassifyRecipe, TextClassifier, EnsembleOptions
    metrics = (
        Metric("accuracy", percent=True),
        Metric("macro_f1", "macro F1", percent=True),
        Metric("weighted_f1", "weighted F1", percent=True),
        Metric("unseen.accuracy", "accuracy on unseen", percent=True),
    )
    headlines = metrics[:1]
    example = 'model.predict("a text").label'

    # Records

    def reader(self, data: DataSettings, phrases: bool = False) -> LabelledReader:
        encoding = data.encoding or "utf-8"
        if data.encoding is None and not data.train:
            from elman.corpora.catalogue import corpus

            own = {corpus(name).encoding for name in data.corpora} or {encoding}
            if len(own) > 1:
                raise UserError(f"data.corpus names corpora in {' and '.join(sorted(own))}: one run reads one encoding")
            (encoding,) = own
        return LabelledReader(
            format=data.format,
            text=column(data.text_column),
            label=column(data.label_column),
            separator=data.separator,
            classes=data.classes,
            phrases=phrases,
            encoding=encoding,
        )

    def read(self, source: Source, recipe: ClassifyRecipe, split: str, say: Say) -> list[LabelledText]:
        """The texts of one split; phrases are there to learn from alone."""
        return source.read(self.reader(recipe.data, recipe.data.phrases and split == "train"), say)

    def key(self, record: LabelledText) -> tuple[str, tuple[str, ...]]:
        return record.text, tuple(sorted(record.labels))

    def text_of(self, record: LabelledText) -> str:
        return record.text

    def settle(self, parts: dict[str, list[LabelledText]], recipe: ClassifyRecipe, say: Say) -> Data[LabelledText]:
        """Hold out what the recipe asks for, class by class, always the same for the same seed."""
        data, train = recipe.data, [record for record in parts["train"] if record.whole]
        several = _is_several(train, data)
        counts = Counter(label for record in train for label in record.labels)
        check_classes(counts, len(train), source_of(train[0].where))
        for split in ("dev", "test"):
            check_known(parts.get(split, []), counts)
            _check_single(parts.get(split, []), several)
        dev, test = parts.get("dev", []), [] if data.folds else parts.get("test", [])
        folds = stratified_folds([_class(r) for r in train], data.folds, recipe.train.seed) if data.folds else []
        if data.fold is not None:
            inside = set(folds[data.fold - 1])
            test = [train[index] for index in sorted(inside)]
            train = [record for index, record in enumerate(train) if index not in inside]
        dev_share = data.dev_fraction
        if "test" not in parts and data.test_fraction:
            train, test = _part(train, data.test_fraction, recipe.train.seed)
            dev_share /= 1 - data.test_fraction  # of what is left
        if "dev" not in parts and dev_share:
            train, dev = _part(train, dev_share, recipe.train.seed)
        drawn = draw_labelled(train, data.labels, recipe.train.seed, self.records)
        left = {record.where for record in train} - {record.where for record in drawn}
        train = drawn
        if data.labels and len({_class(record) for record in train}) == 1:
            raise UserError(f"the {data.labels} training texts of data.labels have one class only: give more of them")
        phrases = [record for record in parts["train"] if not record.whole]
        known = [record for record in phrases if set(record.labels) <= counts.keys()]
        if odd := len(phrases) - len(known):
            say(f"warning: {odd:,} of the phrases have a class that no sentence has, and are left out")
        train = _with_phrases(train, known, left | {record.where for record in (*dev, *test)})
        if common := overlap(map(self.key, train), map(self.key, test)):
            say(
                f"{common} of the {len(test)} test texts stand in training too, with the same label: "
                "the report has the accuracy without them beside the others"
            )
        return Data(train, dev, test, {"labels": sorted(counts), "several": several})

    def read_set(
        self, model: TextClassifier, recipe: ClassifyRecipe, source: Source, name: str, say: Say
    ) -> list[LabelledText]:
        records: list[LabelledText] = super().read_set(model, recipe, source, name, say)
        check_known(records, model.labels)
        _check_single(records, model.several)
        return records

    # The network

    def fit_vocabulary(self, recipe: ClassifyRecipe, data: Data[LabelledText]) -> Encoder:
        texts = [record.text for record in data.train]
        options: dict[str, Any] = {"edges": recipe.model.edges, "longest": recipe.model.longest}
        if (language := data.starts.get("start")) is not None:
            return TokenEncoder(extended(language.tokenizer, texts), edge=language.reading.start_id, **options)
        if recipe.model.characters:
            return WordEncoder.fit(texts, recipe.text, words_beside(recipe, data, texts), **options)
        return TokenEncoder(fit_with_vectors(recipe, data, texts), **options)

    def embedded(self, vocabulary: Encoder) -> dict[str, Embedded]:
        known: Any = vocabulary.tokenizer if isinstance(vocabulary, TokenEncoder) else vocabulary.speller.words
        return {"vectors": Embedded("embedding", known.tokens, known.counts)}

    def vocabulary_counts(self, vocabulary: Encoder) -> Iterator[tuple[np.ndarray, str]]:
        yield vocabulary.counts, "training tokens"

    def examples(self, recipe: ClassifyRecipe, data: Data[LabelledText], vocabulary: Encoder) -> Any:
        return vocabulary.encode([record.text for record in data.train])

    def config_parts(self, recipe: ClassifyRecipe, data: Data[LabelledText], examples: Any) -> dict[str, Any]:
        language = data.starts.get("start")
        edge = {} if language is None else {"edge": language.reading.start_id}
        return {"text": recipe.text, "labels": data.facts["labels"], "several": data.facts["several"], **edge}

    def begin_with(self, starts: dict[str, Any], network: Any, vocabulary: Encoder) -> None:
        if (language := starts.get("start")) is not None:
            put_under(language, network.embedding, network.body, same_rows(language, vocabulary.size))

    def check_start(self, start: TextClassifier, data: Data[LabelledText]) -> None:
        why = "which the model to start from does not know"
        records = [*data.train, *data.dev, *data.test]
        check_known(records, start.labels, why)
        _check_single(records, start.several)
        data.facts["labels"] = start.labels

    def batch(self, run: Training[LabelledText, TextClassifier], rows: np.ndarray) -> "TextBatch":
        from elman.nn.inputs import Inputs

        targets = run.once("targets", lambda: targets_of(run.data.train, run.model))
        inputs = Inputs.of(*run.model.vocabulary.spelled(run.examples.take(rows)))
        places = ", ".join(str(run.data.train[index].where) for index in rows[:3])
        return TextBatch(inputs, targets[rows], f"of the texts {places} ...")

    def loss(self, run: Training[LabelledText, TextClassifier], batch: "TextBatch", state: Any) -> "Loss":
        """Cross-entropy over the classes; with several labels, of the yes or no of each."""
        import torch
        from torch.nn import functional

        from elman.train.task import Loss

        weights = run.once("weights", lambda: class_weights(run.recipe.loss.class_weights, run.data))
        logits, smoothing = run.network(batch.inputs), run.recipe.loss.smoothing
        targets = torch.from_numpy(batch.targets)
        if run.model.several:
            soft = targets * (1 - smoothing) + smoothing / 2
            mean = functional.binary_cross_entropy_with_logits(logits, soft, weight=weights)
        else:
            mean = functional.cross_entropy(logits, targets, weight=weights, label_smoothing=smoothing)
        return Loss(mean, len(targets))

    def watch(self, run: Training[LabelledText, TextClassifier]) -> dict[str, float]:
        """Loss and accuracy on the held-out texts; on some of the training texts where none are held out."""
        encoded, records = run.once("watched", lambda: _watched(run))
        logits, targets = run.model.scores(encoded), targets_of(records, run.model)
        right = (logits > 0) == (targets > 0) if run.model.several else logits.argmax(axis=1) == targets
        accuracy = float((right.all(axis=1) if run.model.several else right).mean())
        scores = {"loss": classification.mean_loss(logits, targets), "accuracy": accuracy}
        return scores | ({"error": 1 - accuracy} if run.data.dev else {})

    # Scores

    def facts(self, model: TextClassifier) -> dict[str, Any]:
        return {**super().facts(model), "classes": len(model.labels), "several": model.several}

    def score(
        self, model: TextClassifier, records: Sequence[LabelledText], recipe: ClassifyRecipe, train: Sequence[Any]
    ) -> dict[str, Any]:
        texts = [record.text for record in records]
        logits = model.averaged(lambda one: one.scores(one.vocabulary.encode(texts)))
        probabilities = chances(logits, model.several).astype(np.float64)
        guessed = [model._prediction(row).labels for row in probabilities.tolist()]
        loss = classification.mean_loss(logits, targets_of(records, model))
        found = {"loss": loss, **_scores(records, guessed, model, self._fresh(train, records))}
        if model.several:
            return found | classification.trust_in_each(probabilities, targets_of(records, model))
        gold, best = [record.labels[0] for record in records], [labels[0] for labels in guessed]
        sure = np.minimum(probabilities.max(axis=1), 1.0).tolist()
        mistakes = [
            {"text": records[i].text, "right": gold[i], "predicted": best[i], "probability": sure[i]}
            for i in classification.most_confident_mistakes(gold, best, sure, MISTAKES)
        ]
        trust = classification.calibration(sure, [right == guess for right, guess in zip(gold, best, strict=True)])
        return {**found, **trust.to_dict(), "mistakes": mistakes}

    def _fresh(self, train: Sequence[LabelledText], records: Sequence[LabelledText]) -> list[bool]:
        """For each text, whether it does not stand in training with the same label."""
        return [not known for known in seen(map(self.key, train), map(self.key, records))]

    def baselines(
        self, model: TextClassifier, train: Sequence[LabelledText], recipe: ClassifyRecipe, say: Say
    ) -> dict[str, Score]:
        """The most frequent class, and a linear model over character n-grams, of whole texts: phrases mislead them."""
        if not train:
            return {}
        rivals: dict[str, Any] = {}
        whole = [record for record in train if record.whole]
        texts, some = [record.text for record in whole], whole[: recipe.baseline.texts]
        rows: list[Any] = [frozenset(r.labels) if model.several else r.labels[0] for r in whole]
        rivals["most frequent class"] = MostFrequentClass.fit(texts, rows)
        if recipe.baseline.ngrams:
            kind = MultilabelCharacterNgrams if model.several else CharacterNgrams
            try:
                labels: list[Any] = [r.labels if model.several else r.labels[0] for r in some]
                rivals["character n-grams"] = kind.fit([record.text for record in some], labels)
            except UserError as error:
                say(f"no n-gram baseline: {error}")

        def scored(rival: Any) -> Score:
            def score(records: Sequence[LabelledText]) -> dict[str, Any]:
                guesses = rival.predict([record.text for record in records])
                labels = [(guess,) if isinstance(guess, str) else tuple(guess) for guess in guesses]
                return _scores(records, labels, model, self._fresh(train, records))

            return score

        return {who: scored(rival) for who, rival in rivals.items()}

    # Words

    def describe(self, run: Training[LabelledText, TextClassifier]) -> str:
        data, settings = run.data, run.recipe.model
        cut = int((run.examples.lengths >= settings.longest + 2 * settings.edges).sum())
        held = f"{len(data.dev):,} held out" if data.dev else "none held out, so some of them are scored in their place"
        return (
            f"{'2 x ' if settings.bidirectional else ''}{settings.words()}, {run.model.parameters:,} parameters; "
            f"{len(data.train):,} texts of {len(run.model.labels)} classes to train on, {held}; "
            f"{run.model.vocabulary.size:,} {run.recipe.text.kind}"
            + (f"; {cut} texts are cut after model.longest={settings.longest} tokens" if cut else "")
        )

    def sentence(self, recipe: ClassifyRecipe, report: "Report") -> str:
        model = recipe.model
        return (
            f"A classifier of texts into {report['classes']} classes{' (any number a text)' * report['several']}, over "
            f"{recipe.text.kind}{' and their characters' if model.characters else ''}: {model.layers} x "
            f"{'bidirectional ' * model.bidirectional}{model.cell} of {model.hidden}, {model.pooling} pooling"
        )

    def details(self, scores: Mapping[str, Any]) -> str:
        """Class by class, what was taken for what, how far it can be trusted, and where it was wrong for sure."""
        parts = [classification.score_table(classification.scores_from(scores["classes"]))]
        if "confusion" in scores:
            parts.append(classification.confusion_table(_confusion(scores), width=100))
        parts.append(classification.Calibration.from_dict(scores).text())
        if scores.get("mistakes"):
            parts.append("most confident mistakes (right, predicted, probability)\n" + _mistakes(scores["mistakes"]))
        return "\n\n".join(parts)

    def draw(self, report: "Report", folder: Path) -> dict[str, str]:
        scores = report[report.sets[-1]]
        if "confusion" not in scores:
            return {}
        classification.draw_confusion(_confusion(scores), folder / "confusion.png")
        return {"confusion.png": "what was taken for what"}


def _watched(run: Training[LabelledText, TextClassifier]) -> tuple[Ragged, list[LabelledText]]:
    if run.data.dev:
        return run.model.vocabulary.encode([record.text for record in run.data.dev]), run.data.dev
    # Texts are often sorted by class, so the first of them will not do.
    some = np.random.default_rng(run.recipe.train.seed).permutation(len(run.examples))[:WATCHED]
    return run.examples.take(some), [run.data.train[index] for index in some]


@dataclass(repr=False)
class TextBatch:
    """Some texts and their classes; shown in messages as the place they come from."""

    inputs: Any
    targets: np.ndarray  # B, or B x C where a text has several labels
    place: str

    def __repr__(self) -> str:
        return self.place


def targets_of(records: Sequence[LabelledText], model: TextClassifier) -> np.ndarray:
    """The class of each text (N), or zeros and ones for every class (N x C)."""
    place = {label: index for index, label in enumerate(model.config.labels)}
    if not model.several:
        return np.array([place[record.labels[0]] for record in records], np.int64)
    flags = np.zeros((len(records), len(place)), np.float32)
    for index, record in enumerate(records):
        flags[index, [place[label] for label in record.labels]] = 1.0
    return flags


def class_weights(asked: Sequence[str], data: Data[LabelledText]) -> "Tensor | None":
    """How much each class counts in the loss (C), or None where all count alike.

    >>> from elman.records.places import Place
    >>> train = [LabelledText("", (label,), Place("train", 1)) for label in "aaab"]
    >>> class_weights(("balanced",), Data(train, [], [], {"labels": ["a", "b"]})).tolist()
    [0.6666666865348816, 2.0]
    """
    import torch

    labels = data.facts["labels"]
    if not asked:
        return None
    if tuple(asked) == ("balanced",):
        counts = Counter(label for record in data.train for label in record.labels)
        total = sum(counts.values())
        return torch.tensor([total / (len(labels) * max(counts[label], 1)) for label in labels])
    named = {entry.rpartition("=")[0].strip(): float(entry.rpartition("=")[2]) for entry in asked}
    for label in named:
        if label not in labels:
            raise UserError(f"loss.class_weights names a class {label!r}: {nearest(label, labels)}")
    return torch.tensor([named.get(label, 1.0) for label in labels])


def _scores(
    records: Sequence[LabelledText], guessed: Sequence[tuple[str, ...]], model: TextClassifier, fresh: list[bool]
) -> dict[str, Any]:
    """What labels scored, whoever gave them, and on `fresh` texts alone, where some are so and some are not."""
    if model.several:
        found = classification.several_scores([record.labels for record in records], guessed, model.labels)
    else:
        gold = [record.labels[0] for record in records]
        found = classification.single_scores(gold, [labels[0] for labels in guessed], model.labels)
    right = np.array([set(labels) == set(r.labels) for labels, r in zip(guessed, records, strict=True)])
    unseen = {}
    if any(fresh) and not all(fresh):
        unseen = {"unseen": {"texts": sum(fresh), "accuracy": float(np.mean(right[np.array(fresh)]))}}
    return {"texts": len(records), **found, **unseen}


def _is_several(records: Sequence[LabelledText], data: DataSettings) -> bool:
    """Whether the texts have several labels each: as told, or as the texts show."""
    if data.several or data.separator is not None:
        return True
    if data.several is None:
        return any(len(record.labels) != 1 for record in records)
    _check_single(records, several=False)
    return False


def _check_single(records: Sequence[LabelledText], several: bool) -> None:
    """Refuse a text that has not one label, where each should have one."""
    for record in records:
        if not several and len(record.labels) != 1:
            found = ", ".join(map(repr, record.labels)) or "none"
            raise UserError(
                f"{record.where} has not one label but {found}: give it one, or train a model with data.several=true"
            )


def _part(records: list[LabelledText], fraction: float, seed: int) -> tuple[list[LabelledText], list[LabelledText]]:
    kept, held = stratified_split([_class(record) for record in records], fraction, seed)
    return [records[index] for index in kept], [records[index] for index in held]


def _with_phrases(
    train: list[LabelledText], records: Sequence[LabelledText], held: Collection[Place | None]
) -> list[LabelledText]:
    """Training texts, and behind them the phrases of sentences that stand at no place of `held`, each once a label."""
    phrases = (record for record in records if not record.whole and record.where not in held)
    known = {(record.text, record.labels) for record in train}
    fresh = {(record.text, record.labels): record for record in phrases}
    return [*train, *(record for key, record in fresh.items() if key not in known)]


def _class(record: LabelledText) -> tuple[str, ...]:
    return tuple(sorted(record.labels))


def _confusion(scores: Mapping[str, Any]) -> classification.Confusion:
    return classification.Confusion(tuple(scores["classes"]), np.asarray(scores["confusion"], np.int64))


def _mistakes(mistakes: Sequence[Mapping[str, Any]]) -> str:
    lines = []
    for entry in mistakes:
        text = " ".join(entry["text"].split())
        text = text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
        lines.append(f"{entry['right']}\t{entry['predicted']}\t{entry['probability']:.3f}\t{text}")
    return "\n".join(lines).expandtabs(12)
