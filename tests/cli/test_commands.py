"""Whole tours by the command line: train, evaluate, generate, resume."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from elman import __version__
from elman.cli.app import COMMANDS, build
from tests.cli.invoke import invoke
from tests.tasks.classify_runs import SMALL as CLASSIFY
from tests.tasks.runs import SMALL, prose, write_names

OVERRIDES = [part for setting in SMALL for part in ("-s", setting)]


def train(text: Path, out: Path, *more: str) -> tuple[int, str, str]:
    return invoke("train", "lm", "--train", str(text), "--out", str(out), *OVERRIDES, *more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text, and a model trained on it."""
    folder = tmp_path_factory.mktemp("tour")
    (folder / "text.txt").write_text(prose())
    (folder / "other.txt").write_text("the cat sat on the sea\na bird ran\n")
    more = ("--test", str(folder / "other.txt"), "-s", "train.steps=20", "-s", "baseline.order=3")
    code, _, error = train(folder / "text.txt", folder / "run", *more)
    assert code == 0, error
    return folder


def test_help_and_version() -> None:
    code, out, _ = invoke("--version")
    assert (code, out.strip()) == (0, f"elman {__version__}")
    code, out, _ = invoke("--help")
    assert code == 0
    assert all(command in out for command in ("train", "evaluate", "generate", "data", "demo"))
    assert "recurrent sequence models" in out and "for language" not in out


@pytest.mark.parametrize(
    ("words", "expected"),
    [("elman pre", "predict"), ("elman train cla", "classify"), ("elman predict --on", "--on-error")],
)
def test_a_shell_completes_commands_and_options(words: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_ELMAN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    code, out, error = invoke()
    assert code == 0, error
    assert expected in out.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shellingham.detect_shell", lambda: (shell, shell))
    code, out, error = invoke("--show-completion")
    assert code == 0, error
    assert f"complete_{shell}" in out


def test_every_command_with_all_of_its_options() -> None:
    commands = build().commands
    assert list(commands) == COMMANDS
    assert {"beam", "missing", "json"} <= {option.opts[0].strip("-") for option in commands["predict"].params}
    assert "classify" in commands["train"].commands


def test_a_run_leaves_a_whole_folder(folder: Path) -> None:
    found = {path.name for path in (folder / "run").iterdir()}
    assert found == {
        "README.md",
        "checkpoint",
        "config.json",
        "curves.png",
        "log.jsonl",
        "metrics.json",
        "model.safetensors",
        "recipe.toml",
        "tokenizer.json",
    }
    report = json.loads((folder / "run" / "metrics.json").read_text())
    assert report["run"]["steps"] == 20
    assert set(report["baselines"]) == {"unigram", "Kneser-Ney 3-gram"}
    assert report["test"]["tokens"] == len((folder / "other.txt").read_text())
    card = (folder / "run" / "README.md").read_text()
    assert f"{report['test']['perplexity']:,.2f}" in card
    assert str(folder) not in card


def test_evaluate_shows_scores_beside_the_baselines(folder: Path) -> None:
    code, out, error = invoke("evaluate", str(folder / "run"), str(folder / "other.txt"))
    assert code == 0, error
    assert "this model" in out
    assert "Kneser-Ney 3-gram" in out
    assert "unigram" in out


def test_evaluate_as_json_agrees_with_training(folder: Path) -> None:
    code, out, error = invoke("evaluate", str(folder / "run"), str(folder / "other.txt"), "--json")
    assert code == 0, error
    scores = json.loads(out)[str(folder / "other.txt")]
    kept = json.loads((folder / "run" / "metrics.json").read_text())["test"]
    assert scores == pytest.approx(kept)


def test_evaluate_tokens_gives_one_record_a_token(folder: Path) -> None:
    code, out, error = invoke("evaluate", str(folder / "run"), str(folder / "other.txt"), "--tokens")
    assert code == 0, error
    records = [json.loads(line) for line in out.splitlines()]
    assert "".join(record["token"] for record in records) == (folder / "other.txt").read_text()
    kept = json.loads((folder / "run" / "metrics.json").read_text())["test"]
    mean = -sum(record["log_prob"] for record in records) / len(records)
    assert math.isclose(mean, kept["loss"], abs_tol=1e-5)


def test_evaluate_goes_on_without_the_training_text(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(prose())
    assert train(text, tmp_path / "run", "-s", "train.steps=1", "-s", "baseline.order=2")[0] == 0
    other = tmp_path / "other.txt"
    other.write_text("the cat")
    text.write_text(prose() + "ZZZ and other new letters: QXJ\n" * 9)
    code, out, error = invoke("evaluate", str(tmp_path / "run"), str(other), "--json")
    assert code == 0, error
    assert "the training text has changed" in error
    assert set(json.loads(out)["baselines"]) == {"unigram"}
    text.unlink()
    code, _, error = invoke("evaluate", str(tmp_path / "run"), str(other), "--json")
    assert code == 0
    assert f"no baselines made of the training text: no such file: {text}" in error


def test_generate_continues_the_prompt(folder: Path) -> None:
    options = ("--length", "12", "--seed", "3")
    code, out, error = invoke("generate", str(folder / "run"), "--prompt", "the ", *options)
    assert code == 0, error
    assert out.startswith("the ")
    assert len(out) == 4 + 12 + 1
    assert invoke("generate", str(folder / "run"), "--prompt", "-", *options, stdin="the ")[1] == out
    assert invoke("generate", str(folder / "run"), "--prompt", "the ", *options)[1] == out


def test_generate_as_json_and_several(folder: Path) -> None:
    arguments = ("generate", str(folder / "run"), "-p", "the", "-n", "6", "--samples", "3", "--seed", "1")
    code, out, error = invoke(*arguments, "--json")
    assert code == 0, error
    records = [json.loads(line) for line in out.splitlines()]
    assert [(record["sample"], record["prompt"], len(record["text"])) for record in records] == [
        (1, "the", 6),
        (2, "the", 6),
        (3, "the", 6),
    ]
    code, shown, _ = invoke(*arguments)
    assert code == 0
    assert all(record["text"] in shown for record in records)


def test_generate_exhaustively(folder: Path) -> None:
    code, out, error = invoke("generate", str(folder / "run"), "--exhaustive", "-n", "2", "--samples", "4", "--json")
    assert code == 0, error
    scores = [json.loads(line)["log_prob"] for line in out.splitlines()]
    assert len(scores) == 4
    assert scores == sorted(scores, reverse=True)


def test_generate_exhaustively_prints_every_text(folder: Path) -> None:
    code, out, error = invoke("generate", str(folder / "run"), "--exhaustive", "-n", "1", "--json")
    assert code == 0, error
    records = [json.loads(line) for line in out.splitlines()]
    assert sum(math.exp(record["log_prob"]) for record in records) == pytest.approx(1.0, abs=1e-5)
    code, shown, _ = invoke("generate", str(folder / "run"), "--exhaustive", "-n", "1")
    assert code == 0
    lines = shown.splitlines()
    assert len(lines) == len(records) and len(set(lines)) == len(lines)
    assert any(line.endswith("  \\n") for line in lines)  # a line end is spelled, and takes no line of its own


def test_predict_says_what_comes_next(folder: Path) -> None:
    code, out, error = invoke("predict", str(folder / "run"), "the ca", "--top", "3", "--json")
    assert code == 0, error
    record = json.loads(out)
    assert record["text"] == "the ca" and len(record["next"]) == 3
    chances = [one["probability"] for one in record["next"]]
    assert chances == sorted(chances, reverse=True) and 0 < sum(chances) <= 1
    (folder / "lines.txt").write_text("the ca\na bir\n")
    code, out, error = invoke("predict", str(folder / "run"), str(folder / "lines.txt"), "--top", "2")
    assert code == 0, error
    rows = [line.split("\t") for line in out.splitlines()]
    assert [row[0] for row in rows] == ["1", "1", "2", "2"]
    assert rows[0][1:] == [f"{chances[0]:.4f}", record["next"][0]["token"]]
    code, out, error = invoke("predict", str(folder / "run"), "the cat!?", "--top", "1")
    assert code == 0 and "reads such as <unk>" in error and len(out.splitlines()) == 1


def test_states_are_written_as_arrays(folder: Path) -> None:
    place = folder / "states.npz"
    code, out, error = invoke("states", str(folder / "run"), "the cat", "a bird", "--out", str(place))
    assert code == 0, error
    assert "states of 2 texts" in out
    with np.load(place) as found:
        assert found["lengths"].tolist() == [7, 6] and found["1.h"].shape == (13, 24)
        assert "".join(found["tokens"]) == "the cata bird"
        last = found["1.h"][[6, 12]]
    code, _, error = invoke("states", str(folder / "run"), "the cat", "a bird", "--last", "--out", str(place))
    assert code == 0, error
    with np.load(place) as found:
        assert found.files == ["1.h"]
        np.testing.assert_array_equal(found["1.h"], last)
    code, _, error = invoke("states", str(folder / "run"), "the cat", "--out", str(folder / "states.csv"))
    assert code == 2 and "ends in .npz" in error


def test_resuming_a_finished_run_changes_nothing(folder: Path) -> None:
    before = (folder / "run" / "model.safetensors").read_bytes(), (folder / "run" / "log.jsonl").read_bytes()
    code, out, error = invoke("train", "lm", "--out", str(folder / "run"), "--resume")
    assert code == 0, error
    assert "the model is in" in out
    assert ((folder / "run" / "model.safetensors").read_bytes(), (folder / "run" / "log.jsonl").read_bytes()) == before


def test_force_starts_over_and_keeps_what_is_not_elmans(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(prose())
    out = tmp_path / "run"
    assert train(text, out, "-s", "train.steps=3")[0] == 0
    (out / "notes.txt").write_text("mine")
    assert train(text, out, "-s", "train.steps=2", "--force")[0] == 0
    assert (out / "notes.txt").read_text() == "mine"
    assert json.loads((out / "metrics.json").read_text())["run"]["steps"] == 2


def test_labels_window_and_ngram_by_the_same_command(tmp_path: Path) -> None:
    table = write_names(tmp_path / "names.csv")
    line = ("-s", "data.unit=line", "-s", "data.label_column=label", "-s", "train.steps=2")
    code, _, error = train(table, tmp_path / "labels", *line)
    assert code == 0, error
    code, out, error = invoke("generate", str(tmp_path / "labels"), "--label", "north", "-n", "4", "--json")
    assert code == 0, error
    assert json.loads(out)["prompt"] == ""
    code, out, error = invoke("evaluate", str(tmp_path / "labels"), str(table), "--json")
    assert code == 0, error
    for kind in ("window", "ngram"):
        text = tmp_path / "text.txt"
        text.write_text(prose())
        code, _, error = train(text, tmp_path / kind, "-s", f"model.kind={kind}", "-s", "train.steps=2")
        assert code == 0, error
        code, out, error = invoke("generate", str(tmp_path / kind), "-p", "the", "-n", "9", "--seed", "1")
        assert code == 0, error
        assert len(out) == 3 + 9 + 1


def test_backward_prompt_is_a_suffix(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(prose())
    assert train(text, tmp_path / "run", "-s", "model.direction=backward", "-s", "train.steps=2")[0] == 0
    code, out, error = invoke("generate", str(tmp_path / "run"), "-p", "the end of a sea", "-n", "8", "--seed", "1")
    assert code == 0, error
    assert out.endswith("the end of a sea\n")
    assert len(out) == 8 + 16 + 1


def test_odd_file_names_can_be_resumed(tmp_path: Path) -> None:
    text = tmp_path / 'a "quoted" \\ name\twith ünicode.txt'
    text.write_text(prose())
    assert train(text, tmp_path / "run", "-s", "train.steps=1")[0] == 0
    code, _, error = invoke("train", "lm", "--out", str(tmp_path / "run"), "--resume")
    assert code == 0, error


def test_a_recipe_file_and_settings_over_it(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(prose())
    recipe = tmp_path / "mine.toml"
    recipe.write_text('[model]\ncell = "rnn"\nhidden = 9\n[train]\nsteps = 1\nthreads = 1\n[baseline]\norder = 0\n')
    command = ("train", "lm", str(recipe), "--train", str(text), "-s", "model.hidden=7", "-o", str(tmp_path / "run"))
    code, _, error = invoke(*command)
    assert code == 0, error
    model = json.loads((tmp_path / "run" / "config.json").read_text())["model"]
    assert (model["cell"], model["hidden"]) == ("rnn", 7)


def test_a_run_that_learned_from_a_pipe(tmp_path: Path) -> None:
    table = "text,label\n" + "ab,north\nxy,south\n" * 12
    (tmp_path / "test.csv").write_text(table)
    small = [part for setting in CLASSIFY for part in ("-s", setting)]
    start = ("train", "classify", "--out", str(tmp_path / "run"))
    code, _, error = invoke(*start, "--train", "-", *small, stdin="")
    assert code == 2 and "standard input is empty" in error
    code, _, error = invoke(*start, "--train", "-", *small, "-s", "train.steps=2", stdin=table)
    assert code == 0, error
    code, out, error = invoke("evaluate", str(tmp_path / "run"), str(tmp_path / "test.csv"), stdin=table)
    assert code == 0 and "most frequent class" not in out
    assert "no baselines made of the training texts: it learned from standard input" in error
    code, _, error = invoke(*start, "--resume", stdin="")
    assert code == 2 and "this run learned from a pipe: pipe the same data again" in error
    code, _, error = invoke(*start, "--resume", stdin=table)
    assert code == 0, error
    assert "nothing is left to train: the run has its 2 updates" in error


def test_a_run_is_not_made_shorter(tmp_path: Path) -> None:
    (tmp_path / "names.csv").write_text("text,label\n" + "ab,north\nxy,south\n" * 12)
    small = [part for setting in (*CLASSIFY, "train.steps=none", "train.epochs=3") for part in ("-s", setting)]
    start = ("train", "classify", "--out", str(tmp_path / "run"))
    code, out, error = invoke(*start, "--train", str(tmp_path / "names.csv"), *small)
    assert code == 0, error
    assert f'try  elman predict {tmp_path / "run"} "a text"' in out and "; 1 thread\n" in error
    card = (tmp_path / "run" / "README.md").read_text()
    assert "for 3 epochs" in card and ", 1 thread." in card
    recipe = (tmp_path / "run" / "recipe.toml").read_text()
    assert "epochs = 3\n" in recipe
    code, _, error = invoke(*start, "--resume", "-s", "train.epochs=2")
    assert code == 2 and "has 3 epochs already: ask for more" in error
    assert (tmp_path / "run" / "recipe.toml").read_text() == recipe
    code, _, error = invoke(*start, "--resume")
    assert code == 0 and "nothing is left to train: the run has its 3 epochs" in error


def test_corpora_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elman.corpora.catalogue.can_make", lambda name: False)
    code, out, error = invoke("data", "list")
    assert code == 0, error
    found = {line.split()[0]: line.rstrip() for line in out.splitlines()[1:]}
    assert found["co2"].endswith("pip install statsmodels")
    assert found["dates"].endswith("pip install elman[demo]")
