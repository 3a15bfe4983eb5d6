"""Where things stand that have to find their place: the nodes of a tree, and names beside points."""

from collections.abc import Sequence
from dataclasses import dataclass

from elman.draw.panels import Node


@dataclass(frozen=True)
class NodePlace:
    """Where a node stands, in generations and in lines; and the number of its parent among the nodes."""

    depth: int
    line: float
    parent: int | None


def places(nodes: Sequence[Node]) -> list[NodePlace]:
    """The place of each node: a step to the right for each generation, leaves below each other.

    A parent stands halfway between its first and its last child.

    >>> [(place.depth, place.line) for place in places([Node(7, None, "a"), Node(8, 7, "b"), Node(9, 7, "c")])]
    [(0, 0.5), (1, 0.0), (1, 1.0)]
    """
    numbers = {node.id: number for number, node in enumerate(nodes)}
    parents = [None if node.parent is None else numbers[node.parent] for node in nodes]
    children: list[list[int]] = [[] for _ in nodes]
    depths = [0] * len(nodes)
    for number, parent in enumerate(parents):
        if parent is not None:
            if parent >= number:
                raise ValueError(f"node {nodes[number].id} stands before its parent")
            children[parent].append(number)
            depths[number] = depths[parent] + 1
    lines = [0.0] * len(nodes)
    leaf = 0.0
    waiting = [number for number, parent in enumerate(parents) if parent is None][::-1]
    while waiting:  # leaves from the top, whatever the depth of the tree
        number = waiting.pop()
        if not children[number]:
            lines[number] = leaf
            leaf += 1
        waiting += children[number][::-1]
    for number in range(len(nodes) - 1, -1, -1):
        if children[number]:
            lines[number] = (lines[children[number][0]] + lines[children[number][-1]]) / 2
    return [NodePlace(*place) for place in zip(depths, lines, parents, strict=True)]


STYLES = {"best": 0, "": 1, "kept": 1, "pruned": 2, "finished": 3, "cut off": 4}
STYLES |= {"decides": 0, "turns": 2, "turns and decides": 4}
"""Of the states of nodes: thick, plain, dashed, dotted, and dashes between dots."""


def state_styles(nodes: Sequence[Node]) -> dict[str, int]:
    """The style of each state: always the same for those of a search, by their order for any other.

    >>> state_styles([Node(0, None, "a", state="pruned"), Node(1, 0, "b", state="best"), Node(2, 0, "c", state="odd")])
    {'pruned': 2, 'best': 0, 'odd': 1}
    """
    states = list(dict.fromkeys(node.state for node in nodes))
    taken = {STYLES[state] for state in states if state in STYLES}
    free = [style for style in range(5) if style not in taken] or list(range(5))
    others = [state for state in states if state not in STYLES]
    return {
        state: STYLES.get(state, free[others.index(state) % len(free)] if state in others else 0) for state in states
    }


def column_widths(placed: Sequence[NodePlace], widths: Sequence[float]) -> list[float]:
    """The width of each generation of a tree: that of its widest node."""
    found = [0.0] * (max((place.depth for place in placed), default=0) + 1)
    for place, width in zip(placed, widths, strict=True):
        found[place.depth] = max(found[place.depth], width)
    return found


class Room:
    """What is free for names beside points, between two ends: that which no point and no other name takes."""

    def __init__(self, points: Sequence[tuple[float, float]], size: float, ends: tuple[float, float]) -> None:
        self.size, self.ends = size, ends
        part = 0.8 * size
        self.taken = [(x - part, y - part, x + part, y + part) for x, y in points]

    def side(self, x: float, y: float, width: float) -> int | None:
        """Take the room to the right of a point (1) or to its left (-1), whichever is free; None if neither is.

        >>> room = Room([(0, 0), (10, 0)], 1, (-50, 50))
        >>> room.side(0, 0, 20), room.side(10, 0, 20), room.side(0, 0, 20)
        (-1, 1, None)
        """
        top, bottom = y - self.size, y + self.size
        for side in (1, -1):
            left, right = sorted((x + self.size * side, x + (self.size + width) * side))
            free = self.ends[0] < left and right < self.ends[1]
            if free and not any(left < b[2] and b[0] < right and top < b[3] and b[1] < bottom for b in self.taken):
                self.taken.append((left, top, right, bottom))
                return side
        return None
