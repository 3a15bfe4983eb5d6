"""Elman trains, explains and ships recurrent sequence models, of texts and of numbers over time.

import elman
model = elman.fit("classify", train="reviews.csv", out="runs/reviews")
elman.load("runs/shakespeare").generate("ROMEO:", length=200)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["__version__", "compare", "evaluate", "fit", "load", "load_vectors", "pack", "pad"]

_FOUND_IN = {"compare": "elman.tasks.compare", "evaluate": "elman.tasks", "fit": "elman.tasks", "load": "elman.tasks"}
_FOUND_IN |= {"load_vectors": "elman.tasks.embed", "pack": "elman.ragged", "pad": "elman.ragged"}
_ROOMS = {"baselines", "batches", "corpora", "decode", "draw", "inspect", "lab", "metrics", "nn", "records", "runtime"}
_ROOMS |= {"client", "sklearn", "tasks", "text", "train"}

if TYPE_CHECKING:
    from elman.ragged import pack, pad
    from elman.tasks import evaluate, fit, load
    from elman.tasks.compare import compare
    from elman.tasks.embed import load_vectors


def __getattr__(name: str) -> Any:
    # What a program does not use it does not wait for: PyTorch alone takes seconds to import.
    if name in _FOUND_IN:
        return getattr(import_module(_FOUND_IN[name]), name)
    if name in _ROOMS:
        return import_module(f"elman.{name}")
    raise AttributeError(f"module 'elman' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS})
