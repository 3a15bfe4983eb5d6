"""The two kinds of failure that a user can meet.

`UserError` is the user's to mend: one sentence that says what is wrong, where, and what to do; the command line
prints it and exits with 2. `RunError` is a run that went wrong although the input was right; it exits with 1.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

SHOWN = 30  # words of a list: nobody would read a longer one to its end


class ElmanError(Exception):
    """Base of everything that Elman raises on purpose; its text is one sentence for the user."""


class UserError(ElmanError):
    """Something in the input, the recipe or the command has to change before this can work."""


class RunError(ElmanError):
    """The input was right and the work failed all the same: a NaN, a full disk."""


class Interrupted(ElmanError):
    """The run was asked to stop (SIGINT, SIGTERM) and saved itself first."""


INTERRUPTED = 130
"""The exit code of a command that was asked to stop."""


NO_MEMORY = ("allocate memory", "not enough memory")
"""What PyTorch says where there is no more memory, in an error that has no type of its own."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that there is not enough memory for what was asked.

    >>> is_out_of_memory(RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"))
    True
    >>> is_out_of_memory(RuntimeError("shape '[2, 3]' is invalid for input of size 5"))
    False
    """
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in NO_MEMORY)
    )


def close(word: str, known: Iterable[str] | Mapping[str, str]) -> str | None:
    """The one of some known words that a word is a misspelling of, or what that stands for; None where none is near.

    >>> close("hiden", ["hidden", "layers"]), close("drop", {"dropout": "model.dropout"}), close("x", ["hidden"])
    ('hidden', 'model.dropout', None)
    """
    words = known if isinstance(known, Mapping) else {name: name for name in known}
    found = get_close_matches(word, words, n=1)
    return words[found[0]] if found else None


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of an error message: the nearest right word, or where none is near all of them, or the first of many.

    >>> nearest("hiden", ["hidden", "layers"])
    "did you mean 'hidden'?"
    >>> nearest("x", ["hidden", "layers"])
    'known are: hidden, layers'
    >>> nearest("x", map(str, range(40)))
    'known are: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, \
28, 29 and 10 more'
    """
    known = list(known)
    if (near := close(word, known)) is not None:
        return f"did you mean {near!r}?"
    more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN + 1 else ""
    return f"known are: {', '.join(known[: SHOWN if more else None])}{more}"
