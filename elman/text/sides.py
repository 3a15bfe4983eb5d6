"""The two vocabularies of a translator, or the one that both sides share; that of a model which only writes."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elman.files import read_json, write_text
from elman.text.kinds import fit_tokenizer
from elman.text.settings import TokenizerSettings
from elman.text.tokenizer import Tokenizer

Ints = NDArray[np.int64]
SUBWORDS = ("bpe", "unigram")


class Target:
    """Target text to ids and back; `ready` is what is done to a text first, `unknown` whether `<unk>` may be written.

    >>> words = TokenizerSettings(kind="words", lowercase=True)
    >>> target = Target(fit_side(words, ["a dog runs"]), lambda text: text.replace(".", ""))
    >>> target.write(target.say("A dog runs."))
    'a dog runs'
    """

    def __init__(self, target: Tokenizer, ready: Callable[[str], str] = str, *, unknown: bool = True) -> None:
        self.target, self.ready = target, ready
        self.unwritten = target.unwritten if unknown else {*target.unwritten, target.unk_id}

    def say(self, text: str) -> Ints:
        """The ids of a target."""
        return self.target.encode(_before(self.target.settings.kind, self.ready(text)))

    def write(self, ids: Sequence[int] | Ints) -> str:
        """The text of a target's ids."""
        text = self.target.decode(ids)
        return text.strip() if self.target.settings.kind in SUBWORDS else text

    def to_json(self) -> str:
        """The tokenizer as the text of a `tokenizer.json`."""
        return self.target.to_json()

    def save(self, path: Path) -> None:
        """Write `tokenizer.json`, whole or not at all."""
        write_text(path, self.to_json())


class Sides(Target):
    """Source text to ids, target text to ids and back.

    >>> letters, phonemes = TokenizerSettings(kind="characters"), TokenizerSettings(kind="words")
    >>> sides = Sides.fit([("cat", "K AE T")], letters, phonemes)
    >>> sides.read("tac").tolist(), sides.write(sides.say("T AE K"))
    ([4, 2, 3], 'T AE K')
    """

    def __init__(self, source: Tokenizer, target: Tokenizer) -> None:
        super().__init__(target)
        self.source = source

    @property
    def joint(self) -> bool:
        """Whether both sides share one vocabulary."""
        return self.source is self.target

    @classmethod
    def fit(
        cls, pairs: Sequence[tuple[str, str]], source: TokenizerSettings, target: TokenizerSettings | None
    ) -> "Sides":
        """The vocabularies of training pairs; one that both sides share where no `target` is given."""
        if target is None:
            both = fit_tokenizer(source, list(_ready(source.kind, (text for pair in pairs for text in pair))))
            return cls(both, both)
        return cls(fit_side(source, (pair[0] for pair in pairs)), fit_side(target, (pair[1] for pair in pairs)))

    def read(self, text: str) -> Ints:
        """The ids of a source."""
        return self.source.encode(_before(self.source.settings.kind, text))

    # The file

    def to_json(self) -> str:
        """Both tokenizers as the text of a `tokenizer.json`."""
        if self.joint:
            return self.source.to_json()
        return json.dumps({"source": json.loads(self.source.to_json()), "target": json.loads(self.target.to_json())})

    @classmethod
    def load(cls, path: Path) -> "Sides":
        """Read a `tokenizer.json`."""
        value = read_json(path)
        if "source" not in value:
            both = Tokenizer.load(path)
            return cls(both, both)
        sides = (
            Tokenizer.from_json(json.dumps(value.get(side)), f"'{side}' in {path}") for side in ("source", "target")
        )
        return cls(*sides)


def fit_side(settings: TokenizerSettings, texts: Iterable[str]) -> Tokenizer:
    """The vocabulary of one side."""
    return fit_tokenizer(settings, list(_ready(settings.kind, texts)))


def _before(kind: str, text: str) -> str:
    """Sub-words have the blank before them in them: with one in front, the first word is like the others."""
    return " " + text.strip() if kind in SUBWORDS else text


def _ready(kind: str, texts: Iterable[str]) -> Iterable[str]:
    return (_before(kind, text) + "\n" * (kind in SUBWORDS) for text in texts)
