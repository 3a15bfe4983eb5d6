"""Small networks of every kind that the engine runs, and the PyTorch path that it is compared with."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

from elman import kernels
from elman.nn.embedding import OneHot
from elman.nn.language import LanguageNetwork
from elman.nn.recurrent import Recurrent
from elman.nn.softmax import ChunkedSoftmax, SampledSoftmax

VOCABULARY = 27


def make(
    cell: str = "lstm",
    *,
    vocabulary: int = VOCABULARY,
    embedding: int = 12,
    hidden: int = 20,
    layers: int = 1,
    labels: int = 0,
    tied: bool = False,
    sampled: bool = False,
    bias: bool = True,
    towers: int = 1,
    sharpness: float = 3.0,
    seed: int = 0,
    **options: Any,
) -> LanguageNetwork:
    """A network with random weights, large enough for its nonlinearities to matter; `embedding` 0 is one-hot."""
    torch.manual_seed(seed)
    token = nn.Embedding(vocabulary, embedding) if embedding else OneHot(vocabulary)
    size = token.embedding_dim + (5 if labels else 0)
    bodies = [
        Recurrent(cell, size, hidden, layers, batch_first=True, bias=bias, dropout=0.3, **options)
        for _ in range(towers)
    ]
    width = bodies[0].output_size
    bridge = nn.Linear(width, embedding) if tied and width != embedding else None
    weight = token.weight if tied else None
    top = embedding if tied else width
    softmax = (
        SampledSoftmax(top, vocabulary, samples=5, frequencies=torch.arange(1.0, vocabulary + 1), tied=weight)
        if sampled
        else ChunkedSoftmax(top, vocabulary, tied=weight, bias=bias)
    )
    network = LanguageNetwork(
        token,
        bodies,
        softmax,
        labels=nn.Embedding(labels, 5) if labels else None,
        to_softmax=bridge,
        output_dropout=0.4,
        input_dropout=0.2,
    )
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if "initial" in name or "bias" in name:
                weight.normal_(std=0.5)
            elif "softmax" in name:
                weight.mul_(sharpness)
            else:
                weight.mul_(1.5)
    return network.eval()


@torch.no_grad()
def reference(network: LanguageNetwork, ids: np.ndarray, labels: Any = None, tower: int = 0) -> np.ndarray:
    """The log-probabilities after each id of B x T, by PyTorch: B x T x V."""
    given = None if labels is None else torch.as_tensor(labels)
    hidden, _ = network.hidden(torch.from_numpy(ids), labels=given, tower=tower)
    return network.softmax.log_probs(hidden.flatten(0, 1)).view(*ids.shape, -1).numpy()


@contextmanager
def instruction_set(name: str) -> Iterator[None]:
    """Engines made inside use this one."""
    before = kernels.instruction_set()
    kernels.use(name)
    try:
        yield
    finally:
        assert before is not None
        kernels.use(before)
