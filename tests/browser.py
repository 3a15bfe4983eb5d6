"""A real browser for tests of pages, chromium driven by playwright; they are skipped where it is not there."""

import shutil
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 60_000
"""Milliseconds that a page has for what it is to show: a machine may have much else to do."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser for the tests of a file."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no chromium is installed: apt-get install chromium")
    playwright.expect.set_options(timeout=PATIENCE)
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


def expect(part: Any) -> Any:
    """Playwright's assertions of a part of a page, which wait until they hold: what is done is drawn a little later."""
    from playwright.sync_api import expect

    return expect(part)


def becomes(read: Callable[[], Any], wanted: Any, about: str = "") -> None:
    """Wait until what is read of a page is what is wanted, for all that `expect` has no words for."""
    end = time.monotonic() + PATIENCE / 1000
    while (found := read()) != wanted and time.monotonic() < end:
        time.sleep(0.02)
    assert found == wanted, about


def barriers(page: Any) -> list[Any]:
    """What axe finds on a page that keeps someone from using it."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    found = axe.Axe().run(page).response["violations"]
    return [(issue["id"], [node["html"] for node in issue["nodes"]][:3]) for issue in found]
