"""Pairs that are made of running text: turns of a conversation, headings, trees as brackets."""

from pathlib import Path

import pytest
from hypothesis import given, settings

from elman.corpora import locate
from elman.errors import UserError
from elman.records import PairReader, Tree, iterate_trees, parse_tree
from elman.records.headings import WORDS, heading
from elman.records.trees import brackets, with_words
from tests.records.test_trees import TREES

PLAY = "First:\nBefore we go,\nhear me.\n\nAll:\nSpeak.\n\nFirst:\nHear this: no.\n"


def pairs(path: Path, format: str, **options: int) -> list[tuple[str, str]]:
    found = PairReader(format=format, **options).files(path)  # type: ignore[arg-type]
    return [(pair.source, pair.target) for pair in found]


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


# Dialogue


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PLAY, [("Before we go, hear me.", "Speak."), ("Speak.", "Hear this: no.")]),
        ("Ann: Hi.\nBob: Hello.\n\nAnn: Bye.\n", [("Hi.", "Hello.")]),
        ("Hi.\nNote: hello.\n\n\nBye.\nSo long.\n", [("Hi.", "Note: hello."), ("Bye.", "So long.")]),
        ("Hi.\n", []),
        ("Ann:\nOne,\n\ntwo.\n\nBob:\n\nAnn:\n\nBob:\nThree.\n", [("One, two.", "Three.")]),
    ],
)
def test_a_turn_and_the_next(tmp_path: Path, text: str, expected: list[tuple[str, str]]) -> None:
    assert pairs(written(tmp_path / "talk.txt", text), "dialogue") == expected


def test_turns_know_where_they_stand_and_can_be_turned_round(tmp_path: Path) -> None:
    path = written(tmp_path / "talk.txt", PLAY)
    places = [pair.where.line for pair in PairReader(format="dialogue").files(path) if pair.where]
    assert places == [1, 5]
    assert pairs(path, "dialogue", source=2, target=1)[0] == ("Speak.", "Before we go, hear me.")
    with pytest.raises(UserError, match="has turns in column 1 and replies in column 2"):
        PairReader(format="dialogue", source="de").files(path)


@pytest.mark.data
def test_the_plays_are_read_as_turns(data_dir: Path) -> None:
    found = list(PairReader(format="dialogue").files(locate("tinyshakespeare", data_dir)["train"]))
    assert len(found) > 7_000
    assert found[0].source == "Before we proceed any further, hear me speak." and found[0].target == "Speak, speak."


# Headings


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("# Guide", "Guide"),
        ("###### A b ##", "A b"),
        ("== Plot ==", "Plot"),
        (" = = = Early life = = = ", "Early life"),
        (" = Robert <unk> = ", "Robert <unk>"),
        ("#hash", None),
        ("a = b", None),
        ("= =", None),
        ("====", None),
        ("== Plot", None),
        ("# ", None),
    ],
)
def test_what_a_heading_is(line: str, title: str | None) -> None:
    assert heading(line) == title


def test_the_first_words_below_a_heading(tmp_path: Path) -> None:
    long = " ".join(["word"] * (WORDS + 9))
    text = "Before.\n# One\n## Two\n\n```\n# no heading\n```\n\nFirst line\nsecond line\n\nAnother.\n"
    text += f"# Three\n{long}\n# Four\n"
    path = written(tmp_path / "guide.md", text)
    assert pairs(path, "headings") == [("First line second line", "Two"), (" ".join(["word"] * WORDS), "Three")]
    places = [pair.where.line for pair in PairReader(format="headings").files(path) if pair.where]
    assert places == [3, 13]


@pytest.mark.data
def test_wikipedia_has_headings(data_dir: Path) -> None:
    found = list(PairReader(format="headings").files(locate("wikitext2", data_dir)["test"]))
    assert len(found) > 500
    assert found[0].target == "Robert <unk>" and found[0].source.startswith("Robert <unk> is an English film")


# Trees


def test_trees_are_guessed_and_read_as_brackets(tmp_path: Path) -> None:
    path = written(tmp_path / "trees.txt", "(3 (2 It) (4 (3 works) (2 .)))\n(S (NP (D a) (N b)) (V c))\n")
    found = PairReader().files(path)
    assert found.format == "trees"
    assert [(pair.source, pair.target) for pair in found] == [
        ("It works .", "(3 2 (4 3 2 ) )"),
        ("a b c", "(S (NP D N ) V )"),
    ]


@settings(deadline=None)
@given(tree=TREES)
def test_brackets_and_words_give_the_tree_back(tree: Tree) -> None:
    assert with_words(brackets(tree), tree.tokens()) == tree
    assert with_words(brackets(tree), [*tree.tokens(), "more"]) is None
    assert with_words(brackets(tree), tree.tokens()[:-1]) is None


@pytest.mark.parametrize("line", ["", ")", "(S", "(S )", "a b", "( a )", "(S a ) b", "(S a ) )"])
def test_what_is_no_tree_is_none(line: str) -> None:
    assert with_words(line, ["one"]) is None


@pytest.mark.data
def test_the_treebank_survives(data_dir: Path) -> None:
    for tree, _ in iterate_trees(data_dir / "sst-trees" / "dev.txt"):
        assert with_words(brackets(tree), tree.tokens()) == tree


def test_a_word_alone_is_a_tree() -> None:
    assert brackets(parse_tree("(2 fine)")) == "2" and str(with_words("2", ["fine"])) == "(2 fine)"
