"""Unknown words of a translation, replaced by the source word that the network looked at when it wrote them."""

from dataclasses import replace

from elman.errors import UserError
from elman.tasks.translate.sides import Sides
from elman.tasks.translate.translation import Alternative, Translation
from elman.text.settings import UNK


def replace_unknown(found: Translation, sides: Sides) -> Translation:
    """The translation with every `<unk>` of its best text replaced; for vocabularies of words on both sides.

    >>> import numpy as np
    >>> from elman.tasks.translate.settings import TextSettings
    >>> sides = Sides.fit(TextSettings(kind="words"), [("der Hund", "the dog")])
    >>> found = Translation("der Waschbär", [Alternative("the <unk>", -1, -1, sides.say("the raccoon").tolist())])
    >>> replace_unknown(replace(found, weights=np.eye(2)), sides).text
    'the Waschbär'
    """
    if found.weights is None or not sides.source.settings.kind == sides.target.settings.kind == "words":
        raise UserError("unknown words are replaced where both sides are words, and here they are not: leave that out")
    best, words = found.n_best[0], found.source.split()
    if len(words) != len(found.source_tokens or words):  # normalised, it has other blanks
        words = found.source_tokens
    pieces = [
        words[int(found.weights[place].argmax())] if id == sides.target.unk_id else sides.target.tokens[id]
        for place, id in enumerate(best.ids)
    ]
    names = [piece if name == UNK else name for piece, name in zip(pieces, found.target_tokens, strict=False)]
    fixed: Alternative = replace(best, text=" ".join(pieces))
    return replace(found, n_best=[fixed, *found.n_best[1:]], target_tokens=names or found.target_tokens)
