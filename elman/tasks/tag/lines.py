"""What `elman predict` prints for taggers: columns, JSON, or the text in colours."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from elman.batches.examples import in_order
from elman.records.tagged import DocumentMark
from elman.tasks.predict import PredictOptions
from elman.tasks.tag.records import UNKNOWN, Trained, read_sentences
from elman.tasks.tag.tagging import Tagging

COLOURS = (31, 32, 33, 34, 35, 36, 91, 92, 93, 94, 95, 96)
Work = Callable[[Sequence[Tagging]], Sequence[Tagging]]
Show = Callable[[Tagging], Iterator[str]]


def tag_lines(
    work: Work, kinds: Sequence[str], lines: Iterable[str], options: PredictOptions, trained: Trained = UNKNOWN
) -> Iterator[str]:
    """The lines to print, in the order in which the sentences came.

    `work` puts the tags in, of `options.window` sentences at a time; `kinds` are what a colour is for. A line that
    says where a document begins is printed as it stands; among JSON objects there is no place for it.
    """
    show = json_lines if options.as_json else coloured(kinds) if options.colour else columns
    found = read_sentences(lines, options, trained)
    # One call for the whole window: `work` makes batches by length itself.
    for _, tagging in in_order(found, _length, partial(_work, work), batch_size=options.window, window=options.window):
        if isinstance(tagging, Tagging):
            yield from show(tagging)
        elif not options.as_json:
            yield from (tagging.line, "")


def _length(found: Tagging | DocumentMark) -> int:
    return len(found.tokens) if isinstance(found, Tagging) else 0


def _work(work: Work, found: Sequence[Tagging | DocumentMark]) -> list[Tagging | DocumentMark]:
    """Tags for the sentences; the marks between them stay as they are."""
    sentences = [one for one in found if isinstance(one, Tagging)]
    tagged = iter(work(sentences) if sentences else [])
    return [next(tagged) if isinstance(one, Tagging) else one for one in found]


def columns(tagging: Tagging) -> Iterator[str]:
    """`token<TAB>tag` lines, and an empty one."""
    for token, tag in zip(tagging.tokens, tagging.tags, strict=True):
        yield f"{token}\t{tag}"
    yield ""


def json_lines(tagging: Tagging) -> Iterator[str]:
    """One object."""
    yield json.dumps(tagging.to_dict(), ensure_ascii=False)


def coloured(kinds: Sequence[str]) -> Show:
    """The text with every span in the colour of its type, and the type behind it; or every token in that of its tag.

    >>> from dataclasses import replace
    >>> from elman.tasks.tag.tagging import TextSpan, cut
    >>> ada = TextSpan("PERSON", "Ada", 4, 7, tokens=(1, 2))
    >>> next(coloured(["PERSON"])(replace(cut("Ask Ada"), tags=("O", "B-PERSON"), spans=(ada,))))
    'Ask \\x1b[31mAda\\x1b[0m\\x1b[2m PERSON\\x1b[0m'
    """
    colours = {kind: COLOURS[place % len(COLOURS)] for place, kind in enumerate(kinds)}

    def show(tagging: Tagging) -> Iterator[str]:
        marks = [(span.start, span.end, span.type) for span in tagging.spans]
        marks = marks or [(*place, tag) for place, tag in zip(tagging.offsets, tagging.tags, strict=True)]
        shown, end = "", 0
        for start, stop, kind in marks:
            if kind in colours:
                painted = f"\x1b[{colours[kind]}m{tagging.text[start:stop]}\x1b[0m\x1b[2m {kind}\x1b[0m"
                shown, end = shown + tagging.text[end:start] + painted, stop
        yield shown + tagging.text[end:]

    return show
