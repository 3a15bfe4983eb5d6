"""`elman evaluate`: a model's scores on text, beside the baselines."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from elman.errors import UserError

if TYPE_CHECKING:
    from elman.corpora import IdStream
    from elman.tasks.language_model import LanguageModel


def add_to(app: typer.Typer) -> None:
    """Put the command in its place."""
    app.command("evaluate")(evaluate)


def evaluate(
    model: Path = typer.Argument(..., help="A model folder."),
    data: list[Path] = typer.Argument(..., help="Text files or folders, each scored on its own."),
    tokens: bool = typer.Option(False, "--tokens", help="The log-probability of every token, a JSON record a line."),
    as_json: bool = typer.Option(False, "--json", help="The scores as JSON."),
    baselines: bool = typer.Option(True, help="Count the n-gram baseline on the model's training text, if found."),
    data_dir: Path | None = typer.Option(None, "--data-dir", help="A folder with corpora, looked in first."),
) -> None:
    """Score text: loss in nats, perplexity, bits; beside n-grams and plain frequency."""
    from elman.tasks import language_report
    from elman.tasks.language_data import encode_file, open_data
    from elman.tasks.language_model import LanguageModel
    from elman.tasks.language_settings import LanguageRecipe
    from elman.train.recipe import parse

    found = LanguageModel.load(model)
    recipe = parse(LanguageRecipe, found.recipe, where=f"the recipe in {model / 'config.json'}")
    texts = {str(path): encode_file([path], recipe, found.tokenizer, found.labels) for path in data}
    if tokens:
        for name, ids in texts.items():
            _print_tokens(found, name, ids)
        return
    train = None
    if baselines and recipe.baseline.order and found.settings.kind != "ngram":
        try:
            source = open_data(recipe, data_dir)
            train = source.train if source.tokenizer.fingerprint() == found.tokenizer.fingerprint() else None
            if train is None:
                typer.echo("no n-gram baseline, since the training text has changed", err=True)
        except UserError as error:
            typer.echo(f"no n-gram baseline, since the training text was not found: {error}", err=True)
    report = language_report.evaluate_model(found, texts, train, recipe)
    if as_json:
        typer.echo(json.dumps(report, indent=2))
    else:
        from elman.cli.train import show_report

        show_report(report)


def _print_tokens(model: "LanguageModel", name: str, ids: "IdStream") -> None:
    for token, score in zip(ids.read(0, len(ids)), model.log_probs(ids), strict=True):
        record = {"text": name, "token": model.tokenizer.tokens[token], "log_prob": round(float(score), 6)}
        typer.echo(json.dumps(record, ensure_ascii=False))
