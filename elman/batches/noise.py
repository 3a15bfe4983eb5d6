"""Sentences that nobody wrote, for training sets with few ways to say a thing, such as those made from templates.

A network that knows every word around a name by heart takes any other word for a name, and what stands after "card"
for a card number. Where some words are made up, and some names stand in places of others, it has to learn how each of
them is written. What is drawn comes from NumPy's own generator, whose state is part of a run's checkpoint.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from elman.records.tagged import Sentence
from elman.text.spans import Scheme, Span, read_spans, write_tags
from elman.text.spelling import case_of


class MadeUpWords:
    """Puts made-up words in places of others: the beginning of one and the end of another of the same tag and case.

    >>> np.random.seed(1)
    >>> noise = MadeUpWords([Sentence(("kitchen", "window"), ("O", "O"))], share=1.0)
    >>> noise(Sentence(("the", "kitchen", "42"), ("O", "O", "O"))).tokens
    ('winchen', 'kitcchen', '42')
    """

    def __init__(self, sentences: Sequence[Sentence], share: float) -> None:
        words: defaultdict[tuple[str, int], dict[str, None]] = defaultdict(dict)  # sets that keep their order
        for sentence in sentences:
            for word, tag in zip(sentence.tokens, sentence.tags, strict=True):
                if word.isalpha():
                    words[tag, case_of(word)][word] = None
        self.words = {key: list(found) for key, found in words.items()}
        self.share = share

    def __call__(self, sentence: Sentence) -> Sentence:
        """A sentence with some of its words made up."""
        draws = np.random.random((len(sentence.tokens), 3)).tolist()
        tokens = [
            self._word(token, tag, *draw[1:]) if draw[0] < self.share and token.isalpha() else token
            for token, tag, draw in zip(sentence.tokens, sentence.tags, draws, strict=True)
        ]
        return Sentence(tuple(tokens), sentence.tags)

    def _word(self, token: str, tag: str, first: float, second: float) -> str:
        words = self.words.get((tag, case_of(token)), [token])
        beginning, end = words[int(first * len(words))], words[int(second * len(words))]
        return beginning[: (len(beginning) + 1) // 2] + end[len(end) // 2 :]


class SwappedSpans:
    """Puts spans of the training set, of whatever type, in places of others.

    >>> noise = SwappedSpans([Sentence(("Ada", "Lovelace"), ("B-PERSON", "I-PERSON"))], "BIO", share=1.0)
    >>> swapped = noise(Sentence(("in", "ROME"), ("O", "B-PLACE")))
    >>> swapped.tokens, swapped.tags
    (('in', 'ADA', 'LOVELACE'), ('O', 'B-PERSON', 'I-PERSON'))
    """

    def __init__(self, sentences: Sequence[Sentence], scheme: Scheme, share: float) -> None:
        spans: defaultdict[str, dict[tuple[str, ...], None]] = defaultdict(dict)
        for sentence in sentences:
            for start, end, kind in read_spans(sentence.tags):
                spans[kind][sentence.tokens[start:end]] = None
        self.spans = [(kind, list(found)) for kind, found in spans.items()]
        self.scheme, self.share = scheme, share

    def __call__(self, sentence: Sentence) -> Sentence:
        """A sentence with some of its spans exchanged."""
        tokens: list[str] = []
        spans: list[Span] = []
        done = 0
        for start, end, kind in read_spans(sentence.tags):
            tokens += sentence.tokens[done:start]
            kind, words = self._span(kind, sentence.tokens[start:end])
            spans.append(Span(len(tokens), len(tokens) + len(words), kind))
            tokens += words
            done = end
        tokens += sentence.tokens[done:]
        return Sentence(tuple(tokens), tuple(write_tags(spans, len(tokens), self.scheme)))

    def _span(self, kind: str, words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """A span for the place of another, in small letters or capitals where that one is."""
        draw, place, which = np.random.random(3).tolist()
        if draw >= self.share or not self.spans:
            return kind, words
        kind, found = self.spans[int(place * len(self.spans))]
        chosen, before = found[int(which * len(found))], "".join(words)
        if before.islower():
            return kind, tuple(word.lower() for word in chosen)
        return kind, tuple(word.upper() for word in chosen) if before.isupper() else chosen
