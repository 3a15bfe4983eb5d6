"""Tiny models of four tasks, and one service of all of them for the tests that do not change it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.models import train_all
from tests.serve.running import Running

TASKS = ("lm", "classify", "tag", "translate")


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of a model for each of `TASKS`."""
    return train_all(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def service(models: Path) -> Iterator[Running]:
    """A service of them all, and of the runs that made them."""
    folders = [str(models / task) for task in TASKS]
    limits = ["--max-tokens", "100000", "--body-seconds", "2"]
    with Running(*folders, "--runs", str(models), *limits) as running:
        yield running
        assert running.end() == 0
