from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.image import imread
from PIL import Image

from elman.draw.panels import (
    Bars,
    Column,
    HeatMap,
    Line,
    Lines,
    Note,
    Page,
    Panel,
    Point,
    Points,
    Table,
    Token,
    Tokens,
    Tree,
)
from elman.draw.picture import CUT, _titled_once, draw_film, draw_picture, picture, same_axes
from elman.errors import UserError
from tests.draw.pages import ODD, every_panel, odd_page


def one(*panels: Panel) -> Page:
    return Page("a page", "", [Column("", panels)])


def texts(page: Page) -> list[str]:
    """Every text of a picture."""
    figure = picture(page)
    found = [text.get_text() for text in figure.texts]
    return found + [text.get_text() for axes in figure.axes for text in axes.texts]


def test_every_panel_is_drawn_as_png_and_svg(tmp_path: Path) -> None:
    draw_picture(every_panel(), tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG\r\n")
    pixels = imread(tmp_path / "a.png")
    assert pixels.shape[0] > 500 and pixels.shape[1] > 500 and pixels.std() > 0.05
    draw_picture(every_panel(), tmp_path / "a.svg")
    assert ElementTree.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "a.svg"]


def test_the_same_page_is_the_same_file(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg", "a.png", "b.png"):
        draw_picture(every_panel(), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_odd_texts_are_drawn(tmp_path: Path) -> None:
    draw_picture(odd_page(ODD), tmp_path / "a.svg")
    assert ElementTree.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")


@settings(max_examples=15, deadline=None)
@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=300))
def test_any_text_is_laid_out(text: str) -> None:
    drawn = texts(one(Tokens("", [Token(text, 0.5), Token("end", 0.1)]), Note("", text)))
    assert "end" in drawn


def test_a_name_that_is_no_picture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"should end in \.png or \.svg"):
        draw_picture(every_panel(), tmp_path / "a.pdf")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("panel", "said"),
    [
        (Tokens("", [Token("word ")] * 2500), "2000 of 2500 tokens"),
        (Table("", ["a"], [["b"]] * 100), "60 of 100 rows"),
        (HeatMap("", [[0.5] * 130] * 2, ["a", "b"], ["c"] * 130), "2 x 120 of 2 x 130 numbers"),
        (Bars("", ["a"] * 70, [1.0] * 70), "60 of 70 bars"),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_what_is_too_large_is_cut_and_says_so(panel: Panel, said: str) -> None:
    assert f"{said}, {CUT}" in texts(one(panel))


def test_too_many_panels_and_columns_are_cut_as_well() -> None:
    many = Page("", "", [Column("", [Points("", [Point(0, 0, "a")])] * 40)] + [Column("", [])] * 9)
    said = texts(many)
    assert f"6 of 10 columns, {CUT}" in said
    assert any(text.endswith(f"more panels, {CUT}") for text in said)
    assert picture(many).get_size_inches()[1] < 110


@pytest.mark.parametrize(
    "panel",
    [
        Tokens("", []),
        HeatMap("", [], [], []),
        Lines("", []),
        Lines("", [Line("none", [], [])], log_x=True, log_y=True),
        Lines("", [Line("odd", [0, 1, 2], [float("inf"), float("nan"), 1e308], [None] * 3, [1.0] * 3)], log_y=True),
        Lines("", [Line("odd", [0, 1, 2], [1.0, None, 3.0], [None] * 3, [1.0] * 3)], whiskers=True),
        Points("", []),
        Table("", [], []),
        Tree("", []),
        Bars("", [], []),
        Note("", ""),
    ],
    ids=lambda panel: panel.kind,
)
def test_a_panel_may_have_nothing_in_it(panel: Panel, tmp_path: Path) -> None:
    draw_picture(one(panel), tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 100


def training(epochs: int) -> Page:
    steps = list(range(1, epochs + 1))
    return one(
        Lines("loss", [Line("train", steps, [1.0 / step for step in steps])]), Bars("score", ["f1"], [0.1 * epochs])
    )


@pytest.mark.parametrize("name", ["a.gif", "a.png"])
def test_a_film_has_a_frame_for_each_page(name: str, tmp_path: Path) -> None:
    draw_film([training(epochs) for epochs in (1, 3, 5)], tmp_path / name, seconds=0.25)
    with Image.open(tmp_path / name) as film:
        assert getattr(film, "n_frames", 1) == 3
        assert film.info["duration"] == 250
    first = (tmp_path / name).read_bytes()
    draw_film([training(epochs) for epochs in (1, 3, 5)], tmp_path / name, seconds=0.25)
    assert (tmp_path / name).read_bytes() == first


def test_frames_of_a_film_have_the_same_axes() -> None:
    pages = same_axes([training(1), training(5)])
    lines, bars = pages[0].columns[0].panels
    assert isinstance(lines, Lines) and isinstance(bars, Bars)
    assert lines.x_range is not None and lines.x_range[1] > 5
    assert bars.x_range == (0.0, 0.5)
    assert same_axes([training(1), one()]) == [training(1), one()]


def test_a_film_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="at least one page"):
        draw_film([], tmp_path / "a.gif", 1.0)
    with pytest.raises(UserError, match=r"should end in \.gif"):
        draw_film([training(1)], tmp_path / "a.mp4", 1.0)


def test_no_text_runs_off_a_picture() -> None:
    long = "A long title that goes on AND ON WITH CAPITALS until it is wrapped to the width of what it stands above"
    name = "a model with a name that says everything that was set for it, and then some more words for good measure"
    columns = ["model", "computation per character", "bits per character (validation)", "internationalisation"] * 2
    row = ["an LSTM with dropout", "1234567.891 ± 12.3", "1.482 ± 0.02", "0.123456789"] * 2
    figure = picture(
        Page(long, long, [Column(long, [Table(long, columns, [row]), Lines(long, [Line(name, [1, 2], [0, 1])])])])
    )
    drawn = [*figure.texts, *(text for axes in figure.axes for text in axes.texts)]
    legends = [legend for axes in figure.axes if (legend := axes.get_legend())]
    drawn += [text for legend in legends for text in legend.get_texts()]
    figure.canvas.draw()
    assert all(text.get_window_extent().x1 <= figure.bbox.x1 for text in drawn)
    told = [text.get_text() for text in drawn]
    assert "1234567.891 ± 12.3" in told and not any("…" in text for text in told)
    assert name in [text.replace("\n", " ") for text in told]


def test_a_film_says_its_title_once() -> None:
    page = _titled_once(Page("step 1", "", [Column("", [Note("step 1", "so")])]))
    assert texts(page).count("step 1") == 1
