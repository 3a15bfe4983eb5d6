"""Word vectors: the compiled kernel against a plain transcription of what it does, gradients, tables."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from elman import kernels
from elman.nn.fast.embedder import Embedder, EmbedderSettings
from elman.nn.vectors import WHOLE, VectorNetwork, alias_table, huffman_tree, keep_chances, noise_shares

compiled = pytest.mark.skipif(not kernels.available(), reason="the kernels were not built")
FIRST, END, SIZE = 2, 1, 21
COUNTS = np.array([0, 4, 40, 20, 10, 9, 6, 5, 3, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1])
IDS = np.random.default_rng(7).choice(np.arange(1, 20), 300, p=COUNTS[1:] / COUNTS.sum())
Bags = tuple[np.ndarray, np.ndarray]


def draws(seed: int) -> Iterator[int]:
    """splitmix64."""
    mask, state = 2**64 - 1, seed
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        yield z ^ (z >> 31)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


class Plain:
    """The kernel, in NumPy: one place of the text after the other, so many outputs at a time."""

    block = 8

    def __init__(self, vectors: np.ndarray, output: np.ndarray, settings: EmbedderSettings, bags: Bags | None) -> None:
        self.x, self.y, self.settings = vectors.astype(np.float64), output.astype(np.float64), settings
        own = COUNTS[FIRST:]
        self.bags = [[word] for word in range(len(COUNTS))]
        if bags is not None:
            self.bags = [bags[1][a:b].tolist() for a, b in pairwise(bags[0])]
        self.keep = [WHOLE] * FIRST + [int(one) for one in np.rint(keep_chances(own, settings.sample) * WHOLE)]
        chance, self.alias = alias_table(noise_shares(own, settings.power))
        self.chance = np.minimum(np.rint(chance * WHOLE), WHOLE)
        self.tree = huffman_tree(own)

    def vector(self, word: int) -> np.ndarray:
        return self.x[self.bags[word]].sum(axis=0) / np.sqrt(len(self.bags[word]))

    def learn(self, ids: np.ndarray, rate: float, seed: int) -> None:
        random, sentence = draws(seed), list[int]()
        for id in [*ids.tolist(), END]:
            if id == END:
                self.sentence(sentence, rate, random)
                sentence = []
            elif id >= FIRST and (self.keep[id] == WHOLE or next(random) >> 32 <= self.keep[id]):
                sentence.append(id)

    def sentence(self, words: list[int], rate: float, random: Iterator[int]) -> None:
        if len(words) < 2:
            return
        drawn = [self.draw(random) for _ in words]
        for at, (reach, negatives) in enumerate(drawn):
            around = words[max(at - reach, 0) : at] + words[at + 1 : at + 1 + reach]
            inputs = np.stack([self.vector(word) for word in around])
            if self.settings.cbow:
                inputs = inputs.mean(axis=0, keepdims=True)
            outputs, labels = self.outputs(words[at], negatives)
            scores = inputs @ self.y[outputs].T
            if self.settings.objective == "softmax":
                guesses = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
            else:
                guesses = sigmoid(scores)
            errors = rate * (labels - guesses)  # M x N
            change = np.zeros_like(inputs)
            for first in range(0, len(outputs), self.block):  # a word that was drawn twice may stand in two blocks
                part = slice(first, first + self.block)
                change += errors[:, part] @ self.y[outputs[part]]
                np.add.at(self.y, outputs[part], errors[:, part].T @ inputs)
            for place, word in enumerate(around):
                share = change[0] / len(around) if self.settings.cbow else change[place]
                np.add.at(self.x, self.bags[word], share / np.sqrt(len(self.bags[word])))

    def draw(self, random: Iterator[int]) -> tuple[int, list[int]]:
        reach = 1 + (next(random) >> 32) % self.settings.window if self.settings.dynamic else self.settings.window
        negatives = []
        for _ in range(self.settings.negatives if self.settings.objective == "negative" else 0):
            number = next(random)
            entry = ((number >> 32) * len(self.chance)) >> 32
            negatives.append(FIRST + (entry if number & WHOLE <= self.chance[entry] else int(self.alias[entry])))
        return reach, negatives

    def outputs(self, word: int, negatives: list[int]) -> tuple[np.ndarray, np.ndarray]:
        if self.settings.objective == "softmax":
            every = np.arange(FIRST, len(COUNTS))
            return every, (every == word).astype(float)
        if self.settings.objective == "negative":
            others = [other for other in negatives if other != word]
            return np.array([word, *others]), np.array([1.0] + [0.0] * len(others))
        part = slice(*self.tree.places[word - FIRST : word - FIRST + 2])
        return self.tree.nodes[part], 1.0 - self.tree.codes[part]


def bags_of(rows: int) -> Bags:
    """Each word is itself and up to three of four n-grams behind the words."""
    parts = [[word, *range(len(COUNTS), len(COUNTS) + word % 4)] for word in range(rows)]
    return np.cumsum([0, *map(len, parts)]), np.concatenate(parts)


def made(settings: EmbedderSettings, bags: Bags | None = None) -> tuple[VectorNetwork, Embedder]:
    torch.manual_seed(3)
    outputs = len(COUNTS) - FIRST - 1 if settings.objective == "hierarchical" else len(COUNTS)
    network = VectorNetwork(len(COUNTS) + (4 if bags else 0), outputs, SIZE)
    with torch.no_grad():
        network.vectors.normal_(0, 0.3)
        network.output.normal_(0, 0.3)
    return network, Embedder(network, COUNTS, settings, first=FIRST, end=END, bags=bags)


@compiled
@pytest.mark.parametrize("objective", ["negative", "hierarchical", "softmax"])
@pytest.mark.parametrize("cbow", [False, True])
@pytest.mark.parametrize("ngrams", [False, True])
def test_the_kernel_does_what_the_transcription_does(objective: Any, cbow: bool, ngrams: bool) -> None:
    settings = EmbedderSettings(cbow=cbow, objective=objective, negatives=9, window=3, sample=0.05)
    bags = bags_of(len(COUNTS)) if ngrams else None
    before = kernels.instruction_set()
    for name in kernels.instruction_sets():
        network, embedder = made(settings, bags)
        plain = Plain(network.vectors.detach().numpy(), network.output.detach().numpy(), settings, bags)
        plain.block = 4 if name == "baseline" else 8
        kernels.use(name)
        try:
            for seed in (5, 2**63 + 1):
                embedder.learn(IDS, 0.05, seed, threads=1)
                plain.learn(IDS, 0.05, seed)
        finally:
            kernels.use(str(before))
        assert np.allclose(network.vectors.detach().numpy(), plain.x, atol=2e-4), name
        assert np.allclose(network.output.detach().numpy(), plain.y, atol=2e-4), name
        assert not network.padded[0][:, SIZE:].any()  # what lies behind the vectors stays zero


@compiled
@pytest.mark.parametrize("cbow", [False, True])
def test_a_step_goes_down_the_gradient_of_the_loss_by_finite_differences(cbow: bool) -> None:
    settings = EmbedderSettings(cbow=cbow, negatives=4, window=2, dynamic=False, sample=0)
    network, embedder = made(settings)
    words = [3, 5, 2, 4]
    plain = Plain(network.vectors.detach().numpy(), network.output.detach().numpy(), settings, None)
    random = draws(11)
    drawn = [plain.draw(random) for _ in words]

    def loss(vectors: np.ndarray, output: np.ndarray) -> float:
        total = 0.0
        for at, (reach, negatives) in enumerate(drawn):
            around = words[max(at - reach, 0) : at] + words[at + 1 : at + 1 + reach]
            hidden = vectors[around].mean(axis=0, keepdims=True) if cbow else vectors[around]
            outputs, labels = plain.outputs(words[at], negatives)
            other = VectorNetwork(1, 1, 1)
            other.output = torch.nn.Parameter(torch.from_numpy(output))
            rows = torch.from_numpy(np.tile(outputs, (len(hidden), 1)))
            truth = torch.from_numpy(np.tile(labels, (len(hidden), 1)))
            total += other.logistic_loss(torch.from_numpy(hidden), rows, truth).item()
        return total

    rate, step = 1e-4, 1e-5
    begin = [part.detach().numpy().astype(np.float64) for part in (network.vectors, network.output)]
    embedder.learn(np.array(words), rate, 11, threads=1)
    moved = [
        part.detach().numpy() - start for part, start in zip((network.vectors, network.output), begin, strict=True)
    ]
    for which, row, column in [(0, 3, 1), (0, 5, 20), (0, 2, 7), (1, 4, 0), (1, 5, 13)]:
        up, down = ([part.copy() for part in begin] for _ in range(2))
        up[which][row, column] += step
        down[which][row, column] -= step
        slope = (loss(*up) - loss(*down)) / (2 * step)
        assert moved[which][row, column] / rate == pytest.approx(-slope, abs=5e-3)


def test_the_ways_down_the_tree_are_a_distribution() -> None:
    tree, random = huffman_tree(COUNTS[FIRST:]), np.random.default_rng(0)
    hidden, nodes = random.standard_normal(SIZE), random.standard_normal((len(COUNTS) - FIRST - 1, SIZE))
    chances = [
        np.prod(sigmoid((1 - 2.0 * tree.codes[a:b]) * (nodes[tree.nodes[a:b]] @ hidden)))
        for a, b in pairwise(tree.places)
    ]
    assert sum(chances) == pytest.approx(1.0)
    assert len(chances) == len(COUNTS) - FIRST
    shares = COUNTS[FIRST:] / COUNTS[FIRST:].sum()
    entropy = -float(shares @ np.log2(shares))
    assert entropy <= float(shares @ np.diff(tree.places)) < entropy + 1  # frequent words have short ways


@compiled
def test_frequent_words_are_left_out_as_often_as_word2vec_says() -> None:
    _, embedder = made(EmbedderSettings(sample=0.01))
    ids = np.tile(np.arange(FIRST, len(COUNTS)), 4000)
    share = embedder.learn(ids, 0.0, 1, threads=1).words / len(ids)
    assert share == pytest.approx(keep_chances(COUNTS[FIRST:], 0.01).mean(), abs=0.005)


def test_an_alias_table_draws_what_it_was_made_of() -> None:
    shares = noise_shares(COUNTS[FIRST:], 0.75)
    chance, alias = alias_table(shares)
    found = chance.copy()
    np.add.at(found, alias, 1 - chance)
    assert np.allclose(found / len(shares), shares)


@compiled
def test_one_thread_is_deterministic_and_two_learn_as_well() -> None:
    found = []
    for threads in (1, 1, 2):
        network, embedder = made(EmbedderSettings(sample=0))
        first = embedder.learn(IDS, 0.0, 3, threads)
        for seed in range(30):
            seen = embedder.learn(IDS, 0.05, seed, threads)
        found.append((network.vectors.detach().numpy().copy(), first.loss / first.pairs, seen.loss / seen.pairs))
    assert np.array_equal(found[0][0], found[1][0])
    assert all(after < before for _, before, after in found)
    assert found[2][2] == pytest.approx(found[0][2], rel=0.1)


@compiled
def test_a_rate_of_zero_changes_nothing() -> None:
    network, embedder = made(EmbedderSettings())
    before = [part.clone() for part in network.padded]
    seen = embedder.learn(IDS, 0.0, 1, threads=2)
    assert seen.pairs > 0 and seen.loss > 0
    assert all(torch.equal(a, b) for a, b in zip(before, network.padded, strict=True))
