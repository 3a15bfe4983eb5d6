"""Words that were met before are not made again, and those kept stay few."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from elman.runtime import words
from elman.runtime.words import KnownWords


def lengths_of(made: list[list[str]]) -> KnownWords:
    def make(new: list[str]) -> np.ndarray:
        made.append(new)
        return np.array([[len(word), ord(word[0])] for word in new], np.float32)

    return KnownWords(make)


def test_a_word_is_made_once() -> None:
    made: list[list[str]] = []
    known = lengths_of(made)
    known(["b", "aa", "b"])
    assert known(["aa", "ccc", "b"]).tolist() == [[2, 97], [3, 99], [1, 98]]
    assert made == [["b", "aa"], ["ccc"]]


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "KEPT", 10)
    made: list[list[str]] = []
    known = lengths_of(made)
    for first in range(0, 100, 4):
        tokens = ["x" * (first + i + 1) for i in range(4)]
        assert known(tokens)[:, 0].tolist() == [len(token) for token in tokens]
        assert len(known._rows) <= 10
    many = ["y" * (i + 1) for i in range(30)]  # more than are kept, in one call
    assert known(many)[:, 0].tolist() == [len(token) for token in many]
    assert not known._rows and not len(known._table)


def test_many_words_are_made_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "TOGETHER", 4)
    made: list[list[str]] = []
    known, many = lengths_of(made), ["x" * (i + 1) for i in range(10)]
    assert known(many)[:, 0].tolist() == [len(token) for token in many]
    assert known(["y", *many])[:, 0].tolist() == [1, *(len(token) for token in many)]
    assert [len(each) for each in made] == [4, 4, 2, 1]


def test_words_that_cannot_be_made_do_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "TOGETHER", 2)

    def make(new: list[str]) -> np.ndarray:
        if "bad" in new:
            raise ValueError("no such word")
        return np.array([[len(word)] for word in new], np.float32)

    known = KnownWords(make)
    for _ in range(2):  # with nothing kept, and with something
        with pytest.raises(ValueError, match="no such word"):
            known(["aa", "b", "ccc", "bad"])
        assert known(["ccc", "aa"]).tolist() == [[3], [2]]


def test_threads_get_their_own_words() -> None:
    known = lengths_of([])

    def ask(seed: int) -> bool:
        tokens = [chr(97 + (seed * i) % 26) * (1 + i % 7) for i in range(50)]
        return known(tokens).tolist() == [[len(token), ord(token[0])] for token in tokens]

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(200)))


def test_rows_that_were_found_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "KEPT", 3)
    known = lengths_of([])
    table, rows = known.find(["a", "bb", "ccc"])
    known(["dddd", "eeeee"])  # which leaves no room for the others
    assert table[rows].tolist() == [[1, 97], [2, 98], [3, 99]]
    assert known(["ccc"]).tolist() == [[3, 99]]


def test_rows_begin_at_a_cache_line() -> None:
    table, _ = KnownWords(lambda new: np.ones((len(new), 32), np.float32)).find(["a"])
    assert table.ctypes.data % 64 == 0


def test_memory_that_is_not_there_is_told_as_such() -> None:
    with pytest.raises(MemoryError, match="no room for"):
        words._zeros(1 << 40, 1 << 20)
