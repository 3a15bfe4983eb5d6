"""How a translation changes when a word of its source is dropped, or replaced."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from elman.draw.panels import Panel, Table, Token, Tokens
from elman.errors import UserError
from elman.inspect.view import AnyModel, View
from elman.metrics.edits import edit_distance
from elman.tasks.translate import Translator
from elman.train.recipe import Section


class EditOptions(Section):
    """What is done to each word."""

    replace: str | None = Field(None, description="Put this in the place of each word; else it is dropped.")


@dataclass(frozen=True)
class SourceEdit:
    """A source with one word changed, and what becomes of its translation."""

    word: str
    source: str
    translation: str
    changed: float
    """Tokens to insert, delete or replace between the two translations, for each token of the first."""
    log_prob: float
    """Of the first translation given the changed source, in nats."""


@dataclass(frozen=True)
class TranslationEdits:
    """A translation, and those of its source with each word changed in turn."""

    translation: str
    log_prob: float
    spaced: bool
    """Whether the pieces are words; else they are characters."""
    edits: list[SourceEdit]
    replace: str | None = None
    """What was put in the place of each word; None where it was dropped."""


def translation_edits(model: Translator, text: str, replace: str | None = None) -> TranslationEdits:
    """Translate a text, and again with each of its words (of a single word, each character) dropped or replaced."""
    words = text.split()
    spaced = len(words) > 1
    pieces, blank = (words, " ") if spaced else (list(text.strip()), "")
    if len(pieces) < 2:
        raise UserError(f"the text {text!r} has one word only: there is nothing left of it without that")
    put = [] if replace is None else [replace]
    sources = [blank.join([*pieces[:place], *put, *pieces[place + 1 :]]) for place in range(len(pieces))]
    first, *found = model.predict([blank.join(pieces), *sources])
    before = first.n_best[0]
    log_probs = model.log_probs([(source, first.text) for source in sources])
    edits = [
        SourceEdit(
            piece, source, one.text, edit_distance(before.ids, one.n_best[0].ids) / max(len(before.ids), 1), log_prob
        )
        for piece, source, one, log_prob in zip(pieces, sources, found, log_probs, strict=True)
    ]
    return TranslationEdits(first.text, before.log_prob, spaced, edits, replace)


class TranslationEditsView(View[TranslationEdits]):
    """A source without each of its words."""

    name = "edits"
    about = "how the translation changes when a word of the source is dropped or replaced"
    Options = EditOptions
    averages = True

    def compute(self, model: AnyModel, texts: Sequence[str], options: EditOptions) -> list[TranslationEdits]:
        assert isinstance(model, Translator)
        return [translation_edits(model, text, options.replace) for text in texts]

    def panels(self, data: TranslationEdits) -> list[Panel]:
        tokens = [
            Token(
                one.word,
                min(one.changed, 1.0),
                {"translation": one.translation, "changed": f"{one.changed:.0%}", "log p": f"{one.log_prob:.2f}"},
            )
            for one in data.edits
        ]
        piece = "word" if data.spaced else "character"
        rows = [[one.word, one.translation, f"{one.changed:.0%}", f"{one.log_prob:.2f}"] for one in data.edits]
        return [
            Tokens(data.translation, tokens, scale="sequential", legend=("as before", "all else"), spaced=data.spaced),
            Table(
                f"each {piece} {'dropped' if data.replace is None else 'replaced'}",
                [
                    piece,
                    "translation without it"
                    if data.replace is None
                    else f"translation with {data.replace!r} in its place",
                    "changed",
                    "log p of the first translation",
                ],
                rows,
                note=f"With every word the first translation has log p = {data.log_prob:.2f}.",
            ),
        ]
