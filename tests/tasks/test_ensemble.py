"""Classifiers and taggers that answer together: the mean of what each of them says."""

import copy
import itertools
import json
import pickle
import shutil
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import elman
from elman.errors import UserError
from elman.inspect import explain
from elman.inspect.explain import views_of
from elman.records.tagged import Sentence
from elman.tasks import TASKS, evaluate
from elman.tasks.classify import ClassifyRecipe, TextClassifier, chances
from elman.tasks.run import clear_run, is_run
from elman.tasks.tag import TagModel
from elman.tasks.task import Source
from elman.tasks.training import begin
from elman.text.encoder import words
from elman.train.loop import Trainer
from tests.cli.invoke import invoke
from tests.tasks import classify_runs, tag_runs
from tests.tasks.resuming import Killed, disturb

NAMES = ["grimulfa", "olaetti", "mackay", "torano"]


@pytest.fixture(scope="module")
def classifiers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two short runs, `1` and `2`, that differ in seed and vocabulary, and the table `train.csv`."""
    folder = tmp_path_factory.mktemp("classifiers")
    table = classify_runs.write_table(folder / "train.csv")
    classify_runs.run(table, folder / "1", "train.steps=12")
    classify_runs.run(table, folder / "2", "train.steps=12", "train.seed=2", "text.kind=words", "model.hidden=9")
    return folder


@pytest.fixture(scope="module", params=[False, True], ids=["softmax", "crf"])
def taggers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two taggers that disagree, `1` and `2`, of other seeds and vocabularies, and the sentences `train.conll`."""
    folder = tmp_path_factory.mktemp("taggers")
    train = tag_runs.write(folder / "train.conll")
    for name, settings in (("1", ()), ("2", ("train.seed=2", "text.lowercase=false"))):
        crf = f"model.crf={str(request.param).lower()}"
        model = tag_runs.run(train, folder / "short", "train.epochs=1", crf, *settings)
        with torch.no_grad():
            chance = torch.Generator().manual_seed(int(name))
            for weights in (model.network.scores.weight, *(model.network.crf or torch.nn.Identity()).parameters()):
                weights.copy_(torch.randn(weights.shape, generator=chance))
        model.save(folder / name)
        shutil.rmtree(folder / "short")
    return folder


def test_a_classifier_of_two_says_their_mean(classifiers: Path) -> None:
    one, other = (TextClassifier.load(classifiers / name) for name in "12")
    each = [model.scores(model.vocabulary.encode(NAMES)) for model in (one, other)]
    both = one.ensemble_with(other)
    np.testing.assert_allclose(both.probabilities(NAMES), chances((each[0] + each[1]) / 2, False), atol=1e-6)
    np.testing.assert_allclose(both.probabilities(NAMES), other.ensemble_with(one).probabilities(NAMES), atol=1e-6)
    np.testing.assert_allclose(one.ensemble_with(one).probabilities(NAMES), one.probabilities(NAMES), atol=1e-6)
    assert both.predict(NAMES[0]).label == both.predict(NAMES)[0].label
    assert one.others == () and "an ensemble of 2" in repr(both) and "an ensemble of 2" in both._repr_html_()
    assert one.report is not None and both.report is None


def test_a_tagger_of_two_says_their_mean(taggers: Path) -> None:
    one, other = (TagModel.load(taggers / name) for name in "12")
    both = one.ensemble_with(other)
    rows = [list(sentence.tokens) for sentence in tag_runs.sentences(20, seed=5)]
    first, second = (TagModel.load(taggers / name, backend="torch") for name in "12")
    by_torch = first.ensemble_with(second)
    found = both.tag_tokens(rows)
    assert found not in (one.tag_tokens(rows), other.tag_tokens(rows))
    assert found == other.ensemble_with(one).tag_tokens(rows) == by_torch.tag_tokens(rows)
    assert one.ensemble_with(one).tag_tokens(rows) == one.tag_tokens(rows)
    assert one.ensemble_with(one, one).tag_tokens(rows[:1]) == one.tag_tokens(rows[:1])


@pytest.mark.parametrize("taggers", [True], indirect=True, ids=["crf"])
def test_the_best_tags_and_the_loss_are_those_of_the_mean_of_both_chains(taggers: Path) -> None:
    """Every sequence of tags for a short sentence, scored by each of them: the one with the highest mean wins."""
    one, other = (TagModel.load(taggers / name) for name in "12")
    row, count = ("Ada", "went"), len(one.tags)
    both = one.ensemble_with(other)
    paths = torch.tensor(list(itertools.product(range(count), repeat=len(row))))
    mean = torch.zeros(len(paths))
    for model in (one, other):
        emissions = torch.from_numpy(model.scores(words([row])))
        assert model.network.crf is not None
        start, transitions, end = model.network.crf._scores()
        mean += (start[paths[:, 0]] + transitions[paths[:, 0], paths[:, 1]] + end[paths[:, 1]]) / 2
        mean += (emissions[0, paths[:, 0]] + emissions[1, paths[:, 1]]) / 2
    best, _ = one._read(paths[mean.argmax()].numpy())
    assert both.tag_tokens([row]) == [best] and best not in (one.tag_tokens([row])[0], other.tag_tokens([row])[0])
    for tags in (("B-PER", "O"), ("O", "O")):
        ids = one.encode_tags(tags)
        assert ids is not None
        place = int((paths == torch.from_numpy(ids)).all(dim=1).nonzero())
        _, loss = both.measure([Sentence(row, tags)])
        assert loss == pytest.approx(float((mean.logsumexp(dim=0) - mean[place]).detach()) / len(row), abs=1e-4)


def test_scores_of_an_ensemble_from_the_command_line_and_from_python(taggers: Path, classifiers: Path) -> None:
    for folder, kind, data in ((taggers, TagModel, "train.conll"), (classifiers, TextClassifier, "train.csv")):
        one, other, path = str(folder / "1"), str(folder / "2"), str(folder / data)
        code, out, error = invoke("evaluate", one, path, "--json", "--ensemble", other)
        assert code == 0, error
        both = kind.load(one).ensemble_with(kind.load(other))  # type: ignore[type-var]
        report = evaluate(both, [path])
        assert json.loads(out)[path]["accuracy"] == report[path]["accuracy"]
        assert json.loads(out)[path]["loss"] == report[path]["loss"] != evaluate(one, [path])[path]["loss"]
        code, out, error = invoke("predict", one, path, "--json", "--ensemble", other, "--backend", "torch")
        assert code == 0, error
        first = json.loads(out.splitlines()[0])
        if kind is TagModel:
            assert first["tags"] == list(both.predict(tokens=first["tokens"]).tags)
        else:
            assert first["probabilities"] == pytest.approx(both.predict(first["text"]).probabilities, abs=1e-5)


def test_an_ensemble_in_int8_and_in_another_process(classifiers: Path, taggers: Path) -> None:
    one, other = (TextClassifier.load(classifiers / name) for name in "12")
    small = one.ensemble_with(other).to_int8()
    assert all(model.int8 is not None for model in small.members) and other.int8 is None
    np.testing.assert_allclose(small.probabilities(NAMES), one.ensemble_with(other).probabilities(NAMES), atol=0.05)
    assert len(small.to_int8().members) == 2 and (eight := one.to_int8()).to_int8() is eight
    first, second = (TagModel.load(taggers / name) for name in "12")
    both = first.ensemble_with(second)
    assert copy.deepcopy(both).others[0] is not second
    assert pickle.loads(pickle.dumps(both)).predict("Ada went to Rome .") == both.predict("Ada went to Rome .")


def test_an_ensemble_is_a_folder_too(classifiers: Path, taggers: Path, tmp_path: Path) -> None:
    for folder, kind, text in ((classifiers, TextClassifier, "grimulfa"), (taggers, TagModel, "Ada went to Rome .")):
        both = kind.load(folder / "1").ensemble_with(kind.load(folder / "2"))  # type: ignore[type-var]
        out = tmp_path / kind.__name__
        both.save(out)
        again = elman.load(out)
        assert again.predict(text) == both.predict(text) != kind.load(folder / "2").predict(text)
        assert again.parameters == both.parameters == sum(kind.load(folder / name).parameters for name in "12")
        code, told, error = invoke("export", str(folder / "1"), "--ensemble", str(folder / "2"), "--out", f"{out}-2")
        assert code == 0 and "MB" in told, error
        assert elman.load(f"{out}-2").predict(text) == both.predict(text)
        code, _, error = invoke("export", str(out), "--int8", "--out", f"{out}-8")
        assert code == 0 and [one.int8 is not None for one in elman.load(f"{out}-8").members] == [True, True], error
        shutil.rmtree(out / "members" / "2")
        with pytest.raises(UserError, match=r"is not whole, there is no model in .*members/2: go on with"):
            elman.load(out)


def test_members_are_trained_by_one_command(tmp_path: Path) -> None:
    train = tag_runs.write(tmp_path / "train.conll")
    test = tag_runs.write(tmp_path / "test.conll", tag_runs.sentences(20, seed=7))
    settings = ("train.epochs=2", "train.members=3", f'data.test=["{test}"]')
    three = tag_runs.run(train, tmp_path / "three", *settings)
    assert len(three.members) == 3 and three.report is not None
    rows = [list(sentence.tokens) for sentence in tag_runs.sentences(20, seed=5)]
    first, second = (one.scores(words(rows)) for one in three.members[:2])
    assert not np.allclose(first, second, atol=0.01)
    alone = tag_runs.run(train, tmp_path / "alone", "train.epochs=2", "train.member=2")
    assert np.array_equal(alone.scores(words(rows)), second)
    assert three.report["test"]["accuracy"] == evaluate(three, [test])[str(test)]["accuracy"]
    assert three.report["parameters"] == three.parameters == 3 * three.others[0].parameters
    assert "in 3 networks that answer together" in (tmp_path / "three" / "README.md").read_text()
    assert "baselines" not in three.others[0].report and three.others[0].report["test"]["accuracy"] > 0
    kept = (tmp_path / "three" / "members" / "2" / "model.safetensors").read_bytes()
    with pytest.raises(UserError, match="give one of the two"):
        tag_runs.run(train, tmp_path / "none", "train.members=2", "train.member=2")
    with pytest.raises(UserError, match="no word vectors"):  # before anything of the old run is removed
        tag_runs.run(train, tmp_path / "three", *settings, 'model.vectors="nowhere.vec"', force=True)
    assert (tmp_path / "three" / "members" / "2" / "model.safetensors").read_bytes() == kept
    once = tag_runs.run(train, tmp_path / "three", "train.epochs=2", f'data.test=["{test}"]', force=True)
    assert once.others == () and not (tmp_path / "three" / "members").exists()


def test_members_in_folds_start_over(tmp_path: Path) -> None:
    table = classify_runs.write_table(tmp_path / "names.csv")
    settings = ("train.steps=2", "train.members=2", "data.folds=2")
    first = classify_runs.run(table, tmp_path / "run", *settings)
    again = classify_runs.run(table, tmp_path / "run", *settings, force=True)
    assert len(again.members) == 2 and again.predict("ulfvik") == first.predict("ulfvik")
    plain = classify_runs.run(table, tmp_path / "run", "train.steps=2", force=True)
    assert plain.others == () and not list((tmp_path / "run").glob("**/members"))


def test_members_of_a_run_that_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = tag_runs.write(tmp_path / "train.conll")
    settings = ("train.epochs=1", "train.members=2", "train.checkpoint_seconds=0")
    whole = tag_runs.run(train, tmp_path / "whole", *settings)
    update, calls = Trainer._update, itertools.count(1)
    for number, stop in enumerate((3, 12)):

        def killed(self: Trainer, stop: int = stop) -> Any:
            if next(calls) == stop:
                raise Killed
            return update(self)

        monkeypatch.setattr(Trainer, "_update", killed)
        with pytest.raises(Killed):
            tag_runs.run(train, tmp_path / "cut", *settings, resume=number > 0)
        disturb()
    monkeypatch.undo()
    cut = tag_runs.run(train, tmp_path / "cut", *settings, resume=True)
    for name in ("model.safetensors", "members/2/model.safetensors"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert cut.report is not None and whole.report is not None and cut.report["dev"] == whole.report["dev"]


def test_members_of_a_run_that_is_made_longer_and_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = tag_runs.write(tmp_path / "train.conll")
    settings = ("train.members=2", "train.checkpoint_seconds=0")
    for name in ("whole", "cut"):
        tag_runs.run(train, tmp_path / name, *settings, "train.epochs=1")
    tag_runs.run(train, tmp_path / "whole", *settings, "train.epochs=2", resume=True)
    update = Trainer._update

    def killed(self: Trainer) -> Any:
        if self.folder.parent.name == "members":
            raise Killed
        return update(self)

    monkeypatch.setattr(Trainer, "_update", killed)
    with pytest.raises(Killed):
        tag_runs.run(train, tmp_path / "cut", *settings, "train.epochs=2", resume=True)
    monkeypatch.undo()
    tag_runs.run(train, tmp_path / "cut", *settings, "train.epochs=2", resume=True)
    for name in ("model.safetensors", "members/2/model.safetensors"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_members_that_start_from_a_model(classifiers: Path, tmp_path: Path) -> None:
    settings = {"train.members": 2, "train.steps": 2, "train.threads": 1}
    table, out = str(classifiers / "train.csv"), tmp_path / "run"
    both = elman.fit("classify", train=table, settings=settings, start=classifiers / "1", out=out)
    assert len(both.members) == 2 and both.report is not None and both.report["parameters"] == both.parameters


def test_a_member_that_is_lost_is_trained_again_and_one_that_does_not_fit_is_named(tmp_path: Path) -> None:
    train, out = tag_runs.write(tmp_path / "train.conll"), tmp_path / "run"
    settings = ("train.epochs=1", "train.members=2")
    tag_runs.run(train, out, *settings)
    weights = (out / "members/2/model.safetensors").read_bytes()
    (out / "members/2/model.safetensors").unlink()
    tag_runs.run(train, out, *settings, resume=True)
    assert (out / "members/2/model.safetensors").read_bytes() == weights
    config = json.loads((out / "config.json").read_text())
    for wrong in (True, "2", 0, 101):
        (out / "config.json").write_text(json.dumps(config | {"members": wrong}))
        with pytest.raises(UserError, match="members"):
            elman.load(out)
    (out / "config.json").write_text(json.dumps(config))
    shutil.rmtree(out / "members/2")
    other = f"model.crf={str(not config['model']['crf']).lower()}"
    tag_runs.run(train, tmp_path / "other", "train.epochs=1", other).save(out / "members/2")
    with pytest.raises(UserError, match=r"members/2: models of an ensemble have all a CRF"):
        elman.load(out)


def test_what_a_kill_leaves_in_a_members_folder_is_in_nobodys_way(tmp_path: Path) -> None:
    train, out = tag_runs.write(tmp_path / "train.conll"), tmp_path / "run"
    settings = ("train.epochs=1", "train.members=2")
    tag_runs.run(train, out, *settings)
    weights = (out / "members/2/model.safetensors").read_bytes()
    for name in (".recipe.toml.123.tmp", ".tmpumMqYG", ".lock"):
        shutil.rmtree(out / "members/2")
        (out / "members/2").mkdir()
        (out / "members/2" / name).touch()
        tag_runs.run(train, out, *settings, resume=True)
        assert (out / "members/2/model.safetensors").read_bytes() == weights
    (out / "members/2/checkpoint/.tmpumMqYG").touch()
    tag_runs.run(train, out, "train.epochs=1", force=True)
    assert not (out / "members").exists()
    for report in ("5", '{"run": 5}', '{"run": {}}', '{"run": {"seconds": "x"}}'):
        tag_runs.run(train, out, *settings, force=True)
        (out / "members/2/metrics.json").write_text(report)
        tag_runs.run(train, out, *settings, resume=True)
        assert json.loads((out / "members/2/metrics.json").read_text())["run"]["seconds"] > 0
    for wrong in ("a file", "a user's"):
        shutil.rmtree(out)
        out.mkdir()
        tag_runs.run(train, out, "train.epochs=1")
        if wrong == "a file":
            (out / "members").touch()
        else:
            (out / "members" / "2").mkdir(parents=True)
            (out / "members" / "2" / "notes.txt").touch()
        there = (out / "model.safetensors").read_bytes()
        with pytest.raises(UserError, match="move it away"):
            tag_runs.run(train, out, *settings, force=True)
        assert (out / "model.safetensors").read_bytes() == there
    shutil.rmtree(out)
    tag_runs.run(train, out, *settings)
    recipe = (out / "members/2/recipe.toml").read_text()
    (out / "members/2/recipe.toml").write_text(recipe.replace("member = 2", "member = 3"))
    before = (out / "metrics.json").read_bytes()
    with pytest.raises(UserError, match=r"members/2 was begun with another recipe \(train\.member"):
        tag_runs.run(train, out, "train.epochs=2", "train.members=2", resume=True)
    assert (out / "metrics.json").read_bytes() == before and len(elman.load(out).members) == 2
    (out / "members/2/recipe.toml").write_text(recipe)
    (out / "members/2/config.json").unlink()
    assert len(tag_runs.run(train, out, *settings, resume=True).members) == 2


def test_starting_over_touches_no_run_behind_a_link_and_can_be_repeated(tmp_path: Path) -> None:
    train, out, other = tag_runs.write(tmp_path / "train.conll"), tmp_path / "run", tmp_path / "other"
    for place in (out, other):
        tag_runs.run(train, place, "train.epochs=1")
    there = {path.name: path.read_bytes() for path in other.iterdir() if path.is_file()}
    (out / "members").mkdir()
    (out / "members" / "2").symlink_to(other)
    (out / "members" / "3").mkdir()
    TagModel.load(other).save(out / "members" / "3")  # one that is no run
    clear_run(out)  # as far as a kill may have come
    assert is_run(out) and not (out / "model.safetensors").exists()
    three = tag_runs.run(train, out, "train.epochs=1", "train.members=2", force=True)
    assert len(three.members) == 2 and not (out / "members" / "2").is_symlink()
    assert {path.name: path.read_bytes() for path in other.iterdir() if path.is_file()} == there
    shutil.rmtree(out / "members")
    elsewhere = tmp_path / "elsewhere" / "members"
    elsewhere.mkdir(parents=True)
    other.rename(elsewhere / "2")
    (out / "members").symlink_to(elsewhere)
    tag_runs.run(train, out, "train.epochs=1", force=True)
    assert not (out / "members").exists() and (elsewhere / "2" / "model.safetensors").exists()


def test_a_run_does_not_begin_with_what_it_removes(tmp_path: Path) -> None:
    train, out = tag_runs.write(tmp_path / "train.conll"), tmp_path / "run"
    tag_runs.run(train, out, "train.epochs=1")
    weights = (out / "model.safetensors").read_bytes()
    with pytest.raises(UserError, match="would be removed before this run could begin with it"):
        elman.fit("tag", train=str(train), start=out, out=out, force=True)
    with pytest.raises(UserError, match="would be removed before"):
        tag_runs.run(train, out, f'model.strings=["{out}"]', force=True)
    for settings in ({"data.unlabelled": [str(train)], "transfer.lm": ["model.vectors=nowhere"]}, {"data.folds": 2}):
        table = str(classify_runs.write_table(tmp_path / "names.csv"))
        wrong = {"model.vectors": "nowhere", "text.kind": "words"} if "data.folds" in settings else {}
        with pytest.raises(UserError, match="nowhere"):
            elman.fit("classify", train=table, settings={**settings, **wrong}, out=out, force=True)
        assert (out / "model.safetensors").read_bytes() == weights
    vectors = out / "mine.vec"
    vectors.write_text("Ada 1 2\nwent 3 4\n")  # not Elman's, so it stays
    tag_runs.run(train, out, "train.epochs=1", f'model.vectors="{vectors}"', "model.embedding=2", force=True)
    weights = (out / "model.safetensors").read_bytes()
    assert (out / "model.safetensors").read_bytes() == weights


def test_what_cannot_be_averaged(classifiers: Path, taggers: Path, tmp_path: Path) -> None:
    one, tagger = TextClassifier.load(classifiers / "1"), TagModel.load(taggers / "1")
    rows = [(name, "east" if label == "west" else label) for name, label in classify_runs.names()]
    east = classify_runs.run(classify_runs.write_table(tmp_path / "east.csv", rows), tmp_path / "east", "train.steps=2")
    train = tag_runs.write(tmp_path / "train.conll")
    crf = str(not tagger.config.model.crf).lower()
    chain = tag_runs.run(train, tmp_path / "chain", "train.epochs=1", f"model.crf={crf}")
    places = [s for s in tag_runs.sentences() if len(s.tokens) == 5]  # people of one word only
    fewer = tag_runs.run(tag_runs.write(tmp_path / "fewer.conll", places), tmp_path / "fewer", "train.epochs=1")
    with pytest.raises(UserError, match="need the same classes"):
        one.ensemble_with(east)
    with pytest.raises(UserError, match=r"differ in model\.crf"):
        tagger.ensemble_with(chain)
    with pytest.raises(UserError, match="need the same tags"):
        tagger.ensemble_with(fewer)
    code, _, error = invoke("predict", str(taggers / "1"), "Ada", "--ensemble", str(tmp_path / "fewer"))
    assert code == 2 and f"{tmp_path / 'fewer'}: models of an ensemble need the same tags" in " ".join(error.split())
    plain = [replace(s, tags=tuple(tag[-1] for tag in s.tags)) for s in tag_runs.sentences()]
    words = tag_runs.run(tag_runs.write(tmp_path / "plain.conll", plain), tmp_path / "plain", "train.epochs=1")
    with pytest.raises(UserError, match="one scheme: these learned from files in BIO and no scheme"):
        tagger.ensemble_with(words)
    tagger.ensemble_with(tagger).save(tmp_path / "both")
    for more in ({}, {"out": tmp_path / "chain", "force": True, "settings": {"train.epochs": 1}}):
        with pytest.raises(UserError, match=r"train\.start: an ensemble of 2 models cannot be started from"):
            elman.fit("tag", train=str(train), start=tmp_path / "both", **more)  # type: ignore[arg-type]
    assert (tmp_path / "chain" / "model.safetensors").exists()
    with pytest.raises(UserError, match="a TagModel cannot be averaged with a TextClassifier"):
        one.ensemble_with(tagger)  # type: ignore[arg-type]
    both = one.ensemble_with(one)
    with pytest.raises(UserError, match="cannot be looked into"):
        both.states("grimulfa")
    for model, text in ((both, "grimulfa"), (tagger.ensemble_with(tagger), "Ada went")):
        assert views_of(model) == {}
        for view in views_of(model.alone()):
            with pytest.raises(UserError, match="it is an ensemble of 2, and this view looks into one of them"):
                explain(model, text, view)
    assert elman.load(classifiers / "1").ensemble_with().predict("grimulfa") == one.predict("grimulfa")


def test_ensembles_of_ensembles_have_all_their_members(classifiers: Path, tmp_path: Path) -> None:
    one, other = (TextClassifier.load(classifiers / name) for name in "12")
    three = one.ensemble_with(other.ensemble_with(other))
    assert len(three.members) == 3 and all(member.others == () for member in three.members[1:])
    again = one.ensemble_with(other).ensemble_with(other)
    assert again.predict(NAMES) == three.predict(NAMES) != one.ensemble_with(other).predict(NAMES)
    assert three.alone().predict(NAMES) == one.predict(NAMES) and three.alone().config == one.config
    three.save(tmp_path / "three")
    code, _, error = invoke(
        "export", str(classifiers / "1"), "--ensemble", str(tmp_path / "three"), "--out", str(tmp_path / "four")
    )
    assert code == 0 and len(elman.load(tmp_path / "four").members) == 4, error
    for model, place in ((one, "three"), (three, "three"), (three, "three/members/2"), (three, "1"), (one, "1")):
        place = classifiers / place if place == "1" else tmp_path / place
        there = (place / "model.safetensors").read_bytes()
        with pytest.raises(UserError, match=r"holds (a model with its scores|another model)"):
            model.save(place)
        assert (place / "model.safetensors").read_bytes() == there
    one.save(tmp_path / "one")
    other.save(tmp_path / "one")  # what is beside the weights is replaced with them
    assert elman.load(tmp_path / "one").predict(NAMES) == other.predict(NAMES)
    with pytest.raises(UserError, match="100 models at the most, and these are 121"):
        one.ensemble_with(*[other] * 120)
    shutil.rmtree(tmp_path / "three" / "members" / "2")
    shutil.copytree(tmp_path / "four", tmp_path / "three" / "members" / "2")
    with pytest.raises(UserError, match="members/2 holds an ensemble itself"):
        elman.load(tmp_path / "three")


def test_members_learn_from_one_split_and_begin_with_other_networks(tmp_path: Path) -> None:
    table, out = str(classify_runs.write_table(tmp_path / "names.csv")), tmp_path / "run"
    settings = {"train.members": 2, "train.steps": 2, "train.threads": 1, "data.test_fraction": 0.2}
    both = elman.fit("classify", train=table, settings=settings, out=out)
    told = [json.loads((place / "metrics.json").read_text())["test"] for place in (out, out / "members" / "2")]
    counts = [(one["texts"], [of["support"] for of in one["classes"].values()]) for one in told]
    assert counts[0] == counts[1] and told[0]["loss"] != told[1]["loss"]
    with pytest.raises(UserError, match=r"members/2 is a member of the run in .*run: go on with that one"):
        again = {**settings, "train.members": 1, "train.member": 2}
        elman.fit("classify", train=table, settings=again, out=out / "members" / "2", resume=True)
    recipe = ClassifyRecipe.model_validate(both.recipe)
    networks = []
    for number in (1, 2):
        train = recipe.train.model_copy(update={"members": 1, "member": number})
        source = {"train": Source([Path(table)])}
        data = TASKS["classify"].open(recipe, source, None, lambda line: None)
        networks.append(begin(TASKS["classify"], recipe.model_copy(update={"train": train}), data).model.weights())
    assert not any(np.array_equal(weights, networks[1][name]) for name, weights in networks[0].items() if weights.any())


def test_while_members_are_trained_the_first_one_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train, out = tag_runs.write(tmp_path / "train.conll"), tmp_path / "run"
    update, alive, seen = Trainer._update, weakref.WeakSet[Any](), []

    def watched(self: Trainer) -> Any:
        alive.add(self.task.model)
        if self.folder.parent.name == "members":
            seen.append((len(elman.load(out).members), len(alive)))
        return update(self)

    monkeypatch.setattr(Trainer, "_update", watched)
    model = tag_runs.run(train, out, "train.epochs=1", "train.members=3")
    assert set(seen) == {(1, 1)} and len(model.members) == 3  # one network is in memory at a time


def test_runs_that_are_compared_share_no_network(tmp_path: Path) -> None:
    train = tag_runs.write(tmp_path / "train.conll")
    recipe = tmp_path / "tags.toml"
    recipe.write_text(
        f'task = "tag"\n[data]\ntrain = ["{train}"]\n[model]\nhidden = 8\n[train]\nepochs = 1\nthreads = 1\n'
    )
    elman.compare(recipe, vary={"train.members": [1, 2]}, seeds=2, out=tmp_path / "compared")
    saved = [path.read_bytes() for path in (tmp_path / "compared").glob("runs/members=2*/**/model.safetensors")]
    assert len(saved) == len(set(saved)) == 4
    names = sorted(path.name for path in (tmp_path / "compared" / "runs").iterdir())
    assert names == [f"members={count},seed={seed}" for count in (1, 2) for seed in (1, 3)]  # one split for both


def test_a_task_without_ensembles_says_so(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("so it goes, and so it went\n" * 40)
    settings = {"text.kind": "characters", "model.hidden": 4, "train.steps": 2, "train.threads": 1}
    elman.fit("lm", train=str(text), settings=settings, out=tmp_path / "lm")
    code, _, error = invoke("evaluate", str(tmp_path / "lm"), str(text), "--ensemble", str(tmp_path / "lm"))
    assert code == 2 and "a model for 'lm' cannot be averaged with others: leave --ensemble out" in error
