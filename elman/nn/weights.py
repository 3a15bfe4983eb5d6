"""The weights of a layer of `torch.nn` as it computes with them, and the cell that has them."""

from collections.abc import Sequence
from operator import is_

from torch import Tensor, nn

from elman.nn.cells import Cell, ElmanCell, GRUCell, LSTMCell


def weights_of(layer: nn.RNNBase) -> list[list[Tensor]]:
    """For each layer and direction: weight_ih, weight_hh, then the biases and weight_hr where it has them.

    As in PyTorch these are the tensors of `_flat_weights`, but for a layer whose weights have others by now: by a
    parametrization, a hook, or `torch.func.functional_call`.

    >>> layer = nn.GRU(3, 5)
    >>> [tuple(weight.shape) for weight in weights_of(layer)[0]]
    [(15, 3), (15, 5), (15,), (15,)]
    >>> layer._flat_weights[3] = layer.bias_hh_l0 + 1
    >>> weights_of(layer)[0][3] is layer._flat_weights[3]
    True
    """
    flat = [getattr(layer, name) for name in layer._flat_weights_names]
    if not all(map(is_, flat, layer._flat_weights)):
        references = zip(layer._flat_weight_refs, flat, strict=True)
        if all(reference is not None and reference() is weight for reference, weight in references):
            flat = layer._flat_weights
    count = len(flat) // len(layer._all_weights)
    return [flat[place : place + count] for place in range(0, len(flat), count)]


def cell_with(mode: str, hidden_size: int, bias: bool, weights: Sequence[Tensor]) -> Cell:
    """The cell of a layer of a `mode` of `torch.nn` that computes with these weights, in the order of `weights_of`.

    >>> layer = nn.LSTM(3, 5, proj_size=2)
    >>> cell_with(layer.mode, 5, True, *weights_of(layer)).output_size
    2
    """
    names = ("weight_ih", "weight_hh", *(("bias_ih", "bias_hh") if bias else ()), "weight_hr")
    named = dict(zip(names, weights, strict=False))
    sizes = (weights[0].size(1), hidden_size, bias)
    cell: Cell
    # On the meta device the cell's own weights take neither memory nor random numbers.
    if mode == "LSTM":
        cell = LSTMCell(*sizes, proj_size=len(named.get("weight_hr", ())), device="meta")
    elif mode == "GRU":
        cell = GRUCell(*sizes, device="meta")
    else:
        cell = ElmanCell(*sizes, nonlinearity=mode.removeprefix("RNN_").lower(), device="meta")
    return cell.with_weights(**named)
