"""Initialisations other than PyTorch's: of recurrent weights, for cells, layers and `Recurrent` alike, or of all.

`orthogonal_`, `identity_` and `forget_bias_` change recurrent weights alone. `gaussian_` and `uniform_` draw every
weight of what they are given anew: called with a network they cover embeddings and outputs too.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from elman.nn.cells import Cell, LSTMCell
from elman.nn.embedding import clear_padding

FIRST_STATE = "initial"
"""What `Recurrent` calls the learned state before the first step, which begins as zeros however weights are drawn."""


def _owners(module: nn.Module) -> Iterator[Cell | nn.RNNBase]:
    """The modules in `module` that have recurrent weights, itself among them."""
    return (part for part in module.modules() if isinstance(part, Cell | nn.RNNBase))


def _weights(owner: Cell | nn.RNNBase, prefix: str) -> list[Tensor]:
    return [p for name, p in owner.named_parameters(recurse=False) if name.startswith(prefix)]


@torch.no_grad()
def orthogonal_(module: nn.Module) -> None:
    """Make each gate's recurrent matrix orthogonal (Saxe et al., 2014): it neither shrinks nor stretches.

    >>> from elman.nn import GRU
    >>> layer = GRU(3, 5)
    >>> orthogonal_(layer)
    >>> W = layer.weight_hh_l0[:5]
    >>> torch.allclose(W @ W.T, torch.eye(5), atol=1e-5)
    True
    """
    for owner in _owners(module):
        for weight in _weights(owner, "weight_hh"):
            for block in torch.split(weight, owner.hidden_size):
                nn.init.orthogonal_(block)


@torch.no_grad()
def identity_(module: nn.Module) -> None:
    """Begin each recurrent matrix as the identity and each bias as zero (IRNN; Le et al., 2015); for ReLU.

    >>> from elman.nn import RNN
    >>> layer = RNN(3, 5, nonlinearity="relu")
    >>> identity_(layer)
    >>> torch.equal(layer.weight_hh_l0, torch.eye(5))
    True
    """
    for owner in _owners(module):
        for weight in _weights(owner, "weight_hh"):
            for block in torch.split(weight, owner.hidden_size):
                nn.init.eye_(block)
        for bias in _weights(owner, "bias"):
            bias.zero_()


@torch.no_grad()
def forget_bias_(module: nn.Module, value: float = 1.0) -> None:
    """Set the bias of every LSTM's forget gate (Gers et al., 2000), so that it remembers from the start.

    Of PyTorch's two biases the input's takes the value and the other one is zero.

    >>> from elman.nn import LSTM
    >>> layer = LSTM(3, 2)
    >>> forget_bias_(layer, 1.0)
    >>> layer.bias_ih_l0[2:4].tolist(), layer.bias_hh_l0[2:4].tolist()
    ([1.0, 1.0], [0.0, 0.0])
    """
    for owner in _owners(module):
        if not isinstance(owner, LSTMCell | nn.LSTM):
            continue
        forget = slice(owner.hidden_size, 2 * owner.hidden_size)
        for bias in _weights(owner, "bias_ih"):
            bias[forget] = value
        for bias in _weights(owner, "bias_hh"):
            bias[forget] = 0


@torch.no_grad()
def gaussian_(module: nn.Module, std: float = 0.01) -> None:
    """Draw every matrix from N(0, std²) and make every bias zero, as the minimal character model does (Karpathy, 2015).

    >>> layer = nn.Linear(100, 100)
    >>> gaussian_(layer)
    >>> bool(layer.weight.std() < 0.011), layer.bias.abs().sum().item()
    (True, 0.0)
    """
    for weight in _all_weights(module):
        nn.init.normal_(weight, std=std) if weight.dim() > 1 else weight.zero_()
    clear_padding(module)


@torch.no_grad()
def uniform_(module: nn.Module, bound: float = 0.1) -> None:
    """Draw every weight from uniform(-bound, bound), biases too (0.1: the smallest model of Zaremba et al., 2014).

    >>> layer = nn.Linear(100, 100)
    >>> uniform_(layer, 0.5)
    >>> bool(layer.weight.abs().max() <= 0.5), bool(layer.weight.abs().max() > 0.4)
    (True, True)
    """
    for weight in _all_weights(module):
        nn.init.uniform_(weight, -bound, bound)
    clear_padding(module)


def _all_weights(module: nn.Module) -> Iterator[Tensor]:
    return (p for name, p in module.named_parameters() if FIRST_STATE not in name.split("."))


INITIALISATIONS = {
    "uniform": None,
    "orthogonal": orthogonal_,
    "identity": identity_,
    "gaussian": gaussian_,
    "uniform-0.1": uniform_,
}
"""By name; "uniform" leaves what PyTorch drew."""
OF_ALL_WEIGHTS = ("gaussian", "uniform-0.1")
"""Those that draw every weight of what they are given, not recurrent weights alone."""


def initialise(module: nn.Module, how: str = "uniform", *, forget_bias: float | None = None) -> None:
    """Initialise the weights in `module` by name, then the forget gates of its LSTMs where a bias is given.

    >>> from elman.nn import Recurrent
    >>> initialise(Recurrent("lstm", 3, 5), "orthogonal", forget_bias=1.0)
    """
    if how not in INITIALISATIONS:
        raise ValueError(f"unknown initialisation {how!r}, known are: {', '.join(INITIALISATIONS)}")
    change = INITIALISATIONS[how]
    if change is not None:
        change(module)
    if forget_bias is not None:
        forget_bias_(module, forget_bias)
