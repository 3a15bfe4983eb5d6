"""`elman`: the entry point, and what happens when a command fails.

A user's mistake is one sentence and exit code 2, a failed run one sentence and 1, an interrupted one 130.
`--debug`, anywhere on the line, shows the traceback.

Little is imported here, and that late: whoever interrupts the start should read a sentence as well.
"""

import sys


def main() -> None:
    """The entry point of the `elman` command: `run`, and then the end of the process.

    Python takes all modules apart when it ends: for PyTorch's that takes a third of a second, and under a thread that
    still computes, for a request that was given up, it ends in a crash.
    """
    try:
        run()
    except SystemExit as end:
        from elman.cli.ending import leave

        leave(int(end.code or 0))


def run() -> None:
    """Answer the command line of the process, and exit."""
    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        from elman.cli.ending import interruptible

        with interruptible():
            code = _answer(arguments)
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            raise
        from elman.cli.ending import explain

        code = explain(error)
    sys.exit(code)


def _answer(arguments: list[str]) -> int:
    """Run a command; the exit code that it ends with."""
    from elman.cli.app import PassedThrough, build
    from elman.cli.streams import check_arguments, check_streams

    check_streams()
    check_arguments(arguments)
    try:
        build()(arguments, prog_name="elman")
    except PassedThrough as passed:
        assert passed.__cause__ is not None
        raise passed.__cause__ from None
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # tables are printed by a library that ends by itself then
            raise end.__context__ from None
        sys.stdout.flush()  # here, where it can still be explained that this cannot be done
        return end.code if isinstance(end.code, int) else int(bool(end.code))
    return 0


if __name__ == "__main__":
    main()
