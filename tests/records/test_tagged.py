"""Tagged sentences: columns, CoNLL-U, JSON lines, and what is said of wrong ones."""

import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elman.errors import UserError
from elman.records import BadLines, Place, Sentence, TaggedReader, write_tagged
from elman.records.tagged import conll_text

CONLLU = """\
# newdoc
# text = Vámonos al mar
1-2	Vámonos	_	_	_	_	_	_	_	_
1	Vamos	ir	VERB	V	Mood=Imp|Number=Plur	0	root	_	_
2	nos	nosotros	PRON	P	Number=Plur	1	obj	_	_
2.1	vamos	ir	VERB	V	_	_	_	_	_
3	mar	mar	NOUN	N	_	1	obl	_	_

"""


def write(place: Path, content: str) -> Path:
    place.write_text(content, encoding="utf-8")
    return place


def found(place: Path, **options) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    return [(sentence.tokens, sentence.tags) for sentence in TaggedReader(**options).files(place).records()]


EXPECTED = [(("New", "York"), ("B-LOC", "I-LOC")), (("Yes",), ("O",))]


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("New B-LOC\nYork I-LOC\n\nYes O\n", {}),
        ("New\tB-LOC\r\nYork\tI-LOC\r\n\t\r\n\r\nYes\tO", {}),
        ("-DOCSTART- -X- O\n\nNew NNP B-LOC\nYork  NNP I-LOC\n\n\nYes UH O\n\n", {}),
        ("B-LOC New x\nI-LOC York y\n\nO Yes z\n", {"token": 2, "tag": 1}),
        ("# a comment\nNew B-LOC\nYork I-LOC\n\n# another\n\nYes O\n", {"comments": True}),
    ],
)
def test_columns(tmp_path: Path, content: str, options: dict) -> None:
    assert found(write(tmp_path / "a.conll", content), **options) == EXPECTED


def test_a_hash_may_be_a_word_and_a_word_may_hold_blanks(tmp_path: Path) -> None:
    place = write(tmp_path / "a.conll", "#now\tO\n2 000\tB-NUM\n")
    assert found(place) == [(("#now", "2 000"), ("O", "B-NUM"))]


@pytest.mark.parametrize(
    ("tag", "tags"),
    [
        (None, ("VERB", "PRON", "NOUN")),
        ("xpos", ("V", "P", "N")),
        ("feats.Number", ("Plur", "Plur", "_")),
        ("feats.Mood", ("Imp", "_", "_")),
    ],
)
def test_conllu_without_multiword_and_empty_lines(tmp_path: Path, tag: str | None, tags: tuple[str, ...]) -> None:
    place = write(tmp_path / "a.conllu", CONLLU)
    assert found(place, tag=tag) == [(("Vamos", "nos", "mar"), tags)]
    assert next(TaggedReader().files(place).records()).where == Place(place, 4)


def test_each_file_is_read_as_it_is_written(tmp_path: Path) -> None:
    places = [write(tmp_path / "a.conllu", CONLLU), write(tmp_path / "b.conll", "Yes\tINTJ\n")]
    words = [sentence.tokens for sentence in TaggedReader().files([*places, places[1]]).records()]
    assert words == [("Vamos", "nos", "mar"), ("Yes",), ("Yes",)]


def test_json_lines_and_tokens_alone(tmp_path: Path) -> None:
    place = write(tmp_path / "a.jsonl", '{"words": ["Yes"], "tags": ["O"]}\n\n{"words": ["No"], "tags": ["O"]}\n')
    assert found(place, token="words") == [(("Yes",), ("O",)), (("No",), ("O",))]
    assert found(place, token="words", tagged=False) == [(("Yes",), ()), (("No",), ())]
    assert found(write(tmp_path / "a.txt", "New\nYork\n\nYes\n"), tagged=False) == [
        (("New", "York"), ()),
        (("Yes",), ()),
    ]


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("a.conll", "a O\nb O O\n", {}, r"a\.conll:2 has 3 columns where 2 belong"),
        ("a.conll", "a O\n\nb\n", {}, r"a\.conll:3 has 1 columns where 2 belong"),
        (
            "a.conll",
            "# so it begins\na O\n",
            {},
            r"2 columns where 4 belong: mend the line, or say -s data\.comments=true if #",
        ),
        ("a.conll", "a\nb\n", {}, r"a\.conll:1 has one column"),
        ("a.conll", "a O\n", {"tag": 3}, r"a\.conll:1 has 2 columns, so there is no column 3"),
        ("a.conll", "a O\n", {"tag": "upos"}, "numbers from 1, not 'upos'"),
        ("a.conll", "\n\n", {}, "holds no sentences"),
        ("a.conllu", "1\ta\n", {}, r"a\.conllu:1 has 2 columns where 10 belong"),
        ("a.conllu", "a b c\n", {}, r"a\.conllu:1 begins with 'a b c'"),
        ("a.conllu", CONLLU, {"tag": "pos"}, "CoNLL-U has no tag 'pos': did you mean '[ux]pos'"),
        ("a.jsonl", '{"tokens": ["a", "b"], "tags": ["O"]}\n', {}, r"a\.jsonl:1 has 2 tokens and 1 tags"),
        ("a.jsonl", '{"tokens": [], "tags": []}\n', {}, r"a\.jsonl:1 is a sentence without tokens"),
        ("a.jsonl", '{"tokens": ["", "b"], "tags": ["O", "O"]}\n', {}, r"a\.jsonl:1 has an empty token"),
        ("a.jsonl", '{"tokens": "a b", "tags": ["O"]}\n', {}, "no list of strings in field 'tokens'"),
        ("a.jsonl", '{"token": ["a"], "tags": ["O"]}\n', {}, "no field 'tokens': did you mean 'token'"),
        ("a.conll", "a O\n", {"format": "conlu"}, "did you mean 'conllu'"),
    ],
)
def test_wrong_input_is_one_sentence(tmp_path: Path, name: str, content: str, options: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        TaggedReader(**options).files(write(tmp_path / name, content)).read()


def test_a_sentence_with_a_bad_line_is_skipped_whole(tmp_path: Path) -> None:
    place = write(tmp_path / "a.conll", "a O\n\nb O\nc\nd O\n\ne O\n")
    told: list[str] = []
    bad = BadLines("skip", told.append)
    assert [sentence.tokens for sentence in TaggedReader().files(place).records(bad)] == [("a",), ("e",)]
    assert bad.count == 1
    assert "a.conll:4 " in told[0]


def test_a_file_without_empty_lines_is_not_taken_into_memory(tmp_path: Path) -> None:
    place = write(tmp_path / "a.conll", "a O\n" * 100_002)
    with pytest.raises(UserError, match="put one after each sentence"):
        list(TaggedReader().files(place).records())


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    files = TaggedReader().files(write(tmp_path / "a.conll", "New B-LOC\nYork I-LOC\n\n" * 50_000))
    tracemalloc.start()
    try:
        count = sum(1 for _ in files.records())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 50_000
    assert peak < 5e6


WORD = st.text(alphabet=st.sampled_from("aß#.\"'\\ü文"), min_size=1, max_size=5)
SENTENCES = st.lists(
    st.lists(st.tuples(WORD, st.sampled_from(["O", "B-X", "I-X"])), min_size=1, max_size=5).map(
        lambda pairs: Sentence(tuple(token for token, _ in pairs), tuple(tag for _, tag in pairs))
    ),
    min_size=1,
    max_size=5,
)


@pytest.mark.parametrize("name", ["a.conll", "a.jsonl"])
@given(sentences=SENTENCES)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, name: str, sentences: list[Sentence]
) -> None:
    place = tmp_path_factory.mktemp("tagged") / name
    assert write_tagged(place, sentences) == len(sentences)
    assert found(place) == [(sentence.tokens, sentence.tags) for sentence in sentences]


def test_columns_cannot_hold_every_token() -> None:
    for token in ("a\tb", "a\nb", " "):
        with pytest.raises(UserError, match="columns cannot hold"):
            conll_text(Sentence((token,), ("O",)))


@pytest.mark.data
@pytest.mark.parametrize(
    ("path", "sentences", "words", "tags"),
    [
        ("ud-english-ewt/en_ewt-ud-dev.conllu", 2001, 25_147, 17),
        ("ud-english-ewt/en_ewt-ud-test.conllu", 2077, 25_094, 17),
        ("wnut17/wnut17train.conll", 3394, 62_730, 13),
        ("wnut17/emerging.dev.conll", 1009, 15_733, 13),
        ("wnut17/emerging.test.annotated", 1287, 23_394, 13),
    ],
)
def test_published_sizes(data_dir: Path, path: str, sentences: int, words: int, tags: int) -> None:
    read = TaggedReader().files(data_dir / path).read()
    counts = Counter(tag for sentence in read for tag in sentence.tags)
    assert (len(read), sum(counts.values()), len(counts)) == (sentences, words, tags)
