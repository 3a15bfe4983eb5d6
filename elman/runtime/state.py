"""What an engine remembers of the texts that it has read: of constant size, however long they are."""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elman.errors import UserError
from elman.runtime.arguments import whole_numbers

_MAGIC = b"elman-state-1\n"
_HEAD = struct.Struct("<8sII")  # engine, rows, numbers a row


@dataclass(frozen=True)
class State:
    """The state of some rows. It is never changed: `step` gives a new one.

    >>> state = State(np.zeros((2, 3), dtype=np.float32), engine=b"12345678")
    >>> again = State.from_bytes(state.to_bytes())
    >>> again.rows, again == state
    (2, True)
    """

    numbers: NDArray[np.float32]  # B x S: for each row and layer h, then c where there is one
    engine: bytes
    """Eight bytes that tell which engine, with which weights, made it."""

    def __post_init__(self) -> None:
        matrix = isinstance(self.numbers, np.ndarray) and self.numbers.ndim == 2 and self.numbers.dtype == np.float32
        if not matrix or not isinstance(self.engine, bytes) or len(self.engine) != 8:
            raise UserError("a state is a matrix of float32 numbers and the eight bytes of its engine")
        if not np.isfinite(self.numbers).all():
            raise UserError("a state must have finite numbers only: this one is damaged, or the model is")
        self.numbers.flags.writeable = False

    @classmethod
    def made(cls, numbers: NDArray[np.float32], engine: bytes) -> "State":
        """The state that an engine has just made of numbers that it has found finite: they are not checked again."""
        numbers.setflags(write=False)
        state = cls.__new__(cls)
        fields = state.__dict__
        fields["numbers"], fields["engine"] = numbers, engine
        return state

    @property
    def rows(self) -> int:
        """How many texts it is of."""
        return len(self.numbers)

    def copy(self) -> "State":
        """A state of its own memory; states are never changed, so sharing one is safe too."""
        return State(self.numbers.copy(), self.engine)

    def select(self, rows: Sequence[int]) -> "State":
        """Some rows, in the order given; a row may be named several times.

        >>> State(np.eye(2, dtype=np.float32), b"12345678").select([1, 1]).numbers.tolist()
        [[0.0, 1.0], [0.0, 1.0]]
        """
        chosen = whole_numbers(rows, "the rows")
        if chosen.ndim != 1 or any(not 0 <= row < self.rows for row in chosen):
            raise UserError(f"the state has rows 0 to {self.rows - 1}, and of these {chosen.tolist()} are asked for")
        return State(np.ascontiguousarray(self.numbers[chosen]), self.engine)

    def to_bytes(self) -> bytes:
        """For a file or another process; `from_bytes` gives it back."""
        body = _HEAD.pack(self.engine, *self.numbers.shape) + self.numbers.astype("<f4").tobytes()
        return _MAGIC + body + struct.pack("<I", zlib.crc32(body))

    @classmethod
    def from_bytes(cls, data: bytes) -> "State":
        """What `to_bytes` gave; UserError where it is anything else.

        >>> State.from_bytes(b"something else")
        Traceback (most recent call last):
        elman.errors.UserError: these bytes are no saved state, or a damaged one
        """
        damaged = UserError("these bytes are no saved state, or a damaged one")
        if not isinstance(data, bytes):
            raise damaged
        body, check = data[len(_MAGIC) : -4], data[-4:]
        if not data.startswith(_MAGIC) or len(body) < _HEAD.size or struct.pack("<I", zlib.crc32(body)) != check:
            raise damaged
        engine, rows, size = _HEAD.unpack(body[: _HEAD.size])
        if len(body) != _HEAD.size + 4 * rows * size:
            raise damaged
        numbers = np.frombuffer(body, dtype="<f4", offset=_HEAD.size).reshape(rows, size)
        return cls(numbers.astype(np.float32), engine)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self.engine == other.engine and np.array_equal(self.numbers, other.numbers)

    def __hash__(self) -> int:
        return hash((self.engine, self.numbers.tobytes()))
