"""Recipes: the settings of a run, in TOML, checked before anything starts.

A task declares its recipe as a pydantic model made of `Section`s. Every mistake is answered with one sentence that
names the key, and the nearest right key where one is misspelt.
"""

import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, cast

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_serializer,
    field_validator,
    model_validator,
)

from elman.errors import UserError, close, nearest
from elman.files import mistake, reading

Settings = Iterable[str] | Mapping[str, Any]
"""Texts `section.key=value`, or values by key: `{"model.hidden": 64}`, `{"model": {"hidden": 64}}`."""

Count = Annotated[int, Field(le=2**31 - 1)]
"""A whole number that a computation takes over as it is, and that must not overflow there."""

EPOCHS = 10  # of a run whose data are large


class Section(BaseModel):
    """A group of keys in a recipe; keys that it does not know are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _as_meant(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse true and false where a number belongs, which Python would take for 1 and 0; `none` may be a word."""
        flags = [item for item in (value if isinstance(value, list | tuple) else [value]) if isinstance(item, bool)]
        if not flags and value is not None:
            return value
        kind = str(cls.model_fields[str(info.field_name)].annotation)
        if flags and "bool" not in kind:
            raise ValueError("should not be true or false")
        return "none" if value is None and "'none'" in kind else value  # how `-s train.average=none` arrives


class BatchSection(Section):
    """How training data are put together: each task has its own, with one key that is chosen where it is not given."""

    chosen: ClassVar[tuple[str, int, int]]
    """That key; what it is for large data; the least that it is for small ones."""

    @property
    def amount(self) -> int:
        """What a batch holds: as given or chosen, else the usual."""
        key, usual, _ = self.chosen
        return int(getattr(self, key) or usual)


class TrainSettings(Section):
    """How to train: shared by every task.

    >>> TrainSettings(optimizer="sgd", lr=20.0, schedule="plateau").clip_norm
    1.0
    """

    optimizer: Literal["sgd", "adam", "adamw", "adagrad"] = "adam"
    lr: float = Field(2e-3, gt=0)
    betas: tuple[float, float] = (0.9, 0.999)
    momentum: float = Field(0.0, ge=0, lt=1)
    weight_decay: float = Field(0.0, ge=0)
    schedule: Literal["constant", "linear", "cosine", "exponential", "plateau", "slanted"] = "cosine"
    final_lr: float = Field(0.0, ge=0, description="fraction of lr at the end of linear, cosine, exponential")
    warmup: int = Field(0, ge=0, description="steps of linear growth from nothing to lr")
    plateau_factor: float = Field(0.25, gt=0, lt=1, description="lr is multiplied by this on a plateau")
    slanted_cut: float = Field(0.1, gt=0, lt=1, description="share of the run in which slanted rises to lr")
    slanted_ratio: float = Field(32.0, ge=1, description="how much smaller than lr slanted begins and ends")
    layer_factor: float = Field(1.0, ge=1, description="a layer's rate is that of the layer above divided by this")
    unfreeze: float = Field(
        0.0, ge=0, description="epochs after which one more layer learns, from the top; 0 is all from the beginning"
    )
    epochs: float | None = Field(None, gt=0, description="10, or up to 40 for small data, if not given")
    steps: int | None = Field(None, gt=0, description="stop after so many updates instead of epochs")
    clip_norm: float | None = Field(1.0, gt=0)
    clip_value: float | None = Field(None, gt=0)
    accumulate: int = Field(1, ge=1, description="batches whose gradients make one update")
    average: Literal["none", "ema", "triggered"] = "none"
    average_decay: float = Field(0.999, gt=0, lt=1, description="of the moving average (ema)")
    average_patience: int = Field(5, ge=1, description="evaluations without improvement that start averaging")
    evaluate_every: int = Field(0, ge=0, description="steps; 0 is once an epoch")
    patience: int = Field(0, ge=0, description="evaluations without improvement before stopping; 0 is never")
    checkpoint_seconds: float = Field(60, ge=0)
    log_every: int = Field(50, ge=1)
    seed: int = Field(1, ge=0, lt=2**63)
    threads: int = Field(0, ge=0, le=1024, description="0 is as many as PyTorch picks")
    start: str | None = Field(None, description="the folder of a trained model of the same task to begin with")
    tensorboard: bool = False
    wandb: bool = Field(False, description="Weights & Biases is told of every record of the log")
    mlflow: bool = Field(False, description="MLflow is told of every record of the log")

    @property
    def networks(self) -> int:
        """How many are trained, one after the other, to answer together."""
        return 1

    @property
    def whole(self) -> str:
        """What has come to its end with the last update, in words."""
        return "the run"

    @property
    def network_seed(self) -> int:
        """What the network and the order of its batches follow from; `seed` is what records are drawn by."""
        return self.seed

    @field_serializer("epochs")
    def _whole(self, value: float | None) -> float | int | None:
        return value if value is None or value % 1 else int(value)

    @model_validator(mode="after")
    def _betas_in_range(self) -> "TrainSettings":
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError("train.betas should be at least 0 and less than 1")
        return self


R = TypeVar("R", bound=Section)


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file; a UserError names the place of a mistake."""
    try:
        with reading(path, missing=f"no recipe at {path}"):
            return tomllib.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise UserError(f"cannot read the recipe {path}: {error}; write it in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not valid TOML: {error}") from None
    except (ValueError, RecursionError):  # what the library has no words for
        raise UserError(f"{path} is no recipe: a number in it is too long, or it is nested too deep") from None


def apply_overrides(tables: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """The recipe with settings laid over it.

    Those of a mapping are values, whatever texts they hold; those of a text are TOML, or plain text where that fails.

    >>> apply_overrides({"model": {"hidden": 128}}, ["model.hidden=256", "model.cell=gru"])
    {'model': {'hidden': 256, 'cell': 'gru'}}
    >>> apply_overrides({"model": {"hidden": 128}}, {"model.layers": np.int64(2), "text": {"prefixes": (2, 3)}})
    {'model': {'hidden': 128, 'layers': 2}, 'text': {'prefixes': [2, 3]}}
    >>> apply_overrides({"model": {"hidden": 128}}, ["model={layers = 2}"])
    {'model': {'hidden': 128, 'layers': 2}}
    """
    result = _copied(tables)
    if isinstance(settings, Mapping):
        _lay_over(result, settings)
        return result
    if not isinstance(settings, Iterable):
        raise UserError(f"settings are values by key, or texts section.key=value, not {settings!r}")
    for setting in [settings] if isinstance(settings, str) else settings:
        name, equals, text = setting.partition("=") if isinstance(setting, str) else ("", "", "")
        if not equals or not name.strip():
            raise UserError(f"{setting!r} is no setting: write section.key=value")
        _put(result, name.strip(), from_toml(text.strip()))
    return result


def _copied(tables: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _copied(value) if isinstance(value, Mapping) else value for key, value in tables.items()}


def _lay_over(tables: dict[str, Any], settings: Mapping[Any, Any]) -> None:
    for key, value in settings.items():
        if not isinstance(key, str) or not key.strip():
            raise UserError(f"{key!r} is no setting's name: write 'section.key'")
        _put(tables, key.strip(), value)


def _put(tables: dict[str, Any], name: str, value: Any) -> None:
    """Put a value in its place; of a section, what it holds, beside what is there."""
    *sections, key = name.split(".")
    for section in [*sections, key] if isinstance(value, Mapping) else sections:
        tables = tables.setdefault(section, {})
        if not isinstance(tables, dict):
            which = f"'{section}'" if section == name else f"'{section}' of '{name}'"
            raise UserError(f"{which} is a value where a section should be: write [{section}] and its keys below")
    if isinstance(value, Mapping):
        _lay_over(tables, value)
    else:
        tables[key] = plain(value)


def plain(value: Any) -> Any:
    """A Python value as a recipe holds it: tuples and arrays are lists, NumPy's numbers and paths what they stand for.

    >>> plain((np.int64(2), Path("a.txt"), None))
    [2, 'a.txt', None]
    """
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return [plain(item) for item in value] if isinstance(value, list | tuple | range) else value


def from_toml(text: str) -> Any:
    """The value that a text stands for: TOML's, nothing for `none`, or else the text itself.

    >>> from_toml("[2, 3]"), from_toml("none"), from_toml("gru")
    ([2, 3], None, 'gru')
    """
    if text.lower() in ("none", "null"):
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # no TOML, or too long or too deep to be any
        return text


def parse(kind: type[R], tables: Mapping[str, Any], where: str = "the recipe") -> R:
    """Check `tables` against the recipe model `kind`; the first mistake becomes one sentence."""
    try:
        return kind.model_validate(tables)
    except ValidationError as error:
        raise UserError(f"{where}: {_explain(kind, error)}") from None


def _explain(kind: type[BaseModel], error: ValidationError) -> str:
    first = error.errors()[0]
    if first["type"] != "extra_forbidden":
        return mistake(error)
    place = [str(part) for part in first["loc"]]
    return f"unknown key '{'.'.join(place)}': {_right_key(kind, place)}"


SHOWN = 20
"""Keys of a section that a message names, at most."""


def _right_key(kind: type[BaseModel], place: list[str]) -> str:
    """What may have been meant by a key that is unknown: one like it, or where to look for one."""
    *sections, key = place
    every = known_keys(kind)
    here = ".".join(sections)
    known = [name for name in every if name.rpartition(".")[0] == here] if sections else section_names(kind)
    if near := close(key, {name.rpartition(".")[2]: name for name in known}):
        return f"did you mean {near!r}?"
    elsewhere = [name for name in every if name.rpartition(".")[2] == key]
    if elsewhere:
        return f"did you mean {' or '.join(map(repr, elsewhere))}?"
    if sections:
        names = [name.rpartition(".")[2] for name in known]
        more = f" and {len(names) - SHOWN} more, which the guide has" if len(names) > SHOWN else ""
        return f"the keys of '{here}' are {', '.join(names[:SHOWN])}{more}"
    if not known:
        return nearest(key, every)
    return f"write section.key=value, where the section is one of {', '.join(known)}"


def section_names(kind: type[BaseModel]) -> list[str]:
    """The sections of a recipe."""
    return [name for name, field in kind.model_fields.items() if _is_section(field.annotation)]


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def known_keys(kind: type[BaseModel], prefix: str = "") -> list[str]:
    """Every key of a recipe, dotted: what `-s` accepts."""
    keys: list[str] = []
    for name, field in kind.model_fields.items():
        if _is_section(field.annotation):
            keys += known_keys(cast(type[BaseModel], field.annotation), f"{prefix}{name}.")
        else:
            keys.append(f"{prefix}{name}")
    return keys


def differences(old: Section, new: Section) -> list[str]:
    """What changed between two recipes, as `key: old -> new`."""
    before, after = flatten(old.model_dump()), flatten(new.model_dump())
    return [f"{key}: {before[key]!r} -> {after[key]!r}" for key in before if before[key] != after.get(key)]


def flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values of nested tables by their dotted keys.

    >>> flatten({"model": {"hidden": 64}})
    {'model.hidden': 64}
    """
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def to_toml(recipe: Section) -> str:
    """The recipe as TOML text, every key written out; keys without a value are left out.

    >>> class Tiny(Section):
    ...     train: TrainSettings = TrainSettings()
    >>> parse(Tiny, tomllib.loads(to_toml(Tiny()))) == Tiny()
    True
    """
    tables = recipe.model_dump(mode="json")
    top = [f"{key} = {toml_value(value)}" for key, value in tables.items() if _is_plain(value)]
    sections = [
        "\n".join(
            [f"\n[{name}]", *(f"{key} = {toml_value(value)}" for key, value in table.items() if _is_plain(value))]
        )
        for name, table in tables.items()
        if isinstance(table, dict)
    ]
    return "\n".join([*top, *sections]) + "\n"


def _is_plain(value: Any) -> bool:
    return value is not None and not isinstance(value, dict)


def toml_value(value: Any) -> str:
    """A value as TOML writes it; `none`, which TOML has no word for, as `-s` takes it.

    >>> toml_value([1, "a\\n"])
    '[1, "a\\\\U0000000A"]'
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + "".join(_escape(character) for character in value) + '"'
    if isinstance(value, list):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    return repr(value)


def _escape(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    return character if character.isprintable() else f"\\U{ord(character):08X}"
