import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from elman.errors import UserError
from elman.train.recipe import (
    Section,
    TrainSettings,
    apply_overrides,
    differences,
    known_keys,
    parse,
    read_toml,
    to_toml,
)


class Part(Section):
    """One of everything."""

    name: str = "plain"
    maybe: str | None = None
    names: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()
    count: int = Field(3, ge=1, le=2**62)
    flag: bool = False


class Recipe(Section):
    """Two sections and a key of its own."""

    task: str = "toy"
    part: Part = Part()
    train: TrainSettings = TrainSettings()


# A lone surrogate is no text: no file can hold it.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
PARTS = st.builds(
    Part,
    name=TEXTS,
    maybe=st.none() | TEXTS,
    names=st.lists(TEXTS).map(tuple),
    numbers=st.lists(st.floats(allow_nan=False, allow_infinity=False)).map(tuple),
    count=st.integers(1, 2**62),
    flag=st.booleans(),
)


@given(st.builds(Recipe, task=TEXTS, part=PARTS))
def test_a_recipe_survives_its_toml(recipe: Recipe) -> None:
    assert parse(Recipe, tomllib.loads(to_toml(recipe))) == recipe


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"train": {"learning": 1}}, ["unknown key 'train.learning'"]),
        ({"train": {"warmupp": 1}}, ["unknown key 'train.warmupp'", "did you mean 'train.warmup'?"]),
        ({"trian": {"lr": 1}}, ["unknown key 'trian'"]),
        ({"train": {"lr": "fast"}}, ["'train.lr' = 'fast'", "number"]),
        ({"train": {"lr": True}}, ["'train.lr': should not be true or false"]),
        ({"part": {"numbers": [1, True]}}, ["'part.numbers': should not be true or false"]),
        ({"train": {"lr": -1.0}}, ["'train.lr' = -1.0", "greater than 0"]),
        ({"train": {"lr": float("nan")}}, ["'train.lr'", "finite"]),
        ({"train": {"optimizer": "adm"}}, ["'train.optimizer' = 'adm'", "'adam'"]),
        ({"train": {"betas": [0.9]}}, ["train.betas"]),
        ({"train": {"betas": [0.9, 1.0]}}, ["betas should be at least 0 and less than 1"]),
        ({"train": 3}, ["'train' = 3"]),
        ({"part": {"count": 2.5}}, ["'part.count' = 2.5"]),
        ({"part": {"flag": "perhaps"}}, ["'part.flag' = 'perhaps'"]),
    ],
)
def test_each_mistake_is_one_sentence_that_names_the_key(tables: dict[str, object], words: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        parse(Recipe, tables, where="my.toml")
    message = str(caught.value)
    assert message.startswith("my.toml: ")
    assert "\n" not in message
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("part.count=7", {"part": {"count": 7}}),
        (" part.count = 7 ", {"part": {"count": 7}}),
        ("part.name=gru", {"part": {"name": "gru"}}),
        ('part.name="7"', {"part": {"name": "7"}}),
        ("part.name=a=b", {"part": {"name": "a=b"}}),
        ("part.name=", {"part": {"name": ""}}),
        ('part.names=["a", "b,c"]', {"part": {"names": ["a", "b,c"]}}),
        ("part.numbers=[1, 2.5]", {"part": {"numbers": [1, 2.5]}}),
        ("part.maybe=none", {"part": {"maybe": None}}),
        ("part.flag=true", {"part": {"flag": True}}),
        ("train.lr=1e-3", {"train": {"lr": 1e-3}}),
        ("task=other", {"task": "other"}),
        ("a.b.c=1", {"a": {"b": {"c": 1}}}),
    ],
)
def test_overrides(override: str, expected: dict[str, object]) -> None:
    assert apply_overrides({}, [override]) == expected


def test_overrides_lie_over_the_recipe_and_leave_it_alone() -> None:
    tables = {"part": {"count": 3, "name": "x"}}
    assert apply_overrides(tables, ["part.count=4", "part.count=5"]) == {"part": {"count": 5, "name": "x"}}
    assert tables == {"part": {"count": 3, "name": "x"}}
    assert parse(Recipe, apply_overrides({"part": {"maybe": "x"}}, ["part.maybe=none"])).part.maybe is None


@pytest.mark.parametrize("override", ["part.count", "=3", "", "task.inner=3"])
def test_what_is_no_setting_is_refused(override: str) -> None:
    with pytest.raises(UserError):
        apply_overrides({"task": "toy"}, [override])


def test_differences_name_key_old_and_new() -> None:
    old, new = Recipe(), Recipe(part=Part(count=9), train=TrainSettings(lr=0.5))
    assert differences(old, old) == []
    assert differences(old, new) == ["part.count: 3 -> 9", "train.lr: 0.002 -> 0.5"]


def test_known_keys_are_what_overrides_accept() -> None:
    keys = known_keys(Recipe)
    assert {"task", "part.names", "train.lr"} <= set(keys)
    assert "part" not in keys


def test_files_that_are_no_recipes(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no recipe at"):
        read_toml(tmp_path / "none.toml")
    with pytest.raises(UserError, match="cannot be read: is a directory; name a file"):
        read_toml(tmp_path)
    (tmp_path / "bad.toml").write_text("[part\ncount = 3")
    with pytest.raises(UserError, match=r"bad\.toml is not valid TOML.*line 1"):
        read_toml(tmp_path / "bad.toml")
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(UserError, match="cannot read"):
        read_toml(tmp_path / "latin.toml")
