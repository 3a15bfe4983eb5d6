"""`elman compare` by the command line."""

from pathlib import Path

from elman.tasks.compare import PICTURES
from tests.cli.invoke import invoke
from tests.tasks.classify_runs import SMALL, write_table

OVERRIDES = [part for setting in (*SMALL, "train.steps=3") for part in ("-s", setting)]


def test_a_comparison_shows_its_table_and_keeps_its_runs(tmp_path: Path) -> None:
    table = write_table(tmp_path / "n.csv")
    recipe, out = tmp_path / "r.toml", tmp_path / "out"
    recipe.write_text(f'task = "classify"\n[data]\ntrain = ["{table}"]\n')
    command = ("compare", str(recipe), "--vary", "model.cell=rnn,gru", "--seeds", "2", "-o", str(out), *OVERRIDES)
    code, shown, error = invoke(*command)
    assert code == 0, error
    assert "held-out accuracy" in shown
    assert "±" in shown
    assert "run 4 of 4: model.cell = gru, seed 2" in error
    assert {path.name for path in out.iterdir()} == {"runs", "compare.toml", "table.md", "table.json", *PICTURES}
    again, shown_again, _ = invoke(*command)
    assert (again, shown_again) == (0, shown)


def test_a_comparison_is_not_trained_as_one_run(tmp_path: Path) -> None:
    code, _, error = invoke("train", "classify", "names-compare", "-o", str(tmp_path / "run"))
    assert code == 2
    assert error.strip() == (
        "elman: 'names-compare' is a recipe for several runs: use it with  elman compare names-compare"
    )


def test_a_recipe_of_another_task_says_so(tmp_path: Path) -> None:
    code, _, error = invoke("train", "classify", "tinyshakespeare", "-o", str(tmp_path / "run"))
    assert code == 2
    assert "use it with  elman train lm" in error
