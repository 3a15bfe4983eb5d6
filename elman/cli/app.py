"""The commands of `elman`, and how their errors leave them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from inspect import cleandoc
from typing import Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from elman import __version__

COMMANDS = ["train", "evaluate", "predict", "rerank", "generate", "explain", "states", "lab"]
COMMANDS += ["serve", "compare", "export", "data", "bench", "doctor", "demo"]
LOOK: dict[str, Any] = {"pretty_exceptions_enable": False, "rich_markup_mode": "rich"}


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
    """The commands, each imported when it is called; their errors are all explained in one place."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = cast(Any, _Made())

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, in the order of the help."""
        return COMMANDS

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name, which is made when the rest of the line is known."""
        return _Later(cmd_name) if cmd_name in COMMANDS else None

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
        help="Trains, explains and ships recurrent sequence models.",
        no_args_is_help=True,
        **LOOK,
    )
    app.callback()(_options)
    command = typer.main.get_command(app)
    _leave_types_out(command)
    return command


class _Made(Mapping[str, Any]):
    """Every command by its name, with all options that it may have."""

    def __getitem__(self, name: str) -> Any:
        if name not in COMMANDS:
            raise KeyError(name)
        return _made(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Later(TyperCommand):
    """A command that is made when it is called, with the options that go with the rest of the line."""

    def __init__(self, name: str) -> None:
        module = import_module(f"elman.cli.{name}")
        about = module.app.info.help if hasattr(module, "app") else getattr(module, name).__doc__
        super().__init__(name, help=cleandoc(about))

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Read the arguments of the command."""
        assert self.name is not None
        return _made(self.name, list(args)).make_context(info_name, args, parent, **extra)


def _made(name: str, line: list[str] | None = None) -> Any:
    """A command; of those whose options depend on what else is on the line, with those that go with it."""
    app, module = typer.Typer(**LOOK), import_module(f"elman.cli.{name}")
    if hasattr(module, "add_to"):  # where there is more to say than the signature of a function says
        module.add_to(app, line)
    elif hasattr(module, "app"):  # commands below it
        app.add_typer(module.app, name=name)
    else:
        app.command(name)(getattr(module, name))
    command = cast(Any, typer.main.get_group(app)).commands[name]
    _leave_types_out(command)
    return command


def _leave_types_out(command: Any) -> None:
    """A flag takes no value, so its help has no type of one."""
    for option in [*command.params, command.get_help_option(typer.Context(command))]:
        if getattr(option, "is_flag", False):
            option.metavar = ""
    if not isinstance(command, Commands):
        for below in getattr(command, "commands", {}).values():
            _leave_types_out(below)
