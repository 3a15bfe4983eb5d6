"""Modified Kneser-Ney with dictionaries, straight from the formula: what the fast one must agree with."""

from collections import Counter, defaultdict
from collections.abc import Sequence

Ngram = tuple[int, ...]


class Reference:
    """`documents` are lists of tokens; `start` stands once before each."""

    def __init__(self, documents: Sequence[Sequence[int]], vocab_size: int, order: int, start: int) -> None:
        self.vocab_size, self.order, self.start = vocab_size, order, start
        marked = [[start, *document] for document in documents if len(document)]
        self.counts = {length: self._count(marked, length) for length in range(1, order + 1)}
        self.discounts = {length: self._discounts(self.counts[length]) for length in self.counts}

    def _count(self, marked: list[list[int]], length: int) -> Counter[Ngram]:
        plain: Counter[Ngram] = Counter()
        before: dict[Ngram, set[int]] = defaultdict(set)
        at_start: Counter[Ngram] = Counter()
        for document in marked:
            for end in range(max(length, 2), len(document) + 1):  # the mark alone is never predicted
                ngram = tuple(document[end - length : end])
                plain[ngram] += 1
                if end == length:
                    at_start[ngram] += 1
                else:
                    before[ngram].add(document[end - length - 1])
        if length == self.order:
            return plain
        return Counter({ngram: len(before[ngram]) + at_start[ngram] for ngram in plain})

    @staticmethod
    def _discounts(counts: Counter[Ngram]) -> dict[int, float]:
        n1, n2, n3, n4 = (sum(count == wanted for count in counts.values()) for wanted in (1, 2, 3, 4))
        found = {1: 0.5, 2: 1.0, 3: 1.5}
        if n1 and n2:
            y = n1 / (n1 + 2 * n2)
            found[1] = 1 - 2 * y * n2 / n1
            if n3 and 2 - 3 * y * n3 / n2 > 0:
                found[2] = 2 - 3 * y * n3 / n2
        if n1 and n3 and n4 and 3 - 4 * n1 / (n1 + 2 * n2) * n4 / n3 > 0:
            found[3] = 3 - 4 * n1 / (n1 + 2 * n2) * n4 / n3
        return found

    def probability(self, token: int, history: Sequence[int]) -> float:
        """Of `token` after `history`, all that came since the document's start."""
        marked = [self.start, *history]
        longest = min(self.order - 1, len(marked))
        return self._interpolated(token, tuple(marked[len(marked) - longest :]))

    def _interpolated(self, token: int, context: Ngram) -> float:
        length = len(context) + 1
        shorter = self._interpolated(token, context[1:]) if context else 1 / self.vocab_size
        following = {ngram: n for ngram, n in self.counts[length].items() if ngram[:-1] == context}
        if not following:
            return shorter
        discounts = self.discounts[length]
        total = sum(following.values())
        held_back = sum(discounts[min(n, 3)] for n in following.values())
        own = following.get((*context, token), 0)
        discounted = own - discounts[min(own, 3)] if own else 0.0
        return discounted / total + held_back / total * shorter
