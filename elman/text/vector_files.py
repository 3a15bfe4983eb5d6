"""Files of word vectors: those of word2vec, as text and binary, and of GloVe, a word and its numbers a line.

word2vec's files begin with a line of two numbers, how many words and how many dimensions; GloVe's do not. In a binary
file a word, a blank and its numbers (float32) follow each other.
"""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from elman.errors import UserError
from elman.files import reading, write_aside
from elman.text.vectors import WordVectors

Format = Literal["word2vec", "word2vec-binary", "glove"]
Row = tuple[str, str, NDArray[np.float32]]
"""Where it stands, a word, and its vector."""
UNREADABLE = "\ufffd"
"""What stands for bytes that are no UTF-8: words that differ in these alone cannot be told apart."""
BLOCK, ROWS = 1 << 20, 1 << 12  # bytes read, and vectors put together, at a time
LONGEST_WORD = 1 << 12  # bytes; where no blank comes for so long there are no vectors


def read_vectors(
    path: Path | str, *, first: int | None = None, wanted: Collection[str] = (), lowercase: bool = False
) -> WordVectors:
    """The vectors of the first so many words of a file (all where `first` is None), and of the `wanted` ones.

    Files begin with the frequent words, so `first` is a way to keep memory small. With `lowercase`, words are taken
    in small letters, and of several spellings the first counts.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "vectors.txt"
    >>> _ = place.write_text("3 2\\nthe 0.5 1\\ncat -1 2\\nThe 0 0\\n")
    >>> read_vectors(place, first=1, wanted={"cat"}).words
    ['the', 'cat']
    >>> read_vectors(place, lowercase=True).matrix.tolist()
    [[0.5, 1.0], [-1.0, 2.0]]
    """
    path = Path(path)

    def is_wanted(number: int, word: str) -> bool:
        return first is None or number <= first or (word.lower() if lowercase else word) in wanted

    if path.exists() and not path.is_file():
        raise UserError(f"{path} is no file of word vectors: name one, or the folder of a model")
    places: dict[str, int] = {}
    blocks: list[NDArray[np.float32]] = []  # of many rows each: an array a word would take as much memory again
    waiting: list[NDArray[np.float32]] = []
    try:
        with reading(path, missing=f"no word vectors at {path}: name a file of them, or a model's folder"):
            for where, found, vector in _binary(path, is_wanted) if is_binary(path) else _text(path, is_wanted):
                word = found.lower() if lowercase else found
                if word in places and not lowercase and UNREADABLE not in word:
                    raise UserError(f"{where} has the word {word!r} for the second time: remove one of them")
                if word not in places:
                    places[word] = len(places)
                    waiting.append(vector)
                if len(waiting) == ROWS:
                    blocks.append(np.stack(waiting))
                    waiting.clear()
    except ValueError as error:  # a name with a NUL in it
        raise UserError(f"cannot read the word vectors {str(path)!r}: {error}; name another file") from None
    if not places:
        raise UserError(f"{path} has none of the words that are looked for: give a file of word vectors")
    return WordVectors(list(places), np.concatenate([*blocks, *([np.stack(waiting)] if waiting else [])]))


def is_binary(path: Path) -> bool:
    """Whether a file is one of word2vec's binary ones: two numbers, and behind them what is no text.

    Text that is not in UTF-8 is text all the same: its numbers can be read.
    """
    with path.open("rb") as file:
        heading = _heading(path, file.readline(100))
        if heading is None:
            return False
        start = file.read(max(4096, 32 * min(heading[1], 1 << 12)))  # a line of text at least
    if _numbers(start.partition(b"\n")[0].decode("latin-1").rstrip(" \r")) == heading[1] > 0:
        return False
    try:
        start[: start.rfind(b" ")].decode("utf-8")
    except UnicodeDecodeError:
        return True
    return bool(set(start) & (set(range(32)) - set(b"\t\n\r\x0b\x0c")))


class _Wanted(Protocol):
    def __call__(self, number: int, word: str, /) -> bool: ...


def _text(path: Path, wanted: _Wanted) -> Iterator[Row]:
    size = taken = count = 0
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for number, raw in enumerate(file, 1):
            line = raw.rstrip(" \r\n")
            if number == 1 and (heading := _heading(path, line.encode())) is not None:
                count, size = heading
                continue
            if not line:
                continue
            word, _, rest = line.partition(" ")
            if not taken and count and (found := _numbers(line)) != size:
                raise UserError(
                    f"{path}:{number} has {found:,} numbers behind its word, and the first line says {size:,}: mend it"
                )
            size = size or len(rest.split())
            taken += 1
            if wanted(taken, word):
                yield f"{path}:{number}", *_parse(path, number, line, size)
    if taken < count:
        raise UserError(f"{path} ends behind {taken:,} of {count:,} vectors: copy it again")


def _heading(path: Path, line: bytes) -> tuple[int, int] | None:
    """How many words and how many dimensions; None where the first line does not say it."""
    parts = line.split()
    if len(parts) != 2 or not all(part.removeprefix(b"-").isdigit() and len(part) < 19 for part in parts):
        return None
    count, size = map(int, parts)
    if count < 0 or size < 0:
        raise UserError(f"{path} says that it has {count:,} vectors of {size:,} dimensions: copy it again")
    return count, size


def _numbers(line: str) -> int:
    """How many numbers stand behind the word of a line.

    >>> _numbers("new york 0.5 -1e-3")
    2
    """
    found = 0
    for part in reversed(line.split(" ")[1:]):
        try:
            float(part)
        except ValueError:
            break
        found += 1
    return found


def _parse(path: Path, number: int, line: str, size: int) -> tuple[str, NDArray[np.float32]]:
    """The word, which may hold blanks, and its vector."""
    word, *numbers = line.rsplit(" ", size)
    try:
        with np.errstate(over="ignore"):  # which is told below
            vector = np.array(numbers, dtype=np.float32)
    except ValueError:
        vector = np.zeros(0, np.float32)
    if not size or len(vector) != size or not np.isfinite(vector).all():
        raise UserError(f"{path}:{number} is not a word with {size or 'some'} numbers behind it: mend or remove it")
    return word, vector


def _binary(path: Path, wanted: _Wanted) -> Iterator[Row]:
    with path.open("rb") as file:
        heading = _heading(path, file.readline(100))
        assert heading is not None
        count, size = heading
        if not size:
            raise UserError(f"{path} says that its vectors have no dimensions: give a file of word vectors")
        stream = _Bytes(file)
        for number in range(1, count + 1):
            raw = stream.word()
            numbers = None if raw is None else stream.take(4 * size)
            if raw is None or numbers is None:
                raise UserError(f"{path} ends behind {number - 1:,} of {count:,} vectors: copy it again")
            word = raw.lstrip(b"\n").decode("utf-8", errors="replace")
            if not wanted(number, word):
                continue
            vector = np.frombuffer(numbers, "<f4").astype(np.float32)
            if not np.isfinite(vector).all():
                raise UserError(f"{path} has numbers that are not finite in the vector of {word!r}: copy it again")
            yield str(path), word, vector
        if not stream.ends():
            raise UserError(f"{path} goes on behind the {count:,} vectors that its first line says: copy it again")


class _Bytes:
    """The bytes of a file, of which words up to a blank and so many others are taken in turn."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._left, self._at = file, b"", 0

    def _more(self) -> bool:
        block = self._file.read(BLOCK)
        self._left, self._at = self._left[self._at :] + block, 0
        return bool(block)

    def word(self) -> bytes | None:
        """Up to the next blank; None where there is none near."""
        while (end := self._left.find(b" ", self._at)) < 0:
            if len(self._left) - self._at > LONGEST_WORD or not self._more():
                return None
        found, self._at = self._left[self._at : end], end + 1
        return found

    def take(self, count: int) -> bytes | None:
        """The next so many; None where there are fewer."""
        while len(self._left) - self._at < count:
            if not self._more():
                return None
        found = self._left[self._at : self._at + count]
        self._at += count
        return found

    def ends(self) -> bool:
        """Whether nothing but blanks is left."""
        while not self._left[self._at :].strip():
            self._at = len(self._left)
            if not self._more():
                return True
        return False


def write_vectors(path: Path | str, vectors: WordVectors, format: Format = "word2vec") -> None:
    """Write words and vectors, whole or not at all; a blank in a word becomes `_`, as blanks end words there.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "vectors.bin"
    >>> write_vectors(place, WordVectors(["new york"], np.array([[0.5, 1]], np.float32)), "word2vec-binary")
    >>> place.read_bytes()[:13], read_vectors(place).matrix.tolist()
    (b'1 2\\nnew_york ', [[0.5, 1.0]])
    """
    words = ["_".join(word.split()) or "_" for word in vectors.words]
    if len(set(words)) < len(words):
        raise UserError("two words would have one name, as blanks end words in such files: export a model folder")
    with write_aside(Path(path)) as aside, aside.open("wb") as file:
        if format != "glove":
            file.write(f"{len(words)} {vectors.size}\n".encode())
        for word, row in zip(words, vectors.matrix, strict=True):
            if format == "word2vec-binary":
                file.write(word.encode() + b" " + row.astype("<f4").tobytes() + b"\n")
            else:
                file.write(f"{word} {' '.join(f'{number:.9g}' for number in row.tolist())}\n".encode())
