"""Characters to ids and back: vocabularies and tokenizers."""

from elman.text.kinds import fit_tokenizer
from elman.text.settings import BOS, EOS, PAD, UNK, TokenizerSettings
from elman.text.tokenizer import TextStream, Tokenizer

__all__ = ["BOS", "EOS", "PAD", "UNK", "TextStream", "Tokenizer", "TokenizerSettings", "fit_tokenizer"]
