"""From a recipe to encoded splits: labels as the recipe says, folders, short files, runs that go on."""

from pathlib import Path

import pytest

from elman.batches import IdStream
from elman.errors import UserError
from elman.tasks import TASKS, training
from elman.tasks.language import LanguageConfig, LanguageModel, LanguageRecipe
from elman.tasks.reading import Reading
from elman.tasks.task import Source
from elman.text import Tokenizer, TokenizerSettings, fit_tokenizer


def recipe(train: Path, *, text: dict | None = None, **data: object) -> LanguageRecipe:
    return LanguageRecipe.model_validate({"data": {"train": [str(train)], **data}, "text": text or {}})


class Opened:
    """The data of a recipe, with the names of their parts."""

    def __init__(self, recipe: LanguageRecipe, tokenizer: Tokenizer | None = None) -> None:
        sources = training.sources_of(recipe.data, None, None)
        found = TASKS["lm"].open(recipe, sources, tokenizer, lambda line: None)
        self.train: IdStream = found.train  # type: ignore[assignment]
        self.dev: IdStream = found.dev  # type: ignore[assignment]
        self.tokenizer: Tokenizer = found.facts["tokenizer"]
        self.labels: list[str] = found.facts["labels"]


def open_data(recipe: LanguageRecipe, tokenizer: Tokenizer | None = None) -> Opened:
    return Opened(recipe, tokenizer)


def encode_file(paths: list[Path], recipe: LanguageRecipe, tokenizer: Tokenizer, labels: list[str]) -> IdStream:
    reading = Reading(recipe.data.unit, 0, True)
    config = LanguageConfig.new("lm", recipe, model=recipe.model, reading=reading, labels=labels)
    model = LanguageModel(config, tokenizer, {})
    return TASKS["lm"].read_set(model, recipe, Source(paths), "it", lambda line: None)  # type: ignore[no-any-return]


def lines_of(ids: IdStream, tokenizer: Tokenizer) -> list[str]:
    return [
        tokenizer.decode(ids.read(int(start), int(end)))
        for start, end in zip(ids.documents, ids.document_ends, strict=True)
    ]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    place = tmp_path / "names.csv"
    place.write_text("".join(f"name{i},{'north' if i % 2 else 'south'}\n" for i in range(40)))
    return place


def test_a_second_column_is_no_label_unless_the_recipe_says_so(table: Path) -> None:
    plain = open_data(recipe(table, unit="line"))
    assert (plain.labels, plain.train.labels, plain.dev.labels) == ([], None, None)
    told = open_data(recipe(table, unit="line", text_column="1", label_column="2"))
    assert told.labels == ["north", "south"]
    for line, label in zip(lines_of(told.train, told.tokenizer), told.train.labels, strict=True):
        assert label == (1 - int(line.removeprefix("name")) % 2)


def test_plain_lines_have_no_labels_to_give(table: Path, tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("one\ntwo\nthree\n")
    with pytest.raises(UserError, match=r"plain\.txt has plain lines without labels"):
        open_data(recipe(tmp_path / "plain.txt", unit="line", label_column="2"))
    told = recipe(table, unit="line", text_column="1", label_column="2")
    data = open_data(told)
    with pytest.raises(UserError, match=r"plain\.txt has plain lines without labels"):
        encode_file([tmp_path / "plain.txt"], told, data.tokenizer, data.labels)
    (tmp_path / "other.csv").write_text("name1,west\n")
    with pytest.raises(UserError, match="unknown label 'west'"):
        encode_file([tmp_path / "other.csv"], told, data.tokenizer, data.labels)


def test_one_line_can_be_scored_but_not_trained_on(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("one line\n")
    (tmp_path / "two.txt").write_text("one\ntwo\n")
    chosen = recipe(tmp_path / "two.txt", unit="line")
    data = open_data(chosen)
    assert (len(data.train.documents), len(data.dev.documents)) == (1, 1)
    ids = encode_file([tmp_path / "one.txt"], chosen, data.tokenizer, [])
    assert (len(ids.documents), ids.characters) == (1, 9)
    for settings in (
        recipe(tmp_path / "one.txt", unit="line"),
        recipe(tmp_path / "two.txt", unit="line", dev=[str(tmp_path / "one.txt")]),
    ):
        with pytest.raises(UserError, match=r"one\.txt has fewer than two lines"):
            open_data(settings)


def test_a_folder_is_read_line_by_line(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\n")
    (folder / "b.csv").write_text("three,x\nfour,y\n")
    chosen = recipe(folder, unit="line", dev_fraction=0.25)
    data = open_data(chosen)
    found = lines_of(data.train, data.tokenizer) + lines_of(data.dev, data.tokenizer)
    assert len(data.dev.documents) == 1
    ids = encode_file([folder], chosen, fit_tokenizer(TokenizerSettings(), ["onetwhrfu"]), [])
    assert len(found) == len(ids.documents) == 4


def test_held_out_lines_are_drawn_once_and_for_all(table: Path) -> None:
    first, again = (open_data(recipe(table, unit="line", dev_fraction=0.2)) for _ in range(2))
    assert len(first.dev.documents) == 8
    held = lines_of(first.dev, first.tokenizer)
    assert held == lines_of(again.dev, again.tokenizer)
    assert not set(held) & set(lines_of(first.train, first.tokenizer))
    few = open_data(recipe(table, unit="line", dev_fraction=0.5, dev_characters=35))
    assert 1 <= few.dev.characters <= 42


@pytest.mark.parametrize("unit", ["stream", "line"])
def test_a_run_that_goes_on_keeps_its_tokenizer(table: Path, unit: str) -> None:
    columns = {"text_column": "1", "label_column": "2"} if unit == "line" else {}
    chosen = recipe(table, unit=unit, text={"kind": "unigram", "size": 300}, **columns)
    mine = fit_tokenizer(TokenizerSettings(), ["name0123456789,southr\n"])
    data = open_data(chosen, tokenizer=mine)
    assert data.tokenizer is mine
    assert data.labels == (["north", "south"] if unit == "line" else [])
    assert mine.decode(data.train.read(0, 4)) == "name"


def test_held_out_blanks_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a few words" + " " * 20)
    with pytest.raises(UserError, match="holds no tokens"):
        open_data(recipe(tmp_path / "a.txt", text={"kind": "words"}))


def test_an_encoding_that_is_none(table: Path) -> None:
    for unit in ("stream", "line"):
        with pytest.raises(UserError, match="'base64' is no encoding"):
            open_data(recipe(table, unit=unit, encoding="base64"))
