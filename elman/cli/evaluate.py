"""`elman evaluate`: a model's scores on text, beside the baselines."""

import json
from pathlib import Path

import typer

from elman.errors import UserError


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

    found = LanguageModel.load(model)
    recipe = LanguageRecipe.model_validate(found.recipe)
    texts = {str(path): encode_file([path], recipe, found.tokenizer, found.labels) for path in data}
    if tokens:
        for name, ids in texts.items():
            _print_tokens(found, name, ids)
        return
    train = None
    if baselines and recipe.baseline.order and found.settings.kind != "ngram":
        try:
            train = open_data(recipe, data_dir).train
        except UserError as error:
            typer.echo(f"no n-gram baseline, since the training text was not found: {error}", err=True)
    report = language_report.evaluate_model(found, texts, train, recipe)
    if as_json:
        typer.echo(json.dumps(report, indent=2))
    else:
        from elman.cli.train import show_report

        show_report(report)


def _print_tokens(model, name, ids) -> None:  # type: ignore[no-untyped-def]
    scores = model.log_probs(ids)
    order = ids.read(0, len(ids))
    if model.settings.direction == "backward" and model.reading.unit == "stream":
        order = order[::-1]
    for token, score in zip(order, scores, strict=True):
        record = {"text": name, "token": model.tokenizer.tokens[token], "log_prob": round(float(score), 6)}
        typer.echo(json.dumps(record, ensure_ascii=False))
