"""What a prediction becomes when a token is dropped, made unknown or replaced."""

import pytest

from elman.draw.panels import Note, Table, Tokens
from elman.errors import UserError
from elman.inspect import explain
from elman.inspect.edits import edits
from tests.inspect.small_models import classifier, tagger

TEXT = "a fine film with a good end"
WORDS = TEXT.split()


def edited(place: int, *put: str) -> str:
    return " ".join([*WORDS[: place - 1], *put, *WORDS[place:]])


@pytest.mark.parametrize("settings", [(), ("model.characters=3",)], ids=str)
def test_each_is_the_prediction_of_the_edited_text(settings: tuple[str, ...]) -> None:
    model = classifier(*settings)
    found = edits(model, TEXT, replace="dull mind")
    label = model.predict(TEXT).label
    assert len(found.edits) == 21 and found.prediction == [label]
    puts = {"dropped": (), "unknown": ("<unk>",), "replaced": ("dull", "mind")}
    for one in found.edits:
        answer = model.predict(edited(one.place, *puts[one.edit]))
        assert one.prediction == [answer.label] and one.changed == (answer.label != label)
        assert one.probability == pytest.approx(answer.probabilities[label], abs=1e-5)
        assert one.change == pytest.approx(one.probability - found.probability, abs=1e-6)


def test_of_a_tagger_the_other_tags_are_compared() -> None:
    model = tagger()
    found = edits(model, TEXT, replace="dull")
    before = list(model.predict(tokens=WORDS).tags)
    assert found.prediction == before
    for one in found.edits:
        put = {"dropped": (), "unknown": ("<unk>",), "replaced": ("dull",)}[one.edit]
        after = list(model.predict(tokens=edited(one.place, *put).split()).tags)
        assert one.prediction == after
        if put:
            del after[one.place - 1]
        assert one.changed == (after != before[: one.place - 1] + before[one.place :])


def test_the_only_token_of_a_sentence_is_not_dropped() -> None:
    assert [one.edit for one in edits(tagger(), "dull").edits] == ["unknown"]
    assert [one.edit for one in edits(classifier("model.edges=false"), "dull").edits] == ["dropped", "unknown"]


def test_they_are_a_view_of_both_tasks() -> None:
    for model in (classifier(), tagger("model.crf=true")):
        note, tokens, table = explain(model, TEXT, "edits", replace="dull").page().columns[0].panels
        assert isinstance(note, Note) and isinstance(tokens, Tokens) and isinstance(table, Table)
        assert table.columns[1::2] == ["dropped", "unknown", "as 'dull'"] and len(table.rows) == 7


def test_a_tag_needs_one_token() -> None:
    with pytest.raises(UserError, match="a tag is for one token: 'two words' are 2"):
        explain(tagger(), TEXT, "edits", replace="two words")


def test_what_replaces_a_token_is_no_empty_text() -> None:
    with pytest.raises(UserError, match="has no token"):
        explain(classifier(), TEXT, "edits", replace=" ")
