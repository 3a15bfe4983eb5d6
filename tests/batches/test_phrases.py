"""Phrases as a plain transcription of word2phrase finds them."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from elman.batches import phrases
from elman.batches.ids import line_ids
from elman.batches.phrases import PhraseSettings, join_phrases
from elman.records.records import Record
from elman.text import TokenizerSettings


def joined(lines: list[list[str]], threshold: float, discount: float) -> list[list[str]]:
    """One pass, word by word."""
    single = Counter(word for line in lines for word in line)
    pairs = Counter(pair for line in lines for pair in pairwise(line))
    total = sum(single.values())
    found = []
    for line in lines:
        made, at = list[str](), 0
        while at < len(line):
            pair = tuple(line[at : at + 2])
            if len(pair) == 2 and (pairs[pair] - discount) / (single[pair[0]] * single[pair[1]]) * total > threshold:
                made.append("_".join(pair))
                at += 2
            else:
                made.append(line[at])
                at += 1
        found.append(made)
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("passes", [1, 2])
def test_phrases_are_those_of_word2phrase(seed: int, passes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(seed)
    lines = [random.choice(list("abcdefgh"), random.integers(1, 12)).tolist() for _ in range(60)]
    records = [Record(" ".join(line)) for line in lines]
    ids, tokenizer, _ = line_ids(records, TokenizerSettings(kind="words"))
    text, known = join_phrases(ids, tokenizer, PhraseSettings(passes, threshold=1.1, discount=2))  # type: ignore[arg-type]
    for _ in range(passes):
        lines = joined(lines, 1.1, 2)
    found = " ".join(known.tokens[id] for id in text.read(0, len(text))).split(" <eos>")
    assert [line.split() for line in found[:-1]] == lines
    counts = Counter(word for line in lines for word in line)
    assert dict(zip(known.tokens[2:], known.counts[2:].tolist(), strict=True)) == dict(counts)
    assert (np.diff(known.counts[2:]) <= 0).all()  # still in order of falling frequency


def test_rare_pairs_are_forgotten_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phrases, "MOST", 3)
    records = [Record("new york"), Record("new york"), Record("a b c d e f g h")] * 3
    ids, tokenizer, _ = line_ids(records, TokenizerSettings(kind="words"))
    _, known = join_phrases(ids, tokenizer, PhraseSettings(1, threshold=1, discount=1))  # type: ignore[arg-type]
    assert [token for token in known.tokens if "_" in token] == ["new_york"]
