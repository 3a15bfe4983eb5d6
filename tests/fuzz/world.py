"""What the cases start from: good files and small models of every task."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import elman
from elman import tasks
from elman.tasks.export import export
from tests.tasks import answer_runs as answer
from tests.tasks import caption_runs as caption
from tests.tasks import classify_runs as classify
from tests.tasks import embed_runs as embed
from tests.tasks import forecasts as series
from tests.tasks import runs as language
from tests.tasks import tag_runs as tag
from tests.tasks import translate_runs as translate
from tests.tasks import tree_runs as tree
from tests.train.toy import quiet

SMALL = {
    "lm": language.SMALL,
    "classify": classify.SMALL,
    "tag": tag.SMALL,
    "translate": (*translate.SMALL, "search.beam=2", "report.baselines=false"),
    "series": series.SMALL,
    "embed": embed.SMALL,
    "tree": tree.SMALL,
    "answer": answer.SMALL,
    "caption": (*caption.SMALL, "search.beam=2", "report.baselines=false"),
}
"""Settings that make a run short."""
DATA = {"lm": "text.txt", "classify": "names.csv", "tag": "tags.conll", "translate": "pairs.tsv", "series": "wave.csv"}
DATA |= {"embed": "text.txt", "tree": "trees.txt", "answer": "questions.tsv", "caption": "captions.tsv"}
"""A good file for each task."""
TASKS = tuple(tasks.TASKS)
PREDICTED = tuple(name for name, task in tasks.TASKS.items() if task.command == "predict")
"""Tasks whose models `elman predict` asks."""
OF_TEXT = tuple(name for name, task in tasks.TASKS.items() if "load_vocabulary" in vars(task.Model))
"""Tasks whose models have a vocabulary."""
TASK_OF = dict(zip(TASKS, TASKS, strict=True))
TASK_OF |= {"labels": "lm", "reverse": "translate", "int8": "lm", "int8-series": "series"}
"""Of every model its task."""


@dataclass(frozen=True)
class World:
    """Files and model folders, which no case may change."""

    root: Path

    def data(self, task: str) -> str:
        """A good file for a task."""
        return str(self.root / DATA[task])

    def known(self, task: str) -> str:
        """A good file to score a model of a task on."""
        return str(self.root / "pairs.csv") if task == "embed" else self.data(task)

    def model(self, name: str) -> str:
        """A good model folder."""
        return str(self.root / "models" / name)

    def copy(self, name: str, to: Path) -> Path:
        """A model folder that may be damaged."""
        return Path(shutil.copytree(self.model(name), to))

    def snapshot(self) -> dict[str, tuple[int, int]]:
        """Size and time of every file."""
        return snapshot(self.root)


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of everything in a folder, whatever it is; links are not followed."""
    found = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        found[str(path.relative_to(folder))] = (0, 0) if path.is_dir() else (about.st_size, about.st_mtime_ns)
    return found


def settings(task: str, *more: str) -> list[str]:
    """The options of a short run: `-s key=value` for each."""
    return [part for setting in (*SMALL[task], "train.steps=1", *more) for part in ("-s", setting)]


def build(root: Path) -> World:
    """Write the files and train the models, each for two steps."""
    (root / "text.txt").write_text(language.prose())
    language.write_names(root / "labels.csv")
    classify.write_table(root / "names.csv")
    tag.write(root / "tags.conll")
    pairs = translate.strings(120)
    translate.write(root / "pairs.tsv", pairs)
    series.write(root / "wave.csv")
    answer.write(root / "questions.tsv", 12)
    caption.images(root, 12)
    tree.write_trees(root / "trees.txt")
    (root / "pairs.csv").write_text("the,cat,3\na,dog,4\n")
    for side in ("source", "target"):
        (root / f"parallel.{side}").write_text("".join(f"{getattr(pair, side)}\n" for pair in pairs))
    for task in TASKS:
        _train(root, task, task, DATA[task])
    _train(root, "lm", "labels", "labels.csv", "data.unit=line", "data.label_column=label")
    _train(root, "translate", "reverse", "pairs.tsv", "data.source=2", "data.target=1")
    for task, name in (("lm", "int8"), ("series", "int8-series")):
        export(root / "models" / task, root / "models" / name, int8=True)
    return World(root)


def _train(root: Path, task: str, name: str, data: str, *more: str) -> None:
    chosen = [*SMALL[task], "train.steps=2", *more]
    elman.fit(task, out=root / "models" / name, train=root / data, settings=chosen, reporter=quiet())
