"""The examples of docs/search.md run and give what the page says."""

import doctest
from pathlib import Path

from elman.decode import Beam

PAGE = Path(__file__).parent.parent.parent / "docs" / "search.md"


def test_the_examples_run() -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert tried > 15 and failed == 0


def test_the_table_has_every_setting_with_its_default() -> None:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    told = {name.strip(" `"): default.strip() for _, name, default, *_ in (line.split("|") for line in lines)}
    assert told == {name: str(value) for name, value in vars(Beam()).items()}
