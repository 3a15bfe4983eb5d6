"""The compiled encoder and the stack of a translator's encoder run towers as PyTorch does."""

from itertools import product

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence, unpack_sequence

from elman import kernels
from elman.nn.pooling import POOLINGS
from elman.nn.recurrent import Recurrent
from elman.nn.steps import as_state
from elman.nn.towers import BACKWARD, Towers
from elman.runtime import Encoder, Layers, encoder_refusal
from elman.runtime.quantise import quantise
from elman.runtime.stacked import Stack
from elman.runtime.weights import Weights, arrays_of

pytestmark = pytest.mark.skipif(not kernels.available(), reason="the kernels were not built")
LENGTHS = [3, 9, 1, 9, 4]


class Network(nn.Module):
    """An embedding, towers, a pooling and an output."""

    def __init__(self, direction: str, pooling: str, cell: str, inputs: int = 7, **options: object) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.embedding = nn.Embedding(11, inputs)
        stacks = [Recurrent(cell, inputs, 5, **options) for _ in BACKWARD[direction]]  # type: ignore[arg-type]
        self.body = Towers(stacks, direction)  # type: ignore[arg-type]
        self.pooling = POOLINGS[pooling](self.body) if pooling else None
        self.output = nn.Linear(self.pooling.output_size if self.pooling else self.body.output_size, 4)

    def forward(self, ids: list[torch.Tensor]) -> torch.Tensor:
        packed = pack_sequence(ids, enforce_sorted=False)
        output, state = self.body(packed._replace(data=self.embedding(packed.data)))
        vectors = torch.cat(unpack_sequence(output)) if self.pooling is None else self.pooling(output, state)
        return self.output(vectors)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("direction", "connections"), list(product(BACKWARD, ["plain", "residual", "dense"])))
@pytest.mark.parametrize("pooling", ["", "last", "attention", "last-max-mean"])
def test_towers_as_by_pytorch(direction: str, connections: str, pooling: str) -> None:
    for cell, layers in (("lstm", 3), ("gru", 2), ("rnn", 1)):
        network = Network(direction, pooling, cell, num_layers=layers, connections=connections)
        ids = [torch.arange(length) * 5 % 11 for length in LENGTHS]
        expected = network(ids).detach().numpy()
        parts = {"embedding": network.embedding, "pooling": network.pooling, "output": network.output}
        for arrays, close in ((None, 2e-6), (quantise(arrays_of(network)), 0.06)):
            encoder = Encoder.of(network, network.body, arrays=arrays, **parts)  # type: ignore[arg-type]
            found = encoder(torch.cat(ids).numpy(), np.array(LENGTHS))
            assert np.abs(found - expected).max() < close


@pytest.mark.parametrize("connections", ["plain", "residual", "dense"])
def test_the_stack_of_layers_that_are_packed_at_each_call(connections: str) -> None:
    network = Network("both", "", "lstm", num_layers=2, connections=connections)
    layers = Layers.of(network.body, "body")
    stack = Stack(layers, Weights(arrays_of(network), layers.shapes()))
    packed = pack_sequence([torch.randn(4, 7), torch.randn(2, 7)])
    output, state = network.body(packed)
    found, states = stack(packed.data.numpy(), packed.batch_sizes.numpy())
    np.testing.assert_allclose(found, output.data.detach().numpy(), atol=2e-6)
    for mine, theirs in zip(states, as_state(state), strict=True):
        np.testing.assert_allclose(mine, theirs.detach().numpy(), atol=2e-6)


def test_an_input_that_would_be_added_to_one_tower_is_refused() -> None:
    both = Network("both", "", "gru", inputs=5, num_layers=2, connections="residual")
    assert "two towers" in (encoder_refusal(both.body) or "")
    alone = Network("backward", "", "gru", inputs=5, num_layers=2, connections="residual")
    ids = [torch.arange(length) for length in (3, 2)]
    encoder = Encoder.of(alone, alone.body, embedding=alone.embedding, output=alone.output)
    found = encoder(torch.cat(ids).numpy(), np.array([3, 2]))
    assert np.abs(found - alone(ids).detach().numpy()).max() < 2e-6
