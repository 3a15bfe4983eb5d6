"""Text from files, a block of whole lines at a time: never a whole file in memory."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from elman.cache import cache_folder
from elman.errors import UserError
from elman.files import reading
from elman.records.decoding import check_encoding, raw_chunks, text_chunks
from elman.records.paths import Paths, named, on_disk, visible_files
from elman.records.survey import FileFacts, Survey, survey_files

BLOCK = 1 << 18  # characters; small enough that what is made of them stays in the processor's cache
LONGEST_LINE = 1 << 22
PROSE = {".txt", ".text", ".md", ".rst", ".tex", ".tokens", ".html", ".xml"}
TABLES = {".csv", ".tsv", ".jsonl", ".ndjson"}
SOURCE = {".py", ".pyi", ".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".java", ".kt", ".js", ".ts", ".go", ".rs"}
MORE_SOURCE = {".rb", ".php", ".pl", ".lua", ".r", ".jl", ".scala", ".swift", ".sh", ".sql", ".hs", ".ml"}
TEXT_SUFFIXES = PROSE | TABLES | SOURCE | MORE_SOURCE


@dataclass(frozen=True)
class Document:
    """Part of one file, from character `start` up to `stop`; going through it gives blocks of text.

    A block ends at a line end, so that no word is cut, unless a line has millions of characters.
    """

    path: Path
    encoding: str
    start: int
    stop: int
    facts: FileFacts

    @property
    def ends(self) -> bool:
        """Whether the end of the file is the end of this part."""
        return self.stop == self.facts.characters

    def __iter__(self) -> Iterator[str]:
        return _cut_at_lines(self._characters())

    def _characters(self) -> Iterator[str]:
        position = 0
        for text in text_chunks(self.path, raw_chunks(self.path), self.encoding):
            first, last = max(self.start - position, 0), self.stop - position
            position += len(text)
            if first < len(text):
                yield text[first:last]
            if position >= self.stop:
                return


@dataclass(frozen=True)
class Blocks:
    """Blocks of text of several documents; can be gone through again and again."""

    documents: tuple[Document, ...]

    def __iter__(self) -> Iterator[str]:
        for document in self.documents:
            yield from document


class TextFiles:
    """One text file, several, or all those of a folder, as one text.

    A folder gives its text files (by suffix, also gzipped ones) in all its folders, sorted; hidden and empty
    ones are passed over.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("one\\ntwo\\n")
    >>> _ = (folder / "b.txt").write_text("three\\n")
    >>> files = TextFiles(folder)
    >>> files.survey(folder / ".memo").characters, list(files.blocks(stop=0.5))
    (14, ['one\\ntwo'])
    """

    def __init__(self, paths: Paths, encoding: str = "utf-8") -> None:
        self.encoding = check_encoding(encoding)
        self.paths = [file for path in named(paths) for file in _text_files(path)]
        if not self.paths:
            raise UserError("no text file was named: give at least one")
        self._survey: Survey | None = None

    def survey(self, memo: Path | None = None) -> Survey:
        """Facts of every file: one pass over the text, or none where the folder `memo` knows the files.

        The memo is part of the cache folder unless another one is named.
        """
        if self._survey is None:
            self._survey = survey_files(self.paths, self.encoding, memo or cache_folder() / "surveys")
        return self._survey

    def documents(self, start: float = 0.0, stop: float = 1.0) -> list[Document]:
        """The files that hold the characters from `start` to `stop` (fractions), cut to that part."""
        if not 0.0 <= start < stop <= 1.0:
            raise UserError(f"a part of a text is 0 <= start < stop <= 1, not from {start} to {stop}")
        survey = self.survey()
        first, last = int(start * survey.characters), int(stop * survey.characters)
        parts, position = [], 0
        for path, facts in zip(self.paths, survey.files, strict=True):
            low, high = max(first - position, 0), min(last - position, facts.characters)
            if low < high:
                parts.append(Document(path, self.encoding, low, high, facts))
            position += facts.characters
        if not parts:
            raise UserError(f"the part from {start} to {stop} of {self.paths[0]} holds no character: widen it")
        return parts

    def blocks(self, start: float = 0.0, stop: float = 1.0) -> Blocks:
        """The text from `start` to `stop`, in blocks of some hundred thousand characters."""
        return Blocks(tuple(self.documents(start, stop)))


def _text_files(path: Path) -> list[Path]:
    with reading(path):
        if not path.is_dir():
            if on_disk(path).is_file() and on_disk(path).stat().st_size == 0:
                raise UserError(f"{path} is empty: give a file with text in it")
            return [path]
        files = [file for file in visible_files(path) if _is_text(file) and file.stat().st_size]
    if not files:
        raise UserError(f"the folder {path} holds no text files: name the files themselves if they have other suffixes")
    return files


def _is_text(file: Path) -> bool:
    return Path(file.name.lower().removesuffix(".gz")).suffix in TEXT_SUFFIXES


def _cut_at_lines(texts: Iterable[str]) -> Iterator[str]:
    parts: list[str] = []
    length = 0
    for text in texts:
        parts.append(text)
        length += len(text)
        if length < BLOCK or ("\n" not in text and length < LONGEST_LINE):
            continue
        joined = "".join(parts)
        cut = joined.rfind("\n") + 1 or joined.rfind(" ") + 1 or length
        yield joined[:cut]
        parts, length = [joined[cut:]], length - cut
    if length:
        yield "".join(parts)
