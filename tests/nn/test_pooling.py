"""Pooling of packed outputs: equal to padding and masking, in the caller's order."""

from typing import cast

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_sequence, pad_packed_sequence

from elman.nn import Recurrent
from elman.nn.pooling import POOLINGS, AttentionPooling, LastMaxMeanPooling, MaxPooling, MeanPooling, Pooling

LENGTHS = {"unsorted": [3, 1, 5, 3], "sorted": [5, 3, 3, 1], "single": [1], "ones": [1, 1], "one long": [6]}
X, H = 3, 4


def padded_and_masked(pool: Pooling, output: PackedSequence, body: Recurrent) -> Tensor:
    """The same by way of a padded batch."""
    padded, lengths = pad_packed_sequence(output, batch_first=True)  # B x T x H
    inside = (torch.arange(padded.size(1)) < lengths.unsqueeze(1)).unsqueeze(2)
    if isinstance(pool, LastMaxMeanPooling):
        return torch.cat([padded_and_masked(cast(Pooling, part), output, body) for part in pool.parts], dim=1)
    if isinstance(pool, AttentionPooling):
        scores = pool.v(torch.tanh(pool.W(padded))).masked_fill(~inside, -torch.inf)
        return (scores.softmax(1) * padded).sum(1)
    if isinstance(pool, MaxPooling):
        return padded.masked_fill(~inside, -torch.inf).amax(1)
    if isinstance(pool, MeanPooling):
        return (padded * inside).sum(1) / lengths.unsqueeze(1)
    forward = torch.stack([padded[row, length - 1] for row, length in enumerate(lengths.tolist())])
    half = H if body.bidirectional else body.output_size
    return torch.cat([forward[:, :half], padded[:, 0, half:]], dim=1)  # the backward direction ends at step 0


@pytest.mark.parametrize("name", POOLINGS)
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_equals_padding_and_masking(name: str, lengths: list[int], bidirectional: bool, cell: str) -> None:
    torch.manual_seed(0)
    body = Recurrent(cell, X, H, num_layers=2, bidirectional=bidirectional).double()
    pool = POOLINGS[name](body).double()
    inputs = [torch.randn(length, X, dtype=torch.float64) for length in lengths]
    output, state = body(pack_sequence(inputs, enforce_sorted=False))
    vectors = pool(output, state)
    expected = padded_and_masked(pool, output, body)
    assert vectors.shape == (len(lengths), pool.output_size)
    torch.testing.assert_close(vectors, expected)
    weights = list(body.parameters())
    torch.testing.assert_close(
        torch.autograd.grad(vectors.pow(2).sum(), weights, retain_graph=True, allow_unused=True),
        torch.autograd.grad(expected.pow(2).sum(), weights, allow_unused=True),
    )


@pytest.mark.parametrize("name", POOLINGS)
def test_rows_are_in_the_callers_order(name: str) -> None:
    body = Recurrent("gru", X, H, bidirectional=True)
    pool = POOLINGS[name](body)
    inputs = [torch.randn(length, X) for length in (2, 5, 1, 3)]
    together = pool(*body(pack_sequence(inputs, enforce_sorted=False)))
    alone = torch.cat([pool(*body(pack_sequence([one]))) for one in inputs])
    torch.testing.assert_close(together, alone)
    in_order = sorted(inputs, key=len, reverse=True)  # packed without any index
    torch.testing.assert_close(pool(*body(pack_sequence(in_order))), alone[[1, 3, 0, 2]])


def test_attention_gradcheck() -> None:
    body = Recurrent("gru", X, 2).double()
    pool = AttentionPooling(body).double()
    packed = pack_sequence([torch.randn(length, 2, dtype=torch.float64) for length in (2, 3)], enforce_sorted=False)

    def run(data: Tensor, *_: Tensor) -> Tensor:
        output = PackedSequence(data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)
        return pool(output, data)

    assert torch.autograd.gradcheck(run, (packed.data.clone().requires_grad_(), *pool.parameters()))


def test_attention_weights_sum_to_one_and_survive_large_scores() -> None:
    body = Recurrent("gru", X, H)
    pool = AttentionPooling(body)
    with torch.no_grad():
        pool.v.weight.mul_(1e4)
    output, state = body(pack_sequence([torch.randn(length, X) for length in (1, 4, 2)], enforce_sorted=False))
    weights, lengths = pad_packed_sequence(pool.weights(output), batch_first=True)  # B x T
    assert lengths.tolist() == [1, 4, 2]
    torch.testing.assert_close(weights.sum(1), torch.ones(3))
    assert weights[0, 0] == 1 and pool(output, state).isfinite().all()


def test_last_with_merged_directions() -> None:
    body = Recurrent("lstm", X, H, bidirectional=True, merge="mean")
    pool = POOLINGS["last"](body)
    output, (h, c) = body(pack_sequence([torch.randn(3, X), torch.randn(2, X)]))
    assert pool.output_size == H
    torch.testing.assert_close(pool(output, (h, c)), (h[0] + h[1]) / 2)
