"""`/v1/completions`, as OpenAI's clients speak it, from whole answers to event streams."""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, Request, Response

from elman.decode import Sampling, fresh_seed
from elman.serve.answering import (
    EventStream,
    Gone,
    as_list,
    aside,
    check_most,
    event,
    service_of,
    to_json,
    unless_gone,
)
from elman.serve.errors import Refused, refusal_of
from elman.serve.generation import Generator, Prompt, Stream
from elman.serve.limits import Limits
from elman.serve.route import JsonRoute
from elman.serve.schemas import ERRORS, Completion, CompletionRequest
from elman.serve.shelf import Served
from elman.tasks.continuous import Piece, WrittenToken

router = APIRouter(responses=ERRORS, route_class=JsonRoute)
EVENT = {
    "type": "object",
    "description": "One event; its data is a completion in JSON with what is new of it, that of the last event [DONE].",
    "properties": {"data": {"type": "string"}},
    "required": ["data"],
}
"""What a document of OpenAPI before 3.2 says of an event stream."""


@router.post(
    "/v1/completions",
    response_model=Completion,
    responses={200: {"content": {"text/event-stream": {"schema": EVENT}}}},
)
async def completions(request: Request, body: CompletionRequest) -> Response:
    """Continue a prompt: whole, or as server-sent events that end in [DONE]."""
    service = service_of(request)
    served = service.shelf.find(body.model, "lm")
    writing = Writing(served, body, service.limits)
    if body.echo and body.logprobs is not None:
        await unless_gone(request, writing.score_prompts())
    stream = writing.open()
    if not body.stream:
        try:
            whole = await unless_gone(request, writing.whole(stream))
            return Response(await aside(writing.size, lambda: to_json(whole)), media_type="application/json")
        finally:
            writing.leave()
    try:
        await unless_gone(request, stream.begins())
    except BaseException:
        writing.leave()
        raise
    return EventStream(request, writing.events(stream), writing.leave)


@router.post("/v1/chat/completions", include_in_schema=False)
async def chat(request: Request) -> Response:
    """Say that there is no chat."""
    raise Refused(
        404, "chat is not offered: these models continue texts, so send a prompt to /v1/completions", code="no_chat"
    )


@dataclass
class _Choice:
    """A text under way."""

    index: int
    prompt: str
    text: list[str] = field(default_factory=list)
    tokens: list[dict[str, Any]] = field(default_factory=list)
    written: int = 0
    reason: str | None = None


class Writing:
    """A request for completions: what it asks for, and what has come of it."""

    def __init__(self, served: Served, body: CompletionRequest, limits: Limits) -> None:
        self.served, self.body, self.limits = served, body, limits
        self.prompts = as_list(body.prompt)
        self.stops = () if body.stop is None else tuple(as_list(body.stop))
        self._check()
        self.seed = fresh_seed() if body.seed is None else body.seed
        self.id, self.created = f"cmpl-{secrets.token_hex(12)}", int(time.time())
        self.choices = [_Choice(i, self.prompts[i // body.n]) for i in range(len(self.prompts) * body.n)]
        self.backward = served.model.settings.direction == "backward"
        self.until = time.monotonic() + limits.max_seconds
        self._stream: Stream | None = None
        if body.echo:
            for choice in self.choices:
                choice.text.append("" if self.backward else choice.prompt)

    def _check(self) -> None:
        body, limits = self.body, self.limits
        check_most(body.n, limits.max_n, "n")
        check_most(body.max_tokens, limits.max_tokens, "max_tokens")
        if not self.prompts:
            raise Refused(400, "there is no prompt: give at least one", param="prompt")
        check_most(len(self.prompts), limits.max_texts, "prompt")
        longest = max(map(len, self.prompts))
        if longest > limits.max_characters:
            sentence = f"a prompt has {longest:,} characters: give at most {limits.max_characters:,}"
            raise Refused(400, sentence, param="prompt")
        if body.best_of not in (None, body.n):
            raise Refused(400, "'best_of' is not offered: leave it out, or give as many as 'n'", param="best_of")
        if not all(self.stops):
            raise Refused(400, "a stop text must have at least one character: leave the empty one out", param="stop")

    @property
    def generator(self) -> Generator:
        """What writes."""
        return self.served.generator

    def open(self) -> Stream:
        """Begin to write."""
        body = self.body
        sampling = Sampling(body.temperature, body.top_k, body.top_p, body.repetition_penalty, self.seed)
        if not body.max_tokens:
            for choice in self.choices:
                choice.reason = "length"
            return Stream([], asyncio.get_running_loop(), 0, begun=True)
        prompts = [
            Prompt(prompt, body.n, body.max_tokens, sampling, self.stops, body.label, body.logprobs)
            for prompt in self.prompts
        ]
        self._stream = self.generator.open(prompts)
        return self._stream

    def leave(self) -> None:
        """Nobody waits any more, or all is done."""
        if self._stream is not None:
            self.generator.end(self._stream)
            self._stream.deliver([], Refused(499, "the client has gone"))

    @property
    def size(self) -> int:
        """About how many characters the whole answer has."""
        each = 10 * (1 + 4 * (self.body.logprobs or 0))
        return sum(len(choice.prompt) * self.body.echo + choice.written * each for choice in self.choices)

    # What the model thought of the prompts

    async def score_prompts(self) -> None:
        """Put the tokens of the prompts before those that are written."""
        prompts, label = self.prompts, self.body.label
        work = _ranks_of(self.served.model, label)
        found = await self.served.batcher.submit(("ranks", label), prompts, work)
        for choice in self.choices:
            offset = 0
            for one in found[choice.index // self.body.n]:
                others = [(each.token, each.probability) for each in one.alternatives]
                choice.tokens.append(_prompt_token(one, others[: self.body.logprobs], offset))
                offset += len(one.token)

    # Answers

    async def whole(self, stream: Stream) -> dict[str, Any]:
        """The answer, when all texts have ended."""
        await stream.begins()
        async for index, piece, reason in self._pieces(stream):
            self._add(self.choices[index], piece, reason)
        return {**self._head(), "choices": [self._written(choice) for choice in self.choices], "usage": self._usage()}

    async def events(self, stream: Stream) -> AsyncGenerator[bytes, None]:
        """The answer in pieces."""
        head = self._head() | ({"usage": None} if self._tells_usage else {})
        if self.body.echo:
            for choice in self.choices:
                yield event({**head, "choices": [self._written(choice)]})
                choice.text, choice.tokens = [], []
        try:
            async for index, piece, reason in self._pieces(stream):
                choice = self.choices[index]
                self._add(choice, piece, reason)
                yield event({**head, "choices": [self._written(choice)]})
                choice.text, choice.tokens = [], []
        except Refused as error:
            if error.status_code == 499:
                raise Gone from None
            yield event(refusal_of(error).body())
        if self._tells_usage:
            yield event({**head, "choices": [], "usage": self._usage()})
        yield b"data: [DONE]\n\n"

    @property
    def _tells_usage(self) -> bool:
        return self.body.stream_options is not None and self.body.stream_options.include_usage

    async def _pieces(self, stream: Stream) -> AsyncIterator[tuple[int, Piece | None, str | None]]:
        """What is new of each text, and why it ends where it does; when the time is over all of them end."""
        left = {choice.index for choice in self.choices if choice.reason is None}
        while left:
            try:
                async with asyncio.timeout(self.until - time.monotonic()):
                    new = await stream.next()
            except TimeoutError:
                for index in sorted(left):
                    yield index, None, "length"
                return
            for index, piece in new:
                if piece.failure is not None:
                    raise Refused(400, piece.failure)
                if piece.end is not None:
                    left.discard(index)
                if piece.piece or piece.tokens or piece.end is not None:
                    yield index, piece, piece.end
                else:
                    self.choices[index].written += piece.new

    def _add(self, choice: _Choice, piece: Piece | None, reason: str | None) -> None:
        choice.reason = reason
        if piece is not None:
            choice.text.append(piece.piece)
            choice.written += piece.new
            offset = len(choice.prompt) if self.body.echo and not self.backward else 0
            choice.tokens += [_token(token, offset) for token in piece.tokens]
        if reason is not None and self.body.echo and self.backward:
            choice.text.append(choice.prompt)

    def _head(self) -> dict[str, Any]:
        head = {"id": self.id, "object": "text_completion", "created": self.created, "model": self.served.name}
        return {**head, "system_fingerprint": self.served.fingerprint, "seed": self.seed}

    def _written(self, choice: _Choice) -> dict[str, Any]:
        told = None if self.body.logprobs is None else _columns(choice.tokens)
        shown = {"index": choice.index, "text": "".join(choice.text), "finish_reason": choice.reason}
        return {**shown, "logprobs": told}

    def _usage(self) -> dict[str, int]:
        read = sum(len(self.served.model.tokenizer.encode(prompt)) for prompt in self.prompts)
        written = sum(choice.written for choice in self.choices)
        return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


KEYS = ("tokens", "token_logprobs", "top_logprobs", "text_offset", "ranks", "entropies")


def _columns(tokens: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {key: [token[key] for token in tokens] for key in KEYS}


def _token(token: WrittenToken, offset: int) -> dict[str, Any]:
    rounded = {name: round(log_prob, 6) for name, log_prob in token.others}
    values = (token.token, round(token.log_prob, 6), rounded, offset + token.start, token.rank, round(token.entropy, 6))
    return dict(zip(KEYS, values, strict=True))


def _prompt_token(token: Any, others: list[tuple[str, float]], offset: int) -> dict[str, Any]:
    from math import log

    near = {name: round(log(probability), 6) for name, probability in others if probability > 0}
    values = (token.token, round(token.log_prob, 6), near, offset, token.rank, round(token.entropy, 6))
    return dict(zip(KEYS, values, strict=True))


def _ranks_of(model: Any, label: str | None) -> Any:
    def work(prompts: list[str]) -> list[Any]:
        from elman.inspect.ranks import ranks

        return [ranks(model, prompt, label).tokens if prompt else [] for prompt in prompts]

    return work
