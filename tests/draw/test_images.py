"""An image with a grid over it: on a page, as a picture, in a terminal."""

import base64
import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from elman.draw.page import page_html
from elman.draw.panels import Column, Frame, ImageMap, Page
from elman.draw.picture import draw_picture
from elman.draw.terminal import print_page

ODD = '"><script>alert(1)</script>'


def panel(scale: str = "sequential", size: tuple[int, int] = (32, 32)) -> ImageMap:
    drawn = io.BytesIO()
    Image.new("RGB", size, (0, 255, 0)).save(drawn, "PNG")
    data = "data:image/png;base64," + base64.b64encode(drawn.getvalue()).decode()
    frames = [Frame("the image", []), Frame(ODD, [[0.0, 1.0], [0.25, -0.5]])]
    return ImageMap("looks", data, frames, scale=scale, note="Two looks.")  # type: ignore[arg-type]


def test_a_page_holds_the_image_once_and_asks_nobody_for_it() -> None:
    page = page_html(Page("a page", "", [Column("", [panel()])]))
    assert page.count("data:image/png;base64,") == 1 and page.count("<use ") == 1
    assert "img-src data:;" in page and "<script>alert" not in page
    assert re.findall(r'fill-opacity="([0-9.]+)"', page) == ["0.800", "0.000", "0.600", "0.800"]
    assert "img-src" not in page_html(Page("a page", "", []))


@pytest.mark.parametrize("scale", ["sequential", "diverging"])
def test_a_picture_shades_the_cells(scale: str, tmp_path: Path) -> None:
    draw_picture(Page("", "", [Column("", [panel(scale)])]), tmp_path / "a.png")
    pixels = np.asarray(Image.open(tmp_path / "a.png").convert("RGB")).astype(int)
    green = (pixels[..., 1] > 200) & (pixels[..., 0] < 60) & (pixels[..., 2] < 60)
    shaded = (pixels[..., 1] < 160) & (pixels[..., 1] > 20) & (abs(pixels[..., 0] - pixels[..., 1]) > 20)
    assert green.sum() > 20_000 and shaded.sum() > 5_000
    draw_picture(Page("", "", [Column("", [panel(scale)])]), tmp_path / "b.svg")


@pytest.mark.parametrize("size", [(64, 48), (24, 96)])
def test_an_image_keeps_its_shape(size: tuple[int, int], tmp_path: Path) -> None:
    page = Page("", "", [Column("", [panel(size=size)])])
    width, height = size[0] / max(size), size[1] / max(size)
    drawn = page_html(page)
    assert drawn.count(f'viewBox="0 0 {width:.5f} {height:.5f}"') == 2
    assert f'x="{width / 2:.5f}" y="{height / 2:.5f}" width="{width / 2:.5f}" height="{height / 2:.5f}"' in drawn
    draw_picture(page, tmp_path / "a.png")
    pixels = np.asarray(Image.open(tmp_path / "a.png").convert("RGB")).astype(int)
    rows, columns = np.nonzero((pixels[..., 1] > 200) & (pixels[..., 0] < 60))
    first = columns < columns.min() + (columns.max() - columns.min()) / 2  # the frame without a grid
    across, down = np.ptp(columns[first]) + 1, np.ptp(rows[first]) + 1
    assert across / down == pytest.approx(width / height, rel=0.05)


def test_a_terminal_shows_the_numbers() -> None:
    out = io.StringIO()
    print_page(Page("a page", "", [Column("", [panel()])]), Console(file=out, width=60))
    assert "looks" in out.getvalue() and "0.25" in out.getvalue() and "Two looks." in out.getvalue()
