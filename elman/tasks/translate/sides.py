"""The two vocabularies of a translator, or the one that both sides share."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elman.errors import UserError
from elman.files import read_json, write_text
from elman.tasks.translate.settings import TextSettings
from elman.text import Tokenizer, fit_tokenizer

Ints = NDArray[np.int64]
SUBWORDS = ("bpe", "unigram")


class Sides:
    """Source text to ids, target text to ids and back.

    >>> sides = Sides.fit(TextSettings(kind="characters", target_kind="words"), [("cat", "K AE T")])
    >>> sides.read("tac").tolist(), sides.write(sides.say("T AE K"))
    ([4, 2, 3], 'T AE K')
    """

    def __init__(self, source: Tokenizer, target: Tokenizer) -> None:
        self.source, self.target = source, target

    @property
    def joint(self) -> bool:
        """Whether both sides share one vocabulary."""
        return self.source is self.target

    @classmethod
    def fit(cls, settings: TextSettings, pairs: Sequence[tuple[str, str]]) -> "Sides":
        """The vocabularies of training pairs, or those of another model's folder where the settings name one."""
        if settings.same_as is not None:
            return cls._taken(settings)
        if settings.joint:
            both = fit_tokenizer(settings.side(False), list(_ready(settings.kind, (t for p in pairs for t in p))))
            return cls(both, both)
        source = fit_tokenizer(settings.side(False), list(_ready(settings.kind, (pair[0] for pair in pairs))))
        kind = settings.target_kind or settings.kind
        return cls(source, fit_tokenizer(settings.side(True), list(_ready(kind, (pair[1] for pair in pairs)))))

    @classmethod
    def _taken(cls, settings: TextSettings) -> "Sides":
        sides = cls.load(Path(settings.same_as or "") / "tokenizer.json")
        if (sides.source.settings, sides.target.settings) != (settings.side(False), settings.side(True)):
            raise UserError(f"text.same_as = {settings.same_as} was made with other settings of text: give the same")
        if sides.joint != settings.joint:
            raise UserError(f"text.same_as = {settings.same_as} needs text.joint = {str(sides.joint).lower()}")
        return sides

    def read(self, text: str) -> Ints:
        """The ids of a source."""
        return self.source.encode(_before(self.source.settings.kind, text))

    def say(self, text: str) -> Ints:
        """The ids of a target."""
        return self.target.encode(_before(self.target.settings.kind, text))

    def write(self, ids: Sequence[int] | Ints) -> str:
        """The text of a target's ids."""
        text = self.target.decode(ids)
        return text.strip() if self.target.settings.kind in SUBWORDS else text

    # The file

    def to_json(self) -> str:
        """Both tokenizers as the text of a `tokenizer.json`."""
        if self.joint:
            return self.source.to_json()
        return json.dumps({"source": json.loads(self.source.to_json()), "target": json.loads(self.target.to_json())})

    def save(self, path: Path) -> None:
        """Write `tokenizer.json`, whole or not at all."""
        write_text(path, self.to_json())

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


def _before(kind: str, text: str) -> str:
    """Sub-words have the blank before them in them: with one in front, the first word is like the others."""
    return " " + text.strip() if kind in SUBWORDS else text


def _ready(kind: str, texts: Iterable[str]) -> Iterable[str]:
    return (_before(kind, text) + "\n" * (kind in SUBWORDS) for text in texts)
