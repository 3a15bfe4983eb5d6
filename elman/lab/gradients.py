"""How far an error reaches back: the gradient at every step before it, in each cell, before and after training."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from elman.draw.panels import Column as PageColumn
from elman.draw.panels import Line, Lines, Page, Panel, Table
from elman.lab.experiment import Experiment, Say
from elman.lab.networks import CellOptions, LabNetwork, Spread, fit, means, name_of, set_weights, spread
from elman.nn.cells import Cell, ElmanCell
from elman.nn.recurrent import Recurrent, cells_of

REACHED = 0.01  # of the gradient at the error's own step: beyond that an error does not reach
FRAMES = 12


class GradientOptions(CellOptions):
    """What can be asked of the gradients."""

    steps: int = Field(128, ge=8, le=2000, description="The error is injected at this step, and at no other.")
    weights: Literal["normal", "uniform", "orthogonal"] = Field(
        "normal", description="normal (with 0.1), uniform (as PyTorch draws them) or orthogonal."
    )
    forget_bias: float = Field(1.0, ge=-100, le=100, description="Of an LSTM's forget gate, at the beginning.")
    updates: int = Field(60, ge=0, le=100_000, description="Of training, before the second measurement.")


@dataclass(frozen=True)
class GradientCurve:
    """The gradients of one cell."""

    cell: str
    norms: list[list[float]]
    """At each step (T), as a share of that at the error's own step, for each seed, before training."""
    trained: list[list[float]]
    """After training."""
    bound: list[float]
    """Of a plain network with tanh: the largest singular value of its recurrent matrix to the power of the distance."""
    film: list[list[float]]
    """Of the first seed, at moments of training."""

    def reach(self, trained: bool = False) -> list[int]:
        """Steps back until less than 1 % is left, for each seed."""
        return [reach(curve) for curve in (self.trained if trained else self.norms)]


@dataclass(frozen=True)
class Product:
    """The gradient that a plain ReLU network multiplies through T steps."""

    singular_value: float
    """The largest of its recurrent matrix."""
    norms: list[float]
    """From the last step to the first."""


@dataclass(frozen=True)
class Descent:
    """Gradient descent on a loss with a cliff."""

    clipping: str
    losses: list[float]
    furthest: float
    """The largest move of a parameter in a single update."""


@dataclass(frozen=True)
class Gradients:
    """What the experiment measured."""

    steps: int
    curves: list[GradientCurve]
    products: list[Product]
    descents: list[Descent]


def reach(norms: Sequence[float], share: float = REACHED) -> int:
    """Steps back from the last until less than a share of its gradient is left.

    >>> reach([0.001, 0.02, 0.5, 1.0])
    2
    """
    back = 0
    for norm in reversed(norms[:-1]):
        if norm < share:
            break
        back += 1
    return back


def steps_told(reached: Spread, steps: int) -> str:
    """Steps until 1 % is left, over the seeds; that it is more where there are no more steps.

    >>> steps_told(spread([7, 9]), 128), steps_told(spread([127, 127]), 128)
    ('8', 'more than 127')
    """
    capped = max(reached.each) >= steps - 1
    return f"{'more than ' * capped}{reached.mean:.0f}"


def input_gradients(layer: Recurrent, x: Tensor) -> list[float]:
    """The norm of what each step adds to the gradient of the input weights, for an error at the last step only.

    It is that of the input's projection W x_t (B x T x I in; T numbers out, as shares of the last).
    """
    cell = cell_of(layer)
    projected = [cell.project(step).detach().requires_grad_() for step in x.unbind(1)]  # T of B x blocks*H
    state = cell.initial_state(len(x), x)
    for one in projected:
        state = cell.step(one, state)
    error = torch.randn(state[0].shape, generator=torch.Generator().manual_seed(0))
    gradients = torch.autograd.grad((state[0] * error).sum(), projected)
    pairs = zip(gradients, x.unbind(1), strict=True)
    norms = [float((gradient.norm(dim=1) * step.norm(dim=1)).mean()) for gradient, step in pairs]
    return [norm / max(norms[-1], 1e-300) for norm in norms]


def cell_of(layer: Recurrent) -> Cell:
    """The equation of a layer with the layer's weights."""
    return cells_of(layer.layers[0])[0]


def measure_cell(cell: str | type[Cell], options: GradientOptions) -> GradientCurve:
    """The gradients of one cell before, while and after it learns to continue nested brackets."""
    before, after, film, bounds = [], [], list[list[float]](), list[list[float]]()
    for seed in range(options.seeds):
        torch.manual_seed(seed)
        network = LabNetwork(cell, len(SYMBOLS), options.hidden, len(SYMBOLS))
        set_weights(network.body, "normal 0.1" if options.weights == "normal" else options.weights, options.forget_bias)
        text = brackets(16, options.steps, np.random.default_rng(1000 + seed))  # B x T
        x, chance = one_hot(text), np.random.default_rng(seed)
        before.append(input_gradients(network.body, x))
        bounds.append(singular_bound(network.body, options.steps))

        def batch(chance: np.random.Generator = chance) -> tuple[Tensor, ...]:
            return (brackets(16, options.steps + 1, chance),)

        def watch(step: int, seed: int = seed, network: LabNetwork = network, x: Tensor = x) -> bool:
            if seed == 0 and step % max(options.updates // FRAMES, 1) == 0:
                film.append(input_gradients(network.body, x))
            return False

        fit(network, batch, next_symbol_loss, options.updates, after=watch)
        after.append(input_gradients(network.body, x))
    return GradientCurve(name_of(cell), before, after if options.updates else [], means(bounds), [before[0], *film])


SYMBOLS = "()[]"


def brackets(count: int, steps: int, chance: np.random.Generator, deepest: int = 12) -> Tensor:
    """Beginnings of texts of nested brackets of two kinds (B x T ids)."""
    rows = np.zeros((count, steps), np.int64)
    for row in rows:
        open_ones: list[int] = []
        for place in range(steps):
            if open_ones and (len(open_ones) >= deepest or chance.random() < 0.5):
                row[place] = open_ones.pop() + 1
            else:
                open_ones.append(2 * int(chance.integers(2)))
                row[place] = open_ones[-1]
    return torch.from_numpy(rows)


def one_hot(ids: Tensor) -> Tensor:
    """Ids as vectors with a single one (B x T x V)."""
    return torch.nn.functional.one_hot(ids, len(SYMBOLS)).float()


def next_symbol_loss(network: LabNetwork, ids: Tensor) -> Tensor:
    """The cross-entropy of every next symbol."""
    logits = network(one_hot(ids[:, :-1]))
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


def singular_bound(layer: Recurrent, steps: int) -> list[float]:
    """What the gradient of a plain network with tanh can be at most: s^(T-t), s the largest singular value of W_hh."""
    cell = cell_of(layer)
    if not isinstance(cell, ElmanCell) or cell.nonlinearity != "tanh":
        return []
    largest = float(torch.linalg.matrix_norm(cell.weight_hh.detach(), ord=2))
    return [largest ** (steps - 1 - step) for step in range(steps)]


def relu_product(largest: float | None, chance: np.random.Generator, T: int = 50, H: int = 5) -> Product:
    """Gradients of a ReLU network without input, T steps back from random ones; W_hh is normal, or scaled so that its
    largest singular value is the given one."""
    W_hh = chance.normal(size=(H, H))
    own = float(np.linalg.norm(W_hh, ord=2))
    W_hh = W_hh if largest is None else W_hh * (largest / own)
    h = [chance.normal(size=H)]
    for _ in range(T):
        h.append(np.maximum(0, W_hh @ h[-1]))
    d, norms = chance.normal(size=H), list[float]()
    for t in reversed(range(1, T + 1)):
        norms.append(float(np.linalg.norm(d)))
        d = W_hh.T @ ((h[t] > 0) * d)
    return Product(own if largest is None else largest, norms)


def descend(clipping: str, updates: int = 100, lr: float = 0.1) -> Descent:
    """Gradient descent on (h_20 - 0.7)², h' = σ(w h + b): a plain, and a cliff in it (Pascanu et al. 2013)."""
    parameters = torch.tensor([6.0, -3.02], requires_grad=True)
    losses, furthest = list[float](), 0.0
    for _ in range(updates):
        h = torch.tensor(0.5)
        for _ in range(20):
            h = torch.sigmoid(parameters[0] * h + parameters[1])
        loss = (h - 0.7) ** 2
        (gradient,) = torch.autograd.grad(loss, parameters)
        if clipping == "norm":
            gradient = gradient * min(1.0, 1.0 / float(gradient.norm()))
        elif clipping == "value":
            gradient = gradient.clamp(-1, 1)
        move = lr * gradient
        furthest = max(furthest, float(move.abs().max()))
        with torch.no_grad():
            parameters -= move
        losses.append(loss.item())
    return Descent(clipping, losses, furthest)


class GradientsExperiment(Experiment[Gradients]):
    """An error at one step, and the gradient at every step before it."""

    name = "gradients"
    about = "an error at the last step alone: how much of its gradient is left at every earlier step"
    claim = (
        "At the beginning of training gradients vanish in a plain recurrent network: an error at step 128 does not "
        "reach early steps. An LSTM makes it easier for them to pass. Where the largest singular value of the "
        "recurrent matrix is below 1 they shrink exponentially, and above 1 they may explode; clipping helps there."
    )
    Options = GradientOptions

    def measure(self, options: GradientOptions, say: Say) -> Gradients:
        curves = []
        for cell in options.cells:
            say(f"{name_of(cell)}: {options.seeds} x {options.updates} updates")
            curves.append(measure_cell(cell, options))
        chance = np.random.default_rng(0)
        products = [relu_product(largest, chance) for largest in (0.5, 0.9, 1.5, 3.0, None)]
        return Gradients(options.steps, curves, products, [descend(one) for one in ("none", "norm", "value")])

    def verdict(self, data: Gradients) -> tuple[bool | None, str]:
        reached = {
            curve.cell: (spread(curve.reach()), spread(curve.reach(True)) if curve.trained else None)
            for curve in data.curves
        }
        told = "; ".join(
            f"{cell} {steps_told(before, data.steps)} steps"
            + (f", {steps_told(after, data.steps)} trained" if after else "")
            for cell, (before, after) in reached.items()
        )
        plain, gated = reached.get("RNN (tanh)"), reached.get("LSTM")
        if plain is None or gated is None:
            return None, f"1 % of the gradient is left after: {told}; the claim is about rnn and lstm."
        holds = gated[0].mean > plain[0].mean  # the claim is about the beginning
        return holds, f"1 % of the gradient is left after: {told}."

    def panels(self, data: Gradients) -> list[Panel]:
        back = list(range(1, data.steps + 1))

        def lines(which: str) -> list[Line]:
            rows = [(curve.cell, getattr(curve, which)) for curve in data.curves if getattr(curve, which)]
            found = [_banded(cell, back, curves) for cell, curves in rows]
            bounds = [curve.bound for curve in data.curves if curve.bound]
            if which == "norms" and bounds:
                found.append(Line("bound of the RNN: s^(T-t)", back, [min(one, 1e6) for one in bounds[0]], dashed=True))
            return found

        table = [
            [
                curve.cell,
                steps_told(spread(curve.reach()), data.steps),
                steps_told(spread(curve.reach(True)), data.steps) if curve.trained else "",
                f"{means(curve.norms)[0]:.1e}",
            ]
            for curve in data.curves
        ]
        products = [
            Line(
                f"largest singular value {one.singular_value:.2f}", list(range(len(one.norms))), _seen(one.norms, 1e-30)
            )
            for one in data.products
        ]
        names = {"none": "not clipped", "norm": "clipped by norm", "value": "clipped by value"}
        descents = [Line(names[one.clipping], list(range(len(one.losses))), one.losses) for one in data.descents]
        moves = [[one.clipping, f"{one.furthest:.3g}", f"{one.losses[-1]:.4f}"] for one in data.descents]
        chart = partial(Lines, x="step", y=f"gradient, as a share of that at step {data.steps}", log_y=True)
        return [
            chart("before training", lines("norms")),
            *([chart("after training", lines("trained"))] if data.curves[0].trained else []),
            Table("steps back until 1 % is left", ["cell", "before training", "after", "left at step 1"], table),
            Lines(
                "a ReLU network without input, T = 50, H = 5",
                products,
                "steps back",
                "norm of the gradient",
                log_y=True,
            ),
            Lines("a loss with a cliff", descents, "update", "loss"),
            Table("its largest update", ["clipping", "largest move", "last loss"], moves),
        ]

    def film(self, data: Gradients) -> list[Page]:
        back, frames = list(range(1, data.steps + 1)), min(len(curve.film) for curve in data.curves)
        pages = []
        for frame in range(frames):
            lines = [Line(curve.cell, back, _seen(curve.film[frame])) for curve in data.curves]
            title = f"gradients while training, {frame} of {frames - 1}"
            panel = Lines(title, lines, "step", "gradient, as a share of the last", log_y=True)
            pages.append(Page(title, "", [PageColumn("", [panel])]))
        return pages


def _seen(norms: Sequence[float], least: float = 1e-12) -> list[float]:
    """Numbers that a logarithmic scale can show."""
    return [max(norm, least) for norm in norms]


def _banded(name: str, x: Sequence[float], curves: Sequence[Sequence[float]]) -> Line:
    """The mean of several curves on a logarithmic scale, between the lowest and the highest."""
    table = np.maximum(np.array(curves), 1e-12)
    mean = np.exp(np.log(table).mean(axis=0))
    return Line(name, x, mean.tolist(), table.min(axis=0).tolist(), table.max(axis=0).tolist())
