"""Embeddings, names and an attention decoder: the exercises solved."""

import random

import numpy as np
import pytest
import torch
from torch import nn

import elman
from elman.ragged import Ragged

NAMES = ["adylov", "solan", "hard", "san"]


def pack(names):
    """All first characters, then all second ones; names that have ended are left out. The longest name comes first."""
    steps = [[name[step] for name in names if step < len(name)] for step in range(len(names[0]))]
    return "".join(letter for step in steps for letter in step), [len(step) for step in steps]


def unpack(packed, batch_sizes):
    names = [""] * batch_sizes[0]
    place = 0
    for size in batch_sizes:
        for name in range(size):
            names[name] += packed[place + name]
        place += size
    return names


def test_1_packing_by_hand() -> None:
    assert pack(["abc", "x"]) == ("axbc", [2, 1, 1])
    packed, sizes = pack(NAMES)
    assert unpack(packed, sizes) == NAMES
    ragged = Ragged.of([[ord(letter) for letter in name] for name in NAMES])
    assert packed == "".join(map(chr, ragged.packed())) and sizes == ragged.packing.batch_sizes.tolist()


def changed(optimizer_of, sparse):
    """Which of ten vectors are others after a second step, in which only word 3 is read."""
    torch.manual_seed(0)
    layer = nn.Embedding(10, 4, sparse=sparse)
    optimizer = optimizer_of(layer.parameters())
    for word in (5, 3):  # first 5, then 3
        before = layer.weight.detach().clone()
        optimizer.zero_grad()
        layer(torch.tensor([word])).pow(2).sum().backward()
        optimizer.step()
    return sorted((layer.weight.detach() != before).any(dim=1).nonzero().flatten().tolist())


def test_2_which_vectors_change() -> None:
    """A sparse gradient touches the words that were read. Adam on a dense one still moves those of earlier steps."""
    assert changed(lambda weights: torch.optim.SparseAdam(list(weights), lr=0.1), sparse=True) == [3]
    assert changed(lambda weights: torch.optim.SGD(weights, lr=0.1), sparse=False) == [3]
    assert changed(lambda weights: torch.optim.Adam(weights, lr=0.1), sparse=False) == [3, 5]


def test_3_cbow() -> None:
    """The mean of the vectors around a word predicts the word."""
    people = {"king": ("he", "crown"), "queen": ("she", "crown"), "man": ("he", "hat"), "woman": ("she", "hat")}
    sentences = [["the", person, "says", pronoun, "has", thing] for person, (pronoun, thing) in people.items()]
    words = sorted({word for sentence in sentences for word in sentence})
    examples = [
        ([words.index(word) for other, word in enumerate(sentence) if other != place], words.index(sentence[place]))
        for sentence in sentences
        for place in range(len(sentence))
    ]
    around, centres = (torch.tensor(column) for column in zip(*examples, strict=True))
    torch.manual_seed(0)
    inside, outside = nn.EmbeddingBag(len(words), 8, mode="mean"), nn.Linear(8, len(words))
    optimizer = torch.optim.Adam([*inside.parameters(), *outside.parameters()], lr=2e-2)
    for _ in range(300):
        loss = nn.functional.cross_entropy(outside(inside(around)), centres)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    missing = [words.index(word) for word in ("the", "says", "she", "has", "crown")]
    assert words[int(outside(inside(torch.tensor([missing]))).argmax())] == "queen"


def compare(languages, names_of_each, sizes, epochs):
    """Homework: the accuracy of each cell and size on names that it has not learned from."""
    from elman.generated.surnames import surname_lists

    lists, chance = surname_lists(), random.Random(0)
    names = [(name, language) for language in languages for name in chance.sample(lists[language], names_of_each)]
    chance.shuffle(names)
    cut = len(names) * 4 // 5
    found = {}
    for cell in ("rnn", "lstm", "gru"):
        for size in sizes:
            settings = {"text.kind": "characters", "model.cell": cell, "model.hidden": size, "model.embedding": 24}
            settings |= {"model.bidirectional": False, "model.pooling": "last", "train.epochs": epochs}
            settings |= {"train.lr": 1e-2, "batch.size": 16, "baseline.ngrams": False}
            model = elman.fit("classify", train=names[:cut], test=names[cut:], settings=settings, verbose=False)
            found[cell, size] = model.report["test"]["accuracy"]
    return found


def test_4_names_by_cell_and_size() -> None:
    pytest.importorskip("faker")
    found = compare(["Italian", "Polish"], 150, sizes=(16,), epochs=3)
    assert len(found) == 3 and min(found.values()) > 0.6  # half is chance


@pytest.mark.slow
def test_4_names_by_cell_and_size_at_length() -> None:
    pytest.importorskip("faker")
    found = compare(["Italian", "Polish", "Finnish", "Spanish", "German", "Greek"], 400, sizes=(16, 64), epochs=4)
    assert min(found.values()) > 0.4
    assert np.mean([found[cell, 64] for cell in ("lstm", "gru")]) > np.mean(
        [found[cell, 16] for cell in ("lstm", "gru")]
    )
