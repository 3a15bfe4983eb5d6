"""A task small enough to know the answer of: learn a linear map, with a batch order and noise that can be resumed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from safetensors.torch import save_file
from torch import Tensor, nn

from elman.train.loop import Trainer, seed_everything
from elman.train.progress import Reporter
from elman.train.recipe import TrainSettings
from elman.train.task import Loss


@dataclass
class Points:
    """A batch that knows its name."""

    x: Tensor  # B x 3
    place: str

    def __str__(self) -> str:
        return self.place


class ToyBatches:
    """Batches from a fixed set of points, ten an epoch."""

    def __init__(self, size: int = 4) -> None:
        self.size, self.count = size, 0

    @property
    def progress(self) -> float:
        return self.count / 10

    def __next__(self) -> Points:
        generator = torch.Generator().manual_seed(self.count)
        self.count += 1
        return Points(torch.randn(self.size, 3, generator=generator), f"number {self.count}")

    def state_dict(self) -> dict[str, Any]:
        return {"count": self.count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.count = state["count"]


class ToyTask:
    """y = A x, squared error; `dev_losses` are what its evaluations are to say."""

    unit = "points"

    def __init__(self, dev_losses: list[float] | None = None, size: int = 4) -> None:
        torch.manual_seed(0)
        self.network: nn.Module = nn.Linear(3, 2)
        self.target = torch.tensor([[1.0, -2.0, 0.5], [0.0, 1.0, 3.0]])  # 2 x 3
        self.seen, self.size = 0, size
        self.dev_losses = iter(dev_losses) if dev_losses is not None else None

    def batches(self) -> ToyBatches:
        return ToyBatches(self.size)

    def loss(self, batch: Points, state: Any) -> Loss:
        self.seen += 1
        return Loss(((self.network(batch.x) - batch.x @ self.target.t()) ** 2).mean(), len(batch.x))

    def evaluate(self) -> dict[str, float]:
        if self.dev_losses is not None:
            return {"loss": next(self.dev_losses)}
        return {"loss": float(((self.network.weight - self.target) ** 2).mean().detach())}

    def save(self, folder: Path) -> None:
        save_file({k: v.contiguous() for k, v in self.network.state_dict().items()}, folder / "model.safetensors")


def quiet() -> Reporter:
    """A reporter that shows nothing."""
    return Reporter(Console(quiet=True))


def train(task: Any, folder: Path, resume: bool = False, **settings: Any) -> Trainer:
    """Run a task with some settings; returns the trainer afterwards."""
    chosen = TrainSettings(**{"log_every": 1, "seed": 3, **settings})
    seed_everything(chosen.seed)
    trainer = Trainer(task, chosen, folder, quiet())
    trainer.run(resume)
    return trainer
