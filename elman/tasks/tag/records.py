"""Sentences to be tagged, from lines of whatever kind, one at a time.

txt       a raw text a line
jsonl     an object a line, with a raw text in `text` or ready tokens in `tokens`
conll     a token a line, an empty line between sentences
conllu    the same, ten columns; lines of multiword tokens and empty nodes are passed over
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from elman.corpora.tables import json_objects
from elman.errors import UserError, nearest
from elman.tasks.predict import PredictOptions
from elman.tasks.tag.tagging import Tagging, cut, join

FORMATS = {"txt": "txt", "jsonl": "jsonl", "ndjson": "jsonl", "conll": "conll", "conllu": "conllu"}
NO_TOKEN = re.compile(r"#|\d+[-.]\d+\t")  # of CoNLL-U


def read_sentences(lines: Iterable[str], options: PredictOptions) -> Iterator[Tagging]:
    """The sentences in `lines`; what holds no token is a bad line, so that nothing is left out unsaid.

    >>> [sentence.tokens for sentence in read_sentences(["Hi there!", "Bye"], PredictOptions())]
    [('Hi', 'there', '!'), ('Bye',)]
    >>> columns = PredictOptions(format="conll")
    >>> [sentence.text for sentence in read_sentences(["Ada O", "sings O", "", "Yes O"], columns)]
    ['Ada sings', 'Yes']
    """
    format = _format(options)
    if format.startswith("conll"):
        return _columns(lines, options, conllu=format == "conllu")
    if format == "jsonl":
        return _objects(lines, options)
    if options.column is not None:
        raise UserError(f"{options.where} has no columns: leave --column out, or say --format conll")
    return _texts(lines, options)


def _format(options: PredictOptions) -> str:
    """How the lines are written; a file's ending that says nothing of it is taken for raw text."""
    given = options.format or "txt"
    if given in FORMATS:
        return FORMATS[given]
    if Path(options.where).suffix.lower() == f".{given}":
        return "txt"
    raise UserError(f"there is no format {given!r} for sentences: {nearest(given, FORMATS)}")


def _texts(lines: Iterable[str], options: PredictOptions) -> Iterator[Tagging]:
    for number, line in enumerate(lines, 1):
        sentence = cut(line)
        if sentence.tokens:
            yield sentence
        else:
            options.bad(UserError(f"{options.where}:{number} has no tokens to tag: write some, or leave the line out"))


def _objects(lines: Iterable[str], options: PredictOptions) -> Iterator[Tagging]:
    names = ("tokens", "text") if options.column is None else (options.column,)
    for where, value in json_objects(options.where, iter(lines), options.bad):
        try:
            yield _sentence(where, value, names)
        except UserError as error:
            options.bad(error)


def _sentence(where: str, value: dict[str, Any], names: tuple[str, ...]) -> Tagging:
    found = next((value[name] for name in names if name in value), None)
    if found is None:
        raise UserError(f"{where} has no field {' or '.join(map(repr, names))}: {nearest(names[0], value)}")
    is_list = isinstance(found, list) and all(isinstance(token, str) and token for token in found)
    if not is_list and not isinstance(found, str):
        raise UserError(f"{where} has neither a text nor a list of tokens where it should: write one of them")
    sentence = join(found) if is_list else cut(found)
    if not sentence.tokens:
        raise UserError(f"{where} has no tokens to tag: write some, or leave the line out")
    return sentence


def _columns(lines: Iterable[str], options: PredictOptions, conllu: bool) -> Iterator[Tagging]:
    """A sentence with a bad line is left out as a whole."""
    column = options.column or ("2" if conllu else "1")
    if not column.isdecimal() or int(column) < 1:
        raise UserError(f"columns of a CoNLL file are numbers from 1, not {column!r}")
    tokens: list[str] | None = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            if tokens:
                yield join(tokens)
            tokens = []
        elif not (conllu and NO_TOKEN.match(line)) and tokens is not None:
            cells = line.strip().split("\t") if "\t" in line else line.split()
            if int(column) <= len(cells):
                tokens.append(cells[int(column) - 1])
            else:
                tokens = None
                options.bad(UserError(f"{options.where}:{number} has no column {column}: mend the line"))
    if tokens:
        yield join(tokens)
