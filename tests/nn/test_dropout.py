"""The dropouts: how much they drop, what they hold fixed, and that evaluation leaves all alone."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence

from elman.nn import EmbeddingDropout, LockedDropout, drop_weight, locked_dropout


@pytest.mark.parametrize("time_dim", [0, 1])
def test_locked_dropout_is_constant_over_time(time_dim: int) -> None:
    torch.manual_seed(0)
    x = torch.ones(50, 60, 70)
    dropped = LockedDropout(0.3, time_dim)(x)
    assert torch.equal(dropped, dropped.narrow(time_dim, 0, 1).expand_as(dropped))
    assert not torch.equal(dropped, dropped.narrow(1 - time_dim, 0, 1).expand_as(dropped))
    assert (dropped == 0).float().mean() == pytest.approx(0.3, abs=0.03)
    assert dropped.mean() == pytest.approx(1, abs=0.05)


def test_locked_dropout_of_packed_data_holds_for_each_sequence() -> None:
    packed = pack_sequence([torch.ones(length, 40) for length in (5, 3, 2)])
    dropped = locked_dropout(packed.data, 0.5, training=True, batch_sizes=packed.batch_sizes)
    by_step = dropped.split(packed.batch_sizes.tolist())
    for step in by_step:
        assert torch.equal(step, by_step[0][: len(step)])
    assert not torch.equal(by_step[0][0], by_step[0][1])


def test_embedding_dropout_drops_whole_words() -> None:
    torch.manual_seed(0)
    embedding, drop = nn.Embedding(1000, 8), EmbeddingDropout(0.2)
    ids = torch.arange(1000).repeat(2, 1)  # every word twice
    scale = drop(ids, embedding) / embedding(ids)
    assert torch.equal(scale[0], scale[1]), "a word is dropped everywhere or nowhere"
    assert set(scale.flatten().detach().round(decimals=3).abs().unique().tolist()) == {0.0, 1.25}
    assert (scale[0, :, 0] == 0).float().mean() == pytest.approx(0.2, abs=0.04)


def test_embedding_dropout_gives_dropped_words_no_gradient() -> None:
    embedding = nn.Embedding(100, 4)
    dropped = EmbeddingDropout(0.5)(torch.arange(100), embedding)
    dropped.sum().backward()
    gone = (dropped == 0).all(dim=-1)
    assert 0 < gone.sum() < 100
    assert not embedding.weight.grad[gone].any()
    assert (embedding.weight.grad[~gone] == 2).all()


def test_dropped_weight_keeps_its_mean_and_the_parameter() -> None:
    torch.manual_seed(0)
    weight = nn.Parameter(torch.ones(200, 200))
    dropped = drop_weight(weight, 0.4, training=True)
    assert (dropped == 0).float().mean() == pytest.approx(0.4, abs=0.02)
    assert dropped.mean().item() == pytest.approx(1, abs=0.02)
    assert (weight == 1).all()
    dropped.sum().backward()
    assert torch.equal(weight.grad == 0, dropped == 0)


def test_evaluation_is_the_identity() -> None:
    x, embedding, ids = torch.randn(5, 2, 3), nn.Embedding(10, 3), torch.tensor([[1, 2]])
    assert LockedDropout(0.9).eval()(x) is x
    assert LockedDropout(0)(x) is x
    assert torch.equal(EmbeddingDropout(0.9).eval()(ids, embedding), embedding(ids))
    assert drop_weight(x, 0.9, training=False) is x


@pytest.mark.parametrize("kind", [LockedDropout, EmbeddingDropout])
def test_a_wrong_probability_raises(kind: type[LockedDropout] | type[EmbeddingDropout]) -> None:
    with pytest.raises(ValueError, match=r"from 0 to 1, got 1\.5"):
        kind(1.5)
