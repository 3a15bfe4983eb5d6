"""Curves, maps of points, trees, bars and images as SVG inside a page; its style sheet has the colours."""

import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from typing import Any

from elman.draw.axis import Axis
from elman.draw.labels import cells, label, number
from elman.draw.layout import Room, column_widths, places, state_styles
from elman.draw.markup import broken, classes, colour_class, folded, listed, probe, written
from elman.draw.panels import ImageMap, Line, Lines, Points, Range, Tree
from elman.draw.tips import Tips

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 600, 58, 14, 12, 46  # of a chart, in pixels
LINES_HEIGHT, POINTS_HEIGHT = 300, 420
TICK = 7.2  # the width of a digit beside an axis
MOST_PROBES = 200  # places of a curve that can be pointed at
MOST_DRAWN = 600  # parts of a curve
MOST_LISTED = 60  # rows of the table below a chart
MOST_NAMED = 300  # points; those of a map with more have their names in their tips
NAMES = 8  # colours of curves, groups and states
SHAPES = (
    "M-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0z",
    "M-3.3-3.3h6.6v6.6h-6.6z",
    "M0-4.4L4.2 3.3H-4.2z",
    "M0-4.8L4.6 0L0 4.8L-4.6 0z",
    "M0 4.4L4.2-3.3H-4.2z",
)
ANCHORS = {1: "", -1: ' text-anchor="end"'}
BAR_WIDTH, BAR_HEIGHT = 240, 16
NODE_HEIGHT, LINE_HEIGHT, LETTER, GENERATION = 24, 32, 7.6, 34
LONGEST_NODE = 24  # characters


# Curves


def lines_chart(panel: Lines, labelled: str, tips: Tips) -> str:
    """Curves over one axis, with their spread; what they say at each place of the axis is a tip."""
    across = Axis.around((x for line in panel.lines for x in line.x), panel.log_x, panel.x_range)
    heights = (y for line in panel.lines for y in (*line.y, *line.low, *line.high))
    up = Axis.around(heights, panel.log_y, panel.y_range, margin=0.04)
    spread = _whiskers if panel.whiskers else _band
    bands = "".join(spread(line, place, across, up) for place, line in enumerate(panel.lines))
    curves = "".join(_curve(line, place, across, up) for place, line in enumerate(panel.lines))
    values = sorted({float(x) for line in panel.lines for x in line.x if across.share(x) is not None})
    probed = _spread(values, MOST_PROBES)
    headings = [f"{panel.x or 'x'} {number(x)}" for x in probed]
    number_of_tips = tips.add(list(zip(headings, _told(panel.lines, probed), strict=True)))
    stops = "".join(_stops([x for value in probed if (x := _x(across, value)) is not None], LINES_HEIGHT))
    samples = [_sample(place, line) for place, line in enumerate(panel.lines)]
    legend = listed([line.name for line in panel.lines], samples)
    content, probed_by = bands + curves + stops, probe("lines", number_of_tips)
    chart = _chart(panel.x, panel.y, across, up, LINES_HEIGHT, content, labelled, probed_by)
    return legend + chart + folded("As a table", _table(panel, _spread(values, MOST_LISTED)))


def _table(panel: Lines, values: Sequence[float]) -> str:
    """The curves in figures."""
    names = "".join(f"<th scope=col>{written(line.name)}</th>" for line in panel.lines)
    rows = "".join(
        f"<tr><th scope=row>{number(x)}</th>"
        + "".join(f"<td class=number>{written(told.get(line.name, ''))}</td>" for line in panel.lines)
        + "</tr>"
        for x, told in zip(values, _told(panel.lines, values), strict=True)
    )
    head = f"<thead><tr><th scope=col>{written(panel.x or 'x')}</th>{names}</tr></thead>"
    return f"<table class=cells>{head}{rows}</table>"


def _curve(line: Line, place: int, across: Axis, up: Axis) -> str:
    points = [(_x(across, x), _y(up, y, LINES_HEIGHT)) for x, y in zip(line.x, line.y, strict=True)]
    parts = []
    for run in _runs(points):
        drawn = _thinned(run)
        parts.append("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in drawn) + "h0" * (len(drawn) == 1))
    known = [(x, y) for x, y in points if x is not None and y is not None]
    every = max(1, len(known) // 8)
    marks = "".join(
        f'<path d="{SHAPES[place % len(SHAPES)]}" transform="translate({x:.1f} {y:.1f})"/>' for x, y in known[::every]
    )
    dashed = "dashed" if line.dashed else ""
    curve = f'<path{classes("curve", dashed)} d="{"".join(parts)}"/>'
    return f"<g class=n{place % NAMES}>{curve}<g class=marks>{marks}</g></g>"


def _ends(line: Line, across: Axis, up: Axis) -> Iterator[list[tuple[float, float, float]]]:
    """Where a curve is, and how low and how high it spreads there: the parts between its gaps."""
    spread = zip(line.x, line.low, line.high, strict=True) if line.low and line.high else ()
    return _runs((_x(across, x), _y(up, low, LINES_HEIGHT), _y(up, high, LINES_HEIGHT)) for x, low, high in spread)


def _whiskers(line: Line, place: int, across: Axis, up: Axis) -> str:
    """How far a curve spreads, as a bar at each of its places."""
    bars = "".join(f"M{x:.1f} {low:.1f}V{high:.1f}" for run in _ends(line, across, up) for x, low, high in run)
    return f'<path class="curve n{place % NAMES}" d="{bars}"/>' if bars else ""


def _band(line: Line, place: int, across: Axis, up: Axis) -> str:
    """How far a curve spreads, as a ground below it."""
    parts = []
    for run in _ends(line, across, up):
        there = "L".join(f"{x:.1f} {high:.1f}" for x, _, high in run)
        back = "L".join(f"{x:.1f} {low:.1f}" for x, low, _ in reversed(run))
        parts.append(f"M{there}L{back}z")
    return f'<path class="band n{place % NAMES}" d="{"".join(parts)}"/>' if parts else ""


def _runs(points: Iterable[tuple[float | None, ...]]) -> Iterator[list[Any]]:
    """The parts of a curve between its gaps."""
    return (list(run) for known, run in groupby(points, lambda point: None not in point) if known)


def _thinned(run: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """A curve of too many parts to be seen: of each few, the highest and the lowest."""
    every = math.ceil(len(run) * 2 / MOST_DRAWN)
    if every <= 2:
        return run
    kept = []
    for start in range(0, len(run), every):
        few = run[start : start + every]
        kept += sorted({min(few, key=lambda point: point[1]), max(few, key=lambda point: point[1])})
    return kept


def _spread(values: Sequence[float], most: int) -> list[float]:
    """Some of many numbers, the first and the last among them."""
    if len(values) <= most:
        return list(values)
    return [values[round(place * (len(values) - 1) / (most - 1))] for place in range(most)]


def _told(lines: Sequence[Line], values: Sequence[float]) -> list[dict[str, str]]:
    """What the curves say at each of some places, as it is written."""
    where = [{x: place for place, x in enumerate(line.x)} for line in lines]
    told: list[dict[str, str]] = []
    for x in values:
        here = [(line, places[x]) for line, places in zip(lines, where, strict=True) if x in places]
        told.append({line.name: number(line.y[place]) + _around(line, place) for line, place in here})
    return told


def _around(line: Line, place: int) -> str:
    if not line.low or not line.high:
        return ""
    return f" ({number(line.low[place])} to {number(line.high[place])})"


def _stops(places: Sequence[float], height: int) -> Iterator[str]:
    """For each place of the axis, all that is nearer to it than to the next, and a line that is shown there."""
    for place, x in enumerate(places):
        left = (places[place - 1] + x) / 2 if place else LEFT
        right = (x + places[place + 1]) / 2 if place + 1 < len(places) else WIDTH - RIGHT
        ground = f'x="{left:.1f}" y="{TOP}" width="{max(right - left, 0):.1f}" height="{height - TOP - BOTTOM}"'
        yield f'<g class=stop><rect {ground}/><path d="M{x:.1f} {TOP}V{height - BOTTOM}"/></g>'


def _sample(place: int, line: Line) -> str:
    dashed = "dashed" if line.dashed else ""
    return (
        f'<svg class="sample n{place % NAMES}" viewBox="0 0 30 10" aria-hidden="true">'
        f'<path{classes("curve", dashed)} d="M1 5H29"/><g class=marks><path d="{SHAPES[place % len(SHAPES)]}" '
        'transform="translate(15 5)"/></g></svg>'
    )


# Points


def points_chart(panel: Points, labelled: str, tips: Tips) -> str:
    """Points coloured by their group, each with a tip; as many names beside them as there is room for."""
    across = Axis.around((point.x for point in panel.points), False, panel.x_range, margin=0.06)
    up = Axis.around((point.y for point in panel.points), False, panel.y_range, margin=0.06)
    groups = list(dict.fromkeys(point.group for point in panel.points))
    seen = [(point, _x(across, point.x), _y(up, point.y, POINTS_HEIGHT)) for point in panel.points]
    drawn = [point for point, x, y in seen if x is not None and y is not None]
    centres = [(x, y) for _, x, y in seen if x is not None and y is not None]
    room = Room(centres, 6, (LEFT, WIDTH))
    parts = []
    for point, (x, y) in zip(drawn, centres, strict=True):
        group = groups.index(point.group)
        name = label(point.text, 18)
        side = room.side(x, y, 6 + 6.6 * cells(name)) if len(drawn) <= MOST_NAMED else None
        beside = "" if side is None else f'<text x="{8 * side}" y="4"{ANCHORS[side]}>{written(name)}</text>'
        parts.append(
            f'<g class="point n{group % NAMES}" transform="translate({x:.1f} {y:.1f})">'
            f'<path d="{SHAPES[group % len(SHAPES)]}"/>{beside}</g>'
        )
    number_of_tips = tips.add(
        [(point.text, ({"group": point.group} if point.group else {}) | dict(point.tip)) for point in drawn]
    )
    legend = listed(groups, [_dot(place) for place in range(len(groups))]) if any(groups) else ""
    chart = _chart(
        panel.x, panel.y, across, up, POINTS_HEIGHT, "".join(parts), labelled, probe("points", number_of_tips)
    )
    rows = "".join(
        f"<tr><th scope=row dir=auto>{broken(point.text)}</th><td>{written(point.group)}</td>"
        f"<td class=number>{number(point.x)}</td><td class=number>{number(point.y)}</td></tr>"
        for point in panel.points[: 10 * MOST_LISTED]
    )
    names = "".join(
        f"<th scope=col>{written(name)}</th>" for name in ("point", "group", panel.x or "x", panel.y or "y")
    )
    return legend + chart + folded("As a table", f"<table class=cells><thead><tr>{names}</tr></thead>{rows}</table>")


def _dot(place: int) -> str:
    shape = SHAPES[place % len(SHAPES)]
    return (
        f'<svg class="dot n{place % NAMES}" viewBox="-6 -6 12 12" aria-hidden="true"><g class=marks><path d="{shape}"/>'
        "</g></svg>"
    )


# What curves and points share


def _seen(share: float | None) -> float | None:
    """None for what lies beyond the ends of an axis as well."""
    return share if share is not None and -1e-6 <= share <= 1 + 1e-6 else None


def _x(axis: Axis, value: float) -> float | None:
    share = _seen(axis.share(value))
    return None if share is None else LEFT + share * (WIDTH - LEFT - RIGHT)


def _y(axis: Axis, value: float | None, height: int) -> float | None:
    share = _seen(axis.share(value))
    return None if share is None else height - BOTTOM - share * (height - TOP - BOTTOM)


def _chart(x: str, y: str, across: Axis, up: Axis, height: int, content: str, labelled: str, probed: str) -> str:
    """Two axes with their ticks and names, and what stands between them."""
    bottom, middle = height - BOTTOM, (LEFT + WIDTH - RIGHT) / 2
    longest = max((cells(number(tick)) for tick in up.ticks()), default=0)
    more = max(0.0, TICK * longest - (LEFT - 8 - 20)) if y else 0.0  # room for the name beside long numbers
    parts = []
    for tick in up.ticks():
        place = _y(up, tick, height)
        parts.append(
            f'<path class=grid d="M{LEFT} {place:.1f}H{WIDTH - RIGHT}"/>'
            f'<text class=tick x="{LEFT - 8}" y="{place:.1f}" dy=".32em" text-anchor="end">{number(tick)}</text>'
        )
    for tick in across.ticks():
        place = _x(across, tick)
        parts.append(
            f'<path class=grid d="M{place:.1f} {bottom}v5"/>'
            f'<text class=tick x="{place:.1f}" y="{bottom + 18}" text-anchor="middle">{number(tick)}</text>'
        )
    parts.append(f'<path class=axis d="M{LEFT} {bottom}H{WIDTH - RIGHT}"/>')
    if x:
        parts.append(f'<text class=name x="{middle}" y="{height - 6}" text-anchor="middle">{written(x)}</text>')
    if y:
        turned = f'transform="translate({14 - more:.0f} {(TOP + bottom) / 2}) rotate(-90)"'
        parts.append(f'<text class=name {turned} text-anchor="middle">{written(y)}</text>')
    box = f"{-more:.0f} 0 {WIDTH + more:.0f} {height}"
    axes = f'<g class=axes aria-hidden="true">{"".join(parts)}</g>'
    return (
        f'<div class="scroll"><svg class="chart" viewBox="{box}" role="group" {labelled} {probed}>'
        f"{axes}{content}</svg></div>"
    )


# Trees


def tree_chart(panel: Tree, labelled: str, tips: Tips) -> str:
    """A tree from left to right, and the same as nested lists."""
    if not panel.nodes:
        return "<p>The tree is empty.</p>"
    placed = places(panel.nodes)
    names = [label(node.text, LONGEST_NODE) for node in panel.nodes]
    sizes = [LETTER * cells(name) + 18 for name in names]
    widths = column_widths(placed, sizes)
    lefts = [2 + sum(widths[:depth]) + GENERATION * depth for depth in range(len(widths))]
    tops = [2 + place.line * LINE_HEIGHT for place in placed]
    states = state_styles(panel.nodes)
    edges, nodes = [], []
    for node, place, name, width, top in zip(panel.nodes, placed, names, sizes, tops, strict=True):
        left, middle = lefts[place.depth], top + NODE_HEIGHT / 2
        state = f"k{states[node.state]}"
        if place.parent is not None:
            start = lefts[placed[place.parent].depth] + sizes[place.parent]
            above = tops[place.parent] + NODE_HEIGHT / 2
            bend = (max(start, left - GENERATION) + left) / 2
            edges.append(
                f'<path{classes("edge", state)} d="M{start:.1f} {above:.1f}H{bend - GENERATION / 2:.1f}'
                f'C{bend:.1f} {above:.1f} {bend:.1f} {middle:.1f} {left:.1f} {middle:.1f}"/>'
            )
        up = "" if place.parent is None else f' data-parent="{place.parent}"'
        nodes.append(
            f"<g{classes('node', state, colour_class(node.value, panel.scale))}{up}>"
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{NODE_HEIGHT}" rx="5"/>'
            f'<text x="{left + width / 2:.1f}" y="{middle:.1f}" dy=".34em">{written(name)}</text></g>'
        )
    width, height = lefts[-1] + widths[-1] + 2, max(tops) + NODE_HEIGHT + 2
    number_of_tips = tips.add(
        [(node.text, ({"state": node.state} if node.state else {}) | dict(node.tip)) for node in panel.nodes]
    )
    legend = listed(list(states), [_box(style) for style in states.values()]) if any(states) else ""
    drawing = (
        f'<div class="scroll"><svg class="tree" width="{width:.0f}" height="{height:.0f}" role="group" {labelled} '
        f"{probe('tree', number_of_tips)}>{''.join(edges)}{''.join(nodes)}</svg></div>"
    )
    return legend + drawing + folded("As a list", _nested(panel))


def _box(state: int) -> str:
    return (
        f'<svg class="dot" viewBox="0 0 20 12" aria-hidden="true"><g{classes("node", f"k{state}")}>'
        '<rect x="1.5" y="1.5" width="17" height="9" rx="2.5"/></g></svg>'
    )


def _nested(panel: Tree) -> str:
    children: dict[int | None, list[int]] = {}
    for place, node in enumerate(panel.nodes):
        children.setdefault(node.parent, []).append(place)
    parts: list[str] = []
    waiting: list[int | str] = ["</ul>", *reversed(children.get(None, [])), "<ul>"]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            parts.append(item)
            continue
        node = panel.nodes[item]
        told = ", ".join([node.state] * bool(node.state) + [f"{key} {value}" for key, value in node.tip.items()])
        parts.append(f"<li><bdi>{broken(node.text)}</bdi>" + (f" <small>{written(told)}</small>" if told else ""))
        if below := children.get(node.id):
            waiting += ["</ul>", *reversed(below), "<ul>"]
    return "".join(parts)


# Bars


def bar(value: float, error: float, reach: Range) -> str:
    """One bar from 0 to its value, with a whisker for its error, on an axis that all bars of a panel share."""
    axis = Axis.around((), False, reach)
    zero, end = ((axis.share(at) or 0.0) * BAR_WIDTH for at in (0.0, value if math.isfinite(value) else 0.0))
    left, width = min(zero, end), abs(end - zero)
    whisker = ""
    if error:
        low, high = ((axis.share(at) or 0.0) * BAR_WIDTH for at in (value - error, value + error))
        whisker = f'<path class=whisker d="M{low:.1f} 8H{high:.1f}M{low:.1f} 4v8M{high:.1f} 4v8"/>'
    side = "negative" if value < 0 else ""
    return (
        f'<svg viewBox="0 0 {BAR_WIDTH} {BAR_HEIGHT}" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect{classes(side)} x="{left:.1f}" y="1" width="{width:.1f}" height="14"/>'
        f'<path class=axis d="M{zero:.1f} 0v16"/>{whisker}</svg>'
    )


def image_chart(panel: ImageMap, labelled: str, tips: Tips) -> str:
    """An image once for each look at it, side by side; the numbers of its cells are their titles."""
    name = f"i{zlib.crc32(panel.image.encode()):x}"
    width, height = panel.shape
    shown = []
    for place, frame in enumerate(panel.frames):
        cells = []
        across, down = width / max(map(len, frame.values), default=1), height / max(len(frame.values), 1)
        for row, shades in enumerate(panel.shade(frame)):
            for column, (colour, hidden) in enumerate(shades):
                corner = f'x="{column * across:.5f}" y="{row * down:.5f}"'
                box = f'{corner} width="{across:.5f}" height="{down:.5f}"'
                value = number(frame.values[row][column])
                cells.append(f'<rect {box} fill="{colour}" fill-opacity="{hidden:.3f}"><title>{value}</title></rect>')
        if place:
            image = f'<use href="#{name}"/>'
        else:
            box = f'width="{width:.5f}" height="{height:.5f}" preserveAspectRatio="none"'
            image = f'<image id="{name}" href="{escape(panel.image)}" {box}/>'
        told = written(label(frame.title)) if frame.title else ""
        box = f'viewBox="0 0 {width:.5f} {height:.5f}" shape-rendering="crispEdges"'
        drawing = f'<svg {box} aria-hidden="true">{image}{"".join(cells)}</svg>'
        shown.append(f"<figure>{drawing}<figcaption dir=auto>{told}</figcaption></figure>")
    return f'<div class="looks" role="group" {labelled}>{"".join(shown)}</div>'
