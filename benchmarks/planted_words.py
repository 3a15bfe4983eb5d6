"""Saliency where the truth is known: texts whose class is decided by a few planted words, and nothing else.

    python benchmarks/planted_words.py [--texts 300] [--draws 5] [--cells lstm gru]

A classifier is trained on made-up texts of 8 to 16 words, one or two of which decide the class. For each method the
first table has the share of texts in which the planted words are ranked before all others; the others have the rank
correlation (Spearman) of its saliency with that of the same network after its weights were drawn anew, from the output
down to the embedding (Adebayo et al., 2018): a method that explains the network must not go on saying the same.
"""

import argparse
import copy
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

import elman
from elman.inspect.attribution import spearman
from elman.inspect.methods import METHODS, chosen_methods
from elman.inspect.saliency import Saliency, saliency
from elman.inspect.subject import subject_of
from elman.tasks import TextClassifier

PLANTED = {"good": ("splendid", "superb", "lovely"), "bad": ("dreadful", "boring", "awful")}
FILLERS = tuple(a + b for a in ("ba", "ko", "mi", "tu", "se", "ra", "lo", "ni") for b in ("den", "vor", "lim", "sat"))
SETTINGS = {
    "text.kind": "words",
    "model.hidden": 32,
    "model.embedding": 24,
    "model.token_dropout": 0.05,
    "batch.size": 16,
    "train.lr": 0.01,
    "train.epochs": 6,
    "train.threads": 1,
    "baseline.ngrams": False,
}


class PlantedText(NamedTuple):
    """A text, its class, and the places of the words that decide it."""

    text: str
    label: str
    places: tuple[int, ...]


def planted_texts(count: int, seed: int) -> list[PlantedText]:
    """Fillers at random, with one or two words of a class among them."""
    chance, found = np.random.default_rng(seed), []
    for number in range(count):
        label = ("good", "bad")[number % 2]
        words = [str(chance.choice(FILLERS)) for _ in range(int(chance.integers(8, 17)))]
        places = chance.choice(len(words), int(chance.integers(1, 3)), replace=False).tolist()
        for place in places:
            words[place] = str(chance.choice(PLANTED[label]))
        found.append(PlantedText(" ".join(words), label, tuple(sorted(places))))
    return found


def train(cell: str, count: int = 600, **settings: object) -> TextClassifier:
    """A classifier of such texts."""
    records = [(one.text, one.label) for one in planted_texts(count, seed=1)]
    given = {**SETTINGS, "model.cell": cell, **settings}
    return elman.fit("classify", train=records, settings=given, verbose=False)  # type: ignore[no-any-return]


def ranked_first(texts: Sequence[PlantedText], found: Sequence[Saliency]) -> dict[str, float]:
    """For each method the share of texts in which the planted words have the highest numbers."""
    shares = {}
    for method in found[0].methods:
        hits = []
        for one, data in zip(texts, found, strict=True):
            order = np.argsort(-np.array(data.methods[method].values), kind="stable")
            hits.append(set(order[: len(one.places)].tolist()) == set(one.places))
        shares[method] = float(np.mean(hits))
    return shares


def randomised(model: TextClassifier, seed: int) -> Iterator[tuple[str, TextClassifier]]:
    """The model with more and more of its weights drawn anew, the output's first."""
    twin = copy.deepcopy(model)
    network = twin.network
    torch.manual_seed(seed)
    parts: list[tuple[str, nn.Module]] = [("output", network.output)]
    parts += [(f"layer {depth + 1}", layer) for depth, layer in reversed(list(enumerate(network.body.layers)))]
    parts.append(("embedding", network.embedding))
    for name, part in parts:
        with torch.no_grad():
            for weight in part.parameters():  # as far spread as those that were learned
                weight.copy_(torch.randn_like(weight) * weight.std())
        yield name, twin


def correlations(model: TextClassifier, texts: Sequence[str], label: str, draws: int) -> dict[str, dict[str, float]]:
    """By what was drawn anew, each method's mean rank correlation with the saliency of the trained network."""
    before = saliency(model, texts, target=label)
    found: dict[str, dict[str, list[float]]] = {}
    for seed in range(draws):
        for part, twin in randomised(model, seed):
            row = found.setdefault(part, {method: [] for method in before[0].methods})
            for one, two in zip(before, saliency(twin, texts, target=label), strict=True):
                for method, values in row.items():
                    values.append(spearman(one.methods[method].values, two.methods[method].values))
    return {part: {method: float(np.mean(values)) for method, values in row.items()} for part, row in found.items()}


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)


def main() -> None:
    """Train, explain, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=300)
    parser.add_argument("--draws", type=int, default=5, help="of random weights; each on a third of the texts")
    parser.add_argument("--cells", nargs="+", default=["lstm", "gru"])
    arguments = parser.parse_args()
    texts = planted_texts(arguments.texts, seed=2)
    models = {cell: train(cell, **{"model.layers": 2}) for cell in arguments.cells}
    shares, right = {}, {}
    for cell, model in models.items():
        predicted = model.predict([one.text for one in texts])
        right[cell] = np.mean([one.label == two.label for one, two in zip(texts, predicted, strict=True)])
        shares[cell] = ranked_first(texts, saliency(model, [one.text for one in texts]))
    names = list(chosen_methods(subject_of(next(iter(models.values()))), None)[0])
    print(f"{len(texts)} texts; accuracy " + ", ".join(f"{cell} {share:.1%}" for cell, share in right.items()) + "\n")
    rows = [[METHODS[name].title, *(f"{shares[cell].get(name, np.nan):.1%}" for cell in models)] for name in names]
    print(table(["planted words ranked first", *models], rows))
    for cell, model in models.items():
        found = correlations(model, [one.text for one in texts[: arguments.texts // 3]], "good", arguments.draws)
        titles = [METHODS[name].title for name in names]
        lines = [[f"{part}", *(f"{row[name]:.2f}" for name in names)] for part, row in found.items()]
        print("\n" + table([f"{cell}: drawn anew down to", *titles], lines))


if __name__ == "__main__":
    main()
