"""Where records come from: file formats, the built-in sets, downloads; ids on disk, memory-mapped."""

from elman.corpora.cache import cache_folder
from elman.corpora.ids import line_ids, stream_ids
from elman.corpora.readers import TextFiles
from elman.corpora.stream import IdStream
from elman.corpora.tables import Record, read_records

__all__ = ["IdStream", "Record", "TextFiles", "cache_folder", "line_ids", "read_records", "stream_ids"]
