"""Cells as one matrix over [h; x], as textbooks write them, and back.

    h' = f(W [h; x] + b)                                 the simple recurrent network, W of H x (H + I)
    (i; f; o; g) = (σ; σ; σ; tanh)(W [h; x] + b)          the LSTM, W of 4H x (H + I): 4D x 2D where I = H = D

PyTorch has a matrix for x and one for h, a bias for each, and the gates in another order.
"""

from typing import Any, overload

import torch
from torch import Tensor

from elman.nn.cells import ElmanCell, LSTMCell


def to_one_matrix(cell: ElmanCell | LSTMCell) -> tuple[Tensor, Tensor]:
    """The weights of a cell as one matrix W over [h; x], and one bias b; an LSTM's gates stand in the order i f o g.

    >>> cell = LSTMCell(input_size=5, hidden_size=5)
    >>> W, b = to_one_matrix(cell)
    >>> W.shape, b.shape
    (torch.Size([20, 10]), torch.Size([20]))
    >>> h, c, x = torch.randn(3, 2, 5)
    >>> i, f, o, g = (torch.cat((h, x), dim=1) @ W.T + b).chunk(4, dim=1)
    >>> c_next = f.sigmoid() * c + i.sigmoid() * g.tanh()
    >>> torch.allclose(cell(x, (h, c))[0], o.sigmoid() * c_next.tanh(), atol=1e-6)
    True
    """
    if type(cell) not in (ElmanCell, LSTMCell) or (isinstance(cell, LSTMCell) and cell.proj_size):
        raise ValueError(f"an ElmanCell, or an LSTMCell without projection, is one matrix; got {cell!r}")
    W = torch.cat((cell.weight_hh, cell.weight_ih), dim=1)  # G*H x H + I
    b = W.new_zeros(len(W))
    if cell.bias_ih is not None and cell.bias_hh is not None:
        b = cell.bias_ih + cell.bias_hh
    return (W, b) if isinstance(cell, ElmanCell) else (_exchanged(W), _exchanged(b))


@overload
def from_one_matrix(W: Tensor, b: Tensor | None = None) -> LSTMCell: ...


@overload
def from_one_matrix(W: Tensor, b: Tensor | None = None, *, nonlinearity: str) -> ElmanCell: ...


def from_one_matrix(W: Tensor, b: Tensor | None = None, *, nonlinearity: str | None = None) -> ElmanCell | LSTMCell:
    """The cell of one matrix W over [h; x] and a bias b: with a `nonlinearity` an `ElmanCell`, else an `LSTMCell`.

    >>> cell = from_one_matrix(torch.randn(8, 5))  # H = 2, I = 3
    >>> cell, torch.equal(from_one_matrix(*to_one_matrix(cell)).weight_hh, cell.weight_hh)
    (LSTMCell(3, 2), True)
    """
    blocks = LSTMCell.blocks if nonlinearity is None else ElmanCell.blocks
    hidden, rest = divmod(len(W), blocks)
    if W.dim() != 2 or rest or W.shape[1] <= hidden or (b is not None and b.shape != W.shape[:1]):
        raise ValueError(f"W should be {blocks}H x (H + I) and b {blocks}H, got {tuple(W.shape)}")
    options: dict[str, Any] = {"dtype": W.dtype, "device": W.device}
    size = W.shape[1] - hidden
    cell: ElmanCell | LSTMCell
    if nonlinearity is None:
        cell = LSTMCell(size, hidden, **options)
        W, b = _exchanged(W), None if b is None else _exchanged(b)
    else:
        cell = ElmanCell(size, hidden, nonlinearity=nonlinearity, **options)
    with torch.no_grad():
        cell.weight_hh.copy_(W[:, :hidden])
        cell.weight_ih.copy_(W[:, hidden:])
        for bias in (cell.bias_ih, cell.bias_hh):
            assert bias is not None
            bias.zero_()
        if b is not None and cell.bias_ih is not None:
            cell.bias_ih.copy_(b)
    return cell


def _exchanged(rows: Tensor) -> Tensor:
    """The rows of four gates, the last two in the other order: i f g o to i f o g, and back."""
    i, f, third, fourth = rows.chunk(4)
    return torch.cat((i, f, fourth, third))
