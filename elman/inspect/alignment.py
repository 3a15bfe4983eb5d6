"""Where a translator attends: a row for each token that it writes, a column for each that it reads."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from elman.draw.panels import HeatMap, Panel
from elman.inspect.view import AnyModel, View
from elman.tasks.translate import Translator
from elman.tasks.translation import Translation
from elman.train.recipe import Section


class AlignmentOptions(Section):
    """What can be asked of an alignment."""

    target: str | None = Field(None, description="Align with this text in place of the model's own translation.")


@dataclass(frozen=True)
class Alignment:
    """A source, its translation, and the attention weights between their tokens (T x S)."""

    translation: str
    score: float
    source_tokens: list[str]
    target_tokens: list[str]
    weights: np.ndarray
    alignment: str
    """Pairs `source-target` of token numbers from 0, each target token with the source token it attends to most."""

    @classmethod
    def of(cls, found: Translation) -> "Alignment":
        """The alignment of a translation whose weights were asked for."""
        assert found.weights is not None
        return cls(
            found.text, found.score, list(found.source_tokens), list(found.target_tokens), found.weights, found.pharaoh
        )

    def heat_map(self, title: str, marked: Sequence[tuple[int, int]] = ()) -> HeatMap:
        """The weights as a picture."""
        return HeatMap(
            title,
            self.weights.tolist(),
            self.target_tokens,
            self.source_tokens,
            marked=marked,
            note="A row is a token written, a column a token read; a row sums to 1. "
            "Weights say where the model attends, not why it wrote a word.",
        )


class AlignmentView(View[Alignment]):
    """Attention weights between source and target tokens."""

    name = "alignment"
    about = "where a translator attends while it writes"
    tasks = ("translate",)
    Options = AlignmentOptions

    def refusal(self, model: AnyModel) -> str | None:
        assert isinstance(model, Translator)
        return None if model.settings.attends else "it has no attention"

    def compute(self, model: AnyModel, texts: Sequence[str], options: AlignmentOptions) -> list[Alignment]:
        assert isinstance(model, Translator)
        if options.target is not None:
            return [Alignment.of(model.align(text, options.target)) for text in texts]
        return [Alignment.of(found) for found in model.predict(list(texts), alignments=True)]

    def panels(self, data: Alignment) -> list[Panel]:
        return [data.heat_map(data.translation)]
