"""The programs of docs/tools, which stand outside the package."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parents[2] / "docs"


def load(name: str) -> ModuleType:
    """A program of docs/tools as a module."""
    known = f"docs_tools_{name}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, DOCS / "tools" / f"{name}.py")
        assert spec is not None and spec.loader is not None
        sys.modules[known] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[known]
