"""Images: opened safely, whatever a file holds, as red, green and blue."""

import hashlib
import io
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from elman.errors import UserError
from elman.files import reading, shortened
from elman.records.places import Place, RecordError

if TYPE_CHECKING:
    from PIL.Image import Image

Source = Path | bytes
"""Where an image is: a file, or its content."""
ONE_IMAGE = (str, Path, bytes)
"""What a user gives for one image: a path, or the content of a file."""
LARGEST = 50_000_000  # pixels, as the header says: what claims more is not decoded
LONGEST = 200_000_000  # bytes of a file
SMALLEST = 4  # pixels on each side: less shows nothing
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")  # no others: some of Pillow's readers start programs
NO_PILLOW = "images are read with Pillow, which is not installed: pip install elman[vision]"


def open_image(source: Source, limit: int = LARGEST, name: str | None = None) -> "Image":
    """An image in red, green and blue, turned as its camera says; `name` is what to call it in messages.

    Grey, CMYK and palettes become colours, what is transparent stands on white, and of several frames the first is
    taken. What is no image, broken, of fewer than 4 or in all of more than `limit` pixels is a `UserError`; its size is
    read from its header, before anything is decoded.

    >>> open_image(b"GIF89a", name="a.gif")
    Traceback (most recent call last):
    elman.errors.UserError: a.gif is broken or no image (...): give a JPEG, PNG, WebP, GIF, BMP or TIFF
    """
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise UserError(NO_PILLOW) from error

    name = name or (shortened(source) if isinstance(source, Path) else "the image")
    content = read_image(source)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Pillow's own limit, which is larger, and of odd metadata
            with Image.open(io.BytesIO(content), formats=FORMATS) as image:
                _check_size(image.size, limit, name)
                image.seek(0)
                image.load()
                turned = ImageOps.exif_transpose(image)
            return _on_white(turned, name)
    except (UserError, MemoryError):
        raise
    except Image.DecompressionBombError as error:
        raise UserError(f"{name} claims to have more pixels than any image: give one of at most {limit:,}") from error
    except Exception as error:  # a broken file makes Pillow's readers raise whatever comes to it
        reason = " ".join(str(error).split())[:100] or type(error).__name__
        why = "not in a format that is known" if "cannot identify" in reason else reason
        raise UserError(f"{name} is broken or no image ({why}): give a JPEG, PNG, WebP, GIF, BMP or TIFF") from error


def _check_size(size: tuple[int, int], limit: int, name: str) -> None:
    width, height = size
    if width * height > limit:
        raise UserError(f"{name} has {width:,} x {height:,} pixels: give an image of at most {limit:,}")
    if min(size) < SMALLEST:
        raise UserError(f"{name} has {width} x {height} pixels: give an image of at least {SMALLEST} x {SMALLEST}")


def _on_white(image: "Image", name: str) -> "Image":
    from PIL import Image

    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        seen = image.convert("RGBA")
        white = Image.new("RGBA", seen.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, seen).convert("RGB")
    if image.mode.startswith("I;16") or image.mode in ("I", "F"):  # which Pillow would cut off at 255
        values = np.asarray(image).astype(np.float64)
        if not np.isfinite(values).all():
            raise UserError(f"{name} has pixels that are not finite: write it anew")
        low, high = values.min(), values.max()
        image = Image.fromarray(((values - low) * (255 / (high - low) if high > low else 0)).astype(np.uint8))
    return image.convert("RGB")


def read_image(source: Source) -> bytes:
    """The content of an image's file, which is not decoded yet.

    >>> read_image(Path("a.jpg"))
    Traceback (most recent call last):
    elman.errors.UserError: no such file: a.jpg
    """
    if isinstance(source, bytes):
        return source
    with reading(source):
        if not source.is_file() and source.exists():
            raise UserError(f"{shortened(source)} is no file: name an image")
        if source.stat().st_size > LONGEST:
            raise UserError(f"{shortened(source)} has {source.stat().st_size:,} bytes: give an image of fewer")
        return source.read_bytes()


def content_hash(content: bytes) -> str:
    """What tells images apart by their content, for caches.

    >>> content_hash(b"")
    'cae66941d9efbd404e4d88758ea67670'
    """
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def image_path(name: str, where: Place | None, folder: str | Path | None = None) -> Path:
    """Where the image is that a record names: in `folder`; else beside the table that the record stands in.

    Beside a table it may stand in a folder `images`, which need not be named; a path from where the user is will do.

    >>> str(image_path("images/a.jpg", Place(Path("data/train.tsv"), 2))), str(image_path("a.jpg", None, "images"))
    ('data/images/a.jpg', 'images/a.jpg')
    """
    if where is None or (isinstance(where.path, str) and not Path(where.path).is_file()):  # data in memory
        return Path(folder or "", name)
    beside = Path(where.path).parent  # of standard input, whose path is "-", that is where the user is
    places = [Path(folder, name)] if folder is not None else [beside / name, beside / "images" / name, Path(name)]
    try:
        return next((place for place in places if place.is_file()), places[0])
    except OSError as error:
        raise RecordError(where, f"has an image that cannot be had, '{shortened(name)}': {error.strerror}") from None


def check_images(paths: Iterable[Path], source: str) -> None:
    """Refuse data whose images are not there; the sentence says how many, and the first.

    >>> check_images([Path("images/a.jpg")], "train.tsv")
    Traceback (most recent call last):
    elman.errors.UserError: train.tsv names 1 image that is not there, of 1 (images/a.jpg): say where images are with \
-s data.images=FOLDER
    """
    named = dict.fromkeys(paths)
    missing = [path for path in named if not path.is_file()]
    if missing:
        what = "image that is" if len(missing) == 1 else "images that are"
        first = shortened(missing[0]) if len(missing) == 1 else f"the first is {shortened(missing[0])}"
        raise UserError(
            f"{source} names {len(missing):,} {what} not there, of {len(named):,} ({first}): say where images are with "
            "-s data.images=FOLDER"
        )
