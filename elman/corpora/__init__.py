"""Where records come from: file formats, the built-in sets, downloads; ids on disk, memory-mapped."""

from elman.corpora.cache import cache_folder
from elman.corpora.catalogue import export, info, locate
from elman.corpora.classes import check_classes, check_known, overlap, seen, stratified_folds, stratified_split
from elman.corpora.download import download
from elman.corpora.entries import CATALOGUE, Corpus, CorpusFile
from elman.corpora.ids import line_ids, stream_ids
from elman.corpora.labelled import LabelledFiles, LabelledText, read_labelled
from elman.corpora.lines import BadLines
from elman.corpora.pairs import Pair, PairFiles, Pairs, read_pairs, references, write_pairs
from elman.corpora.readers import TextFiles
from elman.corpora.splits import split_by_key, split_pairs
from elman.corpora.stream import IdStream
from elman.corpora.tables import Record, read_records
from elman.corpora.tagged import Sentence, TaggedFiles, read_tagged, write_tagged
from elman.corpora.texts import iterate_texts
from elman.corpora.trees import Tree, iterate_trees, parse_tree

__all__ = [
    "CATALOGUE",
    "BadLines",
    "Corpus",
    "CorpusFile",
    "IdStream",
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
    "cache_folder",
    "check_classes",
    "check_known",
    "download",
    "export",
    "info",
    "iterate_texts",
    "iterate_trees",
    "line_ids",
    "locate",
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
    "stream_ids",
    "write_pairs",
    "write_tagged",
]
