"""Spans of tokens and the tags that write them: BIO, IOB1, BIOES.

            Jeff   Elman  San Diego   met  Rumelhart
    BIO     B-PER  I-PER  B-LOC I-LOC O    B-PER      B opens every span
    IOB1    I-PER  I-PER  I-LOC I-LOC O    I-PER      B only where two spans of one type touch
    BIOES   B-PER  E-PER  B-LOC E-LOC O    S-PER      E closes a span, S is one of a single token

Spans are read as the CoNLL shared tasks' script conlleval reads them (Tjong Kim Sang and Buchholz, 2000), so that
every sequence of such tags has spans, the invalid ones too; the strict reading drops what the scheme would not write.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

from elman.errors import UserError

Scheme = Literal["BIO", "IOB1", "BIOES"]

PREFIXES: dict[Scheme, str] = {"BIO": "BI", "IOB1": "BI", "BIOES": "BIES"}
OUTSIDE = "O"
UNTYPED = "_"  # the type of the tags B, I, E, S that name none


class Span(NamedTuple):
    """The tokens from `start` up to, not including, `end`, and what they are."""

    start: int
    end: int
    type: str


def split_tag(tag: str) -> tuple[str, str]:
    """A tag's prefix and its type.

    >>> split_tag("B-PER"), split_tag("I-GPE-city"), split_tag("B"), split_tag("O")
    (('B', 'PER'), ('I', 'GPE-city'), ('B', '_'), ('O', '_'))
    """
    prefix, _, kind = tag.partition("-")
    if tag != OUTSIDE and prefix not in ("B", "I", "E", "S"):
        raise UserError(f"the tag {tag[:200]!r} marks no span: write O, or one of B-, I-, E-, S- before the type")
    return prefix, kind or UNTYPED


def read_spans(tags: Sequence[str], strict: Scheme | None = None) -> list[Span]:
    """The spans that tags of any scheme stand for, as conlleval reads them; or only those that `strict` would write so.

    >>> read_spans(["B-PER", "I-PER", "O", "I-LOC", "I-PER"])
    [Span(start=0, end=2, type='PER'), Span(start=3, end=4, type='LOC'), Span(start=4, end=5, type='PER')]
    >>> read_spans(["B-PER", "I-PER", "O", "I-LOC", "I-PER"], strict="BIO")
    [Span(start=0, end=2, type='PER')]
    """
    marks = [split_tag(tag) for tag in tags]
    spans = []
    start = 0
    outside = split_tag(OUTSIDE)
    for place, (before, after) in enumerate(pairwise([outside, *marks, outside])):
        # Between two tokens a span ends, another begins, or both: or else they belong together.
        if before[0] in "OES" or after[0] in "OBS" or before[1] != after[1]:
            if before[0] != OUTSIDE:
                spans.append(Span(start, place, before[1]))
            start = place
    return spans if strict is None else _strictly(spans, marks, strict)


def _strictly(spans: list[Span], marks: list[tuple[str, str]], scheme: Scheme) -> list[Span]:
    for prefix, kind in marks:
        if prefix not in OUTSIDE + PREFIXES[scheme]:
            raise UserError(
                f"the tag '{prefix}-{kind}' is not of the scheme {scheme}: name the scheme, or convert first"
            )
    proper = [split_tag(tag) for tag in write_tags(spans, len(marks), scheme)]
    return [span for span in spans if marks[span.start : span.end] == proper[span.start : span.end]]


def write_tags(spans: Iterable[Span], length: int, scheme: Scheme = "BIO") -> list[str]:
    """The tags of `length` tokens that hold `spans`.

    >>> write_tags([Span(0, 2, "PER"), Span(2, 3, "PER")], length=4, scheme="IOB1")
    ['I-PER', 'I-PER', 'B-PER', 'O']
    >>> write_tags([Span(0, 2, "PER"), Span(2, 3, "PER")], length=4, scheme="BIOES")
    ['B-PER', 'E-PER', 'S-PER', 'O']
    """
    tags = [OUTSIDE] * length
    last = Span(0, 0, "")
    for span in sorted(spans):
        if not last.end <= span.start < span.end <= length:
            raise UserError(
                f"the span from {span.start} to {span.end} overlaps another or is none of {length} tokens: "
                "give spans that lie apart"
            )
        touches = last.end == span.start and last.type == span.type
        ending = "" if span.type == UNTYPED else f"-{span.type}"
        prefixes = _prefixes(span.end - span.start, touches, scheme)
        tags[span.start : span.end] = [prefix + ending for prefix in prefixes]
        last = span
    return tags


def _prefixes(length: int, touches: bool, scheme: Scheme) -> str:
    """The prefixes of a span; `touches` says that one of the same type lies directly before it."""
    if scheme == "BIOES":
        return "S" if length == 1 else "B" + "I" * (length - 2) + "E"
    first = "B" if scheme == "BIO" or touches else "I"
    return first + "I" * (length - 1)


def convert(tags: Sequence[str], scheme: Scheme) -> list[str]:
    """Tags that hold the spans of `tags`, written in another scheme.

    >>> convert(["I-PER", "I-PER", "O", "I-LOC"], "BIOES")
    ['B-PER', 'E-PER', 'O', 'S-LOC']
    """
    if scheme not in get_args(Scheme):
        raise UserError(f"there is no scheme {scheme!r}: take one of {', '.join(get_args(Scheme))}")
    return write_tags(read_spans(tags), len(tags), scheme)


class Repair(NamedTuple):
    """Valid tags, how many of them differ from those given, and the place of the first that does."""

    tags: list[str]
    changed: int
    first: int | None


def repair(tags: Sequence[str], scheme: Scheme = "BIO") -> Repair:
    """The valid tags that conlleval's reading of `tags` amounts to; valid ones stay as they are.

    >>> repair(["O", "I-PER", "I-PER", "I-LOC"])
    Repair(tags=['O', 'B-PER', 'I-PER', 'B-LOC'], changed=2, first=1)
    """
    valid = convert(tags, scheme)
    changed = [
        place for place, (old, new) in enumerate(zip(tags, valid, strict=True)) if split_tag(old) != split_tag(new)
    ]
    return Repair(valid, len(changed), changed[0] if changed else None)


def detect_scheme(sequences: Iterable[Sequence[str]]) -> Scheme | None:
    """The scheme that most spans are written in; None where the tags mark no spans (parts of speech).

    >>> detect_scheme([["I-PER", "I-PER", "O"], ["O", "I-LOC", "B-LOC"]])
    'IOB1'
    >>> detect_scheme([["DET", "NOUN"]]) is None
    True
    """
    votes: Counter[Scheme] = Counter({"BIO": 0, "IOB1": 0, "BIOES": 0})  # a draw goes to the first of them
    for tags in sequences:
        try:
            spans = read_spans(tags)
        except UserError:
            return None
        last = Span(0, 0, "")
        for span in spans:
            touches = last.end == span.start and last.type == span.type
            if tags[span.end - 1][0] in "ES":
                votes["BIOES"] += 1
            elif tags[span.start][0] == "I":
                votes["IOB1"] += 1
            elif not touches:  # where it touches, IOB1 has a B as well
                votes["BIO"] += 1
            last = span
    return max(votes, key=lambda scheme: votes[scheme])
