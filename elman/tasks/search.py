"""How a user says what to look for, and what that is in ids."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict

import numpy as np
from pydantic import Field, model_validator

from elman.decode import (
    Beam,
    Control,
    Hypothesis,
    Repeated,
    Sampling,
    StepModel,
    forced_log_probs,
    fresh_seed,
    generate,
)
from elman.decode.beam import MOST_COVERAGE
from elman.decode.control import holds, remaining
from elman.errors import UserError, nearest
from elman.tasks.ensemble import EnsembleOptions
from elman.text.sides import Target
from elman.text.tokenizer import Tokenizer
from elman.train.recipe import Count, Section, parse

Phrase = tuple[int, ...]

SEARCHED = ("beam", "length_power", "coverage", "min_length", "block_ngrams", "prefix", "require", "forbid", "stop_at")
"""What means nothing where a text is drawn."""
LONGEST = 100_000  # tokens of a text at most: a search for more would hardly end
SAMPLED = 1024  # texts that are drawn side by side, at most


class SearchSettings(Section):
    """How a translation is looked for where the user does not say it."""

    beam: Count = Field(5, ge=1, description="hypotheses side by side; 1 is greedy")
    length_power: float = Field(1.0, ge=0, le=100, description="a score is divided by the length to this power")
    coverage: float = Field(
        0.0, ge=0, le=MOST_COVERAGE, description="weight of the penalty for source places not looked at"
    )
    stop_at: Count | None = Field(
        None, ge=1, description="finished hypotheses to stop at; as many as beam if not given"
    )
    length_factor: float = Field(3.0, gt=0, description="tokens at most, as a multiple of the source's ...")
    length_extra: int = Field(10, ge=1, le=LONGEST, description="... and so many more")


class Search(Section):
    """What a user asks of translations; None and empty leave it to the model's own settings.

    `beam` hypotheses are followed, `n_best` given back. The text begins with `prefix`, has all words of `require` and
    none of `forbid`. With `temperature`, it is drawn in place of being searched for, `n_best` times, and never has
    `<unk>` unless `allow_unknown`, or `replace_unknown`, is asked for. `block_ngrams` n lets no n tokens stand twice.
    `alignments` asks for the weights of the attention.

    >>> Search(beam=8, require=("dog",))
    Search(beam=8, n_best=1, length_power=None, coverage=None, min_length=0, max_length=None, block_ngrams=0, \
prefix='', require=('dog',), forbid=(), temperature=None, top_k=0, top_p=1.0, seed=0, alignments=False, \
replace_unknown=False, allow_unknown=False, stop_at=None)
    """

    beam: Count | None = Field(None, ge=1, description="Hypotheses side by side; 1 is greedy.")
    n_best: Count = Field(1, ge=1, description="So many answers to each record.")
    length_power: float | None = Field(
        None, ge=0, le=100, description="A score is divided by the length to this power."
    )
    coverage: float | None = Field(
        None, ge=0, le=MOST_COVERAGE, description="Weight of the penalty for places not attended to."
    )
    min_length: int = Field(0, ge=0, le=LONGEST, description="Tokens at least.")
    max_length: int | None = Field(None, ge=1, le=LONGEST, description="Tokens at most.")
    block_ngrams: Count = Field(0, ge=0, description="No so many tokens stand twice.")
    prefix: str = Field("", description="Every answer begins so.")
    require: tuple[str, ...] = Field((), description="A word that must appear; may be repeated.")
    forbid: tuple[str, ...] = Field((), description="A word that must not appear; may be repeated.")
    temperature: float | None = Field(None, ge=0, description="Sample in place of searching; 0 takes the likeliest.")
    top_k: Count = Field(0, ge=0, description="Sample among so many of the likeliest tokens; 0 is all.")
    top_p: float = Field(1.0, gt=0, le=1, description="Sample among the likeliest tokens of this probability.")
    seed: int | None = Field(0, ge=0, lt=2**64, description="Of the sampling.")
    alignments: bool = Field(False, description="Which token comes from which (0-0 1-2).")
    replace_unknown: bool = Field(False, description="Unknown words become those that the model attended to.")
    allow_unknown: bool = Field(False, description="A text that is sampled may have <unk> in it.")
    stop_at: Count | None = Field(
        None, ge=1, description="Finished hypotheses to stop at; the beam's size if not given."
    )

    @model_validator(mode="after")
    def _parts_fit(self) -> "Search":
        if self.beam is not None and self.n_best > self.beam:
            raise ValueError(f"n_best = {self.n_best} is more than beam = {self.beam} holds: take a larger beam")
        if self.stop_at is not None and self.n_best > self.stop_at:
            raise ValueError(f"n_best = {self.n_best} is more than stop_at = {self.stop_at}: stop later")
        if self.max_length is not None and self.min_length > self.max_length:
            raise ValueError(f"min_length = {self.min_length} is more than max_length = {self.max_length}")
        asked = [name for name in SEARCHED if getattr(self, name)]
        if self.temperature is not None and asked:
            raise ValueError(f"temperature draws a text in place of searching for one: leave {asked[0]} out")
        return self

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Search":
        """From options by name; a wrong name is answered with the nearest right one.

        >>> Search.of({"bea": 3})
        Traceback (most recent call last):
        elman.errors.UserError: there is no option 'bea' of a translation: did you mean 'beam'?
        >>> Search.of({"beam": 0})
        Traceback (most recent call last):
        elman.errors.UserError: the search: 'beam' = 0: should be greater than or equal to 1
        """
        for name in options:
            if name not in cls.model_fields:
                raise UserError(f"there is no option '{name}' of a translation: {nearest(name, cls.model_fields)}")
        return parse(cls, options, where="the search")

    def also(self, options: Mapping[str, Any]) -> "Search":
        """This search with some options changed.

        >>> Search(beam=3).also({"n_best": 2}).n_best
        2
        """
        return Search.of(self.model_dump() | dict(options)) if options else self

    def shared(self) -> tuple[Any, ...]:
        """What all texts of one search must have in common."""
        alone = {"prefix", "require", "forbid", "alignments"}
        return tuple(self.model_dump(exclude=alone).values())

    def settled(self, settings: SearchSettings, limit: int, vocabulary: int) -> Beam:
        """The beam search, what is not asked for being as the model's settings have it."""
        if max(self.beam or 1, self.n_best) > vocabulary:
            asked = f"a beam of {self.beam}" if self.beam else f"n_best = {self.n_best}"
            raise UserError(f"{asked} is larger than the target's vocabulary of {vocabulary}: take a smaller one")
        return Beam(
            size=self.beam or min(max(settings.beam, self.n_best), vocabulary),
            length=limit,
            n_best=self.n_best,
            length_power=settings.length_power if self.length_power is None else self.length_power,
            min_length=self.min_length,
            coverage=settings.coverage if self.coverage is None else self.coverage,
            block_ngrams=self.block_ngrams,
            stop_at=max(stop, self.n_best) if (stop := self.stop_at or settings.stop_at) is not None else None,
        )

    @property
    def sampling(self) -> Sampling | None:
        """How to draw, where that is asked for."""
        if self.temperature is None:
            return None
        return Sampling(temperature=self.temperature, top_k=self.top_k, top_p=self.top_p, seed=self.seed)

    def control(self, side: Target) -> Control:
        """The prefix and the words, as ids; what no translation can keep to is refused."""
        never = {(id,) for id in side.unwritten}
        if not (self.prefix or self.require or self.forbid):
            return Control(forbid=tuple(sorted(never)))
        forbidden = {word: _forms(side, word) for word in self.forbid}
        asked = {text: _phrase(side, text) for text in (self.prefix, *self.require) if text}
        for text, ids in asked.items():
            for word, forms in forbidden.items():
                if any(holds(ids, form) for form in forms):
                    raise UserError(f"{text!r} is asked for and {word!r}, which is in it, forbidden: leave one out")
        require = tuple(_phrase(side, word) for word in self.require)
        control = Control(asked.get(self.prefix, ()), require, tuple(sorted(never.union(*forbidden.values()))))
        if self.max_length is not None and needed(control) > self.max_length:
            raise UserError(
                f"what is asked for takes {needed(control)} tokens, and max_length = {self.max_length}: ask for less"
            )
        return control


def needed(control: Control) -> int:
    """How many ids it takes to write all that is asked for.

    >>> needed(Control(prefix=(4,), require=((7, 8),)))
    3
    """
    return len(control.prefix) + remaining(control, control.prefix)


def limits(settings: SearchSettings, search: Search, lengths: Sequence[int], controls: Sequence[Control]) -> list[int]:
    """The greatest number of target tokens for sources of these lengths, the end token counted.

    What is asked for never takes the room away that a model's own words have.
    """
    if search.max_length is not None:
        return [search.max_length] * len(lengths)
    usual = (int(np.ceil(min(settings.length_factor * length, LONGEST))) + settings.length_extra for length in lengths)
    rooms = (room + needed(control) for room, control in zip(usual, controls, strict=True))
    return [max(room, search.min_length) for room in rooms]


def _phrase(side: Target, text: str) -> Phrase:
    """What must stand in the text."""
    ids = tuple(side.say(text).tolist())
    if not text.strip() or side.target.unk_id in ids:
        raise UserError(f"{text!r} cannot be asked for: the model's vocabulary cannot write it")
    return ids


def _forms(side: Target, word: str) -> set[Phrase]:
    """A word that must not stand in the text, small and capitalised too; unknown ones cannot occur."""
    if not word.strip():
        raise UserError("a word to forbid is empty: leave it out")
    phrases = {tuple(side.say(form).tolist()) for form in (word, word.lower(), word.capitalize())}
    return {ids for ids in phrases if side.target.unk_id not in ids}


class SearchOptions(TypedDict, total=False):
    """The keys of `Search`, as `predict` takes them."""

    beam: int | None
    n_best: int
    length_power: float | None
    coverage: float | None
    min_length: int
    max_length: int | None
    block_ngrams: int
    prefix: str
    require: Sequence[str]
    forbid: Sequence[str]
    temperature: float | None
    top_k: int
    top_p: float
    seed: int | None
    alignments: bool
    replace_unknown: bool
    allow_unknown: bool
    stop_at: int | None


class WriteOptions(EnsembleOptions, Search):
    """What `elman predict` can be asked of a model that writes: what `Search` says, and models to average with."""


class TranslateOptions(WriteOptions):
    """What `elman predict` can be asked of a translator: also models that rerank what it writes."""

    channel: str | None = Field(None, description="The folder of a translator the other way, to rerank by; see --lm.")
    lm: str | None = Field(None, description="The folder of a language model of the target, to rerank by.")
    channel_weights: str | None = Field(None, description="Of the reranking, name=value,...; elman rerank finds them.")


def sampled(
    steps: StepModel[Any],
    sampling: Sampling,
    target: Tokenizer,
    room: Sequence[int],
    *,
    samples: int = 1,
    suppress: Iterable[int] = (),
) -> list[list[Hypothesis]]:
    """Some texts for each row, of at most `room` tokens, the end token counted, without the ids of `suppress`.

    Each is scored by its mean log-probability, and they come best first. The first sample of every row takes its random
    numbers from the streams that it would have without the others.
    """
    found: list[list[Hypothesis]] = [[] for _ in room]
    if sampling.seed is None:  # one for all blocks
        sampling = replace(sampling, seed=fresh_seed())
    at_once = max(1, SAMPLED // len(room))
    for first in range(0, samples, at_once):
        count = min(at_once, samples - first)
        options = {"suppress": suppress, "first_stream": first * len(room)}
        each = Repeated(steps, len(room)) if samples > 1 else steps
        for place, hypothesis in enumerate(_drawn(each, sampling, target, [*room] * count, options)):
            found[place % len(room)].append(hypothesis)
    return [sorted(several, key=lambda one: -one.score) for several in found]


def _drawn(
    steps: StepModel[Any], sampling: Sampling, target: Tokenizer, room: Sequence[int], options: dict[str, Any]
) -> list[Hypothesis]:
    """One text for each row of a step model."""
    rows, start, end = len(room), target.start_id, target.eos_id
    written: list[list[int]] = [[] for _ in range(rows)]
    options |= {"stop_ids": {end}, "stop_when": lambda row: len(written[row]) == room[row]}
    new_ids = generate(steps, [[start]] * rows, length=max(room), sampling=sampling, same_start=False, **options)
    for new in new_ids:
        for row, id in new.items():
            written[row].append(id)
    finished = [len(ids) < limit for ids, limit in zip(written, room, strict=True)]
    said = [[*ids, end] if over else ids for ids, over in zip(written, finished, strict=True)]
    log_probs = forced_log_probs(steps, said, start_id=start)
    return [
        Hypothesis(ids, log_prob, log_prob / len(whole), over)
        for ids, whole, log_prob, over in zip(written, said, log_probs, finished, strict=True)
    ]
