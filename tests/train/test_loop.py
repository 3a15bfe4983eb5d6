import os
import platform
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from elman.errors import Interrupted, RunError, UserError
from elman.train import loop as loop_module
from elman.train.checkpoint import load_checkpoint
from elman.train.log import read_log
from elman.train.loop import Trainer, seed_everything
from elman.train.recipe import TrainSettings
from elman.train.task import Loss
from tests.train.toy import Points, ToyTask, quiet, train


@pytest.fixture(autouse=True)
def _no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than all the training here, and has its own test."""
    monkeypatch.setattr(loop_module, "draw_curves", lambda folder: None)


def test_the_best_model_is_kept_not_the_last(tmp_path: Path) -> None:
    kept = []

    class Watched(ToyTask):
        def save(self, folder: Path) -> None:
            super().save(folder)
            kept.append(self.network.weight.detach().clone())

    task = Watched(dev_losses=[3.0, 2.0, 2.5, 1.0, 1.0, 4.0])
    trainer = train(task, tmp_path, steps=6, evaluate_every=1)
    assert [error for error, _ in trainer.evaluations] == [3.0, 2.0, 2.5, 1.0, 1.0, 4.0]
    assert len(kept) == 3  # at 3.0, 2.0 and the first 1.0
    assert torch.equal(load_file(tmp_path / "model.safetensors")["weight"], kept[-1])
    assert not torch.equal(kept[-1], task.network.weight)


def test_where_a_task_counts_its_mistakes_the_model_with_the_fewest_is_kept(tmp_path: Path) -> None:
    errors, kept = [0.3, 0.2, 0.2, 0.1, 0.4], []

    class Mistaken(ToyTask):
        error = 1.0

        def evaluate(self) -> dict[str, float]:
            self.error = errors.pop(0)
            return super().evaluate() | {"error": self.error}

        def save(self, folder: Path) -> None:
            kept.append(self.error)

    trainer = train(Mistaken(dev_losses=[1.0, 2.0, 3.0, 4.0, 5.0]), tmp_path, steps=5, evaluate_every=1)
    assert [error for error, _ in trainer.evaluations] == [0.3, 0.2, 0.2, 0.1, 0.4]
    assert kept == [0.3, 0.2, 0.1]
    assert [record["loss"] for record in read_log(tmp_path / "log.jsonl") if record["kind"] == "dev"] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("patience", [1, 2])
def test_early_stopping(tmp_path: Path, patience: int) -> None:
    trainer = train(ToyTask(dev_losses=[3.0, 2.0, 2.1, 2.2, 1.0]), tmp_path, epochs=5, patience=patience)
    assert [error for error, _ in trainer.evaluations] == [3.0, 2.0, 2.1, 2.2][: 2 + patience]


def test_a_plateau_lowers_the_rate_from_the_next_update_on(tmp_path: Path) -> None:
    losses = [3.0, 2.0, 2.5, 1.0, 1.5]
    train(
        ToyTask(dev_losses=losses),
        tmp_path,
        steps=5,
        evaluate_every=1,
        lr=1.0,
        optimizer="sgd",
        schedule="plateau",
        plateau_factor=0.5,
    )
    rates = [record["lr"] for record in read_log(tmp_path / "log.jsonl") if record["kind"] == "train"]
    assert rates == [1.0, 1.0, 1.0, 0.5, 0.5]


def test_triggered_averaging_begins_when_the_loss_stands_still(tmp_path: Path) -> None:
    active = []

    class Watched(ToyTask):
        def evaluate(self) -> dict[str, float]:
            active.append(trainer.average.active)
            return super().evaluate()

    task = Watched(dev_losses=[3.0, 2.0, 2.5, 2.6, 2.7, 2.8])
    settings = TrainSettings(steps=6, evaluate_every=1, average="triggered", average_patience=2)
    trainer = Trainer(task, settings, tmp_path, quiet())
    trainer.run()
    # 2.7 is the first that is worse than the best of all but the two before it: the fifth evaluation starts it.
    assert active == [False, False, False, False, False, True]


def test_epochs_and_evaluations_are_counted_by_the_data(tmp_path: Path) -> None:
    trainer = train(ToyTask(), tmp_path, epochs=2.5)
    assert trainer.step == 25
    assert len(trainer.evaluations) == 3  # after each epoch, and at the end


class OneSet(ToyTask):
    """Takes its batches one after the other from one set of points."""

    def loss(self, batch: Points, state: Any) -> Loss:
        generator = torch.Generator().manual_seed(0)
        points = torch.randn(12, 3, generator=generator)
        part = points[self.seen * self.size : (self.seen + 1) * self.size]
        return super().loss(Points(part, "a part"), state)


@pytest.mark.parametrize("accumulate", [2, 3, 4])
def test_accumulated_batches_equal_one_large_batch(tmp_path: Path, accumulate: int) -> None:
    weights = []
    for size, count in ((12, 1), (12 // accumulate, accumulate)):
        task = OneSet(size=size)
        train(task, tmp_path / str(size), steps=1, accumulate=count, optimizer="sgd", lr=0.1, clip_norm=None)
        weights.append(task.network.weight.detach().clone())
    assert torch.allclose(*weights, atol=1e-7)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_checkpoint(tmp_path: Path, value: float) -> None:
    class Breaks(ToyTask):
        def loss(self, batch: Any, state: Any) -> Loss:
            loss = super().loss(batch, state)
            return Loss(loss.mean * value, loss.tokens) if self.seen == 8 else loss

    with pytest.raises(RunError, match=rf"step 8: the loss is {value} in batch number 8") as caught:
        train(Breaks(), tmp_path, steps=20, checkpoint_seconds=0, evaluate_every=100)
    assert "train.lr" in str(caught.value)
    assert load_checkpoint(tmp_path / "checkpoint" / "state.safetensors")["step"] == 7
    resumed = train(ToyTask(), tmp_path, resume=True, steps=20, evaluate_every=100)
    assert resumed.step == 20


def test_a_gradient_that_is_no_number_is_refused_before_the_update(tmp_path: Path) -> None:
    class Breaks(ToyTask):
        def loss(self, batch: Any, state: Any) -> Loss:
            weight = self.network.weight
            return Loss((weight - weight.detach()).abs().sum().sqrt() + 1.0, 1)  # finite; its slope is not

    task = Breaks()
    before = task.network.weight.detach().clone()
    with pytest.raises(RunError, match="step 1: the norm of the gradient is nan"):
        train(task, tmp_path, steps=3)
    assert torch.equal(task.network.weight, before)


def test_a_held_out_loss_that_is_no_number_is_refused_before_saving(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="held-out"):
        train(ToyTask(dev_losses=[2.0, float("nan")]), tmp_path, steps=4, evaluate_every=2)
    assert load_checkpoint(tmp_path / "checkpoint" / "state.safetensors")["step"] == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_first_and_the_handlers_are_given_back(tmp_path: Path, number: signal.Signals) -> None:
    class Stopped(ToyTask):
        def loss(self, batch: Any, state: Any) -> Loss:
            if self.seen == 4:
                os.kill(os.getpid(), number)
            return super().loss(batch, state)

    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted, match=r"stopped at step 5, 25% of the run; everything is saved"):
        train(Stopped(), tmp_path, steps=20, checkpoint_seconds=1000, evaluate_every=100)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
    assert train(ToyTask(), tmp_path, resume=True, steps=20, evaluate_every=100).step == 20


def test_a_resumed_log_has_every_step_once(tmp_path: Path) -> None:
    class Fails(ToyTask):
        def loss(self, batch: Any, state: Any) -> Loss:
            if self.seen == 9:
                raise RuntimeError("power cut")
            return super().loss(batch, state)

    with pytest.raises(RuntimeError):
        train(Fails(), tmp_path, steps=12, evaluate_every=4, checkpoint_seconds=1000)
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"kind": "tra')
    train(ToyTask(), tmp_path, resume=True, steps=12, evaluate_every=4)
    steps = [(record["kind"], record["step"]) for record in read_log(tmp_path / "log.jsonl")]
    assert sorted(steps) == [("dev", 4), ("dev", 8), ("dev", 12), *(("train", n) for n in range(1, 13))]


def test_a_checkpoint_of_another_network_is_refused(tmp_path: Path) -> None:
    train(ToyTask(), tmp_path, steps=2)
    other = ToyTask()
    other.network = torch.nn.Linear(5, 5)
    with pytest.raises(UserError, match="does not fit"):
        train(other, tmp_path, resume=True, steps=4)


def test_a_finished_run_resumes_to_itself(tmp_path: Path) -> None:
    train(ToyTask(), tmp_path, steps=5)
    before = (tmp_path / "model.safetensors").read_bytes(), (tmp_path / "log.jsonl").read_bytes()
    assert train(ToyTask(), tmp_path, resume=True, steps=5).step == 5
    assert ((tmp_path / "model.safetensors").read_bytes(), (tmp_path / "log.jsonl").read_bytes()) == before


def test_seeding_reaches_every_generator() -> None:
    import random

    import numpy as np

    drawn = []
    for _ in range(2):
        seed_everything(2**40)
        drawn.append((random.random(), float(np.random.rand()), float(torch.rand(1))))
    assert drawn[0] == drawn[1]


class Scored(ToyTask):
    """Says errors and losses as it is told, and notes which of them were kept."""

    def __init__(self, found: list[tuple[float, float]]) -> None:
        super().__init__()
        self.found, self.kept = list(found), list[tuple[float, float]]()

    def evaluate(self) -> dict[str, float]:
        self.now = self.found.pop(0)
        return {"loss": self.now[1], "error": self.now[0]}

    def save(self, folder: Path) -> None:
        super().save(folder)
        self.kept.append(self.now)


def test_of_equal_errors_the_lower_loss_is_kept(tmp_path: Path) -> None:
    task = Scored([(0.5, 5.0), (0.5, 3.0), (0.5, 4.0), (0.5, 3.0), (0.6, 1.0), (0.5, 2.0)])
    train(task, tmp_path, steps=6, evaluate_every=1)
    assert task.kept == [(0.5, 5.0), (0.5, 3.0), (0.5, 2.0)]


def test_patience_and_plateaus_go_by_the_order_in_which_models_are_kept(tmp_path: Path) -> None:
    found = [(0.5, 5.0), (0.5, 4.0), (0.5, 3.0), (0.5, 3.5), (0.5, 3.0), (0.4, 9.0)]
    trainer = train(Scored(found), tmp_path, steps=6, evaluate_every=1, patience=2)
    assert trainer.evaluations == found[:5]  # the third is the best, and two after it were not better
    assert trainer.plateaus == 2


def test_a_tie_is_known_to_a_run_that_goes_on(tmp_path: Path) -> None:
    found = [(0.5, 5.0), (0.5, 3.0), (0.5, 4.0), (0.5, 2.0)]

    class Fails(Scored):
        def loss(self, batch: Any, state: Any) -> Loss:
            if self.seen == 2:
                raise RuntimeError("power cut")
            return super().loss(batch, state)

    with pytest.raises(RuntimeError):
        train(Fails(found), tmp_path, steps=4, evaluate_every=1)
    task = Scored(found[2:])
    trainer = train(task, tmp_path, resume=True, steps=4, evaluate_every=1)
    assert trainer.evaluations == found
    assert task.kept == [(0.5, 2.0)]


@pytest.mark.parametrize("loss", [float("inf"), float("nan"), 1e28, 710.0])
def test_a_run_whose_held_out_loss_is_out_of_bounds_stops_and_keeps_no_model(tmp_path: Path, loss: float) -> None:
    with pytest.raises(RunError, match=r"the loss is .* in the held-out text; try a lower train.lr"):
        train(Scored([(0.5, loss)]), tmp_path, steps=2, evaluate_every=1)
    assert not (tmp_path / "model.safetensors").exists()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is glibc that is asked to keep memory")
def test_updates_ask_the_system_for_no_fresh_memory() -> None:
    import resource

    def cleared(times: int) -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(times):
            torch.zeros(2**21)  # 8 MB, or 2,048 pages
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    loop_module.keep_freed_memory()
    cleared(3)
    assert cleared(20) < 2 * 2048
