"""The methods that give each token of a text a number, by name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from elman.draw.panels import Note, Panel
from elman.errors import UserError, nearest
from elman.inspect.attribution import Attribution
from elman.inspect.gradients import gradient_input, integrated_gradients
from elman.inspect.occlusion import occlusion
from elman.inspect.subject import Cut, Question, Subject

GATED = ("lstm", "gru", "gru-cho")
LONGEST = 100  # tokens of a text whose every token is decomposed unasked: the work grows with their square

Attribute = Callable[[Subject, Sequence[Cut], Sequence[Question]], list[Attribution]]
"""From some texts and what is asked of each to a number for each of their tokens."""


@dataclass(frozen=True)
class Method:
    """A way to share out a score among tokens."""

    title: str
    attribute: Attribute
    gated: bool = False
    """Whether it needs to know how gates work."""

    def refusal(self, subject: Subject) -> str | None:
        """Why it does not apply to a network; None if it does."""
        cell = subject.model.config.model.cell
        if not self.gated or cell in GATED:
            return None
        return f"it follows the gates of the cells {', '.join(GATED)}: this network has {cell}"


def _relevance(subject: Subject, cuts: Sequence[Cut], questions: Sequence[Question]) -> list[Attribution]:
    from elman.inspect.relevance import relevance  # which needs PyTorch to be read

    return relevance(subject, cuts, questions)


def _decomposition(subject: Subject, cuts: Sequence[Cut], questions: Sequence[Question]) -> list[Attribution]:
    from elman.inspect.decomposition import decomposition

    return decomposition(subject, cuts, questions)


METHODS: dict[str, Method] = {
    "gradient": Method("gradient x input", gradient_input),
    "integrated": Method("integrated gradients", integrated_gradients),
    "occlusion": Method("occlusion", occlusion),
    "relevance": Method("layer-wise relevance", _relevance, gated=True),
    "decomposition": Method("contextual decomposition", _decomposition, gated=True),
}


def chosen_methods(
    subject: Subject, names: Sequence[str] | None, cuts: Sequence[Cut] = ()
) -> tuple[dict[str, Method], dict[str, str]]:
    """The methods asked for, or all; those that apply to a network and its texts, and why the others do not.

    One that was asked for by name and does not apply is an error.
    """
    for name in names or ():
        if name not in METHODS:
            raise UserError(f"there is no method {name!r}: {nearest(name, METHODS)}")
    reasons = {name: METHODS[name].refusal(subject) for name in names or METHODS}
    if not names and max((len(cut.pieces) for cut in cuts), default=0) > LONGEST and not reasons["decomposition"]:
        reasons["decomposition"] = f"it is slow for more than {LONGEST} tokens, so it has to be asked for by its name"
    refused = {name: reason for name, reason in reasons.items() if reason is not None}
    if names and refused:
        name, reason = next(iter(refused.items()))
        others = ", ".join(other for other, method in METHODS.items() if method.refusal(subject) is None)
        raise UserError(f"the method {name!r} does not apply: {reason}; take {others}")
    return {name: METHODS[name] for name in reasons if name not in refused}, refused


def cut_panels(left_out: int, read: int | None = None) -> list[Panel]:
    """A note about tokens that were left out; nothing where none were.

    >>> cut_panels(3, 2000)[0].text
    'The text is cut after 2,000 tokens: 3 more are left out.'
    """
    if not left_out:
        return []
    where = "Texts are cut" if read is None else f"The text is cut after {read:,} tokens"
    return [Note("cut", f"{where}: {left_out:,} more {'is' if left_out == 1 else 'are'} left out.")]


def refused_panels(refused: Mapping[str, str]) -> list[Panel]:
    """A note about methods that do not apply, and why; nothing where all of them do."""
    told = " ".join(f"{METHODS[name].title} is left out: {why}." for name, why in refused.items())
    return [Note("not here", told)] if told else []
