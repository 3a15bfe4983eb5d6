"""Optimizers by name, learning rates over a run, gradient clipping, and averages of the weights."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from elman.train.recipe import TrainSettings


def make_optimizer(settings: TrainSettings, network: nn.Module) -> torch.optim.Optimizer:
    """The optimizer a recipe names. Biases and other vectors are not decayed."""
    parameters = [p for p in network.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    match settings.optimizer:
        case "sgd":
            return torch.optim.SGD(groups, lr=settings.lr, momentum=settings.momentum, fused=True)
        case "adam":
            return torch.optim.Adam(groups, lr=settings.lr, betas=settings.betas, fused=True)
        case "adamw":
            return torch.optim.AdamW(groups, lr=settings.lr, betas=settings.betas, fused=True)
        case "adagrad":
            return torch.optim.Adagrad(groups, lr=settings.lr)


def learning_rate(settings: TrainSettings, step: int, fraction: float, plateaus: int = 0) -> float:
    """The rate for update number `step` (from 0), when `fraction` of the whole run is done.

    `plateaus` counts the evaluations that brought no improvement; only the plateau schedule looks at it.

    >>> settings = TrainSettings(lr=1.0, schedule="cosine", warmup=10)
    >>> [round(learning_rate(settings, step, step / 100), 2) for step in (0, 4, 9, 50, 100)]
    [0.1, 0.5, 0.98, 0.5, 0.0]
    """
    warm = min(1.0, (step + 1) / settings.warmup) if settings.warmup else 1.0
    fraction, end = min(max(fraction, 0.0), 1.0), settings.final_lr
    match settings.schedule:
        case "constant":
            shape = 1.0
        case "linear":
            shape = 1.0 + (end - 1.0) * fraction
        case "cosine":
            shape = end + (1.0 - end) * 0.5 * (1.0 + math.cos(math.pi * fraction))
        case "exponential":
            shape = max(end, 1e-3) ** fraction
        case "plateau":
            shape = settings.plateau_factor**plateaus
    return settings.lr * warm * shape


def clip(settings: TrainSettings, parameters: list[nn.Parameter]) -> float:
    """Clip the gradients as the recipe says; returns their norm before clipping."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = torch.nn.utils.get_total_norm(gradients)
    if settings.clip_value is not None:
        torch.nn.utils.clip_grad_value_(parameters, settings.clip_value)
    if settings.clip_norm is not None:
        # Clipping by value may have shortened the gradient already: the norm that counts is today's.
        current = norm if settings.clip_value is None else torch.nn.utils.get_total_norm(gradients)
        torch.nn.utils.clip_grads_with_norm_(parameters, settings.clip_norm, current)
    return float(norm)


class Average:
    """A second copy of the weights that moves more calmly, and is the one evaluated and kept.

    `ema`: an exponential moving average, from the first update on. `triggered`: the plain mean of all weights since
    the held-out loss last stopped improving (NT-ASGD; Merity, Keskar, Socher 2017), which `start` begins.
    """

    def __init__(self, settings: TrainSettings, network: nn.Module) -> None:
        self.kind, self.decay = settings.average, settings.average_decay
        self.parameters = [p for p in network.parameters() if p.requires_grad]
        self.weights: list[Tensor] = []
        self.updates = 0
        if self.kind == "ema":
            self.start()

    @property
    def active(self) -> bool:
        """Whether averaging has begun."""
        return bool(self.weights)

    def start(self) -> None:
        """Begin a new average at the weights of this moment."""
        self.weights, self.updates = [p.detach().clone() for p in self.parameters], 1

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights that an update of the optimizer just made."""
        if not self.weights:
            return
        self.updates += 1
        # Early on a moving average would still be full of the random start: it forgets faster then.
        share = 1.0 / self.updates
        if self.kind == "ema":
            share = max(1.0 - self.decay, share if self.updates < 10 else 9.0 / (self.updates + 9.0))
        torch._foreach_lerp_(self.weights, [p.detach() for p in self.parameters], share)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """While inside, the network has the averaged weights."""
        if not self.weights:
            yield
            return
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        # Exchanging storage keeps the optimizer's and the module's references valid and copies nothing.
        for index, parameter in enumerate(self.parameters):
            parameter.data, self.weights[index] = self.weights[index], parameter.data

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on exactly."""
        return {"weights": list(self.weights), "updates": self.updates}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved average."""
        self.weights, self.updates = [w.clone() for w in state["weights"]], state["updates"]
