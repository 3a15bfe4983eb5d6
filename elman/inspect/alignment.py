"""The picture of an attention: a row for each word that was written, a column for each word that was read."""

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from elman.errors import UserError
from elman.files import write_aside

CELL = 0.32  # inches
LARGEST = 40  # inches, either way


def draw_alignment(weights: np.ndarray, source: Sequence[str], target: Sequence[str], path: Path) -> None:
    """Draw the weights (T x S) as a PNG, the darker the more; the file appears whole or not at all."""
    from matplotlib.figure import Figure  # slow to import, and only needed here

    if weights.shape != (len(target), len(source)):
        raise ValueError(f"{len(target)} x {len(source)} tokens but weights of {weights.shape}")
    if not weights.size:
        raise UserError("there is nothing to draw: one of the two texts has no tokens")
    sizes = [min(LARGEST, 1.2 + CELL * max(len(tokens), 4)) for tokens in (source, target)]
    figure = Figure(figsize=(sizes[0], sizes[1]), layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(weights, cmap="Greys", vmin=0, vmax=1, aspect="equal", interpolation="nearest")
    axes.set_xticks(range(len(source)), labels=[_shown(token) for token in source], rotation=90)
    axes.set_yticks(range(len(target)), labels=[_shown(token) for token in target])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    with write_aside(path) as aside, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a box is drawn in its place
        figure.savefig(aside, format="png", dpi=120)


def _shown(token: str) -> str:
    """A token as it can be drawn: blanks seen, and no sign that would be read as mathematics."""
    return token.replace(" ", "·").replace("$", r"\$").replace("\n", "⏎") or "∅"
