"""What a beam search did, kept for drawing it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class SearchNode:
    """One hypothesis of a search: the id that it ends with, and the node that it continues.

    `fate` is `kept` (it was continued), `dropped` (nothing that continues it was good enough, or the search was
    over), `finished` (it ended in the stop id) or `cut` (the limit of length came first).
    """

    id: int
    parent: int | None
    token: int
    log_prob: float
    score: float
    step: int
    row: int
    fate: str


@dataclass
class SearchTree:
    """Every hypothesis that a beam search kept or finished; give an empty one to `beam_search` to be filled.

    >>> tree = SearchTree()
    >>> roots = tree.grow(0, [0], None, [1], [0.0], [0.0], "dropped")
    >>> leaves = tree.grow(1, [0, 0], [0, 0], [5, 6], [-0.5, -1.0], [-0.5, -1.0], "dropped")
    >>> [(node.id, node.parent, node.token, node.fate) for node in tree.nodes]
    [(0, None, 1, 'kept'), (1, 0, 5, 'dropped'), (2, 0, 6, 'dropped')]
    """

    nodes: list[SearchNode] = field(default_factory=list)

    def grow(
        self,
        step: int,
        rows: Sequence[int],
        parents: Sequence[int] | None,
        tokens: Sequence[int],
        log_probs: Sequence[float],
        scores: Sequence[float],
        fate: str,
    ) -> list[int]:
        """Add one node for each of some hypotheses; their ids."""
        first = len(self.nodes)
        for place, row in enumerate(rows):
            parent = None if parents is None else parents[place]
            if parent is not None:
                self.nodes[parent].fate = "kept"
            node = SearchNode(first + place, parent, tokens[place], log_probs[place], scores[place], step, row, fate)
            self.nodes.append(node)
        return list(range(first, len(self.nodes)))

    def of_row(self, row: int) -> list[SearchNode]:
        """The nodes of one sentence, parents before children."""
        return [node for node in self.nodes if node.row == row]

    def to_json(self) -> list[dict[str, Any]]:
        """The nodes as plain objects.

        >>> tree = SearchTree()
        >>> _ = tree.grow(0, [0], None, [1], [0.0], [0.0], "cut")
        >>> tree.to_json()[0]["fate"]
        'cut'
        """
        return [asdict(node) for node in self.nodes]
