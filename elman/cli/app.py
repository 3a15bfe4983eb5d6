"""The commands of `elman`, and how their errors leave them."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from elman import __version__

COMMANDS = "train evaluate predict rerank generate explain compare export data bench doctor demo"


class PassedThrough(Exception):
    """Holds, as its cause, an error that the library of the command line would answer in its own way."""


@contextmanager
def _past_click() -> Iterator[None]:
    """An interrupt and an error of the system go past the library of the command line, to where all are explained."""
    try:
        yield
    except (KeyboardInterrupt, OSError, EOFError) as error:
        raise PassedThrough from error


class Commands(TyperGroup):
    """The commands, whose errors are all explained in one place, and whose flags are shown without a type."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read the options that stand before a command."""
        with _past_click():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        with _past_click():
            return super().invoke(ctx)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"elman {__version__}")
        raise typer.Exit


def _options(
    version: bool = typer.Option(False, "--version", help="Show the version.", is_eager=True, callback=_show_version),
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
) -> None:
    pass


def build() -> Any:
    """The command `elman` with all that it can do, ready to be called with arguments."""
    app = typer.Typer(
        name="elman",
        cls=Commands,
        help="Trains, explains and ships recurrent sequence models for language.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    app.callback()(_options)
    for module in COMMANDS.split():
        import_module(f"elman.cli.{module}").add_to(app)
    command = typer.main.get_command(app)
    _leave_types_out(command)
    return command


def _leave_types_out(command: Any) -> None:
    """A flag takes no value, so its help has no type of one."""
    for option in [*command.params, command.get_help_option(typer.Context(command))]:
        if getattr(option, "is_flag", False):
            option.metavar = ""
    for below in getattr(command, "commands", {}).values():
        _leave_types_out(below)
