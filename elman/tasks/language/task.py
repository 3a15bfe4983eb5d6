"""Language models, from a recipe to a trained, measured model folder.

recipe = read_recipe("tinyshakespeare", ["train.epochs=2"])
report = train(recipe, Path("runs/shakespeare"))
print(report["dev"]["perplexity"])
"""

import time
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch

from elman.baselines import KneserNey
from elman.batches import IdStream
from elman.batches.batches import Batch, LineBatches, Reversed, StreamBatches
from elman.errors import UserError
from elman.nn.language import LanguageNetwork, detach
from elman.tasks.language.data import LanguageData, encode_file, open_data
from elman.tasks.language.model import LanguageModel
from elman.tasks.language.network import build_network
from elman.tasks.language.report import evaluate_model, write_report
from elman.tasks.language.scoring import Reading, hidden_and_targets
from elman.tasks.language.settings import LanguageRecipe
from elman.tasks.reading import with_reading_settings
from elman.tasks.recipes import check_named, load_recipe
from elman.tasks.run import open_folder, run_facts, run_folder
from elman.text import Tokenizer
from elman.text.vocabulary import warn_unknown_tokens
from elman.train import Loss, Reporter, Trainer, seed_everything
from elman.train.length import with_chosen_length
from elman.train.recipe import Settings, parse


def read_recipe(source: Path | str | None = None, settings: Settings = ()) -> LanguageRecipe:
    """A recipe from a file, or by the name of one that comes with Elman, with settings laid over it.

    >>> read_recipe(None, ["model.hidden=64"]).model.hidden
    64
    """
    return load_recipe(LanguageRecipe, source, settings)


class LanguageTask:
    """What the training loop sees of a language model."""

    unit = "tokens"

    def __init__(self, recipe: LanguageRecipe, data: LanguageData) -> None:
        self.recipe, self.data = recipe, data
        self.reading = reading_of(recipe, data)
        self.network: LanguageNetwork = build_network(recipe.model, data.tokenizer, len(data.labels))
        self.model = LanguageModel(recipe.model, data.tokenizer, self.network, self.reading, data.labels)
        self.model.recipe = recipe.model_dump(mode="json")
        self.towers = {"forward": (False,), "backward": (True,), "both": (False, True)}[recipe.model.direction]

    def batches(self) -> "TowerBatches":
        """One run of batches for each direction that the model reads in."""
        return TowerBatches([self._batches(backward) for backward in self.towers], _fingerprint(self.data.train))

    def _batches(self, backward: bool) -> StreamBatches | LineBatches:
        batch, ids, start_id = self.recipe.batch, self.data.train, self.reading.start_id
        if self.reading.unit == "line":
            seed = self.recipe.train.seed
            return LineBatches(
                ids, min(batch.amount, len(ids.documents)), start_id=start_id, backward=backward, seed=seed
            )
        return StreamBatches(
            Reversed(ids) if backward else ids,
            min(batch.amount, len(ids)),
            batch.steps,
            start_id=start_id,
            bptt=batch.bptt,
            reset_documents=batch.reset_documents,
            forget=batch.forget,
            seed=self.recipe.train.seed,
        )

    def loss(self, batch: list[Batch], state: Any) -> Loss:
        """The mean loss of one window; of both directions, the sum of the two is what the gradient is of."""
        states = state or [None] * len(batch)
        parts, tokens, after = [], 0, []
        for tower, (part, before) in enumerate(zip(batch, states, strict=True)):
            hidden, targets, carried = hidden_and_targets(self.network, part, before, tower)
            parts.append(self.network.softmax.loss(hidden, targets))
            tokens += len(targets)
            after.append(detach(carried))
        weight = float(len(parts))
        if self.recipe.batch.bptt == "random":  # a shorter window weighs less: every token of the text counts alike
            weight *= batch[0].inputs.shape[1] / self.recipe.batch.steps
        return Loss(torch.stack(parts).mean(), tokens, after, weight)

    def evaluate(self) -> dict[str, float]:
        """Scores on the held-out text."""
        return self.model.scores(self.data.dev)

    def save(self, folder: Path) -> None:
        """Write the model folder."""
        self.model.save(folder)


class TowerBatches:
    """Batches for each direction, side by side."""

    def __init__(self, towers: list[StreamBatches | LineBatches], text: str) -> None:
        self.towers, self.text = towers, text

    @property
    def progress(self) -> float:
        """Epochs gone by."""
        return self.towers[0].progress

    def __next__(self) -> list[Batch]:
        return [next(tower) for tower in self.towers]

    def state_dict(self) -> dict[str, Any]:
        """The positions, and the text that they are positions in."""
        return {"text": self.text, "towers": [tower.state_dict() for tower in self.towers]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from saved positions."""
        if state["text"] != self.text:
            raise UserError("the training text has changed since the run began: bring it back, or use --force")
        for tower, saved in zip(self.towers, state["towers"], strict=True):
            tower.load_state_dict(saved)


def _fingerprint(ids: IdStream) -> str:
    """What tells one text from another: its length, and a sample of it."""
    digest = blake2b(str(len(ids)).encode(), digest_size=16)
    for start in range(0, len(ids), max(1, len(ids) // 64)):
        digest.update(ids.read(start, min(start + 4096, len(ids))).tobytes())
    return digest.hexdigest()


def windows_of(recipe: LanguageRecipe, data: LanguageData) -> float:
    """How much an epoch has of what stands side by side in a batch: lines, or windows of a stream."""
    if recipe.data.unit == "line":
        return len(data.train.documents)
    if recipe.batch.bptt == "full":  # whatever the batch, one update is an epoch
        return recipe.batch.amount
    return len(data.train) / recipe.batch.steps


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
    out, reporter = Path(out), reporter or Reporter()
    with run_folder(out, recipe, resume=resume, force=force, say=reporter.say) as (settled, goes_on):
        return _train_in(settled, out, goes_on, data_dir, reporter)


def _train_in(
    recipe: LanguageRecipe, out: Path, resume: bool, data_dir: Path | None, reporter: Reporter
) -> dict[str, Any]:
    if recipe.train.threads:
        torch.set_num_threads(recipe.train.threads)
    # Some tokenizers come out differently when fitted again: a run goes on with the one that it began with.
    tokenizer = Tokenizer.load(out / "tokenizer.json") if resume else None
    with reporter.busy("reading the text"):
        data = open_data(recipe, data_dir, tokenizer)
    warn_unknown_tokens(data.tokenizer.counts, "training tokens", reporter.say)
    if recipe.model.kind != "ngram":
        windows, full = windows_of(recipe, data), recipe.batch.bptt == "full"
        recipe = with_chosen_length(recipe, windows, reporter.say, smaller_helps=not full)
    seed_everything(recipe.train.seed)
    task = LanguageTask(recipe, data) if recipe.model.kind != "ngram" else None
    open_folder(out, recipe, data.tokenizer, resume=resume)
    run = _train_network(task, out, resume, reporter) if task else _count_ngrams(recipe, data, out, reporter)
    return _finish(recipe, data, out, reporter, run)


def _train_network(task: LanguageTask, out: Path, resume: bool, reporter: Reporter) -> dict[str, float]:
    reporter.say(_describe(task))
    trainer = Trainer(task, task.recipe.train, out, reporter)
    trainer.run(resume)
    return run_facts(trainer)


def _count_ngrams(recipe: LanguageRecipe, data: LanguageData, out: Path, reporter: Reporter) -> dict[str, float]:
    began = time.monotonic()
    reading = reading_of(recipe, data)
    ids = data.train.read(0, len(data.train))
    documents = reading.documents(data.train)
    engine = KneserNey.fit(ids, data.tokenizer.size, recipe.model.order, documents, reading.start_id)
    model = LanguageModel(recipe.model, data.tokenizer, engine, reading)
    model.recipe = recipe.model_dump(mode="json")
    model.save(out)
    seconds = time.monotonic() - began
    reporter.say(f"counted {len(ids):,} tokens: a Kneser-Ney model of order {recipe.model.order}")
    return {"seconds": seconds, "steps": 1, "epochs": 1.0, "tokens_per_second": len(ids) / max(seconds, 1e-9)}


def _finish(
    recipe: LanguageRecipe, data: LanguageData, out: Path, reporter: Reporter, run: dict[str, float]
) -> dict[str, Any]:
    """Score the model as a user will have it: loaded again from its folder."""
    model = LanguageModel.load(out)
    texts = {"dev": data.dev} | ({"test": data.test} if data.test else {})
    with reporter.busy("scoring the model that was kept, and the baselines"):
        report = evaluate_model(model, texts, data.train, recipe)
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


def evaluate(
    model: LanguageModel,
    paths: Iterable[Path | str],
    *,
    baselines: bool = True,
    data_dir: Path | None = None,
    settings: Settings = (),
) -> dict[str, Any]:
    """Score each of `paths`, a text or a folder of texts, beside the baselines.

    The n-grams are counted on the text that the model was trained on, if that is still there; else `note` says why not.
    """
    recipe = parse(LanguageRecipe, model.recipe, where="the model's config.json")
    texts = {
        str(path): encode_file([Path(path)], with_reading_settings(recipe, settings), model.tokenizer, model.labels)
        for path in paths
    }
    train, note = None, ""
    if baselines and recipe.baseline.order and recipe.model.kind != "ngram":
        try:
            check_named(recipe.data)
            source = open_data(recipe, data_dir)
            train = source.train if source.tokenizer.fingerprint() == model.tokenizer.fingerprint() else None
            note = "" if train is not None else "no n-gram baseline, since the training text has changed"
        except UserError as error:
            note = f"no n-gram baseline, since the training text was not found: {error}"
    report = evaluate_model(model, texts, train, recipe)
    return report | {"note": note} if note else report
