"""Hard alignments and their format."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elman.errors import UserError
from elman.metrics import (
    alignment_groups,
    count_kinds,
    fertile_sources,
    from_pharaoh,
    hard_alignment,
    soft_alignment,
    to_pharaoh,
)


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


@given(st.sets(st.tuples(st.integers(0, 4), st.integers(0, 5))))
def test_every_token_is_in_one_group_and_no_link_leaves_its_group(links: set[tuple[int, int]]) -> None:
    groups = alignment_groups(links, 5, 6)
    assert sorted(source for group in groups for source in group.sources) == list(range(5))
    assert sorted(target for group in groups for target in group.targets) == list(range(6))
    for source, target in links:
        assert [source in group.sources for group in groups] == [target in group.targets for group in groups]
    assert sum(count_kinds(groups).values()) == len(groups)
    for group in groups:
        inside = {link for link in links if link[0] in group.sources}
        alone = group.kind in ("spurious", "unaligned")
        assert alone == (not inside) and len(inside) >= len(group.sources) + len(group.targets) - 1


def test_a_threshold_decides_what_is_aligned() -> None:
    weights = [[0.5, 0.5, 0.0], [0.1, 0.1, 0.8], [0.0, 0.1, 0.9], [0.4, 0.3, 0.3]]
    groups = alignment_groups(soft_alignment(weights, 0.45), 3, 4)
    assert [(group.kind, group.sources, group.targets) for group in groups] == [
        ("many-to-one", (0, 1), (0,)),
        ("one-to-many", (2,), (1, 2)),
        ("spurious", (), (3,)),
    ]
    assert fertile_sources(soft_alignment(weights, 0.45)) == {2: [1, 2]}
    assert count_kinds(alignment_groups(soft_alignment(weights, 0.3), 3, 4))["many-to-many"] == 1
    assert count_kinds(alignment_groups(soft_alignment(weights, 1.0), 3, 4))["unaligned"] == 3
    with pytest.raises(UserError, match="threshold"):
        soft_alignment(weights, 0.0)
