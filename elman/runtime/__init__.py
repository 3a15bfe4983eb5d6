"""The compiled path: models that write and layers that read whole texts, with no PyTorch call inside.

Each is made of a description (`Layers`, `LanguageParts`, `TranslationParts`) and of arrays by name, as a model's folder
has them; `of` makes it of a network of PyTorch's.
"""

from elman.runtime.encoder import CompiledCharacters, Encoder, encoder_refusal
from elman.runtime.engine import Engine
from elman.runtime.language import LanguageParts, refusal
from elman.runtime.layers import Layers
from elman.runtime.quantise import dequantise, quantise
from elman.runtime.state import State
from elman.runtime.translation import DecoderParts, TranslationParts
from elman.runtime.translator import CompiledDecoder, CompiledTranslator, translator_refusal

__all__ = [
    "CompiledCharacters",
    "CompiledDecoder",
    "CompiledTranslator",
    "DecoderParts",
    "Encoder",
    "Engine",
    "LanguageParts",
    "Layers",
    "State",
    "TranslationParts",
    "dequantise",
    "encoder_refusal",
    "quantise",
    "refusal",
    "translator_refusal",
]
