"""What `elman predict` prints for a translator, and what it warns of."""

import json
from pathlib import Path
from typing import Any

import pytest

from elman.errors import UserError
from elman.records.lines import BadLines
from elman.records.pairs import Pair
from elman.tasks.predict import PredictOptions
from elman.tasks.translate import Translator
from tests.tasks.translate_runs import sentences, untrained

LINES = ["der hund sieht ein vogel", "ein vogel", "der vogel hört"]


def told(model: Translator, lines: list[str], **options: Any) -> tuple[list[str], list[str]]:
    """What is printed, and what is said beside it."""
    said: list[str] = []
    chosen = PredictOptions(**({"where": Path("new.txt"), "say": said.append} | options))
    return list(model.predict_lines(lines, chosen)), said


@pytest.fixture(scope="module")
def model() -> Translator:
    return untrained(sentences(), kind="words")


def test_a_line_in_a_line_out(model: Translator) -> None:
    printed, said = told(model, LINES)
    assert printed == [one.text for one in model.predict(LINES)]
    assert said == []
    assert told(model, LINES, window=1)[0] == printed


def test_n_best(model: Translator) -> None:
    printed, _ = told(model, LINES, asked={"n_best": 3})
    expected = [
        f"{line}\t{other.score:.4f}\t{other.text}"
        for line, one in enumerate(model.predict(LINES, n_best=3), 1)
        for other in one.n_best
    ]
    assert printed == expected


def test_alignments(model: Translator) -> None:
    printed, _ = told(model, LINES, asked={"alignments": True})
    for line, one in zip(printed, model.predict(LINES, alignments=True), strict=True):
        text, links = line.split("\t")
        assert text == one.text and one.weights is not None
        assert sorted(links.split()) == sorted(f"{int(row.argmax())}-{t}" for t, row in enumerate(one.weights))
    with pytest.raises(UserError, match="leave n_best out, or ask for JSON"):
        told(model, LINES, asked={"alignments": True, "n_best": 2})


def test_json(model: Translator) -> None:
    search = {"n_best": 2, "alignments": True}
    records = [json.loads(line) for line in told(model, LINES, as_json=True, asked=search)[0]]
    found = model.predict(LINES, **search)
    assert [(r["line"], r["text"], r["translation"]) for r in records] == [
        (line, text, one.text) for line, (text, one) in enumerate(zip(LINES, found, strict=True), 1)
    ]
    assert [len(r["n_best"]) for r in records] == [2, 2, 2]
    assert records[0]["alignment"] == found[0].pharaoh
    assert records[0]["source_tokens"] == LINES[0].split()
    assert "n_best" not in json.loads(told(model, LINES, as_json=True)[0][0])


def test_records_ask_for_themselves(model: Translator) -> None:
    lines = [
        json.dumps({"text": LINES[0], "prefix": "the bird"}),
        json.dumps({"text": LINES[0], "require": ["hears", "a dog"]}),
        json.dumps({"text": LINES[0]}),
    ]
    printed, _ = told(model, lines, format="jsonl", asked={"forbid": ["sees"]})
    assert printed[0].startswith("the bird")
    assert "hears" in printed[1] and "a dog" in printed[1]
    assert printed[2] == model.predict(LINES[0], forbid=["sees"]).text
    assert not any("sees" in line for line in printed)


def test_a_record_that_asks_for_the_impossible_is_a_bad_line(model: Translator) -> None:
    lines = [
        json.dumps({"text": LINES[0]}),
        json.dumps({"text": LINES[0], "require": ["katze"]}),
        json.dumps({"text": LINES[0], "prefix": ["the"]}),
        json.dumps({"text": LINES[0], "require": ["dog"], "forbid": ["Dog"]}),
        json.dumps({"text": ""}),
        json.dumps({"text": LINES[1]}),
    ]
    with pytest.raises(UserError, match=r"new.txt:2 cannot be translated: 'katze' cannot be asked for"):
        told(model, lines, format="jsonl")
    bad: list[str] = []
    printed, _ = told(model, lines, format="jsonl", bad=BadLines("skip", bad.append))
    assert printed == [one.text for one in model.predict([LINES[0], LINES[1]])]
    assert [sentence.partition(" ")[0].rstrip(":") for sentence in bad] == [f"new.txt:{n}" for n in (2, 3, 4, 5)]


def test_what_no_line_can_have_is_said_first(model: Translator) -> None:
    with pytest.raises(UserError, match=r"^'katze' cannot be asked for"):
        told(model, [], asked={"require": ["katze"]})
    with pytest.raises(UserError, match=r"^the search: 'beam' = 0"):
        told(model, [], asked={"beam": 0})


def test_a_long_line_is_warned_of() -> None:
    model = untrained(sentences(), kind="words", longest=4)
    printed, said = told(model, ["der hund", *LINES, *LINES])
    assert len(printed) == 7
    assert said == [
        "warning: new.txt:2 has 5 tokens and the model learned from at most 4: such texts are translated in parts, "
        "cut between sentences or words",
        "2 texts were longer than 4 tokens",
    ]
    record = json.loads(told(model, LINES, as_json=True)[0][0])
    assert record["parts"] == 2 and record["translation"] == printed[1]


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("kind", ["words", "bpe", "characters"])
def test_a_swapped_pair_is_warned_of(kind: str, joint: bool) -> None:
    pairs = [Pair(pair.source, pair.target.upper()) for pair in sentences(200)]
    model = untrained(pairs, kind=kind, joint=joint, longest=200)
    right, wrong = ([getattr(pair, side) for pair in pairs[:5]] for side in ("source", "target"))
    assert told(model, right)[1] == []
    (sentence,) = told(model, wrong)[1]
    assert sentence.startswith("warning: new.txt does not look like what the model learned to read (")
    assert "are source and target swapped?" in sentence
    assert told(model, ["XY"])[1] == []  # a word says nothing about a language
    model.config = model.config.model_copy(update={"tokens_per_character": 0.0, "foreign": ()})  # nothing is known
    assert told(model, right)[1] == []
