"""A tagger's network, compiled."""

from collections.abc import Sequence
from typing import cast

import numpy as np
from torch import nn

from elman.errors import UserError
from elman.nn.crf import best_sequences
from elman.runtime import Encoder
from elman.runtime.quantise import Arrays
from elman.runtime.spelling import CompiledCharacters
from elman.runtime.weights import Float
from elman.runtime.words import KnownWords
from elman.tasks.tag.batch import Ints
from elman.tasks.tag.network import TagNetwork
from elman.text.spelling import Speller


class CompiledTagger:
    """Sentences to a score for each tag of each token, and to the best tags, with no PyTorch call inside."""

    def __init__(self, speller: Speller, network: TagNetwork, arrays: Arrays | None) -> None:
        self.speller, self.chain = speller, None if network.crf is None else network.crf.chain()
        self.words = None if network.words is None else network.words.weight.detach().numpy()
        self.characters = None
        if network.characters is not None:
            self.characters = CompiledCharacters(network, network.characters, arrays)
        embeddings = () if network.features is None else network.features.embeddings
        self.features = [cast(nn.Embedding, embedding).weight.detach().numpy() for embedding in embeddings]
        self.known = KnownWords(self._vectors)
        self.encoder = Encoder.of(network, network.body, arrays=arrays, output=network.scores)

    def scores(self, sentences: Sequence[Sequence[str]]) -> tuple[Float, Ints]:
        """The score of every tag for every token (N x K), sentence after sentence, and the sentences' lengths (B)."""
        lengths = np.array([len(sentence) for sentence in sentences], np.int64)
        vectors = self.known([token for sentence in sentences for token in sentence])  # N x E
        return self.encoder(vectors, lengths), lengths

    def best_tags(self, sentences: Sequence[Sequence[str]]) -> list[Ints]:
        """The ids of the most probable tags of each sentence; of the most probable sequence where there is a CRF."""
        scores, lengths = self.scores(sentences)
        if self.chain is None:
            ids = scores.argmax(axis=1)
        else:
            try:
                ids, _ = best_sequences(scores, lengths, self.chain)
            except ValueError as error:
                raise UserError(f"{error}: the model is damaged, copy it again or train it anew") from None
        return [ids] if len(lengths) == 1 else np.split(ids, np.cumsum(lengths)[:-1])

    def _vectors(self, words: list[str]) -> Float:
        """What each of some distinct words is made of, W x E."""
        spelled, parts = self.speller(words), []
        if self.words is not None:
            parts.append(self.words.take(spelled.ids.numpy(), axis=0))
        if self.characters is not None:
            parts.append(self.characters(spelled.characters.numpy(), spelled.lengths.numpy()))
        values = spelled.features.numpy()  # W x F
        parts += [table.take(values[:, place], axis=0) for place, table in enumerate(self.features)]
        return np.concatenate(parts, axis=1)
