"""The network of a tagger: what each word is made of, recurrent layers that read both ways, a score for each tag."""

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from elman.nn.crf import CRF, forbidden_transitions
from elman.nn.dropout import locked_dropout
from elman.nn.features import CharacterEncoder, WordDropout, WordFeatures
from elman.nn.recurrent import Recurrent
from elman.tasks.memory import build
from elman.tasks.tag.batch import Batch
from elman.tasks.tag.settings import ModelSettings
from elman.text.spelling import Speller

SMALL = 0.1  # the spread of fresh embeddings: a word hardly seen should say little


class TagNetwork(nn.Module):
    """p(tags | sentence). Everything stays packed: no token of padding is computed on.

    A word is its embedding, the vector of its characters and those of its case and affixes, side by side, as far as
    the settings have them.
    """

    def __init__(self, settings: ModelSettings, speller: Speller, tags: Sequence[str]) -> None:
        super().__init__()
        self.settings = settings
        self.words = nn.Embedding(speller.words.size, settings.embedding) if settings.embedding else None
        self.word_dropout = _word_dropout(settings, speller)
        self.characters = _character_encoder(settings, speller)
        self.features = _word_features(settings, speller)
        parts = (self.characters, self.features)
        width = settings.embedding + sum(part.output_size for part in parts if part is not None)
        self.body = Recurrent(
            settings.cell,
            width,
            settings.hidden,
            settings.layers,
            bidirectional=True,
            dropout=settings.dropout if settings.layers > 1 else 0.0,
            locked_dropout=settings.locked,
            weight_dropout=settings.weight_dropout,
            connections=settings.connections,
        )
        self.scores = nn.Linear(self.body.output_size, len(tags))
        self.crf = CRF(len(tags), forbidden_transitions(tags)) if settings.crf else None
        self._initialise()

    def forward(self, batch: Batch) -> Tensor:
        """The score of every tag for every token, N x K, packed."""
        vectors = self._drop(self._vectors(batch), self.settings.input_dropout, batch)  # N x E
        output, _ = self.body(PackedSequence(vectors, batch.batch_sizes))
        hidden = self._drop(output.data, self.settings.output_dropout, batch)  # N x D*H
        return cast(Tensor, self.scores(hidden))

    def loss(self, scores: Tensor, batch: Batch) -> Tensor:
        """The mean over the tokens of -log p(right tags), from the scores of `forward`."""
        assert batch.tags is not None
        if self.crf is None:
            return cross_entropy(scores, batch.tags)
        padded, lengths = _padded(scores, batch)
        tags, _ = _padded(batch.tags, batch)
        return -cast(Tensor, self.crf(padded, tags, lengths)).sum() / len(batch.tags)

    def best_tags(self, scores: Tensor, batch: Batch) -> Tensor:
        """The ids of the most probable tags, N, packed; of the most probable sequence where there is a CRF."""
        if self.crf is None:
            return scores.argmax(dim=1)
        padded, lengths = _padded(scores, batch)
        paths, _ = self.crf.best_paths(padded, lengths)  # B x T
        return pack_padded_sequence(paths, lengths, batch_first=True).data

    def _vectors(self, batch: Batch) -> Tensor:
        """What the layers read, N x E: features and characters are computed once for each distinct word."""
        spelled = batch.spelled
        parts = []
        if self.words is not None:
            parts.append(self.words(self.word_dropout(spelled.ids[spelled.words])))
        if self.characters is not None:
            parts.append(self.characters(spelled.characters, spelled.lengths, spelled.words))
        if self.features is not None:
            parts.append(self.features(spelled.features)[spelled.words])
        return torch.cat(parts, dim=1)

    def _drop(self, data: Tensor, p: float, batch: Batch) -> Tensor:
        if self.settings.locked:
            return locked_dropout(data, p, self.training, batch_sizes=batch.batch_sizes)
        return dropout(data, p, self.training)

    def _initialise(self) -> None:
        if self.words is not None:
            nn.init.normal_(self.words.weight, std=SMALL)
        for embedding in self.features.embeddings if self.features is not None else ():
            nn.init.normal_(cast(nn.Embedding, embedding).weight, std=SMALL)


def build_network(
    settings: ModelSettings, speller: Speller, tags: Sequence[str], *, trained: bool = True
) -> TagNetwork:
    """A fresh network, unless this machine has no room for it."""
    return build(lambda: TagNetwork(settings, speller, tags), settings, trained=trained)


def set_vectors(network: TagNetwork, rows: np.ndarray, vectors: np.ndarray) -> None:
    """Begin with pre-trained vectors for some rows of the word embedding, which stay so where the settings say it."""
    assert network.words is not None
    weight, places = network.words.weight, torch.from_numpy(rows)
    with torch.no_grad():
        weight[places] = torch.from_numpy(vectors)
    if network.settings.freeze_vectors:  # the other words, and the unknown one, still learn
        weight.register_hook(lambda gradient: gradient.index_fill(0, places, 0.0))  # type: ignore[no-untyped-call]


def _padded(packed: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """Packed rows as B x T (x K), the longest sentence first, and the sentences' lengths: what a CRF reads."""
    padded, _ = pad_packed_sequence(PackedSequence(packed, batch.batch_sizes), batch_first=True)
    return padded, batch.packed_lengths


def _word_dropout(settings: ModelSettings, speller: Speller) -> WordDropout:
    unknown, counts = speller.words.unk_id, torch.from_numpy(speller.words.counts)
    if not settings.word_dropout:
        return WordDropout(unknown, 0.0)
    return WordDropout.by_count(unknown, counts, settings.word_dropout)


def _character_encoder(settings: ModelSettings, speller: Speller) -> CharacterEncoder | None:
    if not settings.character_hidden:
        return None
    assert speller.characters is not None
    return CharacterEncoder(
        speller.characters.size,
        settings.character_embedding,
        settings.character_hidden,
        cell=settings.character_cell,
        dropout=settings.character_dropout,
    )


def _word_features(settings: ModelSettings, speller: Speller) -> WordFeatures | None:
    if not settings.case_embedding:
        return None
    counts = speller.feature_counts
    return WordFeatures(counts, [settings.case_embedding, *[settings.affix_embedding] * (len(counts) - 1)])
