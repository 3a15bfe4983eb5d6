"""What `elman evaluate` and `elman generate` share of models that adapt: options, and the model that they ask for."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from elman.errors import UserError

if TYPE_CHECKING:
    from elman.tasks.adapting import AdaptingModel

CACHE = typer.Option(False, "--cache", help="Remember late words (language models): -s cache.size, .theta, .weight.")
ADAPT = typer.Option(
    False, "--adapt", help="Learn from the text as it is read (language models): -s adapt.rate, .decay, .segment."
)
ADAPT_FROM = typer.Option(
    None, "--adapt-from", help="A text to measure gradients on, where the training text is not there."
)
SECTIONS = ("cache", "adapt")


def sorted_settings(settings: Sequence[str]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The settings of how a model adapts, by section, and all others.

    >>> sorted_settings(["cache.size=500", "data.encoding=latin-1"])
    ({'cache': {'size': 500}}, ['data.encoding=latin-1'])
    """
    from elman.train.recipe import apply_overrides

    own = [one for one in settings if one.partition("=")[0].strip().partition(".")[0] in SECTIONS]
    tables = apply_overrides({}, own)
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise UserError(f"'{name}' is a section: give its keys, {name}.key=value")
    return tables, [one for one in settings if one not in own]


def adapting_model(
    model: Any,
    cache: bool,
    adapt: bool,
    tables: dict[str, dict[str, Any]],
    adapt_from: Path | None = None,
    data_dir: Path | None = None,
) -> "AdaptingModel | None":
    """The model that adapts as the options say; None where it is not to."""
    from elman.tasks.adapting import adapting

    asked = {"cache": cache, "adapt": adapt}
    for name in tables:
        if not asked[name]:
            raise UserError(f"-s {name}.{next(iter(tables[name]), 'key')} is a setting of --{name}: give that too")
    if adapt_from is not None and not adapt:
        raise UserError("--adapt-from is a text to measure gradients on for --adapt: give that too")
    if not cache and not adapt:
        return None
    given = {name: tables.get(name, True) for name in SECTIONS if asked[name]}
    return adapting(
        model, **given, adapt_from=adapt_from, data_dir=data_dir, say=lambda line: typer.echo(line, err=True)
    )


def reading_progress() -> Callable[[int, int], None]:
    """Says now and then how far a text is read, on standard error, once it is clear that it takes a while."""
    from elman.train.progress import PLAIN_SECONDS, duration

    began = said = time.monotonic()
    first = before = 0

    def say(done: int, total: int) -> None:
        nonlocal began, said, first, before
        now = time.monotonic()
        if not first or done < before:  # another text; what is done for all of it at once is not counted
            began, first = now, done
        before = done
        if now - said >= PLAIN_SECONDS and first < done < total:
            said = now
            left = (now - began) / (done - first) * (total - done)
            typer.echo(f"{done:,} of {total:,} tokens read, {duration(left)} left", err=True)

    return say
