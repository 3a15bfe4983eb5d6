"""Every case of every kind: a few hundred, spread over the kinds, in `make test`, all in `make test-slow`."""

import os
import random
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.fuzz import calls, command_lines, files, folders, recipes
from tests.fuzz.case import Call, Case, Place
from tests.fuzz.contract import check, check_call
from tests.fuzz.processes import check_process
from tests.fuzz.world import World, build

C = TypeVar("C", Case, Call)

QUICK = 64
"""Cases of each kind that `make test` runs."""
SHARE = 0.6
"""Of the cases of each kind, how many have to be refused at least: the others may work."""
MOST = int(os.environ.get("ELMAN_FUZZ", 850))
"""Cases of each kind that `make test-slow` runs; ELMAN_FUZZ=100000 is all that can be made up."""


def chosen(cases: Sequence[C]) -> list[C]:
    """As many of the cases as are run, the same ones every time."""
    return random.Random("chosen").sample(cases, min(MOST, len(cases)))


KINDS: dict[str, Sequence[Case]] = {
    "command_lines": chosen(command_lines.cases()),
    "recipes": chosen(recipes.cases()),
    "files": chosen(files.cases()),
    "folders": chosen(folders.cases()),
}
CALLS: Sequence[Call] = chosen(calls.cases())
PROCESSES = [case for kind in KINDS.values() for case in kind[-10:]]
"""A few of them as a user runs them, in processes of their own."""


def spread(cases: Sequence[Case | Call], quick: int = QUICK) -> list[Any]:
    """The first of them for every day, the others marked slow."""
    return [
        pytest.param(case, id=case.name, marks=() if number < quick else pytest.mark.slow)
        for number, case in enumerate(cases)
    ]


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return build(tmp_path_factory.mktemp("world"))


@pytest.mark.parametrize("case", spread(KINDS["command_lines"]))
def test_wrong_command_lines(case: Case, world: World, tmp_path: Path) -> None:
    check(case, world, tmp_path)


@pytest.mark.parametrize("case", spread(KINDS["recipes"]))
def test_wrong_recipes(case: Case, world: World, tmp_path: Path) -> None:
    check(case, world, tmp_path)


@pytest.mark.parametrize("case", spread(KINDS["files"]))
def test_wrong_files(case: Case, world: World, tmp_path: Path) -> None:
    check(case, world, tmp_path)


@pytest.mark.parametrize("case", spread(KINDS["folders"]))
def test_damaged_folders(case: Case, world: World, tmp_path: Path) -> None:
    check(case, world, tmp_path)


@pytest.mark.parametrize("case", spread(CALLS))
def test_wrong_calls(case: Call, world: World, tmp_path: Path) -> None:
    check_call(case, world, tmp_path)


def test_the_calls_are_right_before_they_are_spoiled(world: World, tmp_path: Path) -> None:
    for number, target in enumerate(calls.targets().values()):
        (tmp_path / str(number)).mkdir()
        place = Place(world, tmp_path / str(number), random.Random(0))
        target.function(place)(**target.arguments(place))


@pytest.mark.parametrize("case", spread(PROCESSES, 3))
def test_in_processes_of_their_own(case: Case, world: World, tmp_path: Path) -> None:
    check_process(case, world, tmp_path)


def test_there_are_enough() -> None:
    kinds = [*KINDS.values(), CALLS]
    assert sum(len(kind) - QUICK for kind in kinds) >= 3000
    assert 5 * QUICK >= 300
    for kind in kinds:
        assert len({case.name for case in kind}) == len(kind)
        assert sum(case.refused for case in kind) >= SHARE * len(kind)
