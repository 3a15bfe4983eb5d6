"""The compiled path: models that write and layers that read whole texts, with no PyTorch call inside."""

from elman.runtime.decoder import Decoder, decoder_refusal
from elman.runtime.encoder import Encoder, encoder_refusal
from elman.runtime.engine import Engine
from elman.runtime.network import refusal
from elman.runtime.quantise import dequantise, quantise
from elman.runtime.state import State

__all__ = [
    "Decoder",
    "Encoder",
    "Engine",
    "State",
    "decoder_refusal",
    "dequantise",
    "encoder_refusal",
    "quantise",
    "refusal",
]
