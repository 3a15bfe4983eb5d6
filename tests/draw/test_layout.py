import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elman.draw.axis import Axis, bar_reach
from elman.draw.layout import places, state_styles
from elman.draw.panels import Bars, Node

PARENTS = st.lists(st.integers(0, 1000), max_size=60)


@settings(deadline=None)
@given(PARENTS)
def test_no_two_nodes_of_a_tree_stand_in_one_place(parents: list[int]) -> None:
    nodes = [Node(0, None, "")] + [Node(at + 1, parent % (at + 1), "") for at, parent in enumerate(parents)]
    placed = places(nodes)
    assert len({(place.depth, place.line) for place in placed}) == len(nodes)
    for place in placed[1:]:
        assert place.parent is not None and placed[place.parent].depth == place.depth - 1
    assert max(place.line for place in placed) < len(nodes)


def test_a_chain_of_thousands_is_laid_out() -> None:
    nodes = [Node(at, at - 1 if at else None, "") for at in range(5000)]
    assert places(nodes)[-1].depth == 4999


def test_a_child_before_its_parent_is_refused() -> None:
    with pytest.raises(ValueError, match="node 1 stands before its parent"):
        places([Node(1, 2, ""), Node(2, None, "")])


@settings(deadline=None)
@given(st.lists(st.floats(), min_size=1), st.booleans())
def test_numbers_stand_on_their_axis(values: list[float], log: bool) -> None:
    axis = Axis.around(values, log, margin=0.1)
    assert axis.low < axis.high
    shares = [share for value in values if (share := axis.share(value)) is not None]
    assert all(0 <= share <= 1 for share in shares)
    assert all(-1e-6 <= (axis.share(tick) or 0.0) <= 1 + 1e-6 for tick in axis.ticks())


def test_a_state_has_its_style_whatever_stands_before_it() -> None:
    states = ["cut off", "odd", "finished", "best", "pruned", "kept"]
    for order in (states, states[::-1]):
        styles = state_styles([Node(place, None, "a", state=state) for place, state in enumerate(order)])
        assert [styles[state] for state in ("best", "kept", "pruned", "finished", "cut off")] == [0, 1, 2, 3, 4]
    others = state_styles([Node(place, None, "a", state=state) for place, state in enumerate("xyz")])
    assert list(others.values()) == [0, 1, 2]


def test_numbers_that_are_all_0_stand_at_the_low_end() -> None:
    assert Axis.around([0.0, 0.0], margin=0.1) == Axis(0.0, 1.0)
    assert bar_reach(Bars("", ["a"], [0.0])) == (0.0, 1.0)
