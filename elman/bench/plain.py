"""The taggers and classifiers of the benchmark as one writes them in plain PyTorch: padded batches, `torch.nn.LSTM`.

They have the weights of Elman's networks, so that the answers have to be the same ones.
"""

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from elman.nn.crf import CRF
from elman.nn.inputs import Inputs
from elman.nn.recurrent import Recurrent
from elman.tasks.classify import TextClassifier
from elman.tasks.tag import TagModel
from elman.text.encoder import spelled, words

BATCH = 32  # texts at a time


class PlainTagger:
    """A tag for each token: embeddings, a bidirectional LSTM over characters, one over words, softmax or CRF."""

    def __init__(self, model: TagModel) -> None:
        network = model.network
        assert network.words is not None and network.characters is not None and network.features is not None
        self.tags, self.speller, self.crf = model.tags, model.vocabulary, network.crf
        self.words, self.letters = network.words, network.characters.embedding
        self.features = cast("list[nn.Embedding]", list(network.features.embeddings))
        self.characters, self.body = plain_lstm(network.characters.body), plain_lstm(cast(Recurrent, network.body))
        self.scores = network.scores

    @torch.inference_mode()
    def __call__(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """The tags of each sentence."""
        found: dict[int, list[str]] = {}
        for rows in batches(sentences):
            for row, tags in zip(rows, self._tags([sentences[row] for row in rows]), strict=True):
                found[row] = tags
        return [found[row] for row in range(len(sentences))]

    def _tags(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        lengths = torch.tensor([len(sentence) for sentence in sentences])
        places, found = spelled(self.speller, words(sentences))
        spelling: Any = Inputs.of(places, found)  # as tensors
        letters = pack_padded_sequence(
            self.letters(spelling.characters), spelling.lengths, batch_first=True, enforce_sorted=False
        )
        _, (h, _) = self.characters(letters)  # 2 x W x H
        columns = zip(self.features, spelling.features.unbind(1), strict=True)
        parts = [self.words(spelling.ids), torch.cat([h[0], h[1]], dim=1), *(table(ids) for table, ids in columns)]
        vectors = torch.split(torch.cat(parts, dim=1)[torch.from_numpy(places.data)], lengths.tolist())  # each T x E
        packed = pack_padded_sequence(pad_sequence(list(vectors), batch_first=True), lengths, batch_first=True)
        hidden, _ = pad_packed_sequence(self.body(packed)[0], batch_first=True)  # B x T x 2H
        scores = self.scores(hidden)
        paths = scores.argmax(dim=2) if self.crf is None else viterbi(self.crf, scores, lengths)
        rows = zip(paths.tolist(), lengths.tolist(), strict=True)
        return [[self.tags[tag] for tag in row[:length]] for row, length in rows]


class PlainClassifier:
    """A label for each text: embedding, bidirectional LSTM, the maximum over the steps."""

    def __init__(self, model: TextClassifier) -> None:
        network = model.network
        self.labels, self.vocabulary, self.embedding = model.labels, model.vocabulary, network.embedding
        self.body, self.output = plain_lstm(cast(Recurrent, network.body)), network.output

    @torch.inference_mode()
    def __call__(self, texts: Sequence[str]) -> list[str]:
        """The label of each text."""
        encoded = [torch.from_numpy(row) for row in self.vocabulary.encode(texts)]
        found: dict[int, str] = {}
        for rows in batches(encoded):
            lengths = torch.tensor([len(encoded[row]) for row in rows])
            embedded = self.embedding(pad_sequence([encoded[row] for row in rows], batch_first=True))  # B x T x E
            packed = pack_padded_sequence(embedded, lengths, batch_first=True)
            hidden, _ = pad_packed_sequence(self.body(packed)[0], batch_first=True, padding_value=-torch.inf)
            for row, best in zip(rows, self.output(hidden.amax(dim=1)).argmax(dim=1).tolist(), strict=True):
                found[row] = self.labels[best]
        return [found[row] for row in range(len(texts))]


def plain_lstm(body: Recurrent) -> nn.LSTM:
    """PyTorch's own layer with the weights of ours.

    >>> plain_lstm(Recurrent("lstm", 3, 5, bidirectional=True))
    LSTM(3, 5, batch_first=True, bidirectional=True)
    """
    layer = nn.LSTM(body.input_size, body.hidden_size, bidirectional=body.bidirectional, batch_first=True)
    layer.load_state_dict(body.layers[0].state_dict())
    return layer


def batches(texts: Sequence[Any]) -> list[list[int]]:
    """The numbers of texts of like length, the longest first.

    >>> batches(["a", "ccc", "bb"])
    [[1, 2, 0]]
    """
    order = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
    return [order[first : first + BATCH] for first in range(0, len(order), BATCH)]


def viterbi(crf: CRF, scores: Tensor, lengths: Tensor) -> Tensor:
    """The best tags (B x T) of padded scores (B x T x K), the longest sentence first, step by step."""
    start, transitions, end = map(torch.from_numpy, crf.chain())
    best, pointers = start + scores[:, 0], []  # B x K
    for step in range(1, scores.size(1)):
        top, came_from = (best.unsqueeze(2) + transitions).max(dim=1)  # B x K
        inside = (step < lengths).unsqueeze(1)
        best = torch.where(inside, top + scores[:, step], best)
        pointers.append(torch.where(inside, came_from, torch.arange(scores.size(2))))
    tags = [(best + end).argmax(dim=1, keepdim=True)]  # B x 1
    for came_from in reversed(pointers):
        tags.append(came_from.gather(1, tags[-1]))
    return torch.cat(tags[::-1], dim=1)
