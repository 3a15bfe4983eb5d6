"""Characters, categorical features and word dropout."""

import pytest
import torch
from torch import nn

from elman.nn.features import CharacterEncoder, WordDropout, WordFeatures


@pytest.mark.parametrize("cell", ["lstm", "gru", "mut1"])
def test_a_words_vector_is_that_of_the_word_alone(cell: str) -> None:
    encoder = CharacterEncoder(20, 3, 4, cell=cell, num_layers=2).double()
    spelled = torch.tensor([[5, 0, 0, 0], [6, 7, 8, 9], [1, 2, 0, 0]])
    lengths = torch.tensor([1, 4, 2])
    tokens = torch.tensor([[2, 0, 2], [1, 1, 0]])
    vectors = encoder(spelled, lengths, tokens)
    assert vectors.shape == (2, 3, encoder.output_size) == (2, 3, 8)
    for place in ((0, 0), (0, 1), (1, 0)):
        word = int(tokens[place])
        _, state = encoder.body(encoder.embedding(spelled[word, : lengths[word]]).unsqueeze(1))
        h = state[0] if isinstance(state, tuple) else state  # L*2 x 1 x H
        torch.testing.assert_close(vectors[place], torch.cat([h[-2, 0], h[-1, 0]]))


def test_each_distinct_character_is_computed_once_and_padding_never() -> None:
    encoder = CharacterEncoder(20, 3, 4)
    seen: list[int] = []
    encoder.embedding.register_forward_hook(lambda module, given, made: seen.append(given[0].numel()))
    encoder(torch.tensor([[5, 0, 0], [6, 7, 8]]), torch.tensor([1, 3]), torch.zeros(100, dtype=torch.long))
    assert seen == [4]


def test_every_occurrence_of_a_word_teaches_its_characters() -> None:
    encoder = CharacterEncoder(20, 3, 4).double()
    spelled, lengths = torch.tensor([[5, 6]]), torch.tensor([2])
    once, thrice = (
        torch.autograd.grad(
            encoder(spelled, lengths, torch.zeros(count, dtype=torch.long)).sum(), encoder.embedding.weight
        )[0]
        for count in (1, 3)
    )
    torch.testing.assert_close(thrice, 3 * once)
    assert once[5].any() and not once[7].any()


def test_features_side_by_side_and_added_up() -> None:
    ids = torch.tensor([[[1, 0], [3, 4]]])  # B x T x F
    for join, size in (("concat", 6), ("sum", 3)):
        features = WordFeatures([4, 5], [3, 3], join=join)  # type: ignore[arg-type]
        first, second = (embedding for embedding in features.embeddings if isinstance(embedding, nn.Embedding))
        parts = (first.weight[ids[..., 0]], second.weight[ids[..., 1]])
        expected = torch.cat(parts, dim=-1) if join == "concat" else parts[0] + parts[1]
        torch.testing.assert_close(features(ids), expected)
        assert features.output_size == size == expected.size(-1)


def test_wrong_features() -> None:
    with pytest.raises(ValueError, match="must have one size"):
        WordFeatures([4, 5], [2, 3], join="sum")
    with pytest.raises(ValueError, match="a count and a size for each feature"):
        WordFeatures([4, 5], [2])
    with pytest.raises(ValueError, match="join must be"):
        WordFeatures([4], [2], join="mean")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected 2 features, got 3"):
        WordFeatures([4, 5], [2, 2])(torch.zeros(7, 3, dtype=torch.long))


def test_word_dropout_rate_follows_the_count() -> None:
    torch.manual_seed(0)
    drop = WordDropout.by_count(0, torch.tensor([torch.inf, 1, 3, 99]), a=1.0)
    ids = torch.arange(4).repeat(20_000, 1)
    dropped = drop(ids)
    changed = (dropped != ids).float().mean(0)
    torch.testing.assert_close(changed, torch.tensor([0, 0.5, 0.25, 0.01]), atol=0.015, rtol=0)
    assert (dropped[dropped != ids] == 0).all()
    assert torch.equal(ids, torch.arange(4).repeat(20_000, 1)), "the caller's ids are left alone"


def test_word_dropout_of_one_rate() -> None:
    torch.manual_seed(0)
    ids = torch.full((100, 100), 7)
    drop = WordDropout(2, 0.3)
    assert float((drop(ids) == 2).float().mean()) == pytest.approx(0.3, abs=0.02)
    assert torch.equal(drop.eval()(ids), ids)
    assert torch.equal(WordDropout(2, 0.0)(ids), ids)
    assert not drop.state_dict()


def test_wrong_word_dropout() -> None:
    for p in (-0.1, 1.5, torch.tensor([0.5, torch.nan])):
        with pytest.raises(ValueError, match="p must be a probability"):
            WordDropout(0, p)
    with pytest.raises(ValueError, match="a must be greater than zero"):
        WordDropout.by_count(0, torch.tensor([1.0]), a=0)
