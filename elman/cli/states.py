"""`elman states`: what a model's layers do while they read texts, as a file of arrays for other programs."""

from pathlib import Path

import typer

from elman.errors import UserError


def states(
    model: Path = typer.Argument(..., help="A model's folder."),
    texts: list[str] = typer.Argument(None, help="A text, or files of texts, one a line or row; - is standard input."),
    out: Path = typer.Option(..., "--out", "-o", help="The file of arrays to write (.npz)."),
    layer: int | None = typer.Option(None, "--layer", min=1, help="This layer alone, from 1; all, if not given."),
    last: bool = typer.Option(False, "--last", help="The state after each text alone: a row for each text."),
    label: str | None = typer.Option(None, "--label", help="What a language model with labels is told."),
    target: str | None = typer.Option(
        None, "--target", help="What a translator's decoder writes, in place of its own translation."
    ),
    column: str | None = typer.Option(None, "--column", "-c", help="The text's column or field, by name or number."),
    format: str | None = typer.Option(
        None, "--format", "-f", help="csv, tsv, jsonl, txt, ...; else the file's ending."
    ),
    encoding: str = typer.Option("utf-8", "--encoding", help="Of files and of standard input."),
) -> None:
    """Write hidden states, cell states, gates and attention of texts as arrays: features for other programs."""
    from elman.records.lines import BadLines
    from elman.tasks import load
    from elman.tasks.predict import PredictOptions, inputs, read_texts
    from elman.tasks.traces import check_arrays, text_reader, together, write_states

    check_arrays(out)
    loaded = load(model)
    found, reader = [], text_reader(loaded)
    for source in inputs(texts or ["-"], encoding):
        options = PredictOptions(where=source.where, format=format, column=column)
        for record in read_texts(reader, source.lines(BadLines()), options):
            found.append(loaded.states(record.text, layer=layer, label=label, target=target))
    if not found:
        raise UserError("there are no texts to read: give at least one")
    write_states(out, found, last=last)
    sizes = "\n".join(
        f"  {name:<14}{' x '.join(map(str, array.shape))}" for name, array in together(found, last=last).items()
    )
    typer.echo(f"states of {len(found):,} text{'s' * (len(found) != 1)} are in {out}:\n{sizes}")
