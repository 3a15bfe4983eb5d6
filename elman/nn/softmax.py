"""The distribution over the next word, three ways with one interface.

`loss` is the mean negative log-likelihood of the targets, `target_log_probs` that of each target with its
sign turned, `log_probs` the whole distribution. With a vocabulary of tens of thousands the logits of a batch
are far larger than anything else in the model, so none of the losses ever holds N x V of them at once.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.dlpack import to_dlpack  # type: ignore[attr-defined]

from elman import kernels
from elman.nn.fast.autograd import can_call
from elman.nn.fast.compiled import scratch

CHUNK_ELEMENTS = 2**24
"""How many logits are held at once where no chunk size is given: 64 megabytes in single precision."""


class LossGradients(NamedTuple):
    """The gradients of a mean loss, made together with the loss."""

    hidden: Tensor
    weight: Tensor
    bias: Tensor | None


class _Known(torch.autograd.Function):
    """A loss whose gradients are already there: backward only scales them."""

    @staticmethod
    def forward(
        ctx: Any, loss: Tensor, known: LossGradients, hidden: Tensor, weight: Tensor, bias: Tensor | None
    ) -> Tensor:
        ctx.save_for_backward(*known)
        ctx.has_bias = bias is not None
        return loss

    @staticmethod
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError("this loss is differentiated once: for second derivatives take that of `log_probs`")
        hidden, weight, bias = ctx.saved_tensors
        if scale.item() == 1:  # as in training: a copy of the weights' gradient would be the largest of an update
            return None, None, hidden, weight, bias if ctx.has_bias else None
        return None, None, hidden * scale, weight * scale, bias * scale if ctx.has_bias else None


class ChunkedSoftmax(nn.Module):
    """The softmax over all V words, its loss computed chunk by chunk, gradients and all.

        p(w | h) = exp(W_w h + b_w) / Σ_v exp(W_v h + b_v)

    `chunk` is how many rows of `hidden` are taken at once (None: as many as keep the logits small). `tied` is
    the V x H matrix of the embedding, where the two are to be one. While training, `smoothing` is the share of
    the probability that the loss spreads over all words in place of the target (Szegedy et al., 2016).

    >>> softmax = ChunkedSoftmax(hidden_size=5, vocab_size=11)
    >>> hidden, targets = torch.randn(4, 5), torch.tensor([0, 3, 10, 3])
    >>> full = torch.nn.functional.cross_entropy(softmax.log_probs(hidden), targets)
    >>> torch.allclose(softmax.loss(hidden, targets), full)
    True
    """

    def __init__(
        self,
        hidden_size: int,
        vocab_size: int,
        *,
        chunk: int | None = None,
        tied: nn.Parameter | None = None,
        bias: bool = True,
        smoothing: float = 0.0,
    ) -> None:
        super().__init__()
        if hidden_size < 1 or vocab_size < 1:
            raise ValueError(f"hidden_size and vocab_size must be at least 1, got {hidden_size} and {vocab_size}")
        if not 0 <= smoothing < 1:
            raise ValueError(f"smoothing must be at least 0 and less than 1, got {smoothing}")
        self.smoothing = smoothing
        if tied is not None and tuple(tied.shape) != (vocab_size, hidden_size):
            shape = tuple(tied.shape)
            raise ValueError(f"a tied weight must be V x H = {vocab_size} x {hidden_size}, got {shape}")
        if chunk is not None and chunk < 1:
            raise ValueError(f"chunk must be at least 1, got {chunk}")
        self.hidden_size, self.vocab_size = hidden_size, vocab_size
        self.chunk = chunk or max(1, CHUNK_ELEMENTS // vocab_size)
        if tied is None:
            bound = 1 / math.sqrt(hidden_size)
            tied = nn.Parameter(torch.empty(vocab_size, hidden_size).uniform_(-bound, bound))
        self.weight = tied
        self.bias = nn.Parameter(torch.zeros(vocab_size)) if bias else None

    def logits(self, hidden: Tensor) -> Tensor:
        """W h + b: N x V."""
        return functional.linear(hidden, self.weight, self.bias)

    def log_probs(self, hidden: Tensor) -> Tensor:
        """log p of every word: N x V."""
        return self.logits(hidden).log_softmax(dim=-1)

    def target_log_probs(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """log p of each target: N. Meant for no_grad: with gradients on, autograd keeps all the logits."""
        _check(hidden, targets, self.hidden_size)
        parts = _chunks(hidden, targets, self.chunk)
        if not torch.is_grad_enabled() and can_call(hidden, self.weight):
            return -torch.cat([_losses(h, self.weight, self.bias, t)[0] for _, h, t in parts])
        return torch.cat([self.log_probs(h).gather(1, t.unsqueeze(1)).squeeze(1) for _, h, t in parts])

    def loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """The mean negative log-likelihood of the targets (N) after the hidden states (N x H)."""
        smoothing = self.smoothing if self.training else 0.0
        if not torch.is_grad_enabled() and not smoothing:
            return -self.target_log_probs(hidden, targets).sum() / max(1, len(targets))
        _check(hidden, targets, self.hidden_size)
        with torch.no_grad():
            loss, known = _full(hidden, self.weight, self.bias, targets, self.chunk, smoothing)
        return _known(loss, known, hidden, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{self.hidden_size}, {self.vocab_size}, chunk={self.chunk}, bias={self.bias is not None}"


class SampledSoftmax(ChunkedSoftmax):
    """While training, the sum over the vocabulary is estimated from about `samples` words.

        Z(h) = exp(o_t) + Σ_{j in sample, j ≠ t} exp(o_j - log π_j),   loss = log Z(h) - o_t

    o = W h + b are the logits, t the target, π_j the chance of word j to be in the sample: proportional to
    its frequency to the `power`, at most 1, and `samples` in sum. Each word is drawn on its own, so the
    expected value of Z is the full softmax's, and equal to it once `samples` reaches the vocabulary
    (importance sampling: Bengio and Senécal, 2008; one sample for a batch: Jean et al., 2015). The targets of
    a batch are always in its sample: a rare word that its text is about is likely there, and log Z is too small
    on the whole where a likely word is seldom drawn. Evaluation uses the full softmax.

    >>> counts = torch.tensor([50.0, 20.0, 10.0, 5.0, 2.0, 1.0])
    >>> softmax = SampledSoftmax(hidden_size=4, vocab_size=6, samples=6, frequencies=counts)
    >>> hidden, targets = torch.randn(3, 4), torch.tensor([0, 5, 2])
    >>> sampled = softmax.loss(hidden, targets)
    >>> torch.allclose(sampled, softmax.eval().loss(hidden, targets))
    True
    """

    inclusion: Tensor

    def __init__(
        self,
        hidden_size: int,
        vocab_size: int,
        *,
        samples: int,
        frequencies: Tensor,
        power: float = 1.0,
        chunk: int | None = None,
        tied: nn.Parameter | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__(hidden_size, vocab_size, chunk=chunk, tied=tied, bias=bias)
        if samples < 1:
            raise ValueError(f"samples must be at least 1, got {samples}")
        if tuple(frequencies.shape) != (vocab_size,):
            raise ValueError(f"frequencies must be {vocab_size} counts, got {tuple(frequencies.shape)}")
        self.samples = samples
        self.register_buffer("inclusion", inclusion_probabilities(frequencies, power, samples))

    def loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """The mean negative log-likelihood of the targets; an estimate while training, exact in eval mode."""
        if not self.training:
            return super().loss(hidden, targets)
        _check(hidden, targets, self.hidden_size)
        inclusion = self.inclusion.index_fill(0, targets, 1.0)  # V
        drawn = torch.rand_like(inclusion) < inclusion
        with torch.no_grad():
            bias = self.bias if self.bias is not None else self.weight.new_zeros(self.vocab_size)
            sample = _Sample.of(drawn.nonzero().squeeze(1), inclusion, self.weight, bias, targets)
            loss, known = _sampled(hidden, self.weight, bias, targets, sample)
        return _known(loss, known, hidden, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, samples={self.samples}"


class AdaptiveSoftmax(nn.Module):
    """Frequent words in a short list, rare ones in clusters of ever smaller size (Grave et al., 2017).

        p(w | h) = head(w | h)                          for a word w of the short list
        p(w | h) = head(C | h) tail_C(w | P_C h)        for a word w of the cluster C

    head is a softmax over the short list and the clusters, tail_C one over the words of a cluster, P_C a projection to
    a smaller size.

    Ids must go from the most frequent word to the rarest. `cutoffs` are the first ids of the clusters; where
    none are given, the short list is a tenth of the vocabulary and the first cluster ends at a third.

    >>> softmax = AdaptiveSoftmax(hidden_size=16, vocab_size=100)
    >>> softmax.cutoffs
    [10, 33]
    >>> torch.allclose(softmax.log_probs(torch.randn(1, 16)).exp().sum(), torch.tensor(1.0))
    True
    """

    def __init__(
        self, hidden_size: int, vocab_size: int, *, cutoffs: Sequence[int] | None = None, bias: bool = True
    ) -> None:
        super().__init__()
        if vocab_size < 2:
            raise ValueError(f"an adaptive softmax needs at least 2 words, got {vocab_size}")
        self.hidden_size, self.vocab_size = hidden_size, vocab_size
        self.cutoffs = list(cutoffs) if cutoffs is not None else _cutoffs(hidden_size, vocab_size)
        self.clusters = nn.AdaptiveLogSoftmaxWithLoss(hidden_size, vocab_size, self.cutoffs, head_bias=bias)

    def log_probs(self, hidden: Tensor) -> Tensor:
        """log p of every word: N x V."""
        return self.clusters.log_prob(hidden)

    def target_log_probs(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """log p of each target: N."""
        _check(hidden, targets, self.hidden_size)
        log_probs: Tensor = self.clusters(hidden, targets).output
        return log_probs

    def loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """The mean negative log-likelihood of the targets (N) after the hidden states (N x H)."""
        return -self.target_log_probs(hidden, targets).mean()


def inclusion_probabilities(frequencies: Tensor, power: float, samples: int) -> Tensor:
    """The chance of each word to be drawn: proportional to frequency**power, at most 1, `samples` in sum.

    A word that was never counted is taken as seen once, so that every word can be drawn.

    >>> inclusion_probabilities(torch.tensor([100, 4, 4, 4]), power=1.0, samples=2).tolist()
    [1.0, 0.3333333432674408, 0.3333333432674408, 0.3333333432674408]
    """
    mass = frequencies.double().clamp(min=1) ** power
    certain = torch.zeros_like(mass, dtype=torch.bool)
    chance = mass
    for _ in range(len(mass)):  # a word held at 1 leaves more for the others, which may lift the next one to 1
        left = samples - int(certain.sum())
        if left <= 0 or bool(certain.all()):
            break
        chance = mass * left / mass[~certain].sum()
        lifted = (chance >= 1) & ~certain
        if not bool(lifted.any()):
            break
        certain |= lifted
    return torch.where(certain, torch.ones_like(chance), chance).float()


class _Sample(NamedTuple):
    """The words drawn for a batch, with their weights gathered once."""

    ids: Tensor  # S
    weight: Tensor  # S x H
    bias: Tensor  # S, less log π
    hit_rows: Tensor
    """The rows whose target is itself in the sample, ..."""
    hit_columns: Tensor
    """... and where in the sample it stands."""

    @classmethod
    def of(cls, ids: Tensor, inclusion: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> "_Sample":
        place = torch.full((len(inclusion),), -1, device=ids.device)  # V
        place[ids] = torch.arange(len(ids), device=ids.device)
        column = place[targets]  # N
        rows = (column >= 0).nonzero().squeeze(1)
        offset = bias.index_select(0, ids) - inclusion.index_select(0, ids).log().to(bias.dtype)
        return cls(ids, weight.index_select(0, ids), offset, rows, column[rows])


def _full(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, chunk: int, smoothing: float
) -> tuple[Tensor, LossGradients]:
    """The mean loss of the full softmax and its gradients; the logits of one chunk exist at a time."""
    known = LossGradients(
        torch.empty_like(hidden), torch.empty_like(weight), None if bias is None else torch.zeros_like(bias)
    )
    total, scale = hidden.new_zeros(()), 1 / max(1, len(hidden))
    for start, h, t in _chunks(hidden, targets, chunk):
        losses, g = _losses(h, weight, bias, t, smoothing)  # g: chunk x V
        total += losses.sum()
        known.hidden[start : start + len(h)] = g @ weight
        known.weight.addmm_(g.t(), h, beta=1 if start else 0, alpha=scale)
        if known.bias is not None:
            known.bias.add_(g.sum(dim=0), alpha=scale)
    known.hidden.mul_(scale)
    return total * scale, known


def _chunks(hidden: Tensor, targets: Tensor, most: int) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Rows and their targets in equal parts of at most so many (one at least), each with its first row's number."""
    start, count = 0, max(1, -(-len(hidden) // most))
    for h, t in zip(hidden.tensor_split(count), targets.tensor_split(count), strict=True):
        yield start, h, t
        start += len(h)


def _losses(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """The loss of each target (N), and its gradient of the logits (N x V, until the next call)."""
    if can_call(hidden, weight):
        g = scratch(hidden, "logits", len(hidden), len(weight))
        if bias is None:
            torch.mm(hidden, weight.t(), out=g)
        else:
            torch.addmm(bias, hidden, weight.t(), out=g)
        losses = hidden.new_empty(len(hidden))
        threads = kernels.threads_for(g.numel())
        kernels.native.cross_entropy(*map(to_dlpack, (g, targets.long().contiguous(), losses)), smoothing, threads)
        return losses, g
    log_p = functional.linear(hidden, weight, bias).log_softmax(dim=-1)
    even, t = smoothing / len(weight), targets.unsqueeze(1)  # N x 1
    losses = (smoothing - 1) * log_p.gather(1, t).squeeze(1)
    if smoothing:
        losses -= even * log_p.sum(dim=1)
    g = log_p.exp_().sub_(even)
    return losses, g.scatter_add_(1, t, torch.full_like(t, smoothing - 1, dtype=g.dtype))


def _sampled(
    hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, sample: _Sample
) -> tuple[Tensor, LossGradients]:
    """The mean sampled loss and its gradients; only the rows of the sample and of the targets are touched."""
    scale = 1 / max(1, len(hidden))
    target_weight = weight.index_select(0, targets)  # N x H
    own = (hidden * target_weight).sum(dim=1, keepdim=True) + bias[targets].unsqueeze(1)  # N x 1
    others = torch.addmm(sample.bias, hidden, sample.weight.t())  # N x S
    others[sample.hit_rows, sample.hit_columns] = -math.inf
    top = torch.maximum(own, others.amax(dim=1, keepdim=True)) if len(sample.ids) else own
    g = others.sub_(top).exp_()
    Z = g.sum(dim=1, keepdim=True) + (own - top).exp()  # N x 1
    loss = (Z.log() + top - own).sum() * scale

    g.mul_(scale / Z)  # d loss / d others
    own_g = ((own - top).exp() / Z - 1) * scale  # N x 1, d loss / d own
    d_weight, d_bias = torch.zeros_like(weight), torch.zeros_like(bias)
    d_weight.index_copy_(0, sample.ids, g.t() @ hidden).index_add_(0, targets, own_g * hidden)
    d_bias.index_copy_(0, sample.ids, g.sum(dim=0)).index_add_(0, targets, own_g.squeeze(1))
    return loss, LossGradients(g @ sample.weight + own_g * target_weight, d_weight, d_bias)


def _known(loss: Tensor, known: LossGradients, hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    result: Tensor = _Known.apply(loss, known, hidden, weight, bias)  # type: ignore[no-untyped-call]
    return result


def _cutoffs(hidden_size: int, vocab_size: int) -> list[int]:
    """A tenth and a third of the vocabulary; one cluster where the sizes are too small for two."""
    tenth, third = max(1, vocab_size // 10), vocab_size // 3
    return [tenth, third] if tenth < third and hidden_size >= 16 else [tenth]


def _check(hidden: Tensor, targets: Tensor, hidden_size: int) -> None:
    """ValueError where the two are not N x H and N."""
    if hidden.dim() != 2 or hidden.size(1) != hidden_size or tuple(targets.shape) != (len(hidden),):
        shapes = f"{tuple(hidden.shape)} and {tuple(targets.shape)}"
        raise ValueError(f"expected hidden states N x {hidden_size} and N targets, got {shapes}")
