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
    PlainCosineAttention,
    ReducedRankAttention,
    ScaledDotAttention,
)
from elman.nn.automaton import AutomatonNetwork, SecondOrderCell, WeightedAutomaton
from elman.nn.cache import ContinuousCache
from elman.nn.caption import CaptionNetwork
from elman.nn.cells import Cell, ChoGRUCell, ElmanCell, GRUCell, LSTMCell
from elman.nn.combined import CombinedCell
from elman.nn.crf import CRF, Forbidden, forbidden_transitions
from elman.nn.decoder import Decoder, DecoderState, Memory
from elman.nn.dropout import EmbeddingDropout, LockedDropout, drop_weight, locked_dropout
from elman.nn.dynamic import DynamicEvaluation
from elman.nn.embedding import Embedding, OneHot
from elman.nn.features import CharacterEncoder, WordDropout, WordFeatures
from elman.nn.initialise import forget_bias_, gaussian_, identity_, initialise, orthogonal_, uniform_
from elman.nn.language import LanguageNetwork
from elman.nn.layers import GRU, LSTM, RNN, convert
from elman.nn.mutants import MUT1Cell, MUT2Cell, MUT3Cell
from elman.nn.one_matrix import from_one_matrix, to_one_matrix
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
from elman.nn.trees import (
    TREE_CELLS,
    ChildSumCell,
    RecursiveCell,
    SpanNetwork,
    TensorCell,
    TreeCell,
    TreeLSTMCell,
    TreeNetwork,
)
from elman.nn.window import FixedWindow
from elman.nn.writing import WritingNetwork

__all__ = [
    "ATTENTIONS",
    "CELLS",
    "CRF",
    "GRU",
    "LSTM",
    "POOLINGS",
    "RNN",
    "TREE_CELLS",
    "AdaptiveSoftmax",
    "AdditiveAttention",
    "Attention",
    "AttentionPooling",
    "AutomatonNetwork",
    "Bridge",
    "CaptionNetwork",
    "Cell",
    "CharacterEncoder",
    "ChildSumCell",
    "ChoGRUCell",
    "ChunkedSoftmax",
    "CombinedCell",
    "ContinuousCache",
    "CosineAttention",
    "Decoder",
    "DecoderState",
    "DotAttention",
    "DynamicEvaluation",
    "ElmanCell",
    "Embedding",
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
    "PlainCosineAttention",
    "Pooling",
    "Recurrent",
    "RecursiveCell",
    "ReducedRankAttention",
    "SampledSoftmax",
    "ScaledDotAttention",
    "SecondOrderCell",
    "SpanNetwork",
    "StringEmbedding",
    "TensorCell",
    "Towers",
    "TranslationNetwork",
    "TreeCell",
    "TreeLSTMCell",
    "TreeNetwork",
    "WeightedAutomaton",
    "WordDropout",
    "WordFeatures",
    "WritingNetwork",
    "convert",
    "drop_weight",
    "forbidden_transitions",
    "forget_bias_",
    "from_one_matrix",
    "gaussian_",
    "identity_",
    "initialise",
    "locked_dropout",
    "orthogonal_",
    "to_one_matrix",
    "uniform_",
]
