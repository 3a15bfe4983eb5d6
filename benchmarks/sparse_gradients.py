"""Where sparse gradients of an embedding pay: an update of a small classifier with dense and with sparse ones.

    python benchmarks/sparse_gradients.py

Prints, for each optimizer, size of the vocabulary and number of texts in a batch, the least processor time of an update
(forward and backward pass, clipping, step) both ways, by turns in one run on one thread, and their ratio.
"""

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from elman.nn.classifier import ClassifierNetwork
from elman.nn.embedding import Embedding
from elman.nn.inputs import Inputs
from elman.nn.pooling import MaxPooling
from elman.nn.recurrent import Recurrent
from elman.ragged import Ragged
from elman.train.optimizer import clip, make_optimizer
from elman.train.recipe import TrainSettings

SIZE, TOKENS, ROUNDS = 128, 20, 6
SHAPES = ((1_000, 32), (8_000, 32), (50_000, 32), (50_000, 8), (200_000, 8))  # vocabulary, texts in a batch


def update(vocabulary: int, texts: int, sparse: bool, optimizer: str) -> Callable[[int], None]:
    """One update of a fresh classifier, on one of four batches."""
    body = Recurrent("gru", SIZE, SIZE)
    embedding = Embedding(vocabulary, SIZE, sparse=sparse)
    network = ClassifierNetwork(embedding, None, body, MaxPooling(body), nn.Linear(SIZE, 4)).train()
    settings = TrainSettings.model_validate({"optimizer": optimizer})
    changes, parameters, random = (
        make_optimizer(settings, network),
        list(network.parameters()),
        np.random.default_rng(0),
    )
    batches = [Inputs.of(Ragged.of([random.integers(0, vocabulary, TOKENS) for _ in range(texts)])) for _ in range(4)]

    def step(number: int) -> None:
        changes.zero_grad()
        scores = network(batches[number % 4])
        nn.functional.cross_entropy(scores, torch.zeros(texts, dtype=torch.long)).backward()
        clip(settings, parameters)
        changes.step()

    return step


def main() -> None:
    """Print a line for each optimizer and shape."""
    torch.set_num_threads(1)
    for optimizer in ("adam", "sgd", "adagrad"):
        for vocabulary, texts in SHAPES:
            steps = [update(vocabulary, texts, sparse, optimizer) for sparse in (False, True)]
            least = [float("inf")] * 2
            for number in range(ROUNDS + 1):
                for which, step in enumerate(steps):
                    began = time.process_time()
                    step(number)
                    if number:  # the first update makes the optimizer's memory
                        least[which] = min(least[which], time.process_time() - began)
            dense, sparse = least
            print(
                f"{optimizer:8} {vocabulary:7,} tokens, {texts:2} texts: dense {1e3 * dense:6.2f} ms, "
                f"sparse {1e3 * sparse:6.2f} ms, {dense / sparse:.2f} x"
            )


if __name__ == "__main__":
    main()
