"""What a prediction becomes when a token is dropped, made unknown, or replaced."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from elman.draw.panels import Note, Panel, Table, Token, Tokens
from elman.errors import UserError
from elman.inspect.marginals import difference
from elman.inspect.methods import cut_panels
from elman.inspect.subject import Cut, Floats, Subject, TaggerSubject, cuts_of, subject_of
from elman.inspect.view import AnyModel, View
from elman.train.recipe import Section

DROPPED, UNKNOWN, REPLACED = "dropped", "unknown", "replaced"


class EditsOptions(Section):
    """What is done to each token, beside dropping it and making it unknown."""

    replace: str | None = Field(None, description="Put this in the place of each token too.")


@dataclass(frozen=True)
class Edit:
    """A text with one token changed, and what becomes of its prediction."""

    place: int
    """Of the token, from 1."""
    token: str
    edit: str
    """dropped, unknown or replaced."""
    prediction: list[str]
    """The class or classes of the edited text; the tags of its tokens."""
    probability: float
    """Of what was predicted for the whole text; of a tagger, the mean over all tokens but this one."""
    change: float
    """Of that probability."""
    changed: bool
    """Whether the class, or the tag of another token, is another one."""


@dataclass(frozen=True)
class Edits:
    """A prediction, and those for the text with each token changed in turn."""

    tokens: list[str]
    prediction: list[str]
    probability: float
    """Of the predicted class; of a tagger, the mean of its tags."""
    replace: str | None
    """What stands in the place of a token that is replaced."""
    edits: list[Edit]
    spaced: bool
    """Whether tokens are words."""
    tags: bool
    """Whether each token has a prediction."""
    cut: int = 0
    """Tokens behind these, which are left out."""


def edits(model: AnyModel, text: str, replace: str | None = None) -> Edits:
    """Predict for a text, and again with each token dropped, made unknown and, where that is given, replaced."""
    subject = subject_of(model)
    (cut,) = cuts_of(subject, [text])
    asked = list(_edited(subject, cut, replace))
    whole, *outputs = subject.outputs([cut.tokens, *(tokens for _, _, tokens in asked)])
    tags = isinstance(subject, TaggerSubject)
    before, best = subject.prediction(whole), subject.best(whole)
    table = subject.probabilities(whole)
    own = table[np.arange(len(best)), best]  # R: how probable what was predicted is
    found = []
    for (place, edit, _), output in zip(asked, outputs, strict=True):
        after = subject.prediction(output)
        kept = np.delete(np.arange(len(best)), place) if tags else np.arange(1)
        rows = np.delete(np.arange(len(output)), place) if tags and len(output) == len(best) else np.arange(len(output))
        probability = _mean(subject.probabilities(output)[rows, best[kept]])
        same = [before[row] for row in kept] == [after[row] for row in rows] if tags else before == after
        change = probability - _mean(own[kept])
        found.append(Edit(place + 1, cut.pieces[place], edit, after, probability, change, not same))
    return Edits(list(cut.pieces), before, _mean(own), replace, found, subject.spaced, tags, cut.left_out)


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 1.0  # of a sentence of one token nothing else is left


def _edited(subject: Subject, cut: Cut, replace: str | None) -> list[tuple[int, str, NDArray[Any]]]:
    """Each token, what is done to it, and the tokens that the network then reads."""
    tags = isinstance(subject, TaggerSubject)
    found = []
    for place, piece in enumerate(cut.pieces):
        at = cut.first + place
        if not tags or len(cut.pieces) > 1:
            found.append((place, DROPPED, np.delete(cut.tokens, at) if tags else subject.removed(cut, [place])))
        masked = cut.tokens.copy()
        masked[at] = subject.unknown
        found.append((place, UNKNOWN, masked))
        if replace is not None:
            blank = " " if not subject.spaced and piece[:1] == " " and replace[:1] != " " else ""
            new = subject.cut(blank + replace)
            if tags and len(new.pieces) > 1:
                raise UserError(f"a tag is for one token: {replace!r} are {len(new.pieces)}, so give one of them")
            parts = (cut.tokens[:at], new.own(new.tokens), cut.tokens[at + 1 :])
            found.append((place, REPLACED, np.concatenate(parts)))
    return found


class EditsView(View[Edits]):
    """A text without each of its tokens."""

    name = "edits"
    about = "what the prediction becomes when a token is dropped, unknown or replaced"
    takes_tokens = True
    Options = EditsOptions

    def compute(self, model: AnyModel, texts: Sequence[str], options: EditsOptions) -> list[Edits]:
        return [edits(model, text, options.replace) for text in texts]

    def panels(self, data: Edits) -> list[Panel]:
        dropped = {one.place: one for one in data.edits if one.edit == DROPPED}
        most = max((abs(one.change) for one in dropped.values()), default=0.0) or 1.0
        tokens = []
        for place, piece in enumerate(data.tokens, 1):
            one = dropped.get(place)
            tip = {} if one is None else {"without it": _becomes(data, one), "change": f"{one.change:+.3f}"}
            colour = None if one is None else -one.change / most
            tokens.append(Token(piece, colour, tip, marked=one is not None and one.changed))
        kinds = list(dict.fromkeys(one.edit for one in data.edits))
        by_place = {(one.place, one.edit): one for one in data.edits}
        rows = []
        for place, piece in enumerate(data.tokens, 1):
            row = [piece]
            for kind in kinds:
                edit = by_place.get((place, kind))
                row += ["", ""] if edit is None else [_becomes(data, edit), f"{edit.change:+.3f}"]
            rows.append(row)
        heads = [head for kind in kinds for head in (f"as {data.replace!r}" if kind == REPLACED else kind, "change")]
        predicted = " ".join(data.prediction) or "no class"
        return [
            Note("prediction", f"Predicted: {predicted} (p = {data.probability:.3f})."),
            *cut_panels(data.cut, len(data.tokens)),
            Tokens(
                "each token dropped",
                tokens,
                legend=("more probable without it", "less probable without it"),
                spaced=data.spaced,
                note="A token is underlined where the prediction is another one without it.",
            ),
            Table(
                "each token changed",
                ["token", *heads],
                rows,
                note="What is predicted then, and by how much that which was predicted first has become more probable.",
            ),
        ]


def _becomes(data: Edits, one: Edit) -> str:
    """What is predicted for an edited text; of a tagger, which other tags differ."""
    if not data.tags:
        return " ".join(one.prediction) or "no class"
    others = [n for n in range(len(data.tokens)) if n != one.place - 1]
    after = one.prediction
    if len(after) == len(data.tokens):
        after = [after[n] for n in others]
    return difference([data.tokens[n] for n in others], [data.prediction[n] for n in others], after) or "the same"
