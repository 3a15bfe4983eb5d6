"""One or several right answers for each hypothesis."""

from collections.abc import Sequence

from elman.errors import UserError


def check_references(hypotheses: Sequence[object], references: Sequence[Sequence[object]]) -> None:
    """Refuse hypotheses that have not each a list of references.

    >>> check_references(["a"], [[]])
    Traceback (most recent call last):
    elman.errors.UserError: hypothesis 1 has no reference: give at least one
    """
    if len(hypotheses) != len(references):
        raise UserError(
            f"there are {len(hypotheses)} hypotheses and {len(references)} lists of references: give one for each"
        )
    if not len(hypotheses):
        raise UserError("there are no hypotheses to score: give at least one")
    for number, several in enumerate(references, 1):
        if not len(several):
            raise UserError(f"hypothesis {number} has no reference: give at least one")
