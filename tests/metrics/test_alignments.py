"""Hard alignments and their format."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elman.errors import UserError
from elman.metrics import from_pharaoh, hard_alignment, to_pharaoh


def test_each_target_token_gets_the_source_it_looks_at_most() -> None:
    weights = torch.tensor([[0.1, 0.9, 0.0], [0.6, 0.3, 0.1]])  # T x S
    links = hard_alignment(weights)
    assert links == [(1, 0), (0, 1)]
    assert to_pharaoh(links) == "0-1 1-0"
    assert hard_alignment(torch.empty(0, 3)) == []
    with pytest.raises(ValueError, match="targets x sources"):
        hard_alignment([0.5, 0.5])


@given(st.sets(st.tuples(st.integers(0, 99), st.integers(0, 99))))
def test_what_is_written_is_read_again(links: set[tuple[int, int]]) -> None:
    assert from_pharaoh(to_pharaoh(links)) == sorted(links)


@pytest.mark.parametrize("piece", ["1", "1-", "-1", "a-b", "1-2-3"])
def test_a_bad_link_is_named(piece: str) -> None:
    with pytest.raises(UserError, match=f"test.align:2 has '{piece}'"):
        from_pharaoh(f"0-0 {piece}", "test.align:2")
