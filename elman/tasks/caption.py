"""Captioners: p(caption | image), what is to be seen on it in a sentence.

model = elman.fit("caption", "shapes-captions", out="runs/shapes")
model.predict("scene.png").text
model.predict(["one.jpg", "two.jpg"], beam=8, forbid=["man"])
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Unpack, cast

import numpy as np
from pydantic import Field, model_validator

from elman.baselines.neighbours import NearestVector
from elman.batches.features import FeatureSet, StoredFeatures, find_features
from elman.decode import StepModel
from elman.errors import UserError
from elman.generated.shapes import Scene, is_true
from elman.metrics.captions import caption_scores
from elman.metrics.metric import Metric
from elman.ragged import Ints, Ragged
from elman.records.captions import CaptionedImage, CaptionReader, Format
from elman.records.images import ONE_IMAGE
from elman.records.places import Place
from elman.runtime import CompiledDecoder, DecoderParts
from elman.runtime.quantise import Arrays
from elman.runtime.translator import Sources
from elman.runtime.weights import Weights
from elman.tasks.answer import checked_folder, unseen
from elman.tasks.ensemble import MembersSection, with_ensemble
from elman.tasks.predict import PredictOptions, read_texts
from elman.tasks.search import Search, SearchOptions, SearchSettings, WriteOptions
from elman.tasks.sections import (
    DataSection,
    EmbeddingSection,
    FeaturesSection,
    Folder,
    ForcingSection,
    LayersSection,
    Name,
    SizeSection,
    column,
)
from elman.tasks.task import Data, Say, Score, Source, Task, Training
from elman.tasks.vectors import Embedded, VectorsSection
from elman.tasks.writer import (
    Alternative,
    PairBatch,
    Writer,
    WriterConfig,
    Written,
    attention_size,
    make_decoder,
    make_grouped_batch,
    target_loss,
)
from elman.text import Tokenizer, TokenizerSettings
from elman.text.settings import Kind
from elman.text.sides import Target, fit_side
from elman.text.tokenizer import normaliser
from elman.train.recipe import Section

if TYPE_CHECKING:
    from elman.nn.caption import CaptionNetwork
    from elman.tasks.report import Report
    from elman.train.task import Loss

IMAGES = 32  # seen and searched at a time
SHOWN = 5  # captions in the model card
LONGEST = 1_000_000  # tokens of a caption


# The recipe


class DataSettings(DataSection):
    """Where the images and their captions come from."""

    format: Format | None = Field(None, description="follows the file's name")
    image: Name | None = Field(None, description="column or key of the image's name")
    caption: Name | None = Field(None, description="the same of the caption")
    images: Folder | None = Field(None, description="the folder of images; beside the captions file if not given")
    punctuation: bool = Field(False, description="captions keep it; else words are counted as published figures do")
    longest: int = Field(50, ge=1, le=LONGEST, description="training captions of more tokens are left out")


class TextSettings(TokenizerSettings):
    """What a token of a caption is."""

    kind: Kind = "words"
    lowercase: bool = True


class ModelSettings(FeaturesSection, VectorsSection, EmbeddingSection, LayersSection):
    """The network: places of an image, and a decoder that writes what is there."""

    image: Literal["first", "attended"] = Field(
        "attended", description="the image is read before the first word, or attended to place by place"
    )
    decoder: Literal["plain", "bahdanau", "luong", "luong-feeding"] = Field(
        "luong", description="how what is attended to is used; plain where the image comes first"
    )
    attention: Literal[
        "dot", "scaled-dot", "general", "reduced-rank", "additive", "cosine", "plain-cosine", "location", "fixed-length"
    ] = "general"
    gate: bool = Field(False, description="a number from 0 to 1 says how much of what is attended to is let through")
    hidden: int = Field(512, ge=1)
    embedding: int = Field(256, ge=0, description="size of a token's vector; 0 is one-hot input")
    image_hidden: int = Field(512, ge=1, description="size of the vector of each place of an image")
    tied: bool = Field(True, description="the softmax is the embedding")
    token_dropout: float = Field(0.0, ge=0, lt=1, description="share of tokens that are made unknown")
    input_dropout: float = Field(0.3, ge=0, lt=1, description="of embedded tokens")
    output_dropout: float = Field(0.3, ge=0, lt=1, description="before the softmax")
    longest: int = Field(
        256, ge=1, description="places that the location and fixed-length attentions can look at, from the first"
    )

    @model_validator(mode="before")
    @classmethod
    def _first_is_plain(cls, given: Any) -> Any:
        if isinstance(given, Mapping) and given.get("image") == "first" and "decoder" not in given:
            return {**given, "decoder": "plain"}
        return given

    @model_validator(mode="after")
    def _parts_fit(self) -> "ModelSettings":
        if (self.image == "first") != (self.decoder == "plain"):
            raise ValueError("model.decoder = plain attends to nothing: it goes with model.image = first, and only it")
        if self.tied and not self.embedding:
            raise ValueError("model.tied needs model.embedding above 0: with one-hot input give model.tied = false")
        if self.learned_state:
            raise ValueError("model.learned_state does not go with an image, of which the first state is made")
        if self.gate and not self.attends:
            raise ValueError("model.gate is of what is attended to: it needs model.image = attended")
        state = self.projection or self.hidden
        if (
            self.attends
            and self.attention in ("dot", "scaled-dot", "cosine", "plain-cosine")
            and self.image_hidden != state
        ):
            raise ValueError(
                f"model.attention = {self.attention} compares the decoder's {state} entries with the places' "
                f"{self.image_hidden}: give model.image_hidden = {state}, or take general"
            )
        if self.attention == "fixed-length" and self.decoder != "bahdanau":
            raise ValueError("model.attention = fixed-length sees the step's input: it goes with the bahdanau decoder")
        return self

    @property
    def attends(self) -> bool:
        """Whether the decoder has an attention."""
        return self.image == "attended"

    @property
    def readout(self) -> int:
        """The size of what the softmax reads."""
        return self.embedding if self.tied else self.hidden

    @property
    def decoder_options(self) -> dict[str, Any]:
        """What of the decoder's layers its class does not know by another name."""
        return {"num_layers": self.layers, "learned_state": False}

    def looking(self) -> str:
        """How it looks at an image, in a few words."""
        gate = ", gated" if self.gate else ""
        return f"{self.decoder} decoder, {self.attention} attention{gate}" if self.attends else "image first"


class LossSettings(ForcingSection):
    """What the network is trained to do."""

    smoothing: float = Field(0.1, ge=0, lt=1, description="share of the probability that is spread over all tokens")
    doubly_stochastic: float = Field(
        0.0, ge=0, description="weight of the wish that all places be attended to alike over a caption"
    )


class CaptionSearchSettings(SearchSettings):
    """How a caption is looked for where the user does not say it."""

    length_factor: float = Field(1.0, gt=0, description="tokens at most, as a multiple of the longest training caption")


class ReportSettings(Section):
    """How the scores are counted."""

    baselines: bool = Field(True, description="the most frequent caption, and that of the most similar training image")


class CaptionRecipe(Section):
    """Everything a captioner's run depends on."""

    task: Literal["caption"] = "caption"
    data: DataSettings = DataSettings()
    text: TextSettings = TextSettings()
    model: ModelSettings = ModelSettings()
    loss: LossSettings = LossSettings()
    batch: SizeSection = SizeSection()
    train: MembersSection = MembersSection(average="ema")
    search: CaptionSearchSettings = CaptionSearchSettings()
    report: ReportSettings = ReportSettings()

    @model_validator(mode="after")
    def _spread_over_what(self) -> "CaptionRecipe":
        if self.loss.doubly_stochastic and not self.model.attends:
            raise ValueError("loss.doubly_stochastic is about an attention: it needs model.image = attended")
        return self


# The model


class CaptionerConfig(WriterConfig):
    """What a captioner's config.json holds."""

    model: ModelSettings
    search: CaptionSearchSettings
    places: int = Field(ge=1)
    channels: int = Field(ge=1)
    """The shape of the features that it was trained on."""
    punctuation: bool
    longest: int = Field(ge=1, le=LONGEST)
    """Tokens of the longest caption that it has learned from."""


@dataclass(frozen=True)
class Caption(Written):
    """The best caption of an image, all those that were asked for (`n_best`, the best first), and where it looked."""

    what = "caption"
    image: str
    n_best: list[Alternative]
    tokens: list[str] = field(default_factory=list)
    weights: np.ndarray | None = None
    """T x P: how much each word looked at each place, row by row; None where it was not asked for."""

    def to_dict(self) -> dict[str, Any]:
        """As one line of JSON has it."""
        value = {**self.best_to_dict(), **self.others_to_dict(), "tokens": self.tokens}
        return value if self.weights is None else {**value, "attention": self.weights.astype(float).round(4).tolist()}

    @property
    def pharaoh(self) -> str:
        """Pairs `place-token` of numbers from 0: each token with the place that it looked at most."""
        return "" if self.weights is None else " ".join(f"{row.argmax()}-{at}" for at, row in enumerate(self.weights))


class Captioner(Writer[CaptionerConfig, Target, "CaptionNetwork", CompiledDecoder]):
    """p(caption | image)."""

    task, what = "caption", "caption"
    Config, Recipe = CaptionerConfig, CaptionRecipe
    exact = ("decoder.to_readout.weight",)  # a small one, without which BLEU falls

    named: str | None = None
    """A file of features in the place of the one that it was trained on."""

    @cached_property
    def features(self) -> FeatureSet:
        """What it sees of an image."""
        return self.config.model.trained_on(self.config.places, self.config.channels, self.named)

    def with_features(self, name: str) -> "Captioner":
        """This captioner with features of other images; another set than its own is refused."""
        twin = copy(self)
        twin.named, twin.others = name, tuple(one.with_features(name) for one in self.others)
        twin.__dict__.pop("features", None)
        return twin

    def with_images(self, folder: str) -> "Captioner":
        """This captioner with another folder of the images that tables name."""
        twin = copy(self)
        recipe = {**self.recipe, "data": {**self.recipe.get("data", {}), "images": checked_folder(folder)}}
        twin.config = self.config.model_copy(update={"recipe": recipe})
        return twin

    def load_beside(self, folder: Path | str) -> "Captioner":
        other = super().load_beside(folder)
        return other if self.named is None else other.with_features(self.named)

    def check_beside(self, other: "Captioner") -> None:
        if other.vocabulary.to_json() != self.vocabulary.to_json():
            raise UserError("models of an ensemble need the same vocabulary: train them on the same captions")
        if _sees(other) == _sees(self):  # no file is opened for those that were trained together
            return
        if (other.features.name, other.features.size) != (self.features.name, self.features.size):
            raise UserError("models of an ensemble must see images alike: these have different features")

    def usual_length(self, source: np.ndarray) -> int:
        return self.config.longest

    def places(self, source: np.ndarray) -> int:
        return self.network.places.places

    # Captions

    def predict(self, images: Any, **options: Unpack[SearchOptions]) -> Any:
        """The caption of an image, given by its path or its bytes, or of each of several; options are `Search`'s."""
        search, single = Search.of(options), isinstance(images, ONE_IMAGE)
        several = _sources([images] if single else images)
        names = [str(one) if isinstance(one, Path) else "the image" for one in several]
        found: list[Caption] = []
        for start in range(0, len(several), IMAGES):
            seen = self.features.of(several[start : start + IMAGES])
            found += self.caption(names[start : start + IMAGES], seen, [search] * len(seen))
        return found[0] if single else found

    def predict_stored(self, records: Sequence[CaptionedImage], seen: StoredFeatures | None = None) -> list[Caption]:
        """The captions of many images, what is seen of which is kept in the cache."""
        seen = self.features.stored([record.image for record in records]) if seen is None else seen
        found: list[Caption] = []
        for start in range(0, len(records), IMAGES):
            some = [str(record.image) for record in records[start : start + IMAGES]]
            found += self.caption(some, seen.take(np.arange(start, start + len(some))), [Search()] * len(some))
        return found

    def caption(self, names: Sequence[str], seen: np.ndarray, searches: Sequence[Search]) -> list[Caption]:
        """The captions of some images by what is seen of them (N x P x C), each with what is asked of it."""
        if any(search.replace_unknown for search in searches):
            raise UserError("an image has no words that could replace unknown ones: leave replace_unknown out")
        asked = [row for row, search in enumerate(searches) if search.alignments]
        if asked:
            self.check_attends()
        found = []
        for name, hypotheses in zip(names, self.search_all(names, list(seen), searches), strict=True):
            n_best = self.alternatives(hypotheses)
            found.append(Caption(name, n_best, self.names_of(n_best[0].ids)))
        tables = self.attention([(seen[row], np.array(found[row].n_best[0].ids, np.int64)) for row in asked])
        for row, table in zip(asked, tables, strict=True):
            found[row] = replace(found[row], weights=table)
        return found

    def steps(self, sources: Ragged) -> StepModel[Any]:
        """What a search goes through to write captions of some images."""
        import torch

        from elman.tasks.steps import WritingSteps

        count = len(sources)
        seen = torch.from_numpy(np.ascontiguousarray(sources.data)).view(count, -1, self.config.channels)  # B x P x C
        compiled = self._runtime()
        network = self.network.eval() if self.network.training else self.network
        if compiled is None:
            return WritingSteps(network, seen, torch.from_numpy(sources.lengths))
        with torch.no_grad():  # what is seen is PyTorch's, the search is not
            memory, hidden = network.encode(seen, torch.from_numpy(sources.lengths))
        lengths = np.full(count, memory.states.shape[1], np.int32)
        return compiled.steps_from(
            Sources(memory.keys.numpy(), memory.states.numpy(), lengths), tuple(part.numpy() for part in hidden)
        )

    # Lines of `elman predict`

    def read(self, lines: Any, options: PredictOptions) -> Iterator[Any]:
        """The images of paths, one a line, opened; one that cannot be is a bad line."""
        search = Search.of(options.asked)
        search.control(self.vocabulary)  # what no line can have is said before the first is read
        features = self.features
        for record in read_texts(CaptionTask().reader(self._data()), lines, options):
            try:
                opened = self._opened(record, record.image, search, features)
            except UserError as error:
                options.bad(error)
            else:
                yield opened

    def uploaded(self, number: int, content: bytes, fields: Mapping[str, Any], asked: Mapping[str, Any]) -> Any:
        """An image that came with a request, as `read` gives those of lines."""
        record = CaptionedImage(Path(f"image {number}"), (), Place("the request", number), dict(fields))
        return self._opened(record, content, Search.of(asked), self.features)

    def _opened(self, record: Any, image: Path | bytes, search: Search, features: FeatureSet) -> Any:
        """A record, what is asked of it, and its image."""
        try:
            return record, self.own_search(search, record.fields), features.opened(image)
        except UserError as error:
            raise unseen(record.where, record.image, "has no caption", error) from None

    def predict_lines(self, lines: Any, options: PredictOptions, answers: Any = None) -> Iterator[str]:
        # An image takes as much memory as thousands of lines of text.
        return super().predict_lines(lines, replace(options, window=min(options.window, IMAGES)), answers)

    def length(self, record: Any) -> int:
        return 1

    def answers(self, records: Sequence[Any]) -> list[Caption]:
        seen = self.features.see([opened for _, _, opened in records])
        return self.caption([str(record.image) for record, _, _ in records], seen, [search for _, search, _ in records])

    def written(self, record: Any, answer: Caption, options: PredictOptions) -> Iterator[str]:
        image, search, _ = record
        given = {"image": str(image.image)}
        for line in self.lines_of(image.where, image.fields, given, answer, search, options):
            yield line if options.as_json or search.n_best > 1 else f"{image.image}\t{line}"

    # The folder and the network

    @classmethod
    def load_vocabulary(cls, folder: Path, config: Any) -> Target:
        return Target(Tokenizer.load(folder / "tokenizer.json"), ready(config.punctuation), unknown=False)

    def about(self) -> str:
        return f"{self.settings.words()}, {self.settings.looking()}, {self.settings.seen}"

    @classmethod
    def build(cls, config: CaptionerConfig, vocabulary: Target, smoothing: float = 0.0) -> "CaptionNetwork":
        from torch import nn

        from elman.nn.caption import CaptionNetwork
        from elman.nn.embedding import clear_padding
        from elman.nn.images import image_encoder
        from elman.nn.softmax import ChunkedSoftmax

        settings, size = config.model, vocabulary.target.size
        target = settings.fresh_embedding(size)
        if isinstance(target, nn.Embedding):
            nn.init.normal_(target.weight, std=settings.embedding**-0.5)  # tied, it makes logits of about one
            clear_padding(target)
        width, dropout, pixels = settings.image_hidden, settings.image_dropout, settings.features == "pixels"
        places = image_encoder(config.places, config.channels, width, pixels=pixels, dropout=dropout)
        decoder = make_decoder(settings, target.embedding_dim, settings.image_hidden, gate=settings.gate)
        tied = cast(nn.Parameter, target.weight) if settings.tied else None
        network = CaptionNetwork(
            settings.image,
            places,
            target,
            decoder,
            ChunkedSoftmax(settings.readout, size, tied=tied, smoothing=smoothing),
            unk_id=vocabulary.target.unk_id,
            token_dropout=settings.token_dropout,
            input_dropout=settings.input_dropout,
            output_dropout=settings.output_dropout,
        )
        return settings.initialised(network, decoder.body)

    # The compiled decoder

    def described(self) -> DecoderParts:
        """What of its network writes, in plain words."""
        settings, size = self.settings, self.vocabulary.target.size
        memory = settings.image_hidden if settings.attends else 0
        fed = {"bahdanau": memory, "luong-feeding": settings.readout}.get(settings.decoder, 0)
        return DecoderParts(
            settings.described("decoder.body", (settings.embedding or size) + fed, **settings.decoder_options),
            settings.decoder,
            settings.attention if settings.attends else None,
            memory,
            size,
            settings.embedding,
            settings.readout,
            attention_size=attention_size(settings, memory),
            tied=settings.tied,
        )

    def why_not_compiled(self) -> str | None:
        gate = "the compiled decoder has no gate" if self.settings.gate else None
        return gate or self.described().refusal()

    def compile(self, weights: Arrays) -> CompiledDecoder:
        parts = self.described()
        return CompiledDecoder(parts, Weights(self.settings.shortened(weights, "target.weight"), parts.shapes()))


def _sources(images: Any) -> list[Path | bytes]:
    """Images as they are given, checked: paths, or the content of files."""
    if isinstance(images, Mapping) or not isinstance(images, Iterable):
        raise UserError(f"a {type(images).__name__} is no image and no list of images: give paths, or bytes")
    found: list[Path | bytes] = []
    for number, image in enumerate(images, 1):
        empty = isinstance(image, str) and not image
        if empty or not isinstance(image, ONE_IMAGE):
            what = "is empty" if empty else f"has the type {type(image).__name__}"
            raise UserError(f"image {number} {what}: give its path, or the bytes of its file")
        found.append(image if isinstance(image, bytes) else Path(image))
    return found


def ready(punctuation: bool) -> Callable[[str], str]:
    """What is done to a caption before it is cut into words."""
    return str if punctuation else without_punctuation


def without_punctuation(text: str) -> str:
    """A text without its punctuation: as captions are counted in published figures (Karpathy and Fei-Fei 2015).

    >>> without_punctuation("A dog 's T-shirt , in the snow .")
    'A dog s Tshirt in the snow'
    """
    kept = "".join(mark for mark in text if not unicodedata.category(mark).startswith("P"))
    return re.sub(r"\s+", " ", kept).strip()


class CaptionOptions(WriteOptions):
    """What `elman predict` can be asked of a captioner."""

    replace_unknown: ClassVar[bool] = False  # type: ignore[misc]  # an image has no words
    images: str | None = Field(None, description="The folder of the images that tables name.")
    features: str | None = Field(
        None, description="A file of features of the images, for a model that learned of such."
    )


# The task


@dataclass(frozen=True)
class Examples:
    """Images as they are seen, each with its captions as ids."""

    seen: StoredFeatures
    captions: list[list[Ints]]

    def __len__(self) -> int:
        return len(self.captions)

    @property
    def lengths(self) -> Ints:
        """By which they are put together: tokens of the longest caption."""
        return np.array([max(map(len, several)) for several in self.captions])

    def batch(self, rows: Ints, model: Captioner) -> PairBatch:
        """Some of the images with all their captions."""
        captions = [self.captions[row] for row in rows]
        return make_grouped_batch(self.seen.take(rows), captions, model.end, model.start)

    def batches(self, model: Captioner) -> Iterator[PairBatch]:
        """All of them, in their order."""
        for start in range(0, len(self), IMAGES):
            yield self.batch(np.arange(start, min(start + IMAGES, len(self))), model)


class CaptionTask(Task[CaptionedImage, Captioner]):
    """A sentence about an image."""

    name = "caption"
    about = "Train a captioner, from an image to a sentence; --train names a captions file, or its folder."
    records, unit, counted, tried = "images", "tokens", "images", "IMAGE"
    Recipe, Model, Options = CaptionRecipe, Captioner, CaptionOptions
    record_is_image = record_has_image = True
    metrics = (
        Metric("true", "true", percent=True),
        *(Metric(f"bleu_{order}", f"BLEU-{order}") for order in range(1, 5)),
        Metric("chrf", "chrF"),
        Metric("rouge_l", "ROUGE-L"),
        Metric("cider", "CIDEr-D"),
        Metric("perplexity", lower_is_better=True),
    )
    headlines = (metrics[0], metrics[4])
    example = 'model.predict("image.jpg").text'

    # Records

    def reader(self, data: DataSettings) -> CaptionReader:
        return CaptionReader(
            format=data.format,
            image=column(data.image),
            caption=column(data.caption),
            images=data.images,
            encoding=data.encoding,
            ready=ready(data.punctuation),
        )

    def key(self, record: CaptionedImage) -> tuple[str, tuple[str, ...]]:
        return record.image.name, record.captions

    def settle(self, parts: dict[str, list[CaptionedImage]], recipe: CaptionRecipe, say: Say) -> Data[CaptionedImage]:
        """Some images held out where none are."""
        for records in parts.values():
            recipe.model.check_images(records)
        data = super().settle(parts, recipe, say)
        known = {record.image for record in data.train}
        for split, called in (("dev", "held-out"), ("test", "test")):
            records = getattr(data, split)
            if common := sum(record.image in known for record in records):
                say(f"{common:,} of the {len(records):,} {called} images stand in the training images too")
        return data

    def read_set(
        self, model: Captioner, recipe: CaptionRecipe, source: Source, name: str, say: Say
    ) -> list[CaptionedImage]:
        records: list[CaptionedImage] = super().read_set(model, recipe, source, name, say)
        model.settings.check_images(records)
        return records

    def prepare(self, recipe: CaptionRecipe, data: Data[CaptionedImage], say: Say) -> None:
        """What is seen of all images, computed where the cache does not have it."""
        features = data.facts["features"] = find_features(recipe.model.features, recipe.model.image_size)
        features.stored([record.image for records in (data.train, data.dev, data.test) for record in records], say)

    # The network

    def fit_vocabulary(self, recipe: CaptionRecipe, data: Data[CaptionedImage]) -> Target:
        clean = ready(recipe.data.punctuation)
        captions = (clean(caption) for record in data.train for caption in record.captions)
        return Target(fit_side(recipe.text, captions), clean, unknown=False)

    def vocabulary_counts(self, vocabulary: Target) -> Iterator[tuple[np.ndarray, str]]:
        yield vocabulary.target.counts, "tokens of captions"

    def embedded(self, vocabulary: Target) -> dict[str, Embedded]:
        return {"vectors": Embedded("target", vocabulary.target.tokens, vocabulary.target.counts)}

    def examples(self, recipe: CaptionRecipe, data: Data[CaptionedImage], vocabulary: Target) -> Examples:
        """The images with their captions as ids; captions that are too long are left out."""
        longest = recipe.data.longest
        said = [[vocabulary.say(caption) for caption in record.captions] for record in data.train]
        kept = [[ids for ids in several if 0 < len(ids) <= longest] or [several[0][:longest]] for several in said]
        return Examples(data.facts["features"].stored([record.image for record in data.train]), kept)

    def config_parts(self, recipe: CaptionRecipe, data: Data[CaptionedImage], examples: Examples) -> dict[str, Any]:
        seen: FeatureSet = data.facts["features"]
        return {
            "search": recipe.search,
            "places": seen.places,
            "channels": seen.channels,
            "punctuation": recipe.data.punctuation,
            "longest": max(1, int(examples.lengths.max())),
        }

    def fresh(self, config: CaptionerConfig, vocabulary: Target, recipe: CaptionRecipe) -> Any:
        return Captioner.build(config, vocabulary, recipe.loss.smoothing)

    def go_on_from(self, start: Captioner, recipe: CaptionRecipe) -> Captioner:
        recipe.model.trained_on(start.config.places, start.config.channels)  # features of another shape are refused
        return super().go_on_from(start, recipe)

    def batch(self, run: Training[CaptionedImage, Captioner], rows: np.ndarray) -> PairBatch:
        return cast(Examples, run.examples).batch(rows, run.model)

    def loss(self, run: Training[CaptionedImage, Captioner], batch: PairBatch, state: Any) -> "Loss":
        """The mean loss per token; with the doubly stochastic term of Xu et al. (2015) where it has a weight.

            λ · mean over captions and places of (1 - Σ_t a_tp)²

        with a_tp the weight of place p at step t.
        """
        weight = run.recipe.loss.doubly_stochastic
        if not weight:
            return target_loss(run, batch)
        from elman.nn.decoder import AttentionSums
        from elman.train.task import Loss

        sums = AttentionSums()
        found = target_loss(run, batch, sums)
        assert sums.total is not None
        return Loss(found.mean + weight * (1 - sums.total).square().mean(), found.tokens)

    def watch(self, run: Training[CaptionedImage, Captioner]) -> dict[str, float]:
        """Scores on the held-out images; the model that says most tokens of their captions right is kept."""
        examples = run.once("dev", lambda: _examples(run.model, run.data.dev))
        scores = run.model.expected_scores(examples.batches(run.model))
        return scores | {"error": 1 - scores["token_accuracy"]}

    # Scores

    def score(
        self, model: Captioner, records: Sequence[CaptionedImage], recipe: CaptionRecipe, train: Sequence[Any]
    ) -> dict[str, Any]:
        examples = _examples(model, records)
        captions = [caption.text for caption in model.predict_stored(records, examples.seen)]
        shown = [
            {"image": record.image.name, "caption": caption, "reference": record.captions[0]}
            for record, caption in list(zip(records, captions, strict=True))[:SHOWN]
        ]
        expected = model.expected_scores(examples.batches(model))
        return {**expected, **written_scores(captions, records, model), "examples": shown}

    def baselines(
        self, model: Captioner, train: Sequence[CaptionedImage], recipe: CaptionRecipe, say: Say
    ) -> dict[str, Score]:
        """The caption that is said most often, and one of the training image that looks most similar."""
        if not recipe.report.baselines or not train:
            return {}
        ((usual, _),) = Counter(caption for record in train for caption in record.captions).most_common(1)
        closest = NearestVector(_looks(model, train))

        def most_frequent(records: Sequence[CaptionedImage]) -> dict[str, Any]:
            return written_scores([usual] * len(records), records, model)

        def nearest(records: Sequence[CaptionedImage]) -> dict[str, Any]:
            found = closest.nearest(_looks(model, records))
            return written_scores([train[row].captions[0] for row in found], records, model)

        return {"nearest training image": nearest, "most frequent caption": most_frequent}

    # Predictions

    def predictor(self, model: Captioner, asked: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The captioner, with the models that are to help it."""
        ensemble, features, images = (asked.pop(name, None) for name in ("ensemble", "features", "images"))
        Search.of(asked)  # what is wrong with it is told at once
        model = model if images is None else model.with_images(images)
        model = model if features is None else model.with_features(features)
        return with_ensemble(model, ensemble or ()), asked

    # Words

    def describe(self, run: Training[CaptionedImage, Captioner]) -> str:
        count = sum(map(len, run.examples.captions))
        return (
            f"{super().describe(run)}; {count:,} captions, {run.model.vocabulary.target.size:,} {run.recipe.text.kind}"
        )

    def sentence(self, recipe: CaptionRecipe, report: "Report") -> str:
        model = recipe.model
        return f"A captioner of what {model.seen} show: {model.words()}, {model.looking()}"

    def note(self, recipe: CaptionRecipe) -> str:
        words = "as they stand" if recipe.data.punctuation else "without punctuation"
        case = "lower-cased" if recipe.text.lowercase else "in the case that they have"
        return f"Words are counted {case} and {words}; captions were searched for with a beam of {recipe.search.beam}."

    def details(self, scores: Mapping[str, Any]) -> str:
        return "\n\n".join(
            f"image      {one['image']}\ncaption    {one['caption']}\nreference  {one['reference']}"
            for one in scores["examples"]
        )

    def use(self, recipe: CaptionRecipe, report: "Report") -> tuple[Sequence[str], str]:
        looks = ["elman explain {model} IMAGE --out attention.png"] if recipe.model.attends else []
        commands = ("elman predict {model} IMAGE", *looks, "elman evaluate {model} CAPTIONS.tsv")
        return commands, self.example


def _examples(model: Captioner, records: Sequence[CaptionedImage]) -> Examples:
    seen = model.features.stored([record.image for record in records])
    return Examples(seen, [[model.vocabulary.say(caption) for caption in record.captions] for record in records])


def _looks(model: Captioner, records: Sequence[CaptionedImage]) -> np.ndarray:
    """A vector of each image (N x D): all its pixels, or the mean of what is seen at its places."""
    seen = model.features.stored([record.image for record in records])
    found = []
    for start in range(0, len(records), IMAGES):
        some = seen.take(np.arange(start, min(start + IMAGES, len(records))))  # B x P x C
        found.append(some.reshape(len(some), -1) if model.features.pixels else some.mean(axis=1))
    return np.concatenate(found)


def counted(model: Captioner, text: str) -> str:
    """A caption as its words are counted: as the model writes them."""
    side = model.vocabulary
    return normaliser(side.target.settings)(side.ready(text))


def written_scores(captions: Sequence[str], records: Sequence[CaptionedImage], model: Captioner) -> dict[str, Any]:
    """All scores of captions, over words as the model writes them; of scenes of shapes, how many are true."""
    said = [counted(model, caption) for caption in captions]
    scores = caption_scores(said, [[counted(model, caption) for caption in record.captions] for record in records])
    if scenes := _scenes(records):
        scores["true"] = sum(map(is_true, said, scenes)) / len(records)
    return {**scores, "images": len(records)}


def _scenes(records: Sequence[CaptionedImage]) -> list[Scene]:
    """The scenes of shapes that records have in a field of that name; none where one of them has no scene there."""
    told = [record.fields.get("scene") for record in records]
    try:
        return [Scene.parse(str(text)) for text in told] if all(told) else []
    except ValueError:  # a column that is called so by chance
        return []


def _sees(model: Captioner) -> tuple[Any, ...]:
    """What a captioner was told to see of images."""
    return model.config.places, model.config.channels, model.config.model.features, model.named
