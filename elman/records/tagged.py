"""Sentences with a tag for each token, one at a time: CoNLL columns, CoNLL-U, JSON lines.

conll     `token ... tag` a line, blanks or tabs between the columns, an empty line between sentences
conllu    ten columns with tabs; lines of multiword tokens (`3-4`) and empty nodes (`5.1`) are passed over
jsonl     {"tokens": ["Ada", "sings"], "tags": ["B-PERSON", "O"]}
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from elman.errors import UserError, nearest
from elman.files import write_aside
from elman.records.decoding import check_encoding
from elman.records.lines import FAIL, BadLines, read_lines
from elman.records.tables import json_objects, table_kind

Format = Literal["conll", "conllu", "jsonl"]
Block = list[tuple[int, str]]  # lines of one sentence with their numbers
LONGEST = 100_000  # tokens; a file without empty lines must not end up in memory
TABS, BLANKS = re.compile(r"[ \t]*\t[ \t]*"), re.compile(r" +")
CONLLU = {"upos": 3, "xpos": 4, "deprel": 7}
FEATURE = re.compile(r"feats\.\S+")
DOCUMENT = "-DOCSTART-"  # begins a line of columns that is no token
TOKEN_OPTION, TAG_OPTION = "-s data.token_column=", "-s data.tag_column="  # what a user types
ABSENT = "_"  # the tag of a word that does not have the feature


@dataclass(frozen=True, slots=True)
class Sentence:
    """Tokens, a tag for each (none at all where the file was read without), and where the first one stands."""

    tokens: tuple[str, ...]
    tags: tuple[str, ...]
    where: str = ""


@dataclass(frozen=True, slots=True)
class DocumentMark:
    """A line of columns that says where a document begins (`-DOCSTART-`), as it stands: no token, and no sentence."""

    line: str


class SentenceReader:
    """Makes sentences of lines, wherever those come from.

    `token` and `tag` say where to look. conll: numbers of columns from 1 (the first, the last). conllu: `tag` is
    "upos", "xpos", "deprel" or a feature such as "feats.Number", which is `_` for words without it; `token` is the
    number of a column (2, the form). jsonl: names of fields ("tokens", "tags"). With `comments`, lines of columns that
    begin with # are passed over; with `tagged=False` only the tokens are read. `option` is what a user types before
    another column of the tokens.

    >>> reader = SentenceReader("conll", tagged=False)
    >>> list(reader.read(Path("a.conll"), ["-DOCSTART- O", "", "Yes O"]))
    [DocumentMark(line='-DOCSTART- O'), Sentence(tokens=('Yes',), tags=(), where='a.conll:3')]
    """

    def __init__(
        self,
        format: Format,
        *,
        token: str | int | None = None,
        tag: str | int | None = None,
        comments: bool = False,
        tagged: bool = True,
        option: str = TOKEN_OPTION,
    ) -> None:
        self.format, self.comments, self.tagged, self.option = format, comments, tagged, option
        self.token, self.tag = _columns(format, token, tag, option)

    def read(self, path: Path, lines: Iterable[str], bad: BadLines = FAIL) -> Iterator[Sentence | DocumentMark]:
        """The sentences in the lines of `path`, and the marks between them."""
        return self._json(path, lines, bad) if self.format == "jsonl" else self._blocks(path, lines, bad)

    def sentence(self, where: str, value: dict[str, object]) -> Sentence:
        """The sentence that a JSON object holds."""
        tokens = _strings(where, value, str(self.token))
        tags = _strings(where, value, str(self.tag)) if self.tagged else ()
        return _sentence(tokens, tags, where, self.tagged)

    def _json(self, path: Path, lines: Iterable[str], bad: BadLines) -> Iterator[Sentence]:
        for where, value in json_objects(path, iter(lines), bad):
            try:
                sentence = self.sentence(where, value)
            except UserError as error:
                bad(error)
            else:
                yield sentence

    def _blocks(self, path: Path, lines: Iterable[str], bad: BadLines) -> Iterator[Sentence | DocumentMark]:
        width = 0
        for block in _cut(path, lines):
            if self.format == "conll":
                yield from (DocumentMark(line) for _, line in block if _is_mark(line))
                block = [(number, line) for number, line in block if not _is_mark(line)]
            try:
                rows = self._rows(path, block)
                width = width or (len(rows[0][1]) if rows else 0)
                sentence = self._read(path, rows, 10 if self.format == "conllu" else width)
            except UserError as error:
                bad(error)
            else:
                if sentence is not None:
                    yield sentence

    def _rows(self, path: Path, block: Block) -> list[tuple[int, list[str]]]:
        """The columns of the lines that are tokens."""
        if self.format == "conllu":
            rows = [(number, line.split("\t")) for number, line in block if not line.startswith("#")]
            for number, row in rows:
                if not re.fullmatch(r"\d+([-.]\d+)?", row[0]):
                    raise UserError(f"{path}:{number} begins with {row[0]!r} where CoNLL-U has a number: mend the line")
            return [(number, row) for number, row in rows if row[0].isdecimal() or len(row) != 10]
        lines = [(number, line) for number, line in block if not (self.comments and line.startswith("#"))]
        return [(number, _cells(line)) for number, line in lines]

    def _read(self, path: Path, rows: list[tuple[int, list[str]]], width: int) -> Sentence | None:
        if not rows:
            return None
        for number, row in rows:
            if len(row) != width:
                raise UserError(f"{path}:{number} has {len(row)} columns where {width} belong: mend the line")
        where, token, tags = f"{path}:{rows[0][0]}", int(self.token), []
        if self.format == "conll" and self.tagged and width < 2:
            raise UserError(f"{where} has one column: write a token and its tag in each line")
        if token > width:
            raise UserError(f"{where} has {width} columns, so there is no column {token}: give {self.option}1")
        if self.tagged and self.format == "conllu":
            tags = [_conllu_tag(row, str(self.tag)) for _, row in rows]
        elif self.tagged:
            tag = int(self.tag) or width
            if tag > width:
                raise UserError(f"{where} has {width} columns, so there is no column {tag}: give {TAG_OPTION}{width}")
            tags = [row[tag - 1] for _, row in rows]
        return _sentence([row[token - 1] for _, row in rows], tags, where, self.tagged)


class TaggedFiles:
    """The sentences of some files; read anew each time, in order.

    `format` follows from the suffix where it is not given (`.conllu`, `.jsonl`, everything else is columns). What
    `token`, `tag`, `comments` and `tagged` say is told in `SentenceReader`.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "a.conll"
    >>> _ = place.write_text("Ada B-PERSON\\nsings O\\n\\nYes O\\n")
    >>> [(sentence.tokens, sentence.tags) for sentence in TaggedFiles(place).sentences()]
    [(('Ada', 'sings'), ('B-PERSON', 'O')), (('Yes',), ('O',))]
    """

    def __init__(
        self,
        paths: Path | str | Sequence[Path | str],
        *,
        format: Format | None = None,
        token: str | int | None = None,
        tag: str | int | None = None,
        comments: bool = False,
        tagged: bool = True,
        encoding: str = "utf-8",
    ) -> None:
        named = [paths] if isinstance(paths, (str, Path)) else list(paths)
        self.paths = [Path(name) for name in named]
        self.encoding = check_encoding(encoding)
        if not named:
            raise UserError("no file with tagged sentences was named: give at least one")
        if format is not None and format not in get_args(Format):
            raise UserError(f"there is no format {format!r}: {nearest(format, get_args(Format))}")
        self.format = format or _guess_format(self.paths[0])
        self.reader = SentenceReader(self.format, token=token, tag=tag, comments=comments, tagged=tagged)

    def sentences(self, bad: BadLines = FAIL) -> Iterator[Sentence]:
        """The sentences; what happens to one with a bad line is for `bad` to say."""
        for path in self.paths:
            found = False
            for sentence in self.reader.read(path, read_lines(path, self.encoding, bad), bad):
                if isinstance(sentence, Sentence):
                    found = True
                    yield sentence
            if not found and not bad.count:
                raise UserError(f"{path} holds no sentences: give a file with at least one")


def read_tagged(files: TaggedFiles, bad: BadLines = FAIL) -> list[Sentence]:
    """All sentences of some files.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "a.jsonl"
    >>> _ = place.write_text('{"tokens": ["Yes"], "tags": ["O"]}')
    >>> read_tagged(TaggedFiles(place))[0].tags
    ('O',)
    """
    return list(files.sentences(bad))


def conll_text(sentence: Sentence) -> str:
    """A sentence as lines of `token<TAB>tag`, and the empty line after them.

    >>> conll_text(Sentence(("Ada", "sings"), ("B-PERSON", "O")))
    'Ada\\tB-PERSON\\nsings\\tO\\n\\n'
    """
    for token in (*sentence.tokens, *sentence.tags):
        if not token.strip() or re.search(r"[\t\r\n]", token):
            raise UserError(
                f"{sentence.where or 'a sentence'} has the token {token!r}, which columns cannot hold: use jsonl"
            )
    return "".join(f"{token}\t{tag}\n" for token, tag in zip(sentence.tokens, sentence.tags, strict=True)) + "\n"


def json_text(sentence: Sentence) -> str:
    """A sentence as one line of JSON.

    >>> json_text(Sentence(("Yes",), ("O",)))
    '{"tokens": ["Yes"], "tags": ["O"]}\\n'
    """
    return json.dumps({"tokens": sentence.tokens, "tags": sentence.tags}, ensure_ascii=False) + "\n"


def write_tagged(path: Path, sentences: Iterable[Sentence]) -> int:
    """Write sentences as JSON lines (`.jsonl`) or columns (any other suffix), whole or not at all; how many.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "a.conll"
    >>> write_tagged(place, [Sentence(("Yes",), ("O",))]), place.read_text()
    (1, 'Yes\\tO\\n\\n')
    """
    written = json_text if table_kind(path) == ".jsonl" else conll_text
    count = 0
    with write_aside(path) as aside, aside.open("w", encoding="utf-8", newline="\n") as out:
        for sentence in sentences:
            out.write(written(sentence))
            count += 1
    return count


def _guess_format(path: Path) -> Format:
    if table_kind(path) in (".jsonl", ".ndjson"):
        return "jsonl"
    return "conllu" if ".conllu" in path.suffixes else "conll"


def _columns(
    format: Format, token: str | int | None, tag: str | int | None, option: str
) -> tuple[str | int, str | int]:
    """Where tokens and tags stand; the tag column 0 of a conll file stands for its last."""
    if format == "jsonl":
        return "tokens" if token is None else token, "tags" if tag is None else tag
    numbers = [(token, option)] + ([(tag, TAG_OPTION)] if format == "conll" else [])
    for column, typed in numbers:
        if column is not None and not (str(column).isdecimal() and int(column) > 0):
            raise UserError(f"columns of a CoNLL file are numbers from 1, not {column!r}: give {typed}1")
    if format == "conll":
        return int(token or 1), int(tag or 0)
    found = "upos" if tag is None else str(tag)
    if found not in CONLLU and not FEATURE.fullmatch(found):
        raise UserError(f"CoNLL-U has no tag {found!r}: {nearest(found, [*CONLLU, 'feats.Number'])}")
    return int(token or 2), found


def _is_mark(line: str) -> bool:
    return _cells(line)[0] == DOCUMENT


def _cells(line: str) -> list[str]:
    return (TABS if "\t" in line else BLANKS).split(line.strip(" \t"))


def _cut(path: Path, lines: Iterable[str]) -> Iterator[Block]:
    """The lines between empty lines."""
    block: Block = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            block.append((number, line))
            if len(block) > LONGEST:
                raise UserError(f"{path}:{number} has no empty line for {LONGEST} lines: put one after each sentence")
        elif block:
            yield block
            block = []
    if block:
        yield block


def _conllu_tag(row: list[str], tag: str) -> str:
    if tag in CONLLU:
        return row[CONLLU[tag]]
    features = dict(pair.partition("=")[::2] for pair in row[5].split("|"))
    return features.get(tag.removeprefix("feats."), ABSENT)


def _strings(where: str, value: dict[str, object], name: str) -> list[str]:
    if name not in value:
        raise UserError(f"{where} has no field {name!r}: {nearest(name, value)}")
    found = value[name]
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise UserError(f"{where} has no list of strings in field {name!r}: write one")
    return found


def _sentence(tokens: Sequence[str], tags: Sequence[str], where: str, tagged: bool) -> Sentence:
    if not tokens:
        raise UserError(f"{where} is a sentence without tokens: remove it")
    if tagged and len(tokens) != len(tags):
        raise UserError(f"{where} has {len(tokens)} tokens and {len(tags)} tags: give one tag for each token")
    if not all(tokens) or not all(tags):
        raise UserError(f"{where} has an empty token or tag: write one, or remove it")
    return Sentence(tuple(tokens), tuple(tags), where)
