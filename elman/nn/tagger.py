"""The network of a tagger: what each word is made of, recurrent layers that read both ways, a score for each tag."""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from elman.nn.crf import CRF
from elman.nn.dropout import locked_dropout
from elman.nn.embedding import OneHot
from elman.nn.features import CharacterEncoder, WordDropout, WordFeatures
from elman.nn.inputs import Inputs
from elman.nn.recurrent import Recurrent
from elman.nn.strings import StringEmbeddings
from elman.nn.towers import Towers


class TagNetwork(nn.Module):
    """p(tags | sentence). Everything stays packed: no token of padding is computed on.

    A word is its embedding, the vector of its characters, those of its case and affixes and the states of character
    models at its borders, side by side, as far as there are such parts.
    """

    def __init__(
        self,
        words: nn.Embedding | OneHot | None,
        word_dropout: WordDropout,
        characters: CharacterEncoder | None,
        features: WordFeatures | None,
        body: Recurrent | Towers,
        scores: nn.Linear,
        crf: CRF | None,
        *,
        strings: StringEmbeddings | None = None,
        input_dropout: float = 0.0,
        output_dropout: float = 0.0,
        locked: bool = True,
    ) -> None:
        super().__init__()
        self.words, self.word_dropout, self.strings = words, word_dropout, strings
        self.characters, self.features = characters, features
        self.body, self.scores, self.crf = body, scores, crf
        self.input_dropout, self.output_dropout, self.locked = input_dropout, output_dropout, locked

    def forward(self, sentences: Inputs) -> Tensor:
        """The score of every tag for every token, N x K, packed."""
        embedded = self.embed(sentences)
        vectors = self._drop(embedded.data, self.input_dropout, embedded.batch_sizes)
        return self.score(embedded._replace(data=vectors))

    def embed(self, sentences: Inputs) -> PackedSequence:
        """What the layers read of each word (N x E), in the order of the packing."""
        return PackedSequence(self._vectors(sentences), sentences.tokens.batch_sizes)

    def score(self, embedded: PackedSequence) -> Tensor:
        """The score of every tag for every token (N x K), from the vectors of the words (N x E)."""
        output, _ = self.body(embedded)
        hidden = self._drop(output.data, self.output_dropout, embedded.batch_sizes)  # N x D*H
        return cast(Tensor, self.scores(hidden))

    def loss(self, scores: Tensor, tags: Tensor, batch_sizes: Tensor, crf: CRF | None = None) -> Tensor:
        """The mean over the tokens of -log p(right tags), from the scores of `forward`; `tags` are N ids, packed.

        `crf` stands in the place of its own, where scores are those of several networks.
        """
        crf = crf or self.crf
        if crf is None:
            return cross_entropy(scores, tags)
        padded, lengths = _padded(scores, batch_sizes)
        right, _ = _padded(tags, batch_sizes)
        return -cast(Tensor, crf(padded, right, lengths)).sum() / len(tags)

    def best_tags(self, scores: Tensor, batch_sizes: Tensor, crf: CRF | None = None) -> Tensor:
        """The ids of the most probable tags, N, packed; of the most probable sequence where there is a CRF.

        `crf` stands in the place of its own, where scores are those of several networks.
        """
        crf = crf or self.crf
        if crf is None:
            return scores.argmax(dim=1)
        padded, lengths = _padded(scores, batch_sizes)
        paths, _ = crf.best_paths(padded, lengths)  # B x T
        return pack_padded_sequence(paths, lengths, batch_first=True).data

    def _vectors(self, sentences: Inputs) -> Tensor:
        """What the layers read, N x E: features and characters are computed once for each distinct word."""
        places, parts = sentences.tokens.data, []
        if self.words is not None:
            assert sentences.ids is not None
            parts.append(self.words(self.word_dropout(sentences.ids[places])))
        if self.characters is not None:
            parts.append(self.characters(sentences.characters, sentences.lengths, places))
        if self.features is not None:
            parts.append(self.features(sentences.features)[places])
        if self.strings is not None:
            assert sentences.strings is not None
            parts.append(sentences.strings)
        return torch.cat(parts, dim=1)

    def _drop(self, data: Tensor, p: float, batch_sizes: Tensor) -> Tensor:
        if self.locked:
            return locked_dropout(data, p, self.training, batch_sizes=batch_sizes)
        return dropout(data, p, self.training)


def _padded(packed: Tensor, batch_sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Packed rows as B x T (x K), the longest sentence first, and the sentences' lengths: what a CRF reads."""
    return pad_packed_sequence(PackedSequence(packed, batch_sizes), batch_first=True)
