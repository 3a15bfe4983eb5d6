"""Each kind of panel by matplotlib: how high it is, and what draws it from a place downwards. Sizes are in inches."""

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from io import BytesIO
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, Any

from elman.draw.axis import LARGEST, Axis, bar_reach
from elman.draw.colours import BUCKETS, LEVELS, LIGHT, ink, level
from elman.draw.labels import cells, clean, label, number, number_columns
from elman.draw.layout import Room, column_widths, places, state_styles
from elman.draw.panels import Bars, HeatMap, ImageMap, Lines, Note, Points, Scale, Table, Tokens, Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN = 7.2  # the width of a panel
LINE = 0.2  # of text
CELL = 0.075  # the width of a character of a fixed width, in the size that texts have
SPACE = 0.22  # between the columns of a table
PART = 0.15  # between the parts of one
SMALLEST = 6.0  # type that can be read
AXIS = 0.62  # what is left of a chart for its numbers
MOST_NAMED = 300  # points
LOOKS, MOST_LOOKS = 4, 40  # at an image: in a row, and in all
MOST_TOKENS, MOST_ROWS, MOST_CELLS, MOST_NODES = 2000, 60, 120, 150
TEXT, SOFT, RULE = "#1b1f24", "#59626d", "#dfe1e4"
MONO = "DejaVu Sans Mono"  # comes with matplotlib
MARKERS = "os^Dv"
PATTERNS = {1: ":", 2: "--", 3: "-", 4: "-.", 5: ":"}  # below the tokens of a bucket: colour is not alone
FRAMES = ("-", "-", "--", ":", "-.")  # of the states of a tree's nodes, as on a page
LEGEND = 4  # names beside each other
FRAMED = ("thick", "plain", "dashed", "dotted", "dash-dot")


class Pen:
    """A place on a figure, in inches from its lower left, that moves down as it draws."""

    def __init__(self, figure: "Figure", left: float, top: float, width: float) -> None:
        self.figure, self.left, self.top, self.width = figure, left, top, width

    def write(self, text: str, step: float = LINE, indent: float = 0.0, **style: Any) -> None:
        """A line of text."""
        width, height = self.figure.get_size_inches()
        style = dict[str, Any](size=9.5, color=TEXT, va="top", parse_math=False) | style
        self.figure.text((self.left + indent) / width, self.top / height, text, **style)
        self.top -= step

    def axes(self, height: float, left: float = 0.0, width: float | None = None, below: float = 0.0) -> "Axes":
        """Axes of a height, moved from the left, with room below them."""
        across, up = self.figure.get_size_inches()
        box = (self.left + left, self.top - height, self.width - left if width is None else width, height)
        self.top -= height + below
        return self.figure.add_axes((box[0] / across, box[1] / up, box[2] / across, box[3] / up))

    def sheet(self, height: float) -> "Axes":
        """Axes without axes, in inches, downwards."""
        axes = self.axes(height)
        axes.set(xlim=(0, self.width), ylim=(height, 0))
        axes.set_axis_off()
        return axes


Drawn = tuple[float, Callable[[Pen], None], str]
"""The height of a panel, what draws it there, and what of it was cut, in a few words."""


@cache
def _advance(sign: str, bold: bool) -> float:
    """The width of a character of matplotlib's own font, as a share of the size of the type."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    font = get_font(findfont(FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal")))
    font.set_size(100, 72)
    return float(font.load_glyph(font.get_char_index(ord(sign))).linearHoriAdvance) / 65536 / 100


def measured(text: str, size: float = 9.5, bold: bool = False) -> float:
    """The width of a line of text in inches, a little more than it takes."""
    return sum(_advance(sign, bold) for sign in text) * size / 72 * 1.03


def wrapped(text: str, width: float, size: float = 9.5, bold: bool = False, most: int = 40) -> list[str]:
    """Lines of at most so many inches; a word that is longer than a line is broken."""
    lines: list[str] = []
    blank = measured(" ", size, bold)
    for line in clean(text).split("\n"):
        current, taken = "", 0.0
        for word in line.replace("\t", " ").split(" "):
            own = measured(word, size, bold)
            if current and taken + blank + own > width:
                lines.append(current)
                current, taken = "", 0.0
            while own > width and len(word) > 1 and len(lines) <= most:
                ends = accumulate(measured(sign, size, bold) for sign in word)
                end = max(1, sum(1 for _ in takewhile(lambda end: end <= width, ends)))
                lines.append(word[:end])
                word = word[end:]
                own = measured(word, size, bold)
            current, taken = (f"{current} {word}", taken + blank + own) if current else (word, own)
        lines.append(current)
        if len(lines) > most:
            break
    return lines if len(lines) <= most else [*lines[: most - 1], lines[most - 1][:-1] + "…"]


def _ground(value: float | None, scale: Scale, low: float = 0.0, high: float = 1.0) -> str | None:
    step = level(value, scale, low, high)
    return None if step is None else LIGHT.colour(scale, step)


# Texts


def _tokens(panel: Tokens) -> Drawn:
    """Characters of a fixed width, so that a text is laid out without asking a font."""
    tokens = panel.tokens[:MOST_TOKENS]
    width, between = int(COLUMN / CELL / 1.12), 1 if panel.spaced else 0
    pieces: list[tuple[int, int, str, int]] = []  # line, place in it, text, number of the token
    line = place = 0
    for number_of_token, token in enumerate(tokens):
        shown = clean(token.text).replace("\t", "⇥") or "∅"
        for part in shown.splitlines(keepends=True):
            part, ends = (part[:-1] + "⏎", True) if part.endswith("\n") else (part, False)
            while part:
                if place + cells(part) > width and place:
                    line, place = line + 1, 0
                piece = part if cells(part) <= width else part[: width // 2]
                pieces.append((line, place, piece, number_of_token))
                place += cells(piece)
                part = part[len(piece) :]
            if ends:
                line, place = line + 1, 0
        place += between if place else 0
    rows = line + 1
    step, cell = 0.25, CELL * 1.12
    legend = _legend_height(panel.legend)

    def draw(pen: Pen) -> None:
        from matplotlib.collections import LineCollection, PolyCollection

        _legend(pen, panel.scale, panel.legend)
        axes = pen.sheet(step * rows)
        boxes, grounds, lines, patterns, widths = [], [], [], [], []
        for line, place, piece, number_of_token in pieces:
            token = tokens[number_of_token]
            ground = _ground(token.value, panel.scale)
            left, right, top, bottom = place * cell, (place + cells(piece)) * cell, line * step, (line + 1) * step
            if ground:
                boxes.append([(left, top + 0.02), (right, top + 0.02), (right, bottom - 0.03), (left, bottom - 0.03)])
                grounds.append(ground)
            pattern = PATTERNS.get(int(token.value or 0)) if panel.scale == "buckets" else None
            if token.marked or pattern:
                lines.append([(left, bottom - 0.035), (right, bottom - 0.035)])
                patterns.append("-" if token.marked else pattern)
                widths.append(1.8 if token.marked else 0.9)
            if piece.strip():
                style: dict[str, Any] = {"color": ink(ground) if ground else TEXT, "size": 9.8, "family": MONO}
                style |= {"va": "center_baseline", "parse_math": False, "clip_on": False}
                axes.text(left, top + step / 2, piece.replace(" ", "\u00a0"), **style)
        axes.add_collection(PolyCollection(boxes, facecolors=grounds, linewidths=0), autolim=False)
        axes.add_collection(LineCollection(lines, colors=TEXT, linestyles=patterns, linewidths=widths), autolim=False)

    cut = f"{len(tokens)} of {len(panel.tokens)} tokens" if len(tokens) < len(panel.tokens) else ""
    return legend + step * rows + 0.06, draw, cut


def _legend_height(legend: Sequence[str]) -> float:
    return 0.32 if legend else 0.0


def _legend(pen: Pen, scale: Scale, legend: Sequence[str]) -> None:
    from matplotlib.patches import Rectangle

    if not legend:
        return
    axes = pen.sheet(0.32)
    left = 0.0
    names = [label(name, 30) for name in legend]
    if scale == "buckets":
        for step, name in enumerate(names):
            width = cells(name) * CELL + 0.2
            colour = LIGHT.colour(scale, min(step, BUCKETS - 1))
            axes.add_patch(Rectangle((left, 0), width, 0.2, color=colour, lw=0))
            axes.text(left + width / 2, 0.1, name, size=8.5, ha="center", va="center_baseline", parse_math=False)
            left += width + 0.12
        return
    axes.text(left, 0.1, names[0], size=8.5, color=SOFT, va="center_baseline", parse_math=False)
    left += cells(names[0]) * CELL + 0.1
    for step in range(0, LEVELS, 2):
        axes.add_patch(Rectangle((left, 0.03), 0.12, 0.13, color=LIGHT.colour(scale, step), lw=0))
        left += 0.12
    axes.text(left + 0.1, 0.1, names[-1], size=8.5, color=SOFT, va="center_baseline", parse_math=False)


# Tables of numbers and of texts


def _heatmap(panel: HeatMap) -> Drawn:
    rows, columns = panel.rows[:MOST_CELLS], panel.columns[:MOST_CELLS]
    names = [label(name, 16) for name in columns], [label(name, 22) for name in rows]
    side = max((cells(name) for name in names[1]), default=0) * CELL + 0.12
    longest = max((cells(name) for name in names[0]), default=0)
    turned, above = (90, longest * CELL + 0.12) if longest > 2 else (0, 0.24)
    size = min(0.32, (COLUMN - side) / max(len(columns), 1))
    small = min(8.5, max(4.0, size * 72 * 0.8))
    ends = [] if panel.scale == "buckets" else [number(end) for end in panel.ends]

    def draw(pen: Pen) -> None:
        from matplotlib.patches import Rectangle

        _legend(pen, panel.scale, ends)
        pen.top -= above
        axes = pen.axes(size * len(rows), left=side, width=size * len(columns))
        colours = [
            [_rgb(_ground(value, panel.scale, panel.low, panel.high)) for value in values[:MOST_CELLS]]
            for values in panel.values[:MOST_CELLS]
        ]
        axes.imshow(colours, aspect="auto", interpolation="nearest")
        axes.set_xticks(range(len(columns)), labels=names[0], rotation=turned, size=small, parse_math=False)
        axes.set_yticks(range(len(rows)), labels=names[1], size=small, parse_math=False)
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        for edge in axes.spines.values():
            edge.set_visible(False)
        for row, column in panel.marked:
            if row < len(rows) and column < len(columns):
                axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, ec=TEXT, lw=1.4))

    if not rows or not columns:
        return 0.0, lambda pen: None, ""
    cut = ""
    if len(rows) < len(panel.rows) or len(columns) < len(panel.columns):
        cut = f"{len(rows)} x {len(columns)} of {len(panel.rows)} x {len(panel.columns)} numbers"
    return _legend_height(ends) + above + size * len(rows) + 0.08, draw, cut


def _rgb(colour: str | None) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour or "#ffffff")
    return red, green, blue


def _table(panel: Table) -> Drawn:
    """A table; one with too many columns for a type that can be read is drawn in parts, its first column in each."""
    parts = _parts(panel)
    drawn = [_part(part) for part in parts]

    def draw(pen: Pen) -> None:
        for height, part, _ in drawn:
            below = pen.top - height - PART
            part(pen)
            pen.top = below

    return sum(height for height, _, _ in drawn) + PART * (len(drawn) - 1), draw, drawn[0][2]


def _parts(panel: Table) -> list[Table]:
    heads, rows = list(panel.columns), [list(row) for row in panel.rows]
    size = _fitted(heads, rows[:MOST_ROWS], number_columns(rows, len(heads)))[0]
    if size >= SMALLEST or len(heads) < 3:
        return [panel]
    half = len(heads) // 2 + 1
    left = replace(panel, columns=heads[:half], rows=[row[:half] for row in rows])
    right = replace(panel, columns=heads[:1] + heads[half:], rows=[row[:1] + row[half:] for row in rows])
    return _parts(left) + _parts(right)


def _part(panel: Table) -> Drawn:
    numeric = number_columns(panel.rows, len(panel.columns))
    rows = [[label(cell) if cell else "" for cell in row] for row in panel.rows[:MOST_ROWS]]
    heads = [label(name) if name else "" for name in panel.columns]
    size, widths = _fitted(heads, rows, numeric)
    lefts = [sum(widths[:place]) + SPACE * place for place in range(len(widths))]
    lines = [
        [wrapped(cell, width + 0.01, size, bold, 12) for cell, width in zip(row, widths, strict=True)]
        for row, bold in [(heads, True), *((row, False) for row in rows)]
    ]
    step = 0.165 * size / 9
    heights = [step * max(map(len, row), default=1) + 0.085 for row in lines]

    def draw(pen: Pen) -> None:
        axes = pen.sheet(sum(heights))
        below = 0.0
        for place, (row, height) in enumerate(zip(lines, heights, strict=True)):
            top, below = below, below + height
            style: dict[str, Any] = {
                "size": size,
                "color": TEXT if place else SOFT,
                "weight": "normal" if place else "bold",
                "va": "center_baseline",
                "parse_math": False,
            }
            for left, width, right, cell in zip(lefts, widths, numeric, row, strict=True):
                first = top if place else below - height + step * (max(map(len, row)) - len(cell))  # heads stand low
                for number_of_line, text in enumerate(cell):
                    middle = first + 0.0425 + (number_of_line + 0.5) * step
                    axes.text(left + width * right, middle, text, ha="right" if right else "left", **style)
            end = sum(widths) + SPACE * (len(widths) - 1)
            axes.plot([0, max(end, 0.0)], [below] * 2, color=RULE if place else SOFT, lw=0.7)

    cut = f"{len(rows)} of {len(panel.rows)} rows" if len(rows) < len(panel.rows) else ""
    return sum(heights) + 0.1, draw, cut


def _fitted(heads: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool]) -> tuple[float, list[float]]:
    """The size of the type of a table and the widths of its columns: numbers are never broken, words rarely."""
    room = COLUMN - SPACE * (len(heads) - 1)
    columns = [[row[place] for row in rows] for place in range(len(heads))]
    for size in (9.0, 8.0, 7.0, 6.0, 5.0):
        whole, least = [], []
        for head, column, right in zip(heads, columns, numeric, strict=True):
            cell = max((measured(text, size) for text in column), default=0.0)
            word = max((measured(word, size) for text in column for word in text.split(" ")), default=0.0)
            name = max(measured(word, size, bold=True) for word in head.split(" "))
            whole.append(max(cell, measured(head, size, bold=True)))
            least.append(max(cell if right else min(word, 1.4), min(name, 1.4)))
        if sum(whole) <= room:
            return size, whole
        if sum(least) <= room:
            share = (room - sum(least)) / (sum(whole) - sum(least))
            return size, [low + (high - low) * share for low, high in zip(least, whole, strict=True)]
    if room <= 0:
        return 1.0, [COLUMN / len(heads) / 2] * len(heads)
    squeezed = room / sum(least)
    return size * squeezed, [width * squeezed for width in least]


def _note(panel: Note) -> Drawn:
    lines = wrapped(panel.text, COLUMN)

    def draw(pen: Pen) -> None:
        for line in lines:
            pen.write(line)

    return LINE * len(lines), draw, ""


# Charts


def _bars(panel: Bars) -> Drawn:
    shown = len(panel.names[:MOST_ROWS])
    names = [label(name, 30) for name in panel.names[:shown]]
    side = max((cells(name) for name in names), default=0) * CELL + 0.15
    height = 0.26 * shown
    if not shown:
        return 0.0, lambda pen: None, ""

    def draw(pen: Pen) -> None:
        axes = pen.axes(height, left=side, width=COLUMN - side - 1.1)
        values = [value if math.isfinite(value) else 0.0 for value in panel.values[:shown]]
        colours = [LIGHT.names[0] if value >= 0 else SOFT for value in values]
        errors = list(panel.errors[:shown]) or None
        axes.barh(
            range(shown), values, 0.68, color=colours, xerr=errors, error_kw={"ecolor": TEXT, "lw": 1, "capsize": 2.5}
        )
        axes.axvline(0, color=SOFT, lw=0.8)
        axes.set_yticks(range(shown), labels=names, size=9, parse_math=False)
        axes.set_ylim(shown - 0.5, -0.5)
        axes.set_xlim(bar_reach(panel))
        axes.set_xticks([])
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        for place, value in enumerate(panel.values[:shown]):
            error = f" ± {number(panel.errors[place])}" if panel.errors and panel.errors[place] else ""
            told = number(value) + error + (f" {label(panel.unit, 12)}" if panel.unit else "")
            axes.text(1.02, place, told, transform=axes.get_yaxis_transform(), size=8.5, va="center", parse_math=False)

    cut = f"{shown} of {len(panel.names)} bars" if shown < len(panel.names) else ""
    return height + 0.1, draw, cut


def _lines(panel: Lines) -> Drawn:
    height, below, names = 2.9, 0.5, _Names([line.name for line in panel.lines])

    def draw(pen: Pen) -> None:
        pen.top -= names.above
        axes = pen.axes(height, left=AXIS, below=below)
        for place, line in enumerate(panel.lines):
            colour = LIGHT.names[place % len(LIGHT.names)]
            y = _known(line.y)
            every = max(1, len(y) // 8)
            marks = {"marker": MARKERS[place % len(MARKERS)], "markevery": every, "ms": 4, "mec": "white", "mew": 0.6}
            style: dict[str, Any] = {"color": colour, "lw": 1.6, "ls": "--" if line.dashed else "-"} | marks
            axes.plot(_known(line.x), y, label=f"line {place}", **style)
            if line.low and line.high and panel.whiskers:
                axes.vlines(_known(line.x), _known(line.low), _known(line.high), color=colour, lw=1.2)
            elif line.low and line.high:
                axes.fill_between(_known(line.x), _known(line.low), _known(line.high), color=colour, alpha=0.15, lw=0)
        across = Axis.around((x for line in panel.lines for x in line.x), panel.log_x, panel.x_range, 0.02)
        heights = (y for line in panel.lines for y in (*line.y, *line.low, *line.high))
        _axes(axes, panel.x, panel.y, across, Axis.around(heights, panel.log_y, panel.y_range, 0.04))
        names.draw(axes, height, below)

    return names.above + height + below + names.below, draw, ""


def _known(values: Sequence[float | None]) -> list[float]:
    return [value if value is not None and abs(value) < LARGEST else math.nan for value in values]


def _points(panel: Points) -> Drawn:
    height, below = 4.4, 0.5
    groups = list(dict.fromkeys(point.group for point in panel.points))
    names = _Names(groups if any(groups) else [])
    width = COLUMN - AXIS

    def draw(pen: Pen) -> None:
        pen.top -= names.above
        axes = pen.axes(height, left=AXIS, below=below)
        for place, group in enumerate(groups):
            own = [point for point in panel.points if point.group == group]
            colour = LIGHT.names[place % len(LIGHT.names)]
            across, up = _known([point.x for point in own]), _known([point.y for point in own])
            style: dict[str, Any] = {"s": 22, "marker": MARKERS[place % len(MARKERS)], "ec": "white", "lw": 0.5}
            axes.scatter(across, up, color=colour, label=f"group {place}", clip_on=False, **style)
        x_axis = Axis.around((point.x for point in panel.points), False, panel.x_range, 0.06)
        y_axis = Axis.around((point.y for point in panel.points), False, panel.y_range, 0.06)
        seen = [(point, x_axis.share(point.x), y_axis.share(point.y)) for point in panel.points]
        placed = [(point, x * width, y * height) for point, x, y in seen if x is not None and y is not None]
        room = Room([(x, y) for _, x, y in placed], 0.08, (0, width + 0.1))
        for point, x, y in placed if len(placed) <= MOST_NAMED else ():
            name = label(point.text, 18)
            if side := room.side(x, y, cells(name) * CELL):
                style = {"size": 7.5, "va": "center", "ha": "left" if side > 0 else "right", "color": TEXT}
                style |= {"parse_math": False, "textcoords": "offset points"}
                axes.annotate(name, (point.x, point.y), (4 * side, 0), **style)
        _axes(axes, panel.x, panel.y, x_axis, y_axis)
        names.draw(axes, height, below)

    return names.above + height + below + names.below, draw, ""


def _axes(axes: "Axes", x: str, y: str, across: Axis, up: Axis) -> None:
    """Names, ends and ticks of two axes."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(SOFT)
    axes.set(xscale="log" if across.log else "linear", yscale="log" if up.log else "linear")
    axes.set(xlim=(across.low, across.high), ylim=(up.low, up.high))
    for side, axis in ((axes.xaxis, across), (axes.yaxis, up)):
        ticks = axis.ticks()
        side.set_ticks(ticks, labels=[number(tick) for tick in ticks])
        side.set_ticks([], minor=True)
    axes.tick_params(colors=SOFT, labelsize=8.5)
    axes.grid(axis="y", color=RULE, lw=0.7)
    axes.set_axisbelow(True)
    axes.set_xlabel(label(x, 80) if x else "", size=9, parse_math=False)
    axes.set_ylabel(label(y, 40) if y else "", size=9, parse_math=False)


class _Names:
    """A legend: above a chart where its names are short, else below it, in one column."""

    def __init__(self, names: Sequence[str]) -> None:
        names = [label(name) for name in names]
        widest = max((measured(name, 8.5) for name in names), default=0.0) + 0.62
        self.columns = min(LEGEND, int((COLUMN - AXIS) / widest))
        self.texts = ["\n".join(wrapped(name, COLUMN - AXIS - 0.7, 8.5, most=6)) for name in names]
        lines = sum(text.count("\n") + 1 for text in self.texts)
        self.above = 0.22 * math.ceil(len(names) / self.columns) if self.columns > 1 else 0.0
        self.below = 0.0 if self.columns > 1 or not names else 0.17 * lines + 0.06 * len(names) + 0.12

    def draw(self, axes: "Axes", height: float, below: float) -> None:
        """Write the names beside what is drawn for them, in the order of drawing."""
        if not self.texts:
            return
        style: dict[str, Any] = {"frameon": False, "fontsize": 8.5, "borderaxespad": 0.2, "columnspacing": 1.6}
        if self.columns > 1:
            style |= {"loc": "lower left", "bbox_to_anchor": (-0.02, 1.0), "ncols": self.columns}
        else:
            style |= {"loc": "upper left", "bbox_to_anchor": (-0.02, -below / height)}
        handles = axes.get_legend_handles_labels()[0]
        for text in axes.legend(handles, self.texts, **style).get_texts():
            text.set_parse_math(False)


def _tree(panel: Tree) -> Drawn:
    nodes = panel.nodes[:MOST_NODES]
    placed = places(nodes)
    names = [label(node.text, 24) for node in nodes]
    sizes = [cells(name) * CELL + 0.16 for name in names]
    widths = column_widths(placed, sizes)
    whole = sum(widths) + 0.3 * (len(widths) - 1)
    squeezed = min(1.0, COLUMN / max(whole, 0.1))
    lefts = [(sum(widths[:depth]) + 0.3 * depth) * squeezed for depth in range(len(widths))]
    step = 0.3
    height = step * (max((place.line for place in placed), default=0) + 1)
    states = state_styles(nodes)
    told = [f"{label(state, 20)} ({FRAMED[style]})" for state, style in states.items() if state]
    legend = wrapped("frames: " + ", ".join(told), COLUMN, 8.5) if told else []

    def draw(pen: Pen) -> None:
        from matplotlib.patches import FancyBboxPatch

        for line in legend:
            pen.write(line, size=8.5, color=SOFT)
        axes = pen.sheet(height)
        for node, place, name, size in zip(nodes, placed, names, sizes, strict=True):
            left, middle, width = lefts[place.depth], (place.line + 0.5) * step, size * squeezed
            state = states[node.state]
            frame, thick = FRAMES[state], 0.8 if state else 1.8
            if place.parent is not None:
                above = placed[place.parent]
                start = lefts[above.depth] + sizes[place.parent] * squeezed
                axes.plot([start, left], [(above.line + 0.5) * step, middle], color=SOFT, lw=thick, ls=frame, zorder=1)
            ground = _ground(node.value, panel.scale) or "#ffffff"
            axes.add_patch(
                FancyBboxPatch((left, middle - 0.09), width, 0.18, boxstyle="round,pad=0,rounding_size=0.04", fc=ground,
                               ec=TEXT if thick > 1 else SOFT, lw=thick, ls=frame, zorder=2, clip_on=False)
            )  # fmt: skip
            axes.text(left + width / 2, middle, name, size=8.5 * max(squeezed, 0.4), ha="center", va="center_baseline",
                      color=ink(ground), parse_math=False, zorder=3)  # fmt: skip

    cut = f"{len(nodes)} of {len(panel.nodes)} nodes" if len(nodes) < len(panel.nodes) else ""
    return height + 0.1 + LINE * len(legend), draw, cut


def _images(panel: ImageMap) -> Drawn:
    """Four looks in a row; an image that is looked at once is twice as large."""
    frames = panel.frames[:MOST_LOOKS]
    across = min(max(len(frames), 2), LOOKS)
    side, step = (COLUMN - 0.15 * (across - 1)) / across, (COLUMN + 0.15) / across
    width, height = (side * share for share in panel.shape)
    below = 0.34 if any(frame.title for frame in frames) else 0.1
    rows = [frames[start : start + across] for start in range(0, len(frames), across)]

    def draw(pen: Pen) -> None:
        import numpy as np
        from matplotlib.image import imread

        pixels = imread(BytesIO(base64.b64decode(panel.image.partition(",")[2])), format="png")
        for row in rows:
            top = pen.top
            for place, frame in enumerate(row):
                pen.top = top
                axes = pen.axes(height, left=place * step + (side - width) / 2, width=width, below=below)
                axes.set_axis_off()
                axes.imshow(pixels, extent=(0, 1, 0, 1), aspect="auto", interpolation="nearest")
                if frame.values:
                    shades = [[(*_rgb(colour), hidden) for colour, hidden in cells] for cells in panel.shade(frame)]
                    axes.imshow(np.array(shades), extent=(0, 1, 0, 1), aspect="auto", interpolation="nearest")
                title = label(frame.title, max(6, round(side / CELL))) if frame.title else ""
                below_it: dict[str, Any] = {
                    "transform": axes.transAxes,
                    "ha": "center",
                    "va": "top",
                    "parse_math": False,
                }
                axes.text(0.5, -0.03 * side / height, title, size=8.5, color=SOFT, **below_it)

    cut = "" if len(frames) == len(panel.frames) else f"{len(frames)} of {len(panel.frames)} looks"
    return (height + below) * len(rows), draw, cut


KINDS: Mapping[str, Callable[[Any], Drawn]] = {
    "tokens": _tokens,
    "heatmap": _heatmap,
    "imagemap": _images,
    "bars": _bars,
    "lines": _lines,
    "table": _table,
    "tree": _tree,
    "points": _points,
    "note": _note,
}
