"""From a recipe to a trained, measured model folder, and the scores of a model: the same steps for every task."""

import gc
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from elman.errors import RunError, UserError
from elman.files import ANOTHER_FOLDER
from elman.tasks.folder import MEMBERS, read_config, write_config
from elman.tasks.folds import cross_validate
from elman.tasks.memory import explain_out_of_memory
from elman.tasks.reading import with_reading_settings
from elman.tasks.recipes import check_named, check_there_again, find_files, paths_named
from elman.tasks.report import Report, write_report
from elman.tasks.run import (
    check_folder,
    check_place,
    clear_run,
    finished_report,
    is_removed,
    is_run,
    open_folder,
    prepare_folder,
    run_folder,
    saved_recipe,
)
from elman.tasks.stages import gains, language_task, plan_stages, run_stages
from elman.tasks.task import Data, Say, Source, Task, Training
from elman.tasks.transfer import language_models
from elman.tasks.vectors import check_vectors, fill_embeddings, find_vectors, refuse_other_vectors
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
        starts_over = force and is_run(out)
        if starts_over:
            _refuse_what_is_removed(recipe, out)
        _check_members(recipe, out, starts_over)
        if resume and "train" not in (memory or {}) and saved_recipe(out, type(recipe)) is not None:
            check_there_again(recipe.data)
        said: list[str] = []
        with reporter.busy(f"reading the {task.records}"):
            vocabulary = _saved_vocabulary(task, out) if goes_on else None
            data = task.open(recipe, sources_of(recipe.data, memory, data_dir), vocabulary, said.append)
        for line in said:
            reporter.say(line)
        crossed, folds = None, getattr(recipe.data, "folds", 0) and recipe.data.fold is None
        plan = plan_stages(task, recipe, data, reporter.say) if getattr(recipe.data, "unlabelled", ()) else None
        if starts_over and (folds or plan):  # else nothing is removed before all that it begins with was read
            language_models(recipe.model, lambda line: None)
            check_vectors(recipe)
            _load_start(task, recipe, data)
            for language in plan.languages if plan else ():
                _refuse_what_is_removed(language, out)
                check_vectors(language)
                if language.train.start is not None:
                    language_task().Model.load(language.train.start)
        if folds:
            if not resume or not (out / "recipe.toml").exists():
                prepare_folder(out, recipe)
            crossed = cross_validate(task, recipe, out, train, memory, resume, data_dir, reporter)
        others = {}
        if plan:
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


def _refuse_what_is_removed(recipe: Any, out: Path) -> None:
    """Refuse to begin with what goes with the older run in a folder."""
    for path in paths_named(recipe):
        if is_removed(path, out):
            raise UserError(f"{path} would be removed before this run could begin with it: {ANOTHER_FOLDER}")


def _check_members(recipe: Any, out: Path, starts_over: bool) -> None:
    """Refuse members that cannot be trained into their places, before anything else is."""
    if out.parent.name == MEMBERS and is_run(out.parent.parent):
        raise UserError(f"{out} is a member of the run in {out.parent.parent}: go on with that one")
    for number in range(2, recipe.train.networks + 1):
        check_place(out / MEMBERS / str(number))
        if not starts_over:
            check_folder(out / MEMBERS / str(number), _of_member(recipe, number), resume=True, force=False)


def _of_member(recipe: Any, number: int) -> Any:
    """The recipe of a further member of an ensemble."""
    return recipe.model_copy(update={"train": recipe.train.model_copy(update={"members": 1, "member": number})})


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


def _train_one(
    task: Task[Any, Any], recipe: Any, data: Data[Any], vocabulary: Any, out: Path, goes_on: bool, reporter: Reporter
) -> Report:
    """A model, or several that answer together, and what they score."""
    count = recipe.train.networks
    if goes_on and count > 1:
        _set_members(task, out, 1)
    facts, learned, vocabulary = _learn(task, recipe, data, vocabulary, out, goes_on, reporter, reporter.say)
    for number in range(2, count + 1):
        facts["seconds"] += _train_member(number, task, recipe, data, vocabulary, out / MEMBERS / str(number), reporter)
    if count > 1:  # only now they can be loaded together
        _set_members(task, out, count)
    return _scored(task, learned, data, out, facts, reporter)


def _set_members(task: Task[Any, Any], out: Path, count: int) -> None:
    config = read_config(out, task.Model.Config, task.name)
    write_config(out, task.name, config.model_copy(update={"members": count}))


def _train_member(
    number: int, task: Task[Any, Any], recipe: Any, data: Data[Any], vocabulary: Any, place: Path, reporter: Reporter
) -> float:
    """A further model of an ensemble, on the first one's records and with its vocabulary, unless it is there already.

    Returns how many seconds it took.
    """
    part = _of_member(recipe, number)
    report = finished_report(place, part)
    needed = ("config.json", "tokenizer.json", "model.safetensors")
    if report is not None and not all((place / name).exists() for name in needed):
        clear_run(place)  # there is nothing that could be gone on from
        report = None
    if report is None or _seconds(report) is None:
        reporter.say(f"member {number} of {recipe.train.networks}")
        gc.collect()  # a run and its batches know each other: the network of the last one goes now, not some time
        with run_folder(place, part, resume=True, force=False, say=reporter.say) as (part, goes_on):
            words = _saved_vocabulary(task, place) if goes_on else vocabulary
            facts, part, _ = _learn(task, part, data, words, place, goes_on, reporter, lambda line: None)
            report = _scored(task, part, data, place, facts, reporter, baselines=False)
            write_report(place, saved_recipe(place, type(part)) or part, report)
    return _seconds(report) or 0.0


def _seconds(report: Mapping[str, Any]) -> float | None:
    """How long a run took; None where its report does not say."""
    run = report.get("run")
    seconds = run.get("seconds") if isinstance(run, Mapping) else None
    return float(seconds) if isinstance(seconds, int | float) else None


def _learn(
    task: Task[Any, Any],
    recipe: Any,
    data: Data[Any],
    vocabulary: Any,
    out: Path,
    goes_on: bool,
    reporter: Reporter,
    say: Say,
) -> tuple[dict[str, Any], Any, Any]:
    """Train a network into its folder: what there is to say of that, the recipe in full, and the vocabulary.

    `say` is told how the run begins.
    """
    run = begin(task, recipe, data, vocabulary, say)
    open_folder(out, run.recipe, run.model.config, run.model.vocabulary, resume=goes_on)
    threads = _threads()
    say(f"{task.describe(run)}; {threads} thread{'s' * (threads != 1)}")
    return task.learn(run, out, goes_on, reporter), run.recipe, run.model.vocabulary


def _scored(
    task: Task[Any, Any],
    recipe: Any,
    data: Data[Any],
    out: Path,
    facts: dict[str, Any],
    reporter: Reporter,
    baselines: bool = True,
) -> Report:
    """The report of a run, of its model as a user will load it."""
    model = task.Model.load(out)
    with reporter.busy(f"scoring the model that was kept{', and the baselines' * baselines}"):
        report = score_sets(task, model, data.held_out, recipe, data.train, reporter.say, baselines)
    report |= {**task.facts(model), "run": facts}
    return report


def _load_start(task: Task[Any, Any], recipe: Any, data: Data[Any]) -> Any:
    """The trained model that a run starts from, if any."""
    if recipe.train.start is None:
        return None
    try:
        start = task.Model.load(recipe.train.start)
        start.refuse_ensemble("started from")
    except UserError as error:
        raise UserError(f"train.start: {error}") from None
    task.check_start(start, data)
    refuse_other_vectors(recipe, start)
    return start


def begin(
    task: Task[Any, Any], recipe: Any, data: Data[Any], vocabulary: Any = None, say: Say = lambda line: None
) -> Training[Any, Any]:
    """A fresh model and the examples that it is to learn from; the recipe then has what was chosen by their number.

    A run that goes on brings its vocabulary. One that starts from a trained model has that model's vocabulary and
    weights.
    """
    from elman.train.loop import seed_everything

    start = _load_start(task, recipe, data)
    if start is not None:
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
    seed_everything(recipe.train.network_seed)
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
    if len(model.members) > 1:
        notes.append(f"this model is an ensemble of {len(model.members)}")
    report = score_sets(task, model, sets, recipe, train, notes.append, baselines)
    report |= further(sets)
    return report if not notes else Report(task, {**report, "note": "\n".join(notes)})
