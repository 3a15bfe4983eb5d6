"""The network of a classifier: embedding, recurrent layers, one vector for a sequence, a score for each class."""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout
from torch.nn.utils.rnn import PackedSequence

from elman.nn.dropout import locked_dropout
from elman.nn.embedding import OneHot
from elman.nn.features import CharacterEncoder, WordDropout
from elman.nn.inputs import Inputs
from elman.nn.pooling import Pooling
from elman.nn.recurrent import Recurrent
from elman.nn.towers import Towers


class ClassifierNetwork(nn.Module):
    """Packed texts to a score for each class (B x C); with `spelling`, a word is read by its characters too.

    >>> from elman.nn.pooling import MaxPooling
    >>> from elman.ragged import Ragged
    >>> body = Recurrent("gru", 4, 5)
    >>> network = ClassifierNetwork(nn.Embedding(9, 4), None, body, MaxPooling(body), nn.Linear(5, 3))
    >>> network(Inputs.of(Ragged.of([[3, 1], [4, 1, 5]]))).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        embedding: nn.Embedding | OneHot,
        spelling: CharacterEncoder | None,
        body: Recurrent | Towers,
        pooling: Pooling,
        output: nn.Linear,
        *,
        token_dropout: float = 0.0,
        input_dropout: float = 0.0,
        output_dropout: float = 0.0,
        locked: bool = False,
    ) -> None:
        super().__init__()
        self.embedding, self.spelling, self.body = embedding, spelling, body
        self.pooling, self.output = pooling, output
        self.unknown = WordDropout(0, token_dropout)
        self.input_dropout, self.locked = input_dropout, locked
        self.output_dropout = nn.Dropout(output_dropout)

    def forward(self, texts: Inputs) -> Tensor:
        return self.score(self.dropped(self.embed(texts)))

    def dropped(self, embedded: PackedSequence) -> PackedSequence:
        """The vectors of the tokens with the dropout of the input, while training."""
        if self.locked:
            x = locked_dropout(embedded.data, self.input_dropout, self.training, batch_sizes=embedded.batch_sizes)
        else:
            x = dropout(embedded.data, self.input_dropout, self.training)
        return embedded._replace(data=x)

    def read(self, embedded: PackedSequence) -> Tensor:
        """One vector for each text (B x H), from the vectors of its tokens (N x E)."""
        return cast(Tensor, self.output_dropout(self.pooling(*self.body(embedded))))

    def score(self, embedded: PackedSequence) -> Tensor:
        """The score of every class (B x C), from the vectors of the tokens (N x E)."""
        return cast(Tensor, self.output(self.read(embedded)))

    def embed(self, texts: Inputs) -> PackedSequence:
        """A vector for each token (N x E); a word's own and that of its characters side by side."""
        packed = texts.tokens
        return PackedSequence(self._vectors(texts), packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)

    def _vectors(self, texts: Inputs) -> Tensor:
        places = texts.tokens.data
        if self.spelling is None:
            return cast(Tensor, self.embedding(self.unknown(places)))
        assert texts.ids is not None
        words = self.embedding(self.unknown(texts.ids[places]))
        characters = self.spelling(texts.characters, texts.lengths, places)
        return torch.cat([words, characters], dim=1)
