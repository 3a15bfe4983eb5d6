"""Elman trains, explains and ships recurrent sequence models for language.

import elman
model = elman.load("runs/shakespeare")
print(model.generate("ROMEO:", length=200)[0])
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["__version__", "evaluate", "fit", "load"]

if TYPE_CHECKING:
    from elman.tasks import evaluate, fit, load


def __getattr__(name: str) -> Any:
    # PyTorch takes seconds to import; `elman --help` should not wait for it.
    if name in ("evaluate", "fit", "load"):
        import elman.tasks

        return getattr(elman.tasks, name)
    raise AttributeError(f"module 'elman' has no attribute {name!r}")
