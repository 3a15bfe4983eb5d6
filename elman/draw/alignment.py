"""The picture of an attention: a row for each word that was written, a column for each word that was read."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from elman.draw.panels import Column, HeatMap, Page
from elman.draw.picture import draw_picture
from elman.errors import UserError


def draw_alignment(weights: np.ndarray, source: Sequence[str], target: Sequence[str], path: Path) -> None:
    """Draw the weights (T x S) as a picture, the darker the more; the file appears whole or not at all."""
    if weights.shape != (len(target), len(source)):
        raise ValueError(f"{len(target)} x {len(source)} tokens but weights of {weights.shape}")
    if not weights.size:
        raise UserError("there is nothing to draw: one of the two texts has no tokens")
    draw_picture(Page("", "", [Column("", [HeatMap("", weights.tolist(), target, source)])]), path)
