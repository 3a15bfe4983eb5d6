"""How a user says what to look for, and what that is in ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from elman.decode import Beam, Control, Sampling
from elman.errors import UserError, nearest
from elman.tasks.translate.settings import SearchSettings
from elman.tasks.translate.sides import Sides


@dataclass(frozen=True)
class Search:
    """What a user asks of translations; None and empty leave it to the model's own settings.

    `beam` hypotheses are followed, `n_best` given back. The text begins with `prefix`, has all words of `require` and
    none of `forbid`. With `temperature`, it is drawn in place of being searched for. `block_ngrams` n lets no n tokens
    stand twice. `alignments` asks for the weights of the attention.

    >>> Search(beam=8, require=("dog",))
    Search(beam=8, n_best=1, length_power=None, coverage=None, min_length=0, max_length=None, block_ngrams=0, \
prefix='', require=('dog',), forbid=(), temperature=None, top_k=0, top_p=1.0, seed=0, alignments=False, \
replace_unknown=False)
    """

    beam: int | None = None
    n_best: int = 1
    length_power: float | None = None
    coverage: float | None = None
    min_length: int = 0
    max_length: int | None = None
    block_ngrams: int = 0
    prefix: str = ""
    require: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()
    temperature: float | None = None
    top_k: int = 0
    top_p: float = 1.0
    seed: int | None = 0
    alignments: bool = False
    replace_unknown: bool = False

    @classmethod
    def of(cls, options: dict[str, Any]) -> "Search":
        """From options by name; a wrong name is answered with the nearest right one.

        >>> Search.of({"bea": 3})
        Traceback (most recent call last):
        elman.errors.UserError: there is no option 'bea' of a translation: did you mean 'beam'?
        """
        known = [field.name for field in fields(cls)]
        for name in options:
            if name not in known:
                raise UserError(f"there is no option '{name}' of a translation: {nearest(name, known)}")
        return replace(cls(), **as_fields(options))

    def settled(self, settings: SearchSettings, limit: int) -> Beam:
        """The beam search, what is not asked for being as the model's settings have it."""
        size = self.beam if self.beam is not None else max(settings.beam, self.n_best)
        return Beam(
            size=size,
            length=limit,
            n_best=self.n_best,
            length_power=settings.length_power if self.length_power is None else self.length_power,
            min_length=self.min_length,
            coverage=settings.coverage if self.coverage is None else self.coverage,
            block_ngrams=self.block_ngrams,
        )

    @property
    def sampling(self) -> Sampling | None:
        """How to draw, where that is asked for."""
        if self.temperature is None:
            return None
        return Sampling(temperature=self.temperature, top_k=self.top_k, top_p=self.top_p, seed=self.seed)

    def control(self, sides: Sides) -> Control:
        """The prefix and the words, as ids."""
        if not (self.prefix or self.require or self.forbid):
            return Control()
        prefix = tuple(sides.say(self.prefix).tolist()) if self.prefix else ()
        return Control(prefix, _phrases(sides, self.require), _forms(sides, self.forbid))


def as_fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as a `Search` keeps them: lists of words are tuples.

    >>> as_fields({"beam": 3, "forbid": ["dog"]})
    {'beam': 3, 'forbid': ('dog',)}
    """
    return {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}


def limits(settings: SearchSettings, search: Search, lengths: Sequence[int]) -> list[int]:
    """The greatest number of target tokens for sources of these lengths, the end token counted."""
    if search.max_length is not None:
        return [search.max_length] * len(lengths)
    return [int(np.ceil(settings.length_factor * length)) + settings.length_extra for length in lengths]


def _phrases(sides: Sides, words: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    found = []
    for word in words:
        ids = tuple(sides.say(word).tolist())
        if not word.strip() or sides.target.unk_id in ids:
            raise UserError(f"the word {word!r} cannot be asked for: the model's vocabulary cannot write it")
        found.append(ids)
    return tuple(found)


def _forms(sides: Sides, words: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """A word as it stands in a text, at the beginning of one too, small and capitalised; unknown ones cannot occur."""
    forms = {form for word in words for form in (word, word.lower(), word.capitalize())}
    phrases = {tuple(sides.say(form).tolist()) for form in forms if form.strip()}
    return tuple(sorted(ids for ids in phrases if ids and sides.target.unk_id not in ids))
