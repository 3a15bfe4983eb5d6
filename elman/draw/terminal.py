"""Panels in a terminal: in colour where there is colour, else as lines that other programs can read as well."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style
from rich.table import Table as Grid
from rich.text import Text
from rich.tree import Tree as Branch

from elman.draw.axis import Axis, bar_reach
from elman.draw.colours import BUCKETS, LEVELS, LIGHT, ink, level
from elman.draw.labels import clean, label, number, number_columns
from elman.draw.panels import (
    Bars,
    Column,
    HeatMap,
    ImageMap,
    Line,
    Lines,
    Note,
    Page,
    Points,
    Scale,
    Table,
    Token,
    Tokens,
    Tree,
)

SPARKS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 40
BAR_WIDTH = 30
WHOLE = 100_000  # places, for lines that are not cut
LONGEST = 16  # the characters of a row's or a column's name
MOST_POINTS = 40  # that are printed one by one
ANSI = ("green", "yellow", "red", "magenta", "cyan", "white")  # of buckets, where there are 16 colours
MAP_WIDTH, MAP_HEIGHT = 64, 20  # of points
STATES = {"best": "bold", "decides": "bold", "finished": ""}  # what is said of nodes; of all others, dim
SIGNS = "ox+*#@%&"  # of groups of points


def print_page(page: Page, console: Console) -> None:
    """Print a page: tokens and numbers on their colours, or, off a terminal, with their numbers beside them.

    >>> page = Page("scores", "a model", [Column("", [Bars("of each", ["a", "b"], [3.0, 1.0])])])
    >>> print_page(page, Console(width=60))
    scores
    a model
    <BLANKLINE>
    of each
    a ██████████████████████████████ 3
    b ██████████                     1
    """
    _say(console, page.title, "bold")
    if page.about:
        _say(console, page.about, "dim")
    for column in page.columns:
        _column(column, console)


def _column(column: Column, console: Console) -> None:
    if column.title:
        _say(console)
        _say(console, clean(column.title), "bold underline")
    for panel in column.panels:
        _say(console)
        if panel.title:
            _say(console, panel.title, "bold")
        _KINDS[panel.kind](panel, console)
        if note := getattr(panel, "note", ""):
            _say(console, note, "dim")


def _say(console: Console, text: str = "", style: str = "") -> None:
    """A line as it is: nothing in it is markup, and off a terminal it is not broken."""
    console.print(Text(clean(text), style), soft_wrap=not console.is_terminal)


def _row(console: Console, cells: Iterable[str]) -> None:
    """Cells with tabs between them: rich would make blanks of these."""
    line = "\t".join(label(cell) if cell else "" for cell in cells)
    console.print(Segments([Segment(f"{line}\n")]), soft_wrap=True, end="")


def _coloured(console: Console) -> bool:
    return console.is_terminal and console.color_system is not None and not console.no_color


def _few(console: Console) -> bool:
    """Whether there are so few colours that those of the buckets would be one."""
    return console.color_system in ("standard", "windows")


def _style(value: float | None, scale: Scale, low: float = 0.0, high: float = 1.0, few: bool = False) -> Style:
    """Black or white on the colour of a number."""
    step = level(value, scale, low, high)
    if step is None:
        return Style()
    if few and scale == "buckets":
        return Style(color="black", bgcolor=ANSI[step])
    ground = LIGHT.colour(scale, step)
    return Style(color=ink(ground), bgcolor=ground)


# Texts


def _tokens(panel: Tokens, console: Console) -> None:
    if not _coloured(console):
        if panel.tokens:
            _row(console, ["token", "value"])
        for token in panel.tokens:
            _row(console, _row_of(token, panel))
        return
    few = _few(console)
    text = Text()
    for token in panel.tokens:
        style = _style(token.value, panel.scale, few=few) + Style(underline=token.marked)
        shown = clean(token.text).replace("\t", "⇥").replace("\n", "⏎\n") or "∅"
        text.append(shown, style)
        if panel.spaced:
            text.append(" ")
    console.print(text)
    _legend(panel.scale, panel.legend, console)


def _row_of(token: Token, panel: Tokens) -> list[str]:
    """A token, its number or the name of its bucket, and the first that there is to say of it."""
    told = [f"{label(key)} {label(value)}" for key, value in list(token.tip.items())[:3]]
    value = number(token.value)
    if panel.scale == "buckets" and token.value is not None and 0 <= token.value < len(panel.legend):
        value = panel.legend[int(token.value)]
    return [label(token.text), value, *told, *(["marked"] if token.marked else [])]


def _legend(scale: Scale, legend: Sequence[str], console: Console) -> None:
    if not legend:
        return
    text = Text()
    if scale == "buckets":
        for step, name in enumerate(legend):
            text.append(f" {clean(name)} ", _style(min(step, BUCKETS - 1), scale, few=_few(console))).append(" ")
    else:
        text.append(f"{clean(legend[0])} ", "dim")
        for step in range(0, LEVELS, 2):
            text.append(" ", Style(bgcolor=LIGHT.colour(scale, step)))
        text.append(f" {clean(legend[-1])}", "dim")
    console.print(text)


# Tables of numbers and of texts


def _heatmap(panel: HeatMap, console: Console) -> None:
    if not _coloured(console):
        _row(console, ["", *panel.columns])
        for name, values in zip(panel.rows, panel.values, strict=True):
            _row(console, [name, *map(number, values)])
        return
    names = [label(name, LONGEST) for name in panel.rows]
    side = max(map(cell_len, names), default=0)
    most = max(1, (console.width - side - 1) // 2)  # columns beside each other: two places each
    marked = set(panel.marked)
    for start in range(0, len(panel.columns), most):
        end = start + most
        _heads([label(name, LONGEST) for name in panel.columns[start:end]], side, console)
        for row, (name, values) in enumerate(zip(names, panel.values, strict=True)):
            text = Text(" " * (side - cell_len(name)) + name + " ")
            for column, value in enumerate(values[start:end], start):
                text.append(
                    "[]" if (row, column) in marked else "  ",
                    _style(value, panel.scale, panel.low, panel.high, _few(console)),
                )
            console.print(text, soft_wrap=True)
    if panel.scale != "buckets":
        _legend(panel.scale, [number(end) for end in panel.ends], console)


def _images(panel: ImageMap, console: Console) -> None:
    """The grids alone, since a terminal has no place for an image."""
    for frame in panel.frames:
        if frame.values:
            most = max((abs(value) for row in frame.values for value in row), default=0.0) or 1.0
            if frame.title:
                _say(console, label(frame.title), "underline")
            names = [str(row) for row in range(1, len(frame.values) + 1)]
            columns = [str(column) for column in range(1, len(frame.values[0]) + 1)]
            _heatmap(HeatMap("", frame.values, names, columns, scale=panel.scale, high=most), console)


def _heads(names: Sequence[str], side: int, console: Console) -> None:
    """Names of columns from the top down, each above its two places."""
    height = max(map(len, names), default=0)
    for line in range(height):
        text = Text(" " * (side + 1), "dim")
        for name in names:
            letter = name[line - height + len(name)] if line >= height - len(name) else " "
            text.append(letter + " " * (2 - cell_len(letter)))
        console.print(text, soft_wrap=True)


def _table(panel: Table, console: Console) -> None:
    if not console.is_terminal:
        for row in [panel.columns, *panel.rows]:
            _row(console, row)
        return
    grid = Grid(box=None, padding=(0, 2, 0, 0))
    for name, right in zip(panel.columns, number_columns(panel.rows, len(panel.columns)), strict=True):
        grid.add_column(Text(clean(name)), justify="right" if right else "left", header_style="dim")
    for row in panel.rows:
        grid.add_row(*(Text(clean(cell)) for cell in row))
    console.print(grid)


def _note(panel: Note, console: Console) -> None:
    _say(console, panel.text)


# Charts


def _bars(panel: Bars, console: Console) -> None:
    axis = Axis.around((), False, bar_reach(panel))
    names = [label(name, 2 * LONGEST) for name in panel.names]
    side = max(map(cell_len, names), default=0)
    zero = round((axis.share(0.0) or 0.0) * BAR_WIDTH)
    for place, (name, value) in enumerate(zip(names, panel.values, strict=True)):
        end = round(min(max(axis.share(value) or 0.0, 0.0), 1.0) * BAR_WIDTH)
        start, stop = sorted((zero, end))
        error = f" ± {number(panel.errors[place])}" if panel.errors and panel.errors[place] else ""
        text = Text(" " * (side - cell_len(name)) + name + " ")
        text.append(" " * start + "█" * (stop - start) + " " * (BAR_WIDTH - stop), "blue" if value >= 0 else "red")
        text.append(f" {number(value)}{error} {clean(panel.unit)}".rstrip())
        console.print(text, soft_wrap=True)


def _lines(panel: Lines, console: Console) -> None:
    heights = (y for line in panel.lines for y in line.y)
    axis = Axis.around(heights, panel.log_y, panel.y_range)
    names = [label(line.name, 2 * LONGEST) for line in panel.lines]
    side = max(map(cell_len, names), default=0)
    for name, line in zip(names, panel.lines, strict=True):
        known = [y for y in line.y if y is not None and math.isfinite(y)]
        text = Text(" " * (side - cell_len(name)) + name + " ")
        text.append(_spark(line, axis, panel.log_x), "blue")
        if known:
            text.append(
                f" {number(known[0])} to {number(known[-1])}, lowest {number(min(known))}, highest {number(max(known))}"
            )
        console.print(text, soft_wrap=True)
    ends = Axis.around((x for line in panel.lines for x in line.x), panel.log_x, panel.x_range)
    across = f"{panel.x or 'x'} from {number(ends.low)} to {number(ends.high)}"
    _say(console, f"{panel.y}, {across}" if panel.y else across, "dim")


def _spark(line: Line, axis: Axis, log_x: bool) -> str:
    """A curve as a row of blocks, blank where it has no number; over its own axis, evenly or by powers."""
    across = Axis.around(line.x, log_x)
    if not line.x:
        return " " * SPARK_WIDTH
    sums: list[list[float]] = [[] for _ in range(SPARK_WIDTH)]
    for x, y in zip(line.x, line.y, strict=True):
        place, height = across.share(x), axis.share(y)
        if place is not None and height is not None:
            sums[min(int(place * SPARK_WIDTH), SPARK_WIDTH - 1)].append(min(max(height, 0.0), 1.0))
    shown, last = [], -1.0
    for few in sums:
        last = sum(few) / len(few) if few else last  # what was known last, between two points
        shown.append(" " if last < 0 else SPARKS[min(int(last * len(SPARKS)), len(SPARKS) - 1)])
    return "".join(shown)


def _points(panel: Points, console: Console) -> None:
    groups = list(dict.fromkeys(point.group for point in panel.points))
    if not console.is_terminal and len(panel.points) > MOST_POINTS:
        named = f" in {len(groups)} groups" if len(groups) > 1 else ""
        _say(console, f"{len(panel.points)} points{named}: see them with --out page.html")
        return
    if not console.is_terminal:
        _row(console, ["point", "group", panel.x or "x", panel.y or "y"])
        for point in panel.points:
            _row(console, [label(point.text), point.group, number(point.x), number(point.y)])
        return
    across = Axis.around((point.x for point in panel.points), False, panel.x_range)
    up = Axis.around((point.y for point in panel.points), False, panel.y_range)
    grid = [[" "] * MAP_WIDTH for _ in range(MAP_HEIGHT)]
    for point in panel.points:
        x, y = across.share(point.x), up.share(point.y)
        if x is not None and y is not None and 0 <= x <= 1 and 0 <= y <= 1:
            row, column = round((1 - y) * (MAP_HEIGHT - 1)), round(x * (MAP_WIDTH - 1))
            grid[row][column] = SIGNS[groups.index(point.group) % len(SIGNS)]
    for cells in grid:
        console.print(Text("│" + "".join(cells)), soft_wrap=True)
    console.print(Text("└" + "─" * MAP_WIDTH), soft_wrap=True)
    named = ", ".join(f"{SIGNS[place % len(SIGNS)]} {group}" for place, group in enumerate(groups) if group)
    _say(console, "; ".join([named] * bool(named) + ["names are on a page: --out FILE.html"]), "dim")


def _tree(panel: Tree, console: Console) -> None:
    branches: dict[int, Branch] = {}
    for node in panel.nodes:
        text = Text(label(node.text), _style(node.value, panel.scale) if _coloured(console) else "")
        told = [node.state] * bool(node.state) + [f"{key} {value}" for key, value in node.tip.items()]
        if told:
            text = Text.assemble(text, (f"  {clean(', '.join(told))}", STATES.get(node.state, "dim")))
        branches[node.id] = Branch(text) if node.parent is None else branches[node.parent].add(text)
    for node in panel.nodes:
        if node.parent is None:
            _branch(branches[node.id], console)


def _branch(branch: Branch, console: Console) -> None:
    """A tree, whose lines are not cut off a terminal."""
    if console.is_terminal:
        console.print(branch)
        return
    lines = console.render(branch, console.options.update(width=WHOLE))
    console.print(Segments(list(lines)), soft_wrap=True, end="")


_KINDS: Mapping[str, Callable[[Any, Console], None]] = {
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
