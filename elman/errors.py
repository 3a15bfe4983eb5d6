"""The two kinds of failure that a user can meet.

`UserError` is the user's to mend: one sentence that says what is wrong, where, and what to do; the command line
prints it and exits with 2. `RunError` is a run that went wrong although the input was right; it exits with 1.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class ElmanError(Exception):
    """Base of everything that Elman raises on purpose; its text is one sentence for the user."""


class UserError(ElmanError):
    """Something in the input, the recipe or the command has to change before this can work."""


class RunError(ElmanError):
    """The input was right and the work failed all the same: a NaN, a full disk."""


class Interrupted(ElmanError):
    """The run was asked to stop (SIGINT, SIGTERM) and saved itself first."""


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of an error message: the nearest right word, or all of them where none is near.

    >>> nearest("hiden", ["hidden", "layers"])
    "did you mean 'hidden'?"
    >>> nearest("x", ["hidden", "layers"])
    'known are: hidden, layers'
    """
    known = list(known)
    close = get_close_matches(word, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are: {', '.join(known)}"
