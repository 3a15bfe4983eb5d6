"""Gradients of a score by the vectors of the tokens: gradient x input, and integrated gradients."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from elman.inspect.attribution import Attribution
from elman.inspect.subject import Cut, Floats, Question, Subject

FEWEST, MOST = 16, 1024  # points on the way from zeros to a text
GAP = 0.01  # of what integrated gradients have to add up to
SMALLEST = 0.1  # a difference of scores below this is no more than noise to share a gap with


def gradient_input(subject: Subject, cuts: Sequence[Cut], questions: Sequence[Question]) -> list[Attribution]:
    """Gradient x input (Shrikumar et al., 2016): x · ∂ score / ∂ x, for the vector x of each token."""
    values, scores = _gradients(subject, cuts, questions, [1.0], [1.0])
    return [Attribution.of(*found) for found in zip(cuts, values, scores[:, 0].tolist(), strict=True)]


def integrated_gradients(
    subject: Subject, cuts: Sequence[Cut], questions: Sequence[Question], steps: int | None = None
) -> list[Attribution]:
    """Integrated gradients (Sundararajan et al., 2017): x · ∫ ∂ score(a x) / ∂ x da, for a from 0 to 1.

    They add up to the score less that of a text whose vectors are all zero. The integral is a sum over `steps` points
    (Gauss-Legendre); if not given, they are doubled until no more than 1 % is missing.
    """
    _, ends = _gradients(subject, cuts, questions, [0.0, 1.0], [0.0, 0.0])  # N x 2
    found: list[Attribution | None] = [None] * len(cuts)
    count, left = FEWEST if steps is None else steps, list(range(len(cuts)))
    while left:
        points, shares = np.polynomial.legendre.leggauss(count)  # from -1 to 1
        some = [cuts[number] for number in left], [questions[number] for number in left]
        values, _ = _gradients(subject, *some, (points + 1) / 2, shares / 2)
        missed = []
        for number, row in zip(left, values, strict=True):
            begin, end = ends[number].tolist()
            gap = abs(float(row.sum()) - (end - begin)) / max(abs(end - begin), SMALLEST)
            found[number] = Attribution.of(cuts[number], row, end, rest=begin, gap=gap, steps=count)
            if gap > GAP:
                missed.append(number)
        left = missed if steps is None and count < MOST else []
        count *= 2
    return [one for one in found if one is not None]


def _gradients(
    subject: Subject,
    cuts: Sequence[Cut],
    questions: Sequence[Question],
    points: Sequence[float] | Floats,
    shares: Sequence[float] | Floats,
) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
    """x · Σ_a share_a ∂ score(a x) / ∂ x for each token of each text, and the scores (N x points)."""
    import torch

    scale, share, count = np.asarray(points, np.float32), np.asarray(shares, np.float32), len(points)
    values = [np.zeros(len(cut.tokens)) for cut in cuts]
    scores = np.zeros((len(cuts), count))
    with subject.evaluating():
        for pairs, tokens in subject.batches([cut.tokens for cut in cuts for _ in range(count)]):
            texts, places = pairs // count, pairs % count
            factors = tokens.packed(np.repeat(scale[places], tokens.lengths))  # N
            with torch.no_grad():
                embedded = subject.embed(tokens)
                x = embedded.data  # N x E
                scaled = x * torch.from_numpy(factors).unsqueeze(1)
            weights = subject.stacked([questions[text].weights for text in texts], tokens).astype(np.float32)
            outputs = subject.score(embedded._replace(data=scaled.requires_grad_()))
            asked = outputs * torch.from_numpy(weights)
            (gradient,) = torch.autograd.grad(asked.sum(), scaled)
            products = tokens.unpacked((gradient * x).double().sum(1).numpy())
            summed = [float(rows.sum()) for rows in subject.rows(asked.detach().double().numpy(), tokens)]
            for text, place, product, score in zip(texts.tolist(), places.tolist(), products, summed, strict=True):
                values[text] += share[place] * product
                scores[text, place] = score
    return values, scores
