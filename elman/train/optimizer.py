"""Optimizers by name, learning rates over a run, gradient clipping, and averages of the weights."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from elman.errors import UserError
from elman.train.recipe import TrainSettings


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

    Embeddings whose gradients are sparse have one of their own, which changes only the rows that a batch has read:
    Adam's moments of the others wait until they are read again (`torch.optim.SparseAdam`).
    """
    tables = [table for table in network.modules() if isinstance(table, nn.Embedding) and table.sparse]
    sparse = list(dict.fromkeys(table.weight for table in tables if table.weight.requires_grad))
    if not sparse:
        return _dense_optimizer(settings, [p for p in network.parameters() if p.requires_grad])
    if settings.weight_decay or settings.momentum:
        key = "weight_decay" if settings.weight_decay else "momentum"
        raise UserError(f"train.{key} changes every row of an embedding: leave it out, or model.sparse")
    others = [p for p in network.parameters() if p.requires_grad and all(p is not table for table in sparse)]
    return Optimizers(_dense_optimizer(settings, others), _sparse_optimizer(settings, sparse))


def _sparse_optimizer(settings: TrainSettings, tables: list[Tensor]) -> torch.optim.Optimizer:
    match settings.optimizer:
        case "sgd":
            return torch.optim.SGD(tables, lr=settings.lr)
        case "adagrad":
            return torch.optim.Adagrad(tables, lr=settings.lr)
        case _:  # without weight decay Adam and AdamW are the same
            return torch.optim.SparseAdam(tables, lr=settings.lr, betas=settings.betas)


def _dense_optimizer(settings: TrainSettings, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
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
