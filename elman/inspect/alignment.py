"""Where a translator attends: a row for each token that it writes, a column for each that it reads."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from pydantic import Field

from elman.draw.panels import HeatMap, Panel, Table
from elman.inspect.view import AnyModel, View
from elman.metrics.alignments import THRESHOLD, count_kinds, fertile_sources, to_pharaoh
from elman.tasks.translate import Translator
from elman.tasks.translation import Translation
from elman.train.recipe import Section


class AlignmentOptions(Section):
    """What can be asked of an alignment."""

    target: str | None = Field(None, description="Align with this text in place of the model's own translation.")
    threshold: float = Field(THRESHOLD, gt=0, le=1, description="The weight from which on two tokens are aligned.")


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
    sets: "AlignmentSets | None" = None
    """Which tokens belong together by a threshold; None where that was not asked for."""

    @classmethod
    def of(cls, found: Translation) -> "Alignment":
        """The alignment of a translation whose weights were asked for."""
        assert found.weights is not None
        return cls(
            found.text, found.score, list(found.source_tokens), list(found.target_tokens), found.weights, found.pharaoh
        )

    def with_sets(self, found: Translation, threshold: float) -> "Alignment":
        """This alignment with the sets of tokens that belong together by a threshold."""
        return replace(self, sets=AlignmentSets.of(found, threshold))

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


@dataclass(frozen=True)
class AlignedGroup:
    """Source and target tokens, by number from 0, that are aligned with one another alone."""

    kind: str
    """one-to-one, many-to-one, one-to-many, many-to-many, spurious (no source) or unaligned (no target)."""
    sources: list[int]
    targets: list[int]


@dataclass(frozen=True)
class AlignmentSets:
    """Which tokens have an attention weight of `threshold` or more between them."""

    threshold: float
    links: str
    """Pairs `source-target` of token numbers from 0, however many a token has."""
    groups: list[AlignedGroup]
    counts: dict[str, int]
    """How many groups there are of each kind."""
    fertile: dict[str, list[int]]
    """The numbers of source tokens with several targets, and of these."""
    spurious: list[int]
    """The numbers of target tokens without a source."""
    unaligned: list[int]
    """The numbers of source tokens without a target."""

    @classmethod
    def of(cls, found: Translation, threshold: float) -> "AlignmentSets":
        """The sets of a translation whose weights were asked for."""
        links, groups = found.links(threshold), found.groups(threshold)
        return cls(
            threshold,
            to_pharaoh(links),
            [AlignedGroup(group.kind, list(group.sources), list(group.targets)) for group in groups],
            count_kinds(groups),
            {str(source): targets for source, targets in fertile_sources(links).items()},
            [group.targets[0] for group in groups if group.kind == "spurious"],
            [group.sources[0] for group in groups if group.kind == "unaligned"],
        )

    def table(self, source: Sequence[str], target: Sequence[str]) -> Table:
        """The groups with their tokens."""
        rows = [
            [group.kind, " ".join(source[at] for at in group.sources), " ".join(target[at] for at in group.targets)]
            for group in self.groups
        ]
        note = (
            f"Tokens are aligned where the weight between them is {self.threshold:g} or more. "
            "A spurious token was written without a source, an unaligned one read without a target."
        )
        return Table("what belongs together", ["alignment", "source", "target"], rows, note=note)


class AlignmentView(View[Alignment]):
    """Attention weights between source and target tokens."""

    name = "alignment"
    about = "where a translator attends while it writes"
    Options = AlignmentOptions
    averages = True

    def refusal(self, model: AnyModel) -> str | None:
        assert isinstance(model, Translator)
        return None if model.settings.attends else "it has no attention"

    def compute(self, model: AnyModel, texts: Sequence[str], options: AlignmentOptions) -> list[Alignment]:
        assert isinstance(model, Translator)
        if options.target is not None:
            found = [model.align(text, options.target) for text in texts]
        else:
            found = model.predict(list(texts), alignments=True)
        return [Alignment.of(one).with_sets(one, options.threshold) for one in found]

    def panels(self, data: Alignment) -> list[Panel]:
        assert data.sets is not None
        return [data.heat_map(data.translation), data.sets.table(data.source_tokens, data.target_tokens)]
