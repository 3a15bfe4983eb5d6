"""Records and the files that they stand in: texts with labels, tagged sentences, pairs, trees, running text."""

from elman.records.classes import check_classes, check_known, overlap, seen, stratified_folds, stratified_split
from elman.records.labelled import LabelledReader, LabelledText, iterate_texts
from elman.records.lines import BadLines
from elman.records.pairs import Pair, PairReader, Pairs, collect_pairs, read_pairs, references, write_pairs
from elman.records.paths import expand
from elman.records.places import Place, RecordError
from elman.records.reader import Files
from elman.records.records import Record, RecordReader, read_records
from elman.records.running_text import TextFiles
from elman.records.splits import split_by_key, split_pairs
from elman.records.tagged import DocumentMark, Sentence, TaggedReader, write_tagged
from elman.records.trees import Tree, iterate_trees, parse_tree

__all__ = [
    "BadLines",
    "DocumentMark",
    "Files",
    "LabelledReader",
    "LabelledText",
    "Pair",
    "PairReader",
    "Pairs",
    "Place",
    "Record",
    "RecordError",
    "RecordReader",
    "Sentence",
    "TaggedReader",
    "TextFiles",
    "Tree",
    "check_classes",
    "check_known",
    "collect_pairs",
    "expand",
    "iterate_texts",
    "iterate_trees",
    "overlap",
    "parse_tree",
    "read_pairs",
    "read_records",
    "references",
    "seen",
    "split_by_key",
    "split_pairs",
    "stratified_folds",
    "stratified_split",
    "write_pairs",
    "write_tagged",
]
