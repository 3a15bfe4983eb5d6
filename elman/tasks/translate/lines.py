"""What `elman predict` prints for a translator: a translation a line, or JSON."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from elman.batches.examples import in_order
from elman.errors import UserError
from elman.records.texts import PAIRED
from elman.tasks.predict import PredictOptions, trained_with
from elman.tasks.texts import TextRecord, read_texts
from elman.tasks.translate.batch import Ints
from elman.tasks.translate.search import Search
from elman.tasks.translate.translation import Translation

if TYPE_CHECKING:
    from elman.tasks.translate.model import Translator

OWN = ("prefix", "require", "forbid")  # what a JSON record may say for itself
SAMPLE, LEAST = 2000, 40  # characters that are looked at before the language is doubted: at most, at least

Translate = Callable[[Sequence[str], Sequence[Search]], list[Translation]]


def translate_lines(
    model: "Translator", lines: Iterable[str], options: PredictOptions, translate: Translate | None = None
) -> Iterator[str]:
    """A line for each text in `lines`, in their order; with `n_best` one for each translation.

    `translate` does the work where the model does not do it alone.
    """
    search = Search.of(options.search)
    search.control(model.sides)  # what no line can have is said before the first is read
    if search.n_best > 1 and search.alignments and not options.as_json:
        raise UserError("the alignment is that of the best translation: leave n_best out, or ask for JSON")
    usual = trained_with(model.recipe, "source")
    watch, work = _Watch(model, options), translate or model.translate
    found = in_order(
        _asked_of(model, read_texts(lines, options, usual, PAIRED), search, options, watch),
        lambda item: len(item[0].text),
        lambda batch: work([record.text for record, _ in batch], [asked for _, asked in batch]),
        batch_size=options.window,  # the model cuts by the number of tokens
        window=options.window,
    )
    for (record, _), translation in found:
        yield from [_json(record, translation)] if options.as_json else _plain(record, translation, search)
    watch.finish()


def _asked_of(
    model: "Translator", records: Iterable[TextRecord], search: Search, options: PredictOptions, watch: "_Watch"
) -> Iterator[tuple[TextRecord, Search]]:
    """Each record with what is asked of it; one that cannot be translated so is a bad line."""
    for record in records:
        try:
            own = search.also({name: record.fields[name] for name in OWN if name in record.fields})
            if own is not search:
                own.control(model.sides)
            ids = model.sides.read(record.text)
            if not len(ids):
                raise UserError("the text has no tokens that the model knows: give it some words")
            if len(ids) > model.longest:
                model.parts(record.text, own)  # refuses what cannot be asked of parts
        except UserError as error:
            options.bad(UserError(f"{options.where}:{record.line}: {error}"))
        else:
            watch.see(record, ids)
            yield record, own


def _plain(record: TextRecord, found: Translation, search: Search) -> Iterator[str]:
    if search.n_best > 1:
        for alternative in found.n_best:
            yield f"{record.line}\t{alternative.score:.4f}\t{_one_line(alternative.text)}"
    else:
        yield f"{_one_line(found.text)}\t{found.pharaoh}" if search.alignments else _one_line(found.text)


def _one_line(text: str) -> str:
    """Text that may have learned line ends, as one line."""
    return text.replace("\n", " ")


def _json(record: TextRecord, found: Translation) -> str:
    value: dict[str, Any] = {
        "line": record.line,
        "text": record.text,
        "translation": found.text,
        "score": round(found.score, 6),
        "log_prob": round(found.n_best[0].log_prob, 6),
        "finished": found.n_best[0].finished,
    }
    if found.parts > 1:
        value["parts"] = found.parts
    if len(found.n_best) > 1:
        value["n_best"] = [
            {"translation": one.text, "score": round(one.score, 6), "log_prob": round(one.log_prob, 6)}
            for one in found.n_best
        ]
    if found.weights is not None:
        value |= {
            "source_tokens": found.source_tokens,
            "target_tokens": found.target_tokens,
            "alignment": found.pharaoh,
        }
    return json.dumps(value, ensure_ascii=False)


class _Watch:
    """Warns of texts that the model was not made for: another language, longer than any that it knows."""

    def __init__(self, model: "Translator", options: PredictOptions) -> None:
        self.model, self.options = model, options
        self.characters = self.long = 0
        self.sample: list[Ints] = []

    def see(self, record: TextRecord, ids: Ints) -> None:
        """Look at a record that will be translated, and its tokens."""
        tokens = len(ids)
        self.long += tokens > self.model.longest
        if self.long == 1 and tokens > self.model.longest:
            self.options.say(
                f"warning: {self.options.where}:{record.line} has {tokens} tokens and the model learned from at most "
                f"{self.model.longest}: such texts are translated in parts, cut between sentences or words"
            )
        if self.characters < SAMPLE:
            self.characters += len(record.text)
            self.sample.append(ids)
            if self.characters >= SAMPLE:
                self._doubt()

    def finish(self) -> None:
        """What can only be said at the end."""
        if LEAST <= self.characters < SAMPLE:
            self._doubt()
        if self.long > 1:
            self.options.say(f"{self.long:,} texts were longer than {self.model.longest} tokens")

    def _doubt(self) -> None:
        doubt = self.model.usual.doubt(np.concatenate(self.sample), self.characters, self.model.sides)
        if doubt is not None:
            self.options.say(
                f"warning: {self.options.where} does not look like what the model learned to read ({doubt}): "
                "is this the source language, or are source and target swapped?"
            )
