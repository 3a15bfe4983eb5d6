"""Contextual string embeddings, compiled: the states of character models at the borders of words."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elman.ragged import Ragged
from elman.runtime.encoder import Encoder
from elman.runtime.layers import Layers
from elman.runtime.quantise import Arrays
from elman.runtime.weights import Float

Reader = Callable[[Sequence[Sequence[str]]], tuple[Ragged, NDArray[Any]]]
"""From sentences to the ids that a character model reads, and the row of each word's border among them."""


class CompiledStrings:
    """What character models say of each word of some sentences, side by side.

    >>> layers = Layers("strings.0.body", "lstm", 4, 5)
    >>> shapes = {**layers.shapes(), "strings.0.embedding.weight": (30, 4)}
    >>> arrays = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    >>> compiled = CompiledStrings([layers], arrays, [lambda sentences: (Ragged.of([[1, 7, 8]]), np.array([1, 2]))])
    >>> compiled([["a", "b"]]).shape
    (2, 5)
    """

    def __init__(self, layers: Sequence[Layers], arrays: Arrays, readers: Sequence[Reader]) -> None:
        embeddings = [f"{one.name.removesuffix('.body')}.embedding" for one in layers]
        encoders = [Encoder(one, arrays, embedding=name) for one, name in zip(layers, embeddings, strict=True)]
        self.parts = list(zip(encoders, readers, strict=True))

    def __call__(self, sentences: Sequence[Sequence[str]]) -> Float:
        """The states at the borders of all words, sentence after sentence (N x S)."""
        found = []
        for encoder, reader in self.parts:
            ids, borders = reader(sentences)
            found.append(encoder(ids.data, ids.lengths).take(borders, axis=0))
        return np.concatenate(found, axis=1)
