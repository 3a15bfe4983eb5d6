"""Where records come from: file formats, the built-in sets, downloads; ids on disk, memory-mapped."""

from elman.corpora.cache import cache_folder
from elman.corpora.catalogue import CATALOGUE, Corpus, CorpusFile, export, info, locate
from elman.corpora.download import download
from elman.corpora.ids import line_ids, stream_ids
from elman.corpora.readers import TextFiles
from elman.corpora.stream import IdStream
from elman.corpora.tables import Record, read_records

__all__ = [
    "CATALOGUE",
    "Corpus",
    "CorpusFile",
    "IdStream",
    "Record",
    "TextFiles",
    "cache_folder",
    "download",
    "export",
    "info",
    "line_ids",
    "locate",
    "read_records",
    "stream_ids",
]
