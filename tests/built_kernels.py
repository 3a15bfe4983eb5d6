"""A pytest plugin: the tests run on one build of the kernels, not on the installed one. `make sanitize` uses it.

ELMAN_TEST_KERNELS=build/sanitize python -m pytest -p tests.built_kernels tests/test_kernels.py
"""

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import torch  # noqa: F401  (before the kernels, as in elman/kernels.py: they share its threads)

NAME = "elman._kernels"


def load(folder: Path) -> None:
    """Put the module built somewhere below this folder where `import elman._kernels` finds it."""
    found = [path for path in folder.rglob("_kernels*") if path.name.removeprefix("_kernels") in EXTENSION_SUFFIXES]
    if len(found) != 1:
        raise FileNotFoundError(f"expected one build of the kernels in {folder}, found {len(found)}")
    spec = spec_from_file_location(NAME, found[0])
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[NAME] = module


load(Path(os.environ["ELMAN_TEST_KERNELS"]))
