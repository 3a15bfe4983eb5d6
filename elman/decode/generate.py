"""Continuing prompts, all of them as one batch, and handing the new ids out as they come.

Rows need not be in step with one another: while one still reads its prompt, another with a shorter one
already writes. So nothing is padded, and a row's ids are those that it would have got alone.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import count
from operator import index

import numpy as np

from elman.decode.sampling import next_ids, uniform
from elman.decode.scores import Bools, Floats, Logits
from elman.decode.step_model import State, StepModel
from elman.errors import UserError
from elman.sampling import Sampling, fresh_seed


def generate(
    model: StepModel[State],
    prompts: Sequence[Sequence[int]],
    *,
    length: int,
    sampling: Sampling,
    stop_ids: Collection[int] = (),
    suppress: Collection[int] = (),
    start_id: int | None = None,
    first_stream: int = 0,
    stop_when: Callable[[int], bool] | None = None,
    same_start: bool = True,
) -> Iterator[dict[int, int]]:
    """Continue each of `prompts` by up to `length` ids; yield the rows' new ids, step by step, as {row: id}.

    A row ends before an id of `stop_ids`, which is not handed out; after `length` ids; or once
    `stop_when(row)`, asked after each of the row's ids was handed out, is true. Rows that have ended cost
    nothing more. Row i takes its random numbers from the stream `first_stream + i`. An empty prompt begins with
    `start_id`. `same_start` is False for a model whose rows are different sentences, as a translator's are:
    prompt i then continues row i.

    >>> class Count:  # the likeliest id after n is n + 1
    ...     def start(self, batch_size): return None
    ...     def step(self, ids, state): return np.roll(np.eye(9), 1, axis=1)[ids], None
    ...     def select(self, state, rows): return None
    >>> greedy = Sampling(temperature=0)
    >>> list(generate(Count(), [[1], [3, 4, 5]], length=3, sampling=greedy, stop_ids={8}))
    [{0: 2}, {0: 3}, {0: 4, 1: 6}, {1: 7}]
    """
    length, first_stream = index(length), index(first_stream)  # a fraction would never be reached
    stops = frozenset(map(index, stop_ids))
    if length < 0:
        raise UserError(f"length must be the number of ids to generate, 0 or more, not {length}")
    if first_stream < 0:
        raise UserError(f"first_stream must be 0 or more, not {first_stream}")
    texts = [_checked(prompt, row, start_id) for row, prompt in enumerate(prompts)]
    if not texts or length == 0:
        return iter(())
    sampler = _Sampler(sampling, texts, suppress, first_stream)
    shared = _shared_length(texts) if same_start else 0
    return _steps(model, texts, shared, length, sampler, stops, stop_when or (lambda row: False))


def _steps(
    model: StepModel[State],
    prompts: list[list[int]],
    shared: int,
    length: int,
    sampler: "_Sampler",
    stop_ids: frozenset[int],
    stop_when: Callable[[int], bool],
) -> Iterator[dict[int, int]]:
    texts = [list(prompt) for prompt in prompts]
    state = _read_shared(model, prompts[0][:shared], len(prompts))
    rows = list(range(len(prompts)))  # those that have not ended, in the order of the state
    for t in count(shared):
        logits, state = model.step(np.array([texts[row][t] for row in rows]), state)  # B x V
        writing = [place for place, row in enumerate(rows) if len(texts[row]) == t + 1]
        chosen = sampler.choose(logits[writing], [rows[place] for place in writing], t + 1) if writing else {}
        for row, new in chosen.items():
            texts[row].append(new)
        ended = {row for row, new in chosen.items() if new in stop_ids}
        shown = {row: new for row, new in chosen.items() if row not in ended}
        if shown:
            yield shown
        ended.update(row for row in shown if len(texts[row]) - len(prompts[row]) == length or stop_when(row))
        if ended:
            places = [place for place, row in enumerate(rows) if row not in ended]
            if not places:
                return
            rows = [rows[place] for place in places]
            state = model.select(state, np.array(places))


class _Sampler:
    """Chooses new ids for some of the rows, and remembers what each row has seen where there is a penalty."""

    def __init__(
        self, sampling: Sampling, prompts: list[list[int]], suppress: Collection[int], first_stream: int
    ) -> None:
        self.sampling = sampling
        self.seed = fresh_seed() if sampling.seed is None else sampling.seed
        self.prompts = prompts
        self.suppress = suppress
        self.first_stream = first_stream
        self.seen: Bools | None = None  # B x V

    def choose(self, logits: Logits, rows: list[int], read: int) -> dict[int, int]:
        """The new id of each of `rows`, which have all read `read` ids, from their logits (B x V)."""
        seen = self._seen(logits.shape[-1]) if self.sampling.repetition_penalty != 1 else None
        own = None if seen is None else seen[rows]
        ids = next_ids(logits, self.sampling, own, self._uniforms(rows, read), self.suppress)
        if seen is not None:
            seen[rows, ids] = True
        return dict(zip(rows, ids.tolist(), strict=True))

    def _uniforms(self, rows: list[int], read: int) -> Floats:
        streams = [self.first_stream + row for row in rows]
        steps = [read - len(self.prompts[row]) for row in rows]
        return uniform(self.seed, streams, steps)  # B

    def _seen(self, size: int) -> Bools:
        if self.seen is None:
            self.seen = np.zeros((len(self.prompts), size), bool)  # B x V
            for row, prompt in enumerate(self.prompts):
                self.seen[row, prompt] = True
        return self.seen


def _checked(prompt: Sequence[int], row: int, start_id: int | None) -> list[int]:
    """A prompt as a list of ids, the start id in the place of an empty one."""
    if prompt:
        return [index(id_) for id_ in prompt]
    if start_id is None:
        raise UserError(f"prompt {row + 1} is empty and the model has no id to start from: give it a prompt")
    return [start_id]


def _shared_length(prompts: list[list[int]]) -> int:
    """How many ids all prompts begin with, short of any prompt's last, which is read row by row."""
    most = min(map(len, prompts)) - 1
    return next((t for t in range(most) if len({prompt[t] for prompt in prompts}) > 1), most)


def _read_shared(model: StepModel[State], ids: list[int], batch_size: int) -> State:
    """The state of all rows after what they have in common, which is read once: many samples, one prompt."""
    if not ids:
        return model.start(batch_size)
    state = model.start(1)
    for new in ids:
        _, state = model.step(np.array([new]), state)
    return model.select(state, np.zeros(batch_size, np.int64))
