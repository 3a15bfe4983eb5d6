"""The ids of hypotheses, kept as one pointer and one id a hypothesis and step, and read back once at the end."""

import numpy as np

from elman.decode.candidates import Ints


class Trace:
    """For each step, which hypothesis of the step before each one continues, and by which id.

    >>> trace = Trace()
    >>> trace.add(np.array([0, 0]), np.array([7, 8]))  # two continue hypothesis 0, by 7 and by 8
    >>> trace.add(np.array([1]), np.array([9]))
    >>> trace.read(np.array([2, 1]), np.array([0, 0]))
    [[8, 9], [7]]
    """

    def __init__(self) -> None:
        self.parents: list[Ints] = []
        self.tokens: list[Ints] = []

    def add(self, parents: Ints, tokens: Ints) -> None:
        """Take note of one step."""
        self.parents.append(parents)
        self.tokens.append(tokens)

    def read(self, steps: Ints, places: Ints) -> list[list[int]]:
        """The ids up to each of some hypotheses, told by their step (from 1; 0 is the start) and place in it."""
        ids = np.zeros((len(steps), len(self.tokens)), dtype=np.int64)  # M x T
        places = places.copy()  # M
        for step in range(int(steps.max(initial=0)), 0, -1):
            here = steps >= step  # M
            ids[here, step - 1] = self.tokens[step - 1][places[here]]
            places[here] = self.parents[step - 1][places[here]]
        return [row[:step].tolist() for row, step in zip(ids, steps.tolist(), strict=True)]
