"""A tiny model of each task, trained by the command line, for tests of what is said and not of what is learnt."""

from pathlib import Path

from tests.cli.invoke import invoke
from tests.tasks import classify_runs as classify
from tests.tasks import runs as language
from tests.tasks import tag_runs as tag
from tests.tasks import translate_runs as translate


def small(task: str) -> list[str]:
    """Settings of a run that is over at once, as they are typed."""
    settings = {"lm": language, "classify": classify, "tag": tag, "translate": translate}[task].SMALL
    return [part for setting in (*settings, "train.steps=2") for part in ("-s", setting)]


def train_all(folder: Path) -> Path:
    """Models in `folder` / lm, classify, tag and translate."""
    (folder / "lm.txt").write_text(language.prose())
    files = {
        "lm": folder / "lm.txt",
        "classify": classify.write_table(folder / "classify.csv"),
        "tag": tag.write(folder / "tag.conll"),
        "translate": translate.write(folder / "translate.tsv"),
    }
    for task, file in files.items():
        code, _, error = invoke("train", task, "--train", str(file), "--out", str(folder / task), *small(task))
        assert code == 0, error
    return folder
