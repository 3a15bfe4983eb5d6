"""The network of a forecaster: recurrent layers over a window of numbers, and a linear autoregression beside them."""

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import smooth_l1_loss

from elman.nn.inputs import packed_sequence
from elman.nn.pooling import LastPooling
from elman.nn.recurrent import Recurrent
from elman.ragged import Ragged

Floats = NDArray[np.float32]
BATCH = 256  # windows computed on at a time, at most


class ForecastNetwork(nn.Module):
    """Windows of numbers to O outputs each: o = W h_T + b, plus a linear function of the window where there is one.

    The linear part is the autoregressive component of Lai et al. (2018): a recurrent network alone is slow to follow
    the scale of its inputs.

    >>> network = ForecastNetwork(Recurrent("gru", 1, 4), outputs=6, skipped=12, steps=2)
    >>> windows = Ragged.of([np.zeros((12, 1), np.float32)] * 2)
    >>> network(windows, np.zeros((2, 1, 12), np.float32)).shape
    torch.Size([2, 6])
    """

    def __init__(
        self, body: Recurrent, *, outputs: int, skipped: int = 0, steps: int = 0, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.body, self.pooling = body, LastPooling(body)
        self.output = nn.Linear(self.pooling.output_size, outputs)
        self.skip = nn.Linear(skipped, steps, bias=False) if skipped else None
        self.dropout = nn.Dropout(dropout)

    def forward(self, windows: Ragged, channels: Floats) -> Tensor:
        """Windows (N x I); what is forecast of them, a row for each channel (B x C x T): B x O.

        The outputs are C x h for the mean, then C x h for each quantile.
        """
        output = cast(Tensor, self.output(self.dropout(self.pooling(*self.body(packed_sequence(windows))))))  # B x O
        if self.skip is None:
            return output
        linear = self.skip(torch.from_numpy(channels)).flatten(1)  # B x C*h
        return output + cast(Tensor, linear.repeat(1, output.shape[1] // linear.shape[1]))

    def outputs(self, windows: Ragged, channels: Floats) -> Floats:
        """What `forward` gives for any number of windows, to be looked at and not to be trained."""
        with torch.inference_mode():
            groups = np.split(np.arange(len(windows)), range(BATCH, len(windows), BATCH))
            return np.concatenate([self(windows.take(rows), channels[rows]).numpy() for rows in groups])


def forecast_loss(outputs: Tensor, targets: Floats, quantiles: Sequence[float]) -> Tensor:
    """Huber's loss of the mean, plus the pinball loss of each quantile (Koenker and Bassett 1978).

    `outputs` are B x O, as the network has them, `targets` B x h x C.

    >>> float(forecast_loss(torch.tensor([[1.0, 1.0]]), np.array([[[3.0]]], np.float32), [0.5]))
    2.5
    """
    truth = torch.from_numpy(targets)
    table = outputs.view(len(outputs), -1, truth.shape[2], truth.shape[1]).transpose(2, 3)  # B x 1+Q x h x C
    loss = smooth_l1_loss(table[:, 0], truth)
    for place, share in enumerate(quantiles, 1):
        error = truth - table[:, place]
        loss = loss + torch.maximum(share * error, (share - 1) * error).mean()
    return loss
