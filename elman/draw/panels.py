"""What can be drawn, as plain data: a view is a list of panels, and each way of drawing knows these kinds and no view.

>>> panel = Tokens("ranks", [Token("the", 0.2, tip={"rank": "3"})], scale="sequential")
>>> panel.to_dict()["tokens"][0]["text"]
'the'
"""

import base64
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

Scale = Literal["sequential", "diverging", "buckets"]
"""Numbers from 0 to 1; from -1 to 1, blue below 0 and red above; or whole numbers from 0, each with its colour."""
Range = tuple[float, float]
"""The ends of an axis; where it is not given it is as long as what is drawn along it."""


@dataclass(frozen=True)
class Panel:
    """One part of a view, with its heading and a sentence about it."""

    kind: ClassVar[str]
    title: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True)
class Token:
    """A piece of a text: its colour, and what is shown of it when it is pointed at."""

    text: str
    value: float | None = None
    """By the scale of its panel; None has no colour."""
    tip: Mapping[str, str] = field(default_factory=dict)
    marked: bool = False
    """Underlined: what the panel is about."""


@dataclass(frozen=True)
class Tokens(Panel):
    """A text, each token on its colour."""

    kind = "tokens"
    tokens: Sequence[Token]
    scale: Scale = "diverging"
    legend: Sequence[str] = ()
    """The meaning of each bucket; of the two ends for the other scales."""
    spaced: bool = False
    """Whether tokens are words, and blanks stand between them."""
    note: str = ""


@dataclass(frozen=True)
class HeatMap(Panel):
    """A table of numbers as colours (R x C)."""

    kind = "heatmap"
    values: Sequence[Sequence[float]]
    rows: Sequence[str]
    columns: Sequence[str]
    scale: Scale = "sequential"
    low: float = 0.0
    high: float = 1.0
    """The numbers of the palest and of the darkest colour; with a diverging scale, -high and high."""
    marked: Sequence[tuple[int, int]] = ()
    """Cells (row, column) with a frame around them."""
    note: str = ""

    @property
    def ends(self) -> Range:
        """The ends of its scale."""
        return -self.high if self.scale == "diverging" else self.low, self.high


@dataclass(frozen=True)
class Bars(Panel):
    """A number for each name."""

    kind = "bars"
    names: Sequence[str]
    values: Sequence[float]
    errors: Sequence[float] = ()
    unit: str = ""
    note: str = ""
    x_range: Range | None = None


@dataclass(frozen=True)
class Line:
    """One curve, with how far it spreads where that is known."""

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    dashed: bool = False


@dataclass(frozen=True)
class Lines(Panel):
    """Curves over one axis."""

    kind = "lines"
    lines: Sequence[Line]
    x: str = ""
    y: str = ""
    log_x: bool = False
    log_y: bool = False
    note: str = ""
    x_range: Range | None = None
    y_range: Range | None = None
    whiskers: bool = False
    """Whether the spread is a bar at each place, for curves of few; else a ground along the curve."""


@dataclass(frozen=True)
class Table(Panel):
    """Cells of text; numbers stand to the right."""

    kind = "table"
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True)
class Node:
    """A node of a tree."""

    id: int
    parent: int | None
    text: str
    value: float = 0.0
    """By the scale of its panel, for its colour."""
    state: str = ""
    """What became of it: nodes of one state are drawn alike."""
    tip: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Tree(Panel):
    """Nodes below nodes; parents stand before their children."""

    kind = "tree"
    nodes: Sequence[Node]
    note: str = ""
    scale: Scale = "sequential"


@dataclass(frozen=True)
class Point:
    """A point of a map."""

    x: float
    y: float
    text: str
    group: str = ""
    tip: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Points(Panel):
    """A map of points, coloured by their group."""

    kind = "points"
    points: Sequence[Point]
    x: str = ""
    y: str = ""
    note: str = ""
    x_range: Range | None = None
    y_range: Range | None = None


@dataclass(frozen=True)
class Frame:
    """One look at an image: a number for each cell of a grid that lies over it (R x C)."""

    title: str
    values: Sequence[Sequence[float]]


@dataclass(frozen=True)
class ImageMap(Panel):
    """An image as often as it is looked at: what is not looked at lies in the dark.

    On a diverging scale cells are red above 0 and blue below.
    """

    kind = "imagemap"
    image: str
    """`data:image/png;base64,...`; it is drawn in its own shape, with the grids stretched over it."""
    frames: Sequence[Frame]
    """Without values, a frame is the image itself."""
    scale: Scale = "sequential"
    note: str = ""

    @property
    def shape(self) -> tuple[float, float]:
        """Its width and height, as the header of the PNG has them, as shares of the longer one."""
        head = base64.b64decode(self.image.partition(",")[2][:32])
        width, height = struct.unpack(">II", head[16:24])
        return width / max(width, height), height / max(width, height)

    def shade(self, frame: Frame) -> list[list[tuple[str, float]]]:
        """The colour over each cell and how much of the image it hides, from 0 to 1; by the frame's largest number."""
        most = max((abs(value) for row in frame.values for value in row), default=0.0) or 1.0
        if self.scale == "diverging":
            return [[("#b3261e" if v > 0 else "#1f5fa8", 0.7 * abs(v) / most) for v in row] for row in frame.values]
        return [[("#000000", 0.8 * (1 - max(v, 0.0) / most)) for v in row] for row in frame.values]


@dataclass(frozen=True)
class Note(Panel):
    """A sentence or several."""

    kind = "note"
    text: str


@dataclass(frozen=True)
class Column:
    """Panels below each other, under a heading: one text of several that are compared."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True)
class Page:
    """All that is drawn together: columns side by side."""

    title: str
    about: str
    """A line below the title: the model, the view, and what the view is."""
    columns: Sequence[Column]
