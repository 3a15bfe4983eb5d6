"""What all tests share: a cache folder that is theirs alone, and the public corpora where they are at hand."""

import os
from pathlib import Path

import pytest

from tests.browser import browser  # noqa: F401

ROOT = Path(__file__).resolve().parents[1]

collect_ignore = ["built_kernels.py"]  # a plugin, no tests


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["ELMAN_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def data_dir() -> Path:
    """The folder of public corpora; the test is skipped where there is none."""
    named = os.environ.get("ELMAN_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the public corpora are not in {folder}: set ELMAN_DATA to where they are")
    return folder
