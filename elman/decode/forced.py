"""Scoring given sequences: forced decoding."""

from collections.abc import Sequence
from operator import index

import torch

from elman.decode.step_model import State, StepModel
from elman.errors import UserError


@torch.no_grad()
def forced_log_probs(
    model: StepModel[State], texts: Sequence[Sequence[int]], *, start_id: int, stop_id: int | None = None
) -> list[float]:
    """The log-probability of each of `texts` after `start_id`, text i in row i of the model.

    With a `stop_id` each text also has to end there. This is how another model scores what a search has found:
    the channel's log p(x | y), a language model's log p(y).

    >>> class Coin:
    ...     def start(self, batch_size): return None
    ...     def step(self, ids, state): return torch.tensor([0.25, 0.75]).log().expand(len(ids), 2), None
    ...     def select(self, state, rows): return None
    >>> [round(log_prob, 3) for log_prob in forced_log_probs(Coin(), [[1, 1], []], start_id=0, stop_id=0)]
    [-1.962, -1.386]
    """
    ending = [] if stop_id is None else [stop_id]
    wanted = [[index(id_) for id_ in (*text, *ending)] for text in texts]
    totals = torch.zeros(len(texts), dtype=torch.float64)  # B
    if not wanted:
        return []
    rows = list(range(len(wanted)))
    state, before = model.start(len(wanted)), torch.full((len(wanted),), start_id)
    for t in range(max(map(len, wanted))):
        places = [place for place, row in enumerate(rows) if len(wanted[row]) > t]
        if len(places) < len(rows):
            picked = torch.tensor(places)
            rows, state, before = [rows[place] for place in places], model.select(state, picked), before[picked]
        logits, state = model.step(before, state)  # B x V
        before = torch.tensor([wanted[row][t] for row in rows])  # B
        if not 0 <= int(before.min()) <= int(before.max()) < logits.shape[-1]:
            raise UserError(f"an id of the texts is outside the vocabulary of 0 to {logits.shape[-1] - 1}")
        log_probs = logits.to("cpu", torch.float64).log_softmax(dim=-1)  # B x V
        totals[rows] += log_probs.gather(1, before.unsqueeze(1)).squeeze(1)
    return totals.tolist()
