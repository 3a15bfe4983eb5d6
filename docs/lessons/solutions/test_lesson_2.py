"""Language models and encoder-decoders in PyTorch: the exercises solved."""

import math
import random
from collections import Counter

import numpy as np
import torch
from torch import nn

import elman
from elman.baselines import KneserNey

SOUNDS = {"cat": "meows", "dog": "barks", "cow": "moos", "duck": "quacks"}


def sentence(chance, between):
    """As in the lesson: an animal, some adverbs, and its sound."""
    animal = chance.choice(list(SOUNDS))
    return ["the", animal, *chance.choices(["very", "often", "still"], k=between), "now", SOUNDS[animal]]


def test_1_without_a_nonlinearity_the_network_is_linear() -> None:
    """h_3 = W² U w_1 + W U w_2 + U w_3: what a word adds does not depend on the others."""
    torch.manual_seed(0)
    both = nn.Linear(5 + 4, 4, bias=False)  # [U W]

    def read(words, activation):
        h = torch.zeros(4)
        for w in words:
            h = activation(both(torch.cat([w, h])))
        return h

    words, nothing = torch.eye(5)[[0, 3, 2]], torch.zeros(5)
    alone = [[word if place == other else nothing for other in range(3)] for place, word in enumerate(words)]
    assert torch.allclose(read(words, lambda a: a), sum(read(one, lambda a: a) for one in alone), atol=1e-6)
    assert not torch.allclose(read(words, torch.tanh), sum(read(one, torch.tanh) for one in alone), atol=1e-3)


def test_2_a_bigram_model_beside_kneser_ney() -> None:
    chance = random.Random(0)
    train, test = ([sentence(chance, 1) for _ in range(count)] for count in (300, 100))
    vocabulary = sorted({word for words in train for word in words} | {"</s>"})

    pairs, before = Counter(), Counter()
    for words in train:
        for one, following in zip(["</s>", *words], [*words, "</s>"], strict=True):
            pairs[one, following] += 1
            before[one] += 1
    losses = [
        -math.log((pairs[one, following] + 1) / (before[one] + len(vocabulary)))
        for words in test
        for one, following in zip(["</s>", *words], [*words, "</s>"], strict=True)
    ]
    bigram = math.exp(sum(losses) / len(losses))

    ids = {word: number for number, word in enumerate(vocabulary)}

    def stream(texts):
        return np.array([ids[word] for words in texts for word in [*words, "</s>"]])

    counted = KneserNey.fit(stream(train), vocab_size=len(vocabulary), order=2, start_id=ids["</s>"])
    assert math.exp(-counted.log_probs(stream(test)).mean()) < bigram < len(vocabulary)


def test_3_how_wide_a_window_must_be() -> None:
    """With k adverbs, the animal is k + 2 words before the sound: a window of k + 2 sees it, one of k + 1 does not."""
    chance = random.Random(0)
    texts = [" ".join(sentence(chance, 2)) for _ in range(300)]
    sure = {}
    for window in (3, 4):
        settings = {"data.unit": "line", "text.kind": "words", "model.kind": "window", "model.window": window}
        settings |= {
            "model.hidden": 32,
            "model.embedding": 16,
            "train.steps": 150,
            "train.lr": 1e-2,
            "baseline.order": 0,
        }
        model = elman.fit("lm", train=texts, settings=settings, verbose=False)
        tokens = model.score("the duck very still now quacks")
        sure[window] = next(math.exp(token.log_prob) for token in tokens if token.token == "quacks")
    assert sure[3] < 0.5 < 0.9 < sure[4]


def bits_a_character(perplexity, words, characters):
    """The loss of all words in bits, shared out among the characters, blanks and line ends among them."""
    return words * math.log2(perplexity) / characters


def test_4_bits_a_character() -> None:
    text = "the cat now meows\n"
    tokens = len(text.split()) + 1  # and the end of the line
    assert bits_a_character(2.0, tokens, len(text)) == tokens / len(text)
    texts = ["the cat now meows", "the dog now barks"] * 20
    settings = {"data.unit": "line", "text.kind": "words", "model.kind": "ngram", "model.order": 2}
    report = elman.fit("lm", train=texts, dev=texts[:2], settings=settings, verbose=False).report["dev"]
    found = bits_a_character(report["perplexity"], report["tokens"], sum(len(text) + 1 for text in texts[:2]))
    assert found == math.log2(report["perplexity"]) * 10 / 36
