"""Several runs of one recipe, side by side: every combination of some settings, with several seeds each.

compare("names-compare", vary={"model.cell": ["rnn", "lstm", "gru"], "model.hidden": [64, 128]}, out="runs/cells")

Each run has a folder of its own under `out/runs`. One that is finished is not repeated, one that was interrupted goes
on where it stopped; so the same command resumes a comparison, and one with more values adds to it.
"""

import itertools
import math
import re
import statistics
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from elman.errors import Interrupted, UserError
from elman.files import write_aside, write_json, write_text
from elman.metrics.metric import Metric
from elman.tasks import TASKS, find_task, recipe_task, training
from elman.tasks.lock import locked
from elman.tasks.recipes import find_recipe, lay_over, replaced, settled
from elman.tasks.report import Headline, Report
from elman.tasks.run import finished_report, is_empty
from elman.train.progress import Reporter, duration
from elman.train.recipe import Section, Settings, apply_overrides, from_toml, plain, read_toml, toml_value

MOST_NAME = 150  # characters of a folder's name
MOST_RUNS = 10_000
"""More are a slip of the keyboard: a plan is made of all of them before the first one starts."""

MARK = "compare.toml"
"""The file by which the folder of a comparison is known."""

Vary = Mapping[str, Sequence[Any]] | Iterable[str]


@dataclass
class Entry:
    """One combination of settings, and what its runs came to."""

    settings: dict[str, Any]
    scores: list[float] = field(default_factory=list)
    figures: list[dict[str, float]] = field(default_factory=list)
    """Every metric of each run."""
    seconds: list[float] = field(default_factory=list)
    parameters: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As table.json holds it."""
        keys = dict.fromkeys(key for each in self.figures for key in each)
        return {
            "settings": self.settings,
            **mean_and_spread(self.scores),
            "scores": self.scores,
            "metrics": {key: mean_and_spread([each[key] for each in self.figures if key in each]) for key in keys},
            "parameters": self.parameters,
            "seconds": statistics.fmean(self.seconds),
        }


def mean_and_spread(values: Sequence[float]) -> dict[str, float]:
    """The mean, and the standard deviation, which is 0 for a single run.

    >>> mean_and_spread([1.0, 3.0])
    {'mean': 2.0, 'spread': 1.4142135623730951}
    """
    return {"mean": statistics.fmean(values), "spread": statistics.stdev(values) if len(values) > 1 else 0.0}


def compare(
    recipe: Path | str,
    *,
    out: Path | str,
    vary: Vary = (),
    seeds: int | None = None,
    settings: Settings = (),
    force: bool = False,
    data_dir: Path | str | None = None,
    reporter: Reporter | None = None,
    show: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Train every combination of what `vary` lists, `seeds` times each; returns what `table.json` holds.

    `vary` is `{"model.hidden": [64, 128]}` or `["model.hidden=64,128"]`. A recipe may have both in a `[compare]` table.
    """
    out, task = Path(out), recipe_task(recipe)
    tables = read_toml(find_recipe(recipe))
    asked = tables.pop("compare", {})
    grid = read_vary(vary) or read_vary(asked.get("vary", ()))
    count = _seeds(asked.get("seeds", 3) if seeds is None else seeds)
    given = apply_overrides({}, settings)
    _check_grid(grid, given, count)
    kind = find_task(task).Recipe
    if (line := replaced(recipe, given)) is not None and show is not None:
        show(line)
    tables = lay_over(tables, given, recipe)
    entries = [Entry(dict(zip(grid, values, strict=True))) for values in itertools.product(*grid.values())]
    plan = [  # all are checked before the first one starts
        (entry, seed, settled(kind, tables, {**entry.settings, "train.seed": seed}, str(recipe)))
        for entry in entries
        for seed in range(1, count + 1)
    ]
    headline: Headline | None = None
    with locked(out, (reporter or Reporter()).say):
        _check_out(out)
        write_text(
            out / MARK, f"# A comparison of Elman's: its runs are in runs/.\nrecipe = {toml_value(str(recipe))}\n"
        )
        for number, (entry, seed, chosen) in enumerate(plan, start=1):
            place = out / "runs" / folder_name({**entry.settings, "seed": seed})
            if show is not None:
                show(f"run {number} of {len(plan)}: {_said(entry.settings)}, seed {seed}")
            with _unmarked_if_never_begun(out):
                report = _report(task, chosen, place, force, data_dir, reporter)
            headline = report.headline()
            entry.scores.append(headline.value)
            entry.figures.append(report.figures()[1])
            entry.seconds.append(_seconds(report))
            entry.parameters = int(report["parameters"])
        runs = [entry.to_dict() for entry in entries]
        assert headline is not None
        named = {"score": headline.name, "metric": headline.metric.key}
        found = {"task": task, **named, "seeds": count, "varied": list(grid), "runs": runs}
        write_json(out / "table.json", found)
        write_text(out / "table.md", markdown(found))
        draw(found, out / "plot.png")
    return found


@contextmanager
def _unmarked_if_never_begun(out: Path) -> Iterator[None]:
    """Where the first run is refused, the folder is left as it was."""
    try:
        yield
    except UserError:
        if not (out / "runs").exists():
            (out / MARK).unlink(missing_ok=True)
        raise


def read_vary(vary: Vary) -> dict[str, list[Any]]:
    """The values of each key.

    >>> read_vary(["model.cell=rnn,gru", "train.lr=1e-3,2e-3"])
    {'model.cell': ['rnn', 'gru'], 'train.lr': [0.001, 0.002]}
    """
    if isinstance(vary, Mapping):
        several = {key: isinstance(given, Iterable) and not isinstance(given, str) for key, given in vary.items()}
        return {key: _distinct(given if several[key] else [given]) for key, given in vary.items()}
    found: dict[str, list[Any]] = {}
    for text in [vary] if isinstance(vary, str) else vary if isinstance(vary, Iterable) else [vary]:
        key, equals, values = text.partition("=") if isinstance(text, str) else ("", "", "")
        if not equals or not key.strip() or not values.strip():
            raise UserError(f"'{text}' is nothing to compare: write section.key=value,value")
        try:
            listed = tomllib.loads(f"values = [{values}]")["values"]
        except tomllib.TOMLDecodeError:  # bare words
            listed = [from_toml(value.strip()) for value in values.split(",") if value.strip()]
        if not listed:
            raise UserError(f"'{text}' is nothing to compare: write section.key=value,value")
        found[key.strip()] = _distinct([*found.get(key.strip(), ()), *listed])
    return found


def _distinct(values: Iterable[Any]) -> list[Any]:
    return list({toml_value(value): value for value in map(plain, values)}.values())


def _seeds(asked: Any) -> int:
    if not isinstance(asked, int) or asked < 1:
        raise UserError(f"the number of seeds should be at least 1, not {asked}")
    return asked


def _check_grid(grid: Mapping[str, Sequence[Any]], given: Mapping[str, Any], seeds: int) -> None:
    """Refuse a comparison of nothing, one without an end, and one whose seeds are said twice."""
    if not grid or not all(grid.values()):
        raise UserError("there is nothing to compare: give --vary section.key=value,value")
    if (runs := seeds * math.prod(map(len, grid.values()))) > MOST_RUNS:
        raise UserError(
            f"that makes {runs:,} runs, and {MOST_RUNS:,} are the most: give fewer --seeds, or less to --vary"
        )
    trained = given.get("train")
    if "train.seed" in grid or (isinstance(trained, Mapping) and "seed" in trained):
        raise UserError("every combination is trained with the seeds 1, 2, ...: leave train.seed out, and give --seeds")


def _check_out(out: Path) -> None:
    if out.exists() and not is_empty(out) and not (out / MARK).exists():
        raise UserError(f"{out} is not empty and holds no comparison of Elman's: name another folder with --out")


def _report(
    task: str, recipe: Section, place: Path, force: bool, data_dir: Path | str | None, reporter: Reporter | None
) -> Report:
    """The report of a run: read where it is finished, unless all is to be done again, else made."""
    report = None if force else finished_report(place, recipe)
    if report is not None:
        return Report(TASKS[task], report)
    try:
        return training.train(
            TASKS[task], recipe, place, resume=not force, force=force, data_dir=data_dir, reporter=reporter
        )
    except Interrupted as stop:
        raise Interrupted(f"{stop}; the same command goes on") from None


def folder_name(settings: Mapping[str, Any]) -> str:
    """A name for the folder of a run that says what it is; what no name can say is told apart by a few digits.

    >>> folder_name({"model.cell": "gru", "data.train": ["a b.csv"], "seed": 1})
    'cell=gru,train=_a_b.csv_,seed=1-f9bc26'
    """
    last = [key.rpartition(".")[2] for key in settings]
    names = last if len(set(last)) == len(last) else list(settings)
    whole = ",".join(f"{name}={shown_value(value)}" for name, value in zip(names, settings.values(), strict=True))
    name = re.sub(r"[^A-Za-z0-9.+=,-]+", "_", whole)[:MOST_NAME]
    return name if name == whole else f"{name}-{blake2b(whole.encode(), digest_size=3).hexdigest()}"


def shown_value(value: Any) -> str:
    """A setting's value as a table shows it: as `-s` would be given it."""
    return value if isinstance(value, str) else toml_value(value)


def _seconds(report: Mapping[str, Any]) -> float:
    folds = report.get("cross_validation", {}).get("seconds", 0.0)
    return float(report["run"]["seconds"] + folds)


def _said(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {shown_value(value)}" for key, value in settings.items())


def rows(found: Mapping[str, Any]) -> list[list[str]]:
    """The table: a heading, then a line for each combination; what they are compared by comes before other metrics."""
    present = {key for entry in found["runs"] for key in entry["metrics"]}
    others = [metric for metric in TASKS[found["task"]].metrics if metric.key in present - {found["metric"]}]
    names = [f"{found['score']} (mean ± spread)", *(metric.name for metric in others)]
    lines = [[*found["varied"], *names, "parameters", "time"]]
    for entry in found["runs"]:
        shown = [shown_value(value) for value in entry["settings"].values()]
        shown.append(_shown_score(_metric(found), entry, found["seeds"]))
        shown += [_shown_score(metric, entry["metrics"].get(metric.key), found["seeds"]) for metric in others]
        lines.append([*shown, f"{entry['parameters']:,}", duration(entry["seconds"])])
    return lines


def _shown_score(metric: Metric, score: Mapping[str, Any] | None, seeds: int) -> str:
    """A score with its spread, where there is one."""
    if score is None or seeds == 1:
        return metric.shown(None if score is None else score["mean"])
    return metric.shown_with_spread(score["mean"], score["spread"])


def _metric(found: Mapping[str, Any]) -> Metric:
    """What the runs are compared by."""
    return next(metric for metric in TASKS[found["task"]].headlines if metric.key == found["metric"])


def best(found: Mapping[str, Any]) -> int:
    """The place of the best combination among the runs."""
    worse = [_metric(found).worse(entry["mean"]) for entry in found["runs"]]
    return worse.index(min(worse))


def markdown(found: Mapping[str, Any]) -> str:
    """The table as Markdown, the best score in bold.

    >>> entry = {"settings": {"model.cell": "gru"}, "mean": 0.9, "spread": 0.01, "parameters": 1000, "seconds": 5}
    >>> entry["metrics"] = {"macro_f1": {"mean": 0.8, "spread": 0.02}}
    >>> about = {"task": "classify", "score": "test accuracy", "metric": "accuracy", "seeds": 3}
    >>> print(markdown({"varied": ["model.cell"], **about, "runs": [entry]}))
    | model.cell | test accuracy (mean ± spread) | macro F1 | parameters | time |
    |---|---|---|---|---|
    | gru | **90.00 ± 1.00 %** | 80.00 ± 2.00 % | 1,000 | 5 s |
    <BLANKLINE>
    """
    heading, *lines = rows(found)
    place, score = best(found), len(found["varied"])
    lines[place][score] = f"**{lines[place][score]}**"
    rule = "|---" * len(heading) + "|"
    return "\n".join([f"| {' | '.join(heading)} |", rule, *(f"| {' | '.join(line)} |" for line in lines)]) + "\n"


def draw(found: Mapping[str, Any], path: Path) -> None:
    """A PNG: the score over the values of a key that are numbers, a line for each combination of the others."""
    from matplotlib.figure import Figure  # slow to import, and only needed here

    runs, keys = found["runs"], found["varied"]
    metric = _metric(found)
    along = next((key for key in keys if all(_number(run["settings"][key]) is not None for run in runs)), None)
    lines: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        rest = [shown_value(run["settings"][key]) for key in keys if key != along]
        lines.setdefault(", ".join(rest) or found["score"], []).append(run)
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for label, members in lines.items():
        means, spreads = ([metric.scaled(run[what]) for run in members] for what in ("mean", "spread"))
        if along is None:
            axes.errorbar([label], means, spreads, fmt="o", capsize=4)
        else:
            places = [_number(run["settings"][along]) or 0.0 for run in members]
            axes.errorbar(places, means, spreads, marker="o", capsize=4, label=label)
    if along is not None:
        values = sorted({_number(run["settings"][along]) or 0.0 for run in runs})
        if values[0] > 0 and len(values) > 2 and values[-1] / values[0] >= 4:
            axes.set_xscale("log", base=2)
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.set_xlabel(along)
        if len(lines) > 1:
            axes.legend(frameon=False)
    axes.set_ylabel(found["score"] + (" (%)" if metric.percent else ""))
    axes.spines[["top", "right"]].set_visible(False)
    with write_aside(path) as aside:
        figure.savefig(aside, format="png", dpi=120)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
