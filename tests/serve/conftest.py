"""Tiny models of four tasks, and one service of all of them for the tests that do not change it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.models import train_all
from tests.serve.running import Running
from tests.serve.studio import Studio

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


@pytest.fixture
def studio(browser: Any, service: Running) -> Iterator[Any]:
    """Opens a place of the page of a test's service, as often as asked."""
    opened: list[Studio] = []

    def open_studio(place: str = "", **context: Any) -> Studio:
        opened.append(Studio(browser, service.url, **context))
        opened[-1].open(place)
        return opened[-1]

    yield open_studio
    for one in opened:
        assert one.said == [] and one.outside == []  # no error, nothing against the policy, no request to anywhere else
        one.context.close()
