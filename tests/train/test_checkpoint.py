import errno
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError
from safetensors.torch import save_file

from elman.errors import RunError, UserError
from elman.train import checkpoint
from elman.train.checkpoint import VERSION, load_checkpoint, save_checkpoint

DTYPES = (torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool, torch.uint32)
SHAPES = st.lists(st.integers(0, 3), max_size=3)
TENSORS = st.builds(lambda shape, dtype: (torch.rand(shape) * 9).to(dtype), SHAPES, st.sampled_from(DTYPES))
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**130), 2**130), st.floats(allow_nan=False), st.text(), TENSORS
)
NESTS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.one_of(st.text(max_size=4), st.integers()), inner, max_size=4),
    ),
    max_leaves=12,
)


def same(left: object, right: object) -> bool:
    if isinstance(left, torch.Tensor):
        return isinstance(right, torch.Tensor) and left.dtype == right.dtype and torch.equal(left, right)
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


@given(st.dictionaries(st.text(max_size=5), NESTS, max_size=4))
@settings(deadline=None, max_examples=60)
def test_what_goes_in_comes_out(tmp_path_factory: pytest.TempPathFactory, state: dict[str, object]) -> None:
    path = tmp_path_factory.mktemp("nest") / "state.safetensors"
    save_checkpoint(path, state)
    assert same(load_checkpoint(path), state)


def test_nan_and_shared_or_sliced_tensors(tmp_path: Path) -> None:
    base = torch.arange(12.0).view(3, 4)
    save_checkpoint(tmp_path / "s", {"nan": math.nan, "whole": base, "again": base, "column": base[:, 1]})
    found = load_checkpoint(tmp_path / "s")
    assert math.isnan(found["nan"])
    assert torch.equal(found["again"], base)
    assert found["column"].tolist() == [1.0, 5.0, 9.0]


def test_what_cannot_be_held_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="set"):
        save_checkpoint(tmp_path / "s", {"bad": {1, 2}})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "No space left on device"), SafetensorError("I/O error: No space left on device (28)")],
)
def test_a_full_disk_leaves_the_last_good_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    path = tmp_path / "checkpoint" / "state.safetensors"
    save_checkpoint(path, {"step": 1, "weights": torch.ones(3)})

    def half_written(tensors: object, aside: Path, metadata: object) -> None:
        aside.write_bytes(b"half of it")
        raise error

    monkeypatch.setattr(checkpoint, "save_file", half_written)
    with pytest.raises(RunError, match=r"(?i)no space left on device") as caught:
        save_checkpoint(path, {"step": 2, "weights": torch.zeros(3)})
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    assert load_checkpoint(path)["step"] == 1
    assert [file.name for file in path.parent.iterdir()] == ["state.safetensors"]


def test_damage_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    save_checkpoint(path, {"step": 1, "weights": torch.ones(100)})
    whole = path.read_bytes()
    for damaged in (b"", whole[:5], whole[:60], whole[:-1], b"\xff" * 64, whole[:20] + b"#" * 30 + whole[50:]):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match="--force") as caught:
            load_checkpoint(path)
        assert str(path) in str(caught.value)


def test_missing_foreign_and_newer_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no checkpoint"):
        load_checkpoint(tmp_path / "none")
    save_file({"a": torch.ones(1)}, tmp_path / "foreign")
    with pytest.raises(UserError, match="another version"):
        load_checkpoint(tmp_path / "foreign")
    save_file({"a": torch.ones(1)}, tmp_path / "newer", metadata={"version": "99", "nest": "{}"})
    with pytest.raises(UserError, match="another version"):
        load_checkpoint(tmp_path / "newer")
    save_file({"a": torch.ones(1)}, tmp_path / "odd", metadata={"version": str(VERSION), "nest": '["tensor", "7"]'})
    with pytest.raises(UserError, match="damaged"):
        load_checkpoint(tmp_path / "odd")
