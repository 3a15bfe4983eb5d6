"""Trees with labels, whatever they are written in: brackets, tables, CoNLL-U; plain texts to be given a tree.

trees         bracketed trees, a label at every node, `_` where there is none    sst-trees/train.txt
csv, tsv      a column of trees and one of labels, which are those of the roots   train.tsv
jsonl, json   a field of each                                                     train.jsonl
conllu        dependency trees; the label is in a comment, or in a column         en_ewt-ud-train.conllu

In tables and objects a tree may be written without labels, `( ( a fine ) film )`, or with others than classes, as
`(NP (D a) (N film))`: of these only its shape and its words are read.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np

from elman.errors import UserError
from elman.forest import NONE, Trees
from elman.ragged import Ints
from elman.records import tables
from elman.records.columns import Columns, Parts, Roles
from elman.records.labelled import POLARITY, Classes
from elman.records.lines import FAIL, BadLines, first_lines, made, read_lines
from elman.records.paths import Paths, expand
from elman.records.places import Place, RecordError
from elman.records.reader import Files, TwoPartReader, is_table, one_format
from elman.records.tables import Column, empty_text, table_format, text_of
from elman.records.tagged import CONLLU, FEATURE, Block, blocks, conllu_tag
from elman.records.trees import PIECE, Tree, escaped, iterate_trees, parse_tree

Format = Literal["trees", "csv", "tsv", "jsonl", "json", "conllu"]
UNLABELLED = "_"
"""What is written in the place of a label that a node does not have."""
LIKE_A_TREE = re.compile(r"\(\s*[^\s()]*\s*\(")
ONE_LEAF = re.compile(r"\((\S+) [^\s()]+\)$")
BARE = re.compile(r"\((?=[\s(])")  # brackets without labels have nothing, or another bracket, behind them
NO_WORD = re.compile(r"\d+[-.]\d+")  # a token of several words, or an empty node, in the first column of CoNLL-U
WORD = re.compile(
    r"\w+(?=n't\b)|n't\b|'(?:s|re|ve|ll|d|m)\b|\d+(?:[.,]\d+)+|\w+(?:[-.]\w+)*|\.\.\.|--|``|''|[^\w\s]", re.IGNORECASE
)
"""A word of a running text, as the treebanks of the Penn cut it: `It 's n't`, `well-made`, `...`."""


@dataclass(frozen=True, eq=False, repr=False)
class LabelledTree:
    """A tree as lists over its nodes, children before their parents and the root last; or a text that has none yet.

    >>> tree = flattened(parse_tree("(3 (2 It) (4 (3 works) (2 .)))"))
    >>> tree.tokens, tree.parents, tree.words, tree.labels
    (('It', 'works', '.'), (4, 3, 3, 4, -1), (0, 1, 2, -1, -1), ('2', '3', '2', '4', '3'))
    >>> tree
    LabelledTree('(3 (2 It) (4 (3 works) (2 .)))')
    """

    tokens: tuple[str, ...]
    """The words, in the order of the text."""
    parents: tuple[int, ...] = ()
    """Of each node, -1 for the root; empty where the text has no tree yet."""
    words: tuple[int, ...] = ()
    """Which of the tokens stands at each node; -1 for none."""
    labels: tuple[str | None, ...] = ()
    """Of each node, None where it has none."""
    where: Place | None = None
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The words with blanks between them."""
        return " ".join(self.tokens)

    @property
    def label(self) -> str | None:
        """That of the root."""
        return self.labels[-1] if self.labels else None

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes two trees the same."""
        return self.tokens, self.parents, self.words, self.labels

    @property
    def is_dependency(self) -> bool:
        """Whether words stand above other words."""
        return len(self.words) > 1 and self.words[-1] >= 0

    @cached_property
    def depth(self) -> int:
        """The generations below the root; 0 for a tree of one leaf."""
        heights = [0] * len(self.parents)
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                heights[parent] = max(heights[parent], heights[node] + 1)
        return heights[-1] if heights else 0

    def __len__(self) -> int:
        return max(len(self.parents), 2 * len(self.tokens) - 1)

    def binary(self) -> "LabelledTree":
        """The tree with at most two children a node: of more the first two are joined, then the next (without a label).

        >>> print(flattened(parse_tree("(3 (2 a) (2 b) (2 c))")).binary())
        (3 (_ (2 a) (2 b)) (2 c))
        """
        children = self.children()
        if all(len(below) in (0, 2) for below in children):
            return self
        parents, words, labels = list[int](), list[int](), list[str | None]()
        numbers: dict[int, int] = {}

        def add(word: int, label: str | None, below: list[int]) -> int:
            parents.append(NONE)
            words.append(word)
            labels.append(label)
            for child in below:
                parents[child] = len(parents) - 1
            return len(parents) - 1

        # The subtree of a node stands in a row before it: a join has to follow the second of what it joins at once.
        ends = {below[at]: (node, at) for node, below in enumerate(children) for at in range(1, len(below) - 1)}
        joined: dict[int, int] = {}
        for node, below in enumerate(children):
            first = [joined.pop(node)] if node in joined else [numbers[child] for child in below[:1]]
            numbers[node] = add(self.words[node], self.labels[node], [*first, *(numbers[b] for b in below[-1:])][-2:])
            if node in ends:
                parent, at = ends[node]
                left = joined.get(parent, numbers[children[parent][at - 1]])
                joined[parent] = add(NONE, None, [left, numbers[node]])
        return replace(self, parents=tuple(parents), words=tuple(words), labels=tuple(labels))

    def children(self) -> list[list[int]]:
        """The numbers of each node's children, from left to right."""
        below: list[list[int]] = [[] for _ in self.parents]
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                below[parent].append(node)
        return below

    def heads(self) -> list[int]:
        """Of a dependency tree: the head of each word in the order of the text, -1 for the root."""
        above = dict(zip(self.words, self.parents, strict=True))
        return [NONE if above[word] < 0 else self.words[above[word]] for word in range(len(self.tokens))]

    def nested(self) -> Tree:
        """The tree as nodes below nodes."""
        nodes: list[Tree] = []
        for label, word, below in zip(self.labels, self.words, self.children(), strict=True):
            own = self.tokens[word] if word >= 0 else None
            nodes.append(Tree(label or UNLABELLED, own, tuple(nodes[child] for child in below)))
        return nodes[-1]

    def with_shape(self, parents: Iterable[int], words: Iterable[int]) -> "LabelledTree":
        """The text of this tree with another tree over it, which has no labels but the root's own."""
        above = tuple(parents)
        labels = (*[None] * (len(above) - 1), self.label)
        return replace(self, parents=above, words=tuple(words), labels=labels)

    def written(self, labels: Iterable[str | None]) -> str:
        """The tree in brackets with other labels; a word above others stands before them."""
        parts: list[str] = []
        for label, word, below in zip(labels, self.words, self.children(), strict=True):
            own = [label or UNLABELLED] + ([escaped(self.tokens[word])] if word >= 0 else [])
            parts.append(f"({' '.join([*own, *(parts[child] for child in below)])})")
        return parts[-1] if parts else self.text

    def __str__(self) -> str:
        return self.written(self.labels)

    def __repr__(self) -> str:
        return f"LabelledTree({str(self)!r})"


def trees_of(records: Iterable[LabelledTree], ids: Iterable[Ints]) -> Trees:
    """Some records as a network reads them; `ids` are those of their tokens.

    >>> tree = flattened(parse_tree("(3 (2 a) (2 film))"))
    >>> trees_of([tree], [np.array([7, 9])]).tokens.data.tolist()
    [7, 9, -1]
    """
    parents, tokens = [], []
    for record, numbers in zip(records, ids, strict=True):
        words = np.asarray(record.words, np.int64)
        parents.append(np.asarray(record.parents, np.int64))
        tokens.append(np.where(words >= 0, numbers[words], NONE))
    return Trees.of(parents, tokens)


def flattened(
    tree: Tree, where: Place | None = None, *, labels: Literal["all", "root", "none"] = "all"
) -> LabelledTree:
    """A bracketed tree as lists; a node with a single child is that child, with the label that stands above."""
    tokens, parents, words, names = list[str](), list[int](), list[int](), list[str | None]()
    waiting: list[tuple[Tree, str, bool]] = [(tree, tree.label, False)]
    made_: list[int] = []  # nodes without a parent yet
    while waiting:
        node, label, closes = waiting.pop()
        while len(node.children) == 1:
            node = node.children[0]
            label = node.label if label == UNLABELLED else label
        if node.word is None and not closes:
            waiting += [(node, label, True), *((child, child.label, False) for child in reversed(node.children))]
            continue
        if node.word is None:
            for child in made_[-len(node.children) :]:
                parents[child] = len(parents)
            del made_[-len(node.children) :]
        made_.append(len(parents))
        parents.append(NONE)
        words.append(NONE if node.word is None else len(tokens))
        names.append(None if label == UNLABELLED or labels == "none" else label)
        tokens += [] if node.word is None else [node.word]
    if labels == "root":
        names = [*[None] * (len(names) - 1), names[-1]]
    return LabelledTree(tuple(tokens), tuple(parents), tuple(words), tuple(names), where)


def parse_shape(text: str, where: Place | str = "the tree") -> Tree:
    """A tree whose labels are no classes, or that is written without any.

    >>> print(parse_shape("( ( a fine ) film )"))
    (_ (_ (_ a) (_ fine)) (_ film))
    >>> parse_shape("(NP (D a) (N film))").tokens()
    ['a', 'film']
    """
    if BARE.match(text.strip()) and len(BARE.findall(text)) == text.count("("):
        pieces, opened = list[str](), 0
        for piece in PIECE.findall(text):
            opened += (piece == "(") - (piece == ")")
            word = opened > 0 and piece not in "()"  # behind the tree there is none
            pieces.append(f"({UNLABELLED} {piece})" if word else f"({UNLABELLED}" if piece == "(" else piece)
        text = " ".join(pieces)
    return parse_tree(text, where)


def cut(text: str) -> tuple[str, ...]:
    """The words of a plain text, as the treebanks cut them; one that is cut already stays as it is.

    >>> cut("It isn't well-made..."), cut("It is n't well-made ...")
    (('It', 'is', "n't", 'well-made', '...'), ('It', 'is', "n't", 'well-made', '...'))
    """
    return tuple(WORD.findall(text))


class TreeReader(TwoPartReader[LabelledTree]):
    """Reads trees with their labels: of files, of data in memory; trees and plain texts of lines to predict for.

    `tree` and `label` are columns of a table by name or by number from 1; of CoNLL-U `label` is what the comment with
    the label is called (`# label = good`), or a column that has one for each word: upos, xpos, deprel, feats.NAME.
    `labels` "root" reads no others. `classes` "binary" makes positive and negative of the five grades of sentiment
    trees: the neutral ones are left out, and neutral nodes have no label. `known` are the labels of a model: what is
    read with it may begin with one of them, `(3 fine)`.

    >>> reader = TreeReader()
    >>> [record.label for record in reader.objects(["(3 (2 It) (3 works))", ("( It works )", "good")])]
    ['3', 'good']
    >>> [len(record.parents) for record in reader.lines(["It works.", "(3 (2 It) (3 works))"], Path("-"))]
    [0, 3]
    """

    kind = LabelledTree
    roles = Roles(first="tree", usual=(("tree", "parse", "text", "sentence"), Roles().usual[1]),
                  options="-s data.tree_column=NAME -s data.label_column=NAME")  # fmt: skip

    def __init__(
        self,
        *,
        format: Format | None = None,
        tree: Column = None,
        label: Column = None,
        labels: Literal["all", "root"] = "all",
        classes: Classes = "fine",
        known: Iterable[str] = (),
        encoding: str = "utf-8",
    ) -> None:
        super().__init__(format, get_args(Format), (tree, label), encoding)
        self.labels, self.classes, self.known = labels, classes, frozenset(known)

    def files(self, paths: Paths) -> Files[LabelledTree]:
        """The trees of some files, or of all in a folder."""
        places = expand(paths)
        if not places:
            raise UserError("no file with trees was named: give at least one")
        format = self.format or self._guess_format(places)
        if is_table(format):
            table = cast(tables.Format, format)
            columns = self.find_columns(places[0], table)
            return Files(places, format, "trees", partial(self.read_table, places, table, columns), columns.guess)
        return Files(places, format, "trees", lambda bad: self._read(places, format, bad))

    def _read(self, paths: list[Path], format: str, bad: BadLines) -> Iterator[LabelledTree]:
        for path in paths:
            if format == "conllu":
                yield from self._kept(self._conllu(path, read_lines(path, self.encoding, bad), bad), bad)
            else:
                trees = (
                    flattened(tree, at, labels=self.labels) for tree, at in iterate_trees(path, self.encoding, bad)
                )
                yield from self._kept(trees, bad)

    def _kept(self, trees: Iterable[LabelledTree], bad: BadLines) -> Iterator[LabelledTree]:
        return made((partial(self._with_classes, tree) for tree in trees), bad)

    def _with_classes(self, tree: LabelledTree) -> LabelledTree | None:
        """The tree with the labels that are asked for; None where it is neutral and there are two classes."""
        where = tree.where or Place("the data", 1)
        if tree.label is None:
            raise RecordError(where, "has no label at its root: write one, (LABEL ...)")
        if self.classes == "coarse":
            labels = tuple(None if label is None else label.partition(":")[0] for label in tree.labels)
            return replace(tree, labels=labels)
        if self.classes != "binary":
            return tree
        for label in tree.labels:
            if label is not None and label not in POLARITY:
                wants = "where -s data.classes=binary wants 0 to 4: mend it, or leave the setting out"
                raise RecordError(where, f"has the label {label!r} {wants}")
        labels = tuple(None if label is None else POLARITY[label] for label in tree.labels)
        return None if labels[-1] is None else replace(tree, labels=labels)

    def record(self, parts: Parts, name: Column) -> LabelledTree | None:
        """A tree of a table, with the label of its own column."""
        where, text = parts.where, parts.first.strip()
        if not text:
            raise empty_text(where)
        if not text.startswith("("):
            raise RecordError(
                where, "has a text without brackets where a tree belongs: write it as ( a ( fine film ) )"
            )
        tree = flattened(parse_shape(text, where), where, labels="none")
        label = text_of(where, parts.second, name).strip()
        if not label:
            raise RecordError(where, "has an empty label: write one, or remove the line")
        return self._with_classes(replace(tree, labels=(*tree.labels[:-1], label)))

    def read_table(
        self, paths: Iterable[Path], format: tables.Format, columns: Columns, bad: BadLines
    ) -> Iterator[LabelledTree]:
        """The trees of tables and files of objects; plain texts, where no row begins with a bracket, are refused."""
        places, quiet = list(paths), BadLines("skip")
        texts = (
            part.first.strip()
            for path in places
            for part in columns.parts(self.rows(path, format, quiet), quiet)
            if part.first.strip()
        )
        first = next(texts, "(")
        if not first.startswith("(") and not any(text.startswith("(") for text in texts):
            raise UserError(
                f"{places[0]} holds plain texts and no trees in column {columns.first!r}: learn from texts with "
                "elman train classify, or write trees, as ( a ( fine film ) )"
            )
        yield from super().read_table(places, format, columns, bad)

    def _object(self, where: Place, item: Any, columns: Any) -> LabelledTree | None:
        if isinstance(item, str):
            if not item.strip():
                raise empty_text(where)
            return self._with_classes(flattened(parse_tree(item.strip(), where), where, labels=self.labels))
        return super()._object(where, item, columns)

    def question(self, where: Place, text: str, fields: dict[str, Any]) -> LabelledTree:
        leaf = ONE_LEAF.match(text)
        if LIKE_A_TREE.match(text) or (leaf is not None and leaf[1] in (*self.known, UNLABELLED)):
            try:
                return replace(flattened(parse_shape(text, where), where), fields=fields)
            except RecordError as error:
                raise RecordError(where, f"looks like a tree, but {error.problem}") from None
        tokens = cut(text)
        if not tokens:
            raise RecordError(where, "has no words: write some, or remove the line")
        return LabelledTree(tokens, where=where, fields=fields)

    def lines(
        self,
        lines: Iterable[str],
        where: Path,
        bad: BadLines = FAIL,
        *,
        format: str | None = None,
        column: Column = None,
        live: bool = False,
    ) -> Iterator[LabelledTree]:
        """Trees and plain texts to predict labels for; `format` is csv, tsv, jsonl, json, txt or conllu."""
        if format == "conllu" or (format is None and ".conllu" in where.suffixes):
            return self._conllu(where, lines, bad, asked=True)
        return super().lines(lines, where, bad, format=format, column=column, live=live)

    # CoNLL-U

    def _conllu(
        self, path: Path, lines: Iterable[str], bad: BadLines, *, asked: bool = False
    ) -> Iterator[LabelledTree]:
        name = str(self.told[1] or "label")
        return made((partial(_dependencies, block, name, self.labels, asked) for block in blocks(path, lines)), bad)

    def _guess_format(self, paths: list[Path]) -> str:
        named = ["conllu" if ".conllu" in path.suffixes else table_format(path) for path in paths]
        if (format := one_format(paths, named)) is not None:
            return format
        lines = [line for path in paths for line in first_lines(path, self.encoding, 20)]
        if lines and lines[0].lstrip().startswith("("):
            return "trees"
        if (shown := self.shown_format(lines)) is not None:
            return shown
        raise UserError(
            f"{paths[0]} does not show its trees: give them one a line in brackets, (3 (2 It) (3 works)), as a table "
            "with a column of trees and one of labels, or as CoNLL-U (.conllu)"
        )


def is_of_words(name: str) -> bool:
    """Whether a label of CoNLL-U is a column, which has one for each word, and not a comment.

    >>> is_of_words("deprel"), is_of_words("feats.Number"), is_of_words("label")
    (True, True, False)
    """
    return name in CONLLU or FEATURE.fullmatch(name) is not None


def _dependencies(block: Block, name: str, labels: str, asked: bool) -> LabelledTree | None:
    """The dependency tree of a sentence of CoNLL-U."""
    rows = [(where, line.split("\t")) for where, line in block if not line.startswith("#")]
    for at, row in rows:
        if len(row) != 10:
            raise RecordError(at, f"has {len(row)} columns where 10 belong: mend the line")
        if not row[1].strip():
            raise RecordError(at, "has no word in its second column: write one")
    rows = [(at, row) for at, row in rows if not NO_WORD.fullmatch(row[0])]
    if not rows:
        return None
    where = rows[0][0]
    heads = _heads(rows)
    order = _post_order(rows, heads)
    numbers = {word: node for node, word in enumerate(order)}
    found: list[str | None] = [None] * len(rows)
    if is_of_words(name):
        found = [conllu_tag(rows[word][1], name) for word in order]
        found = found if labels == "all" else [*[None] * (len(found) - 1), found[-1]]
    elif not asked:
        comments = [line.lstrip("# \t").partition("=") for _, line in block if line.startswith("#")]
        told = {key.strip(): value.strip() for key, mark, value in comments if mark}
        if not told.get(name):
            columns = ", ".join(CONLLU)
            raise RecordError(
                where,
                f"has no comment '# {name} = ...' before it: write one, or say -s data.label_column=NAME for another, "
                f"or a column ({columns}, feats.NAME)",
            )
        found[-1] = told[name]
    parents = tuple(NONE if heads[word] < 0 else numbers[heads[word]] for word in order)
    return LabelledTree(tuple(row[1] for _, row in rows), parents, tuple(order), tuple(found), where)


def _heads(rows: list[tuple[Place, list[str]]]) -> list[int]:
    """The head of each word, from 0; -1 for the one root."""
    heads: list[int] = []
    for number, (at, row) in enumerate(rows, 1):
        if row[0] != str(number):
            raise RecordError(
                at, f"has the number {row[0]!r} where {number} belongs, by which heads are named: mend it"
            )
        if not row[6].isdecimal() or len(row[6]) > 9 or int(row[6]) > len(rows):
            raise RecordError(
                at, f"has the head {row[6]!r} where a number from 0 to {len(rows)} belongs: mend the line"
            )
        heads.append(int(row[6]) - 1)
    roots = [place for place, head in enumerate(heads) if head < 0]
    if len(roots) > 1:
        raise RecordError(rows[roots[1]][0], "is a second root (head 0) of its sentence: give it another head")
    return heads


def _post_order(rows: list[tuple[Place, list[str]]], heads: list[int]) -> list[int]:
    """The words, those below before those above, from left to right; what hangs in a cycle is refused."""
    below: list[list[int]] = [[] for _ in heads]
    for word, head in enumerate(heads):
        if head >= 0:
            below[head].append(word)
    order, waiting = list[int](), [(word, False) for word, head in enumerate(heads) if head < 0]
    while waiting:
        word, closes = waiting.pop()
        if closes or not below[word]:
            order.append(word)
        else:
            waiting += [(word, True), *((child, False) for child in reversed(below[word]))]
    if len(order) < len(heads):
        lost = next(word for word in range(len(heads)) if word not in set(order))
        raise RecordError(rows[lost][0], "is part of a cycle of heads, which reaches no root: give it another head")
    return order
