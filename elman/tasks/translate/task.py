"""Translators, from a recipe to a trained, measured model folder.

recipe = read_recipe("multi30k-de-en", ["train.epochs=2"])
report = train(recipe, Path("runs/de-en"))
print(report["test"]["bleu"])
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elman.batches.examples import ExampleBatches, fingerprint
from elman.errors import UserError
from elman.records.pairs import Pair, read_pairs
from elman.tasks.reading import with_reading_settings
from elman.tasks.recipes import check_named, load_recipe
from elman.tasks.run import open_folder, run_facts, run_folder
from elman.tasks.translate.batch import Batch, Ints, make_batch
from elman.tasks.translate.data import TranslateData, open_data, pair_files
from elman.tasks.translate.model import Translator
from elman.tasks.translate.network import build_network
from elman.tasks.translate.report import evaluate_model, write_report
from elman.tasks.translate.scoring import expected_scores
from elman.tasks.translate.settings import TranslateRecipe
from elman.tasks.translate.sides import Sides
from elman.tasks.translate.usual import Usual
from elman.text.vocabulary import warn_unknown_tokens
from elman.train import Loss, Reporter, Trainer, seed_everything
from elman.train.length import with_chosen_length
from elman.train.recipe import EPOCHS, Settings, parse


def read_recipe(source: Path | str | None = None, settings: Settings = ()) -> TranslateRecipe:
    """A recipe from a file, or by the name of one that comes with Elman, with settings laid over it.

    >>> read_recipe(None, ["model.attention=additive"]).model.attention
    'additive'
    """
    return load_recipe(TranslateRecipe, source, settings)


class TranslateTask:
    """What the training loop sees of a translator."""

    unit = "tokens"

    def __init__(
        self,
        recipe: TranslateRecipe,
        data: TranslateData,
        sides: Sides,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.data = data
        self.network = build_network(recipe.model, sides, recipe.loss.smoothing)
        self.model = Translator(recipe.model, recipe.search, sides, self.network, longest=0)
        encoded = [self.model.encode(pair.source, pair.target) for pair in data.train]
        longest, places = recipe.data.longest, recipe.model.places or recipe.data.longest
        self.pairs = [pair for pair in encoded if len(pair[0]) <= min(longest, places) and len(pair[1]) <= longest]
        self.left_out = len(encoded) - len(self.pairs)
        self.limit = f"data.longest={longest}" + (f" or model.longest={places}" if places < longest else "")
        if not self.pairs:
            raise UserError(f"every training pair has a side of more than {self.limit} tokens: raise it")
        self.recipe = with_chosen_length(recipe, sum(len(target) + 1 for _, target in self.pairs), say)
        self.model.recipe = self.recipe.model_dump(mode="json")
        self.held_out = [self.model.encode(pair.source, pair.target) for pair in data.dev]
        self.model.longest = max(len(source) for source, _ in self.pairs)
        characters = sum(len(pair.source) for pair in data.train)
        self.model.usual = Usual.of(encoded, characters=characters, size=sides.source.size, joint=sides.joint)
        self._training: ExampleBatches[Batch] | None = None

    def batches(self) -> ExampleBatches[Batch]:
        """Pairs of like length together, as many as make the tokens of a batch."""
        self._training = ExampleBatches(
            np.array([[len(target) + 1, len(source)] for source, target in self.pairs]),
            None,
            self._make,
            tokens=self.recipe.batch.amount,
            seed=self.recipe.train.seed,
            text=fingerprint((pair.source, pair.target) for pair in self.data.train),
        )
        return self._training

    def _make(self, rows: Ints) -> Batch:
        chosen = [self.pairs[row] for row in rows]
        return make_batch([source for source, _ in chosen], [target for _, target in chosen], self.model.end)

    def loss(self, batch: Batch, state: Any) -> Loss:
        """The mean loss of some pairs per target token."""
        hidden = self.network.readouts(batch.source, batch.lengths, batch.inputs, batch.batch_sizes, self._forcing())
        return Loss(self.network.softmax.loss(hidden, batch.targets), len(batch.targets))

    def _forcing(self) -> float:
        """The share of steps that are told what is right, by now."""
        begin, end = self.recipe.loss.teacher_forcing, self.recipe.loss.teacher_forcing_end
        if end is None or self._training is None:
            return begin
        settings, epochs = self.recipe.train, self.recipe.train.epochs or EPOCHS
        if settings.steps is not None:
            epochs = settings.steps * settings.accumulate / len(self._training)
        return begin + (end - begin) * min(1.0, self._training.progress / epochs)

    def evaluate(self) -> dict[str, float]:
        """Scores on the held-out pairs; the model that says most of their tokens right is kept."""
        scores = expected_scores(self.model, self.held_out)
        return scores | {"error": 1 - scores["token_accuracy"]}

    def save(self, folder: Path) -> None:
        """Write the model folder."""
        self.model.save(folder)


def train(
    recipe: TranslateRecipe,
    out: Path | str,
    *,
    resume: bool = False,
    force: bool = False,
    data_dir: Path | None = None,
    reporter: Reporter | None = None,
) -> dict[str, Any]:
    """Train what the recipe says into the folder `out`; returns the report that `metrics.json` holds."""
    out, reporter = Path(out), reporter or Reporter()
    with run_folder(out, recipe, resume=resume, force=force, say=reporter.say) as (settled, goes_on):
        return _train_in(settled, out, goes_on, data_dir, reporter)


def _train_in(
    recipe: TranslateRecipe, out: Path, resume: bool, data_dir: Path | None, reporter: Reporter
) -> dict[str, Any]:
    if recipe.train.threads:
        torch.set_num_threads(recipe.train.threads)
    with reporter.busy("reading the pairs"):
        data = open_data(recipe.data, recipe.train.seed, data_dir)
        # Some tokenizers come out differently when fitted again: a run goes on with the one that it began with.
        if resume:
            sides = Sides.load(out / "tokenizer.json")
        else:
            sides = Sides.fit(recipe.text, [(pair.source, pair.target) for pair in data.train])
    for line in data.said:
        reporter.say(line)
    warn_unknown_tokens(sides.source.counts, "source tokens", reporter.say)
    warn_unknown_tokens(sides.target.counts, "target tokens", reporter.say)
    seed_everything(recipe.train.seed)
    task = TranslateTask(recipe, data, sides, reporter.say)
    open_folder(out, task.recipe, sides, resume=resume)
    reporter.say(_describe(task))
    trainer = Trainer(task, task.recipe.train, out, reporter)
    trainer.run(resume)
    return _finish(task, trainer, out, reporter)


def _finish(task: TranslateTask, trainer: Trainer, out: Path, reporter: Reporter) -> dict[str, Any]:
    """Score the model as a user will have it: loaded again from its folder."""
    model, data = Translator.load(out), task.data
    sets = {"dev": data.dev} | ({"test": data.test} if data.test else {})
    with reporter.busy("scoring the model that was kept, and the baselines"):
        report = evaluate_model(model, sets, data.train, task.recipe.report)
    report |= {"parameters": model.parameters, "run": run_facts(trainer) | {"pairs": len(task.pairs)}}
    write_report(out, task.recipe, report)
    return report


def _describe(task: TranslateTask) -> str:
    settings, sides = task.recipe.model, task.model.sides
    looks = "no attention" if settings.decoder == "plain" else f"{settings.attention} attention"
    sizes = f"{sides.source.size:,}" if sides.joint else f"{sides.source.size:,} and {sides.target.size:,}"
    left_out = f"; {task.left_out:,} pairs are longer than {task.limit} and left out"
    return (
        f"{settings.layers} x {settings.cell} {settings.hidden}, {settings.decoder} decoder, {looks}, "
        f"{task.model.parameters:,} parameters; {len(task.pairs):,} pairs to train on, {len(task.held_out):,} held "
        f"out; {sizes} {task.recipe.text.kind}; {torch.get_num_threads()} threads{left_out if task.left_out else ''}"
    )


def evaluate(
    model: Translator,
    paths: Iterable[Path | str],
    *,
    baselines: bool = True,
    data_dir: Path | None = None,
    settings: Settings = (),
) -> dict[str, Any]:
    """Score files of pairs, or two parallel files, beside the baselines.

    Those are made of the pairs that the model was trained on, if they are still there; else `note` says why not.
    """
    recipe = parse(TranslateRecipe, model.recipe, where="the model's config.json")
    named = [Path(path) for path in paths]
    files = pair_files(with_reading_settings(recipe, settings).data, named)
    found = read_pairs(files)
    sets = {" ".join(map(str, named)): found.pairs}
    known: list[Pair] = []
    notes = found.said[:1] if found.empty else []
    if baselines:
        try:
            check_named(recipe.data)
            known = open_data(recipe.data, recipe.train.seed, data_dir).train
        except UserError as error:
            notes.append(f"no baselines, since the training pairs were not found: {error}")
    report = evaluate_model(model, sets, known, recipe.report)
    return report | {"note": "\n".join(notes)} if notes else report
