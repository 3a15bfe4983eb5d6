"""Classifiers, from a recipe to a trained, measured model folder.

recipe = read_recipe("names-classify", ["train.epochs=2"])
report = train(recipe, Path("runs/names"))
print(report["test"]["accuracy"])
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from elman.batches.examples import ExampleBatches, fingerprint
from elman.errors import UserError, nearest
from elman.records.classes import check_known
from elman.records.labelled import read_labelled
from elman.tasks.classify.data import ClassifyData, Texts, check_single, labelled_files, open_data, row
from elman.tasks.classify.inputs import Inputs, Reader, fit_reader, load_reader
from elman.tasks.classify.model import TextClassifier
from elman.tasks.classify.network import build_network
from elman.tasks.classify.report import evaluate_model, write_report
from elman.tasks.classify.scoring import quick_scores, targets_of
from elman.tasks.classify.settings import ClassifyRecipe
from elman.tasks.reading import with_reading_settings
from elman.tasks.recipes import check_named, load_recipe
from elman.tasks.run import open_folder, prepare_folder, run_facts, run_folder
from elman.text.vocabulary import warn_unknown_tokens
from elman.train import Loss, Reporter, Trainer, seed_everything
from elman.train.length import with_chosen_length
from elman.train.recipe import Settings, parse

WATCHED = 2000  # training texts that are scored now and then where nothing is held out


def read_recipe(source: Path | str | None = None, settings: Settings = ()) -> ClassifyRecipe:
    """A recipe from a file, or by the name of one that comes with Elman, with settings laid over it.

    >>> read_recipe(None, ["model.pooling=attention"]).model.pooling
    'attention'
    """
    return load_recipe(ClassifyRecipe, source, settings)


@dataclass(repr=False)
class Batch:
    """Some texts and their classes; shown in messages as the place they come from."""

    inputs: Inputs
    targets: Tensor  # B, or B x C where a text has several labels
    place: str

    def __repr__(self) -> str:
        return self.place


class ClassifyTask:
    """What the training loop sees of a classifier."""

    unit = "texts"

    def __init__(self, recipe: ClassifyRecipe, data: ClassifyData, reader: Reader) -> None:
        self.recipe, self.data, self.reader = recipe, data, reader
        self.network = build_network(recipe.model, reader, len(data.labels))
        self.model = TextClassifier(recipe.model, recipe.text, reader, self.network, data.labels, data.several)
        self.model.recipe = recipe.model_dump(mode="json")
        self.weights = class_weights(recipe.loss.class_weights, data)
        self.texts = [reader.encode(record.text) for record in data.train]
        self.targets = targets_of(data.train, data.labels, data.several)
        if data.dev:
            self.watched = [reader.encode(record.text) for record in data.dev]
            self.watched_targets = targets_of(data.dev, data.labels, data.several)
        else:  # texts are often sorted by class, so the first of them will not do
            some = np.random.default_rng(recipe.train.seed).permutation(len(self.texts))[:WATCHED]
            self.watched = [self.texts[index] for index in some]
            self.watched_targets = self.targets[torch.from_numpy(some)]

    def batches(self) -> ExampleBatches[Batch]:
        """Texts of like length together."""
        return ExampleBatches(
            [len(tokens) for tokens in self.texts],
            self.recipe.batch.amount,
            self._make,
            seed=self.recipe.train.seed,
            text=fingerprint(row(record) for record in self.data.train),
        )

    def _make(self, rows: np.ndarray) -> Batch:
        inputs = self.reader.pack([self.texts[index] for index in rows])
        places = ", ".join(self.data.train[index].where for index in rows[:3])
        return Batch(inputs, self.targets[torch.from_numpy(rows)], f"of the texts {places} ...")

    def loss(self, batch: Batch, state: Any) -> Loss:
        """The mean loss of some texts."""
        logits, smoothing = self.network(batch.inputs), self.recipe.loss.smoothing
        if self.data.several:
            targets = batch.targets * (1 - smoothing) + smoothing / 2
            mean = functional.binary_cross_entropy_with_logits(logits, targets, weight=self.weights)
        else:
            mean = functional.cross_entropy(logits, batch.targets, weight=self.weights, label_smoothing=smoothing)
        return Loss(mean, len(batch.targets))

    def evaluate(self) -> dict[str, float]:
        """Scores on the held-out texts; on some of the training texts where none are held out."""
        scores = quick_scores(torch.from_numpy(self.model.scores(self.watched)), self.watched_targets)
        return scores | ({"error": 1 - scores["accuracy"]} if self.data.dev else {})

    def save(self, folder: Path) -> None:
        """Write the model folder."""
        self.model.save(folder)


def class_weights(asked: Sequence[str], data: ClassifyData) -> Tensor | None:
    """How much each class counts in the loss (C), or None where all count alike.

    >>> from elman.records.labelled import LabelledText
    >>> train = [LabelledText("", (label,), "") for label in "aaab"]
    >>> class_weights(("balanced",), ClassifyData(train, [], [], ["a", "b"], several=False)).tolist()
    [0.6666666865348816, 2.0]
    """
    if not asked:
        return None
    if tuple(asked) == ("balanced",):
        counts = Counter(label for record in data.train for label in record.labels)
        total = sum(counts.values())
        return torch.tensor([total / (len(data.labels) * max(counts[label], 1)) for label in data.labels])
    named = {entry.rpartition("=")[0].strip(): float(entry.rpartition("=")[2]) for entry in asked}
    for label in named:
        if label not in data.labels:
            raise UserError(f"loss.class_weights names a class {label!r}: {nearest(label, data.labels)}")
    return torch.tensor([named.get(label, 1.0) for label in data.labels])


def train(
    recipe: ClassifyRecipe,
    out: Path | str,
    *,
    resume: bool = False,
    force: bool = False,
    data_dir: Path | None = None,
    reporter: Reporter | None = None,
) -> dict[str, Any]:
    """Train what the recipe says into the folder `out`; returns the report that `metrics.json` holds.

    With `data.folds`, a model is trained for each fold first (in `out/folds`), then one on all texts.
    """
    out, reporter = Path(out), reporter or Reporter()
    with run_folder(out, recipe, resume=resume, force=force, say=reporter.say) as (settled, goes_on):
        return _train_in(settled, out, resume, goes_on, data_dir, reporter)


def _train_in(
    recipe: ClassifyRecipe, out: Path, resume: bool, goes_on: bool, data_dir: Path | None, reporter: Reporter
) -> dict[str, Any]:
    if recipe.train.threads:
        torch.set_num_threads(recipe.train.threads)
    with reporter.busy("reading the texts"):
        data = open_data(recipe.data, recipe.train.seed, data_dir)
    for line in data.said:
        reporter.say(line)
    crossed = None
    if recipe.data.folds and recipe.data.fold is None:
        # Not at the top: cross-validation trains by this very function.
        from elman.tasks.classify.folds import cross_validate

        if not resume or not (out / "recipe.toml").exists():
            prepare_folder(out, recipe)
        crossed = cross_validate(recipe, out, resume=resume, data_dir=data_dir, reporter=reporter)
    return _train_one(recipe, data, out, goes_on, reporter, crossed)


def _train_one(
    recipe: ClassifyRecipe,
    data: ClassifyData,
    out: Path,
    goes_on: bool,
    reporter: Reporter,
    crossed: dict[str, Any] | None,
) -> dict[str, Any]:
    # Some tokenizers come out differently when fitted again: a run goes on with the one that it began with.
    if goes_on:
        reader = load_reader(out / "tokenizer.json", recipe.text, recipe.model)
    else:
        reader = fit_reader((record.text for record in data.train), recipe.text, recipe.model)
    warn_unknown_tokens(reader.counts, "training tokens", reporter.say)
    recipe = with_chosen_length(recipe, len(data.train), reporter.say)
    seed_everything(recipe.train.seed)
    task = ClassifyTask(recipe, data, reader)
    open_folder(out, recipe, reader, resume=goes_on)
    reporter.say(_describe(task))
    trainer = Trainer(task, recipe.train, out, reporter)
    trainer.run(goes_on)
    return _finish(task, trainer, out, reporter, crossed)


def _finish(
    task: ClassifyTask, trainer: Trainer, out: Path, reporter: Reporter, crossed: dict[str, Any] | None
) -> dict[str, Any]:
    """Score the model as a user will have it: loaded again from its folder."""
    model, data = TextClassifier.load(out), task.data
    sets = {name: records for name, records in (("dev", data.dev), ("test", data.test)) if records}
    with reporter.busy("scoring the model that was kept, and the baselines"):
        report = evaluate_model(model, sets, data.train, task.recipe.baseline)
    report |= {"parameters": model.parameters, "classes": len(model.labels), "several": model.several}
    report["run"] = run_facts(trainer) | {"texts": len(data.train)}
    if crossed is not None:
        report["cross_validation"] = crossed
    write_report(out, task.recipe, report)
    return report


def _describe(task: ClassifyTask) -> str:
    data, settings = task.data, task.recipe.model
    both = "2 x " if settings.bidirectional else ""
    cut = sum(len(tokens) >= settings.longest + 2 * settings.edges for tokens in task.texts)
    held = f"{len(data.dev):,} held out" if data.dev else "none held out, so some of them are scored in their place"
    return (
        f"{both}{settings.layers} x {settings.cell} {settings.hidden}, {task.model.parameters:,} parameters; "
        f"{len(data.train):,} texts of {len(data.labels)} classes to train on, {held}; "
        f"{task.reader.size:,} {task.recipe.text.kind}; {torch.get_num_threads()} threads"
        + (f"; {cut} texts are cut after model.longest={settings.longest} tokens" if cut else "")
    )


def evaluate(
    model: TextClassifier,
    paths: Iterable[Path | str],
    *,
    baselines: bool = True,
    data_dir: Path | None = None,
    settings: Settings = (),
) -> dict[str, Any]:
    """Score each of `paths`, a file or a folder of labelled texts, beside the baselines.

    Those are fitted to the texts that the model was trained on, if they are still there; else `note` says why not.
    """
    recipe = parse(ClassifyRecipe, model.recipe, where="the model's config.json")
    sets: dict[str, Texts] = {}
    for path in paths:
        records = read_labelled(labelled_files(with_reading_settings(recipe, settings).data, [Path(path)]))
        check_known(records, model.labels)
        check_single(records, model.several)
        sets[str(path)] = records
    known: Texts = []
    note = ""
    if baselines:
        try:
            check_named(recipe.data)
            known = open_data(recipe.data, recipe.train.seed, data_dir).train
        except UserError as error:
            note = f"no baselines, since the training texts were not found: {error}"
    report = evaluate_model(model, sets, known, recipe.baseline if baselines else None)
    return report | {"note": note} if note else report
