import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elman.errors import UserError
from elman.metrics.spans import span_scores
from elman.text.spans import Scheme, Span, convert, detect_scheme, read_spans, repair, write_tags

SCHEMES: tuple[Scheme, ...] = ("BIO", "IOB1", "BIOES")
TYPES = ("PER", "LOC", "GPE-city")


def tags_with(prefixes: str, *extra: str) -> list[str]:
    return ["O", *extra, *(f"{prefix}-{kind}" for prefix in prefixes for kind in TYPES)]


def sequences(alphabet: list[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(alphabet), max_size=12)


def gold_and_predicted(alphabet: list[str]) -> st.SearchStrategy[list[tuple[list[str], list[str]]]]:
    """Sentences tagged twice, any sequences at all; often the two agree in part."""
    tag = st.sampled_from(alphabet)
    pair = st.one_of(tag.map(lambda same: (same, same)), st.tuples(tag, tag))
    sentence = st.lists(pair, max_size=10).map(lambda pairs: ([a for a, _ in pairs], [b for _, b in pairs]))
    return st.lists(sentence, min_size=1, max_size=4)


def assert_equals_seqeval(
    sentences: list[tuple[list[str], list[str]]], strict: Scheme | None, scheme: type | None
) -> None:
    from seqeval.metrics.sequence_labeling import precision_recall_fscore_support as default_scores
    from seqeval.metrics.v1 import precision_recall_fscore_support as strict_scores

    gold, predicted = [a for a, _ in sentences], [b for _, b in sentences]
    theirs = default_scores if scheme is None else strict_scores
    options = {} if scheme is None else {"scheme": scheme}
    ours = span_scores(gold, predicted, strict)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ratios over nothing
        precision, recall, f1, support = theirs(gold, predicted, average=None, zero_division=0, **options)
        micro = theirs(gold, predicted, average="micro", zero_division=0, **options)
        macro = theirs(gold, predicted, average="macro", zero_division=0, **options) if len(f1) else (0, 0, 0, 0)
    assert [score.support for score in ours.by_type.values()] == list(support)
    assert [score.precision for score in ours.by_type.values()] == pytest.approx(list(precision))
    assert [score.recall for score in ours.by_type.values()] == pytest.approx(list(recall))
    assert [score.f1 for score in ours.by_type.values()] == pytest.approx(list(f1))
    assert (ours.overall.precision, ours.overall.recall, ours.overall.f1, ours.overall.support) == pytest.approx(micro)
    assert ours.macro_f1 == pytest.approx(macro[2])


@settings(deadline=None)
@given(sentences=gold_and_predicted(tags_with("BIES", "B", "I", "E", "S")))
def test_default_scores_equal_seqevals_on_any_sequences(sentences: list[tuple[list[str], list[str]]]) -> None:
    pytest.importorskip("seqeval")
    assert_equals_seqeval(sentences, strict=None, scheme=None)


@settings(deadline=None)
@given(sentences=gold_and_predicted(tags_with("BI", "B", "I")))
def test_strict_bio_scores_equal_seqevals(sentences: list[tuple[list[str], list[str]]]) -> None:
    scheme = pytest.importorskip("seqeval.scheme")
    assert_equals_seqeval(sentences, strict="BIO", scheme=scheme.IOB2)


@settings(deadline=None)
@given(sentences=gold_and_predicted(tags_with("BIES", "B", "I", "E", "S")))
def test_strict_bioes_scores_equal_seqevals(sentences: list[tuple[list[str], list[str]]]) -> None:
    scheme = pytest.importorskip("seqeval.scheme")
    assert_equals_seqeval(sentences, strict="BIOES", scheme=scheme.IOBES)


@settings(deadline=None)
@given(tags=sequences(tags_with("BIES", "B", "I", "E", "S")))
def test_read_spans_equal_seqevals_entities(tags: list[str]) -> None:
    labeling = pytest.importorskip("seqeval.metrics.sequence_labeling")
    theirs = [Span(start, last + 1, kind) for kind, start, last in labeling.get_entities(tags)]
    assert read_spans(tags) == theirs


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("I-A I-A O", [Span(0, 2, "A")]),  # no B: opened all the same
        ("B-A I-B", [Span(0, 1, "A"), Span(1, 2, "B")]),  # another type: another span
        ("B-A B-A", [Span(0, 1, "A"), Span(1, 2, "A")]),
        ("B-A E-A I-A", [Span(0, 2, "A"), Span(2, 3, "A")]),  # nothing goes on after E
        ("S-A E-A", [Span(0, 1, "A"), Span(1, 2, "A")]),
        ("", []),
    ],
)
def test_invalid_sequences_are_read_as_conlleval_does(tags: str, spans: list[Span]) -> None:
    assert read_spans(tags.split()) == spans


@given(tags=sequences(tags_with("BIES", "B", "S")), route=st.lists(st.sampled_from(SCHEMES), min_size=1, max_size=4))
def test_conversion_keeps_the_spans_and_is_valid(tags: list[str], route: list[Scheme]) -> None:
    converted = tags
    for scheme in route:
        converted = convert(converted, scheme)
        assert read_spans(converted) == read_spans(tags)
        assert read_spans(converted, strict=scheme) == read_spans(tags)
        assert repair(converted, scheme) == (converted, 0, None)


@given(tags=sequences(tags_with("BI")))
def test_repair_counts_what_it_changed(tags: list[str]) -> None:
    repaired = repair(tags)
    places = [place for place, pair in enumerate(zip(tags, repaired.tags, strict=True)) if pair[0] != pair[1]]
    assert repaired.changed == len(places)
    assert repaired.first == (places[0] if places else None)
    assert read_spans(repaired.tags, strict="BIO") == read_spans(tags)


@pytest.mark.parametrize(
    ("scheme", "sentences"),
    [
        ("BIO", ["O O", ""]),
        ("BIO", ["B-A I-A O", "B-B B-B"]),
        ("BIO", ["B-A I-A O B-A", "O I-A"]),  # one slip makes it no IOB1
        ("IOB1", ["I-A I-A O", "I-A B-A"]),
        ("BIOES", ["S-A O B-B E-B"]),
        ("BIOES", ["S-A O S-B", "S-B B-A"]),
        (None, ["DET NOUN", "B-A O"]),
    ],
)
def test_the_scheme_is_the_one_of_most_spans(scheme: Scheme | None, sentences: list[str]) -> None:
    assert detect_scheme([sentence.split() for sentence in sentences]) == scheme


def test_a_report_has_every_type_and_the_averages() -> None:
    scores = span_scores([["B-A", "O", "B-B"]], [["B-A", "O", "B-C"]])
    report = scores.to_dict()
    assert (report["f1"], report["macro_f1"]) == (0.5, pytest.approx(1 / 3))
    assert list(report["by_type"]) == ["A", "B", "C"]
    assert [line.split()[0] for line in scores.text().splitlines()[1:4]] == ["A", "B", "C"]
    assert span_scores([], []).overall.f1 == 0.0


@pytest.mark.parametrize("tag", ["X-PER", "NOUN", "", "-PER", "o", "O-PER", "BI-PER"])
def test_a_tag_that_marks_no_span_is_named(tag: str) -> None:
    with pytest.raises(UserError, match=repr(tag)):
        read_spans(["O", tag])


def test_wrong_input_is_one_sentence() -> None:
    with pytest.raises(UserError, match="sentence 2 has 2 tags and 1 predicted"):
        span_scores([["O"], ["O", "O"]], [["O"], ["O"]])
    with pytest.raises(UserError, match="1 tagged sentences and 0 predictions"):
        span_scores([["O"]], [])
    with pytest.raises(UserError, match="'S-A' is not of the scheme BIO"):
        span_scores([["S-A"]], [["O"]], strict="BIO")
    for spans in ([Span(0, 2, "A"), Span(1, 3, "B")], [Span(2, 2, "A")], [Span(2, 4, "A")]):
        with pytest.raises(UserError, match="lie apart"):
            write_tags(spans, length=3)
