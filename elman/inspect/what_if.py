"""What a translator would have written: after another beginning, or had it attended elsewhere at one step."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from elman.draw.panels import Note, Panel, Table
from elman.errors import UserError
from elman.inspect.alignment import Alignment
from elman.inspect.view import AnyModel, View
from elman.metrics.alignments import hard_alignment, to_pharaoh
from elman.ragged import Ragged
from elman.tasks.search import Search
from elman.tasks.translate import Translator
from elman.train.recipe import Section

if TYPE_CHECKING:
    from elman.decode.scores import Hypothesis

DIGITS = re.compile(r"[0-9]{1,9}")


class WhatIfOptions(Section):
    """What is forced."""

    prefix: str = Field("", description="The translation begins so.")
    attend: tuple[str, ...] = Field((), description="STEP:PLACE, both from 1: attend there alone; may be repeated.")
    beam: int | None = Field(None, ge=1, le=100, description="Hypotheses side by side; 1 is greedy.")


@dataclass(frozen=True)
class WhatIf:
    """A translation as it is, and as it becomes when something is forced."""

    before: Alignment
    after: Alignment
    prefix: str
    attend: dict[int, int]
    """Steps, and the source place that each is made to attend to, both from 1."""
    log_prob_before: float
    log_prob_after: float
    """Of the second text with what was forced, in nats."""


def what_if(
    model: Translator,
    text: str,
    *,
    prefix: str = "",
    attend: Mapping[int, int] | None = None,
    beam: int | None = None,
) -> WhatIf:
    """Translate a text twice: as ever, and with a forced prefix and steps forced to attend to one place each.

    `attend` maps steps of the translation to places of the source, both counted from 1.
    """
    from elman.tasks.steps import ForcedSteps

    model.refuse_ensemble("forced to attend elsewhere")
    forced, search = dict(attend or {}), Search.of({"beam": beam, "prefix": prefix})
    if len(model.parts(text, search)) > 1:
        raise UserError(f"a text of more than {model.longest} tokens is translated in parts: give one of them")
    source = model.source_ids(text)
    for step, place in forced.items():
        if step < 1 or not 1 <= place <= len(source):
            raise UserError(f"attend {step}:{place} is outside: steps count from 1, places from 1 to {len(source)}")
    places = {
        step - 1: len(source) - place if model.settings.reverse_source else place - 1 for step, place in forced.items()
    }
    before = model.predict(text, alignments=True, beam=beam)
    with model.evaluating() as network:
        steps = ForcedSteps(network, Ragged.of([source]), places)
        best = model.search(text, search, steps)[0]
        after = _alignment(model, source, best, steps)
    if forced and max(forced) > len(best.ids):
        raise UserError(
            f"step {max(forced)} is beyond the translation, which has {len(best.ids)} tokens: name a step of it"
        )
    return WhatIf(
        Alignment.of(before),
        after,
        prefix,
        forced,
        before.n_best[0].log_prob,
        best.log_prob,
    )


def _alignment(model: Translator, source: np.ndarray, best: "Hypothesis", steps: Any) -> Alignment:
    """What the network attended to while it was made to write a text."""
    state, rows = steps.start(1), []
    for token in [model.start, *best.ids][: len(best.ids)]:
        _, state = steps.step(np.array([token]), state)
        rows.append(steps.attention(state)[0])
    table = np.array(rows, np.float32).reshape(len(best.ids), len(source))
    names, ids = model.sides.source.tokens, source
    if model.settings.reverse_source:
        table, ids = table[:, ::-1], source[::-1]
    words = model.sides.target.tokens
    return Alignment(
        model.sides.write(best.ids),
        best.score,
        [names[id] for id in ids.tolist()],
        [words[id] for id in best.ids],
        table,
        to_pharaoh(hard_alignment(table)),
    )


def read_forced(pairs: Sequence[str]) -> dict[int, int]:
    """Steps and places as they are written on the command line.

    >>> read_forced(["2:5"])
    {2: 5}
    """
    found: dict[int, int] = {}
    for pair in pairs:
        step, colon, place = pair.partition(":")
        if not (colon and DIGITS.fullmatch(step.strip()) and DIGITS.fullmatch(place.strip())):
            raise UserError(f"attend is STEP:PLACE, two numbers from 1, such as 2:5, not {pair!r}")
        if int(step) in found:
            raise UserError(f"attend has step {int(step)} twice: give one place for it")
        found[int(step)] = int(place)
    return found


class WhatIfView(View[WhatIf]):
    """A translation with its beginning, or its attention, forced."""

    name = "what-if"
    about = "what a translator writes after a forced prefix, or when one step is made to attend elsewhere"
    Options = WhatIfOptions

    def refusal(self, model: AnyModel) -> str | None:
        assert isinstance(model, Translator)
        return None if model.settings.attends else "it has no attention"

    def compute(self, model: AnyModel, texts: Sequence[str], options: WhatIfOptions) -> list[WhatIf]:
        assert isinstance(model, Translator)
        forced = read_forced(options.attend)
        if not forced and not options.prefix:
            raise UserError("nothing is forced: give --prefix TEXT, or --attend STEP:PLACE such as 2:5")
        return [what_if(model, text, prefix=options.prefix, attend=forced, beam=options.beam) for text in texts]

    def panels(self, data: WhatIf) -> list[Panel]:
        told = [f"it begins with {data.prefix!r}"] * bool(data.prefix)
        told += [f"step {step} attends to place {place} alone" for step, place in data.attend.items()]
        marked = [(step - 1, place - 1) for step, place in data.attend.items() if step <= len(data.after.target_tokens)]
        rows = [
            ["as it is", data.before.translation, f"{data.log_prob_before:.3f}"],
            ["forced", data.after.translation, f"{data.log_prob_after:.3f}"],
        ]
        return [
            Note("forced", "; ".join(told)),
            Table("translations", ["", "translation", "log-probability"], rows),
            data.before.heat_map("as it is"),
            data.after.heat_map("forced", marked),
        ]
