"""Solutions leave nothing behind: the cache of encoded text is a folder of their own."""

import os

import pytest


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["ELMAN_CACHE"] = str(tmp_path_factory.mktemp("cache"))
