"""Captioners: trained, resumed, asked, compiled, exported, and what is said of wrong input."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import elman
from elman.errors import UserError
from elman.inspect.explain import explain
from elman.tasks.caption import Captioner, CaptionRecipe
from elman.tasks.export import export
from elman.tasks.recipes import load_recipe
from elman.train import loop as loop_module
from tests.cli.invoke import invoke
from tests.tasks.caption_runs import SMALL, images, run, trainer
from tests.tasks.resuming import assert_resumes_exactly

pytest.importorskip("PIL")


@pytest.fixture(scope="module")
def captions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of images with captions."""
    return images(tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="module")
def folder(captions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A captioner that has learned its colours."""
    out = tmp_path_factory.mktemp("runs") / "captioner"
    run(captions, out, "train.epochs=24", "model.decoder=bahdanau", "model.attention=additive")
    return out


@pytest.fixture(autouse=True)
def _no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "draw_curves", lambda folder: None)


def test_it_learns_colours_and_says_how_well(folder: Path, captions: Path) -> None:
    model = elman.load(folder, "caption")
    found = model.predict([captions.parent / f"{number}.png" for number in range(3)])
    for colour, one in zip(("red", "green", "blue"), found, strict=True):
        assert colour in one.text.split()
    report = model.report
    assert report is not None and report["dev"]["bleu_2"] > 60 and report["dev"]["images"] == 24
    assert set(report["baselines"]) == {"nearest training image", "most frequent caption"}
    assert {"bleu_1", "chrf", "rouge_l", "cider", "perplexity"} <= set(report["dev"])


def test_captions_are_words_without_punctuation(folder: Path) -> None:
    model = elman.load(folder, "caption")
    assert "." not in model.vocabulary.target.tokens
    assert model.vocabulary.write(model.vocabulary.say("This is RED .")) == "this is red"


def test_a_caption_of_punctuation_alone_is_none(folder: Path, captions: Path, tmp_path: Path) -> None:
    dots, image = tmp_path / "dots.tsv", captions.parent / "0.png"
    dots.write_text(f"image\tcaption\n{image}\t...\n")
    for command in (("evaluate", str(folder), str(dots)), ("train", "caption", "--train", str(dots), "-o", "x")):
        code, _, said = invoke(*command)
        assert code == 2 and "dots.tsv:2 has no caption for 0.png: write one, in words" in said
    one, two = tmp_path / "one.tsv", tmp_path / "two.tsv"
    one.write_text(f"image\tcaption\n{image}\tA red square .\n")
    two.write_text(f"{one.read_text()}{image}\t! ?\n")
    first, second = (elman.evaluate(folder, path)[str(path)] for path in (one, two))
    assert first == second


def test_compiled_captions_are_those_of_pytorch(folder: Path, captions: Path) -> None:
    paths = [captions.parent / "0.png", captions.parent / "1.png"]
    compiled, torch = (elman.load(folder, "caption", backend=name) for name in ("compiled", "torch"))
    for one, other in zip(compiled.predict(paths, n_best=3), torch.predict(paths, n_best=3), strict=True):
        assert [each.text for each in one.n_best] == [each.text for each in other.n_best]
        assert [each.log_prob for each in one.n_best] == pytest.approx(
            [each.log_prob for each in other.n_best], abs=1e-4
        )


def test_what_translators_can_be_asked_for(folder: Path, captions: Path) -> None:
    model, image = elman.load(folder, "caption"), captions.parent / "0.png"
    assert model.predict(image, prefix="this").text.startswith("this")
    assert "green" in model.predict(image, require=["green"]).text.split()
    assert "red" not in model.predict(image, forbid=["red"]).text.split()
    assert len(model.predict(image, temperature=1.0, n_best=4).n_best) == 4
    found = model.predict(image, alignments=True)
    assert found.weights is not None and found.weights.shape == (len(found.tokens), 4)
    assert np.allclose(found.weights.sum(axis=1), 1, atol=1e-5)
    both = model.ensemble_with(elman.load(folder, "caption"))
    assert both.predict(image).text == model.predict(image).text
    with pytest.raises(UserError, match="no words that could replace"):
        model.predict(image, replace_unknown=True)
    assert model.predict(image.read_bytes()).text == model.predict(str(image)).text
    assert model.predict([]) == []
    refusals = (
        (None, "a NoneType is no image"),
        ([3], "image 1 has the type int: give"),
        ("", "image 1 is empty: give"),
    )
    for wrong, message in refusals:
        with pytest.raises(UserError, match=message):
            model.predict(wrong)


def test_int8_says_the_same(folder: Path, captions: Path) -> None:
    model = elman.load(folder, "caption")
    paths = [captions.parent / f"{number}.png" for number in range(6)]
    whole, small = model.predict(paths), model.to_int8().predict(paths)
    assert sum(one.text == other.text for one, other in zip(whole, small, strict=True)) >= 5


@pytest.mark.parametrize(
    "settings",
    [
        ("model.input_dropout=0.2", "model.image_dropout=0.2", "train.average=ema", "loss.doubly_stochastic=0.5"),
        ("model.image=first", "model.cell=gru", "loss.teacher_forcing=0.7"),
        (
            "model.decoder=luong-feeding",
            "model.attention=dot",
            "model.gate=true",
            "model.layers=2",
            "model.dropout=0.2",
        ),
    ],
)
def test_resumed_equals_uninterrupted(tmp_path: Path, captions: Path, settings: tuple[str, ...]) -> None:
    settings = (*settings, "train.steps=9", "train.evaluate_every=4", "train.checkpoint_seconds=0")
    assert_resumes_exactly(tmp_path, lambda out: trainer(captions, out, *settings), stops=(2, 6))


def test_images_that_are_not_there_are_counted_before_a_run(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("image\tcaption\nc.png\tA.\nd.png\tB.\n")
    with pytest.raises(UserError, match=r"x\.tsv names 2 images that are not there, of 2 \(the first is .*c\.png\)"):
        run(tmp_path / "x.tsv", tmp_path / "run")
    with pytest.raises(UserError, match=r"x\.tsv names 2 images that are not there"):
        elman.evaluate(folder, tmp_path / "x.tsv")


def test_given_features_need_no_images_and_any_column_may_be_called_scene(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({f"{n}.png": np.full((4, 5), n, np.float32) for n in range(3)}, tmp_path / "own.safetensors")
    rows = [f"{n}.png\tA dog .\tbeach" for n in range(3)]
    (tmp_path / "x.tsv").write_text("\n".join(["image\tcaption\tscene", *rows, ""]))
    features = f"model.features={tmp_path / 'own.safetensors'}"
    model = run(tmp_path / "x.tsv", tmp_path / "run", features, "train.steps=2", "model.image_size=none")
    assert "true" not in model.report["dev"]
    assert elman.evaluate(model, tmp_path / "x.tsv").sets == [str(tmp_path / "x.tsv")]
    save_file({f"{n}.png": np.full((4, 7), n, np.float32) for n in range(3)}, tmp_path / "own.safetensors")
    with pytest.raises(UserError, match="has 4 x 7 numbers for an image, and the model was trained on 4 x 5"):
        run(tmp_path / "x.tsv", tmp_path / "on", features, "model.image_size=none", f"train.start={tmp_path / 'run'}")


def test_given_features_are_told_apart_by_their_shape(tmp_path: Path, captions: Path) -> None:
    from safetensors.numpy import save_file

    chance = np.random.default_rng(1)
    own = {f"{number}.png": chance.normal(size=(4, 5)).astype(np.float32) for number in range(24)}
    save_file(own, tmp_path / "own.safetensors")
    save_file({"new.png": own["3.png"]}, tmp_path / "new.safetensors")
    save_file({"new.png": own["3.png"][:2]}, tmp_path / "other.safetensors")
    features = f"model.features={tmp_path / 'own.safetensors'}"
    model = run(captions, tmp_path / "run", features, "train.steps=2", "model.image_size=none")
    known = model.predict(captions.parent / "3.png").text
    assert model.with_features(str(tmp_path / "new.safetensors")).predict("new.png").text == known
    with pytest.raises(UserError, match="has 2 x 5 numbers for an image, and the model was trained on 4 x 5"):
        model.with_features(str(tmp_path / "other.safetensors")).predict("new.png")
    with pytest.raises(UserError, match=r"has no features of other\.png"):
        model.predict("other.png")
    export(tmp_path / "run", tmp_path / "exported", int8=True)
    assert str(tmp_path) not in (tmp_path / "exported" / "config.json").read_text()
    exported = elman.load(tmp_path / "exported", "caption").with_features(str(tmp_path / "new.safetensors"))
    assert exported.predict("new.png").n_best
    (tmp_path / "own.safetensors").unlink()
    options = ("--features", str(tmp_path / "new.safetensors"), "--ensemble", str(tmp_path / "run"))
    code, out, error = invoke("predict", str(tmp_path / "run"), "-", *options, stdin="new.png\n")
    assert code == 0 and out == f"new.png\t{known}\n", error


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["model.image=first", "model.decoder=luong"], "model.decoder = plain attends to nothing"),
        (["model.decoder=plain"], "model.decoder = plain attends to nothing"),
        (["model.image=first", "model.gate=true"], "model.gate is of what is attended to"),
        (["model.image=first", "loss.doubly_stochastic=1"], "loss.doubly_stochastic is about an attention"),
        (["model.attention=dot", "model.image_hidden=7"], "give model.image_hidden = 512, or take general"),
        (["model.learned_state=true"], "of which the first state is made"),
        (["model.embedding=0"], "with one-hot input give model.tied = false"),
        (["model.attention=fixed-length"], "it goes with the bahdanau decoder"),
    ],
)
def test_settings_that_do_not_go_together(settings: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_recipe(CaptionRecipe, None, settings)


# The command line


def predicted(*arguments: str | Path) -> tuple[list[str], str]:
    """The lines that `elman predict` prints, and what it says beside them."""
    code, out, error = invoke("predict", *map(str, arguments))
    assert code == 0, error
    return out.splitlines(), error


def test_images_folders_and_lists_of_paths(folder: Path, captions: Path, tmp_path: Path) -> None:
    here = captions.parent
    single, _ = predicted(folder, here / "0.png", here / "1.png")
    assert [line.split("\t")[0] for line in single] == [str(here / "0.png"), str(here / "1.png")]
    for number in range(2):
        shutil.copy(here / f"{number}.png", tmp_path)
    several, _ = predicted(folder, tmp_path)
    assert [line.split("\t")[1] for line in several] == [line.split("\t")[1] for line in single]
    (tmp_path / "list.txt").write_text("0.png\n1.png\n")
    listed, _ = predicted(folder, tmp_path / "list.txt", "--json")
    assert [json.loads(line)["caption"] for line in listed] == [line.split("\t")[1] for line in single]
    best, _ = predicted(folder, here / "0.png", "--n-best", "2", "--forbid", "red")
    assert len(best) == 2 and not any("red" in line.split("\t")[2] for line in best)


def test_a_broken_image_is_reported_and_skipped_or_fatal(folder: Path, captions: Path, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG no more")
    (tmp_path / "list.txt").write_text(f"a.png\n{captions.parent / '0.png'}\nnone.png\n")
    lines, said = predicted(folder, tmp_path / "list.txt", "--on-error", "skip")
    assert len(lines) == 1 and "2 lines skipped" in said
    assert "list.txt:1 has no caption:" in said and "a.png is broken or no image" in said
    code, out, said = invoke("predict", str(folder), str(tmp_path / "list.txt"))
    assert (code, out) == (2, "") and "list.txt:1 has no caption:" in said
    code, _, said = invoke("predict", str(folder), str(tmp_path / "gone.jpg"))
    assert code == 2 and "no such file" in said
    code, _, said = invoke("predict", str(folder), str(tmp_path / "a.png"))
    assert code == 2 and "images:1" not in said and "a.png is broken or no image" in " ".join(said.split())
    (tmp_path / "list.txt").write_text("none/no.png\n")
    code, _, said = invoke("predict", str(folder), str(tmp_path / "list.txt"))
    assert "none/no.png" in "".join(said.split())


def test_the_folder_of_images_is_for_tables_and_holds_wherever_one_stands(
    captions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "photos").mkdir()
    for number in range(4):
        shutil.copy(captions.parent / f"{number}.png", tmp_path / "photos")
    table = tmp_path / "some.tsv"
    table.write_text("".join(captions.read_text().splitlines(keepends=True)[:9]))
    monkeypatch.chdir(tmp_path)
    settings = [*SMALL, "train.steps=2", "data.images=photos"]
    elman.fit("caption", train="some.tsv", dev="some.tsv", out="run", settings=settings, verbose=False)
    assert elman.load("run")._data().images == str(tmp_path / "photos")
    export("run", "int8", int8=True)
    code, out, _ = invoke("predict", "run", "photos/1.png")
    assert code == 0 and out.startswith("photos/1.png\t")
    code, out, _ = invoke("predict", "run", "-", stdin="photos/1.png\nphotos/1.png\n")
    assert code == 0 and len(out.splitlines()) == 2
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    elman.fit("caption", out=tmp_path / "run", settings={"train.steps": 3}, resume=True, verbose=False)
    code, out, _ = invoke("predict", "../run", "../some.tsv")
    assert code == 0 and [Path(line.split("\t")[0]).name for line in out.splitlines()] == [f"{n}.png" for n in range(4)]
    code, _, said = invoke("predict", "../int8", "../some.tsv")
    assert code == 2 and "some.tsv:2 has no caption: no such file" in " ".join(said.split())
    assert "say where images are with --images FOLDER" in " ".join(said.split())
    code, out, _ = invoke("predict", "../int8", "../some.tsv", "--images", "../photos")
    assert code == 0 and len(out.splitlines()) == 4


def test_options_are_those_that_an_image_can_have(folder: Path, captions: Path) -> None:
    image = str(captions.parent / "0.png")
    _, out, _ = invoke("predict", str(folder), "--help")
    assert "translation" not in out and "--replace-unknown" not in out and "--prefix" in out
    code, _, said = invoke("predict", str(folder), image, "--replace-unknown")
    assert code == 2 and "--replace-unknown is an option of the task 'translate'" in " ".join(said.split())
    _, out, _ = invoke("predict", str(folder), image, "--alignments", "--json")
    weights = [weight for row in json.loads(out)["attention"] for weight in row]
    assert weights and all(weight == round(weight, 4) for weight in weights)


def test_where_it_looked_and_the_gallery(folder: Path, captions: Path, tmp_path: Path) -> None:
    model: Captioner = elman.load(folder)
    image = str(captions.parent / "0.png")
    found = explain(model, image)
    (data,) = found.data
    assert len(data.attention) == len(data.tokens) and np.array(data.attention).shape[1:] == (2, 2)
    found.save(tmp_path / "words.html")
    assert (tmp_path / "words.html").read_text().count("data:image/png") >= 1
    (forced,) = explain(model, image, target="this is blue").data
    assert forced.tokens == ["this", "is", "blue"] and forced.log_prob < data.log_prob
    assert not forced.unknown and "unknown" not in str(explain(model, image, target="this is blue").page())
    strange = explain(model, image, target="this is a Purple zebra .")
    assert strange.data[0].unknown == ["purple", "zebra"] and "does not know 'purple', 'zebra'" in str(strange.page())
    gallery = explain(model, [], view="gallery", count=2)
    (pictures,) = gallery.data
    assert pictures.images == 24 and len(pictures.best) == len(pictures.worst) == 2
    assert pictures.best[0].cider >= pictures.worst[0].cider
    gallery.save(tmp_path / "gallery.html")
    assert "best 1: " in (tmp_path / "gallery.html").read_text()


def test_an_image_is_drawn_in_its_own_shape(folder: Path, tmp_path: Path) -> None:
    from PIL import Image

    for size, shape in (((64, 48), (1, 0.75)), ((30, 300), (0.1, 1)), ((4, 4000), (1 / 336, 1))):
        Image.new("RGB", size, (0, 200, 0)).save(tmp_path / "wide.png")
        found = explain(elman.load(folder), str(tmp_path / "wide.png"))
        (panel,) = found.page().columns[0].panels
        assert panel.shape == pytest.approx(shape, abs=0.01)  # type: ignore[attr-defined]
        found.save(tmp_path / "wide.svg")


def test_the_gallery_shows_images_that_were_held_out_by_chance(captions: Path, tmp_path: Path) -> None:
    model = elman.fit(
        "caption", train=captions, out=tmp_path / "run", settings=[*SMALL, "train.steps=2"], verbose=False
    )
    (pictures,) = explain(model, [], view="gallery").data
    assert pictures.images == model.report["dev"]["images"] < 24
    export(tmp_path / "run", tmp_path / "int8", int8=True)
    with pytest.raises(UserError, match=r"held-out images cannot be found: .*; name a captions file"):
        explain(elman.load(tmp_path / "int8"), [], view="gallery")
