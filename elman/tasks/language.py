"""Language models, from a recipe to a trained, measured model folder.

recipe = read_recipe("tinyshakespeare", ["train.epochs=2"])
report = train(recipe, Path("runs/shakespeare"))
print(report["dev"]["perplexity"])
"""

import json
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from elman.corpora.batches import Batch, LineBatches, Reversed, StreamBatches
from elman.errors import UserError
from elman.files import write_text
from elman.metrics import KneserNey
from elman.nn.language import LanguageNetwork, detach
from elman.tasks.language_data import LanguageData, open_data
from elman.tasks.language_model import LanguageModel
from elman.tasks.language_network import build_network
from elman.tasks.language_report import evaluate_model, write_report
from elman.tasks.language_scoring import Reading, hidden_and_targets
from elman.tasks.language_settings import LanguageRecipe
from elman.tasks.recipes import find_recipe
from elman.train import Loss, Reporter, Trainer, seed_everything
from elman.train.recipe import apply_overrides, differences, parse, read_toml, to_toml

MODEL_FILES = ("config.json", "tokenizer.json", "model.safetensors", "metrics.json", "README.md")
RUN_FILES = (*MODEL_FILES, "recipe.toml", "log.jsonl", "curves.png", "checkpoint", "tensorboard")


def read_recipe(source: Path | str | None = None, overrides: Iterable[str] = ()) -> LanguageRecipe:
    """A recipe from a file, or by the name of one that comes with Elman, with settings laid over it.

    >>> read_recipe(None, ["model.hidden=64"]).model.hidden
    64
    """
    path = find_recipe(source) if source is not None else None
    tables = read_toml(path) if path is not None else {}
    return parse(LanguageRecipe, apply_overrides(tables, overrides), where=str(path or "the settings"))


class LanguageTask:
    """What the training loop sees of a language model."""

    def __init__(self, recipe: LanguageRecipe, data: LanguageData) -> None:
        self.recipe, self.data = recipe, data
        self.reading = reading_of(recipe, data)
        self.network: LanguageNetwork = build_network(recipe.model, data.tokenizer, len(data.labels))
        self.model = LanguageModel(recipe.model, data.tokenizer, self.network, self.reading, data.labels)
        self.model.recipe = recipe.model_dump(mode="json")
        self.towers = {"forward": (False,), "backward": (True,), "both": (False, True)}[recipe.model.direction]

    def batches(self) -> "TowerBatches":
        """One run of batches for each direction that the model reads in."""
        return TowerBatches([self._batches(backward) for backward in self.towers])

    def _batches(self, backward: bool) -> StreamBatches | LineBatches:
        batch, ids, start_id = self.recipe.batch, self.data.train, self.reading.start_id
        if self.reading.unit == "line":
            seed = self.recipe.train.seed
            return LineBatches(
                ids, min(batch.size, len(ids.documents)), start_id=start_id, backward=backward, seed=seed
            )
        return StreamBatches(
            Reversed(ids) if backward else ids,
            min(batch.size, len(ids)),
            batch.steps,
            start_id=start_id,
            bptt=batch.bptt,
            reset_documents=batch.reset_documents,
            forget=batch.forget,
            seed=self.recipe.train.seed,
        )

    def loss(self, batch: list[Batch], state: Any) -> Loss:
        """The mean loss of one window; of both directions, the mean of the two."""
        states = state or [None] * len(batch)
        parts, tokens, after = [], 0, []
        for tower, (part, before) in enumerate(zip(batch, states, strict=True)):
            hidden, targets, carried = hidden_and_targets(self.network, part, before, tower)
            parts.append(self.network.softmax.loss(hidden, targets))
            tokens += len(targets)
            after.append(detach(carried))
        # A shorter window weighs less, so that every token of the text counts alike.
        weight = batch[0].inputs.shape[1] / self.recipe.batch.steps if self.recipe.batch.bptt == "random" else 1.0
        return Loss(torch.stack(parts).mean(), tokens, after, weight)

    def evaluate(self) -> dict[str, float]:
        """Scores on the held-out text."""
        return self.model.scores(self.data.dev)

    def save(self, folder: Path) -> None:
        """Write the model folder."""
        self.model.save(folder)


class TowerBatches:
    """Batches for each direction, side by side."""

    def __init__(self, towers: list[StreamBatches | LineBatches]) -> None:
        self.towers = towers

    @property
    def progress(self) -> float:
        """Epochs gone by."""
        return self.towers[0].progress

    def __next__(self) -> list[Batch]:
        return [next(tower) for tower in self.towers]

    def state_dict(self) -> dict[str, Any]:
        """The positions."""
        return {"towers": [tower.state_dict() for tower in self.towers]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from saved positions."""
        for tower, saved in zip(self.towers, state["towers"], strict=True):
            tower.load_state_dict(saved)


def reading_of(recipe: LanguageRecipe, data: LanguageData) -> Reading:
    """How the model reads: before a text that has no end tokens in it stands a line end, if it has those."""
    tokenizer, unit = data.tokenizer, recipe.data.unit
    start_id = tokenizer.eos_id
    if not tokenizer.counts[start_id] and not tokenizer.unknown("\n"):
        start_id = int(tokenizer.encode("\n")[-1])
    ends_text = not (unit == "stream" and recipe.text.kind == "words")
    return Reading(unit, start_id, ends_text, recipe.batch.reset_documents)


def train(
    recipe: LanguageRecipe,
    out: Path | str,
    *,
    resume: bool = False,
    force: bool = False,
    data_dir: Path | None = None,
    reporter: Reporter | None = None,
) -> dict[str, Any]:
    """Train what the recipe says into the folder `out`; returns the report that `metrics.json` holds."""
    out = Path(out)
    resume = _check_folder(out, recipe, resume, force)
    reporter = reporter or Reporter()
    if recipe.train.threads:
        torch.set_num_threads(recipe.train.threads)
    data = open_data(recipe, data_dir)
    seed_everything(recipe.train.seed)
    if recipe.model.kind == "ngram":
        _prepare_folder(out, recipe, force)
        return _train_ngram(recipe, data, out, reporter)
    task = LanguageTask(recipe, data)
    trainer = Trainer(task, recipe.train, out, reporter)
    if not resume:
        _prepare_folder(out, recipe, force)
    reporter.say(_describe(task))
    trainer.run(resume)
    run = {"seconds": trainer.seconds, "steps": trainer.step, "epochs": trainer.batches.progress}
    run["tokens_per_second"] = trainer.tokens / max(trainer.seconds, 1e-9)
    return _finish(recipe, data, out, reporter, run)


def saved_recipe(out: Path) -> LanguageRecipe | None:
    """The recipe of the run in a folder, or None where there is no run."""
    path = out / "recipe.toml"
    return parse(LanguageRecipe, read_toml(path), where=str(path)) if path.exists() else None


def _train_ngram(recipe: LanguageRecipe, data: LanguageData, out: Path, reporter: Reporter) -> dict[str, Any]:

    began = time.monotonic()
    reading = reading_of(recipe, data)
    ids = data.train.read(0, len(data.train))
    engine = KneserNey.fit(
        ids,
        data.tokenizer.size,
        recipe.model.order,
        documents=reading.documents(data.train),
        start_id=reading.start_id,
    )
    model = LanguageModel(recipe.model, data.tokenizer, engine, reading)
    model.recipe = recipe.model_dump(mode="json")
    model.save(out)
    seconds = time.monotonic() - began
    reporter.say(f"counted {len(ids):,} tokens: a Kneser-Ney model of order {recipe.model.order}")
    run = {"seconds": seconds, "steps": 1, "epochs": 1.0, "tokens_per_second": len(ids) / max(seconds, 1e-9)}
    return _finish(recipe, data, out, reporter, run)


def _finish(
    recipe: LanguageRecipe, data: LanguageData, out: Path, reporter: Reporter, run: dict[str, float]
) -> dict[str, Any]:
    """Score the model as a user will have it: loaded again from its folder."""
    reporter.say("scoring the model that was kept, and the baselines")
    model = LanguageModel.load(out)
    report = evaluate_model(model, {"dev": data.dev} | ({"test": data.test} if data.test else {}), data.train, recipe)
    report["parameters"], report["run"] = model.parameters, run
    write_report(out, recipe, report)
    return report


def _describe(task: LanguageTask) -> str:
    data, settings = task.data, task.recipe.model
    what = f"{settings.layers} x {settings.cell} {settings.hidden}" if settings.kind == "recurrent" else settings.kind
    return (
        f"{what}, {task.model.parameters:,} parameters; {len(data.train):,} tokens to train on, "
        f"{len(data.dev):,} held out; {data.tokenizer.size:,} {task.recipe.text.kind}; "
        f"{torch.get_num_threads()} threads"
    )


def _check_folder(out: Path, recipe: LanguageRecipe, resume: bool, force: bool) -> bool:
    """Refuse to mix two runs; returns whether there is a checkpoint to go on from."""
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file: name a folder for the run with --out")
    if resume:
        old = saved_recipe(out)
        changed = differences(old, recipe) if old is not None else []
        if changed:
            raise UserError(
                f"the run in {out} has another recipe ({changed[0]}): resume without changes, or use --force"
            )
        return (out / "checkpoint" / "state.safetensors").exists()
    if not force and out.exists() and any(out.iterdir()):
        raise UserError(f"{out} is not empty: go on with --resume, start over with --force, or name another folder")
    return False


def _prepare_folder(out: Path, recipe: LanguageRecipe, force: bool) -> None:
    """A folder for a new run. Only what Elman writes is ever removed."""
    if force:
        for name in RUN_FILES:
            path = out / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    write_text(out / "recipe.toml", to_toml(recipe))


def read_metrics(folder: Path) -> dict[str, Any]:
    """The report that training left in a model folder."""
    path = folder / "metrics.json"
    if not path.exists():
        raise UserError(f"{folder} has no metrics.json: its training did not reach the end")
    metrics = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(metrics, dict)
    return metrics
