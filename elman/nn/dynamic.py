"""Dynamic evaluation: a network goes on learning from what it has just been scored on."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

EPSILON = 0.1
"""Of the mean size of all gradients: what is seldom seen, as most words are, is not moved too far when it comes."""


class SquaredGradients:
    """The mean over batches of each weight's squared gradient: what tells a small gradient from a large one.

    >>> network = nn.Linear(2, 1, bias=False)
    >>> seen = SquaredGradients(network)
    >>> for x in (3.0, 4.0):
    ...     network.zero_grad()
    ...     network(torch.tensor([x, 0.0])).sum().backward()
    ...     seen.add()
    >>> seen.rms()["weight"]  # the root of (9 + 16) / 2
    tensor([[3.5355, 0.0000]])
    """

    def __init__(self, network: nn.Module) -> None:
        self.network, self.count = network, 0
        self.sums = {name: torch.zeros_like(weight) for name, weight in network.named_parameters()}

    def add(self) -> None:
        """Count the gradients that the network has now."""
        self.count += 1
        for name, weight in self.network.named_parameters():
            if weight.grad is not None:
                gradient = _dense(weight.grad)
                self.sums[name].addcmul_(gradient, gradient)

    def rms(self) -> dict[str, Tensor]:
        """The root of the mean square, for each weight."""
        return {name: (total / max(1, self.count)).sqrt() for name, total in self.sums.items()}


def _dense(gradient: Tensor) -> Tensor:
    """A gradient as it is; that of an embedding with `sparse`, with the rows that were not read."""
    return gradient.to_dense() if gradient.is_sparse else gradient


class DynamicEvaluation:
    """Updates that follow a text (Krause, Kahembwe, Murray and Renals, 2018, with RMS and decay).

        w ← w - η g / (RMS + ε) + λ RMS' (w_0 - w)

    g is the gradient of the loss of the segment that was just read, w_0 the trained weights, RMS the root of the mean
    squared gradient of each weight in training, RMS' = RMS / mean(RMS), with λ RMS' at most 1. η is `rate`, λ `decay`.
    The mean is that over matrices and vectors of their means; ε is a tenth of it.

    >>> network = nn.Linear(1, 1, bias=False)
    >>> _ = network.weight.data.fill_(2.0)
    >>> dynamic = DynamicEvaluation(network, {"weight": torch.tensor([[0.5]])}, rate=0.1, decay=0.0)
    >>> network(torch.tensor([1.0])).sum().backward()
    >>> dynamic.update()
    >>> network.weight.data  # 2 - 0.1 * 1 / (0.5 + 0.05)
    tensor([[1.8182]])
    >>> dynamic.restore()
    >>> network.weight.data
    tensor([[2.]])
    """

    def __init__(self, network: nn.Module, rms: Mapping[str, Tensor], rate: float, decay: float) -> None:
        self.network, self.decay = network, decay
        mean = torch.stack([rms[name].mean() for name, _ in network.named_parameters()]).mean().clamp(min=1e-30)
        self._weights = [weight for _, weight in network.named_parameters()]
        self._trained = [weight.detach().clone() for weight in self._weights]
        self._steps = [rate / (rms[name] + EPSILON * mean) for name, _ in network.named_parameters()]
        self._pulls = [(decay / mean * rms[name]).clamp(max=1.0) for name, _ in network.named_parameters()]

    @torch.no_grad()
    def update(self) -> None:
        """Move the weights by the gradients that they have now, which are gone then."""
        for weight, trained, step, pull in self._parts():
            if self.decay:
                weight.lerp_(trained, pull)
            if weight.grad is not None:
                weight.addcmul_(step, _dense(weight.grad), value=-1)
                weight.grad = None

    @torch.no_grad()
    def restore(self) -> None:
        """Put the trained weights back."""
        for weight, trained, _, _ in self._parts():
            weight.copy_(trained)
            weight.grad = None

    def keep(self) -> None:
        """Take the weights as they are now for the trained ones: what is read from here on starts from them."""
        self._trained = [weight.detach().clone() for weight in self._weights]

    def _parts(self) -> Iterator[tuple[nn.Parameter, Tensor, Tensor, Tensor]]:
        return zip(self._weights, self._trained, self._steps, self._pulls, strict=True)
