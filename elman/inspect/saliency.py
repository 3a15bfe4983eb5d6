"""A number for each token: how much it speaks for a class or tag, by several methods side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from pydantic import Field

from elman.draw.panels import Bars, HeatMap, Note, Panel, Table, Token, Tokens
from elman.inspect.attribution import Attribution, agreement
from elman.inspect.methods import METHODS, Method, chosen_methods, cut_panels, refused_panels
from elman.inspect.occlusion import Edit, occlusion, score_without
from elman.inspect.phrase import find_phrase
from elman.inspect.subject import Cut, Floats, Question, Subject, cuts_of, subject_of
from elman.inspect.view import AnyModel, View
from elman.train.recipe import Section

SHOWN = 12  # classes of a phrase, those with the largest parts first


class SaliencyOptions(Section):
    """What is to be explained, and how."""

    target: str | None = Field(None, description="A class or tag; the predicted one if not given.")
    against: str | None = Field(None, description="Explain target's score less that of this class or tag.")
    position: int | None = Field(None, description="Taggers: the token whose tag is explained, from 1.")
    method: str | None = Field(None, description=f"One of {', '.join(METHODS)}; all of them if not given.")
    phrase: str | None = Field(None, description="START:STOP, tokens from 1, or a part of the text: what it adds.")
    edit: Edit | None = Field(None, description="Occlusion: drop a token, or make it unknown.")


@dataclass(frozen=True)
class PhraseParts:
    """What a phrase adds to the score, by each method, and to every class or tag, by contextual decomposition."""

    start: int
    stop: int
    """The first and the last of its tokens, from 1."""
    text: str
    values: dict[str, float]
    """By method: the sum over its tokens; by occlusion, without all of them at once; by decomposition, its own part."""
    beta: dict[str, float]
    gamma: dict[str, float]
    """What of each output comes of the phrase, and what of all else; empty where decomposition does not apply."""


@dataclass(frozen=True)
class Saliency:
    """How much each token of a text speaks for what is asked."""

    tokens: list[str]
    prediction: list[str]
    """The class or classes of the text; the tag of each token."""
    target: list[str]
    """The class that is explained; of a tagger, a tag for each position."""
    against: str | None
    positions: list[int]
    """The tokens whose tags are explained, from 1; none for a class."""
    score: float
    """What the network gives the target, less what it gives the class or tag that it is set against."""
    probability: float
    """Of the target; of several tokens their mean."""
    methods: dict[str, Attribution]
    refused: dict[str, str]
    """Methods that do not apply, and why."""
    agreement: list[list[float | None]]
    """The rank correlation (Spearman) of each method with each; None for a text of one token."""
    by_position: list[list[float]]
    """Taggers: a row for each position, a number for each token, by the first of the methods."""
    phrase: PhraseParts | None
    spaced: bool
    """Whether tokens are words."""
    cut: int = 0
    """Tokens behind these, which are left out."""


def saliency(
    model: AnyModel,
    texts: str | Sequence[str],
    methods: Sequence[str] | None = None,
    *,
    target: str | None = None,
    against: str | None = None,
    position: int | None = None,
    phrase: str | None = None,
    edit: Edit | None = None,
) -> list[Saliency]:
    """Explain a score of each of some texts by all methods that apply, or by those that are named; in batches."""
    subject = subject_of(model)
    cuts = cuts_of(subject, texts)
    chosen, refused = chosen_methods(subject, methods, cuts)
    if edit is not None and "occlusion" in chosen:
        chosen["occlusion"] = replace(chosen["occlusion"], attribute=partial(occlusion, edit=edit))
    places = [None if phrase is None else find_phrase(cut.pieces, phrase, subject.spaced) for cut in cuts]
    outputs = subject.outputs([cut.tokens for cut in cuts])
    questions = [subject.ask(cut, output, target, against, position) for cut, output in zip(cuts, outputs, strict=True)]
    found = {name: method.attribute(subject, cuts, questions) for name, method in chosen.items()}
    return [
        Saliency(
            list(cut.pieces),
            subject.prediction(output),
            list(question.targets),
            against,
            [row + 1 for row in question.positions],
            question.score(output),
            subject.probability(question, output),
            own := {name: every[number] for name, every in found.items()},
            refused,
            agreement([one.values for one in own.values()]),
            _by_position(subject, cut, question, next(iter(chosen.values()))),
            None if place is None else _phrase(subject, cut, question, place, own, edit),
            subject.spaced,
            cut.left_out,
        )
        for number, (cut, output, question, place) in enumerate(zip(cuts, outputs, questions, places, strict=True))
    ]


def _by_position(subject: Subject, cut: Cut, question: Question, method: Method) -> list[list[float]]:
    """The numbers of each position by itself, where there are several."""
    if len(question.positions) < 2:
        return []
    alone = []
    for row, target in zip(question.positions, question.targets, strict=True):
        weights = np.zeros_like(question.weights)
        weights[row] = question.weights[row]
        alone.append(Question((target,), question.against, (row,), weights))
    return [one.values for one in method.attribute(subject, [cut] * len(alone), alone)]


def _phrase(
    subject: Subject,
    cut: Cut,
    question: Question,
    place: tuple[int, int],
    found: Mapping[str, Attribution],
    edit: Edit | None,
) -> PhraseParts:
    start, stop = place
    values = {name: float(sum(one.values[start:stop])) for name, one in found.items()}
    if "occlusion" in found:
        left = score_without(subject, cut, question, range(start, stop), edit)
        values["occlusion"] = found["occlusion"].score - left
    beta: dict[str, float] = {}
    gamma: dict[str, float] = {}
    if METHODS["decomposition"].refusal(subject) is None:
        from elman.inspect.decomposition import decompose

        (parts,) = decompose(subject, [cut], [place])
        if "decomposition" in found:
            values["decomposition"] = question.score(parts.beta)
        beta, gamma = (_by_name(subject, question, part) for part in (parts.beta, parts.gamma))
    blank = " " if subject.spaced else ""
    return PhraseParts(start + 1, stop, blank.join(cut.pieces[start:stop]), values, beta, gamma)


def _by_name(subject: Subject, question: Question, part: Floats) -> dict[str, float]:
    rows = part[list(question.positions or (0,))].sum(axis=0)
    return dict(zip(subject.names, rows.tolist(), strict=True))


class SaliencyView(View[Saliency]):
    """Tokens coloured by how much they speak for a class or tag."""

    name = "saliency"
    about = "how much each token speaks for a class or tag"
    takes_tokens = True
    Options = SaliencyOptions

    def compute(self, model: AnyModel, texts: Sequence[str], options: SaliencyOptions) -> list[Saliency]:
        asked: dict[str, Any] = options.model_dump(exclude={"method"})
        return saliency(model, texts, None if options.method is None else [options.method], **asked)

    def panels(self, data: Saliency) -> list[Panel]:
        panels: list[Panel] = [Note("prediction", prediction_sentence(data)), *cut_panels(data.cut, len(data.tokens))]
        panels += [_tokens(data, name, found) for name, found in data.methods.items()]
        if len(data.by_position) > 1:
            panels.append(_positions(data))
        if len(data.methods) > 1:
            names = list(data.methods)
            rows = [
                [name, *("–" if value is None else f"{value:.2f}" for value in row)]
                for name, row in zip(names, data.agreement, strict=True)
            ]
            note = "Rank correlation (Spearman) of the numbers that two methods give the tokens: 1 ranks them alike."
            panels.append(Table("agreement", ["method", *names], rows, note=note))
        if data.phrase is not None:
            panels += _phrase_panels(data.phrase)
        return [*panels, *refused_panels(data.refused)]


def prediction_sentence(data: Saliency) -> str:
    """What was predicted, and what of it is explained."""
    names = " ".join(dict.fromkeys(data.target))
    if data.positions:
        names += " at " + ", ".join(f"{row} ({data.tokens[row - 1]})" for row in data.positions)
    what = names if data.against is None else f"{names} against {data.against}"
    predicted = " ".join(data.prediction) or "no class"
    told = f"Predicted: {predicted}. Explained: the score of {what}, {data.score:.3f} (p = {data.probability:.3f})."
    if data.positions and not set(data.target) & set(data.prediction):
        given = ", ".join(dict.fromkeys(data.prediction))
        told += f" The network gave no token the tag {data.target[0]}; those that it gave are {given}."
    return told


def _tokens(data: Saliency, name: str, found: Attribution) -> Tokens:
    most = max(map(abs, found.values), default=0.0) or 1.0
    marked = {row - 1 for row in data.positions}
    tokens = [
        Token(piece, value / most, {"value": f"{value:+.4f}"}, marked=place in marked)
        for place, (piece, value) in enumerate(zip(data.tokens, found.values, strict=True))
    ]
    told = [f"The tokens sum to {sum(found.values):.3f}"]
    if found.edges:
        told.append(f"the ends of the text to {found.edges:.3f}")
    if found.rest is not None:
        told.append(f"{'biases' if name == 'relevance' else 'a text of zeros'} to {found.rest:.3f}")
    told.append(f"the score is {found.score:.3f}")
    if found.gap is not None:
        told.append(f"{found.gap:.2%} is missing after {found.steps} steps")
    note = ", ".join(told) + "." if name != "occlusion" else "Each number is what the score loses without the token."
    return Tokens(METHODS[name].title, tokens, legend=("against", "for"), spaced=data.spaced, note=note)


def _positions(data: Saliency) -> HeatMap:
    most = max(abs(value) for row in data.by_position for value in row) or 1.0
    rows = [f"{data.tokens[row - 1]}: {tag}" for row, tag in zip(data.positions, data.target, strict=True)]
    title = f"each tag by itself ({METHODS[next(iter(data.methods))].title})"
    return HeatMap(title, data.by_position, rows, data.tokens, scale="diverging", high=most)


def _phrase_panels(phrase: PhraseParts) -> list[Panel]:
    rows = [[METHODS[name].title, f"{value:+.4f}"] for name, value in phrase.values.items()]
    panels: list[Panel] = [Table(f"what {phrase.text!r} adds", ["method", "to the score"], rows)]
    if phrase.beta:
        names = sorted(phrase.beta, key=lambda name: -abs(phrase.beta[name]))[:SHOWN]
        note = "What of each score comes of the phrase, by contextual decomposition."
        values = [phrase.beta[name] for name in names]
        panels.append(Bars(f"what {phrase.text!r} adds to each class or tag", names, values, note=note))
    return panels
