"""Optimizers by name, learning rates over a run, gradient clipping, and averages of the weights."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from elman.errors import UserError
from elman.nn.depth import layer_groups
from elman.train.recipe import TrainSettings

SCALE = "scale"
"""What the rate of a group of parameters is multiplied by, where each layer has its own."""


class Optimizer(Protocol):
    """What changes the weights: one of PyTorch's, or several as one."""

    @property
    def param_groups(self) -> list[dict[str, Any]]: ...

    def zero_grad(self, set_to_none: bool = True) -> None: ...

    def step(self) -> Any: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class Optimizers:
    """Two optimizers as one: that of the dense gradients, and that of the sparse ones.

    >>> table, layer = nn.Embedding(5, 2, sparse=True), nn.Linear(2, 1)
    >>> both = Optimizers(torch.optim.Adam(layer.parameters()), torch.optim.SparseAdam(table.parameters()))
    >>> layer(table(torch.tensor([3]))).sum().backward()
    >>> both.step()
    >>> len(both.param_groups), len(both.state_dict()["each"])
    (2, 2)
    """

    def __init__(self, dense: torch.optim.Optimizer, sparse: torch.optim.Optimizer) -> None:
        self.each = (dense, sparse)

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """Those of both."""
        return [group for optimizer in self.each for group in optimizer.param_groups]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients."""
        for optimizer in self.each:
            optimizer.zero_grad(set_to_none)

    def step(self) -> None:
        """One update of all weights."""
        # They make sparse tensors of gradients that are known to be right; PyTorch warns unless it is told so.
        with torch.sparse.check_sparse_tensor_invariants(enable=False):  # type: ignore[no-untyped-call]
            for optimizer in self.each:
                optimizer.step()

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on exactly."""
        return {"each": [optimizer.state_dict() for optimizer in self.each]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        for optimizer, saved in zip(self.each, state["each"], strict=True):
            optimizer.load_state_dict(saved)


def make_optimizer(settings: TrainSettings, network: nn.Module) -> Optimizer:
    """The optimizer a recipe names. Biases and other vectors are not decayed.

    With `train.layer_factor` what lies lower learns more slowly (discriminative fine-tuning, Howard and Ruder 2018).
    Embeddings whose gradients are sparse have an optimizer of their own, which changes only the rows that a batch has
    read: Adam's moments of the others wait until they are read again (`torch.optim.SparseAdam`).
    """
    layers = [[p for p in network.parameters() if p.requires_grad]]
    if settings.layer_factor != 1:
        layers = layer_groups(network)
    tables = [table for table in network.modules() if isinstance(table, nn.Embedding) and table.sparse]
    sparse = {table.weight for table in tables}
    dense_groups, sparse_groups = list[dict[str, Any]](), list[dict[str, Any]]()
    for depth, parameters in enumerate(reversed(layers)):
        scale = {} if settings.layer_factor == 1 else {SCALE: settings.layer_factor**-depth}
        dense = [p for p in parameters if p not in sparse]
        dense_groups += [{**group, **scale} for group in _groups(dense, settings)]
        if len(dense) < len(parameters):
            sparse_groups.append({"params": [p for p in parameters if p in sparse], **scale})
    if not sparse_groups:
        return _dense_optimizer(settings, dense_groups)
    if settings.weight_decay or settings.momentum:
        key = "weight_decay" if settings.weight_decay else "momentum"
        raise UserError(f"train.{key} changes every row of an embedding: leave it out, or model.sparse")
    return Optimizers(_dense_optimizer(settings, dense_groups), _sparse_optimizer(settings, sparse_groups))


def _sparse_optimizer(settings: TrainSettings, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
    match settings.optimizer:
        case "sgd":
            return torch.optim.SGD(groups, lr=settings.lr)
        case "adagrad":
            return torch.optim.Adagrad(groups, lr=settings.lr)
        case _:  # without weight decay Adam and AdamW are the same
            return torch.optim.SparseAdam(groups, lr=settings.lr, betas=settings.betas)


def _dense_optimizer(settings: TrainSettings, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
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


def set_rate(optimizer: Optimizer, rate: float) -> None:
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


def gradients_of(parameters: list[nn.Parameter]) -> list[Tensor]:
    """The gradients that there are, to be changed in place; of a sparse one the rows that it has.

    >>> table = nn.Embedding(5, 2, sparse=True)
    >>> table(torch.tensor([3, 3])).sum().backward()
    >>> gradients_of([table.weight])[0].tolist()
    [[2.0, 2.0]]
    """
    found = []
    for parameter in parameters:
        if parameter.grad is not None and parameter.grad.is_sparse:
            parameter.grad = parameter.grad.coalesce()  # a row that was read twice is in it once
            found.append(parameter.grad._values())
        elif parameter.grad is not None:
            found.append(parameter.grad)
    return found


def clip(settings: TrainSettings, parameters: list[nn.Parameter]) -> float:
    """Clip the gradients as the recipe says; returns their norm before clipping."""
    gradients = gradients_of(parameters)
    if not gradients:
        return 0.0
    norm = torch.nn.utils.get_total_norm(gradients)
    if settings.clip_value is not None:
        torch._foreach_clamp_min_(gradients, -settings.clip_value)
        torch._foreach_clamp_max_(gradients, settings.clip_value)
    if settings.clip_norm is not None:
        # Clipping by value may have shortened the gradient already: the norm that counts is today's.
        current = norm if settings.clip_value is None else torch.nn.utils.get_total_norm(gradients)
        torch._foreach_mul_(gradients, torch.clamp(settings.clip_norm / (current + 1e-6), max=1.0))
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
