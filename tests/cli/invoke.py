"""The command line without the seconds that a process of its own takes to import PyTorch."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest.mock import patch

from elman.cli.main import run


def invoke(*arguments: str, stdin: str | bytes = "") -> tuple[int, str, str]:
    """Run `elman` as its entry point does; returns exit code, standard output, standard error."""
    out, error = io.StringIO(), io.StringIO()
    given = io.BytesIO(stdin if isinstance(stdin, bytes) else stdin.encode())
    with (
        patch.object(sys, "argv", ["elman", *arguments]),
        patch.object(sys, "stdin", io.TextIOWrapper(given, "utf-8")),
        redirect_stdout(out),
        redirect_stderr(error),
    ):
        try:
            run()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
    return code, out.getvalue(), error.getvalue()
