"""`elman generate`: a language model writes."""

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from elman.cli.adapting import ADAPT, ADAPT_FROM, CACHE, adapting_model, sorted_settings
from elman.errors import UserError


def add_to(app: typer.Typer, line: Sequence[str] | None = None) -> None:
    """Register `elman generate`; it takes further arguments, to say where they belong."""
    app.command("generate", context_settings={"allow_extra_args": True})(generate)


def generate(
    context: typer.Context,
    model: Path = typer.Argument(..., help="The folder of a language model."),
    prompt: str = typer.Option("", "--prompt", "-p", help="The text to continue; - reads standard input."),
    encoding: str = typer.Option("utf-8", "--encoding", help="Of a prompt that is read from standard input."),
    label: str | None = typer.Option(None, "--label", help="What to write, for models trained with labels."),
    length: int = typer.Option(500, "--length", "-n", min=0, max=2**31 - 1, help="Tokens to write at most."),
    samples: int | None = typer.Option(
        None, "--samples", min=1, max=1_000_000, help="How many texts, made as one batch; 1, or with --exhaustive all."
    ),
    temperature: float = typer.Option(1.0, "--temperature", "-t", help="0 always takes the likeliest token."),
    top_k: int = typer.Option(0, "--top-k", help="Choose among the k likeliest only; 0 is all."),
    top_p: float = typer.Option(1.0, "--top-p", help="Choose among the likeliest that have this probability together."),
    repetition_penalty: float = typer.Option(
        1.0, "--repetition-penalty", help="Above 1, what was said is less likely."
    ),
    seed: int | None = typer.Option(None, "--seed", help="The same seed writes the same text."),
    stop: list[str] = typer.Option([], "--stop", help="End before this text."),
    exhaustive: bool = typer.Option(
        False, "--exhaustive", help="Every text of up to that length, best first: tiny vocabularies."
    ),
    as_json: bool = typer.Option(False, "--json", help="One JSON record for each text."),
    cache: bool = CACHE,
    adapt: bool = ADAPT,
    read: Path | None = typer.Option(None, "--read", help="A text to get used to first, with --cache or --adapt."),
    adapt_from: Path | None = ADAPT_FROM,
    settings: list[str] = typer.Option([], "--set", "-s", help="cache.key=value, adapt.key=value."),
) -> None:
    """Continue a prompt; the text appears as it is made."""
    from elman.cli.streams import read_prompt
    from elman.decode import Sampling, fresh_seed
    from elman.tasks import load

    if context.args:
        text = shlex.quote(" ".join(context.args))
        raise UserError(f"the text to continue is an option: elman generate {model} --prompt {text}")
    seed = fresh_seed() if seed is None else seed
    sampling = Sampling(temperature, top_k, top_p, repetition_penalty, seed)
    found = _adapted(load(model, "lm"), cache, adapt, read, adapt_from, settings)
    if prompt == "-":
        prompt = read_prompt(encoding)
    if exhaustive:
        backward = found.settings.direction == "backward"
        for one in found.exhaustive(prompt, length=length, label=label)[:samples]:
            typer.echo(json.dumps(one._asdict(), ensure_ascii=False) if as_json else _scored(one, backward))
        return
    samples = samples or 1
    options: dict[str, Any] = {"label": label, "length": length, "samples": samples, "sampling": sampling, "stop": stop}
    if as_json or samples > 1 or found.settings.direction == "backward":
        _print_whole(found, prompt, options, as_json)
    else:
        pieces = found.stream(prompt, **options)
        typer.echo(prompt, nl=False)
        for _, piece in pieces:
            sys.stdout.write(piece)
            sys.stdout.flush()
        typer.echo()


def _scored(one: Any, backward: bool) -> str:
    """A text and its log-probability on one line; where it has ended, and not merely been cut, that is said."""
    text, end = one.text.replace("\\", "\\\\").replace("\n", "\\n"), "<eos>" if one.finished else ""
    return f"{one.log_prob:9.4f}  {end + text if backward else text + end}"


def _adapted(
    model: Any, cache: bool, adapt: bool, read: Path | None, adapt_from: Path | None, settings: list[str]
) -> Any:
    """The model, used to a text where that is asked for."""
    tables, others = sorted_settings(settings)
    if others:
        raise UserError(f"{others[0]!r} is no setting of what is written: known are those of cache and adapt")
    if adapt and read is None:
        raise UserError("--adapt needs a text to get used to before it writes: give it with --read FILE")
    adapting = adapting_model(model, cache, adapt, tables, adapt_from)
    if adapting is None:
        if read is not None:
            raise UserError("--read is a text to get used to: give --cache, --adapt or both with it")
        return model
    from elman.tasks.adapting import text_ids

    return adapting if read is None else adapting.follow(text_ids(adapting, read))


def _print_whole(model: Any, prompt: str, options: dict[str, Any], as_json: bool) -> None:
    """Several texts at once cannot stream side by side: each is printed when all are there."""
    backward = model.settings.direction == "backward"
    for number, text in enumerate(model.generate(prompt, **options), start=1):
        whole = text + prompt if backward else prompt + text
        if as_json:
            record = {"sample": number, "seed": options["sampling"].seed, "prompt": prompt, "text": text}
            typer.echo(json.dumps(record, ensure_ascii=False))
        elif "\n" in whole and options["samples"] > 1:
            typer.echo(f"--- {number}\n{whole}")
        else:
            typer.echo(whole)
