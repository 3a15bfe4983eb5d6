"""A beam search as one would write it down: one sentence, one hypothesis at a time. The fast one must agree."""

from typing import Any, NamedTuple

import numpy as np

from elman.decode import Beam, Hypothesis, log_softmax


class Open(NamedTuple):
    ids: list[int]
    log_prob: float
    state: Any
    attended: Any


def simple_beam_search(model: Any, row: int, start_id: int, stop_id: int, beam: Beam) -> list[Hypothesis]:
    opened = [Open([], 0.0, model.select(model.start(row + 1), np.array([row])), 0.0)]
    ended: list[Hypothesis] = []
    for step in range(1, beam.length + 1):
        continued: list[tuple[float, Open, int]] = []
        for one in opened:
            logits, state = model.step(np.array([(one.ids or [start_id])[-1]]), one.state)
            attended = one.attended + model.attention(state)[0] if beam.coverage else 0.0
            for id_, log_prob in enumerate(log_softmax(logits)[0].tolist()):
                continued.append((one.log_prob + log_prob, Open(one.ids, 0.0, state, attended), id_))
        continued = [each for each in continued if each[0] > -float("inf") and allowed(each, step, stop_id, beam)]
        continued.sort(key=lambda each: -each[0])
        opened = []
        taken = sum(each.finished for each in ended) if beam.stop_at is None else 0
        for log_prob, one, id_ in continued[: beam.size - taken]:
            score = log_prob / step**beam.length_power
            if beam.coverage:
                score += beam.coverage * float(np.log(one.attended.clip(1e-6, 1)).sum())
            if id_ == stop_id:
                ended.append(Hypothesis(one.ids, log_prob, score, True))
            elif step == beam.length:
                ended.append(Hypothesis([*one.ids, id_], log_prob, score, False))
            else:
                opened.append(Open([*one.ids, id_], log_prob, one.state, one.attended))
        if beam.stop_at is not None and sum(each.finished for each in ended) >= beam.stop_at:
            break
    return sorted(ended, key=lambda each: -each.score)[: beam.n_best]


def allowed(continued: tuple[float, Open, int], step: int, stop_id: int, beam: Beam) -> bool:
    _, one, id_ = continued
    if id_ == stop_id:
        return step >= beam.min_length
    ids, n = [*one.ids, id_], beam.block_ngrams
    grams = [tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)]
    return n == 0 or len(set(grams)) == len(grams)
