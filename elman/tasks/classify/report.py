"""What a classifier scored, beside its baselines: metrics.json, the model card, the confusion matrix, the screen."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elman import __version__
from elman.files import write_json, write_text
from elman.metrics.classification import (
    Bin,
    Calibration,
    Confusion,
    Score,
    confusion_table,
    draw_confusion,
    score_table,
)
from elman.records.classes import seen
from elman.records.labelled import LabelledText
from elman.tasks import card
from elman.tasks.classify.baselines import baseline_scores
from elman.tasks.classify.data import row
from elman.tasks.classify.model import TextClassifier
from elman.tasks.classify.scoring import THRESHOLD, full_scores
from elman.tasks.classify.settings import BaselineSettings, ClassifyRecipe
from elman.train.progress import duration

NAMES = {"dev": "held out", "test": "test"}
COLUMNS = ("accuracy", "macro F1", "weighted F1", "accuracy on unseen")
SHOWN = 60  # characters of a mistaken text


def evaluate_model(
    model: TextClassifier,
    sets: Mapping[str, Sequence[LabelledText]],
    train: Sequence[LabelledText],
    settings: BaselineSettings | None,
) -> dict[str, Any]:
    """Scores of the model on each set, and of the baselines fitted to `train`; without settings only the model's."""
    report: dict[str, Any] = {}
    fresh = {name: _unseen(train, records) for name, records in sets.items()}
    for name, records in sets.items():
        logits = model.scores([model.reader.encode(record.text) for record in records])
        scores = full_scores(records, logits, model.labels, model.several)
        right = _right(records, model, logits)
        report[name] = scores | _unseen_scores(right, fresh[name])
    if settings is not None and train:
        baselines, note = baseline_scores(train, sets, model.labels, model.several, settings)
        for found in baselines.values():
            for name, scores in found.items():
                scores |= _unseen_scores(scores.pop("right"), fresh[name])
        report |= {"baselines": baselines} | ({"note": note} if note else {})
    return report


def _unseen(train: Sequence[LabelledText], records: Sequence[LabelledText]) -> list[bool]:
    return [not known for known in seen(map(row, train), map(row, records))]


def _unseen_scores(right: Sequence[bool], fresh: Sequence[bool]) -> dict[str, Any]:
    """The accuracy on texts that do not stand in training with the same label, where some do and some do not."""
    if all(fresh) or not any(fresh):
        return {}
    return {"unseen": {"texts": sum(fresh), "accuracy": float(np.mean(np.asarray(right)[np.asarray(fresh)]))}}


def _right(records: Sequence[LabelledText], model: TextClassifier, logits: np.ndarray) -> list[bool]:
    if not model.several:
        return [model.labels[best] == record.labels[0] for best, record in zip(logits.argmax(1), records, strict=True)]
    chosen = torch.from_numpy(logits).sigmoid().numpy() >= THRESHOLD
    named = [{label for label, flag in zip(model.labels, flags, strict=True) if flag} for flags in chosen]
    return [names == set(record.labels) for names, record in zip(named, records, strict=True)]


# On the screen


def rows(report: Mapping[str, Any], name: str) -> list[tuple[str, ...]]:
    """The lines of a table for one set: who, then the columns of `COLUMNS`; the model first."""
    entries = [("this model", report[name])]
    entries += [(who, scores[name]) for who, scores in report.get("baselines", {}).items()]
    ordered = sorted(entries, key=lambda entry: (entry[0] != "this model", -entry[1]["accuracy"]))
    return [
        (
            who,
            *(f"{100 * scores[key]:.2f}" for key in ("accuracy", "macro_f1", "weighted_f1")),
            f"{100 * scores['unseen']['accuracy']:.2f}" if "unseen" in scores else "",
        )
        for who, scores in ordered
    ]


def set_names(report: Mapping[str, Any]) -> list[str]:
    """The sets that a report has scores of."""
    return [name for name, scores in report.items() if isinstance(scores, dict) and "classes" in scores]


def more(report: Mapping[str, Any]) -> str:
    """What stands below the tables on the screen."""
    names = set_names(report)
    parts = [details(report, names[-1])] if names else []
    if "cross_validation" in report:
        parts.append(_cross_validation(report["cross_validation"]))
    return "\n".join(parts)


def details(report: Mapping[str, Any], name: str) -> str:
    """Class by class, what was taken for what, how far it can be trusted, and where it was wrong for sure."""
    scores = report[name]
    each = {label: _score(entry) for label, entry in scores["classes"].items()}
    parts = [score_table(each)]
    if "confusion" in scores:
        parts.append(confusion_table(_confusion(scores), width=100))
    bins = tuple(Bin(**entry) for entry in scores["calibration"])
    parts.append(Calibration(scores["calibration_error"], bins).text())
    if scores.get("mistakes"):
        parts.append("most confident mistakes (right, predicted, probability)\n" + _mistakes(scores["mistakes"]))
    return "\n\n".join(["", *parts, ""])


def _mistakes(mistakes: Sequence[Mapping[str, Any]]) -> str:
    lines = []
    for entry in mistakes:
        text = " ".join(entry["text"].split())
        text = text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
        lines.append(f"{entry['right']}\t{entry['predicted']}\t{entry['probability']:.3f}\t{text}")
    return "\n".join(lines).expandtabs(12)


def _score(entry: Mapping[str, float]) -> Score:
    """The counts behind the ratios that a report keeps."""
    support = int(entry["support"])
    return Score(round(entry["recall"] * support), int(entry["predicted"]), support)


def _confusion(scores: Mapping[str, Any]) -> Confusion:
    return Confusion(tuple(scores["classes"]), np.asarray(scores["confusion"], np.int64))


def _cross_validation(found: Mapping[str, Any]) -> str:
    accuracy = found["accuracy"]
    lines = [f"{found['folds']}-fold cross-validation: accuracy {_spread(accuracy)}"]
    lines += [f"  {who} {_spread(scores)}" for who, scores in found["baselines"].items()]
    return "\n".join(lines)


def _spread(scores: Mapping[str, Any]) -> str:
    return f"{100 * scores['mean']:.2f} ± {100 * scores['spread']:.2f}"


# In the folder


def write_report(folder: Path, recipe: ClassifyRecipe, report: dict[str, Any]) -> None:
    """metrics.json, README.md (the model card), and confusion.png."""
    report["platform"] = card.platform_facts()
    names = set_names(report)
    if names and "confusion" in report[names[-1]]:
        draw_confusion(_confusion(report[names[-1]]), folder / "confusion.png")
    write_text(folder / "README.md", _card(folder, recipe, report))
    write_json(folder / "metrics.json", report)  # last: a run that has it is done


def _card(folder: Path, recipe: ClassifyRecipe, report: Mapping[str, Any]) -> str:
    model, data, run = recipe.model, recipe.data, report["run"]
    source = card.trained_on(data.corpus, data.train)
    both = "bidirectional " if model.bidirectional else ""
    spelled = " and their characters" if model.characters else ""
    lines = [
        f"# {folder.resolve().name}",
        "",
        f"A classifier of texts into {report['classes']} classes{' (any number a text)' if report['several'] else ''}, "
        f"over {recipe.text.kind}{spelled}: {model.layers} x {both}{model.cell} of {model.hidden}, {model.pooling} "
        f"pooling, {report['parameters']:,} parameters. Made with Elman {__version__}.",
        "",
        f"Trained on {source} ({run['texts']:,} texts) for {run['epochs']:.1f} epochs ({run['steps']:,} updates) in "
        f"{duration(run['seconds'])}, {report['platform']['threads']} threads. Every setting is in `recipe.toml`.",
        "",
    ]
    for name in set_names(report):
        lines += [
            f"## Scores, {NAMES.get(name, name)} ({report[name]['texts']:,} texts)",
            "",
            *card.score_table(COLUMNS, rows(report, name)),
        ]
    if "cross_validation" in report:
        lines += ["## Cross-validation", "", "```", _cross_validation(report["cross_validation"]), "```", ""]
    if names := set_names(report):
        lines += [f"## In detail, {NAMES.get(names[-1], names[-1])}", "", "```", details(report, names[-1]).strip("\n")]
        lines += ["```", "", *(["![what was taken for what](confusion.png)", ""] if not report["several"] else [])]
    commands = ("elman predict {model} FILE", "elman evaluate {model} FILE")
    return "\n".join([*lines, *card.use(folder, commands, 'model.predict("a text").label')]) + "\n"
