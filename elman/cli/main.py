"""`elman`: the commands, and what happens when one fails.

A user's mistake is one sentence and exit code 2, a failed run one sentence and 1, an interrupted one 130.
`--debug`, anywhere on the line, shows the traceback.
"""

import sys
from importlib import import_module

import typer

from elman import __version__
from elman.errors import ElmanError, Interrupted, UserError

app = typer.Typer(
    name="elman",
    help="Trains, explains and ships recurrent sequence models for language.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"elman {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", help="Show the version.", is_eager=True, callback=_show_version),
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
) -> None:
    pass


COMMANDS = "train evaluate predict rerank generate explain compare export data bench doctor demo"
for module in COMMANDS.split():
    import_module(f"elman.cli.{module}").add_to(app)


def run() -> None:
    """The entry point of the `elman` command."""
    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        app(arguments, standalone_mode=True)
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            raise
        sys.exit(_explain(error))


def _explain(error: BaseException) -> int:
    """One sentence on standard error; returns the exit code."""
    if isinstance(error, BrokenPipeError):  # whoever read our output has had enough
        sys.stderr.close()
        return 0
    if isinstance(error, KeyboardInterrupt):
        print("elman: interrupted", file=sys.stderr)
        return 130
    if not isinstance(error, ElmanError):  # a mistake of Elman's own
        print(f"elman: {type(error).__name__}: {error}; --debug shows where this happened", file=sys.stderr)
        return 1
    print(f"elman: {error}", file=sys.stderr)
    if isinstance(error, UserError):
        return 2
    return 130 if isinstance(error, Interrupted) else 1


if __name__ == "__main__":
    run()
