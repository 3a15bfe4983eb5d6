"""Translators: p(target | source), anything from a line to a line.

model = elman.fit("translate", train=["train.de", "train.en"], out="runs/de-en")
model.predict("Zwei Hunde spielen im Schnee.").text
model.predict("Zwei Hunde spielen im Schnee.", n_best=3, require=["snow"])
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Unpack, cast, overload

import numpy as np
from pydantic import Field, field_validator, model_validator

from elman.baselines.neighbours import CopySource, NearestPair
from elman.batches.examples import ExampleBatches, fingerprint
from elman.decode import Hypothesis, SearchTree, StepModel
from elman.errors import UserError, nearest
from elman.metrics.bleu import corpus_scores
from elman.metrics.edits import edit_scores
from elman.metrics.metric import Metric
from elman.ragged import Ints, Ragged
from elman.records.pairs import Format, Pair, PairReader, collect_pairs, read_pairs, references
from elman.records.places import RecordError
from elman.records.splits import Key, split_pairs
from elman.runtime import CompiledTranslator, TranslationParts
from elman.runtime.quantise import Arrays
from elman.runtime.translation import ATTENDS
from elman.runtime.weights import Shapes
from elman.tasks.ensemble import MembersSection, with_ensemble
from elman.tasks.model import check_texts, listed
from elman.tasks.predict import PredictOptions, read_texts
from elman.tasks.search import Search, SearchOptions, SearchSettings, TranslateOptions
from elman.tasks.sections import (
    DataSection,
    EmbeddingSection,
    ForcingSection,
    LayersSection,
    Name,
    TwoWaySection,
    column,
)
from elman.tasks.task import Data, Say, Score, Source, Task, Training
from elman.tasks.transfer import StartSection, extended, put_under, same_rows
from elman.tasks.translation import Translation, joined, replace_unknown
from elman.tasks.vectors import Embedded, VectorsSection
from elman.tasks.writer import PairBatch, Writer, WriterConfig, attention_size, make_batch, make_decoder, target_loss
from elman.text import Tokenizer, TokenizerSettings
from elman.text.profile import SourceProfile
from elman.text.settings import Kind
from elman.text.sides import Sides, fit_side
from elman.text.tokenizer import normaliser
from elman.text.windows import windows
from elman.train.recipe import BatchSection, Section

if TYPE_CHECKING:
    from elman.nn.translation import TranslationNetwork
    from elman.tasks.report import Report
    from elman.train.task import Loss

SENTENCES, TOKENS = 64, 4096  # searched at a time, at most
SHOWN = 5  # translations in the model card
ENDLESS = 10  # times the longest source: a text of a single word is cut from there on
OWN = ("prefix", "require", "forbid")  # what a JSON record may say for itself
SAMPLE, LEAST = 2000, 40  # characters that are looked at before the language is doubted: at most, at least


# The recipe


class DataSettings(DataSection):
    """Where the pairs come from: a corpus of the catalogue, or the user's own files."""

    train: tuple[str, ...] = Field((), description="two parallel files, source and target, or files of pairs")
    format: Format | None = Field(None, description="follows the files' names")
    source: Name | None = Field(None, description="column or key of the source; of a corpus: its language")
    target: Name | None = Field(None, description="the same of the target")
    split_by: Key = Field("pair", description="what must not stand in two parts where a part is split off")
    dev_fraction: float = Field(0.05, gt=0, lt=1, description="of train, held out where dev is not given")
    test_fraction: float = Field(0.0, ge=0, lt=1, description="of train, held out where test is not given")
    dev_size: int = Field(2000, ge=1, description="pairs held out so, at most")
    test_size: int | None = Field(None, ge=1, description="pairs held out for test, at most")
    stress: bool = Field(True, description="of a pronouncing dictionary: vowels keep the digit of their stress")
    longest: int = Field(100, ge=1, description="training pairs with a side of more tokens are left out")
    drop_duplicates: bool = Field(False, description="of training pairs that are the same, one is kept")

    @model_validator(mode="after")
    def _parts_fit(self) -> "DataSettings":
        if self.dev_fraction + self.test_fraction >= 1:
            raise ValueError("data.dev_fraction and data.test_fraction leave nothing to train on")
        return self


class TextSettings(TokenizerSettings):
    """What a token is, on either side."""

    kind: Kind = "bpe"
    target_kind: Kind | None = Field(None, description="of the target, where it is another")
    target_size: int | None = Field(
        None, ge=3, strict=True, description="of the target's vocabulary, where it is another"
    )
    joint: bool = Field(False, description="one vocabulary for both sides")
    same_as: str | None = Field(
        None, description="a translator's folder, to take its vocabularies: models of an ensemble need the same"
    )

    @model_validator(mode="after")
    def _joint_is_one(self) -> "TextSettings":
        if self.joint and (self.target_kind or self.target_size):
            raise ValueError("text.joint makes one vocabulary: leave text.target_kind and text.target_size out")
        return self

    def side(self, target: bool) -> TokenizerSettings:
        """The settings of one side's tokenizer."""
        plain = self.model_dump(exclude={"target_kind", "target_size", "joint", "same_as"})
        if target:
            plain |= {"kind": self.target_kind or self.kind, "size": self.target_size or self.size}
        return TokenizerSettings.model_validate(plain)


class ModelSettings(VectorsSection, StartSection, EmbeddingSection, TwoWaySection):
    """The network: an encoder that reads both ways, a decoder that attends to what was read."""

    layers: int = Field(1, ge=1, le=64, description="of the encoder")
    decoder_layers: int | None = Field(None, ge=1, le=64, description="as many as the encoder's where not given")
    hidden: int = Field(256, ge=1, description="of the decoder")
    encoder_hidden: int | None = Field(
        None, ge=1, description="in each direction; so that both make model.hidden where not given"
    )
    bidirectional: bool = Field(True, description="the encoder reads both ways")
    reverse_source: bool = Field(False, description="the source is read from its end (Sutskever et al. 2014)")
    embedding: int = Field(256, ge=0, description="size of a token's vector; 0 is one-hot input")
    vectors: str | None = Field(
        None, description="word vectors that the source begins with: a model's folder, or a file"
    )
    target_vectors: str | None = Field(None, description="word vectors that the target begins with")
    tied: Literal["none", "target", "all"] = Field(
        "target", description="the softmax is the target embedding; all: and that is the source's too"
    )
    bridge: Literal["copy", "linear", "zero"] = Field("linear", description="encoder's last state to decoder's first")
    decoder: Literal["plain", "bahdanau", "luong", "luong-feeding", "tutorial", "tutorial-attention"] = "luong"
    attention: Literal[
        "dot", "scaled-dot", "general", "reduced-rank", "additive", "cosine", "plain-cosine", "location", "fixed-length"
    ] = "general"
    longest: int = Field(
        50, ge=1, description="source places that the location and fixed-length attentions can look at"
    )
    token_dropout: float = Field(0.0, ge=0, lt=1, description="share of tokens that are made unknown")
    input_dropout: float = Field(0.3, ge=0, lt=1, description="of embedded tokens")
    output_dropout: float = Field(0.3, ge=0, lt=1, description="before the softmax")
    start: str | None = Field(
        None, description="the folder of a language model of the source for the encoder to begin with"
    )
    decoder_start: str | None = Field(None, description="the folder of one of the target for the decoder to begin with")

    starts: ClassVar[tuple[str, ...]] = ("start", "decoder_start")
    not_followed: ClassVar[tuple[str, ...]] = ("projection", "learned_state")  # encoder and decoder share these keys

    @classmethod
    def following(cls, key: str, language: Any) -> dict[str, Any]:
        found = super().following(key, language)
        layers, hidden, direction = found.pop("layers"), found.pop("hidden"), found.pop("direction")
        if key == "start":  # one that reads backwards reads the source from its end
            turned = {"direction": "forward" if direction == "backward" else direction}
            turned["reverse_source"] = direction == "backward"
            return {**found, **turned, "layers": layers, "encoder_hidden": hidden}
        if direction == "backward":
            raise UserError("model.decoder_start reads backwards, and a decoder writes forwards: give another model")
        del found["bidirectional"]
        return {**found, "decoder_layers": layers, "hidden": hidden}

    @classmethod
    def following_text(cls, key: str, tokenizer: Tokenizer) -> dict[str, Any]:
        settings = tokenizer.settings
        if key == "decoder_start":
            return {"target_kind": settings.kind, "target_size": settings.size, "joint": False}
        return {**super().following_text(key, tokenizer), "joint": False}

    @model_validator(mode="after")
    def _parts_fit(self) -> "ModelSettings":
        both = self.joined
        if self.merge != "concat" and not self.bidirectional:
            raise ValueError("model.merge joins two directions: it needs model.bidirectional = true")
        if self.tied != "none" and not self.embedding:
            raise ValueError("model.tied needs model.embedding above 0: with one-hot input give model.tied = none")
        if self.encoder_hidden is None and self.hidden % both:
            raise ValueError("model.hidden should be even, half of it for each direction of the encoder")
        if self.projection % both:
            raise ValueError("model.projection should be even, half of it for each direction of the encoder")
        if self.projection and self.projection // both >= self.encoder_size:
            raise ValueError(
                f"model.projection should be smaller, so that the encoder's {self.projection // both} entries in each "
                f"direction are fewer than its {self.encoder_size}"
            )
        memory, state = both * (self.projection // both or self.encoder_size), self.projection or self.hidden
        compares = self.attends and self.attention in ("dot", "scaled-dot", "cosine", "plain-cosine")
        if compares and memory != state:
            raise ValueError(
                f"model.attention = {self.attention} compares the decoder's {state} entries with the encoder's "
                f"{memory}: leave model.encoder_hidden out, or take general"
            )
        if self.bridge == "copy" and (memory, both * self.encoder_size) != (state, self.hidden):
            raise ValueError(
                f"model.bridge = copy cannot put {both * self.encoder_size} entries into {self.hidden}: take linear"
            )
        if self.attention == "fixed-length" and self.decoder not in ("bahdanau", "tutorial-attention"):
            raise ValueError(
                "model.attention = fixed-length sees the step's input: it goes with the bahdanau decoder and "
                "tutorial-attention"
            )
        if self.tied != "none" and self.decoder.startswith("tutorial") and self.embedding != state:
            raise ValueError(
                f"the softmax of model.decoder = {self.decoder} reads the state, of {state}: "
                f"take model.embedding = {state}, or model.tied = none"
            )
        if self.direction == "backward":
            raise ValueError('model.direction = "backward" is model.reverse_source = true with "forward": say that')
        if self.decoder_start and self.connections == "dense" and self.decoder in ("bahdanau", "luong-feeding"):
            raise ValueError(
                "model.decoder_start with dense connections needs a decoder that is fed nothing: take luong"
            )
        if self.target_vectors and self.tied == "all":
            raise ValueError("model.tied = all makes one matrix of both embeddings: model.vectors are for both")
        return self

    @property
    def attends(self) -> bool:
        """Whether the decoder has an attention."""
        return self.decoder not in ("plain", "tutorial")

    @property
    def readout(self) -> int:
        """The size of what the softmax reads."""
        if self.decoder.startswith("tutorial"):
            return self.projection or self.hidden
        return self.hidden if self.tied == "none" else self.embedding

    @property
    def encoder_size(self) -> int:
        """The encoder's hidden size in each direction."""
        return self.encoder_hidden or self.hidden // self.joined

    @property
    def joined(self) -> int:
        """How many directions of the encoder stand side by side in its output; their mean is one."""
        return 2 if self.bidirectional and self.merge == "concat" else 1

    @property
    def encoder_options(self) -> dict[str, Any]:
        """What of the encoder's layers is not the decoder's."""
        sizes = {"hidden_size": self.encoder_size, "proj_size": self.projection // self.joined}
        return {**sizes, "bidirectional": self.bidirectional}

    @property
    def decoder_options(self) -> dict[str, Any]:
        """What of the decoder's layers is not the encoder's; its first state is the bridge's, unless that has none."""
        learned = self.learned_state and self.bridge == "zero"
        return {"num_layers": self.decoder_layers or self.layers, "merge": "concat", "learned_state": learned}

    def attending(self) -> str:
        """The decoder and its attention in a few words."""
        plain = "no attention" if self.decoder == "plain" else f"{self.decoder} decoder"
        return f"{self.decoder} decoder, {self.attention} attention" if self.attends else plain

    @property
    def places(self) -> int | None:
        """How many places of a source the attention can look at, from the first one read; None where all."""
        fixed = self.attention in ("location", "fixed-length") and self.attends
        return self.longest if fixed else None


class LossSettings(ForcingSection):
    """What the network is trained to do."""

    smoothing: float = Field(0.1, ge=0, lt=1, description="share of the probability that is spread over all tokens")


class BatchSettings(BatchSection):
    """How pairs are put together."""

    chosen: ClassVar[tuple[str, int, int]] = ("tokens", 2048, 128)

    tokens: int | None = Field(
        None,
        ge=1,
        description="target tokens side by side, in pairs of similar length; 2048, or down to 128 for small data, "
        "if not given",
    )


class ReportSettings(Section):
    """How the scores are counted."""

    references: Literal["pair", "source"] = Field(
        "pair", description="a line is a pair, or a source with all its targets, each of which is right"
    )
    tokenize: str | None = Field(None, description="how sacrebleu cuts words for BLEU: 13a unless set; char, zh, ...")
    baselines: bool = Field(True, description="copying the source, and the most similar training pair's target")

    @field_validator("tokenize")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        from sacrebleu.metrics.bleu import BLEU  # slow to import, and mostly not needed

        if value is not None and value not in BLEU.TOKENIZERS:
            raise ValueError(f"report.tokenize: {nearest(value, BLEU.TOKENIZERS)}")
        return value


class TranslateRecipe(Section):
    """Everything a translator's run depends on."""

    task: Literal["translate"] = "translate"
    data: DataSettings = DataSettings()
    text: TextSettings = TextSettings()
    model: ModelSettings = ModelSettings()
    loss: LossSettings = LossSettings()
    batch: BatchSettings = BatchSettings()
    train: MembersSection = MembersSection(average="ema")
    search: SearchSettings = SearchSettings()
    report: ReportSettings = ReportSettings()

    @model_validator(mode="after")
    def _one_matrix(self) -> "TranslateRecipe":
        if self.model.tied == "all" and not self.text.joint:
            raise ValueError("model.tied = all makes one matrix of both embeddings: it needs text.joint = true")
        return self


# The model


class TranslatorConfig(WriterConfig):
    """What a translator's config.json holds."""

    model: ModelSettings
    longest: int = Field(ge=1)
    """Tokens of the longest source that it has learned from: a longer one is translated in parts."""
    tokens_per_character: float = Field(ge=0)
    foreign: tuple[int, ...] = ()


class Translator(Writer[TranslatorConfig, Sides, "TranslationNetwork", CompiledTranslator]):
    """p(target | source).

    `others` are further models with the same vocabularies, whose probabilities are averaged with its own.
    """

    task, what = "translate", "translation"
    Config, Recipe = TranslatorConfig, TranslateRecipe
    others: "tuple[Translator, ...]" = ()

    @property
    def sides(self) -> Sides:
        """The two vocabularies."""
        return self.vocabulary

    @property
    def settings(self) -> ModelSettings:
        """Those of its network."""
        return self.config.model

    @property
    def longest(self) -> int:
        """Tokens of the longest source that it, and all others of the ensemble, have learned from."""
        return min(model.config.longest for model in self.members)

    def check_beside(self, other: "Translator") -> None:
        if other.vocabulary.to_json() != self.vocabulary.to_json():
            raise UserError("models of an ensemble need the same vocabularies: train others with -s text.same_as=MODEL")
        if other.settings.reverse_source != self.settings.reverse_source:
            raise UserError("models of an ensemble must read sources alike: one has model.reverse_source")

    # Translating

    @overload
    def predict(self, texts: str, **options: Unpack[SearchOptions]) -> Translation: ...  # type: ignore[overload-overlap]

    @overload
    def predict(self, texts: Iterable[str], **options: Unpack[SearchOptions]) -> list[Translation]: ...

    def predict(self, texts: str | Iterable[str], **options: Unpack[SearchOptions]) -> Translation | list[Translation]:
        """Translate a text, or each of several; the options are those of `Search`."""
        return translated(self.translate, texts, options)

    def translate(self, texts: Sequence[str], searches: Sequence[Search]) -> list[Translation]:
        """Translate texts, each with what is asked of it; those that are too long in parts."""
        parts = [self.parts(text, search) for text, search in zip(texts, searches, strict=True)]
        pieces = [part for several in parts for part in several]
        asked = [search for several, search in zip(parts, searches, strict=True) for _ in several]
        found = iter(self._translate(pieces, asked))
        return [joined(text, [next(found) for _ in several]) for text, several in zip(texts, parts, strict=True)]

    def parts(self, text: str, search: Search) -> list[str]:
        """A text in parts that the network is used to, mostly one; refused where they cannot be what is asked for."""
        # What is beyond the places of an attention is never attended to; a word of pages is no word.
        inside = self.settings.places is not None or len(self.sides.read(text)) > ENDLESS * self.longest
        several = windows(text, self.longest, lambda part: len(self.sides.read(part)), inside=inside)
        if len(several) > 1 and (search.prefix or search.require):
            raise UserError(
                f"the text {several[0][:30]!r} ... has more than {self.longest} tokens: it is translated in parts, "
                "which cannot all have the prefix and the required words: shorten it, or leave those out"
            )
        return several

    def decode(self, memory: Any, state: Any = None, **options: Unpack[SearchOptions]) -> Any:
        """Write what follows from a memory that the caller gives in the place of the encoder's outputs.

        `memory` is S x M, a row for each place that the decoder attends to, in the order of the text; or a list of
        such, for a list of translations. `state` is what the encoder would have left, {"1.h": ..., "1.c": ...}, as
        `states(text).final` has it, from which the bridge makes the decoder's first state; zeros where it is not given
        (of a list, one for each). The options are those of `Search`.
        """
        from elman.tasks.beginnings import attended, memories_of, memory_steps

        if self.others:
            raise UserError("the models of an ensemble have memories of their own: decode with one of them")
        search, (memories, single) = Search.of(options), memories_of(self, memory)
        if search.replace_unknown:
            raise UserError("a memory has no words that could replace unknown ones: leave replace_unknown out")
        states = [state] * len(memories) if single or state is None else list(state)
        if len(states) != len(memories):
            raise UserError(f"there are {len(memories)} memories and {len(states)} states: give one for each")
        if not memories:
            return []
        steps, places = memory_steps(self, memories, states), [np.arange(len(one)) for one in memories]
        names = [f"a memory of {len(one)} places" for one in memories]
        found = []
        for row, hypotheses in enumerate(self._search(names, places, [search] * len(memories), steps=steps)):
            n_best = self.alternatives(hypotheses)
            ids = n_best[0].ids
            one = Translation("", n_best, [str(place + 1) for place in places[row]], self.names_of(ids))
            if search.alignments:
                self.check_attends()
                table = np.zeros((0, len(places[row])), np.float32)
                if ids:
                    table = attended(steps, ids, self.start, row, len(memories))[:, : len(places[row])]
                one = replace(one, weights=table[:, ::-1] if self.settings.reverse_source else table)
            found.append(one)
        return found[0] if single else found

    def tree(self, text: str, **options: Unpack[SearchOptions]) -> SearchTree:
        """Everything that the search for one translation came across."""
        search, tree = Search.of(options), SearchTree()
        if search.sampling is not None:
            raise UserError("a text that is sampled has no tree of hypotheses: leave temperature out")
        self._search([text], [self.source_ids(text)], [search], tree)
        return tree

    def _translate(self, texts: Sequence[str], searches: Sequence[Search]) -> list[Translation]:
        sources = [self.source_ids(text) for text in texts]
        several = self.search_all(texts, sources, searches)
        found = [self._translation(*each) for each in zip(texts, sources, several, strict=True)]
        self._align(found, sources, searches)
        return [
            replace_unknown(one, self.sides) if search.replace_unknown else one
            for one, search in zip(found, searches, strict=True)
        ]

    def source_ids(self, text: str) -> Ints:
        """The ids that the encoder reads: from the end where it was trained so."""
        ids = self.sides.read(text)
        if not len(ids):
            raise UserError(f"the text {text!r} has no tokens that the model knows: give it some words")
        return ids[::-1].copy() if self.settings.reverse_source else ids

    def search(self, text: str, search: Search, steps: StepModel[Any]) -> list[Hypothesis]:
        """The best translations of one text that `steps` writes: in place of the model itself, one that differs."""
        return self._search([text], [self.source_ids(text)], [search], steps=steps)[0]

    def _translation(self, text: str, source: Ints, found: list[Hypothesis]) -> Translation:
        n_best, tokens = self.alternatives(found), self.sides.source.tokens
        names = [tokens[id] for id in (source[::-1] if self.settings.reverse_source else source).tolist()]
        return Translation(text, n_best, names, self.names_of(n_best[0].ids))

    # Scoring pairs, and where the model attends

    def encode(self, source: str, target: str) -> tuple[Ints, Ints]:
        """A pair as ids."""
        return self.source_ids(source), self.sides.say(target)

    def log_probs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """log p(target | source) of each pair, the end token counted."""
        return self.pair_log_probs([self.encode(*pair) for pair in pairs])

    def attention(self, pairs: Sequence[tuple[Ints, Ints]]) -> list[np.ndarray]:
        """Where each token of each target attends, the end token's place left out: T x S for each encoded pair."""
        tables = (table[:, : len(source)] for table, (source, _) in zip(super().attention(pairs), pairs, strict=True))
        return [table[:, ::-1] if self.settings.reverse_source else table for table in tables]

    def align(self, source: str, target: str) -> Translation:
        """A pair as if the model had written the target itself: its log-probability, and where each token attends."""
        if isinstance(target, str) and not target.strip():
            raise UserError("the target is empty: give it at least one character")
        pair = self.encode(source, target)
        (log_prob,) = self.log_probs([(source, target)])
        score = log_prob / (len(pair[1]) + 1) ** self.config.search.length_power
        found = [self._translation(source, pair[0], [Hypothesis(pair[1].tolist(), log_prob, score, True)])]
        self._align(found, [pair[0]], [Search(alignments=True)])
        return found[0]

    def _align(self, found: list[Translation], sources: list[Ints], searches: Sequence[Search]) -> None:
        """Put the weights of the attention where they are asked for."""
        asked = [row for row, search in enumerate(searches) if search.alignments or search.replace_unknown]
        if not asked:
            return
        self.check_attends()
        pairs = [(sources[row], np.array(found[row].n_best[0].ids, np.int64)) for row in asked]
        for row, table in zip(asked, self.attention(pairs), strict=True):
            found[row] = replace(found[row], weights=table)

    # Lines of `elman predict`

    def read(self, lines: Iterable[str], options: PredictOptions) -> Iterator[tuple[Any, Search]]:
        """The texts to translate, each with what is asked of it; one that cannot be translated so is a bad line."""
        search = Search.of(options.asked)
        search.control(self.sides)  # what no line can have is said before the first is read
        if search.n_best > 1 and search.alignments and not options.as_json:
            raise UserError("the alignment is that of the best translation: leave n_best out, or ask for JSON")
        watch = _Watch(self, options)
        for record in read_texts(Translate().reader(self._data()), lines, options):
            try:
                own = self.own_search(search, record.fields)
                ids = self.source_ids(record.source)
                if len(ids) > self.longest:
                    self.parts(record.source, own)  # refuses what cannot be asked of parts
            except UserError as error:
                options.bad(RecordError(record.where, f"cannot be translated: {error}"))
            else:
                watch.see(record, ids)
                yield record, own
        watch.finish()

    def length(self, record: tuple[Any, Search]) -> int:
        return len(record[0].source)

    def answers(self, records: Sequence[tuple[Any, Search]]) -> list[Translation]:
        return self.translate([pair.source for pair, _ in records], [search for _, search in records])

    def written(self, record: tuple[Any, Search], answer: Translation, options: PredictOptions) -> Iterator[str]:
        pair, search = record
        return self.lines_of(pair.where, pair.fields, {"text": pair.source}, answer, search, options)

    # The folder and the network

    @classmethod
    def load_vocabulary(cls, folder: Path, config: Any) -> Sides:
        return Sides.load(folder / "tokenizer.json")

    def about(self) -> str:
        return f"{self.settings.words()}, {self.settings.attending()}, {self.sides.source.settings.kind}"

    @classmethod
    def build(cls, config: TranslatorConfig, sides: Sides, smoothing: float = 0.0) -> "TranslationNetwork":
        from torch import nn

        from elman.nn.embedding import clear_padding
        from elman.nn.softmax import ChunkedSoftmax
        from elman.nn.translation import Bridge, TranslationNetwork

        settings = config.model
        target = settings.fresh_embedding(sides.target.size)
        source = target if settings.tied == "all" else settings.fresh_embedding(sides.source.size)
        for embedding in dict.fromkeys((source, target)):  # in this order, or a seed would not give the same network
            if isinstance(embedding, nn.Embedding):
                nn.init.normal_(embedding.weight, std=settings.embedding**-0.5)  # tied, it makes logits of about one
                clear_padding(embedding)
        encoder = settings.body(source.embedding_dim, **settings.encoder_options)
        decoder = make_decoder(settings, target.embedding_dim, encoder.output_size)
        bridge = Bridge(
            settings.bridge,
            layers=settings.layers,
            directions=encoder.directions,
            state_sizes=encoder.state_sizes,
            decoder_layers=settings.decoder_options["num_layers"],
            decoder_sizes=decoder.body.state_sizes,
            merge=settings.merge,
        )
        tied = None if settings.tied == "none" else cast(nn.Parameter, target.weight)
        network = TranslationNetwork(
            source,
            target,
            encoder,
            bridge,
            decoder,
            ChunkedSoftmax(settings.readout, sides.target.size, tied=tied, smoothing=smoothing),
            unk_id=sides.source.unk_id,
            token_dropout=settings.token_dropout,
            input_dropout=settings.input_dropout,
            output_dropout=settings.output_dropout,
        )
        return settings.initialised(network, encoder, decoder.body)

    # The compiled network

    def described(self) -> TranslationParts:
        """Its network in plain words."""
        settings, sides = self.settings, self.sides
        size = settings.embedding
        encoder = settings.described("encoder", size or sides.source.size, **settings.encoder_options)
        readout = settings.readout
        fed = {"bahdanau": encoder.output_size, "luong-feeding": readout}.get(settings.decoder, 0)
        return TranslationParts(
            encoder,
            LayersSection.described(
                settings, "decoder.body", (size or sides.target.size) + fed, **settings.decoder_options
            ),
            settings.decoder,
            settings.attention if settings.attends else None,
            settings.bridge,
            sides.source.size,
            sides.target.size,
            size,
            readout,
            attention_size=attention_size(settings, encoder.output_size),
            shared=settings.tied == "all",
            tied=settings.tied != "none",
        )

    def shapes(self) -> Shapes | None:
        parts = self.described()
        return parts.shapes() if parts.encoder.mode is not None and parts.kind in ATTENDS else None

    def why_not_compiled(self) -> str | None:
        return self.described().refusal()

    def compile(self, weights: Arrays) -> CompiledTranslator:
        return CompiledTranslator(self.described(), self.settings.shortened(weights, "source.weight", "target.weight"))

    def steps(self, sources: Ragged) -> StepModel[Any]:
        """What a search goes through to write translations of some sources."""
        if (compiled := self._runtime()) is not None:
            return compiled.steps(sources)
        from elman.tasks.steps import TranslationSteps

        return TranslationSteps(self.network.eval() if self.network.training else self.network, sources)


def translated(
    translate: Callable[[Sequence[str], Sequence[Search]], list[Translation]],
    texts: str | Iterable[str],
    options: Mapping[str, Any],
) -> Translation | list[Translation]:
    """What `translate` makes of a text, or of each of several, all with the same options of `Search`."""
    search, several = Search.of(options), listed(texts)
    check_texts(several)
    found = translate(several, [search] * len(several)) if several else []
    return found[0] if isinstance(texts, str) else found


class _Watch:
    """Warns of texts that the model was not made for: another language, longer than any that it knows."""

    def __init__(self, model: Translator, options: PredictOptions) -> None:
        self.model, self.options = model, options
        self.profile = SourceProfile(model.config.tokens_per_character, model.config.foreign)
        self.characters = self.long = 0
        self.sample: list[Ints] = []

    def see(self, record: Any, ids: Ints) -> None:
        """Look at a record that will be translated, and its tokens."""
        tokens = len(ids)
        self.long += tokens > self.model.longest
        if self.long == 1 and tokens > self.model.longest:
            self.options.say(
                f"warning: {record.where} has {tokens} tokens and the model learned from at most "
                f"{self.model.longest}: such texts are translated in parts, cut between sentences or words"
            )
        if self.characters < SAMPLE:
            self.characters += len(record.source)
            self.sample.append(ids)
            if self.characters >= SAMPLE:
                self._doubt()

    def finish(self) -> None:
        """What can only be said at the end."""
        if LEAST <= self.characters < SAMPLE:
            self._doubt()
        if self.long > 1:
            self.options.say(f"{self.long:,} texts were longer than {self.model.longest} tokens")

    def _doubt(self) -> None:
        doubt = self.profile.doubt(np.concatenate(self.sample), self.characters, self.model.sides)
        if doubt is not None:
            self.options.say(
                f"warning: {self.options.where} does not look like what the model learned to read ({doubt}): "
                "is this the source language, or are source and target swapped?"
            )


# The task


class Translate(Task[Pair, Translator]):
    """Anything from a line to a line."""

    name = "translate"
    about = "Train a translator, from a line to a line; --train twice for two parallel files."
    records, unit, counted = "pairs", "tokens", "lines"
    Recipe, Model, Options = TranslateRecipe, Translator, TranslateOptions
    metrics = (
        Metric("bleu", "BLEU"),
        Metric("chrf", "chrF"),
        Metric("exact_match", "exact match", percent=True),
        Metric("error_rate", "error rate", percent=True, lower_is_better=True),
        Metric("perplexity", lower_is_better=True),
    )
    headlines = metrics[:1]

    # Records

    def reader(self, data: DataSettings) -> PairReader:
        return PairReader(
            format=data.format,
            source=column(data.source),
            target=column(data.target),
            stress=data.stress,
            encoding=data.encoding,
        )

    def sets(self, paths: Sequence[Path]) -> dict[str, list[Path]]:
        return {" ".join(map(str, paths)): list(paths)} if paths else {}

    def key(self, record: Pair) -> tuple[str, str]:
        return record.source, record.target

    def read(self, source: Source, recipe: TranslateRecipe, split: str, say: Say) -> list[Pair]:
        """Pairs that have both sides; of those that repeat one, as the recipe says."""
        reader, drop = self.reader(recipe.data), recipe.data.drop_duplicates and split == "train"
        if source.objects is not None:
            found = collect_pairs(reader.objects(source.objects, source.name), source.name, drop_duplicates=drop)
        else:
            files = reader.files(source.paths)
            found = read_pairs(files, drop_duplicates=drop)
            if files.guess:
                say(files.guess)
        for line in found.said if split == "train" or found.empty else ():
            say(line)
        return found.pairs

    def read_set(self, model: Translator, recipe: TranslateRecipe, source: Source, name: str, say: Say) -> list[Pair]:
        return self.read(source, recipe, "test", say)

    def settle(self, parts: dict[str, list[Pair]], recipe: TranslateRecipe, say: Say) -> Data[Pair]:
        """Split off what is missing, so that what must not stand in two parts does not."""
        data, count = recipe.data, len(parts["train"])
        shares = {}
        if "dev" not in parts:
            shares["dev"] = min(data.dev_fraction, data.dev_size / count)
        if "test" not in parts and data.test_fraction:
            shares["test"] = min(data.test_fraction, (data.test_size or count) / count)
        if shares:
            parts |= split_pairs(parts["train"], shares, by=data.split_by, seed=recipe.train.seed)
        known = {pair.source for pair in parts["train"]}
        for split, called in (("dev", "held-out"), ("test", "test")):
            pairs = parts.get(split, [])
            if common := sum(pair.source in known for pair in pairs):
                say(f"{common:,} of the {len(pairs):,} {called} sources stand in the training pairs too")
        return Data(parts["train"], parts["dev"], parts.get("test", []))

    # The network

    def fit_vocabulary(self, recipe: TranslateRecipe, data: Data[Pair]) -> Sides:
        text = recipe.text
        source, target = text.side(False), None if text.joint else text.side(True)
        if data.starts:
            return _started_sides(recipe, data)
        if text.same_as is None:
            return Sides.fit([(pair.source, pair.target) for pair in data.train], source, target)
        sides = Sides.load(Path(text.same_as) / "tokenizer.json")
        if (sides.source.settings, sides.target.settings) != (source, text.side(True)):
            raise UserError(f"text.same_as = {text.same_as} was made with other settings of text: give the same")
        if sides.joint != text.joint:
            raise UserError(f"text.same_as = {text.same_as} needs text.joint = {str(sides.joint).lower()}")
        return sides

    def begin_with(self, starts: dict[str, Any], network: Any, vocabulary: Sides) -> None:
        for key, embedding, body in (
            ("start", network.source, network.encoder),
            ("decoder_start", network.target, network.decoder.body),
        ):
            if (language := starts.get(key)) is not None:
                put_under(language, embedding, body, same_rows(language, embedding.num_embeddings))

    def embedded(self, vocabulary: Sides) -> dict[str, Embedded]:
        sides = {"vectors": ("source", vocabulary.source), "target_vectors": ("target", vocabulary.target)}
        return {key: Embedded(name, side.tokens, side.counts) for key, (name, side) in sides.items()}

    def vocabulary_counts(self, vocabulary: Sides) -> Iterator[tuple[np.ndarray, str]]:
        yield vocabulary.source.counts, "source tokens"
        yield vocabulary.target.counts, "target tokens"

    def examples(self, recipe: TranslateRecipe, data: Data[Pair], sides: Sides) -> list[tuple[Ints, Ints]]:
        """The pairs as ids; those that are too long are left out."""
        turn = -1 if recipe.model.reverse_source else 1
        encoded = [(_some(sides.read(pair.source), pair)[::turn].copy(), sides.say(pair.target)) for pair in data.train]
        longest, places = recipe.data.longest, recipe.model.places or recipe.data.longest
        pairs = [pair for pair in encoded if len(pair[0]) <= min(longest, places) and len(pair[1]) <= longest]
        limit = f"data.longest={longest}" + (f" or model.longest={places}" if places < longest else "")
        if not pairs:
            raise UserError(f"every training pair has a side of more than {limit} tokens: raise it")
        left_out = len(encoded) - len(pairs)
        data.facts["left_out"] = f"; {left_out:,} pairs are longer than {limit} and left out" if left_out else ""
        characters = sum(len(pair.source) for pair in data.train)
        profile = SourceProfile.of(encoded, characters=characters, size=sides.source.size, joint=sides.joint)
        data.facts["profile"] = profile
        return pairs

    def amount(self, recipe: TranslateRecipe, data: Data[Pair], examples: Sequence[tuple[Ints, Ints]]) -> float:
        return sum(len(target) + 1 for _, target in examples)

    def config_parts(self, recipe: TranslateRecipe, data: Data[Pair], examples: Any) -> dict[str, Any]:
        longest = max(len(source) for source, _ in examples)
        return {"search": recipe.search, "longest": longest, **vars(data.facts["profile"])}

    def fresh(self, config: TranslatorConfig, vocabulary: Sides, recipe: TranslateRecipe) -> Any:
        return Translator.build(config, vocabulary, recipe.loss.smoothing)

    def batches(self, run: Training[Pair, Translator]) -> ExampleBatches[PairBatch]:
        """Pairs of like length together, as many as make the tokens of a batch."""
        return ExampleBatches(
            np.array([[len(target) + 1, len(source)] for source, target in run.examples]),
            None,
            lambda rows: make_batch([run.examples[row] for row in rows], run.model.end, run.model.start),
            tokens=run.recipe.batch.amount,
            seed=run.recipe.train.network_seed,
            text=fingerprint(map(self.key, run.data.train)),
        )

    def loss(self, run: Training[Pair, Translator], batch: PairBatch, state: Any) -> "Loss":
        """The mean loss of some pairs per target token."""
        return target_loss(run, batch)

    def watch(self, run: Training[Pair, Translator]) -> dict[str, float]:
        """Scores on the held-out pairs; the model that says most of their tokens right is kept."""
        pairs = run.once("pairs", lambda: [run.model.encode(pair.source, pair.target) for pair in run.data.dev])
        scores = run.model.expected_scores(batch for _, batch in run.model.batches(pairs))
        return scores | {"error": 1 - scores["token_accuracy"]}

    # Scores

    def score(
        self, model: Translator, records: Sequence[Pair], recipe: TranslateRecipe, train: Sequence[Pair]
    ) -> dict[str, Any]:
        sources, right = lines_of(records, recipe.report)
        pairs = [model.encode(pair.source, pair.target) for pair in records]
        written = [one.text for one in model.predict(sources)]
        examples = list(zip(sources, written, right, strict=True))[:SHOWN]
        return {
            **model.expected_scores(batch for _, batch in model.batches(pairs)),
            **written_scores(written, right, model, recipe.report),
            "examples": [{"source": s, "translation": t, "reference": r[0]} for s, t, r in examples],
        }

    def baselines(
        self, model: Translator, train: Sequence[Pair], recipe: TranslateRecipe, say: Say
    ) -> dict[str, Score]:
        """Copying the source, and the target of the training pair whose source is most similar."""
        if not recipe.report.baselines or not train:
            return {}
        closest = NearestPair.fit([pair.source for pair in train], [pair.target for pair in train])

        def scored(rival: NearestPair | CopySource) -> Score:
            def score(records: Sequence[Pair]) -> dict[str, Any]:
                sources, right = lines_of(records, recipe.report)
                return written_scores(rival.predict(sources), right, model, recipe.report)

            return score

        return {"nearest training pair": scored(closest), "copied source": scored(CopySource())}

    # Predictions

    def predictor(self, model: Translator, asked: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The translator, with the models that are to help it."""
        from elman.tasks.channel import NoisyChannel

        helpers = {name: asked.pop(name, None) for name in ("ensemble", "channel", "lm", "channel_weights")}
        Search.of(asked)  # what is wrong with it is told at once
        model = with_ensemble(model, helpers["ensemble"] or ())
        if helpers["channel"] is None and helpers["lm"] is None and helpers["channel_weights"] is None:
            return model, asked
        if helpers["channel"] is None or helpers["lm"] is None:
            raise UserError("reranking needs a model the other way and a language model: give both --channel and --lm")
        return NoisyChannel.load(model, helpers["channel"], helpers["lm"], helpers["channel_weights"]), asked

    # Words

    def describe(self, run: Training[Pair, Translator]) -> str:
        settings, sides, data = run.recipe.model, run.model.sides, run.data
        sizes = f"{sides.source.size:,}" if sides.joint else f"{sides.source.size:,} and {sides.target.size:,}"
        return (
            f"{settings.words()}, {settings.attending()}, {run.model.parameters:,} parameters; {len(run.examples):,} "
            f"pairs to train on, {len(data.dev):,} held out; {sizes} {run.recipe.text.kind}{data.facts['left_out']}"
        )

    def sentence(self, recipe: TranslateRecipe, report: "Report") -> str:
        model = recipe.model
        return (
            f"A translator over {recipe.text.kind}: {model.layers} x {model.cell}, encoder of {model.encoder_size}"
            f"{' in each direction' if model.bidirectional else ''}, decoder of {model.hidden}, {model.attending()}"
        )

    def note(self, recipe: TranslateRecipe) -> str:
        return f"The translations were searched for with a beam of {recipe.search.beam}."

    def details(self, scores: Mapping[str, Any]) -> str:
        blocks = [
            f"source       {one['source']}\ntranslation  {one['translation']}\nreference    {one['reference']}"
            for one in scores["examples"]
        ]
        return "\n\n".join([*blocks, f"BLEU {scores['bleu_signature']}\nchrF {scores['chrf_signature']}"])

    def use(self, recipe: TranslateRecipe, report: "Report") -> tuple[Sequence[str], str]:
        attends = ["elman explain {model} TEXT --out alignment.png"] if recipe.model.attends else []
        commands = ("elman predict {model} FILE", *attends, "elman evaluate {model} SOURCES TARGETS")
        return commands, 'model.predict("a text").text'


def _started_sides(recipe: TranslateRecipe, data: Data[Pair]) -> Sides:
    """The vocabularies of language models, with the words of the training pairs; a side without one has its own."""
    if recipe.text.same_as is not None:
        raise UserError("text.same_as and a language model to begin with both bring vocabularies: leave one out")
    texts = {"start": [pair.source for pair in data.train], "decoder_start": [pair.target for pair in data.train]}
    sides = [
        extended(data.starts[key].tokenizer, texts[key])
        if key in data.starts
        else fit_side(recipe.text.side(key == "decoder_start"), texts[key])
        for key in texts
    ]
    return Sides(*sides)


def _some(ids: Ints, pair: Pair) -> Ints:
    if not len(ids):
        raise UserError(f"the text {pair.source!r} has no tokens that the model knows: give it some words")
    return ids


def lines_of(pairs: Sequence[Pair], settings: ReportSettings) -> tuple[list[str], list[list[str]]]:
    """The sources to translate, and for each the targets that are right."""
    if settings.references == "pair":
        return [pair.source for pair in pairs], [[pair.target] for pair in pairs]
    grouped = references(pairs)
    return list(grouped), list(grouped.values())


def written_scores(
    hypotheses: Sequence[str], right: Sequence[Sequence[str]], model: Translator, settings: ReportSettings
) -> dict[str, Any]:
    """BLEU and chrF as sacrebleu counts them, exact matches and edits, of what was written."""
    target = model.sides.target.settings
    ready = normaliser(target)
    said = [ready(text) for text in hypotheses]
    wanted = [[ready(text) for text in several] for several in right]
    scores = corpus_scores(said, wanted, lowercase=target.lowercase, tokenize=settings.tokenize)
    cut = list if target.kind in ("characters", "codepoints", "bytes") else str.split
    edits = edit_scores([cut(text) for text in said], [[cut(text) for text in several] for several in wanted])
    return {**scores.to_dict(), "exact_match": edits.exact_match, "error_rate": edits.error_rate, "lines": len(said)}
