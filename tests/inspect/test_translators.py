"""What is seen of a translator: where it attends, its search, edited sources, and what is forced."""

from pathlib import Path

import numpy as np
import pytest

import elman
from elman.errors import UserError
from elman.inspect import explain, views_of
from elman.inspect.translation_edits import translation_edits
from elman.inspect.tree import search_tree
from elman.inspect.what_if import read_forced, what_if
from elman.metrics import to_pharaoh
from elman.tasks import Translator
from tests.tasks import translate_runs as runs

SOURCE = "der hund sieht ein vogel"


def train(folder: Path, *settings: str) -> Translator:
    pairs = runs.write(folder / "pairs.tsv", runs.sentences(120))
    chosen = [*runs.SMALL, "text.kind=words", "train.steps=60", "report.baselines=false", *settings]
    return elman.fit("translate", train=pairs, settings=chosen, verbose=False)  # type: ignore[no-any-return]


@pytest.fixture(scope="module", params=["bahdanau", "luong", "luong-feeding"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Translator:
    return train(tmp_path_factory.mktemp("translator"), f"model.decoder={request.param}")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    return train(tmp_path_factory.mktemp("plain"), "model.decoder=plain", "train.steps=2")


def test_the_alignment_has_its_sets_by_a_threshold(model: Translator) -> None:
    found = explain(model, SOURCE, "alignment", threshold=0.2)
    sets, first = found.data[0].sets, model.predict(SOURCE, alignments=True)
    assert sets.threshold == 0.2 and sum(sets.counts.values()) == len(sets.groups)
    assert sets.links == to_pharaoh(first.links(0.2))
    told = found.to_dict()["texts"][0]["sets"]
    assert [group["kind"] for group in told["groups"]] == [group.kind for group in first.groups(0.2)]
    assert "0.2 or more" in found.page().columns[0].panels[1].note  # type: ignore[attr-defined]
    with pytest.raises(UserError, match="threshold"):
        explain(model, SOURCE, "alignment", threshold=0)


def test_the_alignment_is_that_of_predict(model: Translator) -> None:
    found = explain(model, [SOURCE, "ein hund hört der hund"], "alignment")
    first = model.predict(SOURCE, alignments=True)
    assert found.data[0].translation == first.text
    assert np.allclose(found.data[0].weights, first.weights, atol=1e-6)
    told = found.to_dict()["texts"][0]
    assert told["alignment"] == first.pharaoh and told["source_tokens"] == SOURCE.split()
    assert np.allclose(np.sum(told["weights"], axis=1), 1, atol=1e-4)


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_the_best_path_of_the_tree_is_what_predict_writes(model: Translator, beam: int) -> None:
    for text in (SOURCE, "ein vogel", "hund hund hund"):
        tree, best = search_tree(model, text, beam=beam), model.predict(text, beam=beam)
        assert tree.translation == best.text
        by_id = {node.id: node for node in tree.nodes}
        last = by_id[tree.best[-1]]
        assert last.score == pytest.approx(best.score) and last.log_prob == pytest.approx(best.n_best[0].log_prob)
        assert [by_id[one].parent for one in tree.best[1:]] == tree.best[:-1]
        for step in {node.step for node in tree.nodes}:
            here = sorted((node for node in tree.nodes if node.step == step), key=lambda node: node.rank)
            assert [node.rank for node in here] == list(range(1, len(here) + 1))
            assert [node.score for node in here] == sorted((node.score for node in here), reverse=True)
        assert {node.fate for node in tree.nodes} <= {"kept", "pruned", "finished", "cut off"}
        assert beam < 5 or any(node.fate == "pruned" for node in tree.nodes)


def test_an_edit_is_the_edited_text_translated(model: Translator) -> None:
    found = translation_edits(model, SOURCE)
    assert found.translation == model.predict(SOURCE).text
    assert [edit.word for edit in found.edits] == SOURCE.split()
    assert found.edits[1].source == "der sieht ein vogel"
    for edit in found.edits:
        assert edit.translation == model.predict(edit.source).text
        assert edit.log_prob == pytest.approx(model.log_probs([(edit.source, found.translation)])[0], abs=1e-4)
    replaced = translation_edits(model, SOURCE, replace="vogel").edits[1]
    assert replaced.source == "der vogel sieht ein vogel"


def test_a_forced_prefix_stands_at_the_beginning(model: Translator) -> None:
    found = what_if(model, SOURCE, prefix="a bird")
    assert found.after.translation.startswith("a bird")
    assert found.after.translation == model.predict(SOURCE, prefix="a bird").text


def test_a_forced_step_attends_where_it_is_told(model: Translator) -> None:
    found = what_if(model, SOURCE, attend={2: 5}, beam=1)
    assert found.after.weights[1].tolist() == [0, 0, 0, 0, 1]
    assert np.allclose(found.after.weights.sum(axis=1), 1, atol=1e-5)
    same = int(found.before.weights[0].argmax())
    assert found.after.weights[0].argmax() == same, "the step before is as it was"
    free = what_if(model, SOURCE, prefix=found.before.translation)
    assert np.allclose(free.after.weights, free.before.weights, atol=1e-4), "nothing is forced but what stands there"
    assert free.after.alignment == free.before.alignment


def test_every_view_has_panels(model: Translator) -> None:
    options = {"what-if": {"prefix": "a"}}
    for name, view in views_of(model).items():
        if not view.joint:
            page = explain(model, [SOURCE, "ein hund sieht"], name, **options.get(name, {})).page()
            assert [column.title for column in page.columns] == [SOURCE, "ein hund sieht"]
            assert all(column.panels for column in page.columns)


@pytest.mark.parametrize(
    ("view", "options", "sentence"),
    [
        ("alignment", {"target": " "}, "the target is empty"),
        ("tree", {"beam": 0}, "greater than or equal to 1"),
        ("tree", {"bean": 3}, "beam"),
        ("what-if", {}, "nothing is forced"),
        ("what-if", {"attend": ("2",)}, "STEP:PLACE"),
        ("what-if", {"attend": ("2:9",)}, "places from 1 to 5"),
        ("what-if", {"attend": ("0:1",)}, "steps count from 1"),
        ("what-if", {"attend": ("40:1",)}, "step 40 is beyond the translation"),
        ("alingment", {}, "did you mean 'alignment'"),
        ("ranks", {}, "this model has no view 'ranks'"),
    ],
)
def test_what_does_not_fit_is_a_sentence(
    view: str, options: dict[str, object], sentence: str, model: Translator
) -> None:
    with pytest.raises(UserError, match=sentence):
        explain(model, SOURCE, view, **options)


def test_a_model_without_attention_says_what_it_has_instead(plain: Translator) -> None:
    with pytest.raises(UserError, match="has no view 'alignment': it has no attention; it has tree, edits"):
        explain(plain, SOURCE, "alignment")
    assert explain(plain, SOURCE).view.name == "tree"


def test_long_texts_and_single_words(model: Translator) -> None:
    long = " ".join([SOURCE] * 30)
    for view, options in (("tree", {}), ("what-if", {"prefix": "a"})):
        with pytest.raises(UserError, match="translated in parts"):
            explain(model, long, view, **options)
    with pytest.raises(UserError, match="one word only"):
        translation_edits(model, "x")


def test_forced_pairs_are_read() -> None:
    assert read_forced(["2:5", "3:1"]) == {2: 5, 3: 1}
