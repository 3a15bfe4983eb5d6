"""What a caller may ask of a sequence: how it begins, what is in it, what is not."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index

from elman.errors import UserError

Phrase = tuple[int, ...]


@dataclass(frozen=True)
class Control:
    """A sequence must begin with `prefix`, hold every phrase of `require`, and none of `forbid`.

    A phrase is one id or several in a row. Phrases may overlap in the sequence.

    >>> Control(prefix=(4,), require=((7, 8),)).free
    False
    >>> Control().free
    True
    """

    prefix: Phrase = ()
    require: tuple[Phrase, ...] = ()
    forbid: tuple[Phrase, ...] = ()

    def __post_init__(self) -> None:
        if not all((*self.require, *self.forbid)):
            raise UserError("a phrase to require or to forbid has at least one id: leave the empty one out")
        for phrase in (self.prefix, *self.require, *self.forbid):
            for one in phrase:
                index(one)

    @property
    def free(self) -> bool:
        """Whether nothing is asked."""
        return not (self.prefix or self.require or self.forbid)

    @property
    def needed(self) -> list[Phrase]:
        """The phrases of `require` that no other of them holds already.

        >>> Control(require=((7, 8), (8,), (7, 8))).needed
        [(7, 8)]
        """
        distinct = list(dict.fromkeys(map(tuple, self.require)))
        return [one for one in distinct if not any(holds(other, one) for other in distinct if other != one)]


def holds(ids: Sequence[int], phrase: Sequence[int]) -> bool:
    """Whether `phrase` stands somewhere in `ids`, its ids next to one another.

    >>> holds([1, 2, 3], [2, 3]), holds([1, 2, 3], [1, 3])
    (True, False)
    """
    width = len(phrase)
    return any(tuple(ids[i : i + width]) == tuple(phrase) for i in range(len(ids) - width + 1))


def remaining(control: Control, written: Sequence[int]) -> int:
    """How many ids it takes at most to complete the required phrases after `written`, one phrase after another.

    >>> remaining(Control(require=((7, 8), (5,))), [1, 7])
    2
    """
    open_ = [phrase for phrase in control.needed if not holds(written, phrase)]
    partly = (n for phrase in open_ for n in range(len(phrase)) if n and tuple(written[-n:]) == phrase[:n])
    return sum(map(len, open_)) - max(partly, default=0)


def check_control(control: Control, *, row: int, limit: int, size: int, stop_id: int) -> None:
    """Refuse in one sentence what no sequence of at most `limit` ids of a vocabulary of `size` can be.

    >>> check_control(Control(forbid=((9,),)), row=0, limit=5, size=8, stop_id=0)
    Traceback (most recent call last):
    elman.errors.UserError: sentence 1 forbids the id 9, which is outside the vocabulary of 0 to 7: leave it out
    """
    where = f"sentence {row + 1}"
    parts = {"begins with": [control.prefix], "requires": control.require, "forbids": control.forbid}
    for asks, phrases in parts.items():
        for phrase in phrases:
            wrong = next((id_ for id_ in phrase if not 0 <= id_ < size), None)
            if wrong is not None:
                raise UserError(
                    f"{where} {asks} the id {wrong}, which is outside the vocabulary of 0 to {size - 1}: leave it out"
                )
            if stop_id in phrase:
                raise UserError(f"{where} {asks} the stop id {stop_id}, which only ends a sequence: leave it out")
    for kept in (control.prefix, *control.require):
        for phrase in control.forbid:
            if holds(kept, phrase):
                raise UserError(
                    f"{where} asks for {list(kept)} and forbids {list(phrase)}, which is in it: take one of them back"
                )
    needs = len(control.prefix) + remaining(control, control.prefix)
    if needs > limit:
        raise UserError(
            f"{where} is to hold {needs} given ids but may have {limit} at most: "
            "give it a greater length or ask for less"
        )
