"""What a tagger scored, beside its baseline: metrics.json, the model card, the tables on the screen."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elman import __version__
from elman.files import write_json, write_text
from elman.metrics.classification import Confusion, Score, confusion_table, draw_confusion, score_table
from elman.metrics.spans import SpanScores
from elman.metrics.tagging import TagScores, tag_scores
from elman.records.tagged import Sentence
from elman.tasks import card
from elman.tasks.tag.model import TagModel
from elman.tasks.tag.settings import TagRecipe
from elman.train.progress import duration

NAMES = {"dev": "held out", "test": "test"}
BASELINE = "most frequent tag per word"
COLUMNS = ("accuracy", "unseen words", "span F1")
WIDTH = 120  # of a table that is printed


def evaluate_model(
    model: TagModel, parts: Mapping[str, Sequence[Sentence]], *, strict: bool = False, baselines: bool = True
) -> dict[str, Any]:
    """The scores of a model on some sets of tagged sentences, beside those of the baseline."""
    report: dict[str, Any] = {}
    for name, sentences in parts.items():
        scores, loss = model.measure(sentences, strict)
        report[name] = {"loss": loss, "sentences": len(sentences), **_scores(scores)}
        if baselines:
            words = [sentence.tokens for sentence in sentences]
            gold = [sentence.tags for sentence in sentences]
            plain = tag_scores(words, gold, model.lexicon.predict(words), model.lexicon.tags)
            report.setdefault("baselines", {}).setdefault(BASELINE, {})[name] = _scores(plain)
    return report


def _scores(scores: TagScores) -> dict[str, Any]:
    """All that is to be known, and what was taken for what: (right, predicted, how often)."""
    found: dict[str, Any] = scores.to_dict()
    groups = [(found["by_tag"], scores.confusion.by_class)]
    if scores.spans is not None:
        groups.append((found["spans"]["by_type"], scores.spans.by_type))
    for entries, counted in groups:
        for name, score in counted.items():
            entries[name]["predicted"] = score.predicted
    return {**found, "confused": scores.confusion.most_confused(len(scores.confusion.labels) ** 2)}


def rows(report: Mapping[str, Any], name: str) -> list[tuple[str, ...]]:
    """The lines of a table for one set: who, then the columns of `COLUMNS`; the model first."""
    entries = [("this model", report[name])]
    entries += [(who, scores[name]) for who, scores in report.get("baselines", {}).items()]
    return [
        (
            who,
            f"{s['accuracy']:.2%}",
            f"{s['unseen_accuracy']:.2%}" if s["unseen_accuracy"] is not None else "",
            f"{s['spans']['f1']:.2%}" if "spans" in s else "",
        )
        for who, s in entries
    ]


def more(report: Mapping[str, Any]) -> str:
    """What stands below the tables on the screen: the last set in detail."""
    *_, last = (name for name, scores in report.items() if isinstance(scores, dict) and "loss" in scores)
    return f"\n{details(report[last])}\n"


def details(scores: Mapping[str, Any]) -> str:
    """Spans by type where there are any, tags, and what was taken for what."""
    parts = []
    if "spans" in scores:
        by_type = {name: _score(entry) for name, entry in scores["spans"]["by_type"].items()}
        parts.append("spans\n" + SpanScores(by_type).text())
    confusion = confusion_of(scores)
    parts.append("tags\n" + score_table(confusion.by_class))
    parts.append("confusion: right, predicted\n" + confusion_table(confusion, WIDTH))
    return "\n\n".join(parts)


def _score(entry: Mapping[str, float]) -> Score:
    """The counts behind the ratios that a report keeps."""
    support = int(entry["support"])
    return Score(round(entry["recall"] * support), int(entry["predicted"]), support)


def confusion_of(scores: Mapping[str, Any]) -> Confusion:
    """The matrix behind a report."""
    labels = tuple(scores["by_tag"])
    index = {label: place for place, label in enumerate(labels)}
    counts = np.diag([_score(entry).correct for entry in scores["by_tag"].values()])
    for right, guess, count in scores["confused"]:
        counts[index[right], index[guess]] = count
    return Confusion(labels, counts)


def write_report(folder: Path, recipe: TagRecipe, report: dict[str, Any]) -> None:
    """metrics.json, confusion.png, and README.md, the model card."""
    report["platform"] = card.platform_facts()
    draw_confusion(confusion_of(report["test" if "test" in report else "dev"]), folder / "confusion.png")
    write_text(folder / "README.md", _card(folder, recipe, report))
    write_json(folder / "metrics.json", report)  # last: a run that has it is done


def _card(folder: Path, recipe: TagRecipe, report: Mapping[str, Any]) -> str:
    model, data, run = recipe.model, recipe.data, report["run"]
    source = card.trained_on(data.corpus, data.train)
    lines = [
        f"# {folder.resolve().name}",
        "",
        f"A tagger: {model.layers} layers of {model.cell} with {model.hidden} units in each direction"
        f"{', a CRF over the tags' if model.crf else ''}, {report['parameters']:,} parameters. "
        f"Made with Elman {__version__}.",
        "",
        f"Trained on {source} for {run['epochs']:.1f} epochs ({run['steps']:,} updates) in {duration(run['seconds'])} "
        f"at {run['tokens_per_second']:,.0f} tokens a second, {report['platform']['threads']} threads. "
        "Every setting is in `recipe.toml`.",
        "",
    ]
    sets = [name for name in NAMES if name in report]
    for name in sets:
        lines += [f"## Scores, {NAMES[name]} ({report[name]['tokens']:,} tokens)", ""]
        lines += card.score_table(COLUMNS, rows(report, name))
    lines += [
        f"Unseen are the words that stand nowhere in the training set. Spans are counted "
        f"{'strictly' if recipe.report.strict else 'as conlleval counts them'}.",
        "",
        f"## In detail, {NAMES[sets[-1]]}",
        "",
        "```",
        details(report[sets[-1]]),
        "```",
        "",
    ]
    commands = ("elman predict {model} FILE", "elman evaluate {model} FILE")
    return "\n".join([*lines, *card.use(folder, commands, 'model.predict("A sentence.").tags')]) + "\n"
