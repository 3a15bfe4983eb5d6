"""`elman explain` on files of records: as `elman predict` reads them, with what a text alone does not say."""

import json
from pathlib import Path
from typing import Any

import pytest

import elman
from tests.cli.invoke import invoke
from tests.tasks import answer_runs, caption_runs, tree_runs

pytest.importorskip("PIL")
KEPT = Path(__file__).parents[1] / "tasks" / "kept"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small models of trees in brackets and of dependencies, of captions with and without attention, of answers."""
    folder = tmp_path_factory.mktemp("records")
    (folder / "heads.conllu").write_text(tree_runs.CONLLU * 4)
    tree_runs.write_trees(folder / "trees.txt", 20)
    captions, questions = caption_runs.images(folder, 6), answer_runs.write(folder / "questions.tsv", 3)
    plain = ("model.image=first", "model.decoder=plain")
    for task, train, name, settings in (
        ("tree", folder / "heads.conllu", "heads", (*tree_runs.SMALL, "model.network=child-sum")),
        ("tree", folder / "trees.txt", "trees", tree_runs.SMALL),
        ("caption", captions, "captions", caption_runs.SMALL),
        ("caption", captions, "plain", (*caption_runs.SMALL, *plain)),
        ("answer", questions, "answers", answer_runs.SMALL),
    ):
        elman.fit(task, train=train, out=folder / name, settings=[*settings, "train.steps=2"], verbose=False)
    return folder


def explained(folder: Path, *line: str) -> list[dict[str, Any]]:
    """What is in the JSON for each text."""
    code, _, error = invoke("explain", *line, "--out", str(folder / "out.json"))
    assert code == 0, error
    return json.loads((folder / "out.json").read_text())["texts"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("option", [[], ["--data"]])
def test_a_dependency_tree_keeps_its_heads(folder: Path, option: list[str]) -> None:
    first, second = explained(folder, str(folder / "heads"), *option, str(folder / "heads.conllu"))[:2]
    assert (first["text"], second["text"]) == ("Moles dig deep holes", "Owls sleep")
    nodes = {node["word"]: node for node in first["nodes"]}
    above = {
        word: None if one["parent"] is None else first["nodes"][one["parent"]]["word"] for word, one in nodes.items()
    }
    assert above == {"Moles": "dig", "deep": "holes", "holes": "dig", "dig": None}


@pytest.mark.parametrize("option", [[], ["--data"]])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("new.txt", "(4 (4 (2 the) (4 great)) (2 film))\n"),
        ("new.csv", "tree,label\n( ( the great ) film ),4\n"),
        ("new.jsonl", '{"tree": "( ( the great ) film )"}\n'),
    ],
)
def test_a_bracketed_tree_keeps_its_shape(
    folder: Path, tmp_path: Path, option: list[str], name: str, content: str
) -> None:
    (tmp_path / name).write_text(content)
    (found,) = explained(folder, str(folder / "trees"), *option, str(tmp_path / name))
    assert [node["text"] for node in found["nodes"]] == ["the", "great", "the great", "film", "the great film"]


def test_a_mistake_in_a_file_is_told_by_its_line(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text("(2 (2 the) (2 film))\n(2 (2 the) (2 film)\n")
    code, _, error = invoke("explain", str(folder / "trees"), str(tmp_path / "new.txt"))
    assert code == 2 and "new.txt:2 looks like a tree" in " ".join(error.split())
    (tmp_path / "new.tsv").write_text("image\tquestion\ngone.png\tis it red ?\n")
    code, _, error = invoke("explain", str(folder / "answers"), str(tmp_path / "new.tsv"))
    assert code == 2 and "new.tsv:2 has no image that can be seen" in " ".join(error.split())


@pytest.mark.parametrize("option", [[], ["--data"]])
def test_a_table_names_images_and_what_is_asked_about_them(folder: Path, tmp_path: Path, option: list[str]) -> None:
    (folder / "new.tsv").write_text("image\tcaption\n1.png\tthis is green\n0.png\tthis is red\n")
    found = explained(folder, str(folder / "captions"), *option, str(folder / "new.tsv"))
    assert [Path(one["image"]).name for one in found] == ["1.png", "0.png"]
    (folder / "asked.tsv").write_text("image\tquestion\n0.png\tis it red ?\n1.png\tis it blue ?\n")
    found = explained(folder, str(folder / "answers"), *option, str(folder / "asked.tsv"))
    assert [(Path(one["image"]).name, one["text"]) for one in found] == [
        ("0.png", "is it red ?"),
        ("1.png", "is it blue ?"),
    ]
    (one,) = explained(folder, str(folder / "answers"), "is it red ?", "--image", str(folder / "0.png"))
    assert one["probabilities"] == found[0]["probabilities"]


def test_a_table_of_texts_is_read_as_one(tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("name,language\nulf,north\nada,south\n")
    found = explained(tmp_path, str(KEPT / "classify"), str(tmp_path / "new.csv"))
    assert [one["text"] for one in found] == ["ulf", "ada"]


def test_marks_between_documents_are_no_sentences(tmp_path: Path) -> None:
    (tmp_path / "new.conll").write_text("-DOCSTART- O\n\nAda B-PER\nran O\n\n")
    (found,) = explained(tmp_path, str(KEPT / "tag"), "--data", str(tmp_path / "new.conll"))
    assert found["text"] == "Ada ran"


def test_a_captioner_without_attention_says_so_and_is_shown_in_a_gallery(folder: Path) -> None:
    code, _, error = invoke("explain", str(folder / "plain"), str(folder / "0.png"))
    assert code == 2 and "this model has no view 'image': it has no attention" in " ".join(error.split())
    assert "it has gallery" in " ".join(error.split())
    code, _, error = invoke("explain", str(folder / "plain"), str(folder / "captions.tsv"), "--view", "gallery")
    assert code == 0, error
