"""Captions files of every kind, and what is said of those that cannot be used."""

import json
from pathlib import Path

import pytest

from elman.errors import UserError
from elman.records.captions import CaptionReader
from elman.tasks.caption import without_punctuation

ROWS = [("a.jpg", "A dog ."), ("b.jpg", 'A "red" bus .'), ("a.jpg", "Some dog .")]
RIGHT = [("a.jpg", ("A dog .", "Some dog .")), ("b.jpg", ('A "red" bus .',))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two files that stand for images."""
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / name).write_bytes(b"")
    return tmp_path


def read(path: Path, **options: object) -> list[tuple[str, tuple[str, ...]]]:
    """Names and captions of the images of a file."""
    return [(record.image.name, record.captions) for record in CaptionReader(**options).files(path).read()]  # type: ignore[arg-type]


def _coco(note: object) -> str:
    return json.dumps({"images": [{"id": 1, "file_name": "a.jpg"}], "annotations": [note]})


def test_every_format_gives_the_same_images(folder: Path) -> None:
    images = [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "b.jpg"}]
    notes = [{"image_id": 1 + (name == "b.jpg"), "caption": caption} for name, caption in ROWS]
    texts = {
        "x.tsv": "image\tcaption\n" + "".join(f"{name}\t{caption}\n" for name, caption in ROWS),
        "x.csv": 'caption,file_name\nA dog .,a.jpg\n"A ""red"" bus .",b.jpg\nSome dog .,a.jpg\n',
        "x.jsonl": "".join(json.dumps({"image": name, "captions": list(several)}) + "\n" for name, several in RIGHT),
        "x.json": json.dumps({"images": images, "annotations": notes}),
        "y.json": json.dumps([{"image": name, "caption": caption} for name, caption in ROWS], indent=1),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
        assert read(folder / name) == RIGHT, name
    objects = CaptionReader(images=folder).objects([(name, caption) for name, caption in ROWS])
    assert [(record.image.name, record.captions) for record in objects] == RIGHT
    listed = CaptionReader(images=folder).objects([(Path("a.jpg"), ["A dog .", "Some dog ."])])
    assert [record.captions for record in listed] == [RIGHT[0][1]]


def test_images_are_found_beside_the_file_in_its_folder_and_where_they_are_said_to_be(folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "images").mkdir()
    (folder / "a.jpg").rename(folder / "deep" / "images" / "a.jpg")
    (folder / "deep" / "captions.tsv").write_text("image\tcaption\na.jpg\tA dog .\n")
    assert read(folder / "deep") == [("a.jpg", ("A dog .",))]
    (folder / "b.tsv").write_text("image\tcaption\na.jpg\tA dog .\n")
    assert read(folder / "b.tsv", images=folder / "deep" / "images") == [("a.jpg", ("A dog .",))]


def predicted(reader: CaptionReader, path: Path, text: str, **options: str) -> list[Path]:
    """The images that lines to predict for name."""
    return [record.image for record in reader.lines(text.splitlines(), path, **options)]  # type: ignore[arg-type]


def test_paths_are_from_where_the_user_is_and_names_in_tables_of_the_folder_of_images(folder: Path) -> None:
    reader = CaptionReader(images="photos")
    for typed in (Path("images"), Path("-")):
        assert predicted(reader, typed, "photos/a.jpg") == [Path("photos/a.jpg")]
    assert predicted(reader, folder / "list.tsv", "image\na.jpg") == [Path("photos/a.jpg")]
    assert predicted(reader, Path("-"), '{"image": "a.jpg"}', format="jsonl") == [Path("photos/a.jpg")]


def test_rows_of_captions_of_one_image_are_one_to_predict_for(folder: Path) -> None:
    rows = "\n".join(f"{name}\tsome {number}" for number, name in enumerate(("a.jpg", "a.jpg", "b.jpg", "b.jpg")))
    found = predicted(CaptionReader(), folder / "x.tsv", f"image\tcaption\n{rows}")
    assert [path.name for path in found] == ["a.jpg", "b.jpg"]
    found = predicted(CaptionReader(), folder / "x.tsv", "image\tid\na.jpg\t1\na.jpg\t2")  # no captions: what is asked
    assert [path.name for path in found] == ["a.jpg", "a.jpg"]


@pytest.mark.parametrize("indent", [None, 1])
def test_a_coco_file_is_predicted_for(folder: Path, indent: int | None) -> None:
    images = [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "b.jpg"}]  # those of a test set have no captions
    for whole in ({"images": images}, {"images": images, "annotations": [{"image_id": 1, "caption": "A dog ."}] * 5}):
        found = predicted(CaptionReader(), folder / "x.json", json.dumps(whole, indent=indent))
        assert found == [folder / "a.jpg", folder / "b.jpg"]
    found = predicted(CaptionReader(), folder / "x.json", '{"image": "a.jpg"}\n{"image": "b.jpg"}')
    assert found == [folder / "a.jpg", folder / "b.jpg"]
    with pytest.raises(UserError, match="is no file of COCO captions: it should have lists"):
        predicted(CaptionReader(), folder / "x.json", '{"image":\n"a.jpg"}')


def test_other_columns_are_kept(folder: Path) -> None:
    (folder / "x.tsv").write_text("image\tcaption\tscene\na.jpg\tA dog .\ta dog\n")
    (record,) = CaptionReader().files(folder / "x.tsv").read()
    assert record.fields["scene"] == "a dog"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.tsv", "image\tcaption\na.jpg\tA.\nb.jpg\t\n", "x.tsv:3 has no caption for b.jpg: write one, in words"),
        ("x.json", '{"images": [{"id": 1, "file_name": "a.jpg"}], "annotations": []}', "has no caption for a.jpg"),
        ("x.json", '{"images": [{"id": 1}], "annotations": []}', "is no file of COCO captions"),
        ("x.json", '{"annotations": [', "is no file of COCO captions"),
        ("x.json", '{"images": 5, "annotations": []}', "should have lists of images and of annotations"),
        ("x.json", _coco({"image_id": 7, "caption": "A."}), "annotation 1 is of an image with the id 7: there is none"),
        ("x.json", _coco({"image_id": [1], "caption": "A."}), "annotation 1 should have image_id, a number or a"),
        ("x.json", _coco({"image_id": 1, "caption": None}), "annotation 1 should have .* and caption, a text"),
        ("x.json", _coco(3), "annotation 1 should have image_id"),
        (
            "x.json",
            '{"images": [{"id": 1, "file_name": "a.jpg"}, {"id": 1, "file_name": "b.jpg"}], "annotations": []}',
            "image 2 has the id 1 of another",
        ),
        ("x.tsv", "image\tcaption\na.jpg\tA.\n\tB.\n", "x.tsv:3 names no image: write its path"),
        ("x.tsv", "image\tcaption\n", "holds no images"),
        ("x.txt", "a.jpg A dog\n", "does not show its captions"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(folder: Path, name: str, text: str, message: str) -> None:
    (folder / name).write_text(text)
    with pytest.raises(UserError, match=message) as error:
        read(folder / name)
    assert "Error" not in str(error.value)  # no word of Python's


def test_a_caption_of_which_nothing_is_left_is_none(folder: Path) -> None:
    (folder / "x.tsv").write_text("image\tcaption\na.jpg\t...\na.jpg\tA dog .\n")
    assert read(folder / "x.tsv", ready=without_punctuation) == [("a.jpg", ("A dog .",))]
    (folder / "x.tsv").write_text("image\tcaption\na.jpg\tA dog .\nb.jpg\t! ?\n")
    assert read(folder / "x.tsv")[1] == ("b.jpg", ("! ?",))
    with pytest.raises(UserError, match=r"x\.tsv:3 has no caption for b\.jpg: write one, in words$"):
        read(folder / "x.tsv", ready=without_punctuation)


def test_a_folder_needs_one_captions_file(folder: Path) -> None:
    with pytest.raises(UserError, match=r"has no captions file: put a captions\.tsv"):
        read(folder)
    for name in ("x.tsv", "y.tsv"):
        (folder / name).write_text("image\tcaption\na.jpg\tA dog .\n")
    with pytest.raises(UserError, match=r"has 2 tables \(x\.tsv, y\.tsv\)"):
        read(folder)
    (folder / "captions.csv").write_text("image,caption\na.jpg,A cat .\n")
    assert read(folder) == [("a.jpg", ("A cat .",))]


def test_half_a_surrogate_pair_in_a_coco_file_has_its_place(tmp_path: Path) -> None:
    whole = {"images": [{"id": 1, "file_name": "0.png"}], "annotations": [{"image_id": 1, "caption": "a \ud800 b"}]}
    (tmp_path / "captions.json").write_text(json.dumps(whole))
    with pytest.raises(UserError, match=r"captions.json: annotation 1 has half a surrogate pair"):
        list(CaptionReader().files(tmp_path / "captions.json").records())
