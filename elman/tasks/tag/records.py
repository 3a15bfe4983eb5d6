"""Sentences to be tagged, from lines of whatever kind, one at a time.

txt       a raw text a line
jsonl     an object a line, with a raw text in `text` or ready tokens in `tokens`
conll     a token a line, an empty line between sentences; `-DOCSTART-` lines are no sentences, and come as they stand
conllu    the same, ten columns; lines of multiword tokens and empty nodes are passed over
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from elman.errors import UserError, nearest
from elman.records.tables import json_objects
from elman.records.tagged import DOCUMENT, DocumentMark, SentenceReader
from elman.tasks.predict import PredictOptions, trained_with
from elman.tasks.tag.tagging import Tagging, cut, join

Format = Literal["txt", "jsonl", "conll", "conllu"]
FORMATS: dict[str, Format] = {
    "txt": "txt",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "conll": "conll",
    "tsv": "conll",
    "conllu": "conllu",
}
OPTION = "--column "


@dataclass(frozen=True)
class Trained:
    """How the sentences that a model was trained on were written, as far as those to be tagged may be so too."""

    token_column: str | None = None
    comments: bool = False

    @classmethod
    def by(cls, recipe: dict[str, Any]) -> "Trained":
        """As a model's recipe says.

        >>> Trained.by({"data": {"comments": True}})
        Trained(token_column=None, comments=True)
        """
        return cls(trained_with(recipe, "token_column"), trained_with(recipe, "comments") == "True")


UNKNOWN = Trained()  # nothing is known of it, so it was written as usual


def read_sentences(
    lines: Iterable[str], options: PredictOptions, trained: Trained = UNKNOWN
) -> Iterator[Tagging | DocumentMark]:
    """The sentences in `lines`; what holds no token is a bad line, so that nothing is left out unsaid.

    >>> [sentence.tokens for sentence in read_sentences(["Hi there!", "Bye"], PredictOptions())]
    [('Hi', 'there', '!'), ('Bye',)]
    >>> columns = PredictOptions(format="conll")
    >>> [sentence.text for sentence in read_sentences(["Ada O", "sings O", "", "Yes O"], columns)]
    ['Ada sings', 'Yes']
    """
    format, lines = options.format_among(FORMATS, "sentences"), iter(lines)
    if options.format is None and format in (None, "txt") and (first := next(lines, None)) is not None:
        lines = chain([first], lines)
        # An ending that says nothing of it is taken for raw text, unless the first line can be nothing but columns.
        format = "conll" if first.lstrip("\ufeff").startswith(DOCUMENT) else "txt"
    if format == "jsonl":
        yield from _objects(lines, options, trained)
    elif format == "conll" or format == "conllu":
        yield from _columns(lines, options, trained, format)
    elif options.column is not None:
        raise UserError(f"{options.where} has no columns: leave --column out, or give --format conll")
    else:
        yield from _texts(lines, options)


def _texts(lines: Iterable[str], options: PredictOptions) -> Iterator[Tagging]:
    for number, line in enumerate(lines, 1):
        sentence = cut(line)
        if sentence.tokens:
            yield sentence
        else:
            options.bad(UserError(f"{options.where}:{number} has no tokens to tag: write some, or remove the line"))


def _objects(lines: Iterator[str], options: PredictOptions, trained: Trained) -> Iterator[Tagging]:
    """Objects with ready tokens as training reads them, and besides those with a raw text."""
    usual = trained.token_column if trained.token_column and not trained.token_column.isdecimal() else "tokens"
    names = (usual, "text") if options.column is None else (options.column,)
    for where, value in json_objects(options.where, lines, options.bad):
        name = next((name for name in names if name in value), None)
        try:
            if name is None:
                raise UserError(f"{where} has no field {' or '.join(map(repr, names))}: {nearest(names[0], value)}")
            if isinstance(found := value.get(name), str):
                sentence = cut(found)
            else:
                sentence = join(SentenceReader("jsonl", token=name, tagged=False).sentence(where, value).tokens)
            if not sentence.tokens:
                raise UserError(f"{where} has no tokens to tag: write some, or remove the line")
        except UserError as error:
            options.bad(error)
        else:
            yield sentence


def _columns(
    lines: Iterable[str], options: PredictOptions, trained: Trained, format: Literal["conll", "conllu"]
) -> Iterator[Tagging | DocumentMark]:
    """A sentence with a bad line is left out as a whole."""
    usual = trained.token_column if trained.token_column and trained.token_column.isdecimal() else None
    column = options.column or usual
    reader = SentenceReader(format, token=column, comments=trained.comments, tagged=False, option=OPTION)
    for found in reader.read(options.where, lines, options.bad):
        yield found if isinstance(found, DocumentMark) else join(found.tokens)
