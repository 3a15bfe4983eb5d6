"""Single units of a language model over a text, and how much of the time its gates are wide open or shut.

found = neurons(elman.load("runs/shakespeare"), "To be, or not to be", layer=2, part="c", units=[17])
found.activations[0]                         # one number for each token
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, cast

import numpy as np
from pydantic import Field

from elman.draw.panels import HeatMap, Note, Panel, Point, Points, Scale, Table, Token, Tokens
from elman.errors import UserError
from elman.inspect.methods import cut_panels
from elman.inspect.traces import CANDIDATES, corpus_ids, trace_blocks
from elman.inspect.view import AnyModel, View
from elman.tasks.language import LanguageModel
from elman.tasks.traces import STATES, Floats, refusal, trace_text
from elman.train.recipe import Section

LEFT, RIGHT = 0.1, 0.9  # a gate is shut below the one and open above the other
SHOWN = 8  # units, if none are named
MOST = 5000  # tokens that are shown


class NeuronsOptions(Section):
    """Which units are looked at."""

    layer: int | None = Field(None, ge=1, description="From 1; the last, if not given.")
    part: str = Field("h", description="A letter of the cell's equation: h, c, i, f, o, g, r, z, n.")
    units: tuple[Annotated[int, Field(ge=0)], ...] = Field(
        (), description="From 0; those that vary most, if not given."
    )
    corpus: str | None = Field(
        None, min_length=1, description="A text file to look at; the texts themselves, if not given."
    )
    label: str | None = Field(None, description="What a model with labels is told.")


@dataclass(frozen=True)
class Saturation:
    """For how much of the time the units of one gate are shut (below 0.1) and open (above 0.9)."""

    layer: int
    gate: str
    left: list[float]
    """The share of steps at which each unit is below 0.1."""
    right: list[float]
    """The share of steps at which each unit is above 0.9."""
    mean_left: float
    mean_right: float


@dataclass(frozen=True)
class Neurons:
    """Some units of one part of one layer over a text."""

    tokens: list[str]
    layer: int
    part: str
    units: list[int]
    activations: list[list[float]]
    """For each unit a number for each token."""
    saturation: list[Saturation]
    steps: int
    """How many the shares were counted over."""
    words: bool
    """Whether tokens are words."""
    cut: int = 0
    """Tokens behind these, which are left out."""


def neurons(
    model: LanguageModel,
    text: str,
    *,
    layer: int | None = None,
    part: str = "h",
    units: Sequence[int] = (),
    label: str | None = None,
) -> Neurons:
    """What some units did while a text was read, or those that varied most; and how long gates were open or shut."""
    whole = trace_text(model, text, label)
    trace = whole.shortened(MOST)
    name, values = trace.part(layer, part)
    size = values.shape[1]
    for unit in units:
        if not 0 <= unit < size:
            raise UserError(f"there is no unit {unit} in '{part}' of that layer: give one from 0 to {size - 1}")
    chosen = list(units) or np.argsort(-values.std(axis=0), kind="stable")[:SHOWN].tolist()
    return Neurons(
        trace.tokens,
        int(name.split(".")[0]),
        part,
        chosen,
        values[:, chosen].T.tolist(),
        saturation([whole.parts]),
        len(whole.tokens),
        model.tokenizer.settings.kind == "words",
        len(whole.tokens) - len(trace.tokens),
    )


def saturation(parts: Iterable[Mapping[str, Floats]]) -> list[Saturation]:
    """The share of steps at which each unit of each gate is shut and open, over one or more traces.

    >>> found = saturation([{"1.f": np.array([[0.05, 0.5], [0.95, 0.5]], np.float32)}])
    >>> found[0].left, found[0].right, found[0].mean_right
    ([0.5, 0.0], [0.5, 0.0], 0.25)
    """
    steps, shut, wide = 0, dict[str, Any](), dict[str, Any]()
    for one in parts:
        gates = {name: values for name, values in one.items() if name.split(".")[1] not in STATES + CANDIDATES}
        steps += len(next(iter(one.values())))
        for name, values in gates.items():
            shut[name] = shut.get(name, 0) + (values < LEFT).sum(axis=0)
            wide[name] = wide.get(name, 0) + (values > RIGHT).sum(axis=0)
    return [
        Saturation(
            int(name.split(".")[0]),
            name.split(".")[1],
            (shut[name] / steps).tolist(),
            (wide[name] / steps).tolist(),
            float(shut[name].mean() / steps),
            float(wide[name].mean() / steps),
        )
        for name in shut
    ]


class NeuronsView(View[Neurons]):
    """Units over a text."""

    name = "neurons"
    about = "single units over the text: tokens by their activation, and how long each gate is open or shut"
    Options = NeuronsOptions

    def refusal(self, model: AnyModel) -> str | None:
        """N-grams and windows have no states."""
        return refusal(model)

    def compute(self, model: AnyModel, texts: Sequence[str], options: NeuronsOptions) -> list[Neurons]:
        """The units in each text; with `corpus` the gates are counted there, in constant memory."""
        language = cast(LanguageModel, model)
        asked = options.model_dump(exclude={"corpus"})
        found = [neurons(language, text, **asked) for text in texts]
        if options.corpus is None:
            return found
        ids = corpus_ids(language, options.corpus, options.label)
        counted = saturation(block.parts for block in trace_blocks(language, ids))
        return [replace(one, saturation=counted, steps=len(ids)) for one in found]

    def panels(self, data: Neurons) -> list[Panel]:
        """A heat map, the text for each unit, and the gates."""
        gate = data.part not in STATES + CANDIDATES
        values = np.array(data.activations)  # U x T
        top = 1.0 if gate else float(np.abs(values).max()) or 1.0
        scale: Scale = "sequential" if gate else "diverging"
        names = [f"{data.part} {unit}" for unit in data.units]
        low, what = (0.0 if gate else -top), f"'{data.part}' of layer {data.layer}"
        shown: list[Panel] = [
            *cut_panels(data.cut, len(data.tokens)),
            HeatMap(f"units of {what}", data.activations, names, data.tokens, scale=scale, low=low, high=top),
        ]
        for name, row in zip(names, values, strict=True):
            tokens = [
                Token(token, float(value) / top, {name: f"{value:.3f}"})
                for token, value in zip(data.tokens, row, strict=True)
            ]
            legend = (f"{low:.2g}", f"{top:.2g}")
            shown.append(Tokens(f"unit {name} of layer {data.layer}", tokens, scale, legend, data.words))
        return shown + _gates(data)


def _gates(data: Neurons) -> list[Panel]:
    if not data.saturation:
        return [Note("gates", "The cells of this model have no gates.")]
    rows = [[str(one.layer), one.gate, f"{one.mean_left:.1%}", f"{one.mean_right:.1%}"] for one in data.saturation]
    note = f"Shares of {data.steps:,} steps at which units are below {LEFT} (shut) and above {RIGHT} (open)."
    shown: list[Panel] = [Table("gates that are shut or open", ["layer", "gate", "shut", "open"], rows, note)]
    for gate in dict.fromkeys(one.gate for one in data.saturation):
        points = [
            Point(left, right, f"{gate} {unit}", f"layer {one.layer}")
            for one in data.saturation
            if one.gate == gate
            for unit, (left, right) in enumerate(zip(one.left, one.right, strict=True))
        ]
        title, axes = f"gate {gate}: a point for each unit", ("share of time shut", "share of time open")
        shown.append(Points(title, points, *axes, x_range=(0, 1), y_range=(0, 1)))
    return shown
