"""The n-gram language model that a recurrent one has to beat.

Interpolated modified Kneser-Ney smoothing (Chen and Goodman, 1999). For a token w after the context h, with
h' the context without its oldest token, and c the counts of `elman.baselines.ngrams`:

    P(w | h) = (c(h w) - D(c(h w))) / c(h .)  +  gamma(h) P(w | h')
    gamma(h) = sum over w of D(c(h w)) / c(h .)

down to the uniform 1 / V below the empty context. Every order has three discounts D, for counts of 1, of 2,
and of 3 or more. A context never seen in training leaves the probability to the shorter one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from elman.baselines.ngrams import UNSEEN, AnyInts, Ints, MarkedTokens, NgramTable, count_ngrams, find, lay_out
from elman.errors import UserError

Floats = npt.NDArray[np.float64]

BATCH = 1 << 16


def discounts(counts: Ints) -> Floats:
    """The discount D of a count of 0, 1, 2, and 3 or more, from how many n-grams have the counts 1 to 4.

    Chen and Goodman's estimate asks for n-grams of the count and of the next one. Where there are none (few
    characters, tiny texts), or where it is not above 0, half the count stands in: every discount then lies
    between 0 and its count, and unseen tokens always keep some probability.

    >>> discounts(np.array([1] * 10 + [2] * 4 + [3] * 2 + [4])).round(3).tolist()
    [0.0, 0.556, 1.167, 1.889]
    >>> discounts(np.array([90, 120, 70])).tolist()
    [0.0, 0.5, 1.0, 1.5]
    """
    n = np.bincount(np.minimum(counts, 5), minlength=6)
    chosen = np.array([0.0, 0.5, 1.0, 1.5])
    for count in (1, 2, 3):
        if n[1] and n[count] and n[count + 1]:
            estimate = count - (count + 1) * n[1] / (n[1] + 2 * n[2]) * n[count + 1] / n[count]
            if estimate > 0:
                chosen[count] = estimate
    return chosen


@dataclass(frozen=True)
class Order:
    """One order of the model, ready to look up.

    `share` is an n-gram's discounted part, (c - D) / c(h .), by its rank; `backoff` is gamma(h), by the rank
    of h. Both have one entry more, at index -1, for what was never seen: share 0 and backoff 1.
    """

    keys: Ints
    counts: Ints
    share: Floats
    backoff: Floats


def smooth(table: NgramTable, base: int, contexts: int) -> Order:
    """Smooth one order, whose n-grams follow on `contexts` n-grams of the order below."""
    context = table.keys // base
    discount = discounts(table.counts)[np.minimum(table.counts, 3)]
    total = np.bincount(context, weights=table.counts, minlength=contexts)
    held_back = np.bincount(context, weights=discount, minlength=contexts)
    backoff = np.ones(contexts + 1)
    np.divide(held_back, total, out=backoff[:-1], where=total > 0)
    share = np.append((table.counts - discount) / total[context], 0.0)
    return Order(table.keys, table.counts, share, backoff)


class KneserNey:
    """An n-gram language model over token ids; make one with `fit` or `from_state`.

    >>> text = np.frombuffer(b"abracadabra abracadabra", np.uint8)
    >>> model = KneserNey.fit(text, vocab_size=128, order=3)
    >>> chr(model.distribution(list(b"ab")).argmax())
    'r'
    >>> loss = -model.log_probs(text).mean()
    >>> bool(loss < np.log(128))
    True
    """

    def __init__(self, tables: Sequence[NgramTable], vocab_size: int, start: int) -> None:
        self.vocab_size = vocab_size
        self.order = len(tables)
        self.start = start
        self._base = vocab_size + 1
        contexts = [1, *(len(table.keys) for table in tables)]
        self._levels = [smooth(table, self._base, size) for table, size in zip(tables, contexts, strict=False)]

    @classmethod
    def fit(
        cls,
        ids: AnyInts,
        vocab_size: int,
        order: int = 5,
        documents: AnyInts | None = None,
        start_id: int | None = None,
    ) -> "KneserNey":
        """Count the n-grams of `ids`, of every order up to `order`.

        `documents` are start offsets: no n-gram reaches over one, and the context at a document's start is
        `start_id`, usually that of `<eos>`; without it, a mark outside the vocabulary. The stream begins with
        a document in any case.
        """
        if order < 1:
            raise UserError(f"an n-gram model of order {order} does not exist: choose an order of 1 or more")
        start = vocab_size if start_id is None else start_id
        if not 0 <= start <= vocab_size:
            raise UserError(f"start_id {start} is outside the vocabulary of {vocab_size}: choose one of its ids")
        ids = _checked(ids, vocab_size)
        if not len(ids):
            raise UserError("there are no tokens to count n-grams of: give a text with at least one token")
        stream = lay_out(ids, documents, start)
        return cls(count_ngrams(stream, vocab_size + 1, order), vocab_size, start)

    def log_probs(self, ids: AnyInts, documents: AnyInts | None = None) -> Floats:
        """The natural logarithm of every token's probability, given the tokens before it in its document."""
        stream = lay_out(_checked(ids, self.vocab_size), documents, self.start)
        scores = np.empty(len(stream.tokens))
        for begin in range(0, len(scores), BATCH):
            # The first tokens of a batch need the contexts that the batch before it holds.
            lead = min(begin, self.order - 1)
            part = stream.part(begin - lead, begin + BATCH)
            scores[begin : begin + BATCH] = self._probabilities(part)[lead:]
        return np.log(scores[stream.depth > 0])

    def distribution(self, context: Sequence[int]) -> Floats:
        """The probability of every token after `context`, all that came since the document's start.

        >>> model = KneserNey.fit(np.array([0, 1, 0, 1, 2]), vocab_size=4, order=2)
        >>> bool(np.isclose(model.distribution([0]).sum(), 1))
        True
        """
        tail = _checked(np.array(context[-self.order :], np.int64), self.vocab_size)
        marked = np.append(self.start, tail)
        recent = marked[max(0, len(marked) - (self.order - 1)) :]
        ranks = self._ranks(MarkedTokens(recent, np.arange(len(recent))))
        contexts = [0, *(int(rank[-1]) for rank in islice(ranks, self.order - 1))]
        probabilities = np.full(self.vocab_size, 1 / self.vocab_size)  # V
        for context_rank, level in zip(contexts, self._levels, strict=True):
            if context_rank == UNSEEN:
                break  # longer contexts are unseen as well
            first = context_rank * self._base
            low, high = np.searchsorted(level.keys, [first, first + self.vocab_size])
            probabilities *= level.backoff[context_rank]
            probabilities[level.keys[low:high] - first] += level.share[low:high]
        return probabilities

    def state_dict(self) -> dict[str, AnyInts]:
        """The counts as arrays, to be saved; `from_state` makes the same model of them.

        >>> sorted(KneserNey.fit(np.array([0, 1, 1]), vocab_size=2, order=2).state_dict())
        ['counts.1', 'counts.2', 'keys.1', 'keys.2', 'start']
        """
        state: dict[str, AnyInts] = {"start": np.array([self.start], np.int64)}
        for order, level in enumerate(self._levels, start=1):
            state[f"keys.{order}"] = level.keys
            state[f"counts.{order}"] = level.counts.astype(np.int32)  # half the bytes
        return state

    @classmethod
    def from_state(cls, arrays: Mapping[str, AnyInts], vocab_size: int) -> "KneserNey":
        """The model whose `state_dict` is `arrays`.

        >>> model = KneserNey.fit(np.array([0, 1, 0, 1, 2]), vocab_size=3, order=2)
        >>> again = KneserNey.from_state(model.state_dict(), vocab_size=3)
        >>> bool((again.distribution([0]) == model.distribution([0])).all())
        True
        """
        order = sum(name.startswith("keys.") for name in arrays)
        wanted = {"start", *(f"{part}.{n}" for part in ("keys", "counts") for n in range(1, order + 1))}
        if not order or wanted != set(arrays):
            raise UserError("the saved n-gram model lacks some of its arrays: fit and save it again")
        tables = [
            NgramTable(arrays[f"keys.{n}"].astype(np.int64), arrays[f"counts.{n}"].astype(np.int64))
            for n in range(1, order + 1)
        ]
        start = int(arrays["start"][0])
        if not 0 <= start <= vocab_size or not _consistent(tables, vocab_size + 1):
            raise UserError(
                f"the saved n-gram model does not fit a vocabulary of {vocab_size}: "
                "load it with the vocabulary that it was fitted with"
            )
        return cls(tables, vocab_size, start)

    def _probabilities(self, stream: MarkedTokens) -> Floats:
        """The probability of each token; of no meaning at a start mark."""
        probabilities = np.full(len(stream.tokens), 1 / self.vocab_size)
        contexts = np.zeros(len(stream.tokens), np.int64)  # the empty context is rank 0 of its own
        for length, (level, ranks) in enumerate(zip(self._levels, self._ranks(stream), strict=True), start=1):
            probabilities = level.share[ranks] + level.backoff[contexts] * probabilities
            contexts = _contexts(ranks, stream.depth, length)
        return probabilities

    def _ranks(self, stream: MarkedTokens) -> Iterator[Ints]:
        """For each order from 1 up, the rank of the n-gram that ends at each token, -1 where it is unseen."""
        ranks = stream.tokens
        yield ranks
        for length, level in enumerate(self._levels[1:], start=1):
            contexts = _contexts(ranks, stream.depth, length)
            seen = np.flatnonzero(contexts != UNSEEN)
            ranks = np.full(len(contexts), UNSEEN)
            ranks[seen] = find(level.keys, contexts[seen] * self._base + stream.tokens[seen])
            yield ranks


def _contexts(ranks: Ints, depth: Ints, length: int) -> Ints:
    """The rank of the n-gram of `length` that ends before each token, -1 where its document is too short."""
    before = np.append(UNSEEN, ranks[:-1])
    return np.where(depth >= length, before, UNSEEN)


def _checked(ids: AnyInts, vocab_size: int) -> AnyInts:
    ids = np.asarray(ids)
    if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer):
        raise UserError(f"token ids are one row of integers, not {ids.dtype} of shape {ids.shape}: flatten them")
    wrong = ids[(ids < 0) | (ids >= vocab_size)]
    if len(wrong):
        raise UserError(f"token id {wrong[0]} is outside the vocabulary of {vocab_size}: encode with the model's own")
    return ids


def _consistent(tables: Sequence[NgramTable], base: int) -> bool:
    """Whether every n-gram's context exists in the order below, and every n-gram has a count."""
    if not np.array_equal(tables[0].keys, np.arange(base)) or not tables[0].counts.any():
        return False
    contexts = 1
    for order, table in enumerate(tables, start=1):
        keys, counts = table.keys, table.counts
        if keys.shape != counts.shape or (np.diff(keys) <= 0).any():
            return False
        if len(keys) and (keys[0] < 0 or keys[-1] >= contexts * base or counts.min() < int(order > 1)):
            return False
        contexts = len(keys)
    return True
