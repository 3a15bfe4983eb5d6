"""`--cache` and `--adapt` on the command line: evaluate, generate, explain."""

import json
from pathlib import Path

import pytest

from tests.cli.invoke import invoke
from tests.cli.models import small
from tests.tasks.runs import prose

SMALL = ["-s", "adapt.segment=10", "-s", "cache.size=50"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of characters, its text, and other texts."""
    folder = tmp_path_factory.mktemp("adapting")
    (folder / "text.txt").write_text(prose(80))
    (folder / "dev.txt").write_text(prose(6))
    (folder / "test.txt").write_text("a dog sang to the cat\n" * 8)
    code, _, error = invoke(
        "train", "lm", "--train", str(folder / "text.txt"), "--out", str(folder / "lm"), *small("lm")
    )
    assert code == 0, error
    return folder


def test_evaluate_shows_static_and_adapted_scores_apart(folder: Path) -> None:
    files = sorted(path.name for path in (folder / "lm").iterdir())
    paths = [str(folder / "dev.txt"), str(folder / "test.txt")]
    code, out, error = invoke("evaluate", str(folder / "lm"), *paths, "--cache", "--adapt", *SMALL, "--json")
    assert code == 0, error
    report = json.loads(out)
    assert set(report["adapted"]) == {"dynamic", "cache + dynamic"}
    assert "measured on" in error and "of the training text" in error
    for path in paths:
        assert report["adapted"]["cache + dynamic"][path]["loss"] != report[path]["loss"]
    assert report["adapting"]["cache"]["size"] == 50
    code, out, _ = invoke("evaluate", str(folder / "lm"), paths[0], "--cache")
    assert code == 0 and "cache" in out and "this model" in out
    assert sorted(path.name for path in (folder / "lm").iterdir()) == files


def test_tuned_settings_are_printed_as_they_are_typed_and_kept_where_asked(folder: Path) -> None:
    arguments = ("evaluate", str(folder / "lm"), str(folder / "dev.txt"), "--no-baselines")
    code, out, error = invoke(*arguments, "--cache", "--adapt", "--tune", "--tune-tokens", "120")
    assert code == 0, error
    (line,) = [line for line in out.splitlines() if line.startswith("settings: ")]
    assert "dynamic: rate" in error and "cache: size" in error
    typed = line.removeprefix("settings: ").split()
    passed = invoke(*arguments, "--cache", "--adapt", "--json", *typed)
    assert passed[0] == 0 and not (folder / "lm" / "adapting.json").exists()
    code, out, error = invoke(*arguments, "--cache", "--adapt", "--tune", "--tune-tokens", "120", "--keep", "--json")
    assert code == 0 and "kept in" in error and "settings: " in error
    assert json.loads(out)["adapting"] == json.loads(passed[1])["adapting"]
    kept = invoke(*arguments, "--cache", "--adapt", "--json")
    assert kept[0] == 0 and "measured on" not in kept[2]
    assert json.loads(kept[1])["adapting"] == json.loads(passed[1])["adapting"]
    for name in ("adapting.json", "gradients.safetensors"):
        (folder / "lm" / name).unlink()


def test_tokens_generate_and_ranks_adapt_too(folder: Path) -> None:
    model, dev = str(folder / "lm"), str(folder / "dev.txt")
    static, cached = (invoke("evaluate", model, dev, "--tokens", *more)[1] for more in ([], ["--cache"]))
    assert len(static.splitlines()) == len(cached.splitlines()) and static != cached
    written = invoke("generate", model, "--cache", "--adapt", "--read", dev, "--seed", "1", "-n", "30", *SMALL)
    assert written[0] == 0 and written[1].strip(), written[2]
    assert invoke("generate", model, "--cache", "--seed", "1", "-n", "30")[0] == 0
    out = str(folder / "ranks.json")
    code, _, error = invoke("explain", model, dev, "--view", "ranks", "--cache", "--adapt", "--read", dev, "-o", out)
    assert code == 0, error


def test_adapted_weights_are_written_to_a_new_folder_alone(folder: Path, tmp_path: Path) -> None:
    model, dev, out = str(folder / "lm"), str(folder / "dev.txt"), tmp_path / "adapted"
    before = (folder / "lm" / "model.safetensors").read_bytes()
    code, _, error = invoke("evaluate", model, dev, "--adapt", "--no-baselines", "--save", str(out))
    assert code == 0 and "adapted model is in" in error
    assert (folder / "lm" / "model.safetensors").read_bytes() == before != (out / "model.safetensors").read_bytes()
    losses = []
    for one in (model, str(out)):
        losses.append(json.loads(invoke("evaluate", one, dev, "--no-baselines", "--json")[1])[dev]["loss"])
    assert losses[1] < losses[0]
    code, _, error = invoke("evaluate", model, dev, "--adapt", "--save", str(out))
    assert code == 2 and "there already" in error


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("evaluate", "MODEL", "DEV", "--tune"), "--tune is for a model that adapts"),
        (("evaluate", "MODEL", "DEV", "--keep"), "--keep is for a model that adapts"),
        (("evaluate", "MODEL", "DEV", "DEV", "--cache", "--tune"), "one held-out file"),
        (("evaluate", "MODEL", "DEV", "--cache", "--tune-tokens", "9"), "--tune-tokens says what --tune reads"),
        (("evaluate", "MODEL", "DEV", "--cache", "--save", "x"), "--save writes the weights that --adapt"),
        (("evaluate", "MODEL", "DEV", "--adapt", "--save", "x", "--tokens"), "leave --tokens out"),
        (("evaluate", "MODEL", "DEV", "--adapt", "-s", "cache.size=3"), "is a setting of --cache"),
        (("evaluate", "MODEL", "DEV", "--cache", "-s", "cache.size=0"), "'cache.size' = 0"),
        (("evaluate", "MODEL", "DEV", "--cache", "-s", "cache=3"), "'cache' is a section"),
        (("evaluate", "MODEL", "DEV", "--adapt-from", "DEV"), "--adapt-from is a text to measure gradients on"),
        (("generate", "MODEL", "--adapt"), "--adapt needs a text to get used to"),
        (("generate", "MODEL", "--read", "DEV"), "--read is a text to get used to"),
        (("generate", "MODEL", "--cache", "-s", "data.unit=line"), "no setting of what is written"),
        (("generate", "MODEL", "--cache", "--read", "nowhere.txt"), "nowhere.txt"),
        (("explain", "MODEL", "the cat", "--view", "ranks", "--read", "DEV"), "by a model that adapts"),
        (("explain", "MODEL", "the cat", "--view", "ranks", "--cache", "--against", "DEV"), "leave out cache"),
    ],
)
def test_what_means_nothing_is_refused_in_a_sentence(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    named = {"MODEL": str(folder / "lm"), "DEV": str(folder / "dev.txt")}
    code, _, error = invoke(*(named.get(one, one) for one in arguments))
    assert code == 2 and said in error, error
    assert error.strip().count("\n") == 0
