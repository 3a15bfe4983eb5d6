"""What was computed, as whatever it is asked for as: data, panels for the Studio, a page, a picture."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from elman.draw.output import write
from elman.draw.page import page_body
from elman.draw.panels import Page

Format = Literal["json", "panels", "html", "svg", "png"]
TYPES = {"html": "text/html; charset=utf-8", "svg": "image/svg+xml", "png": "image/png"}


def panels(page: Page) -> dict[str, Any]:
    """The markup of what is drawn, and the tips of its parts, for a page with Elman's style sheet and script.

    >>> from elman.draw.panels import Column, Note
    >>> panels(Page("a view", "", [Column("", [Note("so", "1 < 2")])]))["tips"]
    {'strings': [], 'panels': []}
    """
    markup, tips = page_body(page)
    return {"html": markup, "tips": json.loads(tips.to_json())}


def drawn(page: Callable[[], Page], data: Callable[[], dict[str, Any]], form: Format) -> dict[str, Any] | bytes:
    """Something computed, in a form: a dictionary for JSON, or a file's content."""
    if form == "json":
        return data()
    if form == "panels":
        return panels(page())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"picture.{form}"
        write(path, page, data)
        return path.read_bytes()
