"""Panels as a page: one HTML file that needs nothing else, for a browser, a printer and a screen reader.

Nothing that a user wrote stands in an attribute, and no style stands outside the style sheet: the page's policy allows
its own script and its own style sheet by their hashes, images that stand in it, and no request to anywhere.
"""

import base64
import hashlib
import math
from collections.abc import Callable, Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from elman.draw.axis import bar_reach
from elman.draw.charts import bar, image_chart, lines_chart, points_chart, tree_chart
from elman.draw.colours import BUCKETS, DARK, LEVELS, LIGHT, Palette, ink
from elman.draw.labels import cells, label, number, number_columns
from elman.draw.markup import LETTERS, broken, classes, colour_class, probe, written
from elman.draw.panels import Bars, Column, HeatMap, Note, Page, Panel, Scale, Table, Tokens
from elman.draw.tips import Tips

LONGEST_TITLE = 200  # characters; that of a column may be a whole text
MOST_CELLS = 20_000  # of a heat map; one with more is drawn without its numbers
NUMBERED_COLUMNS = 12  # of a heat map; one with more shows its numbers when it is pointed at
DENSE_COLUMNS = 40
LONG = 26  # places that a name before a bar may take on one line
SHORT = 2  # places that a name of a column may take above it, not turned


def page_html(page: Page) -> str:
    """The page as one file.

    >>> page_html(Page("ranks", "a model", [Column("a text", [Note("so", "1 < 2")])])).count("1 &lt; 2")
    1
    """
    columns, tips = page_body(page)
    style, script = page_style(), page_script()
    kinds = {panel.kind for column in page.columns for panel in column.panels}
    images = "img-src data:; " if "imagemap" in kinds else ""
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; {images}base-uri 'none'; "
        "form-action 'none'"
    )
    several = ' class="several"' if len(page.columns) > 1 else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{written(_short(page.title))}</title>
<style>{style}</style>
</head>
<body{several}>
<header>
<h1 dir="auto">{written(page.title)}</h1>
<p class="about" dir="auto">{written(page.about)}</p>
{HINT if tips else ""}
</header>
<main>
{columns}
</main>
<div id="tip" role="tooltip" hidden></div>
<script type="application/json" id="tips">{tips.to_json()}</script>
<script>{script}</script>
</body>
</html>
"""


def page_body(page: Page) -> tuple[str, Tips]:
    """What stands in the page as markup, and the tips of its parts: for a page that has its style sheet and script."""
    tips = Tips()
    return "\n".join(_column(column, number, tips) for number, column in enumerate(page.columns)), tips


HINT = """<p class="hint">Point at a coloured part, or go there with <kbd>Tab</kbd> and the arrow keys, \
to see more of it; <kbd>Esc</kbd> hides that again.</p>"""


def page_frame(page: Page, height: int = 600) -> str:
    """The page in a frame of its own, so that it can stand in a notebook and leave the rest of it as it is."""
    return (
        f'<iframe sandbox="allow-scripts" width="100%" height="{height}" title="Elman" '
        f'srcdoc="{escape(page_html(page))}"></iframe>'
    )


@cache
def page_style() -> str:
    """The style sheet, with the classes of the colours for light and dark pages and for paper."""
    dark = f"@media screen and (prefers-color-scheme: dark) {{\n{_colour_rules(DARK)}}}\n"
    return _resource("page.css") + _colour_rules(LIGHT) + dark


def page_script() -> str:
    """The script that shows tips."""
    return _resource("page.js")


def _colour_rules(palette: Palette) -> str:
    rules = []
    for scale, letter in LETTERS.items():
        for step in range(BUCKETS if scale == "buckets" else LEVELS):
            colour = palette.colour(scale, step)
            rules.append(f".{letter}{step}{{--ground:{colour};--ink:{ink(colour)}}}\n")
    return "".join(rules + [f".n{step}{{--name:{colour}}}\n" for step, colour in enumerate(palette.names)])


def _resource(name: str) -> str:
    return (files("elman.draw") / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _short(title: str) -> str:
    return title if len(title) <= LONGEST_TITLE else title[: LONGEST_TITLE - 1] + "…"


# Columns and panels


def _column(column: Column, place: int, tips: Tips) -> str:
    heading = f'<h2 class="text-of-column" dir="auto">{written(_short(column.title))}</h2>\n' if column.title else ""
    level = 3 if column.title else 2
    panels = [_panel(panel, f"c{place}p{number}", level, tips) for number, panel in enumerate(column.panels)]
    return f'<section class="column">\n{heading}' + "\n".join(panels) + "\n</section>"


def _panel(panel: Panel, name: str, level: int, tips: Tips) -> str:
    heading = f'<h{level} id="{name}" dir="auto">{written(panel.title)}</h{level}>\n' if panel.title else ""
    labelled = f'aria-labelledby="{name}"' if panel.title else f'aria-label="{_KINDS[panel.kind][0]}"'
    note = getattr(panel, "note", "")
    note = f'\n<p class="note" dir="auto">{written(note)}</p>' if note else ""
    body = _KINDS[panel.kind][1](panel, labelled, tips)
    return f'<section class="panel {panel.kind}-panel">\n{heading}{body}{note}\n</section>'


def _tokens(panel: Tokens, labelled: str, tips: Tips) -> str:
    number_of_tips = tips.add([(token.text, token.tip or _value_tip(token.value)) for token in panel.tokens])
    between = " " if panel.spaced else ""
    parts = []
    for token in panel.tokens:
        names = classes(colour_class(token.value, panel.scale), "m" if token.marked else "")
        parts.append(f"<span{names}>{broken(token.text)}</span>")
    text = between.join(parts) or "<em>no text</em>"
    attributes = f"{labelled} {probe('tokens', number_of_tips)}"
    words = " words" if panel.spaced else ""
    return f'{_legend(panel)}<p class="text{words}" dir="auto" role="group" {attributes}>{text}</p>'


def _value_tip(value: float | None) -> Mapping[str, str]:
    return {} if value is None else {"value": number(value)}


def _legend(panel: Tokens) -> str:
    if not panel.legend:
        return ""
    if panel.scale == "buckets":
        shown = [f"<li><span class=b{step}>{written(name)}</span></li>" for step, name in enumerate(panel.legend)]
        return f'<ul class="legend">{"".join(shown)}</ul>\n'
    return _ramp(panel.scale, panel.legend[0], panel.legend[-1])


def _ramp(scale: Scale, low: str, high: str) -> str:
    """A scale as a row of its colours between the names of its ends."""
    steps = "".join(f"<i class={LETTERS[scale]}{step}></i>" for step in range(0, LEVELS, 2))
    ends = [f"<span>{written(end)}</span>" for end in (low, high)]
    return f'<p class="ramp">{ends[0]}<span class="steps">{steps}</span>{ends[1]}</p>\n'


def _heatmap(panel: HeatMap, labelled: str, tips: Tips) -> str:
    ramp = "" if panel.scale == "buckets" else _ramp(panel.scale, *map(number, panel.ends))
    if len(panel.rows) * len(panel.columns) > MOST_CELLS:
        return ramp + _large_heatmap(panel, labelled)
    marked = set(panel.marked)
    width = len(panel.columns)
    room = "numbers" if width <= NUMBERED_COLUMNS else "squares" if width <= DENSE_COLUMNS else "dense"
    if room != "numbers" and all(cells(label(name)) <= SHORT for name in panel.columns):
        room += " letters"  # which need not be turned
    digits = 0 if panel.scale == "buckets" else _digits(panel, room)
    names = "".join(f"<th scope=col><span>{written(label(name))}</span>" for name in panel.columns)
    lines = [f"<tr><td class=corner>{names}"]
    for row, (name, values) in enumerate(zip(panel.rows, panel.values, strict=True)):
        shown = (
            f"<td{classes(_cell(panel, value), 'm' if (row, column) in marked else '')}>{value:.{digits}f}"
            for column, value in enumerate(values)
        )
        lines.append(f"<tr><th scope=row dir=auto>{written(label(name))}{''.join(shown)}")
    table = f'<table class="map {room}" role="grid" {labelled} {probe("map", tips.add([]))}>'
    return f'{ramp}<div class="scroll">{table}\n' + "\n".join(lines) + "\n</table></div>"


def _digits(panel: HeatMap, room: str) -> int:
    """After the point: as many as the largest number of the scale calls for, one more where they are not seen."""
    largest = max(map(abs, panel.ends)) or 1.0
    return min(max(2 + (room != "numbers") - math.floor(math.log10(largest)), 0), 8)


def _cell(panel: HeatMap, value: float) -> str:
    return colour_class(value, panel.scale, panel.low, panel.high)


def _large_heatmap(panel: HeatMap, labelled: str) -> str:
    """A path for each colour, a stroke for each run of cells that have it."""
    strokes: dict[str, list[str]] = {}
    for row, values in enumerate(panel.values):
        colours = [*(_cell(panel, value) for value in values), "end"]
        start = 0
        for column in range(1, len(colours)):
            if colours[column] != colours[start]:
                strokes.setdefault(colours[start], []).append(f"M{start} {row}h{column - start}")
                start = column
    strokes.pop("", None)
    paths = "".join(f'<path class={name} d="{"".join(runs)}"/>' for name, runs in sorted(strokes.items()))
    height, width = len(panel.rows), len(panel.columns)
    ends = f"from {written(label(panel.columns[0]))} to {written(label(panel.columns[-1]))}"
    rows = f"from {written(label(panel.rows[0]))} to {written(label(panel.rows[-1]))}"
    return (
        f'<svg class="large-map" role="img" {labelled} viewBox="0 -0.5 {width} {height}" preserveAspectRatio="none">'
        f"{paths}</svg>\n<p class=note>{width} columns, {ends}; {height} rows, {rows}. There are too many to write "
        "their numbers.</p>"
    )


def _bars(panel: Bars, labelled: str, tips: Tips) -> str:
    errors = list(panel.errors) or [0.0] * len(panel.values)
    rows = []
    for name, value, error in zip(panel.names, panel.values, errors, strict=True):
        shown = (
            number(value) + (f" ± {number(error)}" if error else "") + (f" {written(panel.unit)}" if panel.unit else "")
        )
        rows.append(
            f"<tr><th scope=row dir=auto{classes('long' if cells(name) > LONG else '')}>{written(label(name))}</th>"
            f"<td class=bar>{bar(value, error, bar_reach(panel))}</td><td class=value>{shown}</td></tr>"
        )
    return f'<div class="scroll"><table class="bars" {labelled}>' + "\n".join(rows) + "</table></div>"


def _table(panel: Table, labelled: str, tips: Tips) -> str:
    numeric = number_columns(panel.rows, len(panel.columns))
    right = [" class=number" if yes else "" for yes in numeric]
    head = "".join(f"<th scope=col{side}>{written(name)}</th>" for name, side in zip(panel.columns, right, strict=True))
    body = "\n".join(
        "<tr>"
        + "".join(
            f"<td dir=auto{side}>{broken(cell) if cell else ''}</td>" for cell, side in zip(row, right, strict=True)
        )
        + "</tr>"
        for row in panel.rows
    )
    return (
        f'<div class="scroll"><table class="cells" {labelled}><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody>'
        "</table></div>"
    )


def _note(panel: Note, labelled: str, tips: Tips) -> str:
    parts = [part for part in panel.text.split("\n\n") if part.strip()]
    return "\n".join(f"<p dir=auto>{written(part).replace(chr(10), '<br>')}</p>" for part in parts)


_KINDS: Mapping[str, tuple[str, Callable[[Any, str, Tips], str]]] = {
    "tokens": ("a text", _tokens),
    "heatmap": ("a heat map", _heatmap),
    "bars": ("bars", _bars),
    "lines": ("curves", lines_chart),
    "table": ("a table", _table),
    "tree": ("a tree", tree_chart),
    "points": ("a map of points", points_chart),
    "imagemap": ("an image", image_chart),
    "note": ("a note", _note),
}
