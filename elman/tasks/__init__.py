"""Tasks: each binds text, network, training and search into one thing that a user wants."""

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sized
from copy import copy
from importlib import import_module
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, overload

from elman.errors import UserError, nearest
from elman.tasks.folder import Config, read_config
from elman.tasks.memory import explain_out_of_memory
from elman.tasks.model import Backend, Model
from elman.tasks.predict import are_names
from elman.tasks.task import Source, Task
from elman.train.recipe import Settings, apply_overrides, parse, read_toml

if TYPE_CHECKING:
    from elman.tasks.answer import ImageAnswerer
    from elman.tasks.caption import Captioner
    from elman.tasks.classify import TextClassifier
    from elman.tasks.embed import VectorModel
    from elman.tasks.language import LanguageModel
    from elman.tasks.report import Report
    from elman.tasks.series import Forecaster
    from elman.tasks.tag import TagModel
    from elman.tasks.translate import Translator
    from elman.tasks.tree import TreeModel
    from elman.train.progress import Reporter


class Tasks(MutableMapping[str, Task[Any, Any]]):
    """Tasks by their names; those that come with Elman are imported when they are asked for, since that takes long."""

    def __init__(self, places: dict[str, str]) -> None:
        self._found: dict[str, str | Task[Any, Any]] = {**places}

    def __getitem__(self, name: str) -> Task[Any, Any]:
        found = self._found[name]
        if isinstance(found, str):
            module, _, kind = found.partition(":")
            found = self._found[name] = getattr(import_module(f"elman.tasks.{module}"), kind)()
        return found

    def __setitem__(self, name: str, task: Task[Any, Any]) -> None:
        self._found[name] = task

    def __delitem__(self, name: str) -> None:
        del self._found[name]

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


TASKS = Tasks(
    {
        "lm": "language:Language",
        "classify": "classify:Classify",
        "tag": "tag:Tag",
        "translate": "translate:Translate",
        "series": "series:SeriesTask",
        "embed": "embed:Embed",
        "caption": "caption:CaptionTask",
        "answer": "answer:Answer",
        "tree": "tree:TreeTask",
    }
)
"""Every task by its name."""

_MODELS = {
    "Captioner": "caption",
    "Forecaster": "series",
    "ImageAnswerer": "answer",
    "LanguageModel": "language",
    "TagModel": "tag",
    "TextClassifier": "classify",
    "Translator": "translate",
    "TreeModel": "tree",
    "VectorModel": "embed",
}

__all__ = ["Captioner", "Forecaster", "ImageAnswerer", "LanguageModel", "TagModel", "TextClassifier", "Translator"]
__all__ += ["TreeModel", "VectorModel", "evaluate", "fit", "load"]


def __getattr__(name: str) -> Any:
    if name in _MODELS:
        return getattr(import_module(f"elman.tasks.{_MODELS[name]}"), name)
    raise AttributeError(f"module 'elman.tasks' has no attribute {name!r}")


Paths = Path | str | Iterable[Path | str]
Given = Paths | Iterable[Any]
"""Names of files and folders, or the records themselves: tuples, dicts, a data frame, a data set, any iterator."""


def fit(
    task: str,
    recipe: Path | str | None = None,
    *,
    out: Path | str | None = None,
    train: Given = (),
    dev: Given = (),
    test: Given = (),
    settings: Settings = (),
    unlabelled: Paths = (),
    start: Path | str | None = None,
    resume: bool = False,
    force: bool = False,
    data_dir: Path | str | None = None,
    verbose: bool = True,
    callbacks: Iterable[Callable[[dict[str, Any]], object]] = (),
    reporter: "Reporter | None" = None,
) -> Any:
    """Train, as `elman train` does; returns the model, and on it what it scored: `model.report["dev"]["accuracy"]`.

    `recipe` is a file or the name of a recipe that comes with Elman; `settings` go over it: values by key, as
    `{"model.hidden": 64}` or `{"model": {"hidden": 64}}`, or the command line's texts, `["model.hidden=64"]`. The data
    are names of files, or records in memory: `[("a fine film", "good"), ...]`. Without `out` nothing is kept on disk.
    To resume, the folder is enough; with `settings={"train.epochs": 20}` a finished run goes on. `start` is a trained
    model of the same task to begin with. `unlabelled` names files of texts without labels: a language model learns from
    them first (or `start`, which is one then, learns on), and goes under the classifier or tagger. Each of `callbacks`
    is called with every record of the log.
    """
    from elman.tasks import training
    from elman.tasks.recipes import load_recipe, replaced
    from elman.tasks.run import saved_recipe
    from elman.train.progress import Reporter

    if resume and force:
        raise UserError("--resume goes on with a run and --force throws it away: give one of them")
    if out is None:
        if resume:
            raise UserError("there is no run to resume: name its folder with out")
        with TemporaryDirectory(prefix="elman-") as folder:
            given: dict[str, Any] = {"train": train, "dev": dev, "test": test, "settings": settings, "start": start}
            given |= {
                "unlabelled": unlabelled,
                "verbose": verbose,
                "callbacks": callbacks,
                "reporter": reporter,
                "data_dir": data_dir,
            }
            return fit(task, recipe, out=folder, **given)
    chosen, reporter = find_task(task), copy(reporter) if reporter is not None else Reporter(quiet=not verbose)
    reporter.callbacks = [*reporter.callbacks, *callbacks]  # of this run: the caller's reporter stays as it is
    files, memory = _sorted_out({"train": train, "dev": dev, "test": test})
    named = {split: full_names(names) for split, names in files.items()}
    named |= _without_labels(chosen, unlabelled)
    given = apply_overrides(apply_overrides({}, settings), {"data": named} if named else {})
    if start is not None:
        given = given_start(chosen, start, recipe, given)
    saved = saved_recipe(Path(out), chosen.Recipe) if resume and recipe is None else None
    if resume and saved is None and recipe is None and not given:
        raise UserError(f"there is no run to resume in {out}")
    _check_task(task, recipe)
    if saved is not None:
        from elman.tasks.transfer import with_full_names

        given = with_full_names(chosen.Recipe, given)  # as the run that is resumed has them
        settled = parse(chosen.Recipe, apply_overrides(saved.model_dump(), given), where="the settings")
    else:
        settled = load_recipe(chosen.Recipe, recipe, given)
        if (line := replaced(recipe, given)) is not None:
            reporter.say(line)
    report = training.train(
        chosen, settled, Path(out), memory=memory, resume=resume, force=force, data_dir=data_dir, reporter=reporter
    )
    model = chosen.Model.load(out)
    model.report = report
    return model


def _without_labels(task: Task[Any, Any], names: Paths) -> dict[str, list[str]]:
    """The key of `data` for texts without labels; refused where the task has none for them."""
    texts = full_names(names)
    if texts and "unlabelled" not in task.Recipe.model_fields["data"].annotation.model_fields:
        raise UserError(f"texts without labels are for classify and tag, not for {task.name}: leave --unlabelled out")
    return {"unlabelled": texts} if texts else {}


def given_start(
    task: Task[Any, Any], start: Path | str, recipe: Path | str | None, given: dict[str, Any]
) -> dict[str, Any]:
    """The settings with the network and the text of the model that a run starts from, where they do not say others."""
    from elman.tasks.recipes import find_recipe
    from elman.tasks.transfer import FOLDERS, can_start, language_start

    if not isinstance(start, Path | str):
        what = "a model itself: save it with model.save(folder), and" if isinstance(start, Model) else "no folder:"
        raise UserError(f"start is {what} give the folder of a trained model")
    if isinstance(data := given.get("data"), Mapping) and data.get("unlabelled"):
        return apply_overrides({"model": language_start(task, start)}, given)
    if can_start(task.Recipe) and read_config(Path(start), Config).task == "lm":
        raise UserError(f"{start} holds a language model, no {task.name} model: give it as -s model.start={start}")
    trained = read_config(Path(start), Config, task.name).recipe
    own: dict[str, Any] = {section: trained[section] for section in ("model", "text") if section in trained}
    gone = (*FOLDERS, "vectors_frozen")  # what it began with itself is in it
    own["model"] = {key: value for key, value in own.get("model", {}).items() if key not in gone}
    known, told = trained.get("data", {}), read_toml(find_recipe(recipe)).get("data", {}) if recipe is not None else {}
    own["data"] = {key: known[key] for key in task.inherited if key in known and key not in told}
    return apply_overrides(apply_overrides(own, given), {"train.start": str(Path(start).absolute())})


def _sorted_out(given: dict[str, Given]) -> tuple[dict[str, list[str]], dict[str, Source]]:
    """The splits whose data are names of files, and those whose records are in memory."""
    files: dict[str, list[str]] = {}
    memory: dict[str, Source] = {}
    for split, data in given.items():
        if isinstance(data, Path | str):
            files[split] = [str(data)]
        elif data is None or (isinstance(data, list | tuple) and not data):
            continue
        elif isinstance(data, list | tuple) and are_names(data):
            files[split] = list(map(str, data))
        else:
            memory[split] = Source(objects=_not_empty(data, split), name=split)
    return files, memory


def _not_empty(data: Iterable[Any], name: str) -> Iterable[Any]:
    """Data in memory, of which there must be some: an iterator that was gone through before has none left."""
    nothing = object()
    first = next(data, nothing) if isinstance(data, Iterator) else None
    countable = isinstance(data, Sized) and getattr(data, "shape", None) != ()  # an array may be one number
    if first is nothing or (countable and not len(data)):  # type: ignore[arg-type]
        raise UserError(f"{name} is empty: give at least one record")
    return chain([first], data) if isinstance(data, Iterator) else data


@overload
def load(folder: Path | str, task: Literal["lm"], *, backend: Backend = "auto") -> "LanguageModel": ...


@overload
def load(folder: Path | str, task: Literal["classify"], *, backend: Backend = "auto") -> "TextClassifier": ...


@overload
def load(folder: Path | str, task: Literal["tag"], *, backend: Backend = "auto") -> "TagModel": ...


@overload
def load(folder: Path | str, task: Literal["translate"], *, backend: Backend = "auto") -> "Translator": ...


@overload
def load(folder: Path | str, task: Literal["series"], *, backend: Backend = "auto") -> "Forecaster": ...


@overload
def load(folder: Path | str, task: Literal["embed"], *, backend: Backend = "auto") -> "VectorModel": ...


@overload
def load(folder: Path | str, task: Literal["caption"], *, backend: Backend = "auto") -> "Captioner": ...


@overload
def load(folder: Path | str, task: Literal["answer"], *, backend: Backend = "auto") -> "ImageAnswerer": ...


@overload
def load(folder: Path | str, task: Literal["tree"], *, backend: Backend = "auto") -> "TreeModel": ...


@overload
def load(folder: Path | str, task: str | None = None, *, backend: Backend = "auto") -> Any: ...


def load(folder: Path | str, task: str | None = None, *, backend: Backend = "auto") -> Any:
    """The model in a folder, of whatever task or of the one that is asked for.

    `backend` is what predicts: the compiled runtime where it can ("auto") or else not at all ("compiled"), or always
    PyTorch ("torch").
    """
    config = read_config(Path(folder), Config, task)
    with explain_out_of_memory(f"{folder} is too large a model for this machine"):
        return find_task(config.task, f"{folder} holds a model for the").Model.load(folder, backend=backend)


def evaluate(
    model: Any,
    data: Given,
    *,
    baselines: bool = True,
    data_dir: Path | str | None = None,
    settings: Settings = (),
) -> "Report":
    """Score a model, or that of a folder, as `elman evaluate` does: for each file its scores, and the baselines'.

    The files are read as those that the model learned from; `settings` say where they differ, as
    `{"data.encoding": "latin-1"}`. Scores are found by the name of the file as it was given,
    `report["more.csv"]["accuracy"]`; records in memory are one set, called "data".

    A language model that adapts while it reads, `model.adapting(cache=True)`, is scored beside the one that does not:
    `report["adapted"]["cache"]["more.txt"]`.
    """
    from elman.tasks import training

    model = load(model) if isinstance(model, Path | str) else model
    further: dict[str, Any] = {}
    if (static := getattr(model, "static", None)) is not None:
        model, further = static, {"further": model.report_of}
    task = TASKS[task_of(model)]
    files, memory = _sorted_out({"data": data})
    if not files and not memory:
        raise UserError("data is empty: give at least one record, or the name of a file")
    given = {str(Path(name)): name for name in files.get("data", [])}
    sets = task.sets([Path(name) for name in given])
    sources = {**{given.get(name, name): Source(paths) for name, paths in sets.items()}, **memory}
    given_too = {"baselines": baselines, "data_dir": data_dir, "settings": settings, **further}
    return training.evaluate(task, model, sources, **given_too)


def task_of(model: Any) -> str:
    """The name of the task that a model was trained for."""
    if not isinstance(model, Model):
        raise UserError(f"a {type(model).__name__} is no model of Elman's: give one, or its folder")
    return model.task


def find_task(name: str, who: str = "there is no") -> Task[Any, Any]:
    """A task by its name; `who` begins the sentence where there is no such task."""
    if name not in TASKS:
        if who == "there is no":
            raise UserError(f"{who} task '{name}': {nearest(name, TASKS)}")
        raise UserError(
            f"{who} task '{name}', which this Elman does not know ({nearest(name, TASKS)}): "
            "if a file of your own registers it, run that, as in  python FILE predict ..."
        )
    return TASKS[name]


def recipe_task(recipe: Path | str) -> str:
    """The task that a recipe is for.

    >>> recipe_task("tinyshakespeare")
    'lm'
    """
    from elman.tasks.recipes import find_recipe

    path = find_recipe(recipe)
    tables = read_toml(path)
    if "task" not in tables:
        raise UserError(f'{path} does not say what it is a recipe for: write a line such as  task = "classify"  first')
    task = str(tables["task"])
    find_task(task, f"{path} is a recipe for the")
    return task


def _check_task(task: str, recipe: Path | str | None) -> None:
    if recipe is None:
        return
    from elman.tasks.recipes import find_recipe

    tables = read_toml(find_recipe(recipe, task))
    if (meant := tables.get("task", task)) != task:
        raise UserError(f"'{recipe}' is a recipe for another task: use it with  elman train {meant}")
    if "compare" in tables:
        raise UserError(f"'{recipe}' is a recipe for several runs: use it with  elman compare {recipe}")


def full_names(paths: Paths) -> list[str]:
    """Names that hold wherever a run is resumed from."""
    several = [paths] if isinstance(paths, Path | str) else list(paths)
    # Links that go in circles are told of when they are read; standard input stands nowhere.
    return [str(path) if str(path) == "-" else str(Path(path).absolute()) for path in several]
