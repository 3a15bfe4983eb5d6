import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elman.decode.stop_strings import StopStrings
from elman.errors import UserError

# Two letters make overlaps and false beginnings common.
pieces = st.lists(st.text("ab", max_size=5), max_size=12)
stop_lists = st.lists(st.text("ab", min_size=1, max_size=4), max_size=3)


def cut(text: str, stops: list[str]) -> str:
    """The text up to the stop string that is complete first, found letter by letter."""
    for end in range(len(text) + 1):
        complete = [stop for stop in stops if text[:end].endswith(stop)]
        if complete:
            return text[: end - max(map(len, complete))]
    return text


@settings(deadline=None)
@given(pieces, stop_lists)
def test_the_output_ends_before_the_first_stop_string_and_nothing_else_is_lost(
    parts: list[str], stops: list[str]
) -> None:
    stop = StopStrings(stops)
    shown = "".join(map(stop.push, parts)) + stop.flush()
    text = "".join(parts)
    assert shown == cut(text, stops)
    assert not any(s in shown for s in stops)
    assert stop.stopped == any(s in text for s in stops)


@settings(deadline=None)
@given(pieces, stop_lists)
def test_only_what_may_still_become_a_stop_string_is_held_back(parts: list[str], stops: list[str]) -> None:
    stop, read, shown = StopStrings(stops), "", ""
    for part in parts:
        read, shown = read + part, shown + stop.push(part)
        if stop.stopped:
            break
        held = read.removeprefix(shown)
        assert read == shown + held
        assert held == "" or any(s.startswith(held) for s in stops)


def test_a_stop_string_across_three_pieces() -> None:
    stop = StopStrings(["\n\n"])
    assert [stop.push(piece) for piece in ["one\n", "", "\ntwo"]] == ["one", "", ""]
    assert stop.stopped
    assert stop.push("three") == ""
    assert stop.flush() == ""


def test_a_false_beginning_is_let_go_with_the_next_piece() -> None:
    stop = StopStrings(["END"])
    assert [stop.push(piece) for piece in ["the E", "N", "EN", "TER"]] == ["the ", "", "EN", "ENTER"]


def test_one_string_is_one_stop_string() -> None:
    assert StopStrings("END").push("DEN END") == "DEN "


def test_without_stop_strings_all_passes_at_once() -> None:
    assert StopStrings([]).push("text") == "text"


def test_an_empty_stop_string_is_refused() -> None:
    with pytest.raises(UserError, match="at least one character"):
        StopStrings(["a", ""])
