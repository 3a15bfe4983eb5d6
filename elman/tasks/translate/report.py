"""What a translator scored, beside its baselines: metrics.json, the model card, the screen."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elman import __version__
from elman.files import write_json, write_text
from elman.records.pairs import Pair
from elman.tasks import card
from elman.tasks.translate.model import Translator
from elman.tasks.translate.scoring import baseline_scores, expected_scores, lines_of, written_scores
from elman.tasks.translate.settings import ReportSettings, TranslateRecipe
from elman.train.progress import duration

NAMES = {"dev": "held out", "test": "test"}
COLUMNS = ("BLEU", "chrF", "exact match", "error rate", "perplexity")
SHOWN = 5  # translations in the model card


def evaluate_model(
    model: Translator, sets: Mapping[str, Sequence[Pair]], train: Sequence[Pair], settings: ReportSettings
) -> dict[str, Any]:
    """Scores of the model on each set, and of the baselines made of `train` where there is any."""
    report: dict[str, Any] = {}
    for name, pairs in sets.items():
        lines = lines_of(pairs, settings)
        found = [one.text for one in model.predict(lines["sources"])]
        examples = zip(lines["sources"], found, lines["references"], strict=True)
        report[name] = {
            **expected_scores(model, [model.encode(pair.source, pair.target) for pair in pairs]),
            **written_scores(found, lines["references"], model, settings),
            "examples": [{"source": s, "translation": t, "reference": r[0]} for s, t, r in list(examples)[:SHOWN]],
        }
    if settings.baselines and train:
        report["baselines"] = baseline_scores(train, sets, model, settings)
    return report


def rows(report: Mapping[str, Any], name: str) -> list[tuple[str, ...]]:
    """The lines of a table for one set: who, then the columns of `COLUMNS`; the model first."""
    entries = [("this model", report[name])]
    entries += [(who, scores[name]) for who, scores in report.get("baselines", {}).items()]
    return [
        (
            who,
            f"{scores['bleu']:.2f}",
            f"{scores['chrf']:.2f}",
            f"{100 * scores['exact_match']:.2f} %",
            f"{100 * scores['error_rate']:.2f} %",
            f"{scores['perplexity']:.2f}" if "perplexity" in scores else "",
        )
        for who, scores in entries
    ]


def set_names(report: Mapping[str, Any]) -> list[str]:
    """The sets that a report has scores of."""
    return [name for name, scores in report.items() if isinstance(scores, dict) and "bleu" in scores]


def more(report: Mapping[str, Any]) -> str:
    """What stands below the tables on the screen."""
    names = set_names(report)
    return f"\n{_examples(report[names[-1]])}\n\nBLEU {report[names[-1]]['bleu_signature']}" if names else ""


def _examples(scores: Mapping[str, Any]) -> str:
    blocks = [
        f"source       {one['source']}\ntranslation  {one['translation']}\nreference    {one['reference']}"
        for one in scores["examples"]
    ]
    return "\n\n".join(blocks)


def write_report(folder: Path, recipe: TranslateRecipe, report: dict[str, Any]) -> None:
    """metrics.json and README.md, the model card."""
    report["platform"] = card.platform_facts()
    write_text(folder / "README.md", _card(folder, recipe, report))
    write_json(folder / "metrics.json", report)  # last: a run that has it is done


def _card(folder: Path, recipe: TranslateRecipe, report: Mapping[str, Any]) -> str:
    model, data, run = recipe.model, recipe.data, report["run"]
    source = card.trained_on(data.corpus, data.train)
    looks = "without attention" if model.decoder == "plain" else f"{model.attention} attention, {model.decoder} decoder"
    lines = [
        f"# {folder.resolve().name}",
        "",
        f"A translator over {recipe.text.kind}: {model.layers} x {model.cell}, encoder of {model.encoder_size}"
        f"{' in each direction' if model.bidirectional else ''}, decoder of {model.hidden}, {looks}; "
        f"{report['parameters']:,} parameters. Made with Elman {__version__}.",
        "",
        f"Trained on {source} ({run['pairs']:,} pairs) for {run['epochs']:.1f} epochs ({run['steps']:,} updates) in "
        f"{duration(run['seconds'])}, {report['platform']['threads']} threads. Every setting is in `recipe.toml`.",
        "",
    ]
    for name in set_names(report):
        lines += [
            f"## Scores, {NAMES.get(name, name)} ({report[name]['lines']:,} lines, beam {recipe.search.beam})",
            "",
            *card.score_table(COLUMNS, rows(report, name)),
            f"BLEU `{report[name]['bleu_signature']}`, chrF `{report[name]['chrf_signature']}`",
            "",
        ]
    if names := set_names(report):
        lines += ["## Examples", "", "```", _examples(report[names[-1]]), "```", ""]
    looked = ["elman explain {model} TEXT --out alignment.png"] if model.decoder != "plain" else []
    commands = ("elman predict {model} FILE", *looked, "elman evaluate {model} SOURCES TARGETS")
    return "\n".join([*lines, *card.use(folder, commands, 'model.predict("a text").text')]) + "\n"
