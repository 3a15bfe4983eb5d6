"""The page: static files of the package's folder `studio`, under a strict content-security policy."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response

from elman.draw.page import page_script, page_style

FOLDER = Path(__file__).parents[1] / "studio"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {"Content-Security-Policy": POLICY, "Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-cache"}

DRAWN: dict[str, Callable[[], str]] = {"page.css": page_style, "page.js": page_script}
"""What pages of `elman explain` are made with: the Studio shows their panels."""


def files() -> dict[str, Path]:
    """The files of the page by the path that they are asked for."""
    found = {path.relative_to(FOLDER).as_posix(): path for path in FOLDER.rglob("*") if path.suffix in TYPES}
    return found | ({"": found["index.html"]} if "index.html" in found else {})


def studio() -> APIRouter:
    """A path for each file of the page, and no other: nothing that is asked for becomes the name of a file."""
    router = APIRouter(include_in_schema=False)
    for name, path in files().items():
        content = _page if path.name == "index.html" else path.read_bytes
        router.get(f"/{name}")(_sender(content, path.suffix))
    for name, make in DRAWN.items():
        router.get(f"/{name}")(_sender(make, Path(name).suffix))
    return router


def _page() -> str:
    """The page itself: its modules are asked for all at once, and not each when another has come that imports it."""
    modules = sorted(name for name in files() if name.endswith(".js"))
    links = "".join(f'<link rel="modulepreload" href="{name}">\n' for name in modules)
    return (FOLDER / "index.html").read_text(encoding="utf-8").replace("</head>", f"{links}</head>")


def _sender(content: Callable[[], bytes | str], suffix: str) -> Any:
    async def send(request: Request) -> Response:
        return Response(content(), media_type=TYPES[suffix], headers=HEADERS)

    return send
