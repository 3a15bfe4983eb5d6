"""Formal languages: what each cell generalises to beyond the lengths it learned from, and the unit that counts.

A network reads a word and says after each symbol which may come next, the end among them (Gers and Schmidhuber 2001).
A word is right where it is right after every symbol.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, cycle
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from elman.draw.panels import HeatMap, Line, Lines, Panel, Table, Token, Tokens
from elman.lab.experiment import Experiment, Say
from elman.lab.networks import CellOptions, LabNetwork, fit, name_of, spread
from elman.lab.recognisers import StackRecogniser
from elman.nn.cells import Cell

LONGEST = 10  # n of the words to learn from; twice as many symbols
TESTED = (2, 4, 6, 8, 10, 12, 15, 20, 30, 40)
EACH = 20  # random words of each length
BATCHES = 60  # that are read again and again
OPENING, CLOSING = "a([", "b)]"  # symbols that count up, and down
Word = tuple[str, list[set[str]]]
"""Its symbols, and after each those that may come next ($ is the end)."""


class LanguageOptions(CellOptions):
    """What can be asked of the languages."""

    cells: tuple[Any, ...] = Field(("rnn", "rnn-relu", "lstm", "gru"), description="Cells to compare; repeat it.")
    hidden: int = Field(16, ge=2, le=1024, description="Units of the layer.")
    updates: int = Field(1200, ge=1, le=1_000_000, description="Of training, for each language.")
    states: int = Field(21, ge=1, le=10_000, description="Of the finite automata that are shown beside the cells.")


def counted(n: int, symbols: str) -> Word:
    """a^n b^n, or a^n b^n c^n: the first symbol or the second may come until the count is known.

    >>> counted(1, "ab") == ("ab", [{"a", "b"}, {"$"}])
    True
    """
    word = "".join(symbol * n for symbol in symbols)
    after = [{symbols[0], symbols[1]}] * n
    for place, symbol in enumerate(symbols[1:], start=1):
        follows = symbols[place + 1] if place + 1 < len(symbols) else "$"
        after += [{symbol}] * (n - 1) + [{follows}]
    return word, [set(one) for one in after]


def nested(pairs: int, kinds: str, chance: np.random.Generator) -> Word:
    """A random word of balanced brackets (Dyck) with so many pairs.

    >>> nested(1, "()", np.random.default_rng(0)) == ("()", [{"(", ")"}, {"(", "$"}])
    True
    """
    opening, closing = kinds[::2], dict(zip(kinds[::2], kinds[1::2], strict=True))
    word, stack, left = "", list[str](), pairs
    after: list[set[str]] = []
    while left or stack:
        if left and (not stack or chance.random() < left / (left + len(stack))):
            stack.append(str(chance.choice(list(opening))))
            word, left = word + stack[-1], left - 1
        else:
            word += closing[stack.pop()]
        after.append({*opening, closing[stack[-1]]} if stack else {*opening, "$"})
    return word, after


LANGUAGES: dict[str, tuple[str, Callable[[int, np.random.Generator], Word]]] = {
    "aⁿbⁿ": ("ab", lambda n, chance: counted(n, "ab")),
    "aⁿbⁿcⁿ": ("abc", lambda n, chance: counted(n, "abc")),
    "Dyck-1": ("()", lambda n, chance: nested(n, "()", chance)),
    "Dyck-2": ("()[]", lambda n, chance: nested(n, "()[]", chance)),
}
"""Of each its symbols, and a word of n pairs."""
STACKS = {
    "aⁿbⁿ": StackRecogniser({"a": "b"}, turns=True),
    "Dyck-1": StackRecogniser({"(": ")"}),
    "Dyck-2": StackRecogniser({"(": ")", "[": "]"}),
}
"""The languages that one stack recognises: of aⁿbⁿcⁿ it has forgotten the count when the c come."""


@dataclass(frozen=True)
class Counter:
    """The unit that follows the count of open symbols best."""

    unit: int
    correlation: float
    word: str
    depth: list[int]
    """Symbols open after each step: an a or an opening bracket counts up, a b or a closing one down."""
    activation: list[float]


@dataclass(frozen=True)
class Learned:
    """One cell and one language."""

    cell: str
    language: str
    accuracy: dict[int, list[float]]
    """By n, for each seed: the share of words that are right after every symbol."""
    counter: Counter


@dataclass(frozen=True)
class Recognised:
    """What an automaton makes of words of a language, as many of each length as the networks are tested on."""

    automaton: str
    language: str
    accuracy: dict[int, float]
    """By n: the share of words that are right after every symbol."""


@dataclass(frozen=True)
class Languages:
    """What the experiment measured."""

    longest: int
    """The n of the longest words to learn from."""
    states: int
    results: list[Learned]
    recognised: list[Recognised]


def encode(words: list[Word], symbols: str) -> tuple[Tensor, Tensor, Tensor]:
    """Words, padded: one-hot (B x T x V), what may come next (B x T x V+1), and which steps count (B x T)."""
    length = max(len(word) for word, _ in words)
    names = symbols + "$"
    x = torch.zeros(len(words), length, len(symbols))
    y = torch.zeros(len(words), length, len(names))
    for row, (word, after) in enumerate(words):
        for step, (symbol, legal) in enumerate(zip(word, after, strict=True)):
            x[row, step, symbols.index(symbol)] = 1
            y[row, step, [names.index(one) for one in legal]] = 1
    lengths = torch.tensor([len(word) for word, _ in words])
    return x, y, torch.arange(length) < lengths[:, None]


def legal_loss(network: nn.Module, x: Tensor, y: Tensor, real: Tensor) -> Tensor:
    """The cross-entropy of whether each symbol may come next."""
    return nn.functional.binary_cross_entropy_with_logits(network(x)[real], y[real])


@torch.no_grad()
def accuracy(network: nn.Module, x: Tensor, y: Tensor, real: Tensor) -> float:
    """The share of words that are right after every symbol."""
    right = ((network(x) > 0) == (y > 0)).all(dim=2) | ~real  # B x T
    return float(right.all(dim=1).float().mean())


@torch.no_grad()
def counting_unit(network: LabNetwork, word: Word, symbols: str) -> Counter:
    """The unit, of the cell state where there is one, whose activation follows the count of open symbols best."""
    x, _, _ = encode([word], symbols)
    inside = network.body.trace(x).inside[0]
    states = inside.get("c", inside["h"])[0].numpy()  # T x H
    depth = list(accumulate((symbol in OPENING) - (symbol in CLOSING) for symbol in word[0]))
    found = [abs(float(np.corrcoef(unit, depth)[0, 1])) if unit.std() > 1e-6 else 0.0 for unit in states.T]
    best = int(np.argmax(found))
    return Counter(best, found[best], word[0], depth, states[:, best].tolist())


def learn(cell: str | type[Cell], language: str, options: LanguageOptions) -> Learned:
    """Train on short words and test on longer ones."""
    symbols, make = LANGUAGES[language]
    table: dict[int, list[float]] = {n: [] for n in TESTED}
    counter: Counter | None = None
    for seed in range(options.seeds):
        torch.manual_seed(seed)
        chance = np.random.default_rng(seed)
        network = LabNetwork(cell, len(symbols), options.hidden, len(symbols) + 1)

        batches = [
            encode([make(int(n), chance) for n in chance.integers(1, LONGEST + 1, size=16)], symbols)
            for _ in range(min(BATCHES, options.updates))
        ]
        fit(network, partial(next, cycle(batches)), legal_loss, options.updates, lr=1e-2)
        for n in TESTED:
            table[n].append(accuracy(network, *encode([make(n, chance) for _ in range(EACH)], symbols)))
        counter = counter or counting_unit(network, make(LONGEST, np.random.default_rng(0)), symbols)
    assert counter is not None
    return Learned(name_of(cell), language, table, counter)


def recognise(language: str, states: int) -> list[Recognised]:
    """A finite automaton of so many states, and the stack recogniser, where one stack is enough.

    >>> finite, stack = recognise("aⁿbⁿ", states=21)
    >>> finite.accuracy[10], finite.accuracy[12], stack.accuracy[40]
    (1.0, 0.0, 1.0)
    """
    name = f"automaton of {states} states"
    if language not in STACKS:  # the a that came; the b that are left, beside the c to come; the c that are left
        return [Recognised(name, language, {n: float(2 * n + 2 + n * (n - 1) // 2 <= states) for n in TESTED})]
    make, chance = LANGUAGES[language][1], np.random.default_rng(0)
    words = {n: [make(n, chance) for _ in range(EACH)] for n in TESTED}
    found = []
    for called, recogniser in ((name, STACKS[language].finite(states)), ("stack", STACKS[language])):
        right = {n: [recogniser.read(word) == after for word, after in some] for n, some in words.items()}
        found.append(Recognised(called, language, {n: float(np.mean(some)) for n, some in right.items()}))
    return found


class LanguagesExperiment(Experiment[Languages]):
    """a^n b^n, a^n b^n c^n and brackets of one and two kinds."""

    name = "languages"
    about = "aⁿbⁿ, aⁿbⁿcⁿ and brackets: learned on short words, tested far beyond; the unit that counts"
    claim = (
        "A finite automaton cannot recognise aⁿbⁿ, nor brackets, because it would have to count; a recurrent network "
        "can: it has units that do."
    )
    Options = LanguageOptions

    def measure(self, options: LanguageOptions, say: Say) -> Languages:
        results = []
        for language in LANGUAGES:
            for cell in options.cells:
                say(f"{language}: {name_of(cell)}")
                results.append(learn(cell, language, options))
        recognised = [one for language in LANGUAGES for one in recognise(language, options.states)]
        return Languages(LONGEST, options.states, results, recognised)

    def verdict(self, data: Languages) -> tuple[bool | None, str]:
        beyond = [n for n in TESTED if n > data.longest]
        best = {
            language: max((one for one in data.results if one.language == language), key=_mean_beyond)
            for language in dict.fromkeys(one.language for one in data.results)
        }
        told = "; ".join(
            f"{language}: {one.cell} {_mean_beyond(one):.0%} (its unit {one.counter.unit + 1} follows the count, "
            f"r = {one.counter.correlation:.2f})"
            for language, one in best.items()
        )
        first = best.get("aⁿbⁿ")
        finite = next(one.accuracy for one in data.recognised if one.language == "aⁿbⁿ")
        holds = first is not None and any(spread(first.accuracy[n]).mean > finite[n] for n in beyond)
        return holds, f"words right beyond n = {data.longest}, the best cell: {told}."

    def panels(self, data: Languages) -> list[Panel]:
        panels: list[Panel] = []
        for language in dict.fromkeys(one.language for one in data.results):
            rows = [one for one in data.results if one.language == language]
            lines = [
                Line(
                    one.cell,
                    list(TESTED),
                    [spread(one.accuracy[n]).mean for n in TESTED],
                    [min(one.accuracy[n]) for n in TESTED],
                    [max(one.accuracy[n]) for n in TESTED],
                )
                for one in rows
            ]
            lines += [
                Line(one.automaton, list(TESTED), [one.accuracy[n] for n in TESTED], dashed=True)
                for one in data.recognised
                if one.language == language
            ]
            panels.append(
                Lines(f"{language}: words right, by n (learned up to {data.longest})", lines, "n", "share of words")
            )
            best = max(rows, key=lambda one: one.counter.correlation).counter
            largest = max(map(abs, best.activation)) or 1.0
            tokens = [
                Token(symbol, value / largest, {"open": str(depth), "activation": f"{value:.3f}"})
                for symbol, depth, value in zip(best.word, best.depth, best.activation, strict=True)
            ]
            note = f"Unit {best.unit + 1} and the number of open symbols: r = {best.correlation:.3f}."
            panels.append(Tokens(f"{language}: the unit that counts", tokens, note=note))
        counters = [
            [one.language, one.cell, str(one.counter.unit + 1), f"{one.counter.correlation:.3f}"]
            for one in data.results
        ]
        panels.append(Table("counting units", ["language", "cell", "unit", "correlation"], counters))
        names = [f"{one.language} {one.cell}" for one in data.results]
        values = [[spread(one.accuracy[n]).mean for n in TESTED] for one in data.results]
        names += [f"{one.language} {one.automaton}" for one in data.recognised]
        values += [[one.accuracy[n] for n in TESTED] for one in data.recognised]
        panels.append(HeatMap("words right", values, names, [f"n = {n}" for n in TESTED]))
        return panels


def _mean_beyond(one: Learned) -> float:
    """The share of words right that are longer than those learned from."""
    return float(np.mean([spread(each).mean for n, each in one.accuracy.items() if n > LONGEST]))
