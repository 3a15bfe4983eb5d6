"""How sure a tagger is of each tag: a lattice of tags and tokens with the best path, and the paths that came close."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from elman.draw.panels import HeatMap, Panel, Table
from elman.inspect.methods import cut_panels
from elman.inspect.subject import TaggerSubject, cuts_of
from elman.inspect.view import AnyModel, View
from elman.tasks.tag import TagModel
from elman.train.recipe import Section

PATHS = 5
FAINT = 0.005  # a tag that is nowhere more probable is not drawn


class MarginalsOptions(Section):
    """How much is shown."""

    paths: int = Field(PATHS, ge=1, le=100, description="Tag sequences that came close, the best among them.")


@dataclass(frozen=True)
class Path:
    """A tag sequence and its probability."""

    tags: list[str]
    probability: float


@dataclass(frozen=True)
class Marginals:
    """p(tag | sentence) of every tag at every token."""

    tokens: list[str]
    tags: list[str]
    """Those of the network."""
    crf: bool
    """Whether the tags are scored as a sequence; else each token has a softmax of its own."""
    probabilities: list[list[float]]
    """A row for each tag, a column for each token; a column sums to 1."""
    paths: list[Path]
    """The most probable tag sequences, best first."""
    cut: int = 0
    """Tokens behind these, which are left out."""


def marginals(model: TagModel, texts: Sequence[str], paths: int = PATHS) -> list[Marginals]:
    """The probability of every tag at every token of each text, and the best tag sequences."""
    import torch

    from elman.nn.crf import CRF

    subject = TaggerSubject(model)
    cuts = cuts_of(subject, texts)
    with torch.inference_mode():
        # Without a CRF tags are independent: that is a CRF whose transitions all score 0.
        crf = model.network.crf or CRF(len(subject.names))
        found = []
        for cut, output in zip(cuts, subject.outputs([cut.tokens for cut in cuts]), strict=True):
            emissions, lengths = torch.from_numpy(np.asarray(output, np.float32)[None]), torch.tensor([len(output)])
            table = crf.marginals(emissions, lengths)[0].T.tolist()  # K x T
            best, scores = crf.n_best_paths(emissions, lengths, paths)
            sure = (scores - crf.partition(emissions, lengths)).exp()[0].tolist()
            rows = [(row, p) for row, p in zip(best[0].tolist(), sure, strict=True) if p > 0]  # there may be fewer
            close = [Path([subject.names[id] for id in row], p) for row, p in rows]
            found.append(Marginals(list(cut.pieces), subject.names, model.config.model.crf, table, close, cut.left_out))
    return found


class MarginalsView(View[Marginals]):
    """Tags and tokens, each pair on the colour of its probability."""

    name = "marginals"
    about = "how probable each tag is at each token, and which tag sequences came close"
    takes_tokens = True
    Options = MarginalsOptions

    def compute(self, model: AnyModel, texts: Sequence[str], options: MarginalsOptions) -> list[Marginals]:
        assert isinstance(model, TagModel)
        return marginals(model, texts, options.paths)

    def panels(self, data: Marginals) -> list[Panel]:
        best = data.paths[0].tags
        shown = [n for n, row in enumerate(data.probabilities) if max(row) >= FAINT or data.tags[n] in best]
        places = {data.tags[n]: row for row, n in enumerate(shown)}
        heat = HeatMap(
            "marginals of the CRF" if data.crf else "probabilities of the tags",
            [data.probabilities[n] for n in shown],
            [data.tags[n] for n in shown],
            data.tokens,
            marked=[(places[tag], column) for column, tag in enumerate(best)],
            note="A frame is the best path. Tags that are nowhere above 0.5 % are left out.",
        )
        rows = [
            [str(rank), f"{path.probability:.4f}", difference(data.tokens, best, path.tags) if rank > 1 else "the best"]
            for rank, path in enumerate(data.paths, 1)
        ]
        return [
            *cut_panels(data.cut, len(data.tokens)),
            heat,
            Table("what came close", ["rank", "probability", "where it differs from the best"], rows),
        ]


def difference(tokens: Sequence[str], best: Sequence[str], other: Sequence[str]) -> str:
    """Where a tag sequence differs from another.

    >>> difference(["Ada", "left"], ["B-PER", "O"], ["O", "O"])
    'Ada: B-PER -> O'
    """
    rows = zip(tokens, best, other, strict=True)
    return ", ".join(f"{token}: {one} -> {two}" for token, one, two in rows if one != two)
