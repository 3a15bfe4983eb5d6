"""Panels as a picture, or a film of several: by matplotlib, the same bytes for the same panels.

Sizes are in inches. Each panel says how high it is, and draws itself there, from the top of its column down.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elman.draw.axis import Axis, bar_reach
from elman.draw.panels import Bars, Column, Lines, Page, Panel, Points, Range
from elman.draw.plots import COLUMN, KINDS, LINE, SOFT, Pen, wrapped
from elman.errors import UserError
from elman.files import write_aside

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARGIN, GAP = 0.45, 0.4  # around all columns, and between them
MOST_COLUMNS = 6
HIGHEST = 100  # inches
DPI = 120
CUT = "cut to fit into a picture: a page (.html) has all of it"


def draw_picture(page: Page, path: Path) -> None:
    """Draw a page as a .png or .svg; the file appears whole or not at all. What is too large is cut, and says so."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg"):
        raise UserError(f"{path} should end in .png or .svg for a picture")
    with write_aside(path) as aside, _quiet():
        picture(page).savefig(aside, format=kind, dpi=DPI, metadata={"Date": None} if kind == "svg" else None)


def draw_film(pages: Sequence[Page], path: Path, seconds: float = 0.2) -> None:
    """Draw pages one after another, each for some seconds, as a .gif or an animated .png.

    Panels in the same place of several pages have the same axes, so that what moves is what was measured.
    """
    from PIL import Image

    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("gif", "png", "apng"):
        raise UserError(f"{path} should end in .gif or .png for a film")
    if not pages:
        raise UserError("there is nothing to draw: a film has at least one page")
    frames = []
    for page in same_axes([_titled_once(page) for page in pages]):
        drawn = BytesIO()
        with _quiet():
            picture(page).savefig(drawn, format="png", dpi=DPI)
        frames.append(Image.open(drawn).convert("RGB"))
    size = max(frame.width for frame in frames), max(frame.height for frame in frames)
    whole = [Image.new("RGB", size, "#ffffff") for _ in frames]
    for frame, ground in zip(frames, whole, strict=True):
        ground.paste(frame)
    if kind == "gif":
        whole = [frame.quantize(128) for frame in whole]
    with write_aside(path) as aside:
        whole[0].save(
            aside,
            format="GIF" if kind == "gif" else "PNG",
            save_all=True,
            append_images=whole[1:],
            duration=max(20, round(seconds * 1000)),
            loop=0,
        )


def _titled_once(page: Page) -> Page:
    """A page whose panels and columns do not say its title again."""
    columns = [
        Column(
            "" if column.title == page.title else column.title,
            [replace(panel, title="") if panel.title == page.title else panel for panel in column.panels],
        )
        for column in page.columns
    ]
    return replace(page, columns=columns)


@contextmanager
def _quiet() -> Iterator[None]:
    """Settings that make the same picture everywhere; no warning for a letter that the font lacks: it is a box."""
    from matplotlib import rc_context

    with warnings.catch_warnings(), rc_context({"svg.hashsalt": "elman"}):
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        yield


def same_axes(pages: Sequence[Page]) -> list[Page]:
    """Pages of one shape with axes that hold what any of them has."""
    if len({tuple(tuple(panel.kind for panel in column.panels) for column in page.columns) for page in pages}) > 1:
        return list(pages)  # they have nothing in common
    changed = [[list(column.panels) for column in page.columns] for page in pages]
    for column in range(len(pages[0].columns)):
        for place in range(len(pages[0].columns[column].panels)):
            shared = _shared([page[column][place] for page in changed])
            for page, panel in zip(changed, shared, strict=True):
                page[column][place] = panel
    return [
        replace(page, columns=[replace(column, panels=new) for column, new in zip(page.columns, columns, strict=True)])
        for page, columns in zip(pages, changed, strict=True)
    ]


def _shared(panels: Sequence[Panel]) -> list[Panel]:
    lines = [panel for panel in panels if isinstance(panel, Lines)]
    points = [panel for panel in panels if isinstance(panel, Points)]
    bars = [panel for panel in panels if isinstance(panel, Bars)]
    if lines:
        every = [line for panel in lines for line in panel.lines]
        x_range = _reach((x for line in every for x in line.x), lines[0].log_x)
        y_range = _reach((y for line in every for y in (*line.y, *line.low, *line.high)), lines[0].log_y)
        return [replace(p, x_range=p.x_range or x_range, y_range=p.y_range or y_range) for p in lines]
    if points:
        x_range = _reach((point.x for panel in points for point in panel.points), False)
        y_range = _reach((point.y for panel in points for point in panel.points), False)
        return [replace(p, x_range=p.x_range or x_range, y_range=p.y_range or y_range) for p in points]
    if bars:
        reaches = [bar_reach(panel) for panel in bars]
        reach = min(low for low, _ in reaches), max(high for _, high in reaches)
        return [replace(panel, x_range=panel.x_range or reach) for panel in bars]
    return list(panels)


def _reach(values: Iterable[float | None], log: bool) -> Range:
    axis = Axis.around(values, log, margin=0.05)
    return axis.low, axis.high


# The page


def picture(page: Page) -> "Figure":
    """A page as a figure of matplotlib's."""
    from matplotlib.figure import Figure

    columns = [_Drawing(column) for column in page.columns[:MOST_COLUMNS]]
    room = COLUMN * max(len(columns), 1)
    heading = wrapped(page.title, room, 15, bold=True) if page.title else []
    about = wrapped(page.about, room) if page.about else []
    if len(page.columns) > MOST_COLUMNS:
        about.append(f"{MOST_COLUMNS} of {len(page.columns)} columns, {CUT}")
    top = 0.32 * len(heading) + LINE * len(about) + (0.35 if heading or about else 0.0)
    height = 2 * MARGIN + top + max((column.height for column in columns), default=0.5)
    width = 2 * MARGIN + len(columns) * COLUMN + (len(columns) - 1) * GAP if columns else 2 * MARGIN + COLUMN
    figure = Figure(figsize=(width, height), facecolor="white")
    pen = Pen(figure, MARGIN, height - MARGIN, COLUMN)
    for line in heading:
        pen.write(line, size=15, weight="bold", step=0.32)
    for line in about:
        pen.write(line, color=SOFT)
    for place, column in enumerate(columns):
        column.draw(Pen(figure, MARGIN + place * (COLUMN + GAP), height - MARGIN - top, COLUMN))
    return figure


def figure(*panels: Panel) -> "Figure":
    """Panels below each other as a figure of matplotlib's, which a notebook shows.

    >>> bool(figure(Bars("steps", ["RNN", "LSTM"], [7, 100])).get_size_inches()[0] > 5)
    True
    """
    return picture(Page("", "", [Column("", panels)]))


class _Drawing:
    """The panels of a column, each with its height and what draws it."""

    def __init__(self, column: Column) -> None:
        self.height = 0.0
        self.parts: list[tuple[float, Callable[[Pen], None]]] = []
        if column.title:
            self._text(wrapped(column.title, COLUMN, 11, bold=True, most=3), 0.2, size=11, weight="bold", step=0.24)
        for place, panel in enumerate(column.panels):
            height, draw, cut = KINDS[panel.kind](panel)
            if self.height + height > HIGHEST:
                self._text([f"{len(column.panels) - place} more panels, {CUT}"], 0.1, color=SOFT)
                break
            if panel.title:
                self._text(wrapped(panel.title, COLUMN, 10.5, bold=True), 0.06, size=10.5, weight="bold", step=0.23)
            self._add(height, draw)
            note = getattr(panel, "note", "")
            told = (wrapped(note, COLUMN, 8.5) if note else []) + ([f"{cut}, {CUT}"] if cut else [])
            if told:
                self._add(0.08, lambda pen: None)
            self._text(told, 0.32, color=SOFT, size=8.5)

    def _add(self, height: float, draw: Callable[[Pen], None]) -> None:
        self.height += height
        self.parts.append((height, draw))

    def _text(self, lines: Sequence[str], after: float, step: float = LINE, **style: Any) -> None:
        def draw(pen: Pen) -> None:
            for line in lines:
                pen.write(line, step=step, **style)

        self._add(step * len(lines) + after, draw)

    def draw(self, pen: Pen) -> None:
        """Draw all of them, each below the height of the one before."""
        for height, part in self.parts:
            below = pen.top - height
            part(pen)
            pen.top = below
