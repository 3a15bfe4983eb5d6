"""What `elman predict` prints for a translator: a translation a line, or JSON."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from elman.corpora.examples import in_order
from elman.errors import UserError
from elman.tasks.predict import PredictOptions
from elman.tasks.texts import TextRecord, read_texts
from elman.tasks.translate.search import Search, as_fields
from elman.tasks.translate.translation import Translation

if TYPE_CHECKING:
    from elman.tasks.translate.model import Translator

OWN = ("prefix", "require", "forbid")  # what a JSON record may say for itself
SAMPLE = 2000  # characters that are looked at before the language is doubted
STRANGE = 1.6  # times as many tokens as usual
UNKNOWN = 0.4  # share of unknown tokens


def translate_lines(model: "Translator", lines: Iterable[str], options: PredictOptions) -> Iterator[str]:
    """A line for each text in `lines`, in their order; with `n_best` one for each translation."""
    search = Search.of(options.search)
    watch = _Watch(model, options)
    found = in_order(
        (watch.see(record) for record in read_texts(lines, options)),
        lambda record: len(record.text),
        lambda batch: model.translate([record.text for record in batch], [_asked(one, search) for one in batch]),
        batch_size=options.window,  # the model cuts by the number of tokens
        window=options.window,
    )
    for record, translation in found:
        yield from [_json(record, translation)] if options.as_json else _plain(record, translation, search)
    watch.finish()


def _asked(record: TextRecord, search: Search) -> Search:
    own = {name: record.fields[name] for name in OWN if name in record.fields}
    for name, value in own.items():
        if not isinstance(value, str if name == "prefix" else list):
            kind = "a text" if name == "prefix" else "a list of words"
            raise UserError(f"line {record.line}: {name!r} should be {kind}, not {value!r}")
    return replace(search, **as_fields(own))


def _plain(record: TextRecord, found: Translation, search: Search) -> Iterator[str]:
    if search.n_best > 1:
        for alternative in found.n_best:
            yield f"{record.line}\t{alternative.score:.4f}\t{alternative.text}"
    else:
        yield f"{found.text}\t{found.pharaoh}" if search.alignments else found.text


def _json(record: TextRecord, found: Translation) -> str:
    value: dict[str, Any] = {
        "line": record.line,
        "text": record.text,
        "translation": found.text,
        "score": round(found.score, 6),
        "log_prob": round(found.n_best[0].log_prob, 6),
        "finished": found.n_best[0].finished,
    }
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
        self.characters = self.tokens = self.unknown = self.long = 0
        self.doubted = False

    def see(self, record: TextRecord) -> TextRecord:
        """The same record, looked at."""
        ids = self.model.sides.read(record.text)
        tokens = len(ids)
        self.long += tokens > self.model.longest
        if self.long == 1 and tokens > self.model.longest:
            self.options.say(
                f"warning: {self.options.where}:{record.line} has {tokens} tokens and the model learned from at most "
                f"{self.model.longest}: such texts are translated in parts"
            )
        if not self.doubted and self.characters < SAMPLE:
            self.characters, self.tokens = self.characters + len(record.text), self.tokens + tokens
            self.unknown += int((ids == self.model.sides.source.unk_id).sum())
            if self.characters >= SAMPLE:
                self._doubt()
        return record

    def finish(self) -> None:
        """What can only be said at the end."""
        if self.characters < SAMPLE:
            self._doubt()
        if self.long > 1:
            self.options.say(f"{self.long:,} texts were longer than {self.model.longest} tokens")

    def _doubt(self) -> None:
        usual = self.model.tokens_per_character * max(self.characters, 1)
        more, unknown = self.tokens / max(usual, 1e-9), self.unknown / max(self.tokens, 1)
        if more > STRANGE or unknown > UNKNOWN:
            self.doubted = True
            how = (
                f"{unknown:.0%} of its tokens are unknown"
                if unknown > UNKNOWN
                else f"it takes {more:.1f} times the tokens"
            )
            self.options.say(
                f"warning: the vocabulary hardly covers {self.options.where} ({how}): "
                "is this the source language, or are source and target swapped?"
            )
