"""Sentences with a tag for each token, one at a time: CoNLL columns, CoNLL-U, JSON.

conll         `token ... tag` a line, blanks or tabs between the columns, an empty line between sentences
conllu        ten columns with tabs; lines of multiword tokens (`3-4`) and empty nodes (`5.1`) are passed over
jsonl, json   {"tokens": ["Ada", "sings"], "tags": ["B-PERSON", "O"]}
txt           a raw text a line, to be tagged; `TOKEN` cuts it into tokens
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal, get_args

from elman.errors import UserError, nearest
from elman.files import write_aside
from elman.records.columns import TEXT_OPTION
from elman.records.decoding import check_encoding
from elman.records.lines import FAIL, BadLines, made, read_lines
from elman.records.memory import parts_of, read_items
from elman.records.paths import Paths, expand
from elman.records.places import Place, RecordError
from elman.records.reader import Files
from elman.records.tables import field_of, read_objects, table_format
from elman.text.words import TOKEN

Format = Literal["conll", "conllu", "jsonl", "json"]
PREDICTED = ("txt", "jsonl", "ndjson", "json", "conll", "tsv", "conllu")  # formats of sentences to be tagged
Block = list[tuple[Place, str]]  # lines of one sentence
LONGEST = 100_000  # tokens; a file without empty lines must not end up in memory
TABS, BLANKS = re.compile(r"[ \t]*\t[ \t]*"), re.compile(r" +")
CONLLU = {"upos": 3, "xpos": 4, "deprel": 7}
FEATURE = re.compile(r"feats\.\S+")
DOCUMENT = "-DOCSTART-"  # begins a line of columns that is no token
TOKEN_OPTION, TAG_OPTION = "-s data.token_column=", "-s data.tag_column="  # what a user types
COMMENTS_OPTION = "-s data.comments="
ABSENT = "_"  # the tag of a word that does not have the feature


@dataclass(frozen=True, slots=True)
class Sentence:
    """Tokens, a tag for each (or none at all), where the first one stands, and the fields beside them.

    `text` is what the tokens were cut from, empty where they came as tokens.
    """

    tokens: tuple[str, ...]
    tags: tuple[str, ...]
    where: Place | None = None
    text: str = ""
    fields: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DocumentMark:
    """A line of columns that says where a document begins (`-DOCSTART-`), as it stands: no token, and no sentence."""

    line: str


class TaggedReader:
    """Reads tagged sentences: of files, of data in memory, and without tags of lines to predict for.

    `format` follows from the suffix where it is not given (`.conllu`, `.jsonl`, everything else is columns). `token`
    and `tag` say where to look. conll: numbers of columns from 1 (the first, the last). conllu: `tag` is "upos",
    "xpos", "deprel" or a feature such as "feats.Number", which is `_` for words without it; `token` is the number of a
    column (2, the form). jsonl: names of fields ("tokens", "tags"). With `comments`, lines of columns that begin with
    # are passed over; with `tagged=False` only the tokens are read.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "a.conll"
    >>> _ = place.write_text("Ada B-PERSON\\nsings O\\n\\nYes O\\n")
    >>> reader = TaggedReader()
    >>> [(sentence.tokens, sentence.tags) for sentence in reader.files(place)]
    [(('Ada', 'sings'), ('B-PERSON', 'O')), (('Yes',), ('O',))]
    >>> next(reader.objects([(["Yes"], ["O"])])).tags
    ('O',)
    >>> [sentence.tokens for sentence in reader.lines(["Ask Ada!"], Path("-"))]
    [('Ask', 'Ada', '!')]
    """

    def __init__(
        self,
        *,
        format: Format | None = None,
        token: str | int | None = None,
        tag: str | int | None = None,
        comments: bool = False,
        tagged: bool = True,
        encoding: str = "utf-8",
    ) -> None:
        if format is not None and format not in get_args(Format):
            raise UserError(f"there is no format {format!r}: {nearest(format, get_args(Format))}")
        self.format, self.token, self.tag = format, token, tag
        self.comments, self.tagged, self.encoding = comments, tagged, check_encoding(encoding)

    def files(self, paths: Paths) -> Files[Sentence]:
        """The sentences of some files, or of all in a folder."""
        places = expand(paths)
        if not places:
            raise UserError("no file with tagged sentences was named: give at least one")
        formats = [self.format or _named_format(place) for place in places]
        columns = {format: self._columns(format) for format in set(formats)}
        written = list(zip(places, formats, strict=True))
        return Files(places, formats[0], "sentences", partial(self._read, written, columns))

    def lines(
        self,
        lines: Iterable[str],
        where: Path,
        bad: BadLines = FAIL,
        *,
        format: str | None = None,
        column: str | int | None = None,
        live: bool = False,
    ) -> Iterator[Sentence | DocumentMark]:
        """The sentences in `lines` to be tagged, and the marks between them.

        `format` is txt, jsonl, json, conll or conllu, else follows from how `where` ends; `column` is that of the
        tokens. Objects have ready tokens, or a raw text in `text`. What holds no token is a bad line, so that nothing
        is left out unsaid. No line is read ahead, whether they are `live` or not.
        """
        if format is not None and format not in PREDICTED:
            raise UserError(f"there is no format {format!r} for sentences: {nearest(format, PREDICTED)}")
        written, lines = format or _ending(where), iter(lines)
        if format is None and written not in PREDICTED[1:] and (first := next(lines, None)) is not None:
            lines = chain([first], lines)
            # An ending that says nothing of it is taken for raw text, unless the first line can be nothing but columns.
            written = "conll" if first.lstrip("\ufeff").startswith(DOCUMENT) else "txt"
        if written in ("jsonl", "ndjson", "json"):
            rows = read_objects(where, lines, "json" if written == "json" else "jsonl", bad)
            yield from made((partial(self._asked, *row, column) for row in rows), bad)
        elif written in ("conll", "tsv", "conllu"):
            numbered = column if column is not None else (self.token if str(self.token).isdecimal() else None)
            conll: Format = "conllu" if written == "conllu" else "conll"
            columns = _Columns(conll, numbered, None, self.comments, tagged=False, option=TEXT_OPTION)
            yield from columns.read(where, lines, bad)
        elif column is not None:
            raise UserError(f"{where} has no columns: leave --column out, or give --format conll")
        else:
            yield from made((partial(_cut, Place(where, n), line, {}) for n, line in enumerate(lines, 1)), bad)

    def objects(self, data: Iterable[Any], name: str = "train", bad: BadLines = FAIL) -> Iterator[Sentence]:
        """The sentences of data in memory, which `name` calls in messages.

        Tuples of tokens and tags, mappings with such fields, a data frame, a data set, sentences as they are.
        """
        return made((partial(self._object, *item) for item in read_items(data, name)), bad)

    def _object(self, where: Place, item: Any) -> Sentence:
        if isinstance(item, Sentence):
            return item
        token, tag = (str(name or usual) for name, usual in ((self.token, "tokens"), (self.tag, "tags")))
        if not isinstance(item, dict):
            item = dict(zip((token, tag), parts_of(where, item, ("tokens", "tags")), strict=True))
        return _sentence(_strings(where, item, token), _strings(where, item, tag) if self.tagged else None, where)

    def _asked(self, where: Place, value: dict[str, Any], column: str | int | None) -> Sentence:
        """The sentence of an object: ready tokens as training reads them, or a raw text."""
        usual = "tokens" if self.token is None or str(self.token).isdecimal() else str(self.token)
        names = (usual, "text") if column is None else (str(column),)
        name = next((name for name in names if name in value), None)
        if name is None:
            raise RecordError(where, f"has no field {' or '.join(map(repr, names))}: {nearest(names[0], value)}")
        fields = {key: other for key, other in value.items() if key != name}
        if isinstance(text := value[name], str):
            return _cut(where, text, fields)
        return replace(_sentence(_strings(where, value, name), None, where), fields=fields)

    def _columns(self, format: str) -> "_Columns | None":
        if format not in ("conll", "conllu"):
            return None
        return _Columns(format, self.token, self.tag, self.comments, self.tagged, TOKEN_OPTION)

    def _read(
        self, written: list[tuple[Path, str]], columns: "dict[str, _Columns | None]", bad: BadLines
    ) -> Iterator[Sentence]:
        for path, format in written:
            empty = True
            lines = read_lines(path, self.encoding, bad)
            sentences: Iterator[Sentence | DocumentMark]
            if (own := columns[format]) is None:
                sentences = made((partial(self._object, *row) for row in read_objects(path, lines, format, bad)), bad)
            else:
                sentences = own.read(path, lines, bad)
            for sentence in sentences:
                if isinstance(sentence, Sentence):
                    empty = False
                    yield sentence
            if empty and not bad.count:
                raise UserError(f"{path} holds no sentences: give a file with at least one")


class _Columns:
    """Sentences from lines of columns; `option` is what a user types before another column of the tokens."""

    def __init__(
        self, format: str, token: str | int | None, tag: str | int | None, comments: bool, tagged: bool, option: str
    ) -> None:
        self.format, self.comments, self.tagged, self.option = format, comments, tagged, option
        for column, typed in [(token, option)] + ([(tag, TAG_OPTION)] if format == "conll" else []):
            if column is not None and not (str(column).isdecimal() and int(column) > 0):
                raise UserError(f"columns of a CoNLL file are numbers from 1, not {column!r}: give {typed}1")
        self.token = int(token or (1 if format == "conll" else 2))
        self.tag: str | int = int(tag or 0) if format == "conll" else str(tag or "upos")  # 0 stands for the last
        if isinstance(self.tag, str) and self.tag not in CONLLU and not FEATURE.fullmatch(self.tag):
            raise UserError(f"CoNLL-U has no tag {self.tag!r}: {nearest(self.tag, [*CONLLU, 'feats.Number'])}")

    def read(self, path: Path, lines: Iterable[str], bad: BadLines) -> Iterator[Sentence | DocumentMark]:
        """The sentences, and the marks between them; one with a bad line is left out as a whole."""
        width = 0
        for block in blocks(path, lines):
            if self.format == "conll":
                yield from (DocumentMark(line) for _, line in block if _is_mark(line))
                block = [(where, line) for where, line in block if not _is_mark(line)]
            try:
                rows = self._rows(block)
                width = width or (len(rows[0][1]) if rows else 0)
                sentence = self._sentence(rows, 10 if self.format == "conllu" else width)
            except RecordError as error:
                bad(error)
            else:
                if sentence is not None:
                    yield sentence

    def _rows(self, block: Block) -> list[tuple[Place, list[str]]]:
        """The columns of the lines that are tokens."""
        if self.format == "conllu":
            rows = [(where, line.split("\t")) for where, line in block if not line.startswith("#")]
            for where, row in rows:
                if not re.fullmatch(r"\d+([-.]\d+)?", row[0]):
                    raise RecordError(where, f"begins with {row[0]!r} where CoNLL-U has a number: mend the line")
            return [(where, row) for where, row in rows if row[0].isdecimal() or len(row) != 10]
        return [(where, _cells(line)) for where, line in block if not (self.comments and line.startswith("#"))]

    def _sentence(self, rows: list[tuple[Place, list[str]]], width: int) -> Sentence | None:
        if not rows:
            return None
        for where, row in rows:
            if len(row) != width:
                hint = ""
                if rows[0][1][0].startswith("#"):
                    told = f"say {COMMENTS_OPTION}true" if self.tagged else "take it out"
                    hint = f", or {told} if # begins a comment"
                raise RecordError(where, f"has {len(row)} columns where {width} belong: mend the line{hint}")
        where, tags = rows[0][0], []
        if self.format == "conll" and self.tagged and width < 2:
            raise RecordError(where, "has one column: write a token and its tag in each line")
        if self.token > width:
            raise RecordError(where, f"has {width} columns, so there is no column {self.token}: give {self.option}1")
        if self.tagged and isinstance(self.tag, str):
            tags = [conllu_tag(row, self.tag) for _, row in rows]
        elif self.tagged:
            tag = int(self.tag) or width
            if tag > width:
                raise RecordError(where, f"has {width} columns, so there is no column {tag}: give {TAG_OPTION}{width}")
            tags = [row[tag - 1] for _, row in rows]
        return _sentence([row[self.token - 1] for _, row in rows], tags if self.tagged else None, where)


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
    written = json_text if table_format(path) == "jsonl" else conll_text
    count = 0
    with write_aside(path) as aside, aside.open("w", encoding="utf-8", newline="\n") as out:
        for sentence in sentences:
            out.write(written(sentence))
            count += 1
    return count


def _named_format(path: Path) -> str:
    ending = _ending(path)
    return ending if ending in ("jsonl", "json") else "conllu" if ".conllu" in path.suffixes else "conll"


def _ending(path: Path) -> str:
    return table_format(path) or path.suffix.lower().removeprefix(".")


def _is_mark(line: str) -> bool:
    return _cells(line)[0] == DOCUMENT


def _cells(line: str) -> list[str]:
    return (TABS if "\t" in line else BLANKS).split(line.strip(" \t"))


def blocks(path: Path, lines: Iterable[str]) -> Iterator[Block]:
    """The lines between empty lines."""
    block: Block = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            block.append((Place(path, number), line))
            if len(block) > LONGEST:
                raise UserError(f"{path}:{number} has no empty line for {LONGEST} lines: put one after each sentence")
        elif block:
            yield block
            block = []
    if block:
        yield block


def conllu_tag(row: list[str], tag: str) -> str:
    if tag in CONLLU:
        return row[CONLLU[tag]]
    features = dict(pair.partition("=")[::2] for pair in row[5].split("|"))
    return features.get(tag.removeprefix("feats."), ABSENT)


def _strings(where: Place, fields: dict[str, Any], name: str) -> list[str]:
    value = field_of(where, fields, name)
    strings = list(value) if isinstance(value, tuple) or hasattr(value, "tolist") else value
    if not isinstance(strings, list) or not all(isinstance(item, str) for item in strings):
        raise RecordError(where, f"has no list of strings in field {name!r}: write one")
    return strings


def _sentence(tokens: Sequence[str], tags: Sequence[str] | None, where: Place) -> Sentence:
    """Checked; without tags where there are none to read."""
    if not tokens:
        raise RecordError(where, "is a sentence without tokens: remove it")
    if tags is not None and len(tokens) != len(tags):
        raise RecordError(where, f"has {len(tokens)} tokens and {len(tags)} tags: give one tag for each token")
    if not all(tokens) or not all(tags or ()):
        raise RecordError(where, "has an empty token or tag: write one, or remove it")
    return Sentence(tuple(tokens), tuple(tags or ()), where)


def _cut(where: Place, text: str, fields: dict[str, Any]) -> Sentence:
    """The sentence of a raw text."""
    tokens = tuple(TOKEN.findall(text))
    if not tokens:
        raise RecordError(where, "has no tokens to tag: write some, or remove the line")
    return Sentence(tokens, (), where, text, fields)
