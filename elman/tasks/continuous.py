"""Texts of a language model that are written side by side and come and go at any time: what a service needs.

writer = ContinuousWriter(elman.load("runs/shakespeare"))
romeo = writer.begin("ROMEO:", length=100, sampling=Sampling(0.8, seed=1))
while writer.texts:
    for piece in writer.advance():
        ...                         # piece.text is the number of a text, piece.piece what was written of it
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from elman.decode import Sampling, StopStrings
from elman.decode.continuous import StepBatch
from elman.errors import UserError
from elman.runtime.continuous import ContinuousBatch, NewId

if TYPE_CHECKING:
    from elman.tasks.language import LanguageModel


class WrittenToken(NamedTuple):
    """A token that was written, where it begins in the text, and what the model thought of it."""

    token: str
    start: int
    log_prob: float
    rank: int
    """1 for the likeliest."""
    entropy: float
    """Of the distribution that it was chosen from, in nats."""
    others: list[tuple[str, float]]
    """The likeliest tokens and their log-probabilities."""


@dataclass(frozen=True)
class Piece:
    """What was newly written of a text, and whether it has ended with that."""

    text: int
    piece: str
    tokens: list[WrittenToken] = field(default_factory=list)
    """Those of the piece, where they were asked for."""
    new: int = 0
    """How many tokens it took."""
    end: Literal["stop", "length"] | None = None
    failure: str | None = None
    """Why it could not be written on, in a sentence."""


@dataclass
class _Text:
    """A text under way: its decoder, what stops it, and the tokens whose characters are not shown yet."""

    decoder: Any
    stop: StopStrings | None
    backward: bool
    decoded: int = 0
    shown: int = 0
    held: list[WrittenToken] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    """All of them, of a text that is written from its end."""


class ContinuousWriter:
    """A language model that writes any number of texts side by side, which begin and end independently.

    A text is the one that `LanguageModel.generate` gives for the same settings and seed, but where rounding decides.
    One thread at a time may use a writer, but for `interrupt`.
    """

    def __init__(self, model: "LanguageModel") -> None:
        self.model = model
        self._batch: Any = ContinuousBatch(model.engine()) if model.compiled and not model.adapts else StepBatch()
        self._texts: dict[int, _Text] = {}
        self._stops: dict[int, tuple[str, ...]] = {}

    @property
    def texts(self) -> int:
        """How many have not ended."""
        return len(self._texts)

    def begin(
        self,
        prompt: str = "",
        *,
        label: str | None = None,
        length: int = 200,
        samples: int = 1,
        sampling: Sampling | None = None,
        stop: str | Sequence[str] = (),
        alternatives: int | None = None,
    ) -> list[int]:
        """Begin to continue a prompt `samples` times; gives the numbers of the texts.

        With `alternatives`, pieces have their tokens, with what the model thought of each and so many of the likeliest.
        """
        model, stops = self.model, (stop,) if isinstance(stop, str) else tuple(stop)
        if samples < 1:
            raise UserError(f"the number of samples should be at least 1, not {samples}")
        backward = model.settings.direction == "backward"
        guards = [StopStrings(s[::-1] if backward else s for s in stops) if stops else None for _ in range(samples)]
        start, (ends, suppress) = model._prompt_ids(prompt), model.ending_ids()
        asked: dict[str, Any] = {"length": length, "samples": samples, "stop_ids": ends, "suppress": suppress}
        asked |= {"sampling": sampling or Sampling(), "alternatives": alternatives}
        if isinstance(self._batch, ContinuousBatch):
            first = self._batch.add(start, label=model._label_place(label), **asked)
        else:
            first = self._batch.add(model.stepper(label), start, **asked)
        for number, guard in enumerate(guards, first):
            decoder = model.tokenizer.stream()
            for token in start[1:]:  # it knows then whether a blank stands before the first new word
                decoder.push(token)
            self._texts[number], self._stops[number] = _Text(decoder, guard, backward), stops
        return list(range(first, first + samples))

    def end(self, text: int) -> None:
        """Write no more of a text; nothing happens where it has ended."""
        if self._texts.pop(text, None) is not None:
            del self._stops[text]
            self._batch.remove(text)

    def interrupt(self) -> None:
        """Let an `advance` that is under way on another thread return after its present step."""
        self._batch.interrupt()

    def advance(self, steps: int = 1) -> list[Piece]:
        """What all texts have newly, up to `steps` tokens of each, one piece a text; fewer while prompts are read."""
        new: dict[int, list[NewId]] = {}
        for one in self._batch.advance(steps):
            new.setdefault(one.text, []).append(one)
        return [self._piece(number, ids) for number, ids in new.items() if number in self._texts]

    def _piece(self, number: int, new: list[NewId]) -> Piece:
        text = self._texts[number]
        pieces, count = [], 0
        for one in new:
            if one.id is not None:
                pieces.append(self._read(text, one))
                count += 1
            if text.stop is not None and text.stop.stopped:
                break
        last, stopped = new[-1], text.stop is not None and text.stop.stopped
        end: Any = "stop" if stopped else last.end
        if end is not None or last.failure is not None:
            pieces.append(self._rest(number, text))
        piece = "".join(pieces)
        text.shown += len(piece)
        whole = (end is not None and not stopped) or not text.held
        told = [token for token in text.held if whole or token.start < text.shown]
        text.held = [token for token in text.held if not whole and token.start >= text.shown]
        if end is not None or last.failure is not None:
            self.end(number)
        return Piece(number, piece, told, count, end, None if stopped else last.failure)

    def _read(self, text: _Text, new: NewId) -> str:
        """The characters that an id adds to a text."""
        assert new.id is not None
        tokens = self.model.tokenizer.tokens
        if new.told is not None:
            others = [(tokens[id], log_prob) for id, log_prob in new.told.others]
            told = WrittenToken(
                tokens[new.id], text.decoded, new.told.log_prob, new.told.rank, new.told.entropy, others
            )
            text.held.append(told)
        if text.backward:
            text.ids.append(new.id)
            if text.stop is not None:
                text.stop.push(self.model.tokenizer.decode([new.id])[::-1])
            return ""
        piece = text.decoder.push(new.id)
        text.decoded += len(piece)
        return piece if text.stop is None else text.stop.push(piece)

    def _rest(self, number: int, text: _Text) -> str:
        """What is held back when a text ends; of one that was written from its end, all of it."""
        if text.backward:
            return self.model.backward_text(text.ids, self._stops[number])
        rest: str = text.decoder.finish()
        return rest if text.stop is None else text.stop.push(rest) + text.stop.flush()
