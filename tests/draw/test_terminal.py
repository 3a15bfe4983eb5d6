import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from elman.draw.panels import (
    Bars,
    Column,
    HeatMap,
    Line,
    Lines,
    Node,
    Note,
    Page,
    Panel,
    Point,
    Points,
    Table,
    Token,
    Tokens,
    Tree,
)
from elman.draw.terminal import print_page
from tests.draw.pages import ODD, every_panel, odd_page


def printed(page: Page, terminal: bool = False, width: int = 100, **options: Any) -> str:
    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=terminal, color_system="truecolor" if terminal else None, **options
    )
    print_page(page, console)
    return out.getvalue()


def one(*panels: Panel) -> Page:
    return Page("a page", "", [Column("", panels)])


def test_off_a_terminal_everything_is_plain_and_nothing_is_broken() -> None:
    shown = printed(every_panel(), width=40)
    assert "\x1b" not in shown
    lines = shown.splitlines()
    assert "bright\ttop 1,000\trank 17\tp 0.0123\tthe 0.412" in lines
    assert "thirteen\tbelow\trank 17\tp 0.0123\tthe 0.412\tmarked" in lines
    assert "\tdas\thaus\tsteht\tam\tende\tder\tlangen\tstraße\t." in lines
    assert any(line.startswith("house\t0.561\t0.993\t0.421") for line in lines)
    assert "GRU\t1.0M\t1.497\t31" in lines
    assert any(line.endswith("2.31 ± 0.2 nats") and "███" in line for line in lines)
    assert "│   └── building  pruned, log p -2.12" in lines
    assert any(line.startswith("Kyiv\ttowns\t") for line in lines)
    assert "It has not learnt what clocks do." in lines


def test_on_a_terminal_tokens_stand_on_their_colours() -> None:
    shown = printed(one(Tokens("", [Token("good", 0), Token("bad", 3)], "buckets", ("top", "below"))), terminal=True)
    assert "\x1b[38;2;0;0;0;48;2;191;229;180mgood" in shown
    assert "\x1b[38;2;0;0;0;48;2;207;178;242mbad" in shown
    assert "top" in shown and "below" in shown


def test_on_a_terminal_a_heat_map_is_blocks_that_fit() -> None:
    values = [[place / 59 for place in range(60)]] * 3
    panel = HeatMap("states", values, ["a", "b", "c"], [f"t{place}" for place in range(60)])
    shown = printed(one(panel), terminal=True, width=80)
    assert shown.count("48;2;11;58;107") >= 3  # the darkest
    assert len([line for line in shown.splitlines() if "48;2" in line]) >= 6  # in two parts


def test_where_colour_is_not_wanted_there_is_none() -> None:
    shown = printed(every_panel(), terminal=True, no_color=True)
    assert "48;2" not in shown and "bright\ttop 1,000" in shown


def test_on_a_terminal_points_are_a_map_with_signs() -> None:
    shown = printed(one(*[panel for panel in every_panel().columns[1].panels if panel.kind == "points"]), terminal=True)
    assert shown.count("│") == 20 and "o animals, x towns, + verbs" in shown


@settings(max_examples=50, deadline=None)
@given(
    st.text(st.characters(codec=None, exclude_categories=()), max_size=40)
    | st.sampled_from([ODD, "[bold]x[/]", ":smile:"])
)
def test_no_text_commands_the_terminal(text: str) -> None:
    printed(odd_page(text), terminal=True).encode()
    shown = printed(odd_page(text))
    shown.encode()
    assert not set(shown) & {chr(code) for code in (*range(9), *range(11, 32), *range(127, 160))}


def test_markup_of_rich_is_a_text_like_any_other() -> None:
    assert "[bold]x[/] :smile:" in printed(one(Note("", "[bold]x[/] :smile:")))


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize(
    "panel",
    [
        Tokens("", []),
        HeatMap("", [], [], []),
        HeatMap("", [[0, 2]], ["a"], ["b", "c"], "buckets"),
        Lines("", []),
        Lines("", [Line("none", [], []), Line("odd", [0.0], [None])], log_x=True, log_y=True),
        Points("", []),
        Table("", [], []),
        Tree("", []),
        Bars("", [], []),
        Bars("", ["a"], [float("nan")]),
        Note("", ""),
    ],
    ids=lambda panel: panel.kind,
)
def test_a_panel_may_have_nothing_in_it(panel: Panel, terminal: bool) -> None:
    assert "a page" in printed(one(panel), terminal)


def test_off_a_terminal_many_points_are_counted_and_no_tree_is_cut() -> None:
    many = Points("", [Point(place, 0, "w", str(place % 3)) for place in range(41)])
    tree = Tree("", [Node(0, None, "a" * 90), Node(1, 0, "b" * 90, state="best")])
    lines = printed(one(many, tree), width=80).splitlines()
    assert "41 points in 3 groups: see them with --out page.html" in lines
    assert "└── " + "b" * 90 + "  best" in lines


def test_buckets_differ_where_there_are_16_colours() -> None:
    out = io.StringIO()
    panel = Tokens("", [Token(f"t{place}", place) for place in range(6)], "buckets")
    print_page(one(panel), Console(file=out, width=80, force_terminal=True, color_system="standard"))
    grounds = {out.getvalue().split(f"mt{place}")[0].rpartition("\x1b[")[2] for place in range(6)}
    assert len(grounds) == 6
