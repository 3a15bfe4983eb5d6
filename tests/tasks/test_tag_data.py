"""What is read, repaired, held out, warned of and refused."""

from collections import Counter
from pathlib import Path

import pytest

from elman.errors import UserError
from elman.records.tagged import Sentence
from elman.tasks import TASKS
from elman.tasks.tag import TagRecipe
from elman.tasks.task import Data
from tests.tasks.runs import open_task
from tests.tasks.tag_runs import recipe, sentences, write

CONLLU = "# text = Yes\n1-2\tYesno\t_\t_\t_\t_\t_\t_\t_\t_\n1\tYes\tyes\tINTJ\tUH\tPolarity=Pos\t0\troot\t_\t_\n"


def opened(train: Path, *settings: str) -> tuple[Data[Sentence], list[str]]:
    said: list[str] = []
    return open_task("tag", recipe(train, *settings), said), said


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        (("I-PER", "I-PER", "O", "I-LOC"), "IOB1"),
        (("B-PER", "I-PER", "O", "B-LOC"), "BIO"),
        (("B-PER", "E-PER", "O", "S-LOC"), "BIOES"),
        (("NOUN", "VERB", "NOUN", "X"), None),
    ],
)
def test_the_scheme_is_seen_from_the_tags(tmp_path: Path, tags: tuple[str, ...], scheme: str | None) -> None:
    data, said = opened(write(tmp_path / "a.conll", [Sentence(("a", "b", "c", "d"), tags)] * 4))
    assert data.facts["scheme"] == scheme
    assert data.train[0].tags == tags
    assert not [line for line in said if "not valid" in line]


def test_sentences_with_spans_are_had_as_often_as_the_recipe_says(tmp_path: Path) -> None:
    found = [Sentence(("Ada", str(n)), ("B-PER", "O")) for n in range(20)]
    without = [Sentence(("nobody", str(n)), ("O", "O")) for n in range(30)]
    told = recipe(write(tmp_path / "a.conll", [*found, *without]), "batch.with_spans=3")
    data = open_task("tag", told)
    counts = Counter(sentence.tokens for sentence in TASKS["tag"].examples(told, data, None))
    assert {tokens[0]: count for tokens, count in counts.items()} == {"Ada": 3, "nobody": 1}
    assert len(counts) == len(data.train)


def test_an_odd_tag_among_spans_is_told(tmp_path: Path) -> None:
    spans = [Sentence(("a", "b", "c"), ("B-PER", "I-PER", "O"))] * 4
    path = write(tmp_path / "a.conll", [*spans, Sentence(("d", "e"), ("O", "LOC"))])
    data, said = opened(path)
    assert data.facts["scheme"] is None
    (line,) = (line for line in said if "no span F1" in line)
    assert line.startswith("warning: 1 of the training tags mark no span, the first 'LOC' at ")
    assert f"{path}:17" in line
    assert not [line for line in opened(path, "data.scheme=plain")[1] if "no span F1" in line]
    plain = write(tmp_path / "b.conll", [Sentence(("a", "b"), ("NOUN", "S-CONJ"))] * 4)  # no scheme at all
    assert not [line for line in opened(plain)[1] if "no span F1" in line]


def test_a_scheme_that_is_named_is_not_guessed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.conll", [Sentence(("a", "b"), ("B-x", "O"))] * 3)
    assert opened(path, "data.scheme=plain")[0].facts["scheme"] is None


def test_invalid_tags_are_repaired_and_the_first_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_text("Ada B-PER\nsings O\n\nin O\nRome I-LOC\n\nYes O\n\nto O\nOslo B-LOC\n\nAda B-PER\n")
    data, said = opened(path, f'data.dev=["{path}"]')
    assert data.train[1].tags == ("O", "B-LOC")
    (line,) = (line for line in said if "training tags" in line)
    assert line.startswith("warning: 1 of the training tags are not valid BIO and are read as conlleval reads them")
    assert line.endswith(f"the first at {path}:4, token 2 (I-LOC)")


def test_parts_of_speech_features_and_other_columns_of_conllu(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(f"{CONLLU}2\tno\tno\tDET\tDT\t_\t1\tdet\t_\t_\n\n" * 3)
    for column, tags in (
        ("upos", ("INTJ", "DET")),
        ("xpos", ("UH", "DT")),
        ("feats.Polarity", ("Pos", "_")),
    ):
        data, _ = opened(path, f"data.tag_column={column}")
        assert data.train[0] == Sentence(("Yes", "no"), tags, data.train[0].where)


def test_held_out_sentences_follow_from_the_seed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.conll")
    first, again, other = (opened(path, f"train.seed={seed}")[0] for seed in (1, 1, 2))
    assert len(first.dev) == 6 and len(first.train) == 54
    assert first.dev == again.dev != other.dev
    assert not {sentence.where for sentence in first.dev} & {sentence.where for sentence in first.train}


def test_unknown_tags_and_sentences_in_both_sets_are_counted_aloud(tmp_path: Path) -> None:
    train, test = write(tmp_path / "a.conll"), tmp_path / "b.conll"
    write(test, [sentences(1)[0], Sentence(("Zoo",), ("B-LOK",))])
    _, said = opened(train, f'data.dev=["{train}"]', f'data.test=["{test}"]')
    assert any(
        "1 test tokens have a tag that training never saw" in line and "'B-LOK'" in line and "'LOC'?" in line
        for line in said
    )
    assert any(line.startswith("warning: 1 of the 2 test sentences stand in the training set too") for line in said)


@pytest.mark.parametrize(
    ("text", "settings", "sentence"),
    [
        ("a O\nb O\n\nc O\n", (), "all training tokens have the tag 'O'"),
        ("a X\nb\n", (), r"a\.conll:2 has 1 columns where 2 belong"),
        ("a X\n\nb Y\n", ("data.tag_column=3",), r"a\.conll:1 has 2 columns, so there is no column 3"),
        ("a B-x\nb Y\n", ("data.scheme=BIO",), r"a\.conll:1: the tag 'Y' marks no span"),
        ("a X\nb Y\n", (), "one training sentence only"),
        ("\n", (), "holds no sentences"),
    ],
)
def test_wrong_input_is_one_sentence(tmp_path: Path, text: str, settings: tuple[str, ...], sentence: str) -> None:
    path = tmp_path / "a.conll"
    path.write_text(text)
    with pytest.raises(UserError, match=sentence) as error:
        opened(path, *settings)
    assert "\n" not in str(error.value)


def test_tokens_and_tags_of_different_length_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"tokens": ["a", "b"], "tags": ["X"]}\n')
    with pytest.raises(UserError, match=r"a\.jsonl:1 has 2 tokens and 1 tags"):
        opened(path)


def test_nothing_to_train_on() -> None:
    with pytest.raises(UserError, match="nothing to train on"):
        open_task("tag", TagRecipe())


def test_some_of_the_sentences_are_drawn_and_fewer_are_among_more(tmp_path: Path) -> None:
    path = write(tmp_path / "a.conll", sentences(40))
    few, more = (opened(path, f"data.labels={count}")[0] for count in (5, 20))
    assert (len(few.train), len(more.train), len(few.dev)) == (5, 20, 4)
    assert {one.where for one in few.train} < {one.where for one in more.train}
    with pytest.raises(UserError, match=r"data\.labels = 99, and there are 36 training sentences"):
        opened(path, "data.labels=99")
