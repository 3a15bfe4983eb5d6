"""From the settings of a language model to its network."""

from typing import Any, cast

import torch
from torch import nn

from elman.nn.initialise import initialise
from elman.nn.language import LanguageNetwork, OneHot
from elman.nn.recurrent import Recurrent
from elman.nn.softmax import AdaptiveSoftmax, ChunkedSoftmax, SampledSoftmax
from elman.nn.window import FixedWindow
from elman.tasks.language.settings import ModelSettings
from elman.tasks.memory import build
from elman.text import Tokenizer


def build_network(
    settings: ModelSettings, tokenizer: Tokenizer, labels: int = 0, *, trained: bool = True
) -> LanguageNetwork:
    """A fresh network for the tokenizer's vocabulary and so many labels, unless this machine has no room for it."""
    return build(lambda: _network(settings, tokenizer, labels), settings, trained=trained)


def _network(settings: ModelSettings, tokenizer: Tokenizer, labels: int) -> LanguageNetwork:
    vocab_size = tokenizer.size
    embedding: nn.Embedding | OneHot
    if settings.embedding:
        embedding = nn.Embedding(vocab_size, settings.embedding)
        if settings.tied:  # as the softmax's matrix it has to begin small
            nn.init.uniform_(embedding.weight, -0.1, 0.1)
    else:
        embedding = OneHot(vocab_size)
    label_embedding = nn.Embedding(labels, settings.label_embedding) if labels else None
    input_size = embedding.embedding_dim + (settings.label_embedding if labels else 0)
    body: Any = _recurrent if settings.kind == "recurrent" else _window
    bodies = [body(settings, input_size) for _ in range(2 if settings.direction == "both" else 1)]
    width = bodies[0].output_size
    # A tied matrix wants hidden states of the embedding's size.
    bridge = nn.Linear(width, settings.embedding) if settings.tied and width != settings.embedding else None
    tied = cast(nn.Parameter, embedding.weight) if settings.tied else None
    return LanguageNetwork(
        embedding,
        bodies,
        _softmax(settings, settings.embedding if bridge else width, tokenizer, tied),
        labels=label_embedding,
        to_softmax=bridge,
        embedding_dropout=settings.embedding_dropout,
        input_dropout=settings.input_dropout,
        output_dropout=settings.output_dropout,
        locked=settings.locked,
    )


def _recurrent(settings: ModelSettings, input_size: int) -> Recurrent:
    body = Recurrent(
        settings.cell,
        input_size,
        settings.hidden,
        settings.layers,
        dropout=settings.dropout if settings.layers > 1 else 0.0,
        locked_dropout=settings.locked,
        weight_dropout=settings.weight_dropout,
        connections=settings.connections,
        learned_state=settings.learned_state,
        proj_size=settings.projection,
        nonlinearity=settings.nonlinearity,
        batch_first=True,
    )
    initialise(body, settings.initialise, forget_bias=settings.forget_bias)
    return body


def _window(settings: ModelSettings, input_size: int) -> FixedWindow:
    return FixedWindow(input_size, settings.window, settings.hidden, dropout=settings.dropout)


def _softmax(
    settings: ModelSettings, width: int, tokenizer: Tokenizer, tied: nn.Parameter | None
) -> ChunkedSoftmax | SampledSoftmax | AdaptiveSoftmax:
    if settings.softmax == "adaptive":
        return AdaptiveSoftmax(width, tokenizer.size)
    counts = torch.from_numpy(tokenizer.counts)
    if settings.softmax == "full":
        softmax = ChunkedSoftmax(width, tokenizer.size, tied=tied)
    else:
        samples = min(settings.samples, tokenizer.size)
        softmax = SampledSoftmax(width, tokenizer.size, samples=samples, tied=tied, frequencies=counts)
    # The frequency of words is known before training: beginning there saves learning it.
    if softmax.bias is not None:
        softmax.bias.data.copy_(((counts + 1) / (counts + 1).sum()).log())
    return softmax
