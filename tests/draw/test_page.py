import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elman.draw.labels import clean, label
from elman.draw.page import page_frame, page_html
from elman.draw.panels import Column, HeatMap, Line, Lines, Note, Page, Panel, Points, Table, Token, Tokens, Tree
from tests.draw.pages import ODD, every_panel, long_text, odd_page

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=40)
ATTACKS = [
    ODD,
    "https://elman.invalid/x.js",
    "//elman.invalid",
    "javascript:alert(1)",
    '" onload="x',
    "</style><style>",
]


class Parsed(HTMLParser):
    """A page as a program reads it: the own text of every element, and every attribute."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, list[str]]] = [("", [])]
        self.open = [0]
        self.attributes: list[tuple[str, str, str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attributes]
        if tag == "br":
            self.handle_data("\n")
        elif tag != "meta":
            self.elements.append(("data" if ("type", "application/json") in attributes else tag, []))
            self.open.append(len(self.elements) - 1)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attributes]

    def handle_endtag(self, tag: str) -> None:
        while self.elements[self.open.pop()][0].replace("data", "script") != tag:
            pass  # cells and rows of a heat map are not closed

    def handle_data(self, text: str) -> None:
        self.elements[self.open[-1]][1].append(text)

    def of(self, tag: str) -> list[str]:
        return ["".join(texts) for name, texts in self.elements if name == tag]

    def texts(self) -> set[str]:
        return {"".join(texts).strip() for _, texts in self.elements}


def one(*panels: Panel) -> str:
    return page_html(Page("a page", "", [Column("", panels)]))


@settings(max_examples=60, deadline=None)
@given(ANY_TEXT)
def test_any_text_can_be_read_again(text: str) -> None:
    page = one(Tokens("", [Token(text, 0.5, {text: text})]), Note("", "a" + text))
    page.encode()  # no half characters are left
    parsed = Parsed(page)
    assert parsed.of("span")[0] == (clean(text).replace("\n", "⏎\n") or "∅")
    assert parsed.of("title") == ["a page"]
    tips = json.loads(parsed.of("data")[0])
    assert {label(text), clean(text)} <= set(tips["strings"])
    assert [len(tip) for tip in tips["panels"][0]] == [3]


@settings(max_examples=60, deadline=None)
@given(ANY_TEXT | st.sampled_from(ATTACKS))
def test_nothing_that_a_user_wrote_is_markup(text: str) -> None:
    odd, plain = (
        Parsed(page_html(odd_page("a" + text))),
        Parsed(page_html(odd_page("a plain text that is rather long"))),
    )
    assert sorted(set(map(nature, odd.attributes)) - set(map(nature, plain.attributes))) == []
    assert not [value for _, _, value in odd.attributes if "//" in value or "javascript:" in value]
    assert not [name for _, name, _ in odd.attributes if name in ("src", "href", "srcset", "style", "action")]


def nature(attribute: tuple[str, str, str]) -> tuple[str, str, str]:
    """An attribute without the numbers in it, which depend on the length of a text, and without its policy's hashes."""
    tag, name, value = attribute
    return tag, name, "" if name == "content" else re.sub(r"-?[\d.]+", "0", value)


def test_the_policy_allows_the_pages_own_script_and_style_and_nothing_else() -> None:
    page = page_html(every_panel())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    style, script = re.search(r"<style>(.*?)</style>", page, re.S), re.search(r"<script>(.*?)</script>", page, re.S)
    assert style is not None and script is not None
    hashes = [
        "'sha256-" + base64.b64encode(hashlib.sha256(part[1].encode()).digest()).decode() + "'"
        for part in (style, script)
    ]
    assert policy[1] == (
        f"default-src 'none'; style-src {hashes[0]}; script-src {hashes[1]}; base-uri 'none'; form-action 'none'"
    )
    assert "http:" not in page and "https:" not in page and "url(" not in page and "@import" not in page


def test_a_long_text_with_ten_alternatives_each_makes_a_page_that_can_be_mailed() -> None:
    assert len(page_html(long_text(3000, 10)).encode()) < 800_000
    assert len(page_html(every_panel()).encode()) < 120_000


def test_a_page_has_all_that_its_panels_have() -> None:
    page = every_panel()
    parsed = Parsed(page_html(page))
    texts = parsed.texts()
    assert page.title in texts and page.about in texts
    for column in page.columns:
        assert column.title in texts
        assert {panel.title for panel in column.panels} <= texts
    assert {"top 1,000", "Most words are among the first ten; the last is not.", "straße", "0.97"} <= texts
    assert {"2.31 ± 0.2 nats", "bits per character", "epoch", "Elman", "1.883", "at the end", "Kyiv"} <= texts
    assert "It has not learnt what clocks do." in texts


def test_drawings_have_a_text_in_their_place_as_well() -> None:
    told = {Lines: ["LSTM", "0.707 ("], Tree: ["finished, log p -1.11"], Points: ["Oslo", "towns"]}
    for panel in every_panel().columns[1].panels:
        if type(panel) in told:
            folded = one(panel).split("<details>")[1].split("</details>")[0]
            assert all(word in folded for word in told[type(panel)])


def test_colours_are_levels_and_marks_are_marks() -> None:
    page = one(
        Tokens("", [Token("low", -1.0), Token("high", 1.0, marked=True), Token("none")]),
        HeatMap("", [[0.0, 5.0], [float("nan"), 10.0]], ["r", "s"], ["c", "d"], high=10.0, marked=[(0, 1)]),
    )
    assert '<span class=d0>low</span><span class="d20 m">high</span><span>none</span>' in page
    assert '<td class=s0>0.0<td class="s10 m">5.0' in page and "<td>nan<td class=s20>10.0" in page


def test_a_heat_map_of_very_many_numbers_is_still_a_small_page() -> None:
    values = [[((row * column) % 17) / 17 for column in range(400)] for row in range(150)]
    page = one(
        HeatMap("states", values, [f"unit {row}" for row in range(150)], [f"t{column}" for column in range(400)])
    )
    assert len(page) < 800_000
    assert "400 columns, from t0 to t399; 150 rows, from unit 0 to unit 149." in page


def test_right_to_left_texts_find_their_direction() -> None:
    page = one(Tokens("", [Token("שלום", 0.1), Token("עולם", 0.2)], spaced=True))
    assert re.search(r'<p class="text words" dir="auto"[^>]*><span class=d11>שלום</span> <span', page)


def test_columns_stand_beside_each_other_only_where_there_are_several() -> None:
    page = every_panel()
    assert '<body class="several">' in page_html(page)
    assert "<body>" in page_html(replace(page, columns=page.columns[:1]))


@pytest.mark.parametrize(
    "panel",
    [
        Tokens("nothing", []),
        HeatMap("nothing", [], [], []),
        Lines("nothing", []),
        Lines("nothing", [Line("none", [], [])], log_x=True, log_y=True),
        Lines("one", [Line("zero", [0.0], [0.0], [None], [None])], log_x=True, log_y=True),
        Lines("whiskers", [Line("none", [1.0], [None], [None], [None])], whiskers=True),
        Lines("endless", [Line("steep", [0, 1, 2], [float("inf"), float("nan"), 1e308])]),
        Points("nothing", []),
        Table("nothing", [], []),
        Table("no rows", ["a"], []),
        Tree("nothing", []),
        Note("nothing", ""),
    ],
    ids=lambda panel: f"{panel.kind}-{panel.title}",
)
def test_a_panel_may_have_nothing_in_it(panel: Panel) -> None:
    page = one(panel)
    assert panel.title in page and "nan " not in page.split("<main>")[1]


def test_a_page_in_a_notebook_stands_in_a_frame_of_its_own() -> None:
    frame = page_frame(every_panel())
    attributes = {name: value for _, name, value in Parsed(frame).attributes}
    assert attributes["srcdoc"] == page_html(every_panel())
    assert attributes["sandbox"] == "allow-scripts"


def test_a_spread_is_a_ground_or_a_bar_at_each_place() -> None:
    line = Line("runs", [1, 2], [1.0, 2.0], [0.5, 1.5], [1.5, 2.5])
    band, bars = (one(Lines("", [line], whiskers=whiskers)) for whiskers in (False, True))
    assert 'class="band n0"' in band and 'class="band n0"' not in bars
    (drawn,) = re.findall(r'<path class="curve n0" d="([^"]+)"', bars)
    assert drawn.count("V") == 2
