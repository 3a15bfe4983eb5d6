"""Layers and networks, one class an equation; they know tensors and nothing of text.

What makes the equations fast stands apart, in `elman.nn.fast`.
"""

from elman.nn.attention import (
    ATTENTIONS,
    AdditiveAttention,
    Attention,
    CosineAttention,
    DotAttention,
    FixedLengthAttention,
    GeneralAttention,
    LocationAttention,
    ReducedRankAttention,
    ScaledDotAttention,
)
from elman.nn.cells import Cell, ChoGRUCell, ElmanCell, GRUCell, LSTMCell
from elman.nn.crf import CRF, Forbidden, forbidden_transitions
from elman.nn.decoder import Decoder, DecoderState, Memory
from elman.nn.dropout import EmbeddingDropout, LockedDropout, drop_weight, locked_dropout
from elman.nn.features import CharacterEncoder, WordDropout, WordFeatures
from elman.nn.initialise import forget_bias_, identity_, initialise, orthogonal_
from elman.nn.language import LanguageNetwork, OneHot
from elman.nn.layers import GRU, LSTM, RNN, convert
from elman.nn.mutants import MUT1Cell, MUT2Cell, MUT3Cell
from elman.nn.pooling import (
    POOLINGS,
    AttentionPooling,
    LastMaxMeanPooling,
    LastPooling,
    MaxPooling,
    MeanPooling,
    Pooling,
)
from elman.nn.recurrent import CELLS, Recurrent
from elman.nn.softmax import AdaptiveSoftmax, ChunkedSoftmax, SampledSoftmax
from elman.nn.strings import StringEmbedding
from elman.nn.towers import Towers
from elman.nn.translation import Bridge, TranslationNetwork
from elman.nn.window import FixedWindow

__all__ = [
    "ATTENTIONS",
    "CELLS",
    "CRF",
    "GRU",
    "LSTM",
    "POOLINGS",
    "RNN",
    "AdaptiveSoftmax",
    "AdditiveAttention",
    "Attention",
    "AttentionPooling",
    "Bridge",
    "Cell",
    "CharacterEncoder",
    "ChoGRUCell",
    "ChunkedSoftmax",
    "CosineAttention",
    "Decoder",
    "DecoderState",
    "DotAttention",
    "ElmanCell",
    "EmbeddingDropout",
    "FixedLengthAttention",
    "FixedWindow",
    "Forbidden",
    "GRUCell",
    "GeneralAttention",
    "LSTMCell",
    "LanguageNetwork",
    "LastMaxMeanPooling",
    "LastPooling",
    "LocationAttention",
    "LockedDropout",
    "MUT1Cell",
    "MUT2Cell",
    "MUT3Cell",
    "MaxPooling",
    "MeanPooling",
    "Memory",
    "OneHot",
    "Pooling",
    "Recurrent",
    "ReducedRankAttention",
    "SampledSoftmax",
    "ScaledDotAttention",
    "StringEmbedding",
    "Towers",
    "TranslationNetwork",
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
