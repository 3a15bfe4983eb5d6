"""Images of every kind: opened, or refused in one sentence."""

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from elman.errors import UserError
from elman.records.images import image_path, open_image
from elman.records.places import Place

NOISE = Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 60, 3), dtype=np.uint8))


def written(image: Any, format: str, **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def claimed(width: int, height: int) -> bytes:
    """A PNG whose header claims a size, with nothing behind it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    "content",
    [
        written(NOISE, "JPEG"),
        written(NOISE.convert("L"), "PNG"),
        written(NOISE.convert("1"), "PNG"),
        written(NOISE.convert("P"), "GIF"),
        written(NOISE.convert("CMYK"), "JPEG"),
        written(NOISE.convert("LA"), "PNG"),
        written(NOISE, "WEBP"),
        written(NOISE, "GIF", save_all=True, append_images=[NOISE.rotate(180)]),
        written(NOISE, "PNG", save_all=True, append_images=[NOISE.rotate(180)]),
    ],
)
def test_whatever_it_is_it_becomes_red_green_and_blue(content: bytes) -> None:
    found = open_image(content)
    assert found.mode == "RGB" and found.size == (60, 40)


def test_colours_are_what_they_look_like() -> None:
    clear = Image.new("RGBA", (8, 8), (255, 0, 0, 0))
    assert open_image(written(clear, "PNG")).getpixel((0, 0)) == (255, 255, 255)
    deep = np.linspace(0, 65535, 64, dtype=np.uint16).reshape(8, 8)
    grey = np.asarray(open_image(written(Image.fromarray(deep), "PNG")))
    assert grey[0, 0, 0] == 0 and grey[-1, -1, 0] == 255 and 110 < grey[4, 0, 0] < 150
    first, second = Image.new("RGB", (8, 8), (0, 0, 255)), Image.new("RGB", (8, 8), (255, 0, 0))
    moving = written(first, "GIF", save_all=True, append_images=[second])
    assert open_image(moving).getpixel((0, 0)) == (0, 0, 255)


def test_what_a_camera_turned_is_turned_back() -> None:
    turned = NOISE.getexif()
    turned[0x0112] = 6
    assert open_image(written(NOISE, "JPEG", exif=turned)).size == (40, 60)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "a.png is broken or no image"),
        (b"hello", "a.png is broken or no image"),
        (written(NOISE, "PNG")[:300], "a.png is broken or no image"),
        (written(NOISE, "JPEG")[:400], "a.png is broken or no image"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "a.png is broken or no image"),
        (written(Image.new("RGB", (1, 1)), "PNG"), r"a.png has 1 x 1 pixels: give an image of at least 4 x 4"),
        (claimed(9000, 9000), r"a.png has 9,000 x 9,000 pixels: give an image of at most 50,000,000"),
        (claimed(100_000, 100_000), "a.png claims to have more pixels than any image"),
    ],
)
def test_what_is_no_image_is_one_sentence(content: bytes, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        open_image(content, name="a.png")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_pixels_that_are_no_numbers_are_refused_by_name(value: float) -> None:
    deep = np.linspace(-1, 3, 64, dtype=np.float32).reshape(8, 8)
    grey = np.asarray(open_image(written(Image.fromarray(deep), "TIFF")))
    assert grey[0, 0, 0] == 0 and grey[-1, -1, 0] == 255
    deep[2, 3] = value
    with pytest.raises(UserError, match=r"^a\.tiff has pixels that are not finite: write it anew$"):
        open_image(written(Image.fromarray(deep), "TIFF"), name="a.tiff")


def test_what_is_no_file_is_one_sentence(tmp_path: Path) -> None:
    for path, sentence in ((tmp_path / "no.png", "no such file"), (tmp_path, "is no file")):
        with pytest.raises(UserError, match=sentence):
            open_image(path)


def test_a_name_that_no_file_can_have_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("image\n")
    for folder in (None, tmp_path):
        with pytest.raises(UserError, match=r"a.tsv:2 has an image that cannot be had, 'aaa"):
            image_path("a" * 300, Place(tmp_path / "a.tsv", 2), folder)


@pytest.mark.parametrize("low,high,kind", [(1e-30, 2e-30, np.float32), (2**30, 2**30 + 1, np.int32)])
def test_pixels_that_hardly_differ_are_told_apart(low: float, high: float, kind: type) -> None:
    pixels = np.full((16, 16), low, kind)
    pixels[0] = high
    seen = np.asarray(open_image(written(Image.fromarray(pixels), "TIFF")))
    assert seen[0].min() == 255 and seen[1:].max() == 0
