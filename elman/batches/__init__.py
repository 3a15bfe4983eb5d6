"""From records to batches: ids on disk, windows of running text, examples of like length side by side."""

from elman.batches.ids import line_ids, stream_ids
from elman.batches.stream import IdStream

__all__ = ["IdStream", "line_ids", "stream_ids"]
