"""Views of models that see images."""

from pathlib import Path

import numpy as np
import pytest

import elman
from elman.inspect import explain
from elman.metrics.captions import caption_scores
from elman.tasks.caption import counted
from tests.tasks.caption_runs import SMALL, images

pytest.importorskip("PIL")


def test_the_gallery_has_the_figures_of_reports(tmp_path: Path) -> None:
    path = images(tmp_path, 6)
    model = elman.fit("caption", train=path, settings=[*SMALL, "train.steps=20"], verbose=False)
    found = explain(model, [str(path)], "gallery", count=3)
    (gallery,) = found.data
    pictures = [*gallery.best, *gallery.worst]
    references = [[counted(model, one) for one in picture.references] for picture in pictures]
    right = caption_scores([picture.caption for picture in pictures], references)["cider"]
    assert right > 1 and np.mean([picture.cider for picture in pictures]) == pytest.approx(right, abs=0.01)
