"""One vector for a sequence: from the last state of a recurrent layer, or from its outputs at all steps.

The outputs come packed and are reduced as they lie, so that padding is neither made nor computed on.
"""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from elman.nn.recurrent import Recurrent
from elman.nn.steps import Hidden, as_state, sequence_of_rows
from elman.nn.towers import Towers


class Pooling(nn.Module):
    """From the packed outputs and the final state of a `Recurrent` to B x `output_size`, in the caller's order.

    >>> from torch.nn.utils.rnn import pack_sequence
    >>> body = Recurrent("gru", 3, 5, bidirectional=True)
    >>> pool = POOLINGS["mean"](body)
    >>> pool(*body(pack_sequence([torch.zeros(4, 3), torch.zeros(2, 3)]))).shape, pool.output_size
    (torch.Size([2, 10]), 10)
    """

    def __init__(self, body: Recurrent | Towers) -> None:
        super().__init__()
        self.output_size = body.output_size

    def forward(self, output: PackedSequence, state: Hidden) -> Tensor:
        raise NotImplementedError


class LastPooling(Pooling):
    """The final hidden state of the last layer, its directions merged as the layers merge theirs.

        s = [→h_T; ←h_1]    or their mean

    with →h of the direction that reads from the first step to the last, ←h of the other.
    """

    def __init__(self, body: Recurrent | Towers) -> None:
        super().__init__(body)
        self.directions, self.merge = body.directions, body.merge

    def forward(self, output: PackedSequence, state: Hidden) -> Tensor:
        h = as_state(state)[0]  # L*D x B x H
        last = h[-self.directions :]  # D x B x H
        return last.mean(dim=0) if self.merge == "mean" else last.transpose(0, 1).flatten(1)  # B x D*H


class MeanPooling(Pooling):
    """The mean of the outputs over the steps: s = 1/T Σ_t h_t."""

    def forward(self, output: PackedSequence, state: Hidden) -> Tensor:
        sequence = sequence_of_rows(output)
        lengths = torch.bincount(sequence)  # B
        return _sums(output.data, sequence, output) / lengths.unsqueeze(1)


class MaxPooling(Pooling):
    """The maximum of each output over the steps: s_k = max_t h_t,k."""

    def forward(self, output: PackedSequence, state: Hidden) -> Tensor:
        return _maxima(output.data, sequence_of_rows(output), output)


class AttentionPooling(Pooling):
    """The mean of the outputs, weighted by a learned query (Yang et al., 2016).

        u_t = tanh(W h_t + b),  α = softmax over t of v·u_t,  s = Σ_t α_t h_t

    >>> from torch.nn.utils.rnn import pack_sequence
    >>> body = Recurrent("gru", 3, 5)
    >>> pool = AttentionPooling(body)
    >>> output, state = body(pack_sequence([torch.randn(4, 3), torch.randn(1, 3)]))
    >>> weights, _ = torch.nn.utils.rnn.pad_packed_sequence(pool.weights(output), batch_first=True)
    >>> weights.shape, weights[1].tolist()
    (torch.Size([2, 4]), [1.0, 0.0, 0.0, 0.0])
    """

    def __init__(self, body: Recurrent | Towers) -> None:
        super().__init__(body)
        self.W = nn.Linear(body.output_size, body.output_size)
        self.v = nn.Linear(body.output_size, 1, bias=False)

    def forward(self, output: PackedSequence, state: Hidden) -> Tensor:
        weighted = output.data * self.weights(output).data.unsqueeze(1)  # N x H
        return _sums(weighted, sequence_of_rows(output), output)

    def weights(self, output: PackedSequence) -> PackedSequence:
        """α of every step, packed as the outputs are: they sum to 1 for each sequence."""
        scores = self.v(torch.tanh(self.W(output.data)))  # N x 1
        sequence = sequence_of_rows(output)
        highest = _maxima(scores.detach(), sequence, output)  # B x 1; taken off so that exp cannot overflow
        exps = torch.exp(scores - highest[sequence])
        alphas = (exps / _sums(exps, sequence, output)[sequence]).squeeze(1)  # N
        return PackedSequence(alphas, output.batch_sizes, output.sorted_indices, output.unsorted_indices)


class LastMaxMeanPooling(Pooling):
    """The final state, the maxima and the mean side by side, as in ULMFiT (Howard and Ruder, 2018).

        s = [h_T; max_t h_t; 1/T Σ_t h_t]

    >>> from torch.nn.utils.rnn import pack_sequence
    >>> body = Recurrent("gru", 3, 5)
    >>> pool = LastMaxMeanPooling(body)
    >>> pool(*body(pack_sequence([torch.zeros(4, 3)]))).shape, pool.output_size
    (torch.Size([1, 15]), 15)
    """

    def __init__(self, body: Recurrent | Towers) -> None:
        super().__init__(body)
        self.parts = nn.ModuleList([LastPooling(body), MaxPooling(body), MeanPooling(body)])
        self.output_size = sum(part.output_size for part in self.parts)  # type: ignore[misc]

    def forward(self, output: PackedSequence, state: Hidden) -> Tensor:
        return torch.cat([part(output, state) for part in self.parts], dim=1)


POOLINGS: dict[str, type[Pooling]] = {
    "last": LastPooling,
    "mean": MeanPooling,
    "max": MaxPooling,
    "attention": AttentionPooling,
    "last-max-mean": LastMaxMeanPooling,
}
"""Every pooling by its name."""


def sum_over_steps(packed: PackedSequence) -> Tensor:
    """The sum of each sequence's rows, in the caller's order (B x H)."""
    return _sums(packed.data, sequence_of_rows(packed), packed)


def _sums(data: Tensor, sequence: Tensor, packed: PackedSequence) -> Tensor:
    """The sum of each sequence's rows, B x H."""
    return data.new_zeros(int(packed.batch_sizes[0]), data.size(1)).index_add(0, sequence, data)


def _maxima(data: Tensor, sequence: Tensor, packed: PackedSequence) -> Tensor:
    """The maximum of each sequence's rows, B x H."""
    empty = data.new_zeros(int(packed.batch_sizes[0]), data.size(1))
    return empty.scatter_reduce(0, sequence.unsqueeze(1).expand_as(data), data, "amax", include_self=False)
