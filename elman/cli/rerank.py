"""`elman rerank`: how much a reverse model and a language model improve a translator, and with which weights."""

import json
from pathlib import Path
from typing import Any

import typer

from elman.cli.evaluate import SETTINGS
from elman.errors import UserError


def rerank(
    model: Path = typer.Argument(..., help="The folder of a translator."),
    channel: Path = typer.Option(..., "--channel", help="A translator the other way round."),
    lm: Path = typer.Option(..., "--lm", help="A language model of the target."),
    dev: list[Path] = typer.Option([], "--dev", help="Pairs to tune the weights on; twice for two parallel files."),
    test: list[Path] = typer.Option([], "--test", help="Pairs to show the gain on, which were not tuned on."),
    weights: str | None = typer.Option(None, "--weights", help="To begin with, or, without --dev, to use."),
    n_best: int = typer.Option(20, "--n-best", min=2, help="Translations of each text to choose from."),
    seed: int = typer.Option(0, "--seed", min=0, help="Of the tuning."),
    settings: list[str] = SETTINGS,
    as_json: bool = typer.Option(False, "--json", help="The figures as JSON."),
) -> None:
    """Tune a noisy channel on some pairs, and show its BLEU beside the translator's own."""
    from elman.tasks.channel import NoisyChannel, rerank_report

    if not dev and not test:
        raise UserError("there is nothing to score: give --dev FILE to tune on, --test FILE, or both")
    models = NoisyChannel.load(model, channel, lm, weights, n_best)
    report = rerank_report(models, dev=dev, test=test, seed=seed, settings=settings)
    typer.echo(json.dumps(report, indent=2) if as_json else _table(report))
    if not as_json:
        options = f"--channel {channel} --lm {lm} --channel-weights {report['weights']}"
        typer.echo(f"use them with  elman predict {model} {options} FILE")


def _table(report: dict[str, Any]) -> str:
    lines = [f"weights  {report['weights']}"]
    for name in ("dev", "test"):
        if name in report:
            scores = report[name]
            gain = f"{scores['before']:.2f} -> {scores['after']:.2f}"
            lines.append(f"{name:7}  BLEU {gain}  ({scores['lines']:,} lines)")
    return "\n".join([*lines, f"BLEU {report['signature']}"])
