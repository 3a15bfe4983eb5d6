"""Layers that learn one after the other, at rates of their own: what changes, what does not, and how fast."""

import math
from typing import Any

import pytest
import torch
from torch import nn

from elman.nn.depth import layer_groups
from elman.nn.recurrent import Recurrent
from elman.nn.towers import Towers
from elman.train.optimizer import Unfreezing, learning_rate, make_optimizer, set_rate
from elman.train.recipe import TrainSettings


class Network(nn.Module):
    """Two towers of two layers between an embedding and an output, as a classifier has them."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(7, 3)
        self.body = Towers([Recurrent("gru", 3, 4, num_layers=2) for _ in range(2)], "both")
        self.output = nn.Linear(8, 2)


def names(network: nn.Module, group: list[nn.Parameter]) -> set[str]:
    return {name for name, parameter in network.named_parameters() if any(parameter is one for one in group)}


def test_slanted_is_the_formula_of_the_paper() -> None:
    steps, cut_share, ratio, most = 200, 0.1, 32, 0.01
    settings = TrainSettings(lr=most, schedule="slanted", slanted_cut=cut_share, slanted_ratio=ratio)
    cut = math.floor(steps * cut_share)
    for t in range(steps + 1):
        p = t / cut if t < cut else 1 - (t - cut) / (cut * (1 / cut_share - 1))
        assert learning_rate(settings, t, t / steps) == pytest.approx(most * (1 + p * (ratio - 1)) / ratio, rel=1e-9)


def test_groups_go_from_the_embedding_to_what_stands_on_top() -> None:
    network = Network()
    groups = layer_groups(network)
    assert [len(group) for group in groups] == [1, 8, 8, 2]
    assert names(network, groups[0]) == {"embedding.weight"}
    assert all(".layers.0." in name for name in names(network, groups[1]))
    assert all(".layers.1." in name for name in names(network, groups[2]))
    assert names(network, groups[3]) == {"output.weight", "output.bias"}


def test_every_layer_has_its_rate() -> None:
    network = Network()
    optimizer = make_optimizer(TrainSettings(layer_factor=2.6), network)
    set_rate(optimizer, 0.1)
    rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    for depth, group in enumerate(reversed(layer_groups(network))):
        assert [rates[id(p)] for p in group] == pytest.approx([0.1 / 2.6**depth] * len(group))
    assert len(rates) == len(list(network.parameters()))


def test_one_rate_leaves_the_groups_as_they_are_without_layers() -> None:
    groups = make_optimizer(TrainSettings(weight_decay=0.1), Network()).param_groups
    assert [group["weight_decay"] for group in groups] == [0.1, 0.0]
    assert all("scale" not in group for group in groups)


@pytest.mark.parametrize("settings", [{}, {"optimizer": "adamw", "weight_decay": 0.1}, {"optimizer": "adagrad"}])
def test_what_is_frozen_stays_to_the_bit_and_the_rest_learns(settings: dict[str, Any]) -> None:
    network = Network()
    chosen = TrainSettings(unfreeze=1, lr=0.01, **settings)
    optimizer, unfreezing = make_optimizer(chosen, network), Unfreezing(chosen, network)
    packed = nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3])])
    for epoch in range(5):
        groups = unfreezing.groups
        before = [[p.detach().clone() for p in group] for group in groups]
        assert unfreezing.at(epoch) == min(epoch + 1, 4)
        optimizer.zero_grad(set_to_none=True)
        output, _ = network.body(packed._replace(data=network.embedding(packed.data)))
        network.output(output.data).square().sum().backward()
        optimizer.step()
        changed = [
            any(not torch.equal(p, old) for p, old in zip(group, olds, strict=True))
            for group, olds in zip(groups, before, strict=True)
        ]
        assert changed == [place >= 3 - epoch for place in range(4)]


def test_halves_of_epochs_and_the_edge_of_one() -> None:
    unfreezing = Unfreezing(TrainSettings(unfreeze=0.5), Network())
    assert [unfreezing.at(epochs) for epochs in (0, 0.49, 0.1 + 0.2 + 0.2, 1.0, 1.5, 9)] == [1, 1, 2, 3, 4, 4]
    assert Unfreezing(TrainSettings(), Network()).at(3) == 0
