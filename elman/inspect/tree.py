"""The tree of a beam search: every hypothesis that was in the beam, and what became of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from elman.decode.tree import SearchNode
from elman.draw.panels import Node, Panel, Table, Tree
from elman.errors import UserError
from elman.inspect.view import AnyModel, View
from elman.tasks.search import Search
from elman.tasks.translate import Translator
from elman.train.recipe import Section

FATES = {"kept": "kept", "dropped": "pruned", "finished": "finished", "cut": "cut off"}


class TreeOptions(Section):
    """What can be asked of a search: as `elman predict` has it."""

    beam: int | None = Field(None, ge=1, le=100, description="Hypotheses side by side; 1 is greedy.")
    length_power: float | None = Field(None, ge=0, le=100, description="Scores are divided by length to this power.")
    max_length: int | None = Field(None, ge=1, le=10_000, description="Tokens at most.")
    prefix: str = Field("", description="The translation begins so.")
    require: tuple[str, ...] = Field((), description="A word that must appear; may be repeated.")
    forbid: tuple[str, ...] = Field((), description="A word that must not appear; may be repeated.")


@dataclass(frozen=True)
class TreeNode:
    """A hypothesis: the token that it ends with, and the node that it continues."""

    id: int
    parent: int | None
    token: str
    step: int
    log_prob: float
    """Of all its tokens, in nats."""
    score: float
    """What hypotheses are ranked by: the log-probability divided by the length to a power."""
    rank: int
    """Among those of its step, from 1."""
    fate: str
    """kept, pruned, finished or cut off (at the limit of length)."""
    text: str
    """All that it has written: as a prefix it lets a search go on from here."""


@dataclass(frozen=True)
class SearchedTree:
    """A beam search, and the path of the translation that it gave."""

    translation: str
    nodes: list[TreeNode]
    best: list[int]
    """The nodes of the best hypothesis, from the root."""


def search_tree(model: Translator, text: str, **options: Any) -> SearchedTree:
    """All hypotheses of the search for the translation of one text; the options are those of `Translator.predict`."""
    if len(model.parts(text, Search.of(options))) > 1:
        raise UserError(f"a text of more than {model.longest} tokens is translated in parts: give one of them")
    nodes = model.tree(text, **options).of_row(0)
    steps: dict[int, list[SearchNode]] = {}
    for node in nodes:
        steps.setdefault(node.step, []).append(node)
    ranks = {
        node.id: place
        for some in steps.values()
        for place, node in enumerate(sorted(some, key=lambda one: -one.score), start=1)
    }
    words, end = model.sides.target.tokens, model.end
    written: dict[int, list[int]] = {}
    for node in nodes:  # parents come first
        before = [] if node.parent is None else written[node.parent]
        written[node.id] = before if node.parent is None or node.token == end else [*before, node.token]
    shown = [
        TreeNode(
            node.id,
            node.parent,
            "" if node.parent is None else "<eos>" if node.token == end else words[node.token],
            node.step,
            node.log_prob,
            node.score,
            ranks[node.id],
            FATES[node.fate],
            model.sides.write(written[node.id]),
        )
        for node in nodes
    ]
    best = max((node for node in nodes if node.fate in ("finished", "cut")), key=lambda node: node.score)
    parents = {node.id: node.parent for node in nodes}
    path: list[int] = []
    above: int | None = best.id
    while above is not None:
        path.append(above)
        above = parents[above]
    return SearchedTree(model.sides.write(written[best.id]), shown, path[::-1])


class TreeView(View[SearchedTree]):
    """Every hypothesis of the beam."""

    name = "tree"
    about = "every hypothesis of the beam search, and what became of it"
    Options = TreeOptions
    averages = True

    def compute(self, model: AnyModel, texts: Sequence[str], options: TreeOptions) -> list[SearchedTree]:
        assert isinstance(model, Translator)
        asked = options.model_dump(exclude_none=True)
        return [search_tree(model, text, **asked) for text in texts]

    def panels(self, data: SearchedTree) -> list[Panel]:
        best, low = set(data.best), min(node.score for node in data.nodes)
        nodes = [
            Node(
                node.id,
                node.parent,
                node.token or "start",
                1.0 if not low else 1 - node.score / low,
                "best" if node.id in best else node.fate,
                {
                    "log-probability": f"{node.log_prob:.3f}",
                    "score": f"{node.score:.3f}",
                    "rank": f"{node.rank} of step {node.step}",
                    "what became of it": node.fate,
                },
            )
            for node in data.nodes
        ]
        fates = [node.fate for node in data.nodes if node.parent is not None]
        counts = [[fate, str(fates.count(fate))] for fate in dict.fromkeys(FATES.values()) if fate in fates]
        return [
            Tree(data.translation, nodes, note="The path of the translation is marked as best."),
            Table("hypotheses", ["what became of them", "number"], counts),
        ]
