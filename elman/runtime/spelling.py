"""A `CharacterEncoder`, compiled: words to the vectors of their characters."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from elman.nn.features import CharacterEncoder
from elman.runtime.encoder import Encoder
from elman.runtime.quantise import Arrays
from elman.runtime.weights import Float


class CompiledCharacters:
    """The vector of each word, all words of a sentence side by side.

    >>> characters = CharacterEncoder(characters=30, embedding_size=4, hidden_size=5)
    >>> compiled = CompiledCharacters(characters, characters)
    >>> compiled(np.array([[7, 3, 0], [1, 2, 9]]), np.array([2, 3])).shape
    (2, 10)
    """

    def __init__(self, network: nn.Module, characters: CharacterEncoder, arrays: Arrays | None = None) -> None:
        self.encoder = Encoder.of(
            network, characters.body, arrays=arrays, embedding=characters.embedding, pooling=characters.last
        )

    def __call__(self, spelled: NDArray[Any], lengths: NDArray[Any]) -> Float:
        """W x C ids of characters, of which each word has `lengths`, to W x 2H."""
        inside = np.arange(spelled.shape[1]) < lengths[:, None]  # W x C
        return self.encoder(spelled[inside], lengths)
