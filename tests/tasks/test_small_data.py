"""Runs on little data, told nothing of epochs or batches; and runs that cannot learn."""

from pathlib import Path
from typing import Any

import pytest

import elman
from elman.errors import RunError, UserError
from elman.tasks import TASKS
from elman.tasks.run import saved_recipe
from elman.train.progress import Reporter
from tests.tasks import (
    answer_runs,
    caption_runs,
    classify_runs,
    embed_runs,
    forecasts,
    tag_runs,
    translate_runs,
    tree_runs,
)
from tests.tasks import runs as lm_runs
from tests.train.toy import quiet

CHOSEN = ("batch.size", "batch.tokens", "train.steps")


class Listening(Reporter):
    """Notes what is said."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def say(self, line: str) -> None:
        self.said.append(line)


def small(settings: tuple[str, ...]) -> list[str]:
    """A small network, whose epochs and batch are left to be chosen."""
    return [setting for setting in settings if not setting.startswith(CHOSEN)]


def data_of(task: str, folder: Path) -> tuple[Path, list[str]]:
    """A small file of training data, and settings for a small network."""
    if task == "lm":
        (folder / "text.txt").write_text(lm_runs.prose(40))
        return folder / "text.txt", small(lm_runs.SMALL)
    if task == "classify":
        return classify_runs.write_table(folder / "names.csv"), small(classify_runs.SMALL)
    if task == "tag":
        return tag_runs.write(folder / "tags.conll"), small(tag_runs.SMALL)
    if task == "embed":
        (folder / "text.txt").write_text(lm_runs.prose(400))
        return folder / "text.txt", list(embed_runs.SMALL)
    if task == "answer":
        return answer_runs.write(folder / "questions.tsv", 12), small(answer_runs.SMALL)
    if task == "caption":
        return caption_runs.images(folder, 12), small(caption_runs.SMALL)
    if task == "tree":
        return tree_runs.write_trees(folder / "trees.txt"), small(tree_runs.SMALL)
    if task == "series":
        return forecasts.write(folder / "waves.csv"), small(forecasts.SMALL)
    return translate_runs.write(folder / "pairs.tsv"), small(translate_runs.SMALL)


def test_330_pairs_learn_with_the_defaults(tmp_path: Path) -> None:
    pairs = translate_runs.write(tmp_path / "pairs.tsv", translate_runs.sentences(330))
    told = [setting for setting in small(translate_runs.SMALL) if not setting.startswith(("train.lr", "train.average"))]
    listening = Listening()
    settings = [*told, "text.kind=words", "report.baselines=false"]
    report = elman.fit("translate", out=tmp_path / "run", train=pairs, settings=settings, reporter=listening).report
    assert report["dev"]["exact_match"] > 0.9
    assert 400 < report["run"]["steps"] < 800
    chosen = [line for line in listening.said if line.startswith("chosen by the size of the data: train.epochs=")]
    assert len(chosen) == 1
    assert not any("warning: about" in line for line in listening.said)


@pytest.mark.parametrize("task", TASKS)
def test_what_was_chosen_is_written_down_and_the_run_goes_on_with_it(task: str, tmp_path: Path) -> None:
    data, settings = data_of(task, tmp_path)
    settings = [*settings, "train.epochs=1"]
    first = elman.fit(task, out=tmp_path / "run", train=data, settings=settings, reporter=quiet()).report
    recipe: Any = saved_recipe(tmp_path / "run", TASKS[task].Recipe)
    key, usual, least = recipe.batch.chosen
    assert least <= getattr(recipe.batch, key) < usual
    listening = Listening()
    again = elman.fit(task, out=tmp_path / "run", train=data, settings=settings, resume=True, reporter=listening).report
    assert again["dev"] == first["dev"]
    assert again["run"]["steps"] == first["run"]["steps"]
    assert not any(line.startswith("chosen") for line in listening.said)
    assert elman.load(tmp_path / "run").recipe["batch"][key] == getattr(recipe.batch, key)


def test_a_comparison_does_not_repeat_runs_whose_length_was_chosen(tmp_path: Path) -> None:
    data, settings = data_of("classify", tmp_path)
    recipe = tmp_path / "small.toml"
    recipe.write_text(f'task = "classify"\n[data]\ntrain = ["{data}"]\n')
    options: dict[str, Any] = {
        "vary": {"model.hidden": [4, 8]},
        "seeds": 1,
        "settings": [*settings, "train.epochs=1"],
        "reporter": quiet(),
    }
    found = elman.compare(recipe, out=tmp_path / "out", **options)
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("runs/*/*")}
    assert elman.compare(recipe, out=tmp_path / "out", **options) == found
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("runs/*/*")} == times
    half = next((tmp_path / "out").glob("runs/*/metrics.json"))
    half.write_text(half.read_text()[:100])  # as a full disk may leave a copy: made again, not an error
    again = elman.compare(recipe, out=tmp_path / "out", **options)
    assert [run["scores"] for run in again["runs"]] == [run["scores"] for run in found["runs"]]


@pytest.mark.parametrize("task", TASKS)
def test_a_run_that_diverges_stops_and_keeps_no_model(task: str, tmp_path: Path) -> None:
    data, settings = data_of(task, tmp_path)
    settings = [*settings, "train.lr=1e30", "train.steps=2", "train.evaluate_every=1"]
    listening = Listening()
    with pytest.raises(RunError, match=r"training stopped at step .* try a lower train.lr"):
        elman.fit(task, out=tmp_path / "run", train=data, settings=settings, reporter=listening)
    assert not (tmp_path / "run" / "model.safetensors").exists()
    assert not any("best so far" in line for line in listening.said)


@pytest.mark.parametrize(
    ("task", "count", "settings"),
    [
        ("lm", 100_000, []),
        ("lm", 100_000, ["text.kind=words"]),
        ("classify", 100_000, []),
        ("classify", 100_000, ["text.kind=words", "model.characters=4"]),
        ("tag", 100_000, []),
        ("translate", 100_000, []),
        ("translate", 2, ["text.target_kind=words"]),  # the target's alone: each of them stands once
    ],
)
def test_a_vocabulary_of_unknown_words_alone_is_refused(
    task: str, count: int, settings: list[str], tmp_path: Path
) -> None:
    data, network = data_of(task, tmp_path)
    settings = [*network, *settings, f"text.min_count={count}", "train.steps=2"]
    with pytest.raises(UserError, match=rf"text.min_count={count} leaves no known token, .* say -s text.min_count=\d+"):
        elman.fit(task, out=tmp_path / "run", train=data, settings=settings, reporter=quiet())
    assert not (tmp_path / "run").exists()


def test_characters_of_words_that_are_all_unknown_are_refused(tmp_path: Path) -> None:
    data, network = data_of("tag", tmp_path)
    with pytest.raises(UserError, match=r"say -s text.character_count="):
        settings = [*network, "text.character_count=100000", "train.steps=2"]
        elman.fit("tag", out=tmp_path / "run", train=data, settings=settings, reporter=quiet())


@pytest.mark.parametrize(
    ("task", "settings"),
    [
        ("lm", ["text.kind=words", "text.min_count=25"]),
        ("classify", ["text.kind=words", "text.size=3"]),
        ("tag", ["text.min_count=50"]),
        ("translate", ["text.min_count=95"]),
    ],
)
def test_most_words_unknown_is_a_warning(task: str, settings: list[str], tmp_path: Path) -> None:
    data, network = data_of(task, tmp_path)
    listening = Listening()
    settings = [*network, *settings, "train.steps=2"]
    elman.fit(task, out=tmp_path / "run", train=data, settings=settings, reporter=listening)
    assert any("are unknown: lower text.min_count" in line for line in listening.said), listening.said
