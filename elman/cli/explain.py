"""`elman explain`: a view of what a model does with a text, in the terminal, as a page, as data or as a picture."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from elman.cli.options import asked_of, task_named, with_options
from elman.errors import UserError

MOST = 1000
"""Texts at most: what is drawn is for eyes."""
COLUMNS = 8
"""Texts that are drawn side by side at most."""


def _view_named(args: Sequence[str]) -> str | None:
    """The view that is asked for."""
    for number, argument in enumerate(args):
        if argument in ("--view", "-v") and number + 1 < len(args):
            return args[number + 1]
        if argument.startswith("--view="):
            return argument.removeprefix("--view=")
    return "faithfulness" if "--faithfulness" in args else None


def _views(task: str | None = None) -> Iterator[Any]:
    from elman.inspect.views import each_view

    return each_view(task)


def _fields(views: Iterable[Any] | None = None) -> dict[str, Any]:
    """Every key that some views have, or that any has; of those of one name that of the first view."""
    several = list(_views() if views is None else views)
    return {name: field for view in reversed(several) for name, field in view.Options.model_fields.items()}


def add_to(app: typer.Typer, line: Sequence[str] | None = None) -> None:
    """Put the command in its place, with the options of all views, or with those of the views that a line may mean."""
    if line is None:
        command = with_options(explain, _fields())
    else:
        command = with_options(explain, _fields(_meant(line)), line, _fields)
    app.command("explain")(command)


def _meant(line: Sequence[str]) -> list[Any]:
    """The views that a line may mean: the one it names, else the first of its model's; for help all of them."""
    from elman.inspect.views import VIEWS, find

    task, view = task_named(line) or "", _view_named(line)
    if "--help" in line and view is None:
        return list(_views(task))
    places = VIEWS.get(task, {})
    return [find(place) for place in ([places[view]] if view in places else list(places.values())[: view is None])]


def explain(
    model: Path = typer.Argument(..., help="A model's folder; with --help, the options of its views are shown too."),
    texts: list[str] = typer.Argument(None, help="Texts, or files, read as by predict; - is standard input."),
    view: str | None = typer.Option(None, "--view", "-v", help="What to look at; a name that is wrong shows them all."),
    out: Path | None = typer.Option(None, "--out", "-o", help="A page (.html), the data (.json), a .png or .svg."),
    data: Path | None = typer.Option(None, "--data", help="A file of records, read as those that it learned from."),
    faithfulness: bool = typer.Option(False, "--faithfulness", help="As --view faithfulness: which method to trust."),
    encoding: str = typer.Option("utf-8", "--encoding", help="Of files and of standard input."),
    **given: Any,
) -> None:
    """Show what a model does with a text: ranks, saliency, alignments, hidden states and more."""
    from elman.draw.output import check_format
    from elman.inspect.explain import explain, find_view
    from elman.tasks import TASKS, load

    if out is not None:
        check_format(out)
    if faithfulness and view not in (None, "faithfulness"):
        raise UserError(f"--faithfulness is a view of its own: leave out --view {view}")
    loaded = load(model)
    found = find_view(loaded, "faithfulness" if faithfulness else view)
    asked = asked_of(given, found.Options.model_fields, lambda name: _elsewhere(name, found))
    several = _texts(loaded, found, texts or [], data, encoding, asked.get("image"))
    if not found.joint and len(several) > COLUMNS and out is not None and out.suffix.lower() != ".json":
        raise UserError(
            f"{len(several)} texts cannot be drawn side by side: give at most {COLUMNS}, or write --out NAME.json"
        )
    explanation = explain(loaded, several, found.name, **asked)
    if out is not None:
        explanation.save(out)
        what = "image" if TASKS[loaded.task].record_is_image else "text"
        count = "" if found.takes_files else f" of {len(several)} {what}{'s' if len(several) != 1 else ''}"
        typer.echo(f"{found.name}{count} is in {out}")
        return
    from rich.console import Console

    from elman.draw.terminal import print_page

    print_page(explanation.page(), Console())


def _elsewhere(name: str, view: Any) -> str:
    """Whose option a key is."""
    owners = dict.fromkeys(other.name for other in _views() if name in other.Options.model_fields)
    return (
        f"the view{'s' * (len(owners) > 1)} {', '.join(owners)}, and not of '{view.name}': leave it out, or ask for "
        "another with --view"
    )


def _texts(
    model: Any, view: Any, named: Sequence[str], data: Path | None, encoding: str, image: str | None
) -> list[Any]:
    """What is to be explained: texts, and the records of files and of standard input, as `elman predict` reads them.

    `image` is that of questions which name none.
    """
    from elman.records.lines import BadLines
    from elman.records.tagged import DocumentMark
    from elman.tasks import TASKS
    from elman.tasks.predict import PredictOptions, inputs

    names = [*named, *([str(data)] if data is not None else [])]
    if view.takes_files:
        return names
    whole = TASKS[model.task].command == "generate"
    if data is not None and whole:
        raise UserError("a language model reads running text, not records: give the file in place of a text")
    if data is not None and not data.exists():
        raise UserError(f"no such file: {data}")
    found: list[Any] = []
    for source in inputs(names or ["-"], encoding, images=TASKS[model.task].record_is_image):
        lines = source.lines(BadLines())
        if whole:
            found.append("\n".join(lines))
            continue
        options = PredictOptions(where=source.where, asked={} if image is None else {"image": image})
        found += [_for_view(view, one) for one in model.read(lines, options) if not isinstance(one, DocumentMark)]
    if len(found) > MOST:
        raise UserError(f"{len(found):,} texts are more than can be explained at a time: give at most {MOST:,}")
    return found


def _for_view(view: Any, read: Any) -> Any:
    """What a view is given of a record that a model has read: all of it, or its text, its tokens, its image's path."""
    record = read[0] if isinstance(read, tuple) else getattr(read, "record", read)
    if view.record is not None:
        return record
    for name in ("text", "source", "image"):
        if getattr(record, name, None):
            return str(getattr(record, name))
    return record.tokens if view.takes_tokens else " ".join(record.tokens)
