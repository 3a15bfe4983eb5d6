"""Where something that was computed goes: into a page, a picture, a file of data."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from elman.draw.panels import Page
from elman.errors import UserError
from elman.files import write_json, write_text

FORMATS = (".html", ".json", ".png", ".svg")


def check_format(path: Path) -> None:
    """Refuse a name that does not say what is to be written.

    >>> check_format(Path("page.pdf"))
    Traceback (most recent call last):
    elman.errors.UserError: page.pdf should end in .html for a page, .json for the data, .png or .svg for a picture
    """
    if path.suffix.lower() not in FORMATS:
        raise UserError(f"{path} should end in .html for a page, .json for the data, .png or .svg for a picture")
    if path.is_dir():
        raise UserError(f"{path} is a folder: give the name of a file in it")


def write(path: Path, page: Callable[[], Page], data: Callable[[], dict[str, Any]]) -> None:
    """Write what the ending of a name asks for: a page (.html), the data (.json) or a picture (.png, .svg)."""
    check_format(path)
    if path.suffix.lower() == ".json":
        write_json(path, data())
    elif path.suffix.lower() == ".html":
        from elman.draw.page import page_html

        write_text(path, page_html(page()))
    else:
        from elman.draw.picture import draw_picture

        draw_picture(page(), path)
