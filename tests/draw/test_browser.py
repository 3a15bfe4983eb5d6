"""Pages in a real browser: what is shown when a part is pointed at or reached by keys, in light and dark."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from elman.draw.page import page_frame, page_html
from elman.draw.panels import Column, HeatMap, Page, Token, Tokens
from tests.browser import PATIENCE, barriers, becomes, expect
from tests.draw.pages import ODD, every_panel, long_text, odd_page


class Opened:
    """A page in the browser, and all that it said and asked for."""

    def __init__(self, browser: Any, html: str, folder: Path, **context: Any) -> None:
        file = folder / "page.html"
        file.write_text(html, encoding="utf-8")
        self.said: list[str] = []
        self.asked: list[str] = []
        self.context = browser.new_context(**{"viewport": {"width": 1300, "height": 900}} | context)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(file.as_uri())
        self.asked.remove(file.as_uri())

    def tip(self) -> str | None:
        """What is shown of a part, if anything is."""
        tip = self.page.locator("#tip")
        return tip.inner_text() if tip.is_visible() else None

    def told(self, count: int | None = None) -> list[str]:
        """The words of what is shown, or the first of them."""
        return (self.tip() or "").split()[:count]

    def focused(self) -> str:
        """The text of what has the focus."""
        return str(self.page.evaluate("document.activeElement.textContent")).rstrip("\n")


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Any]:
    pages: list[Opened] = []

    def open_page(page: Page | str, **context: Any) -> Opened:
        pages.append(Opened(browser, page if isinstance(page, str) else page_html(page), tmp_path, **context))
        return pages[-1]

    yield open_page
    for page in pages:
        assert page.said == [] and page.asked == []  # no error, and no request to anywhere
        page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1500])
def test_every_panel_is_shown_without_an_error_or_a_barrier(opened: Any, scheme: str, width: int) -> None:
    page = opened(every_panel(), color_scheme=scheme, viewport={"width": width, "height": 900}).page
    for folded in page.locator("summary").all():
        folded.click()
    becomes(lambda: barriers(page), [])  # what is unfolded can be scrolled by keys a little later
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(18, 21, 25)")


def test_a_page_of_odd_texts_is_a_page(opened: Any) -> None:
    page = opened(odd_page(ODD)).page
    assert page.locator(".text span").first.inner_text().startswith("</script><b>&amp;")
    assert page.locator("main b, main script").count() == 0


def test_columns_are_beside_each_other_where_there_is_room(opened: Any) -> None:
    for width, beside in ((1500, True), (700, False)):
        page = opened(every_panel(), viewport={"width": width, "height": 900}).page
        boxes = [column.bounding_box() for column in page.locator(".column").all()]
        assert (boxes[0]["y"] == boxes[1]["y"]) == beside


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pointing_at_a_part_shows_its_tip(opened: Any, scheme: str) -> None:
    shown = opened(every_panel(), color_scheme=scheme)
    page = shown.page
    assert shown.tip() is None
    page.locator(".text span", has_text="bright").first.hover()
    becomes(shown.told, ["bright", "rank", "17", "p", "0.0123", *page_alternatives()])
    page.locator(".map td.m").first.hover()
    becomes(shown.told, ["the", "×", "das", "value", "1.00"])
    page.locator(".node", has_text="building").hover()
    becomes(lambda: (shown.tip() or "").split("\n")[0], "building")
    assert "pruned" in shown.tip()
    page.locator(".point", has_text="Kyiv").locator("path").hover()
    becomes(shown.told, ["Kyiv", "group", "towns", "nearest", "horse"])
    page.locator(".stop").nth(9).hover()
    becomes(lambda: shown.told(3), ["epoch", "10", "LSTM"])
    page.locator("h1").hover()
    becomes(shown.tip, None)


def page_alternatives() -> list[str]:
    tokens = every_panel().columns[0].panels[0]
    assert isinstance(tokens, Tokens)
    return [part for pair in list(tokens.tokens[0].tip.items())[2:] for part in pair]


def test_keys_go_through_a_text(opened: Any) -> None:
    shown = opened(every_panel())
    press = shown.page.keyboard.press
    press("Tab")
    becomes(lambda: (shown.focused(), shown.told(1)), ("It", ["It"]))
    for key, word in (("ArrowRight", "was"), ("ArrowRight", "a"), ("ArrowLeft", "was"), ("End", "."), ("Home", "It")):
        press(key)
        becomes(lambda: (shown.focused(), shown.told(1)), (word, [word]))
    press("ArrowLeft")
    becomes(shown.focused, "It")  # there is nothing before it
    press("Escape")
    becomes(lambda: (shown.focused(), shown.tip()), ("It", None))
    press("ArrowRight")
    becomes(lambda: shown.told(1), ["was"])
    described = shown.page.evaluate("document.activeElement.getAttribute('aria-describedby')")
    assert described == "tip" and shown.page.locator("#tip").get_attribute("role") == "tooltip"
    expect(shown.page.locator(".text").first.locator("[tabindex]")).to_have_count(1)
    press("Tab")
    becomes(shown.focused, "t")  # one stop for a text, then the next panel
    press("Shift+Tab")
    becomes(shown.focused, "was")  # where it was left


def test_keys_go_from_line_to_line(opened: Any) -> None:
    tokens = [Token(f"word{number} ", 0.1, {"n": str(number)}) for number in range(60)]
    shown = opened(Page("", "", [Column("", [Tokens("", tokens)])]), viewport={"width": 500, "height": 800})
    shown.page.keyboard.press("Tab")
    becomes(shown.focused, "word0 ")
    shown.page.keyboard.press("ArrowDown")
    becomes(lambda: shown.focused() != "word0 ", True)
    below = shown.focused()
    first, second = (shown.page.locator(".text span", has_text=text).first.bounding_box() for text in ("word0", below))
    assert second["y"] > first["y"] and abs(second["x"] - first["x"]) < 5
    shown.page.keyboard.press("ArrowUp")
    becomes(shown.focused, "word0 ")


def test_right_to_left_the_left_key_goes_on(opened: Any) -> None:
    shown = opened(Page("", "", [Column("", [Tokens("", [Token("שלום", 0.1), Token("עולם", 0.2)], spaced=True)])]))
    shown.page.keyboard.press("Tab")
    becomes(shown.focused, "שלום")
    shown.page.keyboard.press("ArrowLeft")
    becomes(shown.focused, "עולם")


def test_keys_go_through_maps_trees_curves_and_points(opened: Any) -> None:
    values = [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]
    page = every_panel()
    panels = [HeatMap("map", values, ["r", "s"], ["a", "b", "c"]), *page.columns[1].panels]
    shown = opened(Page("", "", [Column("", panels)]))
    press = shown.page.keyboard.press
    press("Tab")
    steps = {"ArrowDown": "0.40", "ArrowRight": "0.50", "ArrowUp": "0.20", "End": "0.60", "Home": "0.10"}
    for key, value in steps.items():
        press(key)
        becomes(lambda: (shown.focused(), shown.told()[-1:]), (value, [value]))
    press("ArrowLeft")
    becomes(shown.focused, "0.10")
    shown.page.locator(".stop").first.focus()
    becomes(lambda: shown.told(2), ["epoch", "1"])
    press("ArrowRight")
    becomes(lambda: shown.told(2), ["epoch", "2"])
    root = shown.page.locator("svg.tree .node").first
    root.focus()
    expect(root).to_be_focused()
    moves = [("Right", "the"), ("Down", "a"), ("Up", "the"), ("Right", "house"), ("Left", "the")]
    for key, text in moves:
        press(f"Arrow{key}")
        becomes(lambda: (shown.focused(), shown.told(1)), (text, [text]))
    first = shown.page.locator(".point").first
    first.focus()
    expect(first).to_be_focused()
    begin = shown.focused()
    press("ArrowRight")
    becomes(lambda: shown.focused() != begin, True)
    second = shown.page.locator(".point:focus")
    assert second.bounding_box()["x"] > first.bounding_box()["x"]
    becomes(lambda: (shown.tip() or "").startswith(shown.focused()), True)


def test_a_click_keeps_a_tip_until_escape(opened: Any) -> None:
    shown = opened(every_panel())
    shown.page.locator(".text span", has_text="cold").first.click()
    shown.page.locator("h1").hover()
    becomes(lambda: shown.told(1), ["cold"])
    shown.page.keyboard.press("Escape")
    becomes(shown.tip, None)


def test_a_tip_stays_inside_the_window(opened: Any) -> None:
    shown = opened(every_panel(), viewport={"width": 390, "height": 500})
    for place in (0, 6, 14):
        part = shown.page.locator(".text span").nth(place)
        part.hover()
        expect(shown.page.locator("#tip strong")).to_have_text(part.inner_text())
        box = shown.page.locator("#tip").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390


def test_a_long_text_is_still_quick_to_go_through(opened: Any) -> None:
    shown = opened(long_text(3000))
    shown.page.keyboard.press("Tab")
    for _ in range(20):
        shown.page.keyboard.press("ArrowDown")
    shown.page.keyboard.press("End")
    becomes(lambda: "rank" in shown.told(), True)


def test_a_page_in_a_frame_works_as_well(opened: Any) -> None:
    shown = opened(page_frame(every_panel()))
    frame = shown.page.frames[1]
    frame.locator(".text span", has_text="bright").first.hover()
    becomes(lambda: frame.locator("#tip").inner_text().startswith("bright"), True)
    shown.asked[:] = [url for url in shown.asked if url != "about:srcdoc"]


def test_a_printed_page_is_light_and_has_its_colours(opened: Any) -> None:
    page = opened(every_panel(), color_scheme="dark").page
    page.emulate_media(media="print", color_scheme="dark")
    becomes(lambda: page.evaluate("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
    expect(page.locator(".hint")).to_be_hidden()
