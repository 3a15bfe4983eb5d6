"""Taggers, from a recipe to a trained, measured model folder.

recipe = read_recipe("ewt-upos", ["train.epochs=2"])
report = train(recipe, Path("runs/ewt"))
print(report["test"]["accuracy"])
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from elman.baselines.lexicon import MostFrequentTag
from elman.batches.examples import ExampleBatches, fingerprint
from elman.metrics.spans import Scheme, convert
from elman.records.tagged import Sentence
from elman.tasks.reading import with_reading_settings
from elman.tasks.recipes import load_recipe
from elman.tasks.run import open_folder, run_facts, run_folder
from elman.tasks.tag.batch import Batch, Ints, make_batch
from elman.tasks.tag.data import TagData, open_data, read_files, settle
from elman.tasks.tag.model import TagModel
from elman.tasks.tag.network import build_network, set_vectors
from elman.tasks.tag.noise import MadeUpWords, SwappedSpans
from elman.tasks.tag.report import evaluate_model, write_report
from elman.tasks.tag.settings import TagRecipe, TextSettings
from elman.text.spelling import Speller
from elman.text.vectors import WordVectors, read_vectors
from elman.text.vocabulary import warn_unknown_tokens
from elman.train import Loss, Reporter, Trainer, seed_everything
from elman.train.length import with_chosen_length
from elman.train.recipe import Settings, parse


def read_recipe(source: Path | str | None = None, settings: Settings = ()) -> TagRecipe:
    """A recipe from a file, or by the name of one that comes with Elman, with settings laid over it.

    >>> read_recipe(None, ["model.crf=true"]).model.crf
    True
    """
    return load_recipe(TagRecipe, source, settings)


class TagTask:
    """What the training loop sees of a tagger."""

    unit = "tokens"

    def __init__(self, recipe: TagRecipe, data: TagData, speller: Speller | None = None) -> None:
        vectors = _read_vectors(recipe.text, data.train)
        if vectors is not None:  # the word embedding has their size
            model = recipe.model.model_copy(update={"embedding": vectors.matrix.shape[1]})
            recipe = recipe.model_copy(update={"model": model})
        self.recipe, self.data = recipe, data
        speller = speller or fit_speller(recipe, data.train, vectors)
        words, tags = [sentence.tokens for sentence in data.train], [sentence.tags for sentence in data.train]
        names = tag_names(tags, data.scheme, recipe.model.scheme)
        self.network = build_network(recipe.model, speller, names)
        if vectors is not None:
            set_vectors(self.network, speller.words.encode(vectors.words), vectors.matrix)
        lexicon = MostFrequentTag.fit(words, tags)
        self.model = TagModel(recipe.model, speller, self.network, names, data.scheme, lexicon)
        self.model.recipe = recipe.model_dump(mode="json")
        self.noise = _noise(recipe, data)

    def batches(self) -> ExampleBatches[Batch]:
        """Sentences of like length together."""
        return ExampleBatches(
            [len(sentence.tokens) for sentence in self.data.train],
            self.recipe.batch.amount,
            self._make,
            seed=self.recipe.train.seed,
            text=fingerprint((sentence.tokens, sentence.tags) for sentence in self.data.train),
        )

    def _make(self, rows: Ints) -> Batch:
        sentences = [self.data.train[row] for row in rows.tolist()]
        for noise in self.noise:
            sentences = [noise(sentence) for sentence in sentences]
        tags = [ids for sentence in sentences if (ids := self.model.encode_tags(sentence.tags)) is not None]
        return make_batch(self.model.speller, [sentence.tokens for sentence in sentences], tags)

    def loss(self, batch: Batch, state: Any) -> Loss:
        """The mean loss of some sentences per token."""
        return Loss(self.network.loss(self.network(batch), batch), len(batch.rows))

    def evaluate(self) -> dict[str, float]:
        """Scores on the held-out sentences."""
        scores, loss = self.model.measure(self.data.dev, self.recipe.report.strict)
        spans = {} if scores.spans is None else {"span_f1": scores.spans.overall.f1}
        error = 1 - spans.get("span_f1", scores.accuracy)
        return {"loss": loss, "accuracy": scores.accuracy, **spans, "error": error}

    def save(self, folder: Path) -> None:
        """Write the model folder."""
        self.model.save(folder)


def _noise(recipe: TagRecipe, data: TagData) -> list[SwappedSpans | MadeUpWords]:
    """What is done to training sentences before they are learned from."""
    noise: list[SwappedSpans | MadeUpWords] = []
    if recipe.batch.swapped and data.scheme is not None:
        noise.append(SwappedSpans(data.train, data.scheme, recipe.batch.swapped))
    if recipe.batch.made_up:
        noise.append(MadeUpWords(data.train, recipe.batch.made_up))
    return noise


def tag_names(tags: Sequence[Sequence[str]], scheme: Scheme | None, learned: Scheme) -> list[str]:
    """The tags that a network chooses from: those of the training set, spans written in the scheme it learns in.

    >>> tag_names([["I-PER", "I-PER", "O"]], "IOB1", "BIOES")
    ['B-PER', 'E-PER', 'O']
    """
    return sorted({tag for row in tags for tag in (row if scheme is None else convert(row, learned))})


def fit_speller(recipe: TagRecipe, sentences: Sequence[Sentence], vectors: WordVectors | None) -> Speller:
    """The words of the training set, and what they are made of."""
    text = recipe.text
    return Speller.fit(
        (token for sentence in sentences for token in sentence.tokens),
        min_count=text.min_count,
        size=text.size,
        extra=() if vectors is None else vectors.words,
        characters=recipe.model.character_hidden > 0,
        character_count=text.character_count,
        prefixes=text.prefixes if recipe.model.case_embedding else (),
        suffixes=text.suffixes if recipe.model.case_embedding else (),
        affix_count=text.affix_count,
        lowercase=text.lowercase,
        longest=text.longest,
    )


def _read_vectors(text: TextSettings, sentences: Sequence[Sentence]) -> WordVectors | None:
    if text.vectors is None:
        return None
    seen = {token.lower() if text.lowercase else token for sentence in sentences for token in sentence.tokens}
    return read_vectors(text.vectors, first=text.vector_words, wanted=seen, lowercase=text.lowercase)


def train(
    recipe: TagRecipe,
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


def _train_in(recipe: TagRecipe, out: Path, resume: bool, data_dir: Path | None, reporter: Reporter) -> dict[str, Any]:
    if recipe.train.threads:
        torch.set_num_threads(recipe.train.threads)
    with reporter.busy("reading the sentences"):
        data = open_data(recipe, data_dir, reporter.say)
    recipe = with_chosen_length(recipe, len(data.train), reporter.say)
    seed_everything(recipe.train.seed)
    task = TagTask(recipe, data, Speller.load(out / "tokenizer.json") if resume else None)
    if recipe.model.embedding:
        warn_unknown_tokens(task.model.speller.words.counts, "training words", reporter.say)
    open_folder(out, recipe, task.model.speller, resume=resume)
    reporter.say(_describe(task))
    trainer = Trainer(task, recipe.train, out, reporter)
    trainer.run(resume)
    return _finish(task, trainer, out, reporter)


def _finish(task: TagTask, trainer: Trainer, out: Path, reporter: Reporter) -> dict[str, Any]:
    """Score the model as a user will have it: loaded again from its folder."""
    model = TagModel.load(out)
    parts = {"dev": task.data.dev} | ({"test": task.data.test} if task.data.test else {})
    with reporter.busy("scoring the model that was kept, and the baseline"):
        report = evaluate_model(model, parts, strict=task.recipe.report.strict)
    report |= {"parameters": model.parameters, "run": run_facts(trainer)}
    write_report(out, task.recipe, report)
    return report


def _describe(task: TagTask) -> str:
    data, settings = task.data, task.recipe.model
    tokens = sum(len(sentence.tokens) for sentence in data.train)
    return (
        f"2 x {settings.layers} x {settings.cell} {settings.hidden}{' + CRF' if settings.crf else ''}, "
        f"{task.model.parameters:,} parameters; {len(data.train):,} sentences of {tokens:,} tokens to train on, "
        f"{len(data.dev):,} held out; {len(task.model.tags)} tags"
        f"{f' ({data.scheme} read, {settings.scheme} learned)' if data.scheme else ''}; "
        f"{task.model.speller.words.size:,} words; {torch.get_num_threads()} threads"
    )


def evaluate(
    model: TagModel,
    paths: Iterable[Path | str],
    *,
    baselines: bool = True,
    data_dir: Path | None = None,
    settings: Settings = (),
) -> dict[str, Any]:
    """Score each of `paths`, a file of tagged sentences, beside the baseline that the model's folder holds."""
    recipe = parse(TagRecipe, model.recipe, where="the model's config.json")
    notes: list[str] = []
    parts = {
        str(path): settle(
            read_files(with_reading_settings(recipe, settings).data, [Path(path)]),
            model.scheme,
            Path(path).name,
            notes.append,
        )
        for path in paths
    }
    report = evaluate_model(model, parts, strict=recipe.report.strict, baselines=baselines)
    return report | {"note": "; ".join(notes)} if notes else report
