"""Layers: they know tensors and nothing of text."""

from elman.nn.cells import Cell, ChoGRUCell, ElmanCell, GRUCell, LSTMCell
from elman.nn.dropout import EmbeddingDropout, LockedDropout, drop_weight, locked_dropout
from elman.nn.initialise import forget_bias_, identity_, initialise, orthogonal_
from elman.nn.layers import GRU, LSTM, RNN
from elman.nn.mutants import MUT1Cell, MUT2Cell, MUT3Cell
from elman.nn.recurrent import CELLS, Recurrent
from elman.nn.softmax import AdaptiveSoftmax, ChunkedSoftmax, SampledSoftmax
from elman.nn.window import FixedWindow

__all__ = [
    "CELLS",
    "GRU",
    "LSTM",
    "RNN",
    "AdaptiveSoftmax",
    "Cell",
    "ChoGRUCell",
    "ChunkedSoftmax",
    "ElmanCell",
    "EmbeddingDropout",
    "FixedWindow",
    "GRUCell",
    "LSTMCell",
    "LockedDropout",
    "MUT1Cell",
    "MUT2Cell",
    "MUT3Cell",
    "Recurrent",
    "SampledSoftmax",
    "drop_weight",
    "forget_bias_",
    "identity_",
    "initialise",
    "locked_dropout",
    "orthogonal_",
]
