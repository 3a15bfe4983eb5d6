"""Joins of a question with an image: their equations, and one image for many questions."""

import pytest
import torch

from elman.nn.attention import AdditiveAttention
from elman.nn.images import ConvolutionalEncoder, ProjectedPlaces, image_encoder
from elman.nn.questions import JOINS, AttentionJoin, ConcatenationJoin, ProductJoin


@pytest.mark.parametrize("name", JOINS)
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    torch.manual_seed(1)
    join = JOINS[name](3, 4, 6).double()
    query, memory = torch.randn(2, 3).double().requires_grad_(), torch.randn(2, 5, 4).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda q, m: join(q, join.keys(m)), (query, memory))


def test_a_product_can_count_and_its_places_have_no_order() -> None:
    torch.manual_seed(1)
    join = ProductJoin(3, 4, 6)
    query, memory = torch.randn(1, 3), torch.randn(1, 5, 4)
    once = join(query, join.keys(memory))
    twice = join(query, join.keys(torch.cat([memory, memory], 1)))
    torch.testing.assert_close(twice, once * 2**0.5)
    torch.testing.assert_close(join(query, join.keys(memory.flip(1))), once)


def test_concatenation_is_one_matrix_over_both() -> None:
    torch.manual_seed(1)
    join = ConcatenationJoin(3, 4, 6)
    query, memory = torch.randn(1, 3), torch.randn(1, 5, 4)
    both = torch.cat([memory[0], query.expand(5, -1)], 1)  # P x M+Q
    matrix = torch.cat([join.U.weight, join.W.weight], 1)
    x = torch.relu(both @ matrix.T + join.U.bias)
    expected = torch.relu(join.V(x)).sum(0) / 5**0.5
    torch.testing.assert_close(join(query, join.keys(memory))[0], expected)


def test_each_glimpse_has_weights_of_its_own() -> None:
    torch.manual_seed(1)
    join = AttentionJoin(3, 4, 6, glimpses=2)
    query, memory = torch.randn(2, 3), torch.randn(2, 5, 4)
    weights = join.weights(query, join.keys(memory))
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2))
    assert not torch.allclose(weights[:, 0], weights[:, 1])
    first = join.attentions[0]
    assert isinstance(first, AdditiveAttention)
    alone = first(query[:, None], first.keys(memory), torch.zeros(2, 5, dtype=torch.bool))
    torch.testing.assert_close(weights[:, :1], alone)


@pytest.mark.parametrize(("side", "places"), [(48, 36), (24, 9), (21, 9)])
def test_pixels_become_places(side: int, places: int) -> None:
    encoder = image_encoder(side * side, 3, 16, pixels=True)
    assert isinstance(encoder, ConvolutionalEncoder) and encoder.places == places
    assert encoder(torch.rand(2, side * side, 3)).shape == (2, places, 16)
    assert isinstance(image_encoder(49, 1280, 16, pixels=False), ProjectedPlaces)


def test_left_is_not_right() -> None:
    torch.manual_seed(1)
    encoder = ConvolutionalEncoder(24 * 24, 8)
    even = torch.full((1, 24 * 24, 3), 0.5)
    seen = encoder(even)[0].view(3, 3, 8)
    assert not torch.allclose(seen, seen.flip(1), atol=1e-3)
