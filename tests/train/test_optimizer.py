from pathlib import Path

import pytest
import torch
from torch import nn

from elman.train.optimizer import Average, clip, make_optimizer
from elman.train.recipe import TrainSettings
from tests.train.toy import ToyTask, train


@pytest.mark.parametrize(
    ("optimizer", "lr"), [("sgd", 0.3), ("adam", 0.1), ("adamw", 0.1), ("adagrad", 0.5), ("momentum", 0.1)]
)
def test_every_optimizer_learns_the_toy(tmp_path: Path, optimizer: str, lr: float) -> None:
    momentum = {"momentum": 0.9, "optimizer": "sgd"} if optimizer == "momentum" else {"optimizer": optimizer}
    task = ToyTask()
    before = task.evaluate()["loss"]
    trainer = train(task, tmp_path, lr=lr, steps=150, clip_norm=None, **momentum)
    assert trainer.evaluations[-1][1] < 0.01 * before


def test_only_matrices_decay() -> None:
    network = nn.Linear(3, 2)
    optimizer = make_optimizer(TrainSettings(optimizer="sgd", lr=0.1, weight_decay=0.5), network)
    before = {name: p.detach().clone() for name, p in network.named_parameters()}
    for p in network.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.step()
    assert torch.allclose(network.weight, before["weight"] * (1 - 0.1 * 0.5))
    assert torch.equal(network.bias, before["bias"])


def gradients_of(network: nn.Module) -> list[torch.Tensor]:
    return [p.grad.clone() for p in network.parameters() if p.grad is not None]


@pytest.mark.parametrize("norm", [0.1, 1.0, 1e6])
def test_clipping_by_norm_is_pytorchs(norm: float) -> None:
    ours, theirs = nn.Linear(3, 2), nn.Linear(3, 2)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        a.grad = torch.randn(a.shape) * 3
        b.grad = a.grad.clone()
    total = clip(TrainSettings(clip_norm=norm), list(ours.parameters()))
    expected = nn.utils.clip_grad_norm_(theirs.parameters(), norm)
    assert total == pytest.approx(float(expected))
    for a, b in zip(gradients_of(ours), gradients_of(theirs), strict=True):
        assert torch.allclose(a, b)


def test_clipping_by_value_is_pytorchs_and_comes_before_the_norm() -> None:
    ours, theirs = nn.Linear(3, 2), nn.Linear(3, 2)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        a.grad = torch.randn(a.shape) * 3
        b.grad = a.grad.clone()
    before = float(torch.nn.utils.get_total_norm(gradients_of(ours)))
    found = clip(TrainSettings(clip_value=0.5, clip_norm=0.7), list(ours.parameters()))
    nn.utils.clip_grad_value_(theirs.parameters(), 0.5)
    nn.utils.clip_grad_norm_(theirs.parameters(), 0.7)
    assert found == pytest.approx(before)
    for a, b in zip(gradients_of(ours), gradients_of(theirs), strict=True):
        assert torch.allclose(a, b)


def test_no_clipping_leaves_gradients_alone() -> None:
    network = nn.Linear(3, 2)
    for p in network.parameters():
        p.grad = torch.full_like(p, 100.0)
    clip(TrainSettings(clip_norm=None), list(network.parameters()))
    assert all(bool((g == 100.0).all()) for g in gradients_of(network))


def test_the_triggered_average_is_the_plain_mean_since_its_start() -> None:
    network = nn.Linear(1, 1, bias=False)
    average = Average(TrainSettings(average="triggered"), network)
    average.update()
    assert not average.active
    seen = []
    for step, value in enumerate([100.0, 1.0, 2.0, 6.0]):
        network.weight.data.fill_(value)
        if step == 1:
            average.start()
        elif step > 1:
            average.update()
        seen.append(value)
    with average.applied():
        assert network.weight.item() == pytest.approx(3.0)  # of 1, 2 and 6
    assert network.weight.item() == 6.0


def test_the_moving_average_converges_and_lags() -> None:
    network = nn.Linear(1, 1, bias=False)
    network.weight.data.fill_(0.0)
    average = Average(TrainSettings(average="ema", average_decay=0.9), network)
    network.weight.data.fill_(1.0)
    values = []
    for _ in range(80):
        average.update()
        with average.applied():
            values.append(network.weight.item())
    assert values == sorted(values)
    assert values[0] < 0.9
    assert values[-1] == pytest.approx(1.0, abs=1e-3)


def test_an_average_goes_back_even_when_the_evaluation_fails() -> None:
    network = nn.Linear(1, 1, bias=False)
    average = Average(TrainSettings(average="ema"), network)
    network.weight.data.fill_(5.0)
    with pytest.raises(RuntimeError), average.applied():
        raise RuntimeError
    assert network.weight.item() == 5.0


def test_the_kept_model_has_the_averaged_weights(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    task = ToyTask()
    trainer = train(task, tmp_path, steps=7, lr=0.3, optimizer="sgd", average="ema", evaluate_every=100)
    kept = load_file(tmp_path / "model.safetensors")["weight"]
    assert not torch.equal(kept, task.network.weight)
    with trainer.average.applied():
        assert torch.equal(kept, task.network.weight)
