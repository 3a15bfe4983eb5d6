"""What a score loses when a token is taken away: the edited text is read again."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from elman.inspect.attribution import Attribution
from elman.inspect.subject import Cut, Question, Subject

Edit = Literal["drop", "unknown"]


def occlusion(
    subject: Subject, cuts: Sequence[Cut], questions: Sequence[Question], edit: Edit | None = None
) -> list[Attribution]:
    """Occlusion (Zeiler and Fergus, 2014; Li et al., 2016): the score less that of the text without the token.

    The token is dropped from a text to classify and made unknown in a sentence to tag, unless `edit` says which.
    """
    wholes = subject.outputs([cut.tokens for cut in cuts])
    places = [(number, place) for number, cut in enumerate(cuts) for place in range(len(cut.pieces))]
    scores = iter(_scores(subject, cuts, questions, [(number, [place]) for number, place in places], edit))
    found = []
    for cut, question, whole in zip(cuts, questions, wholes, strict=True):
        score = question.score(whole)
        found.append(Attribution([score - next(scores) for _ in cut.pieces], score))
    return found


def without(
    subject: Subject, cut: Cut, question: Question, places: Sequence[int], edit: Edit | None = None
) -> tuple[NDArray[np.object_] | NDArray[np.int64], Question]:
    """The tokens that are left, and the question as it is put to them.

    A token whose own tag is asked for is made unknown even where others are dropped: it has to be there.
    """
    chosen = edit or ("unknown" if question.positions else "drop")
    kept = set(question.positions)
    masked = list(places) if chosen == "unknown" else [place for place in places if place in kept]
    dropped = [place for place in places if place not in masked]
    tokens = cut.tokens.copy()
    tokens[[cut.first + place for place in masked]] = subject.unknown
    if not dropped:
        return tokens, question
    if not question.positions:
        return subject.removed(Cut(cut.pieces, tokens, cut.first), dropped), question
    positions = tuple(place - sum(gone < place for gone in dropped) for place in question.positions)
    weights = np.delete(question.weights, dropped, axis=0)
    return np.delete(tokens, dropped), Question(question.targets, question.against, positions, weights)


def score_without(
    subject: Subject, cut: Cut, question: Question, places: Sequence[int], edit: Edit | None = None
) -> float:
    """The score of a text without some of its tokens."""
    return _scores(subject, [cut], [question], [(0, places)], edit)[0]


def _scores(
    subject: Subject,
    cuts: Sequence[Cut],
    questions: Sequence[Question],
    edits: Sequence[tuple[int, Sequence[int]]],
    edit: Edit | None,
) -> list[float]:
    """The scores of edited texts: which text, and without which of its tokens."""
    edited = [without(subject, cuts[number], questions[number], places, edit) for number, places in edits]
    outputs = subject.outputs([tokens for tokens, _ in edited])
    return [question.score(output) for (_, question), output in zip(edited, outputs, strict=True)]
