"""Automata that read words of formal languages: with a stack, and without one."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class StackRecogniser:
    """A stack automaton: an opening symbol is pushed, a closing one takes its partner off.

    `pairs` has the closing symbol of each opening one. With `turns` nothing opens any more once something was closed,
    as in aⁿbⁿ. With `depth` the stack holds so many symbols and no more, which makes it a finite automaton of `states`
    states.

    >>> brackets = StackRecogniser({"(": ")", "[": "]"})
    >>> brackets.accepts("([])"), brackets.accepts("([)]"), brackets.accepts("((")
    (True, False, False)
    >>> StackRecogniser({"a": "b"}, turns=True).read("ab") == [{"a", "b"}, {"$"}]
    True
    """

    pairs: Mapping[str, str]
    turns: bool = False
    depth: int | None = None

    def read(self, word: str) -> list[set[str]] | None:
        """The symbols that may come next after each of a word's ($ is the end); None where a symbol was not allowed."""
        stack: list[str] = []
        after, legal, closed = list[set[str]](), {*self.pairs, "$"}, False
        for symbol in word:
            if symbol not in legal or (symbol in self.pairs and len(stack) == self.depth):
                return None
            if symbol in self.pairs:
                stack.append(symbol)
            else:
                stack.pop()
                closed = True
            opening = set() if self.turns and closed else {*self.pairs}
            legal = opening | ({self.pairs[stack[-1]]} if stack else {"$"})
            after.append(legal)
        return after

    def accepts(self, word: str) -> bool:
        """Whether the word may end where it does: all that was opened is closed again."""
        after = self.read(word)
        return after is not None and (not after or "$" in after[-1])

    @property
    def states(self) -> int | None:
        """States of the finite automaton that a stack of `depth` amounts to; None for one that has no end.

        Each content of the stack is a state. Where the word turns, one that is being closed is another than one that is
        being opened.

        >>> StackRecogniser({"(": ")"}, depth=3).states, StackRecogniser({"a": "b"}, turns=True, depth=3).states
        (4, 7)
        """
        if self.depth is None:
            return None
        kinds: int = len(self.pairs)
        contents = sum(int(kinds**length) for length in range(self.depth + 1))
        return contents + (contents - int(kinds**self.depth)) * self.turns

    def finite(self, states: int) -> "StackRecogniser":
        """A recogniser of these brackets with the deepest stack that so many states can stand for.

        >>> StackRecogniser({"(": ")", "[": "]"}).finite(21).depth
        3
        """
        depth = 0
        while (StackRecogniser(self.pairs, self.turns, depth + 1).states or 0) <= states:
            depth += 1
        return StackRecogniser(self.pairs, self.turns, depth)
