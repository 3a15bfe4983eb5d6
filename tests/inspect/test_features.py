"""Units that follow a feature: one that is there is found, by a unit and by a probe, and nothing is found in noise."""

import random
from pathlib import Path

import numpy as np
import pytest

import elman.inspect
from elman.errors import UserError
from elman.inspect import features
from elman.inspect.features import decoded_pieces, follow, read_feature
from elman.inspect.traces import corpus_ids
from elman.tasks.language import LanguageModel
from elman.tasks.traces import trace_text
from tests.inspect.brackets import brackets, trained
from tests.tasks.runs import prose, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("features")


@pytest.fixture(scope="module")
def model(folder: Path) -> LanguageModel:
    return trained(folder)


def test_an_open_bracket_is_found_by_a_unit_and_by_the_probe(model: LanguageModel, folder: Path) -> None:
    found = follow(model, "open:()", corpus=folder / "held.txt")
    assert found.unit.found and found.probe.found
    assert abs(found.units[0].held_out) > 0.7 > 0.3 > found.unit.best_of_chance
    assert found.probe.measure == "AUC" and found.probe.score > 0.98
    assert found.probe.chance == pytest.approx(0.5, abs=0.1)
    held = (folder / "held.txt").read_text()
    best = found.units[0]
    trace = trace_text(model, held)
    half = len(held) // 2
    depth = np.array([held[: at + 1].count("(") - held[: at + 1].count(")") for at in range(len(held))])
    column = trace.parts[best.part][:, best.unit]
    assert np.corrcoef(column[:half], depth[:half])[0, 1] == pytest.approx(best.correlation, abs=1e-3)
    assert np.corrcoef(column[half:], depth[half:])[0, 1] == pytest.approx(best.held_out, abs=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_found_in_labels_of_chance(model: LanguageModel, folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    count = len(corpus_ids(model, folder / "held.txt"))
    labels = folder / f"labels-{seed}.txt"
    kinds = [lambda: chance.choice("01"), lambda: chance.choice("xyz"), lambda: str(chance.gauss(0, 1))]
    labels.write_text("".join(f"{kinds[seed % 3]()}\n" for _ in range(count)))
    found = follow(model, f"labels:{labels}", corpus=folder / "held.txt", seed=seed)
    assert not found.probe.found and not found.unit.found
    assert found.probe.measure == ("correlation" if seed == 2 else "AUC")


def test_labels_numbers_and_positions_are_found_where_they_are_there(model: LanguageModel, folder: Path) -> None:
    held = (folder / "held.txt").read_text()
    names = folder / "names.txt"
    names.write_text(
        "".join(f"{'sign' if letter in '()' else 'line' if letter == chr(10) else letter}\n" for letter in held)
    )
    several = follow(model, f"labels:{names}", corpus=folder / "held.txt")
    assert several.probe.found and several.probe.measure == "AUC" and several.probe.score > 0.95
    line = follow(model, "regex:[(]a", corpus=folder / "held.txt")
    assert line.probe.found and line.tokens == len(held)
    position = follow(model, "line-position", [held])
    assert position.probe.measure == "correlation"


def test_the_view_shows_the_feature_and_its_units_in_each_text(model: LanguageModel, folder: Path) -> None:
    corpus = str(folder / "held.txt")
    texts = ["ab(ca)b", "(c)"]
    explanation = elman.inspect.explain(model, texts, view="features", feature="open:()", corpus=corpus)
    assert explanation.data[0].values == [0, 0, 1, 1, 1, 0, 0]
    told = explanation.to_dict()["texts"][1]
    assert len(told["activations"]) == 3 and len(told["activations"][0]) == 3
    assert told["following"]["probe"]["found"] is True and told["following"]["units"][0]["part"] in ("1.h", "1.c")
    kinds = [panel.kind for panel in explanation.page().columns[0].panels]
    assert kinds == ["note", "tokens", "tokens", "tokens", "tokens", "table", "table"]
    own = elman.inspect.explain(model, [brackets(20, 3), brackets(20, 4)], view="features", feature="open:()")
    assert own.data[0].following == own.data[1].following


def test_features_are_computed_on_the_text_of_the_tokens(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "prose.txt").write_text(prose())
    words = run(tmp_path / "prose.txt", tmp_path / "words", "train.steps=2", "text.kind=words").tokenizer
    ids = words.encode("the cat sat\non a mat\n").tolist()
    pieces = decoded_pieces(words, ids)
    assert "".join(pieces) == words.decode(ids) == "the cat sat\non a mat\n"
    assert read_feature("line-position")[0](pieces).tolist() == [1, 2, 3, 0, 1, 2, 3, 0]
    assert read_feature("regex:at")[0](pieces).tolist() == [0, 1, 1, 0, 0, 0, 1, 0]
    assert read_feature("word-position")[0](list("ab cde\nf")).tolist() == [1, 2, 0, 1, 2, 3, 0, 1]
    assert read_feature('open:""')[0](list('a"b"c"d\n\ne')).tolist() == [0, 1, 1, 0, 0, 1, 1, 1, 0, 0]
    assert read_feature("open:()")[0](["((a", "))", ")(b)"]).tolist() == [1, 0, 0]


def test_wrong_input_is_told_in_a_sentence(model: LanguageModel, folder: Path) -> None:
    corpus = str(folder / "held.txt")
    (folder / "few.txt").write_text("1\n2\n")
    (folder / "latin.txt").write_bytes(b"caf\xe9 (ab) " * 90)
    (folder / "seldom.txt").write_text(brackets(60, 0) + "\n\n" + brackets(60, 1))
    for options, message in (
        ({}, "say what units are to follow"),
        ({"feature": "regex:("}, r"regular expression '\(' cannot be read"),
        ({"feature": "regex:"}, "expression is empty"),
        ({"feature": "labels:"}, "names no file"),
        ({"feature": "labels:/nope"}, "^no such file: /nope$"),
        ({"feature": "regex:zz"}, "'regex:zz' is never there"),
        ({"feature": r"regex:[\s\S]"}, "is always there"),
        ({"feature": "open:("}, "write two characters"),
        ({"feature": "line-positon"}, "did you mean 'line-position'"),
        ({"feature": f"labels:{folder / 'few.txt'}"}, "2 lines for"),
        ({"feature": f"labels:{folder / 'none.txt'}"}, "none.txt"),
        ({"feature": "open:()", "corpus": str(folder / "none.txt")}, "none.txt"),
        ({"feature": "open:()", "corpus": str(folder / "latin.txt")}, r"latin.txt:1 .*: convert the file to UTF-8$"),
        ({"feature": "open:()", "corpus": None}, "5 tokens are too few"),
        ({"feature": r"regex:\n\n", "corpus": str(folder / "seldom.txt")}, "changes too seldom"),
    ):
        with pytest.raises(UserError, match=message):
            elman.inspect.explain(model, "ab(c)", view="features", **{"corpus": corpus, **options})


def test_a_pattern_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "SECONDS", 0.2)
    with pytest.raises(UserError, match="takes too long on this text: simplify it"):
        read_feature(r"regex:(a|aa)+$")[0]([*"a" * 3000, "b"])


def test_nothing_to_follow_a_feature_in_is_told(model: LanguageModel) -> None:
    with pytest.raises(UserError, match="give at least one text, or a corpus"):
        follow(model, "open:()")
    text = brackets(300, 0)
    assert follow(model, "open:()", text) == follow(model, "open:()", [text])


def test_of_a_long_text_the_first_tokens_are_drawn(
    model: LanguageModel, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elman.inspect.features.MOST", 5)
    text = brackets(30, 3)[:200]
    explanation = elman.inspect.explain(model, text, view="features", feature="open:()", shuffles=5)
    (found,) = explanation.data
    assert (len(found.tokens), len(found.values), len(found.activations[0]), found.cut) == (5, 5, 5, len(text) - 5)
    assert f"{len(text) - 5} more are left out" in explanation.page().columns[0].panels[1].to_dict()["text"]
