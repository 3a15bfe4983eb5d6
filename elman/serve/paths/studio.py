"""The page: static files of the package's folder `studio`, under a strict content-security policy."""

from pathlib import Path

from fastapi import APIRouter, Request, Response

from elman.draw.page import page_script, page_style
from elman.serve.errors import Refused

router = APIRouter(include_in_schema=False)
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

DRAWN = {"page.css": page_style, "page.js": page_script}
"""What pages of `elman explain` are made with: the Studio shows their panels."""


def files() -> dict[str, Path]:
    """The files of the page by the path that they are asked for."""
    found = {path.relative_to(FOLDER).as_posix(): path for path in FOLDER.rglob("*") if path.suffix in TYPES}
    return found | ({"": found["index.html"]} if "index.html" in found else {})


@router.get("/{name:path}")
async def studio(request: Request, name: str) -> Response:
    """A file of the page."""
    if name in DRAWN:
        return Response(DRAWN[name](), media_type=TYPES[Path(name).suffix], headers=HEADERS)
    path = files().get(name)
    if path is None:
        missing = "there is no page here, only the paths that /openapi.json tells of"
        raise Refused(404, missing if name == "" else "there is no such path: /openapi.json tells which there are")
    return Response(path.read_bytes(), media_type=TYPES[path.suffix], headers=HEADERS)
