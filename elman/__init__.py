"""Elman trains, explains and ships recurrent sequence models for language.

import elman
model = elman.load("runs/shakespeare")
print(model.generate("ROMEO:", length=200)[0])
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["__version__", "compare", "evaluate", "fit", "load"]

if TYPE_CHECKING:
    from elman.tasks import evaluate, fit, load
    from elman.tasks.compare import compare


def __getattr__(name: str) -> Any:
    # PyTorch takes seconds to import; `elman --help` should not wait for it.
    if name in ("evaluate", "fit", "load"):
        import elman.tasks

        return getattr(elman.tasks, name)
    if name == "compare":
        from elman.tasks.compare import compare

        return compare
    raise AttributeError(f"module 'elman' has no attribute {name!r}")
