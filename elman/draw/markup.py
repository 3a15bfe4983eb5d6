"""What every part of a page is written with: texts, classes of colours, legends, and what has tips."""

from collections.abc import Mapping, Sequence
from html import escape

from elman.draw.colours import level
from elman.draw.labels import clean, label
from elman.draw.panels import Scale

LETTERS: Mapping[Scale, str] = {"sequential": "s", "diverging": "d", "buckets": "b"}


def written(text: str) -> str:
    """What a user or a view wrote, as HTML has it between two tags.

    >>> written("a < b")
    'a &lt; b'
    """
    return escape(clean(text), quote=False)


def broken(text: str) -> str:
    r"""A text of one line or several as markup: line ends are drawn, and so is a text of nothing.

    >>> broken("a\n")
    'a⏎<br>'
    """
    return written(text).replace("\n", "⏎<br>") or "∅"


def colour_class(value: float | None, scale: Scale, low: float = 0.0, high: float = 1.0) -> str:
    """The class of a number's colour; none for what is no number.

    >>> colour_class(0.5, "sequential")
    's10'
    """
    step = level(value, scale, low, high)
    return "" if step is None else f"{LETTERS[scale]}{step}"


def classes(*names: str) -> str:
    """The attribute for those names that are not empty.

    >>> classes("s3", ""), classes("s3", "m"), classes("")
    (' class=s3', ' class="s3 m"', '')
    """
    names = tuple(name for name in names if name)
    return "" if not names else f" class={names[0]}" if len(names) == 1 else f' class="{" ".join(names)}"'


def probe(kind: str, tips: int) -> str:
    """The attributes of an element whose parts have tips: how one moves between them, and where the tips are."""
    return f'data-kind="{kind}" data-tips="{tips}"'


def listed(names: Sequence[str], swatches: Sequence[str]) -> str:
    """A legend: a swatch before each name."""
    items = (
        f"<li>{swatch}<bdi>{written(label(name))}</bdi></li>" for name, swatch in zip(names, swatches, strict=True)
    )
    return f'<ul class="legend">{"".join(items)}</ul>\n'


def folded(summary: str, content: str) -> str:
    """What can be unfolded: the text alternative of a drawing."""
    return f'\n<details><summary>{written(summary)}</summary><div class="scroll">{content}</div></details>'
