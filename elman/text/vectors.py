"""Words with a vector each, and what can be asked of them: neighbours, analogies, the odd one out. NumPy only."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from elman.errors import UserError, close

Floats = NDArray[np.float32]
Method = Literal["add", "mul"]
SHOWN = 60  # characters of a word that has no vector
SPELLED = 50_000  # words that a misspelt one is compared with: to look through more takes seconds


class Neighbour(NamedTuple):
    """A word, and how near it is: the cosine, or what the method of an analogy gives."""

    word: str
    score: float


@dataclass(frozen=True)
class WordVectors:
    """Words and a row of numbers for each.

    >>> matrix = np.array([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]], np.float32)
    >>> vectors = WordVectors(["cat", "dog", "car", "bus"], matrix)
    >>> vectors.nearest("cat", 1)
    [Neighbour(word='dog', score=0.9938837289810181)]
    >>> vectors.odd_one_out(["cat", "dog", "car"])
    'car'
    """

    words: Sequence[str]
    matrix: Floats
    """N x E."""
    unseen: Callable[[str], Floats | None] | None = None
    """The vector of a word that is not among them, where it can be made of the word's parts."""

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self.index

    @property
    def size(self) -> int:
        """E, the dimensions."""
        return int(self.matrix.shape[1])

    @cached_property
    def index(self) -> dict[str, int]:
        """The row of each word."""
        return {word: row for row, word in enumerate(self.words)}

    @cached_property
    def folded(self) -> dict[str, int]:
        """The row of each word whatever its case: of several spellings the first, which is the most frequent."""
        found: dict[str, int] = {}
        for row, word in enumerate(self.words):
            found.setdefault(word.casefold(), row)
        return found

    @cached_property
    def unit(self) -> Floats:
        """The vectors made as long as one."""
        return np.asarray(self.matrix / np.maximum(_lengths(self.matrix), 1e-12), np.float32)

    def vector(self, word: str) -> Floats:
        """The vector of a word; a UserError names the nearest spelling where there is none."""
        if not isinstance(word, str):
            raise UserError(f"a word is a str, not a {type(word).__name__}")
        row = self.index.get(word)
        if row is not None:
            return np.asarray(self.matrix[row])
        made = None if self.unseen is None else self.unseen(word)
        if made is None:
            near = self._other_case(word) or close(word[:SHOWN], self.words[:SPELLED])
            shown = word if len(word) <= SHOWN else word[:SHOWN] + " ..."
            raise UserError(f"{shown!r} has no vector{f': did you mean {near!r}?' if near else ': give another word'}")
        return made

    def _other_case(self, word: str) -> str | None:
        row = self.folded.get(word.casefold())
        return None if row is None else self.words[row]

    def similarity(self, one: str, other: str) -> float:
        """The cosine of two words."""
        return float(_unit(self.vector(one)) @ _unit(self.vector(other)))

    def nearest(self, word: str | Floats, count: int = 10) -> list[Neighbour]:
        """The words with the largest cosine to a word, or to a vector; the word itself is not among them."""
        target = _unit(self.vector(word) if isinstance(word, str) else np.asarray(word, np.float32))
        if target.shape != (self.size,):
            raise UserError(f"the vectors have {self.size} dimensions, and this one has {target.shape}")
        return self._best(self.unit @ target, [word] if isinstance(word, str) else [], count)

    def analogy(
        self, positive: Sequence[str], negative: Sequence[str] = (), count: int = 10, method: Method = "add"
    ) -> list[Neighbour]:
        """What is near the positive words and far from the negative ones: king + woman - man.

        "add" is 3CosAdd (Mikolov, Yih, Zweig 2013): the cosine to the sum of all, each as long as one. "mul" is
        3CosMul (Levy, Goldberg 2014): the product of the cosines, from 0 to 1, to the positive words by that to the
        negative ones, where one large difference does not outweigh the others.
        """
        if method not in get_args(Method):
            raise UserError(f"the method of an analogy is add or mul, not {method!r}")
        plus, minus = ([_unit(self.vector(word)) for word in words] for words in (positive, negative))
        if not plus and not minus:
            raise UserError("there is nothing to look for: give at least one word")
        if method == "add":
            target = sum(plus, np.zeros(self.size, np.float32)) - sum(minus, np.zeros(self.size, np.float32))
            scores = self.unit @ _unit(target)
        else:
            scores = np.ones(len(self), np.float32)
            for vector in plus:
                scores *= (1 + self.unit @ vector) / 2
            for vector in minus:
                scores /= (1 + self.unit @ vector) / 2 + 1e-6
        return self._best(scores, [*positive, *negative], count)

    def odd_one_out(self, words: Sequence[str]) -> str:
        """The word that is least like the mean of all."""
        return words[self.odd_one_out_place(words)]

    def odd_one_out_place(self, words: Sequence[str]) -> int:
        """Its place among the words."""
        if len(words) < 3:
            raise UserError("to find the odd one out, give three words or more")
        rows = np.stack([_unit(self.vector(word)) for word in words])
        return int((rows @ _unit(rows.mean(axis=0))).argmin())

    def _best(self, scores: Floats, without: Iterable[str], count: int) -> list[Neighbour]:
        if count < 1:
            raise UserError(f"the number of words should be at least 1, not {count}")
        scores = scores.copy()
        scores[[self.index[word] for word in without if word in self.index]] = -np.inf
        count = min(count, int(np.isfinite(scores).sum()))
        rows = np.argpartition(-scores, count - 1)[:count] if 0 < count < len(scores) else np.arange(len(scores))
        rows = rows[np.lexsort((rows, -scores[rows]))][:count]
        return [Neighbour(self.words[row], float(scores[row])) for row in rows.tolist()]


def _unit(vector: Floats) -> Floats:
    return np.asarray(vector / max(float(_lengths(vector)[0]), 1e-12), np.float32)


def _lengths(rows: Floats) -> NDArray[np.floating]:
    """The length of each row, or of the only one; in twice as many bits where float32 is too small for squares."""
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    if np.isfinite(lengths).all():
        return np.asarray(lengths)
    return np.asarray(np.linalg.norm(rows.astype(np.float64), axis=-1, keepdims=True))
