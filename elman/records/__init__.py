"""Records and the files that they stand in: texts with labels, tagged sentences, pairs, trees, running text."""

from elman.records.classes import check_classes, check_known, overlap, seen, stratified_folds, stratified_split
from elman.records.labelled import LabelledFiles, LabelledText, read_labelled
from elman.records.lines import BadLines
from elman.records.pairs import Pair, PairFiles, Pairs, read_pairs, references, write_pairs
from elman.records.readers import TextFiles
from elman.records.splits import split_by_key, split_pairs
from elman.records.tables import Record, read_records
from elman.records.tagged import Sentence, TaggedFiles, read_tagged, write_tagged
from elman.records.texts import iterate_texts
from elman.records.trees import Tree, iterate_trees, parse_tree

__all__ = [
    "BadLines",
    "LabelledFiles",
    "LabelledText",
    "Pair",
    "PairFiles",
    "Pairs",
    "Record",
    "Sentence",
    "TaggedFiles",
    "TextFiles",
    "Tree",
    "check_classes",
    "check_known",
    "iterate_texts",
    "iterate_trees",
    "overlap",
    "parse_tree",
    "read_labelled",
    "read_pairs",
    "read_records",
    "read_tagged",
    "references",
    "seen",
    "split_by_key",
    "split_pairs",
    "stratified_folds",
    "stratified_split",
    "write_pairs",
    "write_tagged",
]
