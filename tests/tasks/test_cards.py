"""Model cards: the tables are whole, and what they tell to type runs."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from elman.tasks.export import export
from elman.tasks.report import renamed, score_table
from tests.cli.invoke import invoke
from tests.tasks import classify_runs as classify
from tests.tasks import runs as language
from tests.tasks import tag_runs as tag
from tests.tasks import translate_runs as translate


def lm(folder: Path) -> str:
    (folder / "data.txt").write_text(language.prose())
    language.run(folder / "data.txt", folder / "my model", "train.steps=2")
    return "data.txt"


def lm_with_labels(folder: Path) -> str:
    table = language.write_names(folder / "names.csv")
    language.run(table, folder / "my model", "train.steps=2", "data.unit=line", "data.label_column=label")
    return "names.csv"


def classifier(folder: Path) -> str:
    classify.run(classify.write_table(folder / "names.csv"), folder / "my model", "train.steps=2")
    return "names.csv"


def tagger(folder: Path) -> str:
    tag.run(tag.write(folder / "s.conll"), folder / "my model", "train.steps=2")
    return "s.conll"


def translator(folder: Path) -> str:
    translate.run(translate.write(folder / "pairs.tsv"), folder / "my model", "train.steps=80")
    (folder / "source.txt").write_text("abc\n")
    (folder / "target.txt").write_text("cba\n")
    return "pairs.tsv"


@pytest.mark.parametrize("make", [lm, lm_with_labels, classifier, tagger, translator])
def test_the_tables_are_whole_and_the_commands_run(
    make: Callable[[Path], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = make(tmp_path)
    export(tmp_path / "my model", tmp_path / "copy")
    monkeypatch.chdir(tmp_path)
    for name in ("my model", "copy"):
        card = Path(name, "README.md").read_text()
        assert card.startswith(f"# {name}\n")
        check_tables(card)
        check_pictures(card, Path(name))
        run_commands(card, {"FILE": file, "TEXT": "abc", "SOURCES": "source.txt", "TARGETS": "target.txt"})
        exec(card.split("```python\n")[1].split("```")[0], {})


def check_tables(card: str) -> None:
    lines = card.splitlines()
    rules = [number for number, line in enumerate(lines) if line.startswith("|---")]
    assert rules
    for rule in rules:
        rows = [lines[rule - 1]]
        while lines[rule + len(rows)].startswith("|"):
            rows.append(lines[rule + len(rows)])
        assert {row.count("|") for row in rows} == {lines[rule].count("|")}
        assert "this model" in rows[1]


def check_pictures(card: str, folder: Path) -> None:
    for named in card.split("](")[1:]:
        assert (folder / named.split(")")[0]).exists()


def run_commands(card: str, words: dict[str, str]) -> None:
    commands = card.split("## Use")[1].split("```")[1].strip().splitlines()
    assert len(commands) >= 2
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "elman"
        code, _, error = invoke(*(words.get(argument, argument) for argument in arguments))
        assert code == 0, (command, error)
    Path("alignment.png").unlink(missing_ok=True)


def test_a_row_with_other_columns_is_refused() -> None:
    with pytest.raises(ValueError, match="other columns"):
        score_table(["a", "b"], [["this model", "1"]])


def test_a_copy_changes_the_name_where_it_is_the_folder_and_nowhere_else() -> None:
    card = '# 1\n\n1 x gru of 11\n\n## Use\n\nelman predict 1 FILE\n\nmodel = elman.load("1")\n'
    expected = '# 2\n\n1 x gru of 11\n\n## Use\n\nelman predict 2 FILE\n\nmodel = elman.load("2")\n'
    assert renamed(card, Path("1"), Path("2")) == expected
