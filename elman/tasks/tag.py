"""Taggers: a tag for each token (parts of speech, entities), and the spans that tags write.

model = elman.fit("tag", train="news.conll", out="runs/entities")
model.predict("Ask Ada Lovelace, ada@example.org.").spans
model.predict(tokens=["Ask", "Ada", "Lovelace"]).tags
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast, overload

import numpy as np
from pydantic import Field, field_validator, model_validator

from elman.baselines.lexicon import MostFrequentTag
from elman.batches.examples import by_length
from elman.batches.noise import MadeUpWords, SwappedSpans
from elman.chain import Chain, best_sequences
from elman.errors import UserError, nearest
from elman.files import COPY_AGAIN, Stored, checked, read_json
from elman.metrics import classification
from elman.metrics.metric import Metric
from elman.metrics.spans import SpanScores
from elman.metrics.tagging import TagScores, tag_scores
from elman.ragged import Ints, Ragged
from elman.records.tagged import DocumentMark, Format, Sentence, TaggedReader
from elman.runtime import CompiledCharacters, Encoder, Layers
from elman.runtime.quantise import Arrays, dequantise
from elman.runtime.strings import CompiledStrings
from elman.runtime.weights import Shapes
from elman.runtime.words import KnownWords
from elman.tasks.ensemble import EnsembleConfig, EnsembleModel, EnsembleOptions, MembersSection, mean
from elman.tasks.folder import write_changed
from elman.tasks.memory import built
from elman.tasks.model import check_texts, listed
from elman.tasks.predict import PredictOptions
from elman.tasks.sections import EmbeddingSection, Name, SizeSection, TransferSettings, TwoWaySection, UnlabelledSection
from elman.tasks.strings import StringModel, StringStates, fill_strings, string_models
from elman.tasks.task import Data, Say, Score, Source, Task, Training, draw_labelled
from elman.tasks.transfer import StartSection, put_under, word_rows
from elman.tasks.vectors import Embedded, VectorsSection, known_vectors
from elman.text import Tokenizer
from elman.text.encoder import spelled, words
from elman.text.spans import (
    OUTSIDE,
    UNTYPED,
    Scheme,
    Span,
    convert,
    detect_scheme,
    read_spans,
    repair,
    split_tag,
    write_tags,
)
from elman.text.spelling import Speller
from elman.text.strings import StringReader
from elman.text.tagging import Tagging, cut, join
from elman.train.recipe import Section

if TYPE_CHECKING:
    from elman.nn.tagger import TagNetwork
    from elman.tasks.report import Report
    from elman.train.task import Loss

SENTENCES, TOKENS = 256, 4096  # computed on at a time, at most
LEXICON = "lexicon.json"
SMALL = 0.1  # the spread of fresh embeddings: a word hardly seen should say little
ODD = 4  # times as many tags mark spans as do not: then those that do not are odd
WIDTH = 120  # of a table that is printed
COLOURS = (31, 32, 33, 34, 35, 36, 91, 92, 93, 94, 95, 96)


# The recipe


class DataSettings(UnlabelledSection):
    """Where the tagged sentences come from: a corpus of the catalogue, or the user's own files."""

    format: Format | None = Field(None, description="none follows the file's suffix")
    token_column: Name | None = Field(None, description="conll: a number from 1; jsonl: a field")
    tag_column: Name | None = Field(None, description="the same; conllu: upos, xpos, deprel, feats.NAME")
    comments: bool = Field(False, description="lines of columns that begin with # are passed over")
    scheme: Literal["auto", "plain", "BIO", "IOB1", "BIOES"] = Field(
        "auto", description="how the tags write spans; plain: each tag stands for itself"
    )


class TextSettings(Section):
    """What of a word is looked at."""

    lowercase: bool = Field(True, description="words and affixes are looked up in small letters")
    min_count: int = Field(1, ge=1, description="a word seen less often is unknown")
    size: int | None = Field(None, ge=2, description="words at most")
    character_count: int = Field(2, ge=1, description="a character seen less often is unknown")
    prefixes: tuple[int, ...] = Field((2, 3), description="lengths of the beginnings looked at")
    suffixes: tuple[int, ...] = Field((1, 2, 3, 4), description="lengths of the endings looked at")
    affix_count: int = Field(3, ge=1, description="a beginning or ending seen less often is unknown")
    longest: int = Field(32, ge=2, description="characters of a word at most: its first and its last")
    vector_words: int = Field(200_000, ge=0, description="words of model.vectors that are known beside those of train")

    @field_validator("prefixes", "suffixes")
    @classmethod
    def _lengths(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if any(length < 1 for length in value) or len(set(value)) < len(value):
            raise ValueError("text.prefixes and text.suffixes are different lengths from 1")
        return value


class ModelSettings(VectorsSection, StartSection, EmbeddingSection, TwoWaySection):
    """The network: word vectors, recurrent layers that read both ways, softmax or CRF."""

    takes_their_size: ClassVar[bool] = True
    layers: int = Field(2, ge=1, le=64)
    hidden: int = Field(200, ge=1, description="in each direction")
    embedding: int = Field(100, ge=0, description="of words; 0 leaves them out; with model.vectors it is their size")
    one_hot: bool = Field(False, description="words are one-hot vectors, with model.embedding = 0")
    character_embedding: int = Field(32, ge=1)
    character_hidden: int = Field(50, ge=0, description="of the character RNN, in each direction; 0 leaves it out")
    character_cell: Literal["rnn", "elman", "lstm", "gru"] = "lstm"
    case_embedding: int = Field(8, ge=0, description="0 leaves case and affixes out")
    affix_embedding: int = Field(16, ge=1)
    strings: tuple[str, ...] = Field(
        (), description="folders of character models, whose states at the borders of a word stand beside its vector"
    )
    crf: bool = Field(False, description="tags scored as a whole sequence; else each by itself")
    scheme: Literal["BIO", "BIOES"] = Field("BIOES", description="that spans are learned in")
    dropout: float = Field(0.4, ge=0, lt=1, description="between layers")
    input_dropout: float = Field(0.4, ge=0, lt=1, description="of word vectors")
    output_dropout: float = Field(0.4, ge=0, lt=1, description="before the softmax")
    character_dropout: float = Field(0.0, ge=0, lt=1, description="of embedded characters")
    locked: bool = Field(True, description="these have the same mask for all tokens of a sentence")
    word_dropout: float = Field(
        0.25, ge=0, description="a: a word seen n times is made unknown in a / (a + n) of its places"
    )

    @field_validator("strings", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @classmethod
    def following(cls, key: str, language: Any) -> dict[str, Any]:
        alone = {"character_hidden": 0, "case_embedding": 0}  # its layers have seen words only
        return {**super().following(key, language), **alone}

    @classmethod
    def following_text(cls, key: str, tokenizer: Tokenizer) -> dict[str, Any]:
        if (kind := tokenizer.settings.kind) != "words":
            raise UserError(f"model.{key} reads {kind}, and a tagger's tokens are words: give one with text.kind=words")
        return {"lowercase": tokenizer.settings.lowercase}

    @classmethod
    def made(cls, table: Mapping[str, Any]) -> dict[str, Any]:
        return {}  # it is one of characters, which stands beside the words

    @model_validator(mode="before")
    @classmethod
    def _older_names(cls, value: Any) -> Any:
        """Folders of before have `freeze_vectors`, and the name of the vectors elsewhere."""
        if not isinstance(value, Mapping) or "freeze_vectors" not in value:
            return value
        kept = {key: one for key, one in value.items() if key != "freeze_vectors"}
        return kept | ({"vectors_frozen": value["freeze_vectors"]} if kept.get("vectors") else {})

    @model_validator(mode="after")
    def _sees_something(self) -> "ModelSettings":
        if self.start is not None and self.strings:
            raise ValueError("model.start reads words alone: leave model.strings out, or model.start")
        if self.one_hot and self.embedding:
            raise ValueError("model.one_hot stands in the place of an embedding: give model.embedding = 0 with it")
        words = self.embedding or self.one_hot
        if not (words or self.character_hidden or self.case_embedding or self.strings):
            raise ValueError(
                "a tagger has to see words: give model.embedding, model.character_hidden or model.case_embedding"
            )
        return self


class BatchSettings(SizeSection):
    """How sentences are put together."""

    made_up: float = Field(0.0, ge=0, le=1, description="share of words that are made up of others of their tag")
    swapped: float = Field(0.0, ge=0, le=1, description="share of spans in whose place another one is put")
    with_spans: int = Field(1, ge=1, description="times that an epoch has each sentence with a span: finds more spans")


class ReportSettings(Section):
    """How the scores are counted."""

    strict: bool = Field(False, description="spans that the scheme would not write so are none; else as conlleval")


class TagRecipe(Section):
    """Everything that a tagger's run depends on."""

    task: Literal["tag"] = "tag"
    data: DataSettings = DataSettings()
    text: TextSettings = TextSettings()
    model: ModelSettings = ModelSettings()
    batch: BatchSettings = BatchSettings()
    train: MembersSection = MembersSection(average="ema")
    report: ReportSettings = ReportSettings()
    transfer: TransferSettings = TransferSettings()

    @model_validator(mode="before")
    @classmethod
    def _older_names(cls, value: Any) -> Any:
        """What is `model.vectors` now was `text.vectors`."""
        if not isinstance(value, Mapping):
            return value
        text, model = value.get("text"), value.get("model", {})
        if isinstance(text, Mapping) and "vectors" in text and isinstance(model, Mapping):
            model = dict(model) | ({"vectors": text["vectors"]} if text["vectors"] is not None else {})
            value = {**value, "text": {key: one for key, one in text.items() if key != "vectors"}, "model": model}
        if isinstance(model, Mapping) and model.get("freeze_vectors") and not model.get("vectors"):
            raise ValueError("model.vectors_frozen needs model.vectors, a folder or a file to take them from")
        return value

    @model_validator(mode="after")
    def _vectors_stay(self) -> "TagRecipe":
        if self.model.vectors_frozen and self.train.weight_decay:
            raise ValueError("train.weight_decay would change frozen vectors: leave it out, or model.vectors_frozen")
        return self


def coloured(tagging: Tagging, kinds: Sequence[str]) -> str:
    """The text with every span in the colour of its type, and the type behind it; or every token in that of its tag.

    >>> coloured(cut("Ask Ada").tagged(["O", "B-PERSON"], [Span(1, 2, "PERSON")]), ["PERSON"])
    'Ask \\x1b[31mAda\\x1b[0m\\x1b[2m PERSON\\x1b[0m'
    """
    colours = {kind: COLOURS[place % len(COLOURS)] for place, kind in enumerate(kinds)}
    marks = [(span.start, span.end, span.type) for span in tagging.spans]
    marks = marks or [(*place, tag) for place, tag in zip(tagging.offsets, tagging.tags, strict=True)]
    shown, end = "", 0
    for start, stop, kind in marks:
        if kind in colours:
            painted = f"\x1b[{colours[kind]}m{tagging.text[start:stop]}\x1b[0m\x1b[2m {kind}\x1b[0m"
            shown, end = shown + tagging.text[end:start] + painted, stop
    return shown + tagging.text[end:]


# The model


class TaggerConfig(EnsembleConfig):
    """What a tagger's config.json holds."""

    model: ModelSettings
    tags: tuple[str, ...] = Field(min_length=1)
    """Those of the network, in the scheme that it learned in."""
    scheme: Scheme | None
    """That of the training files, which `predict` answers in."""
    strings: tuple[StringModel, ...] = ()
    """The character models inside it."""


class _Lexicon(Stored):
    """What lexicon.json holds."""

    unseen: str
    tags: dict[str, str]


class TagModel(EnsembleModel[TaggerConfig, Speller, "TagNetwork", "CompiledTagger"]):
    """p(tags | tokens), and what its reports are measured against.

    `lexicon` knows the words of the training set and the tag that each mostly had.
    """

    task = "tag"
    Config, Recipe = TaggerConfig, TagRecipe
    exact = ("crf.transitions",)  # which add up over a sentence
    lexicon: MostFrequentTag
    string_states: StringStates | None = None
    """Those that are kept while the model is trained."""

    @property
    def tags(self) -> list[str]:
        """The tags of the network."""
        return list(self.config.tags)

    @property
    def scheme(self) -> Scheme | None:
        """How the tags of the training files write spans; None where they write none."""
        return self.config.scheme

    @overload
    def predict(self, text: str) -> Tagging: ...  # type: ignore[overload-overlap]

    @overload
    def predict(self, text: Iterable[str]) -> list[Tagging]: ...

    @overload
    def predict(self, *, tokens: Sequence[str]) -> Tagging: ...  # type: ignore[overload-overlap]

    @overload
    def predict(self, *, tokens: Iterable[Sequence[str]]) -> list[Tagging]: ...

    def predict(
        self, text: str | Iterable[str] | None = None, *, tokens: Iterable[str] | Iterable[Sequence[str]] | None = None
    ) -> Tagging | list[Tagging]:
        """Tag one raw text or several, or the ready tokens of one sentence or of several."""
        if (text is None) == (tokens is None):
            raise UserError("a tagger wants either a text or ready tokens: give one of them")
        if text is not None:
            single = isinstance(text, str)
            texts = listed(text)
            check_texts(texts)
            cuts = [cut(one) for one in texts]
        else:
            single, cuts = _ready(tokens)
        for number, one in enumerate(cuts, 1):
            if not all(one.tokens) or not one.tokens:
                raise UserError(
                    f"text {number} of {len(cuts)} has an empty token, or none at all: give it at least one"
                )
        tagged = self.tag(cuts)
        return tagged[0] if single else tagged

    def tag(self, cuts: Sequence[Tagging]) -> list[Tagging]:
        """The sentences with their tags and spans."""
        found = self._find([one.tokens for one in cuts])
        return [one.tagged(tags, spans) for one, (tags, spans) in zip(cuts, found, strict=True)]

    def tag_tokens(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """The tags of ready tokens, in the scheme of the training files."""
        return [tags for tags, _ in self._find(sentences)]

    def _find(self, sentences: Sequence[Sequence[str]]) -> list[tuple[list[str], list[Span]]]:
        """The tags and spans of ready tokens."""
        if not sentences:
            return []
        found: list[tuple[list[str], list[Span]]] = [([], [])] * len(sentences)
        every = words(sentences)
        for places in _groups(every):
            chosen = every.take(places) if len(every) > 1 else every
            for place, row in zip(places.tolist(), self._best_tags(chosen), strict=True):
                found[place] = self._read(row)
        return found

    def measure(self, sentences: Sequence[Sentence], strict: bool = False) -> tuple[TagScores, float]:
        """The scores of the tags found for tagged sentences, and the mean loss per token; by PyTorch, or in int8.

        Without CRF the network may give tags that its scheme would not write: their spans are read as conlleval
        reads them, or left out where `strict`. A sentence with a tag that training never saw has no loss.
        """
        found: list[list[str]] = [[]] * len(sentences)
        gold = [self.encode_tags(sentence.tags) for sentence in sentences]
        total, counted = 0.0, 0
        for scored in (True, False):
            group = [number for number, ids in enumerate(gold) if (ids is not None) == scored]
            if not group:
                continue
            every = words([sentences[number].tokens for number in group])
            for places in _groups(every):
                chosen = every.take(places)
                right = Ragged.of([gold[group[place]] for place in places]).data if scored else None
                loss, ids = self._best(chosen, right)
                for place, row in zip(places.tolist(), ids, strict=True):
                    found[group[place]], _ = self._read(row, strict)
                total += loss * len(chosen.data)
                counted += len(chosen.data) if scored else 0
        tokens = [sentence.tokens for sentence in sentences]
        scores = tag_scores(tokens, [sentence.tags for sentence in sentences], found, self.lexicon.tags)
        return scores, total / max(counted, 1)

    def encode_tags(self, tags: Sequence[str]) -> Ints | None:
        """The ids of tags that are in the scheme of the training files; None where one of them is unknown."""
        written = tags if self.scheme is None else convert(tags, self.config.model.scheme)
        ids = [self._tag_ids.get(tag, -1) for tag in written]
        return None if -1 in ids else np.array(ids, np.int64)

    @cached_property
    def _tag_ids(self) -> dict[str, int]:
        return {tag: number for number, tag in enumerate(self.config.tags)}

    def scores(self, sentences: Ragged) -> np.ndarray:
        """Its network's score of every tag for every token (N x K).

        For reports by PyTorch, whose last digit does not depend on how many threads there are; but in int8 where the
        model is so.
        """
        runtime = None if self.int8 is None else self._runtime()
        if runtime is not None:
            return runtime.scores(sentences)
        import torch

        with torch.inference_mode(), self.evaluating() as network:
            return sentences.unpacked(network(self.inputs(sentences)).numpy()).data

    def _best_tags(self, sentences: Ragged) -> Ragged:
        """The ids of the tags that are found, compiled where all members are."""
        runtimes = [runtime for one in self.members if (runtime := one._runtime()) is not None]
        if len(runtimes) < len(self.members):
            return self._best(sentences)[1]
        scores = mean([runtime.scores(sentences) for runtime in runtimes])
        chains = [runtime.chain for runtime in runtimes if runtime.chain is not None]
        return best_tags(scores, sentences, Chain.mean(chains) if chains else None)

    def _best(self, sentences: Ragged, tags: Ints | None = None) -> tuple[float, Ragged]:
        """The loss, where the right tags are known (N), and the ids of those found: for reports."""
        import torch

        from elman.nn.crf import CRF

        network, crf = self.network, None
        if self.others and network.crf is not None:
            crf = CRF.mean([cast(CRF, one.network.crf) for one in self.members])

        def scores(one: TagModel) -> np.ndarray:
            return one.scores(sentences)

        with torch.inference_mode():
            sizes = torch.from_numpy(sentences.packing.batch_sizes)
            table, loss = torch.from_numpy(sentences.packed(self.averaged(scores))), 0.0
            if tags is not None:
                loss = float(network.loss(table, torch.from_numpy(sentences.packed(tags)), sizes, crf))
            return loss, sentences.unpacked(network.best_tags(table, sizes, crf).numpy())

    def check_beside(self, other: "TagModel") -> None:
        if other.scheme != self.scheme:
            schemes = f"{self.scheme or 'no scheme'} and {other.scheme or 'no scheme'}"
            raise UserError(f"models of an ensemble answer in one scheme: these learned from files in {schemes}")
        if other.tags != self.tags:
            raise UserError("models of an ensemble need the same tags: train them on the same data and model.scheme")
        if other.config.model.crf != self.config.model.crf:
            raise UserError("models of an ensemble have all a CRF, or none of them: these differ in model.crf")

    def inputs(self, sentences: Ragged) -> Any:
        """Sentences of words as the network reads them."""
        import torch

        from elman.nn.inputs import Inputs

        made = Inputs.of(*spelled(self.vocabulary, sentences))
        if not self.config.strings:
            return made
        kept = self.string_states
        states = self.read_strings(sentences) if kept is None else kept.of(sentences, self.read_strings)  # N x S
        return made._replace(strings=torch.from_numpy(sentences.packed(states)))

    def read_strings(self, sentences: Ragged) -> np.ndarray:
        """The states of its character models at the borders of all words (N x S), by PyTorch."""
        return self.network.strings.states(sentences, self.string_readers)  # type: ignore[union-attr]

    @cached_property
    def string_readers(self) -> list[StringReader]:
        """How each of its character models reads sentences."""
        return [one.reader(f"'strings' of config.json ({one.name})") for one in self.config.strings]

    def _read(self, ids: Ints, strict: bool = False) -> tuple[list[str], list[Span]]:
        """What the network's tags stand for: tags in the scheme of the training files, and the spans they write."""
        tags = [self.config.tags[number] for number in ids.tolist()]
        if self.scheme is None:
            return tags, []
        spans = read_spans(tags, strict=self.config.model.scheme if strict else None)
        return write_tags(spans, len(tags), self.scheme), spans

    def length(self, record: Sentence | DocumentMark) -> int:
        return len(record.tokens) if isinstance(record, Sentence) else 0

    def answers(self, records: Sequence[Sentence | DocumentMark]) -> list[Any]:
        """The tags of sentences; the marks between them stay as they are."""
        cuts = [cut(one.text) if one.text else join(one.tokens) for one in records if isinstance(one, Sentence)]
        tagged = iter(self.tag(cuts))
        return [next(tagged) if isinstance(one, Sentence) else one for one in records]

    def written(self, record: Any, answer: Tagging, options: PredictOptions) -> Iterator[str]:
        if isinstance(record, DocumentMark):
            yield from () if options.as_json else (record.line, "")
        elif options.as_json:
            yield options.to_json(record.where, record.fields, answer.to_dict())
        elif options.colour:
            plain = self.scheme is None
            yield coloured(answer, self.tags if plain else sorted({split_tag(t)[1] for t in self.tags if t != OUTSIDE}))
        else:
            yield from (f"{token}\t{tag}" for token, tag in zip(answer.tokens, answer.tags, strict=True))
            yield ""

    def about(self) -> str:
        crf = " + CRF" if self.config.model.crf else ""
        return f"{len(self.config.tags)} tags, {self.config.model.words()}{crf}"

    # The folder and the network

    @classmethod
    def load_vocabulary(cls, folder: Path, config: Any) -> Speller:
        return Speller.load(folder / "tokenizer.json")

    def check(self, folder: Path) -> None:
        """Refuse what the network could not be made of, or only with a table that has a place for each pair of tags."""
        path, found = folder / "config.json", self.weights().get("scores.bias", np.empty(0)).shape[:1] or (0,)
        if len(self.config.tags) != found[0]:
            raise UserError(
                f"{path} is damaged: 'tags' are {len(self.config.tags)}, and the weights are for {found[0]}"
            )
        try:
            for tag in self.config.tags if self.scheme is not None else ():
                split_tag(tag)
        except UserError as error:
            raise UserError(f"{path} is damaged: 'tags': {error}; {COPY_AGAIN}") from None
        if self.config.model.character_hidden and self.vocabulary.characters is None:
            raise UserError(
                f"{folder / 'tokenizer.json'} is damaged: 'characters' is none, and the model looks at them; "
                f"{COPY_AGAIN}"
            )
        path = folder / LEXICON
        if not path.exists():
            raise UserError(f"no such file: {path}; a tagger's folder holds a {LEXICON}")
        stored = checked(_Lexicon, read_json(path), str(path))
        self.lexicon = MostFrequentTag(stored.tags, stored.unseen)

    def write(self, folder: Path) -> None:
        lexicon = {"unseen": self.lexicon.unseen, "tags": self.lexicon.tags}
        write_changed(folder / LEXICON, json.dumps(lexicon) + "\n")
        super().write(folder)

    def _copy(self, weights: Arrays) -> "TagModel":
        twin = super()._copy(weights)
        twin.lexicon = self.lexicon
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"string_states": None}

    @classmethod
    def build(cls, config: TaggerConfig, speller: Speller) -> "TagNetwork":
        import torch
        from torch import nn

        from elman.nn.crf import CRF, forbidden_transitions
        from elman.nn.embedding import clear_padding
        from elman.nn.features import CharacterEncoder, WordDropout, WordFeatures
        from elman.nn.strings import StringEmbeddings
        from elman.nn.tagger import TagNetwork

        settings, vocabulary = config.model, speller.words
        embedding = settings.fresh_embedding(vocabulary.size) if settings.embedding or settings.one_hot else None
        unknown, counts = vocabulary.unk_id, torch.from_numpy(vocabulary.counts)
        dropout = WordDropout(unknown, 0.0)
        if settings.word_dropout:
            dropout = WordDropout.by_count(unknown, counts, settings.word_dropout)
        characters = features = None
        if settings.character_hidden:
            assert speller.characters is not None
            characters = CharacterEncoder(
                speller.characters.size,
                settings.character_embedding,
                settings.character_hidden,
                cell=settings.character_cell,
                dropout=settings.character_dropout,
            )
        if settings.case_embedding:
            kinds = speller.feature_counts
            features = WordFeatures(kinds, [settings.case_embedding, *[settings.affix_embedding] * (len(kinds) - 1)])
        strings = StringEmbeddings([one.build(len(one.tokenizer["counts"])) for one in config.strings])
        width = strings.output_size + (0 if embedding is None else embedding.embedding_dim)
        width += sum(part.output_size for part in (characters, features) if part is not None)
        body = settings.body(width, bidirectional=True, locked_dropout=settings.locked)
        network = TagNetwork(
            embedding,
            dropout,
            characters,
            features,
            body,
            nn.Linear(body.output_size, len(config.tags)),
            CRF(len(config.tags), forbidden_transitions(config.tags)) if settings.crf else None,
            strings=strings if len(strings) else None,
            input_dropout=settings.input_dropout,
            output_dropout=settings.output_dropout,
            locked=settings.locked,
        )
        for table in (embedding, *(() if features is None else features.embeddings)):
            if isinstance(table, nn.Embedding):
                nn.init.normal_(table.weight, std=SMALL)
                clear_padding(table)
        return settings.initialised(network, body)

    # The compiled network

    def layers(self) -> list[Layers]:
        """Those over words, those over the characters of words where these are looked at, and character models."""
        settings, spelling = self.config.model, []
        strings = [one.described(number) for number, one in enumerate(self.config.strings)]
        if settings.character_hidden:
            sizes = (settings.character_embedding, settings.character_hidden)
            spelling = [Layers("characters.body", settings.character_cell, *sizes, bidirectional=True)]
        word = self.vocabulary.words.size if settings.one_hot else settings.embedding
        width = word + sum(self._feature_sizes()) + sum(part.output_size for part in (*spelling, *strings))
        return [settings.described("body", width, bidirectional=True), *spelling, *strings]

    def _feature_sizes(self) -> list[int]:
        """The sizes of the vectors of case and affixes."""
        settings, kinds = self.config.model, len(self.vocabulary.feature_counts)
        return [settings.case_embedding, *[settings.affix_embedding] * (kinds - 1)] if settings.case_embedding else []

    def other_shapes(self) -> Shapes:
        tags, settings = len(self.config.tags), self.config.model
        shapes: Shapes = {"scores.weight": (tags, self.layers()[0].output_size), "scores.bias": (tags,)}
        if settings.embedding:
            shapes["words.weight"] = (self.vocabulary.words.size, settings.embedding)
        if settings.character_hidden and self.vocabulary.characters is not None:
            shapes["characters.embedding.weight"] = (self.vocabulary.characters.size, settings.character_embedding)
        for number, (one, reader) in enumerate(zip(self.config.strings, self.string_readers, strict=True)):
            shapes[f"strings.{number}.embedding.weight"] = (reader.tokenizer.size, one.embedding)
        sizes = zip(self.vocabulary.feature_counts, self._feature_sizes(), strict=False)
        shapes |= {f"features.embeddings.{place}.weight": shape for place, shape in enumerate(sizes)}
        chain: Shapes = {"start": (tags,), "transitions": (tags, tags), "end": (tags,)}
        parts = {f"crf.{kind}{part}": shape for part, shape in chain.items() for kind in ("", "forbidden_")}
        return shapes | (parts if settings.crf else {})

    def compile(self, weights: Arrays) -> "CompiledTagger":
        settings = self.config.model
        return CompiledTagger(self, settings.shortened(weights, *(["words.weight"] if settings.embedding else [])))


class CompiledTagger:
    """Sentences to a score for each tag of each token, and to the best tags, with no PyTorch call inside."""

    def __init__(self, model: TagModel, weights: Arrays) -> None:
        self.speller, (body, *others) = model.vocabulary, model.layers()
        count = len(others) - len(model.config.strings)
        spelling, strings = others[:count], others[count:]
        self.chain = Chain.of(weights, "crf") if model.config.model.crf else None
        plain = dequantise(weights)
        self.words = plain.get("words.weight")
        if model.config.model.one_hot:
            self.words = np.eye(self.speller.words.size, dtype=np.float32)
        self.characters = CompiledCharacters("characters", weights, spelling[0]) if spelling else None
        self.features = [plain[f"features.embeddings.{n}.weight"] for n in range(len(model._feature_sizes()))]
        self.strings = CompiledStrings(strings, weights, model.string_readers) if model.config.strings else None
        self.known = KnownWords(self._vectors)
        self.encoder = Encoder(body, weights, words=self._vectors if self.strings is None else None, output="scores")

    def scores(self, sentences: Ragged) -> np.ndarray:
        """The score of every tag for every token (N x K), sentence after sentence."""
        if self.strings is None:
            return self.encoder(sentences.data, sentences.lengths)
        vectors = self.strings([one.tolist() for one in sentences])
        if self.reads_words:
            vectors = np.concatenate([self.known(sentences.data.tolist()), vectors], axis=1)
        return self.encoder(vectors, sentences.lengths)

    @property
    def reads_words(self) -> bool:
        """Whether it looks at words themselves, and not at strings only."""
        return self.words is not None or self.characters is not None or bool(self.features)

    def _vectors(self, new: list[str]) -> np.ndarray:
        """What each of some distinct words is made of, W x E."""
        found, parts = self.speller(new), []
        if self.words is not None:
            parts.append(self.words.take(found.ids, axis=0))
        if self.characters is not None:
            parts.append(self.characters(found.characters, found.lengths))
        parts += [table.take(found.features[:, place], axis=0) for place, table in enumerate(self.features)]
        return np.concatenate(parts, axis=1)


def best_tags(scores: np.ndarray, sentences: Ragged, chain: Chain | None) -> Ragged:
    """The ids of the tags with the best scores (N x K) in each sentence; of the best sequence by a chain, if any."""
    if chain is None:
        return sentences.with_data(scores.argmax(axis=1))
    try:
        return sentences.with_data(best_sequences(scores, sentences.lengths, chain)[0])
    except ValueError as error:
        raise UserError(f"{error}: the model is damaged, copy it again or train it anew") from None


def _groups(sentences: Ragged) -> Iterator[Ints]:
    """The places of sentences of like length."""
    if len(sentences) == 1:  # the answer to one question should not wait for sorting
        yield np.zeros(1, np.int64)
    else:
        yield from by_length(sentences.lengths, SENTENCES, tokens=TOKENS)


def _ready(tokens: Any) -> tuple[bool, list[Tagging]]:
    """Whether ready tokens are those of one sentence, and the sentences."""
    if isinstance(tokens, str):
        raise UserError("tokens are a list of words: give a text that is not cut yet as predict(text)")
    given = list(tokens)
    single = bool(given) and all(isinstance(word, str) for word in given)
    sentences = [given] if single else given
    for sentence in sentences:
        listed = isinstance(sentence, Iterable) and not isinstance(sentence, str)
        if not listed or not all(isinstance(word, str) for word in sentence):
            raise UserError("tokens are words: give predict(tokens=['Ask', 'Ada']), or a list of such lists")
    return single, [join(list(sentence)) for sentence in sentences]


# The task


class Tag(Task[Sentence, TagModel]):
    """A tag for each token."""

    name = "tag"
    about = "Train a tagger: one label for each token."
    records, unit, counted = "sentences", "tokens", "tokens"
    Recipe, Model, Options = TagRecipe, TagModel, EnsembleOptions
    metrics = (
        Metric("accuracy", percent=True),
        Metric("unseen_accuracy", "unseen words", percent=True),
        Metric("spans.f1", "span F1", percent=True),
    )
    headlines = (metrics[2], metrics[0])
    example = 'model.predict("A sentence.").tags'

    # Records

    def reader(self, data: DataSettings) -> TaggedReader:
        return TaggedReader(
            format=data.format,
            token=data.token_column,
            tag=data.tag_column,
            comments=data.comments,
            encoding=data.encoding,
        )

    def key(self, record: Sentence) -> tuple[Any, ...]:
        return record.tokens, record.tags

    def text_of(self, record: Sentence) -> str:
        return " ".join(record.tokens)

    def settle(self, parts: dict[str, list[Sentence]], recipe: TagRecipe, say: Say) -> Data[Sentence]:
        """Valid tags, of which the training set knows at least two; what is odd about them is said, not hidden."""
        scheme = _scheme(recipe.data, parts["train"], say)
        valid = {split: repaired(sentences, scheme, SPLITS[split], say) for split, sentences in parts.items()}
        data = super().settle(valid, recipe, say)
        data.train = draw_labelled(data.train, recipe.data.labels, recipe.train.seed, self.records)
        data.facts["scheme"] = scheme
        known = {tag for sentence in data.train for tag in sentence.tags}
        if len(known) < 2:
            raise UserError(
                f"all training tokens have the tag {next(iter(known))!r}: a tagger needs at least two, "
                "so look whether data.tag_column is right"
            )
        for split, sentences in data.held_out.items():
            _tell_unknown(sentences, f"{SPLITS[split]} tokens", known, data.facts["scheme"], say)
        _tell_overlap(data, say)
        return data

    def read_set(self, model: TagModel, recipe: TagRecipe, source: Source, name: str, say: Say) -> list[Sentence]:
        name = Path(name).name
        sentences = repaired(super().read_set(model, recipe, source, name, say), model.scheme, name, say)
        _tell_unknown(sentences, f"tokens of {name}", model.tags, model.scheme, say)
        return sentences

    # The network

    def fit_vocabulary(self, recipe: TagRecipe, data: Data[Sentence]) -> Speller:
        text = recipe.text
        vectors = known_vectors(recipe, data, (token for sentence in data.train for token in sentence.tokens))
        extra = () if vectors is None else vectors.words
        if (language := data.starts.get("start")) is not None:
            extra = language.tokenizer.tokens[len(language.tokenizer.settings.special_tokens) :]
        return Speller.fit(
            (token for sentence in data.train for token in sentence.tokens),
            min_count=text.min_count,
            size=text.size,
            extra=extra,
            characters=recipe.model.character_hidden > 0,
            character_count=text.character_count,
            prefixes=text.prefixes if recipe.model.case_embedding else (),
            suffixes=text.suffixes if recipe.model.case_embedding else (),
            affix_count=text.affix_count,
            lowercase=text.lowercase,
            longest=text.longest,
        )

    def embedded(self, vocabulary: Speller) -> dict[str, Embedded]:
        return {"vectors": Embedded("words", vocabulary.words.tokens, vocabulary.words.counts)}

    def vocabulary_counts(self, vocabulary: Speller) -> Iterator[tuple[np.ndarray, str]]:
        yield vocabulary.words.counts, "training words"

    def examples(self, recipe: TagRecipe, data: Data[Sentence], vocabulary: Speller) -> Sequence[Sentence]:
        """The training sentences, those with a span as often as the recipe says."""
        if recipe.batch.with_spans == 1 or data.facts["scheme"] is None:
            return data.train
        with_spans = [sentence for sentence in data.train if set(sentence.tags) != {OUTSIDE}]
        return [*data.train, *with_spans * (recipe.batch.with_spans - 1)]

    def lengths(self, examples: Sequence[Sentence]) -> list[int]:
        return [len(sentence.tokens) for sentence in examples]

    def make(self, recipe: TagRecipe, data: Data[Sentence], vocabulary: Speller, examples: Any) -> TagModel:
        scheme = data.facts["scheme"]
        tags = [sentence.tags for sentence in data.train]
        names = tag_names(tags, scheme, recipe.model.scheme)
        strings = data.starts.get("strings", {})
        parts = {"tags": names, "scheme": scheme, "strings": string_models(strings)}
        config = TaggerConfig.new("tag", recipe, model=recipe.model, **parts)
        network = built(lambda: TagModel.build(config, vocabulary), recipe.model)
        self.begin_with(data.starts, network, vocabulary)
        tagger = TagModel(config, vocabulary, network)
        tagger.lexicon = MostFrequentTag.fit([sentence.tokens for sentence in data.train], tags)
        return tagger

    def begin_with(self, starts: dict[str, Any], network: Any, vocabulary: Speller) -> None:
        if (language := starts.get("start")) is not None:
            put_under(language, network.words, network.body, word_rows(language, vocabulary.words.tokens))
        if strings := starts.get("strings"):
            fill_strings(strings.values(), network.strings)

    def check_start(self, start: TagModel, data: Data[Sentence]) -> None:
        for sentence in data.train:
            if start.encode_tags(sentence.tags) is None:
                tag = next((tag for tag in sentence.tags if start.encode_tags([tag]) is None), sentence.tags[0])
                raise UserError(f"{sentence.where} has the tag {tag!r}, which the model to start from does not know")

    def go_on_from(self, start: TagModel, recipe: TagRecipe) -> TagModel:
        tagger = super().go_on_from(start, recipe)
        tagger.lexicon = start.lexicon
        return tagger

    def batch(self, run: Training[Sentence, TagModel], rows: np.ndarray) -> "SentenceBatch":
        run.once("strings", lambda: self._keep_strings(run))
        sentences = [run.examples[row] for row in rows.tolist()]
        for noise in run.once("noise", lambda: self._noise(run)):
            sentences = [noise(sentence) for sentence in sentences]
        tokens = words([sentence.tokens for sentence in sentences])
        tags = [ids for sentence in sentences if (ids := run.model.encode_tags(sentence.tags)) is not None]
        return SentenceBatch(run.model.inputs(tokens), tokens.packed(np.concatenate(tags)), len(rows))

    def _keep_strings(self, run: Training[Sentence, TagModel]) -> None:
        """Read all sentences with the character models once, where there are some."""
        if run.model.config.strings:
            if "strings" not in run.data.kept:
                run.data.kept["strings"] = StringStates()
            run.model.string_states = run.data.kept["strings"]
            every = (sentence.tokens for sentence in (*run.data.train, *run.data.dev))
            run.model.string_states.keep(every, run.model.read_strings)

    def _noise(self, run: Training[Sentence, TagModel]) -> list[SwappedSpans | MadeUpWords]:
        """What is done to training sentences before they are learned from."""
        noise: list[SwappedSpans | MadeUpWords] = []
        batch, scheme = run.recipe.batch, run.model.scheme
        if batch.swapped and scheme is not None:
            noise.append(SwappedSpans(run.data.train, scheme, batch.swapped))
        if batch.made_up:
            noise.append(MadeUpWords(run.data.train, batch.made_up))
        return noise

    def loss(self, run: Training[Sentence, TagModel], batch: "SentenceBatch", state: Any) -> "Loss":
        """The mean loss of some sentences per token."""
        import torch

        from elman.train.task import Loss

        scores, tags = run.network(batch.inputs), torch.from_numpy(batch.tags)
        return Loss(run.network.loss(scores, tags, batch.inputs.tokens.batch_sizes), len(tags))

    def watch(self, run: Training[Sentence, TagModel]) -> dict[str, float]:
        scores, loss = run.model.measure(run.data.dev, run.recipe.report.strict)
        spans = {} if scores.spans is None else {"span_f1": scores.spans.overall.f1}
        error = 1 - spans.get("span_f1", scores.accuracy)
        return {"loss": loss, "accuracy": scores.accuracy, **spans, "error": error}

    # Scores

    def baselines_need_data(self, recipe: TagRecipe) -> bool:
        return False  # the lexicon is in the folder

    def score(
        self, model: TagModel, records: Sequence[Sentence], recipe: TagRecipe, train: Sequence[Sentence]
    ) -> dict[str, Any]:
        scores, loss = model.measure(records, recipe.report.strict)
        return {"loss": loss, "sentences": len(records), **scores.to_dict()}

    def baselines(self, model: TagModel, train: Sequence[Sentence], recipe: TagRecipe, say: Say) -> dict[str, Score]:
        """Every word has the tag that it mostly had in training."""

        def score(records: Sequence[Sentence]) -> dict[str, Any]:
            tokens, gold = [record.tokens for record in records], [record.tags for record in records]
            return tag_scores(tokens, gold, model.lexicon.predict(tokens), model.lexicon.tags).to_dict()

        return {"most frequent tag per word": score}

    # Words

    def describe(self, run: Training[Sentence, TagModel]) -> str:
        data, settings, scheme = run.data, run.recipe.model, run.model.scheme
        tokens = sum(len(sentence.tokens) for sentence in data.train)
        return (
            f"{'2 x ' if settings.direction in (None, 'both') else ''}{settings.words()}"
            f"{' + CRF' if settings.crf else ''}, {run.model.parameters:,} parameters; "
            f"{len(data.train):,} sentences of {tokens:,} tokens to train on, {len(data.dev):,} held out; "
            f"{len(run.model.tags)} tags{f' ({scheme} read, {settings.scheme} learned)' if scheme else ''}; "
            f"{run.model.vocabulary.words.size:,} words"
        )

    def sentence(self, recipe: TagRecipe, report: "Report") -> str:
        model = recipe.model
        return (
            f"A tagger: {model.layers} layers of {model.cell} with {model.hidden} units in each direction"
            f"{', a CRF over the tags' if model.crf else ''}"
        )

    def note(self, recipe: TagRecipe) -> str:
        counted = "strictly" if recipe.report.strict else "as conlleval counts them"
        return f"Unseen are the words that stand nowhere in the training set. Spans are counted {counted}."

    def details(self, scores: Mapping[str, Any]) -> str:
        """Spans by type where there are any, tags, and what was taken for what."""
        parts = []
        if "spans" in scores:
            by_type = classification.scores_from(scores["spans"]["by_type"])
            parts.append("spans\n" + SpanScores(by_type).text())
        confusion = _confusion(scores)
        parts.append("tags\n" + classification.score_table(confusion.by_class))
        parts.append("confusion: right, predicted\n" + classification.confusion_table(confusion, WIDTH))
        return "\n\n".join(parts)

    def draw(self, report: "Report", folder: Path) -> dict[str, str]:
        classification.draw_confusion(_confusion(report[report.sets[-1]]), folder / "confusion.png")
        return {"confusion.png": "what was taken for what"}


SPLITS = {"train": "training", "dev": "held-out", "test": "test"}


@dataclass(frozen=True)
class SentenceBatch:
    """Some sentences as the network reads them, and their tags' ids (N), packed."""

    inputs: Any
    tags: np.ndarray
    sentences: int

    def __str__(self) -> str:
        return f"of {self.sentences} sentences, {len(self.tags)} tokens"


def tag_names(tags: Sequence[Sequence[str]], scheme: Scheme | None, learned: Scheme) -> list[str]:
    """The tags that a network chooses from: those of the training set, spans written in the scheme it learns in.

    >>> tag_names([["I-PER", "I-PER", "O"]], "IOB1", "BIOES")
    ['B-PER', 'E-PER', 'O']
    """
    return sorted({tag for row in tags for tag in (row if scheme is None else convert(row, learned))})


def _scheme(data: DataSettings, sentences: Sequence[Sentence], say: Say) -> Scheme | None:
    """The scheme that the settings name, or that the tags look like."""
    if data.scheme != "auto":
        return None if data.scheme == "plain" else data.scheme
    scheme = detect_scheme(sentence.tags for sentence in sentences)
    if scheme is None:
        _tell_odd_tags(sentences, say)
    return scheme


def _tell_odd_tags(sentences: Sequence[Sentence], say: Say) -> None:
    """A few tags that mark no span among many that do are rather mistakes than parts of speech."""
    counts = Counter(tag for sentence in sentences for tag in sentence.tags)
    odd = {tag for tag in counts if tag != OUTSIDE and tag.partition("-")[0] not in ("B", "I", "E", "S")}
    strays = sum(counts[tag] for tag in odd)
    if strays * ODD <= counts.total() - strays - counts[OUTSIDE]:
        sentence = next(sentence for sentence in sentences if odd & set(sentence.tags))
        tag = next(tag for tag in sentence.tags if tag in odd)
        say(
            f"warning: {strays:,} of the training tags mark no span, the first {tag!r} at {sentence.where}, so every "
            "tag stands for itself and there is no span F1: mend them, or say data.scheme=plain if it is meant so"
        )


def repaired(sentences: Sequence[Sentence], scheme: Scheme | None, name: str, say: Say) -> list[Sentence]:
    """Sentences with valid tags: those that are not are repaired as conlleval reads them, and counted."""
    if scheme is None:
        return list(sentences)
    valid, changed, where = [], 0, ""
    for sentence in sentences:
        try:
            mended = repair(sentence.tags, scheme)
        except UserError as error:
            raise UserError(f"{sentence.where}: {error}") from None
        valid.append(replace(sentence, tags=tuple(mended.tags)))
        changed += mended.changed
        if mended.first is not None and not where:
            where = f"{sentence.where}, token {mended.first + 1} ({sentence.tags[mended.first]})"
    if changed:
        say(
            f"warning: {changed:,} of the {name} tags are not valid {scheme} and are read as conlleval reads them, "
            f"the first at {where}"
        )
    return valid


def _tell_unknown(
    sentences: Sequence[Sentence], what: str, known: Iterable[str], scheme: Scheme | None, say: Say
) -> None:
    """Say which tags are none of those of training; which types, where they write spans."""

    def kind(tag: str) -> str:
        return tag if scheme is None or tag == OUTSIDE else split_tag(tag)[1]

    kinds = set(map(kind, known))
    unknown = [(tag, sentence.where) for sentence in sentences for tag in sentence.tags if kind(tag) not in kinds]
    if unknown:
        tag, where = unknown[0]
        others = sorted(kinds if scheme is None else kinds - {UNTYPED, OUTSIDE})
        near = f": {nearest(kind(tag), others)}" if others else ""
        say(
            f"warning: {len(unknown):,} {what} have a tag that training never saw and count as mistakes, "
            f"the first {tag!r} in the sentence at {where}{near}"
        )


def _tell_overlap(data: Data[Sentence], say: Say) -> None:
    seen = {sentence.tokens for sentence in data.train}
    for split, sentences in data.held_out.items():
        both = [sentence for sentence in sentences if sentence.tokens in seen]
        if both:
            say(
                f"warning: {len(both):,} of the {len(sentences):,} {SPLITS[split]} sentences stand in the training set "
                f"too, the first at {both[0].where}"
            )


def _confusion(scores: Mapping[str, Any]) -> classification.Confusion:
    """The matrix behind a report."""
    by_tag = classification.scores_from(scores["by_tag"])
    index = {label: place for place, label in enumerate(by_tag)}
    counts = np.diag([score.correct for score in by_tag.values()])
    for right, guess, count in scores["confused"]:
        counts[index[right], index[guess]] = count
    return classification.Confusion(tuple(by_tag), counts)
