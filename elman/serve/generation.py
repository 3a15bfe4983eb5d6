"""Texts that a language model writes for many requests at once: one batch, which each joins and leaves between two
tokens."""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from elman.decode import Sampling
from elman.serve.batcher import full
from elman.serve.errors import Refused, refusal_of
from elman.serve.limits import Limits
from elman.serve.metrics import Metrics
from elman.tasks.continuous import ContinuousWriter, Piece
from elman.tasks.language import LanguageModel

log = logging.getLogger("elman.serve")

LONGEST_CALL = 0.01
"""Seconds of computing between two looks at what has come in; a request that comes in cuts it short."""
MOST_STEPS = 64


@dataclass(frozen=True)
class Prompt:
    """A text to be continued, and how."""

    text: str
    samples: int
    length: int
    sampling: Sampling
    stop: tuple[str, ...] = ()
    label: str | None = None
    alternatives: int | None = None


@dataclass(eq=False)
class Stream:
    """The texts of one request: `next()` gives what is new, until `open` is 0."""

    prompts: list[Prompt]
    loop: asyncio.AbstractEventLoop
    open: int
    """Texts that have not ended."""
    since: float = field(default_factory=time.perf_counter)
    begun: bool = False
    places: dict[int, int] = field(default_factory=dict)
    """The place of each text in the request, by its number in the batch; of the thread."""
    _new: deque[tuple[int, Piece]] = field(default_factory=deque)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _failure: Refused | None = None
    last: float = 0.0
    """When its last token came."""

    async def begins(self) -> None:
        """Returns once the prompts are taken; a mistake in one of them is raised."""
        while not self.begun and self._failure is None:
            await self._changed.wait()
            self._changed.clear()
        if self._failure is not None:
            raise self._failure

    async def next(self) -> list[tuple[int, Piece]]:
        """The pieces that have come since the last call, each with the place of its text; waits for one at least."""
        while not self._new:
            if self._failure is not None:
                raise self._failure
            await self._changed.wait()
            self._changed.clear()
        new = list(self._new)
        self._new.clear()
        return new

    def deliver(self, new: list[tuple[int, Piece]], failure: Refused | None) -> None:
        """Hand over what was made; on the event loop."""
        self.begun = True
        self._new.extend(new)
        self._failure = failure or self._failure
        self._changed.set()


class Generator:
    """Writes in a thread of its own; every text that is taken on is a row of the batch from the next token on."""

    def __init__(self, name: str, model: LanguageModel, limits: Limits, metrics: Metrics) -> None:
        self.name, self.model, self.limits, self.metrics = name, model, limits, metrics
        self.rows = 0
        """Texts that are taken on and have not ended; counted on the event loop."""
        self._writer = ContinuousWriter(model)
        self._owners: dict[int, Stream] = {}
        self._inbox: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._steps, self._closing = 1, False
        self._thread: threading.Thread | None = None
        self._begins_or_ends = threading.Lock()

    # On the event loop

    def open(self, prompts: list[Prompt]) -> Stream:
        """Begin to write; refused at once where there is no room."""
        count = sum(prompt.samples for prompt in prompts)
        if self.rows + count > self.limits.max_streams:
            raise full(self.metrics, f"{self.name!r} is writing {self.rows} texts, and has no room for {count} more")
        self._count(count)
        stream = Stream(prompts, asyncio.get_running_loop(), count)
        self._send(lambda: self._begin(stream))
        return stream

    def end(self, stream: Stream) -> None:
        """Write no more for a request: its rows are free from the next token on."""
        if stream.open:
            self._count(-stream.open)
            stream.open = 0
            self._send(lambda: self._forget(stream))

    def close(self) -> None:
        """End the thread once no text is written any more; a request that comes later is written all the same."""
        self._inbox.put(None)

    def join(self, seconds: float) -> None:
        """Wait for the end of the thread, so long."""
        if (thread := self._thread) is not None:
            thread.join(seconds)

    def _count(self, more: int) -> None:
        self.rows += more
        self.metrics.streams.labels(self.name).set(self.rows)

    def _send(self, message: Callable[[], None]) -> None:
        with self._begins_or_ends:
            self._inbox.put(message)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"texts of {self.name}", daemon=True)
                self._thread.start()
        self._writer.interrupt()

    # In the thread

    def _run(self) -> None:
        while self._listen():
            try:
                start = time.perf_counter()
                pieces = self._writer.advance(self._steps)
                took = time.perf_counter() - start
            except Exception as error:
                self._fail(error)
                continue
            quick = took < LONGEST_CALL / 2
            self._steps = min(2 * self._steps, MOST_STEPS) if quick else max(1, self._steps // 2)
            self._hand_out(pieces)

    def _listen(self) -> bool:
        """Do what was asked meanwhile, or wait where there is nothing to write; False when all is over."""
        while True:
            idle = not self._writer.texts
            if idle and self._closing and self._ends():
                return False
            try:
                message = self._inbox.get(block=idle)
            except Empty:
                return True
            if message is None:
                self._closing = True
            else:
                message()

    def _ends(self) -> bool:
        with self._begins_or_ends:
            if self._inbox.empty():
                self._thread = None
            return self._thread is None

    def _begin(self, stream: Stream) -> None:
        place, self._steps = 0, 1  # so that its first token is not held back by those of others
        try:
            for prompt in stream.prompts:
                numbers = self._writer.begin(
                    prompt.text,
                    label=prompt.label,
                    length=prompt.length,
                    samples=prompt.samples,
                    sampling=prompt.sampling,
                    stop=prompt.stop,
                    alternatives=prompt.alternatives,
                )
                for number in numbers:
                    stream.places[number], self._owners[number] = place, stream
                    place += 1
        except Exception as error:
            self._forget(stream)
            self._deliver([(stream, [], self._refusal(error))])
        else:
            self._deliver([(stream, [], None)])

    def _forget(self, stream: Stream) -> None:
        for number in stream.places:
            if self._owners.pop(number, None) is not None:
                self._writer.end(number)
        stream.places.clear()

    def _hand_out(self, pieces: list[Piece]) -> None:
        new: dict[int, tuple[Stream, list[tuple[int, Piece]]]] = {}
        for piece in pieces:
            stream = self._owners[piece.text]
            new.setdefault(id(stream), (stream, []))[1].append((stream.places[piece.text], piece))
            if piece.end is not None or piece.failure is not None:
                del self._owners[piece.text], stream.places[piece.text]
        self._deliver([(stream, several, None) for stream, several in new.values()])

    def _fail(self, error: Exception) -> None:
        """Something is wrong with all texts: they are given up, and a new batch is begun."""
        refused, streams = self._refusal(error), {id(one): one for one in self._owners.values()}
        self._owners.clear()
        self._writer = ContinuousWriter(self.model)
        self._deliver([(stream, [], refused) for stream in streams.values()])

    def _refusal(self, error: Exception) -> Refused:
        refused = refusal_of(error)
        if refused.status_code >= 500:
            log.exception("%s failed", self.name, exc_info=error)
        return refused

    def _deliver(self, new: list[tuple[Stream, list[tuple[int, Piece]], Refused | None]]) -> None:
        loops: dict[int, list[Any]] = {}
        for one in new:
            loops.setdefault(id(one[0].loop), []).append(one)
        for several in loops.values():
            try:
                several[0][0].loop.call_soon_threadsafe(self._take, several)
            except RuntimeError:  # the loop is closed: nobody waits
                continue

    # On the event loop again

    def _take(self, new: list[tuple[Stream, list[tuple[int, Piece]], Refused | None]]) -> None:
        now = time.perf_counter()
        for stream, pieces, failure in new:
            if failure is not None:
                self._count(-stream.open)
                stream.open = 0
            elif stream.open:  # else nobody wants to know
                self._measure(stream, pieces, now)
                ended = sum(piece.end is not None or piece.failure is not None for _, piece in pieces)
                self._count(-ended)
                stream.open -= ended
            stream.deliver(pieces, failure)

    def _measure(self, stream: Stream, pieces: list[tuple[int, Piece]], now: float) -> None:
        if not pieces:
            return
        self.metrics.tokens.labels(self.name).inc(sum(piece.new for _, piece in pieces))
        if stream.last:
            steps = max(1, *(piece.new for _, piece in pieces))
            self.metrics.between_tokens.labels(self.name).observe((now - stream.last) / steps)
        else:
            self.metrics.first_token.labels(self.name).observe(now - stream.since)
        stream.last = now
