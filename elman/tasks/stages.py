"""Half-labelled data: a language model of all texts first, then the task on top of it, and the task without it beside.

elman.fit("classify", train="reviews.csv", unlabelled="more.txt", out="runs/reviews")

Each stage is a run of its own in `stages/` of the run's folder: one that was stopped goes on, one that is done is not
done again.
"""

import glob
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from elman.errors import UserError
from elman.files import reading
from elman.metrics.metric import first_of
from elman.records.decoding import ENCODING_OPTION
from elman.records.lines import FAIL, BadLines
from elman.records.paths import STANDARD_INPUT
from elman.records.tagged import DocumentMark
from elman.tasks.predict import PredictOptions, inputs, read_texts
from elman.tasks.report import Report
from elman.tasks.run import clear_runs, finished_report
from elman.tasks.task import Data, Say, Source, Task
from elman.tasks.transfer import language_models, layers_of
from elman.text.settings import TokenizerSettings
from elman.train.progress import Reporter
from elman.train.recipe import apply_overrides, parse

FOLDER = "stages"
WITHOUT, UNTUNED = "without the language model", "language model as it was"
"""Who the model is compared with in its report."""
PLACES = {WITHOUT: "without", UNTUNED: "untuned"}
CHARACTERS = {"layers": 1, "hidden": 256, "embedding": 64}  # of a character model that is made for a tagger
TRAINED = ("seed", "threads", "checkpoint_seconds", "log_every")
"""What the language model's run has from the task's."""
TABLES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson")
"""Endings of files that have columns."""


Train = Callable[..., Report]


class Plan(NamedTuple):
    """What the stages of a run are made of, read and checked before anything is written."""

    key: str
    """That of `model` under which the language models go."""
    starts: tuple[str | None, ...]
    languages: list[Any]
    """The recipes of the language models."""
    texts: Source


def plan_stages(task: Task[Any, Any], recipe: Any, data: Data[Any], say: Say) -> Plan:
    """The language models of a half-labelled run, and what they are to read."""
    key, starts = language_starts(task, recipe)
    languages = [language_recipe(task, recipe, start) for start in starts]
    return Plan(key, starts, languages, Source(objects=all_texts(task, recipe, data, say), name="texts"))


def run_stages(
    plan: Plan,
    task: Task[Any, Any],
    recipe: Any,
    data: Data[Any],
    out: Path,
    train: Train,
    memory: Any,
    resume: bool,
    data_dir: Path | None,
    reporter: Reporter,
) -> dict[str, Report]:
    """Train the language models of a half-labelled run, and what it is compared with; `data.starts` has the former.

    Returns the reports of the latter, by the names that they have beside the model.
    """
    folder = out / FOLDER
    if not resume:
        clear_runs(folder)

    def stage(who: str, task: Task[Any, Any], recipe: Any, place: Path, memory: Any) -> Report:
        report = finished_report(place, recipe)
        if report is None:
            reporter.say(f"stage: {who}")
            report = train(task, recipe, place, memory=memory, resume=True, data_dir=data_dir, reporter=reporter)
        return Report(task, report)

    made = []
    for number, language in enumerate(plan.languages, 1):
        place = folder / ("language-model" if len(plan.languages) == 1 else f"language-model-{number}")
        stage("the language model (its settings: transfer.lm)", language_task(), language, place, {"train": plan.texts})
        made.append(str(place.absolute()))
    section = recipe.model.model_copy(update={plan.key: tuple(made) if plan.key == "strings" else made[0]})
    data.starts |= language_models(section, reporter.say)
    if not recipe.transfer.baseline:
        return {}
    others = {WITHOUT: without_language_model(recipe)}
    if plan.starts[0] is not None:
        others[UNTUNED] = _labelled_only(recipe, recipe.model)
    return {who: stage(who, task, other, folder / PLACES[who], memory) for who, other in others.items()}


def language_task() -> Task[Any, Any]:
    from elman.tasks import TASKS

    return TASKS["lm"]


def language_starts(task: Task[Any, Any], recipe: Any) -> tuple[str, tuple[str | None, ...]]:
    """The key of `model` under which language models go, and what each of them begins with: None is from nothing."""
    if recipe.model.start is None and "strings" in type(recipe.model).model_fields:
        return "strings", recipe.model.strings or (None,)
    return "start", (recipe.model.start,)


def language_recipe(task: Task[Any, Any], recipe: Any, start: str | None) -> Any:
    """The recipe of a run's language model: it begins with another, or it is made to go under the task's network."""
    from elman.tasks import given_start

    language = language_task()
    settings: dict[str, Any] = {"baseline": {"order": 0}}
    settings["train"] = {key: getattr(recipe.train, key) for key in TRAINED}
    if start is not None:  # it goes on as it read before: a running text, or line by line
        settings = given_start(language, start, None, settings)
    elif language_starts(task, recipe)[0] == "strings":
        settings |= {"text": {"kind": "characters"}, "model": {**CHARACTERS, "direction": "both"}}
        settings["data"] = {"unit": "line"}
    else:
        sizes = {"embedding": recipe.model.embedding, "direction": recipe.model.direction}
        settings |= {"model": layers_of(recipe.model) | sizes, "data": {"unit": "line"}}
        settings["text"] = {key: getattr(recipe.text, key) for key in TokenizerSettings.model_fields}
    made = parse(language.Recipe, apply_overrides(settings, list(recipe.transfer.lm)), where="transfer.lm")
    if start is None:
        _check_goes_under(language_starts(task, recipe)[0], settings, made)
    return made


def _check_goes_under(key: str, settings: dict[str, Any], made: Any) -> None:
    """Refuse a language model that the task's own network, or tokenizer, could not go on with."""
    if key == "strings" and made.text.kind not in ("characters", "bytes"):
        raise UserError(f"transfer.lm: text.kind = {made.text.kind}, and strings are of characters or bytes")
    for section in ("model", "text") if key == "start" else ():
        for name, value in settings[section].items():
            if (other := getattr(getattr(made, section), name)) != value:
                raise UserError(
                    f"transfer.lm: {section}.{name} = {other}, and the language model has the task's own layers and "
                    f"tokenizer, where it is {value}: leave it out, or say it of the task"
                )


def without_language_model(recipe: Any) -> Any:
    """The recipe of the same task on the labelled records alone; no layer of it has to be spared."""
    plain = {"start": None, "direction": None} | ({"strings": ()} if hasattr(recipe.model, "strings") else {})
    train = recipe.train.model_copy(update={"unfreeze": 0.0, "layer_factor": 1.0})
    return _labelled_only(recipe, recipe.model.model_copy(update=plain)).model_copy(update={"train": train})


def _labelled_only(recipe: Any, model: Any) -> Any:
    return recipe.model_copy(update={"data": recipe.data.model_copy(update={"unlabelled": ()}), "model": model})


def all_texts(task: Task[Any, Any], recipe: Any, data: Data[Any], say: Say) -> list[str]:
    """The texts of the training records, and those without labels; `say` is told where a test text is among them."""
    more = list(unlabelled_texts(task, recipe, say))
    if not more:
        raise UserError(f"{recipe.data.unlabelled[0]} holds no texts: give at least one, or leave --unlabelled out")
    found = set(more)
    for name, records in data.held_out.items():
        if same := sum(task.text_of(record) in found for record in records):
            which = {"dev": "held-out", "test": "test"}[name]
            say(
                f"warning: {same:,} of the {len(records):,} {which} {task.records} stand in the unlabelled texts: the "
                "language model reads what the model is scored on, so the score is no longer one of unseen texts"
            )
    return [*(task.text_of(record) for record in data.train), *more]


def unlabelled_texts(task: Task[Any, Any], recipe: Any, say: Say) -> Iterator[str]:
    """The texts of files without labels, read as `elman predict` reads them; only empty lines are passed over."""
    reader, data = task.reader(recipe.data), recipe.data
    for name in data.unlabelled:
        if name != str(STANDARD_INPUT) and not glob.has_magic(name):
            with reading(Path(name)):  # a name that the system does not take is told of too
                if not Path(name).exists():
                    raise UserError(f"no such file: {name}; --unlabelled names files of texts")
    for source in inputs(list(data.unlabelled), data.encoding or "utf-8", say, option=ENCODING_OPTION):
        bad = BadLines("skip", lambda line: None)
        options = PredictOptions(where=source.where, column=getattr(data, "text_column", None), bad=bad)
        if source.path is not None and source.path.suffix.lower() not in TABLES:
            options = PredictOptions(where=source.where, bad=bad)
        for record in read_texts(reader, source.lines(FAIL), options):
            if not isinstance(record, DocumentMark) and (text := task.text_of(record).strip()):
                yield text


def gains(report: Report, others: dict[str, Report], say: Say) -> None:
    """Put the scores of the other stages beside the model's, and say what the language model gained."""
    sets = report.sets
    report["baselines"] = {
        **{who: {name: other[name] for name in sets if name in other} for who, other in others.items()},
        **report.get("baselines", {}),
    }
    if not sets or not others:
        return
    name = sets[-1]
    metric = first_of(report.task.headlines, report[name])
    figures = {who: metric.of(other[name]) for who, other in others.items() if name in other}
    own = metric.of(report[name])
    report["gains"] = {"set": name, "metric": metric.key, "model": own, **figures}
    for who, value in figures.items():
        if own is not None and value is not None:
            difference = (own - value) * (100 if metric.percent else 1)
            unit = " points" if metric.percent else ""
            say(f"{metric.name} {metric.shown(own)}, {metric.shown(value)} {who}: {difference:+.2f}{unit}")
