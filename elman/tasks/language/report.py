"""What a language model scored, beside its baselines: metrics.json, the model card, the table on the screen."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from elman import __version__
from elman.baselines import KneserNey
from elman.batches import IdStream
from elman.files import write_json, write_text
from elman.metrics import Scores, unigram_loss
from elman.tasks import card
from elman.tasks.folder import read_config
from elman.tasks.language.model import LanguageConfig, LanguageModel
from elman.tasks.language.settings import BaselineSettings, LanguageRecipe
from elman.train.progress import duration

NAMES = {"dev": "held out", "test": "test"}


def evaluate_model(
    model: LanguageModel, texts: Mapping[str, IdStream], train: IdStream | None, recipe: LanguageRecipe
) -> dict[str, Any]:
    """Scores of the model on each text, and of the baselines: n-grams counted on `train`, and frequency alone."""
    report: dict[str, Any] = {}
    for name, ids in texts.items():
        report[name] = model.scores(ids)
        counts = model.tokenizer.counts
        unigram = Scores(unigram_loss(counts, _counts(ids, len(counts))), len(ids))
        report.setdefault("baselines", {}).setdefault("unigram", {})[name] = unigram.to_dict(ids.characters)
    if train is not None and recipe.baseline.order and model.settings.kind != "ngram":
        report["baselines"][f"Kneser-Ney {recipe.baseline.order}-gram"] = _ngram(model, texts, train, recipe.baseline)
    return report


def _counts(ids: IdStream, size: int, block: int = 1 << 20) -> np.ndarray:
    """How often each id stands in a text that may be larger than memory."""
    counts = np.zeros(size, dtype=np.int64)
    for start in range(0, len(ids), block):
        counts += np.bincount(ids.read(start, min(start + block, len(ids))), minlength=size)
    return counts


def _ngram(
    model: LanguageModel, texts: Mapping[str, IdStream], train: IdStream, settings: BaselineSettings
) -> dict[str, dict[str, float]]:
    part = train.view(0, min(len(train), settings.tokens))
    baseline = KneserNey.fit(
        part.read(0, len(part)),
        model.tokenizer.size,
        settings.order,
        documents=model.reading.documents(part),
        start_id=model.reading.start_id,
    )
    scores = {}
    for name, ids in texts.items():
        found = baseline.log_probs(ids.read(0, len(ids)), model.reading.documents(ids))
        scores[name] = Scores.from_total(-float(found.sum()), len(found)).to_dict(ids.characters)
    return scores


COLUMNS = ("loss (nats)", "perplexity", "bits/token", "bits/character")


def rows(report: Mapping[str, Any], name: str) -> list[tuple[str, ...]]:
    """The lines of a table for one text: who, then the columns of `COLUMNS`; the model first."""
    entries = [("this model", report[name])]
    entries += [(who, scores[name]) for who, scores in report.get("baselines", {}).items()]
    return [
        (
            who,
            f"{s['loss']:.4f}",
            f"{s['perplexity']:,.2f}",
            f"{s['bits_per_token']:.3f}",
            f"{s['bits_per_character']:.3f}" if "bits_per_character" in s else "",
        )
        for who, s in sorted(entries, key=lambda entry: (entry[0] != "this model", entry[1]["loss"]))
    ]


def write_report(folder: Path, recipe: LanguageRecipe, report: dict[str, Any]) -> None:
    """metrics.json and README.md, the model card."""
    report["platform"] = card.platform_facts()
    write_text(folder / "README.md", _card(folder, recipe, report))
    write_json(folder / "metrics.json", report)  # last: a run that has it is done


def _card(folder: Path, recipe: LanguageRecipe, report: Mapping[str, Any]) -> str:
    model, data, run = recipe.model, recipe.data, report["run"]
    kind = {"recurrent": f"{model.layers} x {model.cell} of {model.hidden}", "ngram": f"{model.order}-grams"}
    source = card.trained_on(data.corpus, data.train)
    lines = [
        f"# {folder.resolve().name}",
        "",
        f"A language model over {recipe.text.kind}: {kind.get(model.kind, f'a window of {model.window}')}, "
        f"{report['parameters']:,} parameters, reading {model.direction}. Made with Elman {__version__}.",
        "",
        f"Trained on {source} for {run['epochs']:.1f} epochs ({run['steps']:,} updates) in {duration(run['seconds'])} "
        f"at {run['tokens_per_second']:,.0f} tokens a second, {report['platform']['threads']} threads. "
        "Every setting is in `recipe.toml`.",
        "",
    ]
    for name in (name for name in NAMES if name in report):
        lines += [f"## Scores, {NAMES[name]} ({report[name]['tokens']:,} tokens)", ""]
        lines += card.score_table(COLUMNS, rows(report, name))
    labels = read_config(folder, LanguageConfig).labels
    command = 'elman generate {model} --prompt ""' + (f" --label {shlex.quote(labels[0])}" if labels else "")
    example = f"model.generate(length=100{f', label={labels[0]!r}' if labels else ''})"
    return "\n".join([*lines, *card.use(folder, (command, "elman evaluate {model} FILE"), example)]) + "\n"
