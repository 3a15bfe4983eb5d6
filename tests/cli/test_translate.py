"""`elman predict` and `elman explain` on a translator: options, formats, mistakes."""

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from elman.draw.alignment import draw_alignment
from tests.cli.invoke import invoke
from tests.tasks.translate_runs import sentences, untrained

TEXT = "der hund sieht ein vogel"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two translators with the same vocabularies, one without attention, and some lines."""
    folder = tmp_path_factory.mktemp("translate")
    for name, options in {"run": {}, "other": {"seed": 4}, "plain": {"decoder": "plain"}}.items():
        untrained(sentences(), kind="words", **options).save(folder / name)
    (folder / "new.txt").write_text(f"{TEXT}\nein vogel\n")
    return folder


def test_predict_with_every_option(folder: Path) -> None:
    model = untrained(sentences(), kind="words")
    run, data = str(folder / "run"), str(folder / "new.txt")
    code, out, error = invoke("predict", run, data)
    assert (code, out.splitlines()) == (0, [one.text for one in model.predict([TEXT, "ein vogel"])]), error
    code, out, _ = invoke("predict", run, data, "--beam", "3", "--n-best", "2")
    assert code == 0 and [line.split("\t")[0] for line in out.splitlines()] == ["1", "1", "2", "2"]
    code, out, _ = invoke("predict", run, data, "--prefix", "the dog", "--require", "a bird", "--forbid", "sees")
    for line in out.splitlines():
        assert line.startswith("the dog") and "a bird" in line and "sees" not in line
    code, out, _ = invoke("predict", run, data, "--alignments", "--length-power", "0", "--beam", "2")
    found = model.predict([TEXT, "ein vogel"], alignments=True, length_power=0, beam=2)
    assert out.splitlines() == [f"{one.text}\t{one.pharaoh}" for one in found]
    code, out, error = invoke("predict", run, data, "--json", "--ensemble", str(folder / "other"))
    both = model.ensemble_with(untrained(sentences(), kind="words", seed=4)).predict(TEXT)
    assert json.loads(out.splitlines()[0])["log_prob"] == pytest.approx(both.n_best[0].log_prob, abs=1e-4), error


def test_explain_draws_a_picture(folder: Path) -> None:
    model = untrained(sentences(), kind="words")
    text = next(pair.source for pair in sentences() if model.predict(pair.source).text)
    code, out, error = invoke("explain", str(folder / "run"), text, "--out", str(folder / "a.png"))
    assert code == 0, error
    assert out.splitlines() == [f"alignment of 1 text is in {folder / 'a.png'}"]
    assert (folder / "a.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert imread(folder / "a.png").shape[0] > 50


def test_explain_writes_the_weights(folder: Path) -> None:
    target = "the dog sees a bird"
    arguments = ("explain", str(folder / "run"), TEXT, "--out", str(folder / "a.json"), "--target", target)
    code, _, error = invoke(*arguments)
    assert code == 0, error
    (found,) = json.loads((folder / "a.json").read_text())["texts"]
    assert found["translation"] == target
    assert found["source_tokens"] == TEXT.split() and found["target_tokens"] == target.split()
    assert np.array(found["weights"]).sum(axis=1) == pytest.approx(np.ones(5), abs=1e-4)


def test_a_picture_needs_a_weight_for_each_pair_of_tokens(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="2 x 3 tokens but weights of"):
        draw_alignment(np.ones((3, 2)), ["a", "b", "c"], ["x", "y"], tmp_path / "a.png")
    assert not list(tmp_path.iterdir())


def test_a_picture_of_signs_that_a_font_may_lack(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    draw_alignment(np.ones((2, 3)) / 3, ["犬", " ", "$x$"], ["猫", "\n"], tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 500
    assert not [warning for warning in recwarn if "Glyph" in str(warning.message)]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("predict", "{run}", "{new}", "--beam", "0"), "'beam' = 0: should be greater than or equal to 1"),
        (("predict", "{run}", "{new}", "--beam", "50"), "a beam of 50 is larger than the target's vocabulary of 8"),
        (("predict", "{run}", "{new}", "--n-best", "0"), "'n_best' = 0"),
        (("predict", "{run}", "{new}", "--n-best", "50"), "n_best = 50 is larger than the target's vocabulary"),
        (("predict", "{run}", "{new}", "--beam", "2", "--n-best", "3"), "n_best = 3 is more than beam = 2"),
        (("predict", "{run}", "{new}", "--require", "cat"), "'cat' cannot be asked for"),
        (("predict", "{run}", "{new}", "--prefix", "cat"), "'cat' cannot be asked for"),
        (("predict", "{run}", "{new}", "--require", "dog", "--forbid", "dog"), "'dog' is asked for and 'dog'"),
        (("predict", "{run}", "{new}", "--max-length", "2", "--require", "a dog sees"), "takes 3 tokens"),
        (("predict", "{run}", "{new}", "--beam", "many"), "'beam' = 'many'"),
        (("predict", "{run}", "{new}", "--temperature", "hot"), "'temperature' = 'hot'"),
        (("predict", "{run}", "{new}", "--ensemble", "{folder}/nowhere"), "no model folder"),
        (("predict", "{plain}", "{new}", "--alignments"), "this model has no attention"),
        (("predict", "{run}", "{folder}/empty.txt"), "empty.txt:2 has an empty text"),
        (("explain", "{run}", TEXT, "--out", "{folder}/a.pdf"), "should end in .html for a page"),
        (("explain", "{plain}", TEXT, "--view", "alignment"), "no view 'alignment': it has no attention; it has tree"),
        (("explain", "{run}", TEXT, "--view", "tree", "--target", "x"), "--target is an option of the view"),
        (("explain", "{run}", " ", "--out", "{folder}/b.png"), "is empty"),
        (("explain", "{run}", TEXT, "--out", "{folder}/b.png", "--target", ""), "the target is empty"),
        (("evaluate", "{run}", "{folder}/a.de", "{folder}/a.en"), "a.de is longer than"),
    ],
)
def test_mistakes_are_one_sentence(folder: Path, arguments: tuple[str, ...], sentence: str) -> None:
    (folder / "empty.txt").write_text(f"{TEXT}\n\n{TEXT}\n")
    (folder / "a.de").write_text("der hund\nein vogel\n")
    (folder / "a.en").write_text("the dog\n")
    names = {"run": folder / "run", "plain": folder / "plain", "new": folder / "new.txt", "folder": folder}
    code, _, error = invoke(*(part.format(**names) for part in arguments))
    assert code == 2
    assert sentence in error
    assert len(error.strip().splitlines()) == 1
    assert not (folder / "b.png").exists()


@pytest.mark.parametrize(
    ("option", "sentence"), [(("--beems", "2"), "No such option: --beems"), (("--beam",), "requires an argument")]
)
def test_an_option_that_is_none_is_refused_by_name(folder: Path, option: tuple[str, ...], sentence: str) -> None:
    code, out, error = invoke("predict", str(folder / "run"), str(folder / "new.txt"), *option)
    assert (code, out) == (2, "")
    assert sentence in error


def test_nought_is_an_answer_and_not_left_out(folder: Path) -> None:
    run, data = str(folder / "run"), str(folder / "new.txt")
    greedy = [one.text for one in untrained(sentences(), kind="words").predict([TEXT, "ein vogel"], beam=1)]
    code, out, error = invoke("predict", run, data, "--temperature", "0")
    assert (code, out.splitlines()) == (0, greedy), error
