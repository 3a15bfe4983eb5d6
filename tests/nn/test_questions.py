"""Joins of a question with an image: their equations, and one image for many questions."""

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

from elman.nn.attention import AdditiveAttention
from elman.nn.images import ConvolutionalEncoder, ProjectedPlaces, image_encoder
from elman.nn.questions import JOINS, AttentionJoin, ConcatenationJoin, Join, PhraseJoin, ProductJoin, QuestionTokens


def packed(*texts: torch.Tensor) -> QuestionTokens:
    """Questions by the vectors of their words (T x 2 each), with states (3) that follow from them."""
    return QuestionTokens(
        pack_sequence(list(texts), enforce_sorted=False),
        pack_sequence([torch.cat([text, text.sum(1, keepdim=True)], 1) for text in texts], enforce_sorted=False),
    )


def made(name: str) -> Join:
    more = {"word_size": 2, "state_size": 3} if name == "phrases" else {}
    return JOINS[name](3, 4, 6, **more)


ONE = packed(torch.zeros(1, 2))


@pytest.mark.parametrize("name", JOINS)
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    torch.manual_seed(1)
    join = made(name).double()
    given = [torch.randn(shape).double().requires_grad_() for shape in ((2, 3), (2, 5, 4), (1, 2), (3, 2))]
    assert torch.autograd.gradcheck(lambda q, m, *texts: join(q, join.keys(m), packed(*texts)), given)


def test_a_product_can_count_and_its_places_have_no_order() -> None:
    torch.manual_seed(1)
    join = ProductJoin(3, 4, 6)
    query, memory = torch.randn(1, 3), torch.randn(1, 5, 4)
    once = join(query, join.keys(memory), ONE)
    twice = join(query, join.keys(torch.cat([memory, memory], 1)), ONE)
    torch.testing.assert_close(twice, once * 2**0.5)
    torch.testing.assert_close(join(query, join.keys(memory.flip(1)), ONE), once)


def test_concatenation_is_one_matrix_over_both() -> None:
    torch.manual_seed(1)
    join = ConcatenationJoin(3, 4, 6)
    query, memory = torch.randn(1, 3), torch.randn(1, 5, 4)
    both = torch.cat([memory[0], query.expand(5, -1)], 1)  # P x M+Q
    matrix = torch.cat([join.U.weight, join.W.weight], 1)
    x = torch.relu(both @ matrix.T + join.U.bias)
    expected = torch.relu(join.V(x)).sum(0) / 5**0.5
    torch.testing.assert_close(join(query, join.keys(memory), ONE)[0], expected)


def test_each_glimpse_has_weights_of_its_own() -> None:
    torch.manual_seed(1)
    join = AttentionJoin(3, 4, 6, glimpses=2)
    query, memory = torch.randn(2, 3), torch.randn(2, 5, 4)
    weights = join.weights(query, join.keys(memory), ONE)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2))
    assert not torch.allclose(weights[:, 0], weights[:, 1])
    first = join.attentions[0]
    assert isinstance(first, AdditiveAttention)
    alone = first(query[:, None], first.keys(memory), torch.zeros(2, 5, dtype=torch.bool))
    torch.testing.assert_close(weights[:, :1], alone)


def a_phrase(words: torch.Tensor, memory: torch.Tensor) -> tuple[PhraseJoin, torch.Tensor]:
    """A join all of whose words belong to its first phrase, and what it finds for it (1+2+K)."""
    torch.manual_seed(1)
    join = PhraseJoin(3, 4, 6, word_size=2, state_size=3)
    with torch.no_grad():
        join.W.weight.zero_()
        join.W.bias.copy_(torch.tensor([-100.0, 100.0]))  # no word begins another phrase, and all are looked for
        join.o.bias.fill_(100.0)  # there is something everywhere
        join.o.weight.zero_()
        join.C.weight.zero_()
        join.C.weight[:, :6] = torch.eye(6)  # how many, across, down, and the first of what is shown
        join.C.bias.zero_()
        join.D.weight.zero_()
        join.D.bias.fill_(1.0)
    return join, join(torch.zeros(1, 3), join.keys(memory), packed(words))[0].detach()


def test_a_phrase_fits_where_all_its_words_do() -> None:
    torch.manual_seed(2)
    words, memory = torch.randn(3, 2), torch.randn(1, 4, 4)
    join, found = a_phrase(words, memory)
    keys = join.keys(memory)
    fits = torch.sigmoid(2 * join.A(words) @ keys[0, :, 2:].T / 6**0.5)  # T x P
    expected = fits.prod(0)
    weights = join.weights(torch.zeros(1, 3), keys, packed(words))[0]
    torch.testing.assert_close(weights[0], expected)
    torch.testing.assert_close(weights[1], torch.ones(4))  # no word is in the other phrase, so that it fits everywhere
    places = 4 * torch.tensor([[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]])
    torch.testing.assert_close(found[0], expected.sum())
    torch.testing.assert_close(found[1:3], expected @ places / expected.sum())


def test_a_phrase_counts() -> None:
    words, memory = torch.randn(3, 2), torch.randn(1, 4, 4)
    twice = torch.cat([memory, memory], 1)
    torch.testing.assert_close(a_phrase(words, twice)[1][0], 2 * a_phrase(words, memory)[1][0])


def test_phrases_stand_one_after_another() -> None:
    join = PhraseJoin(3, 4, 6, word_size=2, state_size=3, phrases=2)
    with torch.no_grad():
        join.W.weight.copy_(torch.tensor([[200.0, 0.0, 0.0, 0.0, 0.0], [0.0, 200.0, 0.0, 0.0, 0.0]]))
        join.W.bias.copy_(torch.tensor([-100.0, -100.0]))
    begins, sought = torch.tensor([0.0, 0.0, 1.0, 0.0, 1.0, 0.0]), torch.tensor([0.0, 1.0, 0.0, 1.0, 0.0, 1.0])
    found = join.belongs(packed(torch.stack([begins, sought], 1)))[0]
    expected = torch.tensor([[0, 0], [1, 0], [0, 0], [0, 1], [0, 0], [0, 1]]).float()  # the last goes on to the end
    torch.testing.assert_close(found, expected)


def test_questions_beside_a_longer_one_are_joined_as_if_alone() -> None:
    torch.manual_seed(1)
    join = PhraseJoin(3, 4, 6, word_size=2, state_size=3)
    texts = [torch.randn(length, 2) for length in (2, 5, 1)]
    query, keys = torch.randn(3, 3), join.keys(torch.randn(3, 4, 4))
    together = join(query, keys, packed(*texts))
    for row, text in enumerate(texts):
        torch.testing.assert_close(join(query[row, None], keys[row, None], packed(text))[0], together[row])


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


@pytest.mark.parametrize(("side", "width"), [(8, 2), (8, 8), (9, 12), (16, 3)])
def test_the_smallest_images_and_encoders_learn(side: int, width: int) -> None:
    encoder = ConvolutionalEncoder(side * side, width)
    found = encoder(torch.rand(1, side * side, 3))
    found.sum().backward()
    assert found.shape == (1, encoder.places, width) and torch.isfinite(found).all()


def test_pixels_fill_a_square() -> None:
    with pytest.raises(ValueError, match="9,999 places are not the pixels of a square image"):
        ConvolutionalEncoder(9999, 8)
