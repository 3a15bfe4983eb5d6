"""Bracketed trees, one a line: `(3 (2 It) (4 (3 works) (2 .)))`. Nothing here recurses, however deep a tree is."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from elman.errors import UserError
from elman.records.lines import FAIL, BadLines, numbered, read_lines
from elman.records.places import Place, RecordError

PIECE = re.compile(r"[()]|[^ \t\n()]+")  # other blanks, as in 8 1/2 written with a fixed one, belong to words
TREE_LINE = re.compile(r"\(\S+ .*\)\s*$")  # how a line of trees looks
WRITTEN_AS = {"-LRB-": "(", "-RRB-": ")"}  # a bracket that is a word


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """A node: its label, and either the word that it stands for or the trees below it.

    >>> tree = parse_tree("(3 (2 It) (4 (3 works) (2 .)))")
    >>> tree.label, tree.tokens(), len(tree.children)
    ('3', ['It', 'works', '.'], 2)
    >>> tree
    Tree('(3 (2 It) (4 (3 works) (2 .)))')
    """

    label: str
    word: str | None = None
    children: tuple["Tree", ...] = ()

    def nodes(self) -> Iterator["Tree"]:
        """This node and all below it, each before its children, from left to right."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))

    def tokens(self) -> list[str]:
        """The words, from left to right."""
        return [node.word for node in self.nodes() if node.word is not None]

    def __str__(self) -> str:
        pieces: list[str] = []
        waiting: list[Tree | str] = [self]
        while waiting:
            node = waiting.pop()
            if isinstance(node, str):
                pieces.append(node)
            elif node.word is not None:
                pieces.append(f" ({node.label} {escaped(node.word)})")
            else:
                pieces.append(f" ({node.label}")
                waiting.extend([")", *reversed(node.children)])
        return "".join(pieces).removeprefix(" ")

    def __repr__(self) -> str:
        return f"Tree({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


def parse_tree(text: str, where: Place | str = "the tree") -> Tree:
    """The tree that `text` writes; `where` it stands is for messages. Escapes of the Penn treebank are undone.

    >>> parse_tree("(2 (2 and\\\\/or) (2 -LRB-))").tokens()
    ['and/or', '(']
    >>> parse_tree("(2 (2 and)", Place(Path("sst.txt"), 7))
    Traceback (most recent call last):
    elman.records.places.RecordError: sst.txt:7 ends with 1 bracket still open: add the missing )
    """
    opened: list[list[str | Tree]] = []  # for each open bracket, what has come behind it
    root: Tree | None = None
    for piece in PIECE.findall(text):
        if root is not None:
            raise _wrong(where, f"goes on with {piece!r} where its tree is closed: mend the brackets")
        if piece == "(":
            opened.append([])
        elif not opened:
            raise _wrong(where, f"begins with {piece!r} where a tree begins with (: write (label word)")
        elif piece != ")":
            opened[-1].append(piece)
        else:
            node = _node(opened.pop(), where)
            if opened:
                opened[-1].append(node)
            else:
                root = node
    if root is None:
        plural = "" if len(opened) == 1 else "s"
        missing = f"add the missing {')' * len(opened)}" if len(opened) < 4 else "mend the line"
        raise _wrong(where, f"ends with {len(opened)} bracket{plural} still open: {missing}")
    return root


def _node(parts: list[str | Tree], where: Place | str) -> Tree:
    label, below = parts[:1], parts[1:]
    if label and isinstance(label[0], str):
        if len(below) == 1 and isinstance(below[0], str):
            return Tree(label[0], word=WRITTEN_AS.get(below[0], below[0].replace("\\/", "/")))
        trees = tuple(tree for tree in below if isinstance(tree, Tree))
        if trees and len(trees) == len(below):
            return Tree(label[0], children=trees)
    shown = " ".join("(...)" if isinstance(part, Tree) else part for part in parts)
    lacking = ", a node without label," if label and isinstance(label[0], Tree) else ""
    raise _wrong(where, f"has ({shown}){lacking} where a node is a label with one word or with trees: mend it")


def _wrong(where: Place | str, problem: str) -> UserError:
    return RecordError(where, problem) if isinstance(where, Place) else UserError(f"{where} {problem}")


def escaped(word: str) -> str:
    """A word as a bracketed tree writes it, with the escapes of the Penn treebank.

    >>> escaped("("), escaped("and/or")
    ('-LRB-', 'and\\\\/or')
    """
    return next((name for name, sign in WRITTEN_AS.items() if sign == word), word.replace("/", "\\/"))


def brackets(tree: Tree) -> str:
    """A tree as a line of brackets without its words: of a word its label is left (Vinyals et al. 2015).

    >>> brackets(parse_tree("(S (NP (D the) (N dog)) (V ran))"))
    '(S (NP D N ) V )'
    """
    pieces: list[str] = []
    waiting: list[Tree | str] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            pieces.append(node)
        elif node.word is not None:
            pieces.append(node.label)
        else:
            pieces.append(f"({node.label}")
            waiting.extend([")", *reversed(node.children)])
    return " ".join(pieces)


def with_words(line: str, words: Sequence[str]) -> Tree | None:
    """The tree of a line of brackets and its words; None where the brackets are no tree of so many words.

    >>> with_words("(S (NP D N ) V )", ["the", "dog", "ran"])
    Tree('(S (NP (D the) (N dog)) (V ran))')
    >>> with_words("(S (NP D N )", ["the", "dog"]) is with_words("(S D )", ["the", "dog"]) is None
    True
    """
    left = iter(words)
    pieces = []
    for piece in line.split():
        if piece == ")" or (piece.startswith("(") and len(piece) > 1):
            pieces.append(piece)
        elif (word := next(left, None)) is not None:
            pieces.append(f"({piece} {escaped(word)})")
        else:
            return None
    if next(left, None) is not None:
        return None
    try:
        return parse_tree(" ".join(pieces))
    except UserError:
        return None


def iterate_trees(path: Path, encoding: str = "utf-8", bad: BadLines = FAIL) -> Iterator[tuple[Tree, Place]]:
    """The trees of a file, one a line, each with where it stands; empty lines are passed over.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "sst.txt"
    >>> _ = place.write_text("(3 (2 It) (3 works))\\n")
    >>> [(tree.label, where.line) for tree, where in iterate_trees(place)]
    [('3', 1)]
    """
    for where, line in numbered(path, read_lines(path, encoding, bad)):
        try:
            tree = parse_tree(line, where)
        except UserError as error:
            bad(error)
        else:
            yield tree, where
