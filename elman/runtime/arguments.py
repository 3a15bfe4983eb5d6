"""Arguments of calls, checked: integers as the kernels take them, anything else refused in a sentence."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elman import kernels
from elman.errors import UserError


def whole_numbers(value: ArrayLike, what: str, shape: tuple[int, ...] | None = None) -> NDArray[np.int64]:
    """`value` as integers of this shape; UserError, which says `what` they are, where it is anything else.

    >>> whole_numbers([3, 1], "the ids", (2,)).tolist()
    [3, 1]
    >>> whole_numbers([0.5], "the ids", (1,))
    Traceback (most recent call last):
    elman.errors.UserError: the ids should be 1 integers, not float64 of shape (1,)
    """
    try:
        numbers = np.asarray(value)
    except (ValueError, TypeError, OverflowError):  # rows of several lengths
        raise UserError(f"{what} should be integers, with as many in each row") from None
    if (shape is None or numbers.shape == shape) and (numbers.dtype.kind in "iu" or not numbers.size):
        whole = np.ascontiguousarray(numbers, np.int64)
        return whole if whole.ndim == numbers.ndim else whole.reshape(numbers.shape)
    expected = "" if shape is None else " x ".join(map(str, shape)) + " "
    raise UserError(f"{what} should be {expected}integers, not {numbers.dtype} of shape {numbers.shape}")


def number_above(value: Any, least: int, what: str) -> int:
    """`value` as an integer that is `least` or more; UserError where it is anything else.

    >>> number_above(0, 1, "threads")
    Traceback (most recent call last):
    elman.errors.UserError: threads must be 1 or more, not 0
    """
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise UserError(f"{what} must be an integer, not {value!r}")
    if value < least:
        raise UserError(f"{what} must be {least} or more, not {value}")
    return int(value)


class Threaded:
    """What runs on so many threads at most; None for as many as `kernels.threads()` says."""

    def __init__(self, threads: int | None) -> None:
        self._threads = None if threads is None else number_above(threads, 1, "threads")

    @property
    def threads(self) -> int:
        """How many threads it uses at most."""
        return self._threads or kernels.threads()
