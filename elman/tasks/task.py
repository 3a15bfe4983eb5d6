"""A task, as the rest of the house knows it: what it says of itself, and what every task does in the same way.

A task is one object in one file. It says what a record is and how one is read, how records become a batch, its network
and its loss, how good a model is and what it is compared with. Training, resuming, folders, cards, tables, the command
line, cross-validation, comparisons and int8 exist once and know a task by this class alone.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from elman.batches.examples import ExampleBatches, fingerprint
from elman.errors import UserError
from elman.metrics.metric import Metric, first_of
from elman.records.reader import Files
from elman.runtime.quantise import dequantise
from elman.runtime.weights import arrays_of
from elman.tasks.ensemble import with_ensemble
from elman.tasks.folder import check_weights, fill
from elman.tasks.memory import built
from elman.tasks.model import Model
from elman.tasks.run import saved_recipe, write_recipe
from elman.train.recipe import Section

if TYPE_CHECKING:
    from elman.tasks.report import Report
    from elman.tasks.vectors import Embedded
    from elman.train.progress import Reporter
    from elman.train.task import Batches, Loss

R = TypeVar("R")
X = TypeVar("X")
M = TypeVar("M", bound=Model[Any, Any, Any, Any])

Say = Callable[[str], Any]
Score = Callable[[Sequence[Any]], dict[str, Any]]
"""From records to the scores of a baseline on them."""


class Reader(Protocol[R]):
    """One kind of record, and how it is written: in files, or as objects in memory."""

    def files(self, paths: Sequence[Path]) -> Files[R]:
        """The records of some files."""

    def objects(self, data: Iterable[Any], name: str) -> Iterable[R]:
        """The records of objects that the user has in memory; `name` is what to call them in messages."""


@dataclass(frozen=True)
class Source:
    """Where the records of a set are: files, or objects in memory."""

    paths: Sequence[Path] = ()
    objects: Iterable[Any] | None = None
    name: str = ""
    """What to call objects in messages."""

    def read(self, reader: Reader[R], say: Say) -> list[R]:
        """The records; `say` is told where it had to be guessed how they are written."""
        if self.objects is not None:
            records = list(reader.objects(self.objects, self.name))
            if not records:
                raise UserError(f"{self.name} is empty: give at least one record")
            return records
        files = reader.files(self.paths)
        if files.guess:
            say(files.guess)
        return files.read()


@dataclass
class Data(Generic[R]):
    """The records of each split."""

    train: list[R]
    dev: list[R]
    """Empty where nothing is held out."""
    test: list[R]
    facts: dict[str, Any] = field(default_factory=dict)
    """What a task found out about them, such as their labels."""
    starts: dict[str, Any] = field(default_factory=dict)
    """The language models that a network begins with, by the key of `model` that names each."""
    kept: dict[str, Any] = field(default_factory=dict)
    """What a task computes once for all networks that learn from them."""

    @property
    def held_out(self) -> dict[str, list[R]]:
        """The sets that a model is scored on."""
        return {name: records for name, records in (("dev", self.dev), ("test", self.test)) if records}


class Training(Generic[R, M]):
    """A task at work on some data: what the training loop sees."""

    def __init__(self, task: "Task[R, M]", recipe: Any, data: Any, model: M, examples: Any) -> None:
        self.task, self.recipe, self.data, self.model, self.examples = task, recipe, data, model, examples
        self.unit, self.nats, self.learns_alone = task.unit, task.nats, task.learns_alone
        self.keeps_last = task.keeps_last
        self.current: Any = None
        """The training batches, once they are asked for."""
        self.kept: dict[str, Any] = {}
        """What a task computes once and uses at every evaluation."""

    @property
    def network(self) -> Any:
        """What is trained."""
        return self.model.network

    def once(self, name: str, make: Callable[[], X]) -> X:
        """What `make` makes, which is kept under a name for the next time."""
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]  # type: ignore[no-any-return]

    def batches(self) -> "Batches":
        """The training batches, from the beginning."""
        self.current = self.task.batches(self)
        return self.current  # type: ignore[no-any-return]

    def loss(self, batch: Any, state: Any) -> "Loss":
        """The loss of one batch."""
        return self.task.loss(self, batch, state)

    def update(self, batch: Any, rate: float) -> "Loss":
        """Learn from one batch without PyTorch's help."""
        return self.task.update(self, batch, rate)

    def evaluate(self) -> dict[str, float]:
        """Scores on the held-out part."""
        return self.task.watch(self)

    def sample(self) -> str | None:
        """What the model writes by now; None where it writes nothing."""
        return self.task.sample(self)

    def save(self, folder: Path) -> None:
        """Write the model folder."""
        self.model.write(folder)


class Task(Generic[R, M]):
    """How models of one kind are trained and scored: from records (R) to batches, a loss, scores and a model (M).

    A subclass says these of itself; those with a value here may be left out:

    name                 as in `elman train NAME`
    about                its sentence in the help
    records              what its records are called: texts, sentences, pairs
    unit = "tokens"      what `Loss.tokens` counts, and the speed of training
    nats = True          whether its loss is in nats: a run stops at one that no perplexity can be made of
    counted = "tokens"   the key of the score that says how large a set is
    command = "predict"  what a trained model is for: `elman COMMAND MODEL`
    tried = '"a text"'   what that command is first tried with
    Recipe, Model        its classes
    Options = Section    what may be asked of a prediction
    metrics              the columns of its tables
    headlines            what runs are compared by: the first of them that the scores have
    example              a line of Python for its cards
    inherited = ()       keys of `data` that a run which starts from a trained model has from it, as it has its network
    learns_alone = False whether `update` learns from a batch, by a kernel, in place of `loss` and an optimizer
    keeps_last = False   whether `watch` has the last model kept, so that no evaluation is called the best so far
    record_has_image = False  whether an image belongs to a record: to the service it is sent with the request
    record_is_image = False   whether it is all of a record: `elman predict` is given images by their paths
    """

    name: ClassVar[str]
    about: ClassVar[str]
    records: ClassVar[str]
    unit: ClassVar[str] = "tokens"
    nats: ClassVar[bool] = True
    counted: ClassVar[str] = "tokens"
    command: ClassVar[str] = "predict"
    tried: ClassVar[str] = '"a text"'
    Recipe: ClassVar[type[Any]]
    Model: ClassVar[type[Any]]
    Options: ClassVar[type[Section]] = Section
    metrics: ClassVar[tuple[Metric, ...]]
    headlines: ClassVar[tuple[Metric, ...]]
    example: ClassVar[str] = 'model.predict("a text")'
    inherited: ClassVar[tuple[str, ...]] = ()
    learns_alone: ClassVar[bool] = False
    keeps_last: ClassVar[bool] = False
    record_has_image: ClassVar[bool] = False
    record_is_image: ClassVar[bool] = False

    # Records

    def reader(self, data: Any) -> Reader[R]:
        """How the records are read that the data section of a recipe speaks of."""
        raise NotImplementedError

    def sets(self, paths: Sequence[Path]) -> dict[str, list[Path]]:
        """The sets that some files to be scored are: each its own, unless a record takes several files."""
        return {str(path): [path] for path in paths}

    def open(self, recipe: Any, sources: "Mapping[str, Source]", vocabulary: Any, say: Say) -> Data[R]:
        """Read the data of a run; `vocabulary` is that of a run that goes on, None for a new one."""
        said: dict[str, None] = {}
        parts = {"train": self.read(sources["train"], recipe, "train", said.setdefault)}
        known = self.knowing(recipe, parts["train"])
        for split, source in sources.items():
            if split != "train":
                parts[split] = self.read(source, known, split, said.setdefault)
        for line in said:  # each once
            say(line)
        return self.settle(parts, recipe, say)

    def read(self, source: "Source", recipe: Any, split: str, say: Say) -> list[R]:
        """The records of one split, as they stand."""
        return source.read(self.reader(recipe.data), say)

    def knowing(self, recipe: Any, train: list[R]) -> Any:
        """The recipe with what the training records tell of how other sets are to be read."""
        return recipe

    def settle(self, parts: dict[str, list[R]], recipe: Any, say: Say) -> Data[R]:
        """Records as they were read, checked, with splits where they are missing; `say` is told what is odd."""
        train, dev = parts["train"], parts.get("dev", [])
        if not dev:
            train, dev = hold_out(train, recipe.data.dev_fraction, recipe.train.seed, self.records)
        return Data(train, dev, parts.get("test", []))

    def read_set(self, model: M, recipe: Any, source: "Source", name: str, say: Say) -> Any:
        """Records that a trained model is to be scored on, checked."""
        return source.read(self.reader(recipe.data), say)

    def key(self, record: R) -> Hashable:
        """What makes two records the same one."""
        return record

    def text_of(self, record: R) -> str:
        """The text of a record without its labels, for a language model to learn."""
        raise NotImplementedError

    # The network

    def fit_vocabulary(self, recipe: Any, data: Data[R]) -> Any:
        """What the model will read with, made of the training records; None where there is no text."""
        return None

    def vocabulary_counts(self, vocabulary: Any) -> Iterator[tuple[np.ndarray, str]]:
        """How often each of its tokens stood in training, and what they are: rare ones should not be most of it."""
        return iter(())

    def embedded(self, vocabulary: Any) -> "Mapping[str, Embedded]":
        """The embeddings that may begin with word vectors, by the key of `model` that names these."""
        return {}

    def prepare(self, recipe: Any, data: Data[R], say: Say) -> None:
        """What is made once for some records, takes long and is kept for other runs; `say` is told how far it is."""

    def amount(self, recipe: Any, data: Data[R], examples: Any) -> float | None:
        """The size of the training data in what a batch is counted in; None where there are no batches."""
        return len(examples)

    def smaller_batches_help(self, recipe: Any) -> bool:
        """Whether an epoch has more updates with smaller batches, so that they may be made smaller for small data."""
        return True

    def examples(self, recipe: Any, data: Data[R], vocabulary: Any) -> Any:
        """The training records as the network will learn them."""
        raise NotImplementedError

    def config_parts(self, recipe: Any, data: Data[R], examples: Any) -> dict[str, Any]:
        """What the config of a fresh model holds beside `model`: what was found out about the data."""
        return data.facts

    def make(self, recipe: Any, data: Data[R], vocabulary: Any, examples: Any) -> M:
        """A fresh model."""
        parts = self.config_parts(recipe, data, examples)
        config = self.Model.Config.new(self.name, recipe, model=recipe.model, **parts)
        network = built(lambda: self.fresh(config, vocabulary, recipe), recipe.model)
        self.begin_with(data.starts, network, vocabulary)
        return self.Model(config, vocabulary, network)  # type: ignore[no-any-return]

    def begin_with(self, starts: dict[str, Any], network: Any, vocabulary: Any) -> None:
        """Put language models under a fresh network: those that its recipe names, by their keys."""

    def check_start(self, start: M, data: Data[R]) -> None:
        """Refuse data that a trained model, from which a run is to start, has no answers for."""

    def go_on_from(self, start: M, recipe: Any) -> M:
        """A model to train further: what it is stays, how it is trained is the recipe's."""
        update = {"recipe": recipe.model_dump(mode="json"), "model": recipe.model}
        config = start.config.model_copy(update=update)
        network = built(lambda: self.fresh(config, start.vocabulary, recipe), recipe.model)
        weights, where = dequantise(start.weights()), f"the model {recipe.train.start}"
        try:
            check_weights(weights, {name: array.shape for name, array in arrays_of(network).items()}, where)
        except UserError:
            sizes = {name: value for name, value in recipe.model if not isinstance(value, float)}
            changed = [f"model.{name}" for name in sizes if sizes[name] != getattr(start.config.model, name)]
            if not changed:
                raise
            raise UserError(f"{', '.join(changed)} cannot be changed with --start: leave it out") from None
        fill(network, weights)
        return self.Model(config, start.vocabulary, network)  # type: ignore[no-any-return]

    def fresh(self, config: Any, vocabulary: Any, recipe: Any) -> Any:
        """A network to train."""
        return self.Model.build(config, vocabulary)

    def batches(self, run: Training[R, M]) -> "Batches":
        """Endless training batches: examples of like length together."""
        return ExampleBatches(
            self.lengths(run.examples),
            run.recipe.batch.amount,
            lambda rows: self.batch(run, rows),
            seed=run.recipe.train.network_seed,
            text=fingerprint(map(self.key, run.data.train)),
        )

    def lengths(self, examples: Any) -> Sequence[int] | np.ndarray:
        """By which examples are put together."""
        known = getattr(examples, "lengths", None)
        return [len(example) for example in examples] if known is None else known

    def batch(self, run: Training[R, M], rows: np.ndarray) -> Any:
        """Some of the training examples as the network reads them."""
        return run.examples.take(rows)

    def loss(self, run: Training[R, M], batch: Any, state: Any) -> "Loss":
        """The mean loss of a batch, given the state that the batch before it left."""
        raise NotImplementedError

    def update(self, run: Training[R, M], batch: Any, rate: float) -> "Loss":
        """Learn from a batch at a learning rate, where a task `learns_alone`; the loss, before that."""
        raise NotImplementedError

    def watch(self, run: Training[R, M]) -> dict[str, float]:
        """Scores on the held-out part while training; the model with the lowest `error` is kept, else that of `loss`.

        All but `error` is shown and logged. Unless a task says otherwise it is the loss and the headline of `score`,
        and the error is that headline as a number that grows as it gets worse.
        """
        scores = self.score(run.model, run.data.dev or run.data.train, run.recipe, ())
        metric = first_of(self.headlines, scores)
        value = metric.of(scores)
        return {"loss": scores["loss"]} | ({} if value is None else {metric.key: value, "error": metric.worse(value)})

    def sample(self, run: Training[R, M]) -> str | None:
        """What the model writes while it is trained, at every evaluation; None where there is no such thing.

        It must not draw from the random generators of the run.
        """
        return None

    def learn(self, run: Training[R, M], out: Path, resume: bool, reporter: "Reporter") -> dict[str, float]:
        """Train the model into its folder; what there is to say of how that went."""
        from elman.train.loop import Trainer

        trainer = Trainer(run, run.recipe.train, out, reporter)
        if resume:
            trainer.resume()
            if trainer.fraction >= 1.0:
                self._nothing_left(run, trainer, out, reporter)
            else:  # the report of a shorter run would say that this one is done
                (out / "metrics.json").unlink(missing_ok=True)
            write_recipe(out, run.recipe)  # not before it is known that the run can go on
        trainer.run()
        return {
            "seconds": trainer.seconds,
            "steps": trainer.step,
            "epochs": trainer.batches.progress,
            f"{self.unit}_per_second": trainer.tokens / max(trainer.seconds, 1e-9),
            self.records: len(run.examples),
        }

    def _nothing_left(self, run: Training[R, M], trainer: Any, out: Path, reporter: "Reporter") -> None:
        """Say that a run that is resumed is done; refuse to make it shorter than it is."""
        old, new = saved_recipe(out, type(run.recipe)), run.recipe.train
        epochs, steps = round(trainer.batches.progress, 1), trainer.step
        done = f"{steps:,} updates" if new.steps is not None else f"{epochs:g} epoch{'s' * (epochs != 1)}"
        if old is not None and (old.train.epochs, old.train.steps) != (new.epochs, new.steps):
            raise UserError(f"the run in {out} has {done} already: ask for more, or give --resume without them")
        key = "epochs" if new.steps is None else "steps"
        reporter.say(f"nothing is left to train: {new.whole} has its {done}; -s train.{key}=N goes on")

    # Scores

    def baselines_need_data(self, recipe: Any) -> bool:
        """Whether some are made of the training records, and not of what the model's folder holds."""
        return True

    def read_again(self, model: M, recipe: Any, sources: "Mapping[str, Source]") -> Any:
        """The records that a model learned from."""
        return self.open(recipe, sources, None, lambda line: None).train

    def facts(self, model: M) -> dict[str, Any]:
        """What a report says of the model beside its scores."""
        return {"about": model.about(), "parameters": model.parameters}

    def score(self, model: M, records: Sequence[R], recipe: Any, train: Sequence[R]) -> dict[str, Any]:
        """All that is to be said of a model on some records; `train` are those it learned from, where known."""
        raise NotImplementedError

    def baselines(self, model: M, train: Sequence[R], recipe: Any, say: Say) -> dict[str, Score]:
        """What the model has to beat, by name; made of the training records, where they are known."""
        raise NotImplementedError

    # Predictions

    def predictor(self, model: M, asked: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """What predicts lines, the model or more than it, and what is then asked of each prediction."""
        return with_ensemble(model, asked.pop("ensemble", ())), asked

    # Words

    def sentence(self, recipe: Any, report: "Report") -> str:
        """What the model is, for its card: the beginning of a sentence."""
        return f"A model for the task `{self.name}`: {report['about']}"

    def describe(self, run: Training[R, M]) -> str:
        """The run in a line, before it begins."""
        train, dev = len(run.data.train), len(run.data.dev)
        what = f"{run.model.about()}, {run.model.parameters:,} parameters"
        return f"{what}; {train:,} {self.records} to train on, {dev:,} held out"

    def details(self, scores: Mapping[str, Any]) -> str:
        """What is shown of one set below its table."""
        return ""

    def note(self, recipe: Any) -> str:
        """How the scores were counted, where a card has to say it."""
        return ""

    def draw(self, report: "Report", folder: Path) -> dict[str, str]:
        """Write the pictures of a report; what each is, by its file."""
        return {}

    def use(self, recipe: Any, report: "Report") -> tuple[Sequence[str], str]:
        """Commands for the card, in which `{model}` is the folder, and a line of Python."""
        return ("elman predict {model} FILE", "elman evaluate {model} FILE"), self.example


def draw_labelled(records: list[R], count: int, seed: int, what: str) -> list[R]:
    """So many training records by chance, in their order; with the same seed, fewer are among more. 0 is all of them.

    >>> draw_labelled(list("abcdef"), 2, 1, "texts"), draw_labelled(list("abcdef"), 4, 1, "texts")
    (['a', 'e'], ['a', 'b', 'c', 'e'])
    """
    if count > len(records):
        raise UserError(f"data.labels = {count:,}, and there are {len(records):,} training {what}: give fewer, or 0")
    drawn = np.random.default_rng(seed).permutation(len(records))[: count or len(records)]
    return [records[index] for index in sorted(drawn)]


def hold_out(records: list[R], share: float, seed: int, what: str) -> tuple[list[R], list[R]]:
    """Records to train on, and some by chance to hold out, the same for the same seed; both keep their order."""
    if len(records) < 2:
        one = what if what == "series" else what.removesuffix("s")
        raise UserError(f"there is one training {one} only: give more, so that some can be held out")
    count = min(max(1, round(len(records) * share)), len(records) - 1)
    held = set(np.random.default_rng(seed).permutation(len(records))[:count].tolist())
    kept = [record for number, record in enumerate(records) if number not in held]
    return kept, [record for number, record in enumerate(records) if number in held]
