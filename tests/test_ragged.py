import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence

from elman.ragged import Ragged

SEQUENCES = st.lists(st.lists(st.integers(0, 99), min_size=1, max_size=9), min_size=1, max_size=12)


@given(SEQUENCES)
def test_packing_is_pytorchs(sequences: list[list[int]]) -> None:
    ragged = Ragged.of(sequences)
    expected = pack_sequence([torch.tensor(one) for one in sequences], enforce_sorted=False)
    assert ragged.packed().tolist() == expected.data.tolist()
    assert ragged.packing.batch_sizes.tolist() == expected.batch_sizes.tolist()
    assert ragged.packing.order.tolist() == expected.sorted_indices.tolist()
    padded = torch.from_numpy(ragged.padded())
    again = pack_padded_sequence(padded, torch.tensor(ragged.lengths), batch_first=True, enforce_sorted=False)
    assert again.data.tolist() == ragged.packed().tolist()


@given(SEQUENCES, st.randoms(use_true_random=False))
def test_there_and_back(sequences: list[list[int]], chance: object) -> None:
    ragged = Ragged.of(sequences)
    assert [one.tolist() for one in ragged] == sequences
    assert [one.tolist() for one in ragged.unpacked(ragged.packed())] == sequences
    places = np.random.default_rng(len(sequences)).permutation(len(sequences))
    assert [one.tolist() for one in ragged.take(places)] == [sequences[place] for place in places]


def test_values_of_several_numbers_a_step() -> None:
    ragged = Ragged.of([np.ones((2, 3)), np.zeros((1, 3))])
    assert ragged.padded().shape == (2, 2, 3)
    assert ragged.packed().tolist() == [[1] * 3, [0] * 3, [1] * 3]
