"""What comes next: the likeliest next tokens, or whole words, of a language model, with their probabilities.

model = elman.load("runs/wikitext2")
model.predict("the students opened their", top=3)     # [NextToken(token='own', probability=0.0931), ...]
"""

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from elman.decode.scores import log_softmax
from elman.errors import UserError
from elman.records.records import Record, RecordReader
from elman.tasks.predict import PredictOptions, read_texts
from elman.tasks.sections import column
from elman.train.recipe import Count, Section

if TYPE_CHECKING:
    from elman.tasks.language import LanguageModel

Floats = NDArray[np.float64]

TOKENS = 65536  # read side by side, at most
VISITED = 2000  # beginnings of words that are looked at before a search for words is given up
TOGETHER = 16  # of them at a time


class NextOptions(Section):
    """What `elman predict` can be asked of a language model."""

    top: Count = Field(10, ge=1, description="So many of the likeliest next tokens.")
    label: str | None = Field(None, description="What the text is, for models trained with labels.")
    words: bool = Field(False, description="Whole next words in place of tokens, for sub-words, characters and bytes.")


@dataclass(frozen=True)
class NextToken:
    """What may come next, and how likely it is."""

    token: str
    probability: float


class PromptReader(RecordReader):
    """Reads texts to be gone on from: a blank at the end of one is a part of it."""

    strips = False


def read_prompts(model: "LanguageModel", lines: Iterable[str], options: PredictOptions) -> Iterator[Record]:
    """The texts in some lines; that words are unknown is told once."""
    told, data = False, model._data()
    for record in read_texts(PromptReader(text=column(data.text_column)), lines, options):
        unknown = [] if told else model.tokenizer.unknown(record.text)
        if unknown:
            told = True
            options.say(
                f"warning: {record.where} has what the model never saw in training, {unknown[0]!r} for one: "
                "it reads such as <unk>"
            )
        yield record


def next_tokens(model: "LanguageModel", texts: Sequence[str], *, top: int, label: str | None) -> list[list[NextToken]]:
    """For each text the `top` likeliest next tokens, the likeliest first; equals in the order of their ids."""
    found = []
    for log_probs in next_log_probs(model, [model.read_ids(text) for text in texts], label):
        order = np.argsort(-log_probs, kind="stable")[:top].tolist()
        found.append([NextToken(model.tokenizer.tokens[id], math.exp(log_probs[id])) for id in order])
    return found


def next_log_probs(model: "LanguageModel", prompts: Sequence[Sequence[int]], label: str | None) -> list[Floats]:
    """The log-probability of every token (V) after each of some prompts, of which none is empty."""
    if model.ngrams is not None:
        model._label_place(label)  # it has none, which is told
        return [np.log(model.ngrams.distribution(_after_start(model, prompt))) for prompt in prompts]
    found: list[Any] = [None] * len(prompts)
    for rows in _alike([len(prompt) for prompt in prompts]):
        together = np.array([prompts[row] for row in rows])  # B x T
        for row, log_probs in zip(rows, log_softmax(_read(model, together, label).astype(np.float64)), strict=True):
            found[row] = log_probs
    return found


def _after_start(model: "LanguageModel", prompt: Sequence[int]) -> list[int]:
    """A prompt without the start, which n-grams put before a text by themselves."""
    assert model.ngrams is not None
    return [int(id) for id in (prompt[1:] if prompt[0] == model.ngrams.start else prompt)]


def _alike(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The places of prompts that are read as one batch: of one length, and not too many."""
    groups: dict[int, list[int]] = {}
    for row, length in enumerate(lengths):
        groups.setdefault(length, []).append(row)
    for length, rows in groups.items():
        size = max(1, TOKENS // length)
        yield from (rows[first : first + size] for first in range(0, len(rows), size))


def _read(model: "LanguageModel", ids: NDArray[np.int64], label: str | None) -> NDArray[np.float32]:
    """The log-probabilities of the next token (B x V) after some prompts of one length (B x T)."""
    if model.adapts:  # what it remembers counts too
        steps = model.stepper(label)
        state = steps.start(len(ids))
        for column in ids.T:
            logits, state = steps.step(np.ascontiguousarray(column), state)
        return logits
    place = model._label_place(label)
    if model.compiled:
        engine, labels = model.engine(), None if place is None else [place] * len(ids)
        state = engine.start(len(ids))
        if ids.shape[1] > 1:
            _, state = engine.log_probs(ids[:, :-1], ids[:, 1:], state, labels)
        return engine.step(ids[:, -1], state, labels)[0]
    import torch

    with torch.no_grad(), model.evaluating() as network:
        told = None if place is None else torch.full((len(ids),), place)
        hidden, _ = network.hidden(torch.from_numpy(ids), labels=told)  # B x T x H
        found: NDArray[np.float32] = network.softmax.log_probs(hidden[:, -1]).numpy()  # B x V
    return found


# Words of several tokens


def next_words(model: "LanguageModel", texts: Sequence[str], *, top: int, label: str | None) -> list[list[NextToken]]:
    """For each text the `top` likeliest next words, what stands up to the next blank or the end, likeliest first.

    A word's probability is that of its tokens and of a blank, or the end, behind them, given that a new word begins:
    behind a text that does not end in a blank, there comes one. Beginnings of words are gone on from in the order of
    their probability, which only falls, so that no likelier word is missed; there are fewer than `top` where more than
    VISITED beginnings would have to be looked at.
    """
    if model.tokenizer.settings.kind == "words":
        raise UserError("the model's tokens are words already: leave words out")
    if model.settings.direction == "backward":
        raise UserError("whole words are looked for by models that read forwards: leave words out")
    search = _WordSearch(model, label)
    return [search.likeliest(text, top) for text in texts]


class _Beginning(NamedTuple):
    """The beginning of a word, or, where it is `whole`, a word; of siblings only the likeliest waits."""

    cost: float
    number: int
    ids: list[int]
    whole: bool
    siblings: "_Siblings | None" = None


class _Siblings(NamedTuple):
    """All that may follow one beginning, the likeliest first."""

    cost: float
    before: list[int]
    ids: NDArray[np.int64]
    log_probs: Floats
    rank: int

    def waiting(self, number: int) -> _Beginning:
        cost = self.cost - float(self.log_probs[self.rank])
        return _Beginning(cost, number, [*self.before, int(self.ids[self.rank])], False, self)

    def next(self) -> "_Siblings | None":
        return self._replace(rank=self.rank + 1) if self.rank + 1 < len(self.ids) else None


class _WordSearch:
    """Words in the order of their probability."""

    def __init__(self, model: "LanguageModel", label: str | None) -> None:
        self.model, self.label = model, label
        tokenizer = model.tokenizer
        texts = [tokenizer.decode([id]) for id in range(tokenizer.size)]
        special = np.isin(np.arange(tokenizer.size), [tokenizer.eos_id, tokenizer.unk_id])  # V
        self.blank = np.array([bool(text) and text.isspace() for text in texts])  # V; blanks only
        self.parts = np.array([text[:1].isspace() for text in texts])  # V; begins with a blank
        self.ends = self.parts | (np.arange(tokenizer.size) == tokenizer.eos_id)  # V
        self.written = ~special & np.array([bool(text) for text in texts])  # V

    def likeliest(self, text: str, top: int) -> list[NextToken]:
        """The likeliest next words of a text."""
        prompt, numbers = self.model.read_ids(text), count()
        parted = not text or text[-1].isspace()
        waiting, found, visited = [_Beginning(0.0, next(numbers), [], False)], dict[str, float](), 0
        while waiting and len(found) < top and visited <= VISITED:
            if waiting[0].whole:
                one = heapq.heappop(waiting)
                found.setdefault(self.model.tokenizer.decode(one.ids).strip(), math.exp(-one.cost))
                continue
            beginnings: list[_Beginning] = []
            while waiting and len(beginnings) < TOGETHER and not waiting[0].whole:
                beginnings.append(one := heapq.heappop(waiting))
                if one.siblings is not None and (others := one.siblings.next()) is not None:
                    heapq.heappush(waiting, others.waiting(next(numbers)))
            visited += len(beginnings)
            several = next_log_probs(self.model, [[*prompt, *one.ids] for one in beginnings], self.label)
            for one, log_probs in zip(beginnings, several, strict=True):
                self._go_on(one, log_probs, parted, waiting, numbers)
        return [NextToken(word, probability) for word, probability in found.items()]

    def _go_on(
        self, one: _Beginning, log_probs: Floats, parted: bool, waiting: list[_Beginning], numbers: Iterator[int]
    ) -> None:
        """What may follow a beginning: the end of the word where it has begun, and the rest of it."""
        if any(not self.blank[id] for id in one.ids):
            whole = one.cost - float(np.logaddexp.reduce(log_probs[self.ends]))
            heapq.heappush(waiting, _Beginning(whole, next(numbers), one.ids, True))
            allowed = self.written & ~self.ends
        else:
            allowed = self.written if one.ids or parted else self.written & self.parts
        ids = np.flatnonzero(allowed)
        if not len(ids):
            return
        follows = log_probs[ids]
        if not one.ids:  # given that a word begins
            follows = follows - np.logaddexp.reduce(follows)
        order = np.argsort(-follows, kind="stable")
        heapq.heappush(waiting, _Siblings(one.cost, one.ids, ids[order], follows[order], 0).waiting(next(numbers)))


# Lines of `elman predict`


def written_next(record: Record, answer: Sequence[NextToken], options: PredictOptions) -> Iterator[str]:
    """A line for each token: the number of the record's line, the probability, the token; of one token, these two."""
    if options.as_json:
        shown = [{"token": one.token, "probability": round(one.probability, 6)} for one in answer]
        yield options.to_json(record.where, record.fields, {"text": record.text, "next": shown})
    elif options.asked.get("top") == 1:
        yield from (f"{_on_one_line(one.token)}\t{one.probability:.4f}" for one in answer)
    else:
        assert record.where is not None
        for one in answer:
            yield f"{record.where.line}\t{one.probability:.4f}\t{_on_one_line(one.token)}"


def _on_one_line(token: str) -> str:
    """A token with its line ends and tabs spelled.

    >>> _on_one_line("a\\n")
    'a\\\\n'
    """
    return token.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
