"""Which class makes which kind of token."""

from collections.abc import Iterable

from elman.text.bytelevel import ByteTokenizer
from elman.text.characters import CharacterTokenizer, CodePointTokenizer
from elman.text.settings import TokenizerSettings
from elman.text.subwords import SubwordTokenizer
from elman.text.tokenizer import Tokenizer
from elman.text.words import WordTokenizer

type_of_tokenizer = type[CharacterTokenizer] | type[ByteTokenizer] | type[WordTokenizer] | type[SubwordTokenizer]

KINDS: dict[str, type_of_tokenizer] = {
    "characters": CharacterTokenizer,
    "codepoints": CodePointTokenizer,
    "bytes": ByteTokenizer,
    "words": WordTokenizer,
    "bpe": SubwordTokenizer,
    "unigram": SubwordTokenizer,
}


def fit_tokenizer(settings: TokenizerSettings, blocks: Iterable[str], ends: int = 0) -> Tokenizer:
    """The tokenizer that `settings` ask for, its vocabulary taken from `blocks` of text.

    Sub-words read the blocks twice: where the text is too big for memory, give them something that can be
    gone through again, not an iterator. `ends` is how many `<eos>` the documents get on top, for `counts`.

    >>> fit_tokenizer(TokenizerSettings(kind="words", size=3), ["to be or not to be"]).tokens
    ['<unk>', '<eos>', 'be']
    """
    return KINDS[settings.kind].fit(settings, [blocks] if isinstance(blocks, str) else blocks, ends)
