"""Where a captioner looks for each word that it writes; the images whose captions are best and worst."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np
from pydantic import Field

from elman.draw.panels import Frame, ImageMap, Note, Panel
from elman.errors import UserError
from elman.inspect.looking import image_data
from elman.inspect.view import AnyModel, View
from elman.metrics.captions import cider_d
from elman.records.captions import CaptionedImage
from elman.tasks.caption import Captioner, CaptionRecipe, CaptionTask, counted
from elman.tasks.recipes import check_named, find_files
from elman.train.recipe import Section, parse


class CaptionOptions(Section):
    """What can be asked of where a captioner looks."""

    target: str | None = Field(None, description="A caption in place of the model's own.")


@dataclass(frozen=True)
class WrittenImage:
    """An image, its caption, and where each token of it looked."""

    image: str
    caption: str
    log_prob: float
    tokens: list[str]
    attention: list[list[list[float]]]
    """The weight of each place for each token (T x R x C)."""
    unknown: list[str] = field(default_factory=list)
    """Words of a given caption that the model does not know: it reads `<unk>` in their place."""


class CaptionView(View[WrittenImage]):
    """An image once for each word of its caption, lit where the model looked."""

    name = "image"
    about = "where in the image a captioner looks for each word"
    Options = CaptionOptions
    averages = True

    def refusal(self, model: AnyModel) -> str | None:
        attends = cast(Captioner, model).settings.attends
        return None if attends else "it has no attention, so it cannot say where it looks"

    def compute(self, model: AnyModel, texts: Sequence[str], options: CaptionOptions) -> list[WrittenImage]:
        captioner = cast(Captioner, model)
        return [written_image(captioner, text, options.target) for text in texts]

    def panels(self, data: WrittenImage) -> list[Panel]:
        frames = [Frame(token, grid) for token, grid in zip(data.tokens, data.attention, strict=True)]
        note = (
            "What a word did not look at is in the dark. Weights say where the model looked, not why it wrote a word."
        )
        image = image_data(Path(data.image))
        shown = ImageMap(data.caption, image, [Frame("the image", []), *frames], note=note)
        told = f"The model does not know {', '.join(map(repr, data.unknown))}: it reads <unk> there."
        return [*([Note("unknown words", told)] if data.unknown else []), shown]


def written_image(model: Captioner, image: str, target: str | None = None) -> WrittenImage:
    """An image with its caption, or with one that is given, and where each token looks."""
    from elman.nn.images import grid_of

    path, unknown = Path(image), list[str]()
    if target is None:
        found = model.predict(path, alignments=True)
        assert found.weights is not None
        caption, log_prob, tokens, weights = found.text, found.n_best[0].log_prob, found.tokens, found.weights
    else:
        ids = model.vocabulary.say(target)
        if not len(ids):
            raise UserError("the caption is empty: give it at least one word")
        pairs = [(model.features.of([path])[0], ids)]
        (log_prob,), (weights,) = model.pair_log_probs(pairs), model.attention(pairs)
        caption, tokens = target, model.names_of(ids.tolist())
        known, words = model.vocabulary, dict.fromkeys(counted(model, target).split())
        unknown = [word for word in words if known.target.unk_id in known.say(word)]
    grids = weights.reshape(-1, *grid_of(weights.shape[1])).tolist()
    return WrittenImage(image, caption, log_prob, tokens, grids, unknown)


class GalleryOptions(Section):
    """What can be asked of a gallery."""

    count: int = Field(6, ge=1, le=100, description="So many of the best captions, and as many of the worst.")


@dataclass(frozen=True)
class Picture:
    """An image with its caption, those that are right, and CIDEr-D (times 100): how near it comes to them."""

    image: str
    caption: str
    references: list[str]
    cider: float


@dataclass(frozen=True)
class Gallery:
    """The best and the worst captions of some images."""

    images: int
    best: list[Picture]
    worst: list[Picture]
    """The worst first."""


class GalleryView(View[Gallery]):
    """The images whose captions come nearest to what people wrote, and those whose do not."""

    name = "gallery"
    about = "the best and the worst captions of held-out images"
    Options = GalleryOptions
    averages = True
    joint, takes_files = True, True

    def compute(self, model: AnyModel, texts: Sequence[str], options: GalleryOptions) -> list[Gallery]:
        captioner = cast(Captioner, model)
        pictures = sorted(judged(captioner, _records(captioner, texts)), key=lambda picture: -picture.cider)
        count = min(options.count, len(pictures) // 2 or 1)
        return [Gallery(len(pictures), pictures[:count], pictures[::-1][:count])]

    def panels(self, data: Gallery) -> list[Panel]:
        return [
            Note("how they are judged", f"By CIDEr-D among the references of all {data.images:,} images."),
            *(_panel(f"best {place}", picture) for place, picture in enumerate(data.best, 1)),
            *(_panel(f"worst {place}", picture) for place, picture in enumerate(data.worst, 1)),
        ]


def _panel(title: str, picture: Picture) -> Panel:
    note = f"CIDEr-D {picture.cider:.1f}. People wrote: {' / '.join(picture.references)}"
    return ImageMap(f"{title}: {picture.caption}", image_data(Path(picture.image)), [Frame("", [])], note=note)


def _records(model: Captioner, names: Sequence[str]) -> list[CaptionedImage]:
    """The images of captions files, or those that the model's recipe holds out."""
    task, recipe = CaptionTask(), parse(CaptionRecipe, model.recipe, where="the model's config.json")
    paths = [Path(name) for name in names]
    reader = task.reader(recipe.data)
    if paths:
        return reader.files(paths).read()
    try:
        check_named(recipe.data)
    except UserError as error:
        raise UserError(f"the model's held-out images cannot be found: {error}; name a captions file") from None
    parts = {split: reader.files(found).read() for split, found in find_files(recipe.data).items() if split != "test"}
    return task.settle(parts, recipe, lambda line: None).dev


def judged(model: Captioner, records: Sequence[CaptionedImage]) -> list[Picture]:
    """Images with the captions that a model writes, each with its CIDEr-D."""
    written = model.predict_stored(records)
    words = [[counted(model, caption).split() for caption in record.captions] for record in records]
    scores = cider_d([caption.text.split() for caption in written], words)
    return [
        Picture(str(record.image), caption.text, list(record.captions), float(np.round(100 * score, 2)))
        for record, caption, score in zip(records, written, scores, strict=True)
    ]
