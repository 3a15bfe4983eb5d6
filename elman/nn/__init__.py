"""Layers: they know tensors and nothing of text."""

from elman.nn.cells import Cell, ChoGRUCell, ElmanCell, GRUCell, LSTMCell
from elman.nn.crf import CRF, Forbidden, forbidden_transitions
from elman.nn.dropout import EmbeddingDropout, LockedDropout, drop_weight, locked_dropout
from elman.nn.features import CharacterEncoder, WordDropout, WordFeatures
from elman.nn.initialise import forget_bias_, identity_, initialise, orthogonal_
from elman.nn.layers import GRU, LSTM, RNN, convert
from elman.nn.mutants import MUT1Cell, MUT2Cell, MUT3Cell
from elman.nn.pooling import POOLINGS, AttentionPooling, LastPooling, MaxPooling, MeanPooling, Pooling
from elman.nn.recurrent import CELLS, Recurrent
from elman.nn.softmax import AdaptiveSoftmax, ChunkedSoftmax, SampledSoftmax
from elman.nn.window import FixedWindow

__all__ = [
    "CELLS",
    "CRF",
    "GRU",
    "LSTM",
    "POOLINGS",
    "RNN",
    "AdaptiveSoftmax",
    "AttentionPooling",
    "Cell",
    "CharacterEncoder",
    "ChoGRUCell",
    "ChunkedSoftmax",
    "ElmanCell",
    "EmbeddingDropout",
    "FixedWindow",
    "Forbidden",
    "GRUCell",
    "LSTMCell",
    "LastPooling",
    "LockedDropout",
    "MUT1Cell",
    "MUT2Cell",
    "MUT3Cell",
    "MaxPooling",
    "MeanPooling",
    "Pooling",
    "Recurrent",
    "SampledSoftmax",
    "WordDropout",
    "WordFeatures",
    "convert",
    "drop_weight",
    "forbidden_transitions",
    "forget_bias_",
    "identity_",
    "initialise",
    "locked_dropout",
    "orthogonal_",
]
