"""A linear-chain conditional random field: tags that are scored as a whole sequence, not one by one."""

import copy
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from elman import kernels
from elman.chain import IMPOSSIBLE, NEVER, NO_PATH, Chain, Numbers, best_sequences
from elman.nn.fast.autograd import by_autograd


class Forbidden(NamedTuple):
    """What no tag sequence may do; True is forbidden."""

    start: Tensor  # K: the tags that cannot come first
    transitions: Tensor  # K x K: from the tag of the row to the tag of the column
    end: Tensor  # K: the tags that cannot come last


def forbidden_transitions(tags: Sequence[str]) -> Forbidden:
    """What the scheme of these tags, BIO or BIOES, rules out; tags of no such scheme may follow each other freely.

    The scheme is BIOES where a tag begins with E or S. A list that is not whole in its scheme (an `I-x` without
    its `B-x`, as in IOB1) forbids nothing, so that no tag is out of reach.

    >>> forbidden = forbidden_transitions(["O", "B-x", "I-x"])
    >>> forbidden.start.tolist(), forbidden.transitions[0].tolist(), forbidden.end.tolist()
    ([False, False, True], [False, False, True], [False, False, False])
    >>> forbidden_transitions(["NOUN", "VERB"]).transitions.any().item()
    False
    """
    spans = [_span(tag) for tag in tags]
    kinds = {letter: {kind for own, kind in spans if own == letter} for letter, _ in spans}
    begun = kinds.get("B", set())
    closed = "E" in kinds or "S" in kinds  # a span has to be ended by its own tag: BIOES
    whole = kinds.get("I", set()) <= begun and (not closed or kinds.get("E", set()) == begun)
    if not (whole and kinds.keys() <= set("BIOES")):
        spans = [("O", "")] * len(tags)

    def breaks(before: tuple[str, str], after: tuple[str, str]) -> bool:
        inside = before[1] if before[0] in "BI" else None
        goes_on = after[1] if after[0] in "IE" else None
        return inside != goes_on and (closed or goes_on is not None)

    outside = ("O", "")
    return Forbidden(
        start=torch.tensor([breaks(outside, tag) for tag in spans]),
        transitions=torch.tensor([[breaks(before, after) for after in spans] for before in spans]),
        end=torch.tensor([breaks(tag, outside) for tag in spans]),
    )


def _span(tag: str) -> tuple[str, str]:
    """A tag's letter and the kind of its span: B and x of B-x."""
    letter, _, kind = tag.partition("-")
    return letter, kind


class CRF(nn.Module):
    """p(y | x) of a tag sequence y_1 .. y_T, given a score for each tag at each step (Lafferty et al., 2001).

        s(x, y) = a(y_1) + Σ_t e_t(y_t) + Σ_t A(y_t, y_t+1) + b(y_T)
        log p(y | x) = s(x, y) - log Σ_y' exp s(x, y')

    e are the emissions, the output of a network; a (start), A (transitions) and b (end) are learned here. `tags`
    is K, how many tags there are. What `forbidden` rules out has probability 0, in training and afterwards.

    Every method takes emissions B x T x K and the lengths B of the sequences; what is behind a sequence's end is
    ignored in the input and 0 in the output.

    >>> crf = CRF(3, forbidden_transitions(["O", "B-x", "I-x"]))
    >>> emissions = torch.tensor([[[1.0, 0.0, 9.0], [0.0, 1.0, 9.0]]])
    >>> crf.best_paths(emissions, torch.tensor([2]))[0]
    tensor([[1, 2]])
    """

    def __init__(self, tags: int, forbidden: Forbidden | None = None) -> None:
        super().__init__()
        self.tags = tags
        free = Forbidden(torch.zeros(tags), torch.zeros(tags, tags), torch.zeros(tags))
        for name, mask, like in zip(Forbidden._fields, forbidden or free, free, strict=True):
            if mask.shape != like.shape:
                raise ValueError(f"forbidden.{name} must be {list(like.shape)}, got {list(mask.shape)}")
            self.register_buffer(f"forbidden_{name}", mask.bool().clone())
        self.start = nn.Parameter(torch.zeros(tags))
        self.transitions = nn.Parameter(torch.zeros(tags, tags))
        self.end = nn.Parameter(torch.zeros(tags))

    @classmethod
    def mean(cls, several: Sequence["CRF"]) -> "CRF":
        """One that forbids what the first does, and whose own scores are the mean of those of all."""
        found = copy.deepcopy(several[0])
        with torch.no_grad():
            for name, scores in found.named_parameters():
                scores.copy_(torch.stack([crf.get_parameter(name) for crf in several]).mean(dim=0))
        return found

    def forward(self, emissions: Tensor, tags: Tensor, lengths: Tensor) -> Tensor:
        """The log-likelihood of each tag sequence (tags B x T).

        >>> CRF(2)(torch.zeros(1, 3, 2), torch.tensor([[0, 1, 1]]), torch.tensor([3])).exp()
        tensor([0.1250], grad_fn=<ExpBackward0>)
        """
        return self.score(emissions, tags, lengths) - self.partition(emissions, lengths)

    def score(self, emissions: Tensor, tags: Tensor, lengths: Tensor) -> Tensor:
        """s(x, y): the score of each tag sequence, B; a sequence that is forbidden is an error."""
        emissions, inside = self._masked(emissions, lengths)
        start, transitions, end = self._scores()
        tags = tags.masked_fill(~inside, 0)
        emitted = emissions.gather(2, tags.unsqueeze(2)).squeeze(2)  # B x T, 0 behind the end
        moves = (tags[:, :-1] * self.tags + tags[:, 1:]).flatten()
        moved = transitions.flatten().index_select(0, moves).view(len(tags), -1)  # B x T-1
        moved = moved.masked_fill(~inside[:, 1:], 0)
        last = tags.gather(1, (lengths - 1).unsqueeze(1)).squeeze(1)  # B
        score = start[tags[:, 0]] + emitted.sum(1) + moved.sum(1) + end[last]
        return _possible(score, "the tags given for sequence {} take a step that is forbidden")

    def partition(self, emissions: Tensor, lengths: Tensor) -> Tensor:
        """log Σ_y exp s(x, y): over all tag sequences, B; by the forward algorithm."""
        emissions, _ = self._masked(emissions, lengths)
        total = cast(Tensor, _Partition.apply(emissions, *self._scores(), lengths))  # type: ignore[no-untyped-call]
        return _possible(total, NO_PATH)

    @torch.no_grad()
    def marginals(self, emissions: Tensor, lengths: Tensor) -> Tensor:
        """p(y_t = k | x) of every tag at every step, B x T x K; by the forward-backward algorithm.

        >>> CRF(2).marginals(torch.zeros(1, 2, 2), torch.tensor([1]))
        tensor([[[0.5000, 0.5000],
                 [0.0000, 0.0000]]])
        """
        emissions, _ = self._masked(emissions, lengths)
        start, transitions, end = self._scores()
        alphas = _forward(emissions, start, transitions)
        total = _ending(alphas, end, lengths).logsumexp(dim=1)
        _possible(total, NO_PATH)
        return _backward(alphas, transitions, end, lengths, torch.ones_like(total))[0]

    @torch.no_grad()
    def best_paths(self, emissions: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The best tag sequence (B x T) and its score (B); by the Viterbi algorithm."""
        emissions, inside = self._masked(emissions, lengths)
        if not kernels.available() or emissions.dtype != torch.float32:
            paths, scores = _viterbi(emissions.numpy(force=True), *self.chain(), lengths.numpy(force=True))
            best = _possible(torch.from_numpy(scores), NO_PATH)
            return torch.from_numpy(paths).to(emissions.device) * inside, best.to(emissions.device)
        rows, scores = best_sequences(emissions[inside].numpy(force=True), lengths.numpy(force=True), self.chain())
        tags = torch.zeros_like(inside, dtype=torch.int64)
        tags[inside] = torch.from_numpy(rows).to(tags.device)
        return tags, torch.from_numpy(scores).to(emissions.device)

    @torch.no_grad()
    def chain(self) -> Chain:
        """The scores of start, transitions and end as NumPy has them, what is forbidden very low."""
        return Chain(*(part.numpy(force=True) for part in self._scores()))

    @torch.no_grad()
    def n_best_paths(self, emissions: Tensor, lengths: Tensor, n: int) -> tuple[Tensor, Tensor]:
        """The n best tag sequences (B x n x T), best first, and their scores (B x n).

        Where there are fewer than n, the score of the missing ones is -inf and their tags are 0.

        >>> paths, scores = CRF(2).n_best_paths(torch.tensor([[[0.0, 1.0], [3.0, 0.0]]]), torch.tensor([2]), 3)
        >>> paths[0].tolist(), scores[0].tolist()
        ([[1, 0], [0, 0], [1, 1]], [4.0, 3.0, 1.0])
        """
        if n < 1:
            raise ValueError(f"n must be 1 or more, got {n}")
        emissions, inside = self._masked(emissions, lengths)
        paths, scores = _n_best(emissions, *self._scores(), lengths, n)
        _possible(scores[:, 0], NO_PATH)
        missing = scores < IMPOSSIBLE  # B x n
        return paths * inside.unsqueeze(1) * ~missing.unsqueeze(2), scores.masked_fill(missing, -torch.inf)

    def _scores(self) -> tuple[Tensor, Tensor, Tensor]:
        """Start K, transitions K x K and end K, with what is forbidden at `NEVER`."""
        parts = ((getattr(self, name), getattr(self, f"forbidden_{name}")) for name in Forbidden._fields)
        start, transitions, end = (part.masked_fill(mask, NEVER) for part, mask in parts)
        return start, transitions, end

    def _masked(self, emissions: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The emissions with 0 behind the end of each sequence, and what is inside them (B x T)."""
        if emissions.dim() != 3 or emissions.size(2) != self.tags:
            raise ValueError(f"expected emissions B x T x {self.tags}, got {list(emissions.shape)}")
        batch, steps, _ = emissions.shape
        if lengths.shape != (batch,) or bool(((lengths < 1) | (lengths > steps)).any()):
            raise ValueError(f"expected {batch} lengths from 1 to {steps}, got {lengths.tolist()}")
        inside = torch.arange(steps, device=emissions.device) < lengths.unsqueeze(1)
        return emissions.masked_fill(~inside.unsqueeze(2), 0), inside

    def extra_repr(self) -> str:
        forbidden = sum(int(getattr(self, f"forbidden_{name}").sum()) for name in Forbidden._fields)
        return f"tags={self.tags}, forbidden={forbidden}"


def _possible(scores: Tensor, message: str) -> Tensor:
    """The scores; ValueError where one of them is that of a forbidden sequence."""
    impossible = scores.detach() < IMPOSSIBLE
    if impossible.any():
        raise ValueError(message.format(int(impossible.nonzero()[0])))
    return scores


class _Partition(torch.autograd.Function):
    """log Σ_y exp s(x, y); its gradient is the expected count of each tag and of each transition.

    By hand, because autograd would keep B x K x K numbers of every step.
    """

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, start: Tensor, transitions: Tensor, end: Tensor, lengths: Tensor
    ) -> Tensor:
        alphas = _forward(emissions, start, transitions)
        ctx.save_for_backward(emissions, start, transitions, end, lengths, alphas)
        return _ending(alphas, end, lengths).logsumexp(dim=1)

    @staticmethod
    def backward(ctx: Any, weight: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, lengths, alphas = ctx.saved_tensors
        if torch.is_grad_enabled():
            equation = partial(_log_partition, lengths=lengths)
            return *by_autograd(equation, tuple(inputs), ctx.needs_input_grad[:4], weight), None
        _, _, transitions, end = inputs
        tags, pairs = _backward(alphas, transitions, end, lengths, weight)
        ends = tags[torch.arange(len(lengths), device=lengths.device), lengths - 1]  # B x K
        return tags, tags[:, 0].sum(0), pairs, ends.sum(0), None


def _log_partition(emissions: Tensor, start: Tensor, transitions: Tensor, end: Tensor, lengths: Tensor) -> Tensor:
    return _ending(_forward(emissions, start, transitions), end, lengths).logsumexp(dim=1)


def _forward(emissions: Tensor, start: Tensor, transitions: Tensor) -> Tensor:
    """α_t(k) = e_t(k) + log Σ_j exp(α_t-1(j) + A(j, k)): over all beginnings that end in k; T x B x K."""
    into = transitions.T.contiguous()  # to x from: the sum runs over neighbours in memory
    first, *rest = emissions.unbind(1)
    alphas = [start + first]
    for emitted in rest:
        alphas.append(emitted + (alphas[-1].unsqueeze(1) + into).logsumexp(dim=2))
    return torch.stack(alphas)


def _ending(alphas: Tensor, end: Tensor, lengths: Tensor) -> Tensor:
    """The scores with which each sequence ends in each tag, B x K."""
    return alphas[lengths - 1, torch.arange(len(lengths), device=lengths.device)] + end


def _backward(
    alphas: Tensor, transitions: Tensor, end: Tensor, lengths: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor]:
    """Expected counts of the tags (B x T x K) and of the transitions (K x K, of all sequences), times `weight`.

    From the last step to the first: p(y_t = j | x) = Σ_k p(y_t = j | y_t+1 = k, x) p(y_t+1 = k | x), where the
    first factor is a softmax of what the forward algorithm summed.
    """
    into = transitions.T.contiguous()
    pairs = torch.zeros_like(into)  # to x from
    final = _ending(alphas, end, lengths).softmax(dim=1) * weight.unsqueeze(1)  # B x K
    ends = lengths.unsqueeze(1) - 1  # B x 1
    here = torch.where(ends == len(alphas) - 1, final, 0)
    tags = [here]
    for step in range(len(alphas) - 2, -1, -1):
        both = (alphas[step].unsqueeze(1) + into).softmax(dim=2) * here.unsqueeze(2)  # B x to x from
        pairs = pairs + both.sum(0)  # not in place: there may be many gradients at once
        here = torch.where(ends == step, final, both.sum(1))
        tags.append(here)
    return torch.stack(tags[::-1], dim=1), pairs.T


def _viterbi(
    emissions: Numbers, start: Numbers, transitions: Numbers, end: Numbers, lengths: Numbers
) -> tuple[Numbers, Numbers]:
    """The best path of each sequence (B x T, its last tag repeated behind its end) and its score (B).

    In NumPy, whose calls cost less than PyTorch's for one short sentence. In the forward pass only the maximum is
    kept; which tag it came from is computed on the path back, of one column in place of all.
    """
    best = emissions.transpose(1, 2, 0).copy()  # T x K x B
    best[0] += start[:, None]
    for before, here in pairwise(best):
        here += np.maximum.reduce(before[:, None] + transitions[:, :, None], axis=0)  # over from x to x B
    ending = best[lengths - 1, :, np.arange(len(lengths))] + end  # B x K
    tag = ending.argmax(axis=1)
    paths = np.empty((len(best), len(lengths)), dtype=np.int64)  # T x B
    paths[-1] = tag
    for step in range(len(best) - 1, 0, -1):
        came_from = (best[step - 1] + transitions.take(tag, axis=1)).argmax(axis=0)
        tag = np.where(step < lengths, came_from, tag)
        paths[step - 1] = tag
    return paths.T.copy(), ending.max(axis=1)


def _n_best(
    emissions: Tensor, start: Tensor, transitions: Tensor, end: Tensor, lengths: Tensor, n: int
) -> tuple[Tensor, Tensor]:
    """The n best paths (B x n x T) and scores (B x n): Viterbi that keeps n beginnings for each tag.

    A beginning is known by one number, its tag times n plus its rank.
    """
    into = transitions.T.unsqueeze(2)  # to x from x 1
    first, *rest = emissions.unbind(1)
    best = torch.full((*first.shape, n), NEVER, dtype=first.dtype, device=first.device)  # B x K x n
    best[:, :, 0] = start + first
    bests, pointers = [best], []
    for emitted in rest:
        best, came_from = (best.unsqueeze(1) + into).flatten(2).topk(n, dim=2)  # B x K x n
        best = best + emitted.unsqueeze(2)
        bests.append(best)
        pointers.append(came_from.flatten(1))  # B x K*n
    ending = _ending(torch.stack(bests), end.unsqueeze(1), lengths)  # B x K x n
    scores, beginning = ending.flatten(1).topk(n, dim=1)  # B x n
    paths = [beginning // n]
    for step in range(len(pointers), 0, -1):
        inside = step < lengths.unsqueeze(1)  # B x 1
        beginning = torch.where(inside, pointers[step - 1].gather(1, beginning), beginning)
        paths.append(beginning // n)
    return torch.stack(paths[::-1], dim=2), scores
