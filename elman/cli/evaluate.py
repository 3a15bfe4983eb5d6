"""`elman evaluate`: a model's scores, beside the baselines."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from elman.cli.adapting import ADAPT, ADAPT_FROM, CACHE, adapting_model, reading_progress, sorted_settings
from elman.cli.data import DATA_DIR
from elman.errors import UserError
from elman.files import check_new_folder

if TYPE_CHECKING:
    from elman.tasks import LanguageModel


SETTINGS = typer.Option(
    [],
    "--set",
    "-s",
    help="data.key=value, where the files are written in another way than those of training; cache.key, adapt.key.",
)
ENSEMBLE = typer.Option([], "--ensemble", help="The folder of a further model to average with; may be repeated.")
TUNE = typer.Option(False, "--tune", help="Find settings for --cache and --adapt on the data, which must be held out.")
TOKENS = typer.Option(None, "--tune-tokens", min=2, max=2**31 - 1, help="Tune on so many tokens; 20,000 unless given.")
KEEP = typer.Option(False, "--keep", help="Keep tuned settings, and measured gradients, in the model's folder.")
SAVE = typer.Option(None, "--save", help="Write the weights that --adapt has led to behind the data to a new folder.")


def evaluate(
    model: Path = typer.Argument(..., help="A model folder."),
    data: list[Path] = typer.Argument(..., help="Files or folders, each scored on its own."),
    tokens: bool = typer.Option(False, "--tokens", help="The log-probability of every token, a JSON record a line."),
    as_json: bool = typer.Option(False, "--json", help="The scores as JSON."),
    baselines: bool = typer.Option(True, help="Fit the baselines to the model's training data, if found."),
    settings: list[str] = SETTINGS,
    ensemble: list[Path] = ENSEMBLE,
    cache: bool = CACHE,
    adapt: bool = ADAPT,
    adapt_from: Path | None = ADAPT_FROM,
    tune: bool = TUNE,
    tune_tokens: int | None = TOKENS,
    keep: bool = KEEP,
    save: Path | None = SAVE,
    data_dir: Path | None = DATA_DIR,
) -> None:
    """Score a model on data that it has not seen, beside the baselines of its task."""
    from elman import tasks
    from elman.tasks.ensemble import with_ensemble

    loaded = with_ensemble(tasks.load(model), ensemble)
    if tokens and not isinstance(loaded, tasks.LanguageModel):
        raise UserError(f"{model} is no language model: --tokens has nothing to show for it")
    tables, settings = sorted_settings(settings)
    if tokens and save is not None:
        raise UserError("--save goes with the scores of a whole text: leave --tokens out")
    _check_adapting(cache or adapt, adapt, tune, tune_tokens, keep, save, data)
    adapted = adapting_model(loaded, cache, adapt, tables, adapt_from, data_dir)
    if tune:
        adapted = _tune(adapted, data[0], tune_tokens, keep, as_json)
    elif keep:
        typer.echo(f"kept in {adapted.keep()}", err=True)  # type: ignore[union-attr]
    if adapted is not None:
        adapted.keeps, adapted.progress, loaded = save is not None, reading_progress(), adapted
    if tokens:
        for path in data:
            _print_tokens(loaded, path, settings)
        return
    report = tasks.evaluate(loaded, data, baselines=baselines, data_dir=data_dir, settings=settings)
    if as_json:
        if note := report.pop("note", ""):
            typer.echo(note, err=True)
        typer.echo(json.dumps(report, indent=2))
    else:
        from elman.cli.train import show_report

        show_report(report)
    if save is not None:
        assert adapted is not None
        adapted.save(save)
        typer.echo(f"the adapted model is in {save}", err=True)


def _check_adapting(
    adapting: bool, adapt: bool, tune: bool, tune_tokens: int | None, keep: bool, save: Path | None, data: list[Path]
) -> None:
    """Refuse options that mean nothing together."""
    if not adapting and (tune or keep):
        raise UserError(f"{'--tune' if tune else '--keep'} is for a model that adapts: give --cache, --adapt or both")
    if tune_tokens is not None and not tune:
        raise UserError("--tune-tokens says what --tune reads: give that too")
    if tune and len(data) > 1:
        raise UserError("--tune goes by one held-out file: give that alone, and score others with what it finds")
    if save is not None:
        if not adapt:
            raise UserError("--save writes the weights that --adapt has led to: give that too")
        if len(data) > 1:
            raise UserError("--save goes by one file, which the weights follow: give that alone")
        check_new_folder(save)
        if save.exists() and (not save.is_dir() or any(save.iterdir())):
            raise UserError(f"{save} is there already: name a new folder with --save")


def _tune(model: Any, path: Path, tokens: int | None, keep: bool, as_json: bool) -> Any:
    """The model with the settings that suit a held-out file best, which are printed and may be kept."""
    tuned = model.tune(path, tokens=tokens, say=lambda line: typer.echo(line, err=True))
    typer.echo(f"settings: {tuned.adapting_settings.written()}", err=as_json)
    if keep:
        typer.echo(f"kept in {tuned.keep()}", err=True)
    return tuned


def _print_tokens(model: "LanguageModel", path: Path, settings: list[str]) -> None:
    from elman.tasks import TASKS
    from elman.tasks.reading import with_reading_settings
    from elman.tasks.task import Source
    from elman.train.recipe import parse

    task = TASKS["lm"]
    recipe = with_reading_settings(parse(task.Recipe, model.recipe, where="the model's config.json"), settings)
    ids = task.read_set(model, recipe, Source([path]), str(path), lambda line: None)
    for token, score in zip(ids.read(0, len(ids)), model.log_probs(ids), strict=True):
        record = {"text": str(path), "token": model.tokenizer.tokens[token], "log_prob": round(float(score), 6)}
        typer.echo(json.dumps(record, ensure_ascii=False))
