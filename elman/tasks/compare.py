"""Several runs of one recipe, side by side: every combination of some settings, with several seeds each.

compare("names-compare", vary={"model.cell": ["rnn", "lstm", "gru"], "model.hidden": [64, 128]}, out="runs/cells")

What differs by more than one key is a variant: `variants={"vectors": {"model.vectors": "runs/words"}, "none": {}}`.

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

from elman.draw.output import write
from elman.draw.panels import Bars, Column, Line, Lines, Page, Panel, Table
from elman.errors import Interrupted, UserError
from elman.files import write_json, write_text
from elman.metrics.metric import Metric
from elman.tasks import TASKS, find_task, recipe_task, training
from elman.tasks.lock import locked
from elman.tasks.recipes import find_recipe, lay_over, replaced, settled
from elman.tasks.report import Headline, Report
from elman.tasks.run import finished_report, is_empty
from elman.train.progress import Reporter, duration
from elman.train.recipe import Section, Settings, apply_overrides, flatten, from_toml, plain, read_toml, toml_value

MOST_NAME = 150  # characters of a folder's name
MOST_RUNS = 10_000
"""More are a slip of the keyboard: a plan is made of all of them before the first one starts."""

MARK = "compare.toml"
"""The file by which the folder of a comparison is known."""

PICTURES = ("plot.png", "plot.svg", "plot.html")
VARIANT = "variant"
"""The column of the variants, beside those of the keys that are varied."""
LABELS = "data.labels"
"""The key whose 0 is all records: tables and pictures have their number."""

Vary = Mapping[str, Sequence[Any]] | Iterable[str]
Variants = Mapping[str, Settings] | Iterable[str]


@dataclass
class Entry:
    """One combination of settings, and what its runs came to."""

    settings: dict[str, Any]
    scores: list[float] = field(default_factory=list)
    figures: list[dict[str, float]] = field(default_factory=list)
    """Every metric of each run."""
    seconds: list[float] = field(default_factory=list)
    parameters: int = 0
    records: int | None = None
    """That each run learned from; None where a task does not count them."""

    def to_dict(self) -> dict[str, Any]:
        """As table.json holds it."""
        keys = dict.fromkeys(key for each in self.figures for key in each)
        return {
            "settings": self.settings,
            **mean_and_spread(self.scores),
            "scores": self.scores,
            "metrics": {key: mean_and_spread([each[key] for each in self.figures if key in each]) for key in keys},
            "parameters": self.parameters,
            "records": self.records,
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
    variants: Variants = (),
    seeds: int | None = None,
    settings: Settings = (),
    force: bool = False,
    data_dir: Path | str | None = None,
    reporter: Reporter | None = None,
    show: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Train every combination of what `vary` lists, `seeds` times each; returns what `table.json` holds.

    `vary` is `{"model.hidden": [64, 128]}` or `["model.hidden=64,128"]`. `variants` are named settings, each combined
    with all of these: `{"none": {}, "vectors": {"model.vectors": "runs/words"}}`, or `["none", "vectors:
    model.vectors=runs/words"]`. A recipe may have all three in a `[compare]` table.
    """
    out, task = Path(out), recipe_task(recipe)
    tables = read_toml(find_recipe(recipe))
    asked = tables.pop("compare", {})
    grid, named = read_vary(vary), read_variants(variants)
    if not grid and not named:
        grid, named = read_vary(asked.get("vary", ())), read_variants(asked.get("variants", ()))
    count = _seeds(asked.get("seeds", 3) if seeds is None else seeds)
    given = apply_overrides({}, settings)
    _check_grid(grid, named, given, count)
    grid = {VARIANT: list(named), **grid} if named else grid
    kind = find_task(task).Recipe
    if (line := replaced(recipe, given)) is not None and show is not None:
        show(line)
    tables = lay_over(tables, given, recipe)
    entries = [Entry(dict(zip(grid, values, strict=True))) for values in itertools.product(*grid.values())]

    def chosen_for(entry: Entry, seed: int) -> Any:
        return settled(kind, tables, _asked(entry.settings, named, seed), str(recipe))

    # Networks of an ensemble have the seeds after its first; what a seed draws is the same for all combinations.
    apart = max(chosen_for(entry, 1).train.networks for entry in entries)
    seeded = range(1, 1 + count * apart, apart)
    plan = [(entry, seed, chosen_for(entry, seed)) for entry in entries for seed in seeded]  # checked before any starts
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
            entry.records = report["run"].get(TASKS[task].records)
        runs = [entry.to_dict() for entry in entries]
        assert headline is not None
        told = {"score": headline.name, "metric": headline.metric.key}
        found = {"task": task, **told, "seeds": count, "varied": list(grid), "variants": named, "runs": runs}
        write_json(out / "table.json", found)
        write_text(out / "table.md", markdown(found))
        for name in PICTURES:
            write(out / name, lambda: page(found, str(recipe)), dict)
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


def read_variants(variants: Variants) -> dict[str, dict[str, Any]]:
    """The settings of each variant, by its name.

    >>> read_variants(["none", "larger: model.hidden=256 train.lr=1e-3"])
    {'none': {}, 'larger': {'model': {'hidden': 256}, 'train': {'lr': 0.001}}}
    """
    if isinstance(variants, Mapping):
        return {str(name): apply_overrides({}, settings) for name, settings in variants.items()}
    found: dict[str, dict[str, Any]] = {}
    for text in [variants] if isinstance(variants, str) else variants if isinstance(variants, Iterable) else [variants]:
        name, _, settings = text.partition(":") if isinstance(text, str) else ("", "", "")
        if not name.strip() or "=" in name:
            raise UserError(f"'{text}' is no variant: write  NAME: section.key=value section.key=value")
        if name.strip() in found:
            raise UserError(f"there are two variants '{name.strip()}': give each a name of its own")
        found[name.strip()] = apply_overrides({}, settings.split())
    return found


def _asked(chosen: Mapping[str, Any], variants: Mapping[str, Mapping[str, Any]], seed: int) -> dict[str, Any]:
    """The settings of one run: those of its variant, and of each key that is varied."""
    varied = {key: value for key, value in chosen.items() if key != VARIANT}
    return apply_overrides(variants.get(chosen.get(VARIANT, ""), {}), {**varied, "train.seed": seed})


def _distinct(values: Iterable[Any]) -> list[Any]:
    return list({toml_value(value): value for value in map(plain, values)}.values())


def _seeds(asked: Any) -> int:
    if not isinstance(asked, int) or asked < 1:
        raise UserError(f"the number of seeds should be at least 1, not {asked}")
    return asked


def _check_grid(
    grid: Mapping[str, Sequence[Any]],
    variants: Mapping[str, Mapping[str, Any]],
    given: Mapping[str, Any],
    seeds: int,
) -> None:
    """Refuse a comparison of nothing, one without an end, and one with a key that is said twice."""
    if not (grid or variants) or not all(grid.values()):
        raise UserError("there is nothing to compare: give --vary section.key=value,value")
    if (runs := seeds * max(len(variants), 1) * math.prod(map(len, grid.values()))) > MOST_RUNS:
        raise UserError(
            f"that makes {runs:,} runs, and {MOST_RUNS:,} are the most: give fewer --seeds, or less to --vary"
        )
    said = {key: name for name, settings in variants.items() for key in flatten(settings)}
    if twice := [key for key in grid if key in said]:
        raise UserError(f"{twice[0]} is varied, and the variant '{said[twice[0]]}' says it too: leave one out")
    if "train.seed" in {*grid, *said, *flatten(given)}:
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
        shown = [_shown_setting(key, entry) for key in entry["settings"]]
        shown.append(_shown_score(_metric(found), entry, found["seeds"]))
        shown += [_shown_score(metric, entry["metrics"].get(metric.key), found["seeds"]) for metric in others]
        lines.append([*shown, f"{entry['parameters']:,}", duration(entry["seconds"])])
    return lines


def _shown_setting(key: str, entry: Mapping[str, Any]) -> str:
    value = entry["settings"][key]
    return f"all {entry['records']:,}" if key == LABELS and value == 0 else shown_value(value)


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


def page(found: Mapping[str, Any], title: str) -> Page:
    """The picture: a chart, and the table below it."""
    heading, *lines = rows(found)
    seeds = f"mean and standard deviation over {found['seeds']} seeds" if found["seeds"] > 1 else "one seed"
    return Page(title, f"{found['score']}: {seeds}", [Column("", [chart(found), Table("", heading, lines)])])


def chart(found: Mapping[str, Any], title: str = "") -> Panel:
    """The score over the values of a key that are numbers, a line for each combination of the others; else bars."""
    metric, runs, along = _metric(found), found["runs"], _axis(found)
    score = found["score"] + (" (%)" if metric.percent else "")
    labelled = [(_label(run, along) or found["score"], run) for run in runs]
    if along is None:
        means, spreads = ([metric.scaled(run[what]) for run in runs] for what in ("mean", "spread"))
        return Bars(title or score, [name for name, _ in labelled], means, spreads if found["seeds"] > 1 else ())
    lines = []
    for name in dict.fromkeys(name for name, _ in labelled):
        own = sorted(
            (_place(run, along), metric.scaled(run["mean"]), metric.scaled(run["spread"]))
            for label, run in labelled
            if label == name
        )
        x, y = [place for place, _, _ in own], [mean for _, mean, _ in own]
        ends = ([mean + sign * spread for _, mean, spread in own] for sign in (-1, 1))
        lines.append(Line(name, x, y, *(ends if found["seeds"] > 1 else ())))
    places = [_place(run, along) for run in runs]
    decades = min(places) > 0 and max(places) >= 10 * min(places)
    return Lines(title, lines, along, score, log_x=decades, whiskers=True)


def _axis(found: Mapping[str, Any]) -> str | None:
    """The first key whose values are numbers, several of them; None where there is none."""
    for key in found["varied"]:
        values = [run["settings"][key] for run in found["runs"]]
        if (
            all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
            and len(set(values)) > 1
        ):
            return str(key)
    return None


def _place(run: Mapping[str, Any], along: str) -> float:
    return float(run["records"] if along == LABELS else run["settings"][along])


def _label(run: Mapping[str, Any], along: str | None) -> str:
    """What a run is called in a picture: the values of all keys but the one along its axis."""
    return ", ".join(_shown_setting(key, run) for key in run["settings"] if key != along)
