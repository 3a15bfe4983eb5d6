"""A classifier's network, compiled."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from elman.batches.examples import by_length
from elman.nn.features import CharacterEncoder
from elman.runtime import Encoder
from elman.runtime.quantise import Arrays
from elman.runtime.spelling import CompiledCharacters
from elman.runtime.weights import Float
from elman.runtime.words import KnownWords
from elman.tasks.classify.inputs import Reader, WordReader
from elman.tasks.classify.network import ClassifierNetwork
from elman.text.spelling import Speller

TOKENS = 1 << 15  # computed on at a time, at most


class CompiledClassifier:
    """Encoded texts to a score for each class, with no PyTorch call inside."""

    def __init__(self, reader: Reader, network: ClassifierNetwork, arrays: Arrays | None) -> None:
        self.known: KnownWords | None = None
        if isinstance(reader, WordReader) and network.spelling is not None:
            self.known = KnownWords(_Words(reader.speller, network, network.spelling, arrays))
        self.encoder = Encoder.of(
            network,
            network.body,
            arrays=arrays,
            embedding=network.embedding if self.known is None else None,
            pooling=network.pooling,
            output=network.output,
        )

    def scores(self, encoded: Sequence[Any]) -> Float:
        """The scores of each text (N x C)."""
        if len(encoded) == 1:
            return self._read(encoded)
        groups = list(by_length([len(tokens) for tokens in encoded], len(encoded), tokens=TOKENS))
        found = np.concatenate([self._read([encoded[index] for index in rows]) for rows in groups])
        order = np.argsort(np.concatenate(groups))
        return np.ascontiguousarray(found[order])

    def _read(self, encoded: Sequence[Any]) -> Float:
        lengths = [len(tokens) for tokens in encoded]
        if self.known is None:
            return self.encoder(np.concatenate(encoded), lengths)
        return self.encoder(self.known([word for words in encoded for word in words]), lengths)


class _Words:
    """Distinct words to the vectors of the word and of its characters, side by side."""

    def __init__(
        self, speller: Speller, network: ClassifierNetwork, spelling: CharacterEncoder, arrays: Arrays | None
    ) -> None:
        self.speller, self.vectors = speller, network.embedding.weight.detach().numpy()
        self.spelling = CompiledCharacters(network, spelling, arrays)

    def __call__(self, words: list[str]) -> Float:
        spelled = self.speller(words)
        characters = self.spelling(spelled.characters.numpy(), spelled.lengths.numpy())  # W x 2H
        return np.concatenate([self.vectors.take(spelled.ids.numpy(), axis=0), characters], axis=1)
