"""Questions about images: learnt, resumed, scored beside one-sided baselines, asked in every way."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import elman
from elman.errors import UserError
from elman.inspect import explain
from elman.tasks.answer import AnswerRecipe, ImageAnswerer
from elman.tasks.export import export
from elman.tasks.recipes import load_recipe
from tests.cli.invoke import invoke
from tests.tasks.answer_runs import SMALL, write
from tests.tasks.resuming import assert_resumes_exactly
from tests.tasks.runs import task_trainer


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Features are kept where only these tests see them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ELMAN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and the table that it learnt from."""
    place = tmp_path_factory.mktemp("answer")
    table, dev = write(place / "train.tsv"), write(place / "dev.tsv", 6, "dev")
    elman.fit("answer", train=table, dev=dev, out=place / "model", settings=list(SMALL), verbose=False)
    return place


@pytest.fixture(scope="module")
def model(folder: Path) -> ImageAnswerer:
    return elman.load(folder / "model")  # type: ignore[no-any-return]


def fit(train: Any, *settings: str, **more: Any) -> Any:
    return elman.fit("answer", train=train, settings=[*SMALL, "train.steps=2", *settings], verbose=False, **more)


def test_the_report_has_one_sided_baselines_and_types(folder: Path) -> None:
    report = json.loads((folder / "model" / "metrics.json").read_text())
    assert set(report["baselines"]) == {"most frequent answer", "question alone", "image alone"}
    for scores in (report["dev"], *(of["dev"] for of in report["baselines"].values())):
        assert 0 <= scores["accuracy"] <= 1
        assert {"existence", "count", "comparison"} <= set(scores["types"])
        asked = [of["questions"] for of in scores["types"].values()]
        right = sum(of["accuracy"] * of["questions"] for of in scores["types"].values())
        assert sum(asked) == scores["questions"] and right / sum(asked) == pytest.approx(scores["accuracy"])
    assert "accuracy by type" in (folder / "model" / "README.md").read_text()


@pytest.mark.parametrize("join", ["product", "concatenation", "attention", "phrases"])
def test_a_network_learns_what_neither_side_tells(join: str, tmp_path: Path) -> None:
    """Whether two signs are the same: one is the colour of the image, one the word."""
    from PIL import Image

    colours = {"red": (200, 0, 0), "blue": (0, 0, 200)}
    rows = []
    for name, colour in colours.items():
        Image.new("RGB", (16, 16), colour).save(tmp_path / f"{name}.png")
        rows += [
            (str(tmp_path / f"{name}.png"), f"is it {word} ?", "yes" if word == name else "no") for word in colours
        ]
    settings = [f"model.join={join}", "model.image_size=16", "train.steps=150", "train.lr=0.01", "batch.size=2"]
    settings += ["model.output_dropout=0", "model.input_dropout=0", "model.image_dropout=0", "model.join_hidden=16"]
    report = fit(rows, *settings, dev=rows).report
    assert report["dev"]["accuracy"] == 1
    assert max(of["dev"]["accuracy"] for of in report["baselines"].values()) <= 0.75


@pytest.mark.parametrize("join", ["attention", "phrases"])
def test_a_killed_run_goes_on_to_the_same_bytes(join: str, tmp_path: Path) -> None:
    table = write(tmp_path / "train.tsv", 12)
    settings = [*SMALL, f'data.train=["{table}"]', "train.checkpoint_seconds=0", "batch.size=4", f"model.join={join}"]
    recipe = load_recipe(AnswerRecipe, None, settings)
    assert_resumes_exactly(tmp_path, lambda out: task_trainer("answer", recipe, out))


def test_whole_images_are_held_out(tmp_path: Path) -> None:
    from elman.tasks.answer import Answer
    from elman.tasks.task import Source

    recipe = load_recipe(AnswerRecipe, None, list(SMALL))
    data = Answer().open(recipe, {"train": Source([write(tmp_path / "a.tsv", 12)])}, None, print)
    assert data.dev and not {r.image for r in data.train} & {r.image for r in data.dev}


def test_it_answers_alike_in_python_tables_lines_and_int8(folder: Path, model: ImageAnswerer) -> None:
    lines = (folder / "dev.tsv").read_text().splitlines()
    image, question = lines[1].split("\t")[:2]
    answer = model.predict(folder / image, question)
    code, out, _ = invoke("predict", str(folder / "model"), str(folder / "dev.tsv"), "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and len(found) == len(lines) - 1
    assert found[0]["answer"] == answer.label and found[0]["question"] == question and found[0]["type"]
    assert found[0]["probabilities"][answer.label] == pytest.approx(answer.probability, abs=1e-5)
    code, out, _ = invoke("predict", str(folder / "model"), question, "--image", str(folder / image))
    assert out.split("\t")[0] == answer.label
    assert model.predict((folder / image).read_bytes(), question).probability == pytest.approx(answer.probability)
    small = elman.load(export(folder / "model", folder / "int8", int8=True))
    assert small.int8 is not None
    assert small.predict(folder / image, question).probability == pytest.approx(answer.probability, abs=0.02)


def test_a_list_of_pairs_is_answered_as_one_and_another_form_is_told(folder: Path, model: ImageAnswerer) -> None:
    lines = [line.split("\t")[:2] for line in (folder / "dev.tsv").read_text().splitlines()[1:]][:70]
    pairs = [(str(folder / image), question) for image, question in lines]
    for found, pair in zip(model.predict(pairs), pairs, strict=True):
        assert found.probabilities == pytest.approx(model.predict(*pair).probabilities, abs=1e-5)
    (image, question), form = pairs[0], r"give an image and a question, or a list of pairs \(image, question\)"
    assert model.predict([]) == [] and len(model.predict([image, image], question)) == 2
    for wrong in (
        (image,),
        ([image, image], [question, question]),
        ([image],),
        (3, question),
        ({"a": 1},),
        ([(3, "?")],),
    ):
        with pytest.raises(UserError, match=form):
            model.predict(*wrong)


def test_a_broken_image_ends_a_prediction_or_is_passed_over(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes((folder / "images" / "dev-0.png").read_bytes()[:60])
    good = folder / "images" / "dev-0.png"
    asked = [{"image": str(path), "question": "is there a circle ?"} for path in (good, "broken.png", "no.png", good)]
    table = tmp_path / "asked.jsonl"
    table.write_text("".join(json.dumps(one) + "\n" for one in asked))
    code, out, error = invoke("predict", str(folder / "model"), str(table))
    assert code == 2 and len(out.splitlines()) == 1
    assert "asked.jsonl:2 has no image that can be seen" in " ".join(error.split())
    code, out, error = invoke("predict", str(folder / "model"), str(table), "--on-error", "skip")
    assert code == 0 and len(out.splitlines()) == 2 and "2 lines skipped" in error
    code, _, error = invoke("predict", str(folder / "model"), "is it ?", "--image", "none/no.png")
    assert code == 2 and " ".join(error.split()) == "elman: no such file: none/no.png"


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (("no.png", "is it ?", "yes"), "names 1 image that is not there"),
        (("images/train-0.png", " ", "yes"), "has an empty text"),
        (("images/train-0.png", "is it ?", ""), "has an empty answer"),
        (("", "is it ?", "yes"), "names no image"),
    ],
)
def test_bad_records_are_one_sentence(folder: Path, row: tuple[str, ...], sentence: str) -> None:
    (folder / "bad.tsv").write_text(
        "image\tquestion\tanswer\nimages/train-1.png\tis it ?\tno\n" + "\t".join(row) + "\n"
    )
    with pytest.raises(UserError, match=sentence):
        fit(folder / "bad.tsv")


def test_answers_and_features_that_were_not_trained_on_are_refused(folder: Path, model: ImageAnswerer) -> None:
    (folder / "other.tsv").write_text("image\tquestion\tanswer\nimages/train-1.png\tis it ?\tperhaps\n")
    with pytest.raises(UserError, match=r"other.tsv:2 has the label 'perhaps', an answer that no training question"):
        elman.evaluate(model, folder / "other.tsv")
    with pytest.raises(UserError, match="the model was trained on pixels, not on efficientnet-lite0"):
        model.features("efficientnet-lite0")
    code, _, error = invoke("predict", str(folder / "model"), "is it ?", "--image", "a.png", "--features", "b.npy")
    assert code == 2 and "trained on pixels" in " ".join(error.split())


def test_given_features_need_no_images(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    made = {f"{n}.jpg": rng.normal(size=(4, 6)).astype(np.float32) for n in range(8)}
    save_file(made, tmp_path / "made.safetensors")
    rows = [(name, "is it ?", "yes" if n % 2 else "no") for n, name in enumerate(made)]
    model = fit(rows, f"model.features={tmp_path / 'made.safetensors'}", dev=rows)
    assert model.predict("3.jpg", "is it ?").label in ("yes", "no")
    with pytest.raises(UserError, match=r"has no features of 9.jpg"):
        model.predict("9.jpg", "is it ?")
    save_file({"a.jpg": np.zeros((5, 6), np.float32)}, tmp_path / "other.safetensors")
    with pytest.raises(UserError, match="has 5 x 6 numbers for an image, and the model was trained on 4 x 6"):
        model.features(str(tmp_path / "other.safetensors"))
    model.save(tmp_path / "model")
    other = {name: array[:2] for name, array in made.items()}
    save_file(other, tmp_path / "made.safetensors")
    with pytest.raises(UserError, match="has 2 x 6 numbers for an image, and the model was trained on 4 x 6"):
        settings = (f"model.features={tmp_path / 'made.safetensors'}", f"train.start={tmp_path / 'model'}")
        fit(rows, *settings, dev=rows)


def test_the_image_is_no_answer(folder: Path) -> None:
    rows = "".join(f"images/train-{n}.png\ta dog {n % 2}\n" for n in range(4))
    (folder / "captions.tsv").write_text(f"image\tcaption\n{rows}")
    with pytest.raises(UserError, match=r"captions.tsv:1 has the columns image, caption: say which are meant with"):
        fit(folder / "captions.tsv")
    with pytest.raises(UserError, match=r"has the fields picture, text: say which are meant with"):
        fit([{"picture": "a.png", "text": "a dog"}])
    assert fit(folder / "train.tsv", "data.answer=type", "data.image=image").labels[0] == "colour"


def test_the_folder_of_images_and_features_are_known_by_their_full_names(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (folder / "dev.tsv").read_text().replace("images/", "")
    (tmp_path / "dev.tsv").write_text(lines)
    monkeypatch.chdir(folder)
    fit(tmp_path / "dev.tsv", "data.images=images", dev=tmp_path / "dev.tsv", out=tmp_path / "model")
    export(tmp_path / "model", tmp_path / "int8", int8=True)
    monkeypatch.chdir(tmp_path)
    code, out, _ = invoke("predict", "model", "dev.tsv")
    assert code == 0 and len(out.splitlines()) == len(lines.splitlines()) - 1
    code, _, error = invoke("predict", "int8", "dev.tsv")
    assert code == 2 and "no such file: dev-0.png; say where images are with --images FOLDER" in " ".join(error.split())
    code, out, _ = invoke("predict", "int8", "dev.tsv", "--images", str(folder / "images"))
    assert code == 0 and len(out.splitlines()) == len(lines.splitlines()) - 1
    save_file({f"{n}.jpg": np.ones((4, 6), np.float32) for n in range(8)}, "made.safetensors")
    rows = [(f"{n}.jpg", "is it ?", "yes" if n % 2 else "no") for n in range(8)]
    model = fit(rows, "model.features=made.safetensors", dev=rows, out="given")
    assert model.config.model.features == str(tmp_path / "made.safetensors")
    assert "made.safetensors of the image" in Path("given/README.md").read_text()
    assert str(tmp_path) not in Path("given/README.md").read_text().splitlines()[2]
    monkeypatch.chdir(folder)
    assert elman.load(tmp_path / "given").predict("3.jpg", "is it ?").label in ("yes", "no")


@pytest.mark.parametrize("join", ["product", "attention", "phrases"])
def test_what_is_seen_and_read_is_explained(join: str, folder: Path, tmp_path: Path) -> None:
    model = fit(folder / "train.tsv", f"model.join={join}", "model.glimpses=3")
    image = folder / "images" / "dev-0.png"
    found = explain(model, "is there a red circle ?", image=str(image))
    data = found.to_dict()["texts"][0]
    assert data["tokens"] == ["is", "there", "a", "red", "circle", "?"] and len(data["words"]) == 6
    assert np.array(data["places"]).shape == (3, 3)
    if join == "attention":
        weights = np.array(data["attention"])
        assert weights.shape == (3, 3, 3) and np.allclose(weights.sum((1, 2)), 1)
        assert data["glimpses"] == ["glimpse 1", "glimpse 2", "glimpse 3"]
    if join == "phrases":
        weights = np.array(data["attention"])
        assert weights.shape == (3, 3, 3) and (weights > 0).all() and (weights <= 1).all()
        assert [name.split(":")[0] for name in data["glimpses"]] == ["phrase 1", "phrase 2", "phrase 3"]
    for name in ("page.html", "picture.png"):
        found.save(tmp_path / name)
    assert "data:image/png;base64," in (tmp_path / "page.html").read_text()
    with pytest.raises(UserError, match="name it with --image FILE"):
        explain(model, "is there a red circle ?")
