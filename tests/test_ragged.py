import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence

import elman
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


@given(sequences=SEQUENCES)
def test_pad_and_pack_are_pytorchs(sequences: list[list[int]]) -> None:
    theirs = pack_sequence([torch.tensor(sequence) for sequence in sequences], enforce_sorted=False)
    ours = elman.pack(sequences)
    assert ours.data.tolist() == theirs.data.tolist()
    assert ours.batch_sizes.tolist() == theirs.batch_sizes.tolist()
    assert ours.sorted_indices.tolist() == theirs.sorted_indices.tolist()
    padded, lengths = pad_packed_sequence(PackedSequence(*map(torch.from_numpy, ours)), batch_first=True)
    assert padded.tolist() == elman.pad(sequences).tolist()
    assert lengths.tolist() == [len(sequence) for sequence in sequences]


@given(sequences=st.lists(st.lists(st.integers(0, 99)), min_size=1))
def test_any_sequences_come_back(sequences: list[list[int]]) -> None:
    assert [one.tolist() for one in elman.pack(sequences).sequences()] == sequences
    table = elman.pad(sequences, value=-1)
    assert [[step for step in row if step >= 0] for row in table.tolist()] == sequences
    assert table.shape == (len(sequences), max(map(len, sequences)))


def test_packed_vectors_are_what_a_layer_reads() -> None:
    torch.manual_seed(0)
    layer, names = elman.nn.GRU(2, 3), [np.random.default_rng(0).normal(size=(n, 2)).astype(np.float32) for n in (2, 5)]
    _, state = layer(PackedSequence(*map(torch.from_numpy, elman.pack(names))))
    for row, name in enumerate(names):
        torch.testing.assert_close(state[0, row], layer(torch.from_numpy(name))[1][0])


def test_what_is_no_sequence_is_refused() -> None:
    for wrong, said in (([], "at least one"), ([3], "as a list"), ([[[1, 2]], [[1]]], "same shape")):
        with pytest.raises(ValueError, match=said):
            elman.pad(wrong)
