"""Looking inside models: where a translator looks."""

from elman.inspect.alignment import draw_alignment

__all__ = ["draw_alignment"]
