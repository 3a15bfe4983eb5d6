"""From the settings of a classifier to its network: embedding, recurrent layers, one vector a text, a score a class."""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout
from torch.nn.utils.rnn import PackedSequence

from elman.nn.dropout import locked_dropout
from elman.nn.features import CharacterEncoder, WordDropout
from elman.nn.initialise import initialise
from elman.nn.pooling import POOLINGS
from elman.nn.recurrent import Recurrent
from elman.tasks.classify.inputs import Inputs, Reader, WordReader
from elman.tasks.classify.settings import ModelSettings
from elman.tasks.memory import build


class ClassifierNetwork(nn.Module):
    """Packed texts to a score for each class (B x C)."""

    def __init__(self, settings: ModelSettings, tokens: int, characters: int, classes: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, settings.embedding)
        if settings.embedding_scale != 1:  # which PyTorch has drawn already
            # A rare token keeps most of the vector that it began with: a small one is no noise to the others.
            nn.init.normal_(self.embedding.weight, std=settings.embedding_scale)
        self.spelling: CharacterEncoder | None = None
        if characters:
            self.spelling = CharacterEncoder(
                characters,
                settings.character_embedding,
                settings.characters,
                cell=settings.cell,
                dropout=settings.input_dropout,
            )
        self.body = Recurrent(
            settings.cell,
            settings.embedding + (self.spelling.output_size if self.spelling else 0),
            settings.hidden,
            settings.layers,
            bidirectional=settings.bidirectional,
            dropout=settings.dropout if settings.layers > 1 else 0.0,
            locked_dropout=settings.locked,
            weight_dropout=settings.weight_dropout,
            connections=settings.connections,
            nonlinearity=settings.nonlinearity,
        )
        initialise(self.body, settings.initialise, forget_bias=settings.forget_bias)
        self.pooling = POOLINGS[settings.pooling](self.body)
        self.output = nn.Linear(self.pooling.output_size, classes)
        self.unknown = WordDropout(0, settings.token_dropout)
        self.input_dropout, self.locked = settings.input_dropout, settings.locked
        self.output_dropout = nn.Dropout(settings.output_dropout)

    def forward(self, texts: Inputs) -> Tensor:
        packed = texts.tokens
        x = self._embedded(texts)  # N x E
        if self.locked:
            x = locked_dropout(x, self.input_dropout, self.training, batch_sizes=packed.batch_sizes)
        else:
            x = dropout(x, self.input_dropout, self.training)
        steps, state = self.body(PackedSequence(x, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices))
        vector = self.output_dropout(self.pooling(steps, state))  # B x H
        return cast(Tensor, self.output(vector))  # B x C

    def _embedded(self, texts: Inputs) -> Tensor:
        """A vector for each token; a word's own and that of its characters side by side."""
        if self.spelling is None or texts.spelled is None:
            return cast(Tensor, self.embedding(self.unknown(texts.tokens.data)))
        spelled, places = texts.spelled, texts.tokens.data
        words = self.embedding(self.unknown(spelled.ids[places]))
        characters = self.spelling(spelled.characters, spelled.lengths, places)
        return torch.cat([words, characters], dim=1)


def build_network(settings: ModelSettings, reader: Reader, classes: int, *, trained: bool = True) -> ClassifierNetwork:
    """A fresh network for the reader's vocabulary, unless this machine has no room for it."""
    characters = 0
    if isinstance(reader, WordReader) and reader.speller.characters is not None:
        characters = reader.speller.characters.size
    return build(lambda: ClassifierNetwork(settings, reader.size, characters, classes), settings, trained=trained)
