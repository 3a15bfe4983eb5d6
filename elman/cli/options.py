"""Options of the command line that follow from the keys of a section, as those of a task's predictions or of a view."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, get_args, get_origin

import typer

from elman.errors import UserError


def with_options(
    function: Callable[..., None],
    fields: Mapping[str, Any],
    line: Sequence[str] | None = None,
    others: Callable[[], Mapping[str, Any]] = dict,
) -> Callable[..., None]:
    """A command with an option for each of some keys beside its own; it gets their values as `**given`.

    Where a `line` is known and has an option that is unknown, those of `others` are there too: not shown, but they can
    be spoken of.
    """

    @wraps(function)
    def command(**given: Any) -> None:
        function(**given)

    own = [one for one in signature(function).parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    every = [*own, *(_option(name, field) for name, field in fields.items())]
    known = {"--help", *(name for one in every for name in getattr(one.default, "param_decls", None) or ())}
    known = {name for names in known for name in names.split("/")}
    if line is not None and any(part.startswith("--") and part.partition("=")[0] not in known for part in line):
        every += [_option(name, field, hidden=True) for name, field in others().items() if name not in fields]
    command.__signature__ = Signature(every)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in every} | {"return": None}
    return command


def asked_of(given: Mapping[str, Any], fields: Mapping[str, Any], elsewhere: Callable[[str], str]) -> dict[str, Any]:
    """Of the values of such options those that the user gave, numbers as numbers.

    One that is not among `fields` is refused: `elsewhere` says of its key whose option it is, and what to do. What is
    no number where there should be one is told of where the values are checked.
    """
    from elman.train.recipe import from_toml

    def value_of(name: str, value: Any) -> Any:
        if name not in fields:
            raise UserError(f"--{name.replace('_', '-')} is an option of {elsewhere(name)}")
        if _number(_kinds(fields[name].annotation)) is None:
            return value
        return [from_toml(one) for one in value] if isinstance(value, list) else from_toml(value)

    return {name: value_of(name, value) for name, value in given.items() if value not in (None, False, [])}


def task_named(args: Sequence[str]) -> str | None:
    """The task of the first argument that is a model's folder."""
    for argument in args:
        config = Path(argument) / "config.json"
        if not argument.startswith("-") and config.is_file():
            try:
                return str(json.loads(config.read_text(encoding="utf-8"))["task"])
            except (OSError, ValueError, KeyError, TypeError, RecursionError):  # told of when it is loaded
                return None
    return None


def _option(name: str, field: Any, hidden: bool = False) -> Parameter:
    """A key of a task's options as an option of the command line."""
    kinds = list(_kinds(field.annotation))
    flag, several = bool in kinds, get_origin(field.annotation) is tuple
    default: Any = [] if several else False if flag else None
    kind: Any = bool if flag else list[str] if several else str | None
    shown = {int: "INTEGER", float: "FLOAT"}.get(_number(kinds), None if flag else "TEXT")
    typed = f"--{name.replace('_', '-')}"
    usual = "" if field.default in (None, "", (), False) else f" Default: {_written(field.default)}."
    option = typer.Option(default, typed, help=f"{field.description}{usual}", metavar=shown, hidden=hidden)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=option, annotation=kind)


def _written(value: Any) -> str:
    """A default as it would be typed."""
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _kinds(annotation: Any) -> Iterator[Any]:
    """The types that an annotation is made of."""
    yield annotation
    for part in get_args(annotation):
        yield from _kinds(part)


def _number(kinds: Iterable[Any]) -> Any:
    """The kind of number among some types; None where there is none."""
    return next((kind for kind in kinds if kind in (int, float)), None)
