"""What models scored, sets x systems x metrics, and the model card that tells of it; the same for every task."""

import platform
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from elman import __version__
from elman.errors import UserError
from elman.files import write_json, write_text
from elman.metrics.metric import Metric, first_of
from elman.train.progress import duration

if TYPE_CHECKING:
    from elman.tasks.task import Task

MODEL = "this model"
"""Its name among the systems of a report."""
NAMES = {"dev": "held out", "test": "test"}
"""How the sets of a run are called in tables."""
USE = "## Use"
"""The heading behind which a card's commands name the model's folder."""

Scores = Mapping[str, Any]


class Headline(NamedTuple):
    """The one score that runs are compared by: where it was counted, what it is, its value."""

    where: str
    metric: Metric
    value: float

    @property
    def name(self) -> str:
        """As in 'test accuracy'."""
        return f"{self.where} {self.metric.name}"


class Report(dict[str, Any]):
    """What `metrics.json` holds: the model's scores on each set, its `baselines`' on each, and facts of the run.

    Where the model was asked to adapt while it reads, `adapted` has those scores, by what it adapted by.

    >>> from elman.tasks import TASKS
    >>> scores = {"loss": 0.4, "accuracy": 0.8}
    >>> report = Report(TASKS["classify"], {"test": scores, "baselines": {"guessing": {"test": {"accuracy": 0.5}}}})
    >>> report.headline().name, report.table("test")
    ('test accuracy', (['accuracy'], [['this model', '80.00 %'], ['guessing', '50.00 %']]))
    """

    def __init__(self, task: "Task[Any, Any]", value: Mapping[str, Any]) -> None:
        super().__init__(value)
        self.task = task

    def __reduce__(self) -> Any:
        return type(self), (self.task, dict(self))

    @property
    def sets(self) -> list[str]:
        """The sets that the model was scored on."""
        return [name for name, scores in self.items() if isinstance(scores, dict) and "loss" in scores]

    def systems(self, name: str) -> dict[str, Scores]:
        """Who was scored on a set, and what each scored: the model, as it adapts, then the baselines, best first."""
        metric = first_of(self.task.headlines, self[name])
        baselines = {who: scores[name] for who, scores in self.get("baselines", {}).items() if scores.get(name)}
        ordered = sorted(baselines, key=lambda who: metric.worse(metric.of(baselines[who]) or 0.0))
        adapted = {who: scores[name] for who, scores in self.get("adapted", {}).items()}
        return {MODEL: self[name], **adapted, **{who: baselines[who] for who in ordered}}

    def table(self, name: str) -> tuple[list[str], list[list[str]]]:
        """The names of the metrics that somebody has on a set, and for each system its name and its scores."""
        systems = self.systems(name)
        metrics = [metric for metric in self.task.metrics if any(metric.of(s) is not None for s in systems.values())]
        rows = [[who, *(metric.shown(metric.of(scores)) for metric in metrics)] for who, scores in systems.items()]
        return [metric.name for metric in metrics], rows

    def title(self, name: str) -> str:
        """A set as the heading of its table: what it is, and how large."""
        size = self[name].get(self.task.counted)
        return NAMES.get(name, name) + (f" ({size:,} {self.task.counted})" if size is not None else "")

    def figures(self) -> tuple[str, dict[str, float]]:
        """Where runs are compared, and every metric there by its key: over the folds, else on test, else held out."""
        metrics = (*self.task.headlines, *self.task.metrics)
        if (crossed := self.get("cross_validation")) is not None:
            return "cross-validated", {m.key: float(crossed[m.key]["mean"]) for m in metrics if m.key in crossed}
        split = next((name for name in ("test", "dev") if name in self), None)
        if split is None:
            raise UserError("there is nothing to compare by: give the recipe data.test, or data.dev_fraction above 0")
        found = {metric.key: metric.of(self[split]) for metric in metrics}
        where = {"dev": "held-out", "test": "test"}[split]
        return where, {key: value for key, value in found.items() if value is not None}

    def headline(self) -> Headline:
        """The score that runs are compared by: the first of the task's headlines that there is."""
        where, figures = self.figures()
        metric = next((metric for metric in self.task.headlines if metric.key in figures), self.task.headlines[-1])
        return Headline(where, metric, figures.get(metric.key, 0.0))

    def details(self) -> str:
        """What there is to say below the tables: the last set in detail, and the folds."""
        parts = [self.task.details(self[self.sets[-1]])] if self.sets else []
        if "cross_validation" in self:
            parts.append(self.crossed())
        return "\n\n".join(part for part in parts if part)

    def crossed(self) -> str:
        """The mean and the spread over the folds."""
        found = self["cross_validation"]
        metric = next(metric for metric in self.task.headlines if metric.key in found)
        lines = [f"{found['folds']}-fold cross-validation: {metric.name} {_spread(metric, found[metric.key])}"]
        return "\n".join([*lines, *(f"  {who} {_spread(metric, each)}" for who, each in found["baselines"].items())])


def _spread(metric: Metric, found: Mapping[str, float]) -> str:
    return metric.shown_with_spread(found["mean"], found["spread"])


def write_report(folder: Path, recipe: Any, report: Report) -> None:
    """The pictures of the task, README.md (the model card), and metrics.json."""
    report["platform"] = platform_facts()
    pictures = report.task.draw(report, folder) if report.sets else {}
    write_text(folder / "README.md", card(folder, recipe, report, pictures))
    write_json(folder / "metrics.json", report)  # last: a run that has it is done


def platform_facts() -> dict[str, Any]:
    """What a report says of the machine that it was made on."""
    import torch

    return {
        "elman": __version__,
        "torch": torch.__version__,
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
    }


def card(folder: Path, recipe: Any, report: Report, pictures: Mapping[str, str]) -> str:
    """README.md: what the model is, what it was trained on, its scores beside the baselines', how to use it."""
    task, run, data = report.task, report["run"], recipe.data
    count = f" ({run[task.records]:,} {task.records})" if task.records in run else ""
    epochs, threads = round(run["epochs"], 1), report["platform"]["threads"]
    members = recipe.train.networks
    size = f"{report['parameters']:,} parameters{f' in {members} networks that answer together' if members > 1 else ''}"
    rate = f" at {run[f'{task.unit}_per_second']:,.0f} {task.unit} a second"
    lines = [
        f"# {folder.resolve().name}",
        "",
        f"{task.sentence(recipe, report)}, {size}. Made with Elman {__version__}.",
        "",
        f"Trained on {trained_on(data.corpora, data.train)}{count} for {epochs:g} epoch{'s' * (epochs != 1)} "
        f"({run['steps']:,} updates{' each' * (members > 1)}) "
        f"in {duration(run['seconds'])}{rate}, {threads} thread{'s' * (threads != 1)}. "
        "Every setting is in `recipe.toml`.",
        "",
    ]
    for name in report.sets:
        lines += [f"## Scores, {report.title(name)}", "", *score_table(*report.table(name))]
    if report.task.note(recipe):
        lines += [report.task.note(recipe), ""]
    if "cross_validation" in report:
        lines += ["## Cross-validation", "", "```", report.crossed(), "```", ""]
    if report.sets and (details := task.details(report[report.sets[-1]])):
        lines += [f"## In detail, {NAMES.get(report.sets[-1], report.sets[-1])}", "", "```", details, "```", ""]
    lines += [line for file, about in pictures.items() for line in (f"![{about}]({file})", "")]
    return "\n".join([*lines, *use(folder, *task.use(recipe, report))]) + "\n"


def score_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Scores as the lines of a Markdown table, the first column being who scored them.

    >>> print("\\n".join(score_table(["accuracy"], [["this model", "0.9"]])))
    | | accuracy |
    |---|---|
    | this model | 0.9 |
    <BLANKLINE>
    """
    lines = [["", *columns], *rows]
    if any(len(line) != len(lines[0]) for line in lines):
        raise ValueError(f"a row of scores has other columns than {', '.join(columns)}")
    heading, *rest = ("| " + " | ".join(line) + " |" for line in lines)
    return [heading.replace("|  |", "| |", 1), "|---" * len(lines[0]) + "|", *rest, ""]


def use(folder: Path, commands: Iterable[str], example: str) -> list[str]:
    """How to use the model: commands, in which `{model}` is its folder, and a line of Python.

    >>> print("\\n".join(use(Path("runs/my model"), ["elman predict {model} FILE"], 'model.predict("a text")')))
    ## Use
    <BLANKLINE>
    ```
    elman predict 'my model' FILE
    ```
    <BLANKLINE>
    ```python
    import elman
    model = elman.load("my model")
    model.predict("a text")
    ```
    """
    name = folder.resolve().name
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    typed = [command.replace("{model}", shlex.quote(name)) for command in commands]
    python = ["import elman", f'model = elman.load("{quoted}")', example]
    return [USE, "", "```", *typed, "```", "", "```python", *python, "```"]


def renamed(card: str, old: Path, new: Path) -> str:
    """The card of a model that was copied to another folder: its title and its commands name that one.

    >>> renamed("# a\\n\\na model\\n\\n## Use\\n\\nelman predict a FILE\\n", Path("a"), Path("b"))
    '# b\\n\\na model\\n\\n## Use\\n\\nelman predict b FILE\\n'
    """
    before, after = old.resolve().name, new.resolve().name
    head, heading, commands = card.partition(f"\n{USE}\n")
    for shown in (shlex.quote, lambda name: f'"{name}"'):
        commands = commands.replace(f" {shown(before)} ", f" {shown(after)} ").replace(
            f"({shown(before)})", f"({shown(after)})"
        )
    return head.replace(f"# {before}\n", f"# {after}\n", 1) + heading + commands


def trained_on(corpora: Sequence[str], files: Sequence[str]) -> str:
    """The data of a run, as a card names them.

    >>> trained_on([], ["/home/me/a.txt"]), trained_on(["names"], []), trained_on([], [])
    ('`a.txt`', 'the corpus `names`', 'data in memory')
    >>> trained_on(["brown", "wikitext2"], [])
    'the corpora `brown`, `wikitext2`'
    """
    if not corpora and not files:
        return "data in memory"
    named = ", ".join(f"`{Path(name).name}`" for name in files or corpora)
    return named if files else f"the corp{'us' if len(corpora) == 1 else 'ora'} {named}"
