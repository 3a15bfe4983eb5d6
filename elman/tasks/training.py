"""From a recipe to a trained, measured model folder, and the scores of a model: the same steps for every task."""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from elman.errors import RunError, UserError
from elman.files import ANOTHER_FOLDER
from elman.tasks.ensemble import EnsembleModel
from elman.tasks.folder import MEMBERS, read_config
from elman.tasks.folds import cross_validate
from elman.tasks.memory import explain_out_of_memory
from elman.tasks.reading import with_reading_settings
from elman.tasks.recipes import check_named, check_there_again, find_files
from elman.tasks.report import Report, write_report
from elman.tasks.run import clear_run, finished_report, open_folder, prepare_folder, run_folder, saved_recipe
from elman.tasks.stages import gains, plan_stages, run_stages
from elman.tasks.task import Data, Say, Source, Task, Training
from elman.tasks.transfer import language_models
from elman.tasks.vectors import fill_embeddings, find_vectors, refuse_other_vectors
from elman.text.vocabulary import warn_unknown_tokens
from elman.train.length import with_chosen_length
from elman.train.progress import Reporter
from elman.train.recipe import Settings, parse

Sources = Mapping[str, Source]
_running = RLock()  # not a plain one: a run of several folds trains each of them
SMALLER = "take a smaller batch (batch.size, batch.steps, batch.tokens), or a smaller model.hidden"


@contextmanager
def _alone() -> Iterator[None]:
    """One run at a time in a process, as all draw from the same generators; these are left as they were found."""
    import torch

    with _running:
        states = random.getstate(), np.random.get_state(), torch.get_rng_state()
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])
            torch.set_rng_state(states[2])


@_alone()
@explain_out_of_memory(SMALLER, RunError)  # it has begun, and has written what it had
def train(
    task: Task[Any, Any],
    recipe: Any,
    out: Path,
    *,
    memory: Sources | None = None,
    resume: bool = False,
    force: bool = False,
    data_dir: Path | str | None = None,
    reporter: Reporter | None = None,
) -> Report:
    """Train what the recipe says into the folder `out`; returns the report that `metrics.json` holds.

    `memory` has the splits whose records are not in files. With `data.folds`, a model is trained for each fold first
    (in `out/folds`), then one on all records; with `train.members`, those that answer with it (in `out/members`).
    """
    reporter = reporter or Reporter()
    data_dir = None if data_dir is None else Path(data_dir)
    with run_folder(out, recipe, resume=resume, force=force, say=reporter.say) as (recipe, goes_on):
        _use_threads(recipe.train.threads)
        if force:
            _refuse_own_folder(recipe, out)
        if resume and "train" not in (memory or {}) and saved_recipe(out, type(recipe)) is not None:
            check_there_again(recipe.data)
        said: list[str] = []
        with reporter.busy(f"reading the {task.records}"):
            vocabulary = _saved_vocabulary(task, out) if goes_on else None
            data = task.open(recipe, sources_of(recipe.data, memory, data_dir), vocabulary, said.append)
        for line in said:
            reporter.say(line)
        crossed = None
        if getattr(recipe.data, "folds", 0) and recipe.data.fold is None:
            if not resume or not (out / "recipe.toml").exists():
                prepare_folder(out, recipe)
            crossed = cross_validate(task, recipe, out, train, memory, resume, data_dir, reporter)
        others = {}
        if getattr(recipe.data, "unlabelled", ()):
            plan = plan_stages(task, recipe, data, reporter.say)
            if not resume or not (out / "recipe.toml").exists():
                prepare_folder(out, recipe)
            others = run_stages(plan, task, recipe, data, out, train, memory, resume, data_dir, reporter)
            reporter.say("stage: the model")
        report = _train_one(task, recipe, data, vocabulary, out, goes_on, reporter)
        if others:
            gains(report, others, reporter.say)
        if crossed is not None:
            report["cross_validation"] = crossed
        write_report(out, saved_recipe(out, type(recipe)) or recipe, report)
        return report


def _refuse_own_folder(recipe: Any, out: Path) -> None:
    """Refuse to begin with a model of the run that is to be removed."""
    named = [recipe.train.start, *(getattr(recipe.model, key, None) for key in ("start", "vectors", "strings"))]
    for given in named:
        for path in given if isinstance(given, tuple | list) else [given]:
            if path is not None and Path(path).resolve().is_relative_to(out.resolve()):
                raise UserError(f"{path} would be removed before this run could begin with it: {ANOTHER_FOLDER}")


def _saved_vocabulary(task: Task[Any, Any], out: Path) -> Any:
    """That of a run which goes on: some tokenizers come out differently when fitted again."""
    return task.Model.load_vocabulary(out, read_config(out, task.Model.Config, task.name))


def _use_threads(threads: int) -> None:
    import torch

    if threads:
        torch.set_num_threads(threads)


def sources_of(data: Any, memory: Sources | None, data_dir: Path | str | None) -> Sources:
    """Where each split is: in memory where that is given, else in the files that the recipe names."""
    memory = memory or {}
    files = find_files(data, data_dir, train_in_memory="train" in memory)
    return {**{split: Source(paths) for split, paths in files.items()}, **memory}


def _train_others(
    task: Task[Any, Any], recipe: Any, data: Data[Any], vocabulary: Any, out: Path, reporter: Reporter
) -> float:
    """Train all members of an ensemble but the first, on its records and with its vocabulary; none is done twice.

    Returns how many seconds they took.
    """
    count, seconds = getattr(recipe.train, "members", 1), 0.0
    for number in range(2, count + 1):
        place, seed = out / MEMBERS / str(number), (recipe.train.seed + number - 1) % 2**63
        part = recipe.model_copy(update={"train": recipe.train.model_copy(update={"members": 1, "seed": seed})})
        report = finished_report(place, part)
        if report is not None and not (place / "model.safetensors").exists():
            clear_run(place)  # there is nothing that could be gone on from
            report = None
        if report is None or "run" not in report:
            reporter.say(f"member {number} of {count}")
            with run_folder(place, part, resume=True, force=False, say=reporter.say) as (part, goes_on):
                words = _saved_vocabulary(task, place) if goes_on else vocabulary
                report = _train_one(task, part, data, words, place, goes_on, reporter)
                write_report(place, saved_recipe(place, type(part)) or part, report)
        seconds += report["run"]["seconds"]
    return seconds


def _train_one(
    task: Task[Any, Any],
    recipe: Any,
    data: Data[Any],
    vocabulary: Any,
    out: Path,
    goes_on: bool,
    reporter: Reporter,
) -> Report:
    run = begin(task, recipe, data, vocabulary, reporter.say)
    open_folder(out, run.recipe, run.model.config, run.model.vocabulary, resume=goes_on)
    threads = _threads()
    reporter.say(f"{task.describe(run)}; {threads} thread{'s' * (threads != 1)}")
    facts = task.learn(run, out, goes_on, reporter)
    facts["seconds"] += _train_others(task, recipe, data, run.model.vocabulary, out, reporter)
    model = task.Model.load(out)  # as a user will have it
    with reporter.busy("scoring the model that was kept, and the baselines"):
        report = score_sets(task, model, data.held_out, run.recipe, data.train, reporter.say)
    report |= {**task.facts(model), "run": facts}
    return report


def begin(
    task: Task[Any, Any], recipe: Any, data: Data[Any], vocabulary: Any = None, say: Say = lambda line: None
) -> Training[Any, Any]:
    """A fresh model and the examples that it is to learn from; the recipe then has what was chosen by their number.

    A run that goes on brings its vocabulary. One that starts from a trained model has that model's vocabulary and
    weights.
    """
    from elman.train.loop import seed_everything

    start = None
    if recipe.train.start is not None:
        try:
            start = task.Model.load(recipe.train.start)
        except UserError as error:
            raise UserError(f"train.start: {error}") from None
    if start is not None:
        if isinstance(start, EnsembleModel):
            start.refuse_ensemble("started from")
        task.check_start(start, data)
        refuse_other_vectors(recipe, start)
        vocabulary = start.vocabulary
    elif not data.starts:
        data.starts |= language_models(recipe.model, say)
    vocabulary = task.fit_vocabulary(recipe, data) if vocabulary is None else vocabulary
    for counts, what in task.vocabulary_counts(vocabulary):
        warn_unknown_tokens(counts, what, say)
    task.prepare(recipe, data, say)
    examples = task.examples(recipe, data, vocabulary)
    if (amount := task.amount(recipe, data, examples)) is not None:
        recipe = with_chosen_length(recipe, amount, say, smaller_helps=task.smaller_batches_help(recipe))
    recipe, vectors = find_vectors(task, recipe, data, vocabulary) if start is None else (recipe, {})
    seed_everything(recipe.train.seed)
    model = task.make(recipe, data, vocabulary, examples) if start is None else task.go_on_from(start, recipe)
    run = Training(task, recipe, data, model, examples)
    fill_embeddings(run, vectors, say)
    return run


def _threads() -> int:
    import torch

    return torch.get_num_threads()


def score_sets(
    task: Task[Any, Any], model: Any, sets: Mapping[str, Any], recipe: Any, train: Any, say: Say, baselines: bool = True
) -> Report:
    """The scores of a model on each set, and of its baselines; `train` is what those are made of, where it is known."""
    report = Report(task, {name: task.score(model, records, recipe, train) for name, records in sets.items()})
    if not all("loss" in report[name] for name in sets):
        raise TypeError(f"{type(task).__name__}.score gives no 'loss', by which a report knows the scores of a set")
    if baselines:
        rivals = task.baselines(model, train, recipe, say)
        report["baselines"] = {
            who: {name: score(records) for name, records in sets.items()} for who, score in rivals.items()
        }
    return report


def evaluate(
    task: Task[Any, Any],
    model: Any,
    sources: Mapping[str, Source],
    *,
    baselines: bool = True,
    data_dir: Path | str | None = None,
    settings: Settings = (),
    further: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda sets: {},
) -> Report:
    """Score each set beside the baselines.

    Those are made of the records that the model was trained on, if they are still there; else `note` says why not.
    `further` is what else a report is to hold, made of the sets.
    """
    data_dir = None if data_dir is None else Path(data_dir)
    recipe = parse(task.Recipe, model.recipe, where="the model's config.json")
    reading, notes = with_reading_settings(recipe, settings), list[str]()
    sets = {name: task.read_set(model, reading, source, name, notes.append) for name, source in sources.items()}
    train: Any = []
    if baselines and task.baselines_need_data(recipe):
        try:
            check_named(recipe.data)
            train = task.read_again(model, recipe, sources_of(recipe.data, None, data_dir))
        except UserError as error:
            notes.append(f"no baselines made of the training {task.records}: {error}")
    if isinstance(model, EnsembleModel) and model.others:
        notes.append(f"this model is an ensemble of {len(model.members)}")
    report = score_sets(task, model, sets, recipe, train, notes.append, baselines)
    report |= further(sets)
    return report if not notes else Report(task, {**report, "note": "\n".join(notes)})
