"""Two words that stand together far more often than by chance become one: `new york` is `new_york` from there on.

The score of word2phrase (Mikolov, Sutskever, Chen, Corrado, Dean 2013):

    score(a, b) = (count(a b) - discount) / (count(a) * count(b)) * words of the text

Pairs with a score above the threshold are joined, from left to right. A second pass makes phrases of up to four words.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from elman.batches.ids import IdWriter, cached_ids
from elman.batches.stream import IdStream
from elman.cache import cache_folder
from elman.text import Tokenizer
from elman.text.words import WordTokenizer

BLOCK = 1 << 20  # ids that are looked at together
MOST = 1 << 25  # pairs that are counted at a time: beyond it rare ones are forgotten, as word2phrase does
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class PhraseSettings:
    """How many passes, the score from which a pair is joined, and what is taken off each count."""

    passes: int
    threshold: float
    discount: float


def join_phrases(ids: IdStream, tokenizer: WordTokenizer, settings: PhraseSettings) -> tuple[IdStream, WordTokenizer]:
    """The text with its phrases as words of their own, and the tokenizer that knows them.

    >>> from elman.batches.ids import line_ids
    >>> from elman.records.records import Record
    >>> from elman.text import TokenizerSettings
    >>> ids, tokenizer, _ = line_ids([Record("new york is new york")] * 3, TokenizerSettings(kind="words"))
    >>> joined, known = join_phrases(ids, tokenizer, PhraseSettings(passes=1, threshold=2, discount=1))
    >>> [known.tokens[id] for id in joined.read(0, 4)]
    ['new_york', 'is', 'new_york', '<eos>']
    """
    for _ in range(settings.passes):
        found = _phrases(ids, tokenizer, settings)
        if not len(found):
            break
        ids, tokenizer = _joined(ids, tokenizer, found)
    return ids, tokenizer


def _blocks(ids: IdStream) -> Iterator[Ints]:
    """The text in pieces; each begins with the last id of the one before."""
    for start in range(0, len(ids), BLOCK):
        yield ids.read(max(start - 1, 0), min(start + BLOCK, len(ids)))


def _phrases(ids: IdStream, tokenizer: Tokenizer, settings: PhraseSettings) -> Ints:
    """The pairs to be joined, a V + b for words a and b, in order."""
    size, first = tokenizer.size, len(tokenizer.settings.special_tokens)
    keys, counts, least = np.zeros(0, np.int64), np.zeros(0, np.int64), 0
    for block in _blocks(ids):
        left, right = block[:-1], block[1:]
        pairs = (left * size + right)[(left >= first) & (right >= first)]
        new, times = np.unique(pairs, return_counts=True)
        keys, where = np.unique(np.concatenate([keys, new]), return_inverse=True)
        counts = np.bincount(where, np.concatenate([counts, times]), len(keys)).astype(np.int64)
        while len(keys) > MOST:
            least += 1
            keys, counts = keys[counts > least], counts[counts > least]
    single = tokenizer.counts.astype(np.float64)
    total = float(single[first:].sum())
    scores = (counts - settings.discount) / (single[keys // size] * single[keys % size]) * total
    return keys[scores > settings.threshold]


def _joined(ids: IdStream, tokenizer: WordTokenizer, phrases: Ints) -> tuple[IdStream, WordTokenizer]:
    """The text with these pairs joined, ids in order of falling count again."""
    size, first = tokenizer.size, len(tokenizer.settings.special_tokens)
    names = [
        f"{tokenizer.tokens[a]}_{tokenizer.tokens[b]}" for a, b in zip(phrases // size, phrases % size, strict=True)
    ]
    place = {name: at for at, name in enumerate(tokenizer.tokens)}
    new = [place.setdefault(name, len(place)) for name in names]  # a text may have `new_york` as a word already
    tokens, table = list(place), np.array(new, np.int64)
    counts, digest = np.zeros(len(tokens), np.int64), blake2b(digest_size=16)
    for block in _rewritten(ids, phrases, table, size):
        counts += np.bincount(block, minlength=len(tokens))
        digest.update(block.tobytes())
    order = np.lexsort((np.arange(len(tokens)), -counts))
    order = np.concatenate([np.arange(first), order[(order >= first) & (counts[order] >= 1)]])
    to = np.zeros(len(tokens), np.int64)
    to[order] = np.arange(len(order))
    known = WordTokenizer(tokenizer.settings, [tokens[at] for at in order[first:]], counts[order].tolist())

    def write(out: IdWriter) -> None:
        out.begin(ids.characters or 0)
        for block in _rewritten(ids, phrases, table, size):
            out.add(to[block])

    return cached_ids(cache_folder(), ["phrases", digest.hexdigest()], known, write), known


def _rewritten(ids: IdStream, phrases: Ints, table: Ints, size: int) -> Iterator[Ints]:
    """The text in pieces, each joined pair as one id; a word that was joined to the left is not to the right."""
    for start in range(0, len(ids), BLOCK):
        block = ids.read(start, min(start + BLOCK, len(ids)))
        pairs = block[:-1] * size + block[1:]
        at = np.searchsorted(phrases, pairs)
        hits = np.flatnonzero(phrases[np.minimum(at, len(phrases) - 1)] == pairs)
        # In a run of hits side by side every second is taken.
        runs = np.cumsum(np.diff(hits, prepend=-2) > 1)
        begins = np.flatnonzero(np.diff(runs, prepend=0))
        taken = hits[(np.arange(len(hits)) - begins[runs - 1]) % 2 == 0] if len(hits) else hits
        block[taken] = table[at[taken]]
        kept = np.ones(len(block), bool)
        kept[taken + 1] = False
        yield block[kept]
