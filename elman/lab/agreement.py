"""Agreement: whether a verb is given the number of its subject or that of the nearest noun (Linzen et al. 2016)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

from elman.draw.panels import Line, Lines, Panel, Table
from elman.errors import UserError
from elman.generated.agreement import BETWEEN, EACH, FURTHEST, MOST, AgreementPair, agreement, agreement_pairs
from elman.lab.experiment import Experiment, Say
from elman.lab.networks import CellOptions, LabNetwork, fit, name_of, spread
from elman.nn.cells import Cell
from elman.tasks import LanguageModel, load

BATCH = 32  # sentences
Score = Callable[[Sequence[str]], list[float]]
"""The log-probability of each of some sentences."""


class AgreementOptions(CellOptions):
    """What can be asked of agreement."""

    cells: tuple[Any, ...] = Field(("rnn", "lstm", "gru"), description="Cells to compare; repeat it.")
    hidden: int = Field(32, ge=2, le=2048, description="Units of the layer.")
    updates: int = Field(600, ge=1, le=1_000_000, description="Of training, 32 sentences each.")
    model: str | None = Field(None, description="The folder of a language model to score in place of cells.")
    attractors: int = Field(MOST, ge=1, le=FURTHEST, description="Nouns between subject and verb, at most.")
    pairs: int = Field(EACH, ge=1, le=100_000, description="Of sentences, for each number of nouns.")


@dataclass(frozen=True)
class Agreed:
    """One cell, or one model: what is right by the number of nouns between subject and verb, for each seed."""

    name: str
    attracted: dict[int, list[float]]
    """Where all of them have another number than the subject."""
    together: dict[int, list[float]]
    """Where all of them have the subject's number."""
    unknown: int = 0
    """Pairs left out since the model reads both sentences the same."""


@dataclass(frozen=True)
class Agreement:
    """What the experiment measured."""

    learned: int
    """Nouns between subject and verb in the sentences to learn from, at most."""
    pairs: int
    results: list[Agreed]


def accuracies(score: Score, pairs: Sequence[AgreementPair]) -> tuple[dict[int, float], dict[int, float]]:
    """The share of pairs whose right sentence is the likelier one, by nouns between: attractors, and no attractors.

    Without a noun between there is no attractor, so that share stands in both.

    >>> attracted, together = accuracies(lambda texts: [-len(text) for text in texts], agreement_pairs(1, 1))
    >>> sorted(attracted), sorted(together)
    ([0, 1], [0, 1])
    """
    right, wrong = score([pair.right for pair in pairs]), score([pair.wrong for pair in pairs])
    better = [one > other for one, other in zip(right, wrong, strict=True)]
    kinds: tuple[dict[int, list[bool]], dict[int, list[bool]]] = {}, {}
    for pair, found in zip(pairs, better, strict=True):
        for kind in (0, 1) if not pair.between else (0,) if pair.attractors else (1,):
            kinds[kind].setdefault(pair.between, []).append(found)
    attracted, together = ({n: sum(found) / len(found) for n, found in sorted(kind.items())} for kind in kinds)
    return attracted, together


class OneHotReader:
    """Sentences as one-hot vectors and targets, for networks that this experiment trains."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.words = ["<eos>", *sorted({word for text in texts for word in text.split()})]
        self.ids = {word: place for place, word in enumerate(self.words)}

    def batch(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """What is read (B x T x V) and what comes next (B x T, -1 behind the end)."""
        rows = [[0, *(self.ids[word] for word in text.split()), 0] for text in texts]
        length = max(map(len, rows))
        table = torch.tensor([row + [-1] * (length - len(row)) for row in rows])  # B x T+1
        read = nn.functional.one_hot(table[:, :-1].clamp(min=0), len(self.words)).float()  # B x T x V
        return read, table[:, 1:]

    def scorer(self, network: nn.Module) -> Score:
        """The log-probability of sentences by a network."""

        @torch.no_grad()
        def score(texts: Sequence[str]) -> list[float]:
            found: list[float] = []
            for first in range(0, len(texts), 256):
                x, y = self.batch(texts[first : first + 256])
                each = network(x).log_softmax(2).gather(2, y.clamp(min=0)[..., None])[..., 0]  # B x T
                found += (each * (y >= 0)).sum(1).tolist()
            return found

        return score


def next_word_loss(network: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The cross-entropy of what comes next."""
    return nn.functional.cross_entropy(network(x).flatten(0, 1), y.flatten(), ignore_index=-1)


def learn(cell: str | type[Cell], options: AgreementOptions) -> Agreed:
    """Train a cell as a language model of the sentences, once for each seed, and score it."""
    tables: tuple[dict[int, list[float]], dict[int, list[float]]] = {}, {}
    for seed in range(options.seeds):
        torch.manual_seed(seed)
        texts = agreement()["train"]
        reader = OneHotReader(texts)
        network = LabNetwork(cell, len(reader.words), options.hidden, len(reader.words))
        starts = cycle(range(seed * BATCH, len(texts) - BATCH, BATCH))
        batches = (reader.batch(texts[start : start + BATCH]) for start in starts)
        fit(network, partial(next, batches), next_word_loss, options.updates, lr=5e-3)
        found = accuracies(reader.scorer(network), agreement_pairs(options.pairs, options.attractors))
        for table, shares in zip(tables, found, strict=True):
            for n, share in shares.items():
                table.setdefault(n, []).append(share)
    return Agreed(name_of(cell), *tables)


def score_model(model: LanguageModel, options: AgreementOptions, name: str = "the model") -> Agreed:
    """What a trained language model of any kind gets right.

    Of a model over words a pair is left out where it knows neither verb, since it reads both sentences the same.
    """
    pairs = agreement_pairs(options.pairs, options.attractors)
    read = model.tokenizer.encode
    told = [pair for pair in pairs if read(pair.right).tolist() != read(pair.wrong).tolist()]
    if not told:
        raise UserError(f"{name} knows none of the verbs: train one on text that has them, or on the corpus agreement")
    attracted, together = accuracies(model.line_log_probs, told)
    one_seed = [{n: [share] for n, share in shares.items()} for shares in (attracted, together)]
    return Agreed(name, one_seed[0], one_seed[1], len(pairs) - len(told))


class AgreementExperiment(Experiment[Agreement]):
    """The writer of the books is, or are."""

    name = "agreement"
    about = "the writer of the books is: whether the verb follows its subject or the nearest noun"
    claim = (
        "Where gradients vanish, a network goes by what stood last (the writer of the books are), not by the subject "
        "(the writer of the books is); the more nouns stand between, the worse."
    )
    Options = AgreementOptions

    def measure(self, options: AgreementOptions, say: Say) -> Agreement:
        if options.model is not None:
            model = load(options.model)
            if not isinstance(model, LanguageModel):
                raise UserError(f"{options.model} is no language model: give the folder of one")
            return Agreement(max(BETWEEN), options.pairs, [score_model(model, options, options.model)])
        results = []
        for cell in options.cells:
            say(name_of(cell))
            results.append(learn(cell, options))
        return Agreement(max(BETWEEN), options.pairs, results)

    def verdict(self, data: Agreement) -> tuple[bool | None, str]:
        told = "; ".join(
            f"{one.name} {_mean(one.attracted, min(one.attracted)):.0%} with {min(one.attracted)}, "
            f"{_mean(one.attracted, max(one.attracted)):.0%} with {max(one.attracted)} "
            f"({_mean(one.together, max(one.together)):.0%} where those have the subject's number)"
            for one in data.results
        )
        worst = min(data.results, key=lambda one: _mean(one.attracted, max(one.attracted)))
        fewest, most = min(worst.attracted), max(worst.attracted)
        if fewest == most:
            return None, f"verbs right by attractors: {told}."
        attracted, together = _mean(worst.attracted, most), _mean(worst.together, most)
        holds = attracted < _mean(worst.attracted, fewest) and attracted < together
        return holds, f"verbs right by attractors: {told}."

    def panels(self, data: Agreement) -> list[Panel]:
        def curves(kind: str) -> list[Line]:
            tables = [(one.name, getattr(one, kind)) for one in data.results]
            return [
                Line(
                    name,
                    list(table),
                    [spread(each).mean for each in table.values()],
                    [min(each) for each in table.values()],
                    [max(each) for each in table.values()],
                )
                for name, table in tables
            ]

        nearest = [1.0 if n == 0 else 0.0 for n in data.results[0].attracted]
        dashed = Line("the nearest noun", list(data.results[0].attracted), nearest, dashed=True)
        said = f"learned with up to {data.learned}"
        panels: list[Panel] = [
            Lines(f"verbs right, by attractors ({said})", [*curves("attracted"), dashed], "attractors", "share"),
            Lines("verbs right, by nouns of the subject's number", curves("together"), "nouns between", "share"),
        ]
        columns = list(data.results[0].attracted)
        rows = [
            [one.name, kind, *(f"{spread(table[n]).mean:.1%}" if n in table else "" for n in columns)]
            for one in data.results
            for kind, table in (("attractors", one.attracted), ("no attractors", one.together))
        ]
        note = "; ".join(
            f"{one.name}: {one.unknown} pairs left out, whose verbs it does not know"
            for one in data.results
            if one.unknown
        )
        panels.append(Table("verbs right", ["", "nouns between are", *map(str, columns)], rows, note=note))
        return panels


def _mean(table: dict[int, list[float]], n: int) -> float:
    return spread(table[n]).mean
