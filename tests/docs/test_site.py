"""The documentation site: what it is made of, and, where `make docs` has built it, every page in a browser."""

import re
from pathlib import Path
from typing import Any

import pytest

from elman.inspect.views import each_view
from elman.lab import EXPERIMENTS
from tests.browser import PATIENCE, becomes, expect
from tests.docs.tools import DOCS, load

SITE = DOCS.parent / "site"
SIZES = [(scheme, width) for scheme in ("light", "dark") for width in (390, 1400)]


def test_the_gallery_has_every_view_every_experiment_and_every_picture_of_a_run() -> None:
    commands = [step["command"] for step in load("gallery").STEPS]
    for view in each_view():
        assert any(f"--view {view.name} " in command for command in commands), view.name
    for experiment in EXPERIMENTS:
        assert any(command.startswith(f"elman lab {experiment} ") for command in commands), experiment
    drawn = {Path(step["picture"]).name for step in load("gallery").STEPS if "picture" in step}
    assert {"curves.png", "confusion.png", "forecast.png", "plot.png", "map.png"} <= drawn


def test_a_command_of_the_gallery_that_fails_is_an_error() -> None:
    gallery = load("gallery")
    with pytest.raises(RuntimeError, match="there is no experiment 'nothing'"):
        gallery.run("elman lab nothing")


def test_the_reference_has_every_public_name_with_its_signature() -> None:
    reference = load("reference")
    page = reference.page("elman.decode")
    assert "## beam_search" in page and "start_id: int" in page and "```pycon\n>>> " in page
    for room in reference.ROOMS:
        assert f"# {room}\n" in reference.page(room)
    told = reference.commands()
    assert "## elman train" in told and "### elman bench layers" in told and "--vary" in told


def test_a_docstring_becomes_markdown() -> None:
    prose = load("reference").prose
    assert prose("Words of <eos>.\n\n    h = f * c\n\n>>> 1 + 1\n2") == (
        "Words of &lt;eos>.\n\n```\nh = f * c\n```\n\n```pycon\n>>> 1 + 1\n2\n```"
    )


def test_what_was_measured_becomes_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mkdocs", reason="mkdocs is installed by `make docs`")
    monkeypatch.syspath_prepend(str(DOCS / "tools"))
    website = load("website")
    row = {
        "cell": "gru",
        "packed": True,
        "seconds": {"torch": 0.01234, "elman": 0.004},
        "steps_per_second": 1234567.8,
        "flops": 1,
        "ratio": {"torch": 3.0851},
    }
    assert list(website.table([dict(website.flat(row))])) == [
        "| cell | packed | steps per second | ratio, torch | seconds, torch | seconds, elman |",
        "|---|---|---|---|---|---|",
        "| gru | yes | 1,234,568 | 3.09 | 0.0123 | 0.004 |",
    ]


# In a browser


@pytest.fixture(autouse=True)
def _built(request: pytest.FixtureRequest) -> None:
    if "browser" in request.fixturenames and not (SITE / "index.html").exists():
        pytest.skip("the site is not built: make docs")


class Opened:
    """A page of the site, opened as a file, and what it said and asked for."""

    def __init__(self, browser: Any, scheme: str = "light", width: int = 1400) -> None:
        self.context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def go(self, name: str) -> None:
        self.page.goto((SITE / name).as_uri())
        self.page.wait_for_function("document.readyState === 'complete'")


def names() -> list[str]:
    """Pages of the site, without those that a picture links to, and without that of a server which has no such page."""
    pages = (path for path in SITE.rglob("*.html") if path.name != "404.html" and not re.search(r"-\d+$", path.stem))
    return sorted(path.relative_to(SITE).as_posix() for path in pages)


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), SIZES)
def test_every_page_is_shown_without_an_error_or_a_request(browser: Any, scheme: str, width: int) -> None:
    opened = Opened(browser, scheme, width)
    ground = set()
    for name in names():
        opened.go(name)
        becomes(lambda: opened.page.evaluate("document.documentElement.scrollWidth") <= width, True, about=name)
        broken = "[...document.images].filter(one => one.complete && !one.naturalWidth).map(one => one.src)"
        assert opened.page.evaluate(broken) == [], name
        ground.add(opened.page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert opened.said == []
    assert [url for url in opened.asked if not url.startswith(("file:", "data:"))] == []
    assert len(ground) == 1 and (max(map(int, re.findall(r"\d+", ground.pop())[:3])) > 128) == (scheme == "light")
    opened.context.close()


def test_search_finds_a_word_without_a_server(browser: Any) -> None:
    opened = Opened(browser)
    opened.go("index.html")
    box = opened.page.locator("input[data-md-component=search-query]")
    box.click()
    box.press_sequentially("conveyor", delay=30)
    found = opened.page.locator(".md-search-result__item").first
    expect(found).to_contain_text("From recurrent networks to translation", use_inner_text=True)  # of all that is typed
    assert opened.said == [] and [url for url in opened.asked if not url.startswith(("file:", "data:"))] == []
    opened.context.close()


def test_what_is_linked_is_there() -> None:
    if not (SITE / "index.html").exists():
        pytest.skip("the site is not built: make docs")
    for name in names():
        page = (SITE / name).read_text(encoding="utf-8")
        for link in re.findall(r'(?:href|src)="([^"#?]+)', page):
            if not re.match(r"[a-z]+:", link):
                assert ((SITE / name).parent / link).exists(), f"{name}: {link}"
