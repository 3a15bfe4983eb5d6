"""The compiled path: a trained language model that streams text with no PyTorch call per token."""

from elman.runtime.engine import Engine
from elman.runtime.network import refusal
from elman.runtime.quantise import dequantise, quantise
from elman.runtime.state import State

__all__ = ["Engine", "State", "dequantise", "quantise", "refusal"]
