"""Optimizers by name, learning rates over a run, gradient clipping, and averages of the weights."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from elman.nn.depth import layer_groups
from elman.train.recipe import TrainSettings

SCALE = "scale"
"""What the rate of a group of parameters is multiplied by, where each layer has its own."""


def make_optimizer(settings: TrainSettings, network: nn.Module) -> torch.optim.Optimizer:
    """The optimizer a recipe names. Biases and other vectors are not decayed."""
    if settings.layer_factor == 1:
        groups = _groups([p for p in network.parameters() if p.requires_grad], settings)
    else:  # discriminative fine-tuning (Howard and Ruder 2018): what lies lower learns more slowly
        groups = []
        for depth, parameters in enumerate(reversed(layer_groups(network))):
            scale = settings.layer_factor**-depth
            groups += [{**group, SCALE: scale} for group in _groups(parameters, settings)]
    match settings.optimizer:
        case "sgd":
            return torch.optim.SGD(groups, lr=settings.lr, momentum=settings.momentum, fused=True)
        case "adam":
            return torch.optim.Adam(groups, lr=settings.lr, betas=settings.betas, fused=True)
        case "adamw":
            return torch.optim.AdamW(groups, lr=settings.lr, betas=settings.betas, fused=True)
        case "adagrad":
            return torch.optim.Adagrad(groups, lr=settings.lr)


def _groups(parameters: list[nn.Parameter], settings: TrainSettings) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """The rate of the topmost layer, and with `train.layer_factor` those of the layers below it."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get(SCALE, 1.0)


class Unfreezing:
    """Gradual unfreezing (Howard and Ruder 2018): at first the topmost layer learns alone, then one more at a time.

    What does not learn yet is left as it is, by weight decay too. How many learn follows from the epochs that are
    done, so there is nothing to save.

    >>> network = nn.Sequential(nn.Embedding(3, 2), nn.Linear(2, 2))
    >>> unfreezing = Unfreezing(TrainSettings(unfreeze=1), network)
    >>> unfreezing.at(0.5), network[0].weight.requires_grad, network[1].weight.requires_grad
    (1, False, True)
    >>> unfreezing.at(1.0), network[0].weight.requires_grad
    (2, True)
    """

    def __init__(self, settings: TrainSettings, network: nn.Module) -> None:
        self.every = settings.unfreeze
        self.groups = layer_groups(network) if self.every else []

    def at(self, epochs: float) -> int:
        """Let those layers learn that may, `epochs` after the beginning; how many they are, 0 where all always do."""
        if not self.every:
            return 0
        # Batches do not divide an epoch evenly: without the rounding a layer could wait one update longer.
        learning = min(len(self.groups), 1 + int(round(epochs / self.every, 9)))
        for place, group in enumerate(self.groups):
            for parameter in group:
                parameter.requires_grad_(place >= len(self.groups) - learning)
        return learning


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
        case "slanted":  # Howard and Ruder 2018
            cut, ratio = settings.slanted_cut, settings.slanted_ratio
            p = fraction / cut if fraction < cut else 1.0 - (fraction - cut) / (1.0 - cut)
            shape = (1.0 + p * (ratio - 1.0)) / ratio
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
