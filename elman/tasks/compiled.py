"""What classifiers, taggers and translators have in common: a compiled runtime beside the network, weights in int8.

`predict` goes through the runtime wherever it runs the network, PyTorch does the rest; both agree up to rounding.
"""

import copy
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, Self, TypeVar

from torch import Tensor, nn

from elman.errors import UserError
from elman.nn.recurrent import Recurrent
from elman.runtime import dequantise, encoder_refusal, quantise
from elman.runtime.quantise import Arrays, tensors
from elman.tasks import folder as folders

R = TypeVar("R")


class _Made(NamedTuple, Generic[R]):
    """A runtime, and the weights that it was made of: to walk through all layers takes as long as some answers."""

    parameters: list[nn.Parameter]
    versions: list[tuple[int, int]]
    runtime: R | None


def _versions(parameters: list[nn.Parameter]) -> list[tuple[int, int]]:
    return [(parameter._version, parameter.data_ptr()) for parameter in parameters]


class CompiledModel(Generic[R]):
    """A model whose network can be compiled to an R."""

    network: nn.Module
    int8: Arrays | None = None
    """The weights as integers, for a model that was exported so."""
    exact: Sequence[str] = ()
    """Matrices that are never rounded."""
    _made: "_Made[R] | None" = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_made": None}  # a copy packs its own weights

    def _bodies(self) -> list[Recurrent]:
        raise NotImplementedError

    def _compile(self) -> R:
        raise NotImplementedError

    def refusal(self) -> str | None:
        """Why the compiled runtime does not run this model, so that PyTorch does; None if it does."""
        if next(self.network.parameters()).device.type != "cpu":
            return "its network is not on the CPU"
        return next((reason for body in self._bodies() if (reason := encoder_refusal(body)) is not None), None)

    def runtime(self) -> R:
        """The compiled network with the weights as they are now."""
        found = self._runtime()
        if found is None:
            raise UserError(f"the compiled runtime does not run this model: {self.refusal()}")
        return found

    def _runtime(self) -> R | None:
        """The same; None where PyTorch has to do it."""
        made = self._made
        if made is None or made.versions != _versions(made.parameters):
            parameters = list(self.network.parameters())
            runtime = self._compile() if self.refusal() is None else None
            made = self._made = _Made(parameters, _versions(parameters), runtime)
        return made.runtime

    def to_int8(self) -> Self:
        """The same model with its matrices rounded to 8 bits: a quarter of the size, and quicker to answer."""
        if self.int8 is not None:
            return self
        twin = copy.copy(self)
        twin.int8, twin._made = quantise(folders.weights_of(self.network), keep=self.exact), None
        twin.network = copy.deepcopy(self.network)
        folders.fill(twin.network, dequantise(twin.int8), "the model")
        return twin

    def _kept_weights(self) -> dict[str, Tensor]:
        """What a folder holds."""
        return folders.weights_of(self.network) if self.int8 is None else tensors(self.int8)

    @property
    def parameters(self) -> int:
        """How many numbers the network consists of."""
        return sum(parameter.numel() for parameter in self.network.parameters())
