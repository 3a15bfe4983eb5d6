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
from elman.nn.ngrams import NGramScores
from elman.nn.pooling import Pooling, sum_over_steps
from elman.nn.recurrent import Recurrent
from elman.nn.towers import Towers


class ClassifierNetwork(nn.Module):
    """Packed texts to a score for each class (B x C); with `spelling`, a word is read by its characters too.

    With `ngrams` their scores are added, which stand behind the vectors of the tokens (N x E + C).

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
        ngrams: NGramScores | None = None,
        *,
        token_dropout: float = 0.0,
        input_dropout: float = 0.0,
        output_dropout: float = 0.0,
        locked: bool = False,
    ) -> None:
        super().__init__()
        self.embedding, self.spelling, self.body = embedding, spelling, body
        self.pooling, self.output, self.ngrams = pooling, output, ngrams
        self.unknown = WordDropout(0, token_dropout)
        self.input_dropout, self.locked = input_dropout, locked
        self.output_dropout = nn.Dropout(output_dropout)

    def forward(self, texts: Inputs) -> Tensor:
        return self.score(self.dropped(self.embed(texts)))

    def dropped(self, embedded: PackedSequence) -> PackedSequence:
        """The vectors of the tokens with the dropout of the input, while training."""
        vectors, scores = self.parts(embedded)
        if self.locked:
            x = locked_dropout(vectors.data, self.input_dropout, self.training, batch_sizes=embedded.batch_sizes)
        else:
            x = dropout(vectors.data, self.input_dropout, self.training)
        return embedded._replace(data=x if scores is None else torch.cat([x, scores.data], dim=1))

    def read(self, embedded: PackedSequence) -> Tensor:
        """One vector for each text (B x H), from the vectors of its tokens (N x E)."""
        return cast(Tensor, self.output_dropout(self.pooling(*self.body(embedded))))

    def score(self, embedded: PackedSequence) -> Tensor:
        """The score of every class (B x C), from what `embed` made of the tokens."""
        vectors, scores = self.parts(embedded)
        found = cast(Tensor, self.output(self.read(vectors)))
        return found if scores is None else found + sum_over_steps(scores)

    def parts(self, embedded: PackedSequence) -> tuple[PackedSequence, PackedSequence | None]:
        """What the layers read of each token (N x E), and what n-grams that end there say of the classes (N x C)."""
        if self.ngrams is None:
            return embedded, None
        size = embedded.data.size(1) - self.output.out_features
        return embedded._replace(data=embedded.data[:, :size]), embedded._replace(data=embedded.data[:, size:])

    def embed(self, texts: Inputs) -> PackedSequence:
        """A vector for each token (N x E); a word's own and that of its characters side by side; then its n-grams'."""
        packed, vectors = texts.tokens, self._vectors(texts)
        if self.ngrams is not None:
            vectors = torch.cat([vectors, self.ngrams(packed)], dim=1)
        return PackedSequence(vectors, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)

    def _vectors(self, texts: Inputs) -> Tensor:
        places = texts.tokens.data
        if self.spelling is None:
            return cast(Tensor, self.embedding(self.unknown(places)))
        assert texts.ids is not None
        words = self.embedding(self.unknown(texts.ids[places]))
        characters = self.spelling(texts.characters, texts.lengths, places)
        return torch.cat([words, characters], dim=1)
