"""Backpropagation through time as the course derives it by hand, against autograd; and what truncation leaves of it.

The derivation itself is `elman.lab.bptt_numpy`, in NumPy and in the course's letters.
"""

from dataclasses import dataclass

import numpy as np
import torch
from pydantic import Field

from elman.draw.panels import HeatMap, Line, Lines, Panel, Table
from elman.errors import UserError
from elman.lab.bptt_numpy import EMBEDDING, Floats, Network, Terms, by_hand
from elman.lab.experiment import Experiment, Say
from elman.lab.networks import Spread, spread
from elman.train.recipe import Section

SHOWN = 16  # steps of the table of terms
MEMORY = 2 << 30  # bytes that the terms may take


class BpttOptions(Section):
    """What can be asked of the derivation."""

    seeds: int = Field(3, ge=1, le=100, description="So many times, with other random numbers.")
    hidden: int = Field(8, ge=1, le=256, description="Units of the network.")
    steps: int = Field(50, ge=2, le=500, description="Steps of the text.")
    truncations: tuple[int, ...] = Field((1, 5, 35), description="Gradients are cut after so many steps; repeat it.")


def by_autograd(network: Network) -> Terms:
    """The gradients of a text, term by term, by autograd: every step has weights of its own."""
    T = len(network.y)
    W_h, W_e = ([torch.tensor(W, requires_grad=True) for _ in range(T)] for W in (network.W_h, network.W_e))
    U, h = torch.tensor(network.U, requires_grad=True), torch.zeros(len(network.W_h), dtype=torch.float64)
    e, y = torch.tensor(network.e), torch.tensor(network.y)
    terms = Terms(
        np.zeros((T, *network.U.shape)), np.zeros((T, T, *network.W_h.shape)), np.zeros((T, T, *network.W_e.shape))
    )
    for t in range(T):
        h = torch.sigmoid(W_h[t] @ h + W_e[t] @ e[t])
        loss = -torch.log_softmax(U @ h, dim=0)[y[t]]
        own, *rest = torch.autograd.grad(loss, [U, *W_h[: t + 1], *W_e[: t + 1]], retain_graph=True)
        terms.U[t] = own.numpy()
        terms.W_h[t, : t + 1] = torch.stack(rest[: t + 1]).numpy()
        terms.W_e[t, : t + 1] = torch.stack(rest[t + 1 :]).numpy()
    return terms


def truncated(terms: Floats, steps: int) -> Floats:
    """The gradient where each loss goes back through so many steps at most."""
    t, p = np.indices(terms.shape[:2])
    return np.asarray(terms[(p <= t) & (t - p < steps)].sum(axis=0))


def angle(one: Floats, other: Floats) -> float:
    """Between two gradients, in degrees.

    >>> round(angle(np.array([1.0, 0.0]), np.array([1.0, 1.0])))
    45
    """
    cosine = (one * other).sum() / (np.linalg.norm(one) * np.linalg.norm(other))
    return float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))


@dataclass(frozen=True)
class Derivation:
    """What the experiment measured."""

    difference: float
    """The largest between any two numbers of the two derivations, over all terms and seeds."""
    terms: int
    """How many terms were compared."""
    sizes: list[list[float]]
    """The norm of ∂L_t/∂W_h through step p (T x T), of the first steps of the first seed."""
    angles: dict[int, Spread]
    """By truncation: between the truncated gradient of W_h and the full one, in degrees."""
    lengths: dict[int, Spread]
    """The norm of the truncated one as a share of that of the full one."""


class BpttExperiment(Experiment[Derivation]):
    """The hand-derived gradients of U, W_h and W_e."""

    name = "bptt"
    about = "the gradients that the course derives by hand against autograd, and what truncation leaves of them"
    claim = (
        "The gradient of the recurrent weights is a sum over all earlier steps, each through a product of Jacobians; "
        "truncated backpropagation computes it over a small window only, in place of longer sequences."
    )
    Options = BpttOptions

    def measure(self, options: BpttOptions, say: Say) -> Derivation:
        if min(options.truncations, default=0) < 1:
            raise UserError("the experiment 'bptt': truncations are whole numbers from 1")
        if options.steps**2 * options.hidden * max(options.hidden, EMBEDDING) * 8 * 4 > MEMORY:
            asked = f"{options.steps} steps of {options.hidden} units"
            raise UserError(
                f"the experiment 'bptt': the terms of {asked} take over 2 GB, so give fewer steps or hidden"
            )
        difference, count, sizes = 0.0, 0, list[list[float]]()
        angles: dict[int, list[float]] = {k: [] for k in options.truncations}
        lengths: dict[int, list[float]] = {k: [] for k in options.truncations}
        for seed in range(options.seeds):
            say(f"seed {seed}")
            network = Network.draw(options.hidden, options.steps, seed)
            ours, theirs = by_hand(network), by_autograd(network)
            for name in ("U", "W_h", "W_e"):
                difference = max(difference, float(np.abs(getattr(ours, name) - getattr(theirs, name)).max()))
            count += options.steps + options.steps * (options.steps + 1)
            sizes = sizes or np.linalg.norm(ours.W_h, axis=(2, 3))[:SHOWN, :SHOWN].tolist()
            full = ours.W_h.sum(axis=(0, 1))
            for k in options.truncations:
                cut = truncated(ours.W_h, k)
                angles[k].append(angle(cut, full))
                lengths[k].append(float(np.linalg.norm(cut) / np.linalg.norm(full)))
        return Derivation(
            difference,
            count,
            sizes,
            {k: spread(each) for k, each in angles.items()},
            {k: spread(each) for k, each in lengths.items()},
        )

    def verdict(self, data: Derivation) -> tuple[bool | None, str]:
        told = ", ".join(f"{one.mean:.2g} degrees after {k}" for k, one in data.angles.items())
        falling = [one.mean for _, one in sorted(data.angles.items())]
        holds = data.difference < 1e-10 and falling == sorted(falling, reverse=True)
        return holds, (
            f"{data.terms:,} terms by hand and by autograd differ by {data.difference:.1e} at most; "
            f"the truncated gradient is off by {told}."
        )

    def panels(self, data: Derivation) -> list[Panel]:
        names = [str(step + 1) for step in range(len(data.sizes))]
        largest = max(max(row) for row in data.sizes)
        cuts = sorted(data.angles)
        rows = [[str(k), str(data.angles[k]), str(data.lengths[k])] for k in cuts]
        return [
            HeatMap(
                "norm of the gradient of L_t through step p",
                data.sizes,
                [f"t = {name}" for name in names],
                [f"p = {name}" for name in names],
                high=largest,
                note="A row is a loss, a column a step that it goes back to: most of it is at the diagonal.",
            ),
            Lines(
                "the angle between the truncated gradient and the full one",
                [Line("W_h", cuts, [data.angles[k].mean for k in cuts])],
                "truncated after",
                "degrees",
            ),
            Table("truncated", ["steps", "degrees", "length, as a share"], rows),
        ]
