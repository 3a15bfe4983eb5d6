"""A trained translator: anything from a line to a line, and a folder to live in.

model = Translator.load(Path("runs/de-en"))
model.predict("Zwei Hunde spielen im Schnee.").text
model.predict("Zwei Hunde spielen im Schnee.", n_best=3, require=["snow"])
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast, overload

import numpy as np
import torch
from pydantic import Field

from elman.batches.examples import by_length, pad
from elman.decode import Control, Ensemble, Hypothesis, NothingFound, SearchTree, StepModel, beam_search
from elman.errors import UserError
from elman.nn.translation import TranslationNetwork
from elman.runtime.decoder import Decoder, decoder_refusal
from elman.tasks import folder as folders
from elman.tasks.compiled import CompiledModel
from elman.tasks.predict import PredictOptions
from elman.tasks.texts import check_texts
from elman.tasks.translate.batch import Batch, Ints, make_batch
from elman.tasks.translate.drawn import drawn
from elman.tasks.translate.lines import translate_lines
from elman.tasks.translate.network import build_network
from elman.tasks.translate.search import Search, limits
from elman.tasks.translate.settings import ModelSettings, SearchSettings
from elman.tasks.translate.sides import Sides
from elman.tasks.translate.steps import CompiledSteps, TranslationSteps
from elman.tasks.translate.translation import Alternative, Translation, joined
from elman.tasks.translate.unknown import replace_unknown
from elman.tasks.translate.usual import Usual
from elman.tasks.translate.windows import windows

TASK = "translate"
SENTENCES, TOKENS = 64, 4096  # searched at a time, at most


class TranslatorConfig(folders.Config):
    """What a translator's config.json holds."""

    model: ModelSettings
    search: SearchSettings
    longest: int = Field(ge=1)
    tokens_per_character: float = Field(ge=0)
    foreign: tuple[int, ...] = ()


class Translator(CompiledModel[Decoder]):
    """p(target | source).

    `longest` is the number of tokens of the longest source that it has learned from: a longer one is translated in
    parts. `others` are further models with the same vocabularies, whose probabilities are averaged with its own.
    """

    def __init__(
        self,
        settings: ModelSettings,
        search: SearchSettings,
        sides: Sides,
        network: TranslationNetwork,
        longest: int,
        usual: Usual | None = None,
    ) -> None:
        self.settings, self.search, self.sides = settings, search, sides
        self.network: TranslationNetwork = network
        self.longest, self.usual = longest, usual or Usual()
        self.others: list[Translator] = []
        self.recipe: dict[str, Any] = {}  # what it was trained by; kept in its config

    # The folder

    @classmethod
    def load(cls, folder: Path | str) -> "Translator":
        """Read a model folder."""
        folder = Path(folder)
        config = folders.read_config(folder, TranslatorConfig, TASK)
        sides = Sides.load(folder / "tokenizer.json")
        network, int8 = folders.load_network(lambda: build_network(config.model, sides, trained=False), folder)
        usual = Usual(config.tokens_per_character, config.foreign)
        model = cls(config.model, config.search, sides, network, config.longest, usual)
        model.recipe, model.int8 = config.recipe, int8
        return model

    def save(self, folder: Path) -> None:
        """Write the model folder's config, vocabularies and weights."""
        config = {
            "model": self.settings.model_dump(mode="json"),
            "search": self.search.model_dump(mode="json"),
            "longest": self.longest,
            **asdict(self.usual),
            "recipe": self.recipe,
        }
        folders.write_model(folder, TASK, config, self._kept_weights(), self.sides)

    # The compiled decoder

    def refusal(self) -> str | None:
        """Why the compiled decoder does not write for this model, so that PyTorch does; None if it does."""
        return decoder_refusal(self.network)

    def _compile(self) -> Decoder:
        return Decoder.of(self.network, arrays=self.int8)

    def steps(self, source: torch.Tensor, lengths: torch.Tensor) -> StepModel[Any]:
        """What a search goes through to write translations of sources (B x S ids, of so many each)."""
        network, decoder = self.ready(), self._runtime()
        if decoder is None:
            return TranslationSteps(network, source, lengths)
        return CompiledSteps(decoder, network, source, lengths)

    def ready(self) -> TranslationNetwork:
        """The network with all dropout off; to say so to every layer takes longer than some of its steps."""
        if self.network.training:
            self.network.eval()
        return self.network

    def beside(self, *others: "Translator") -> "Translator":
        """An ensemble with others: the mean of their probabilities. Their vocabularies must be the same."""
        for other in others:
            if other.sides.to_json() != self.sides.to_json():
                raise UserError("models of an ensemble need the same vocabularies: train them from one tokenizer.json")
            if other.settings.reverse_source != self.settings.reverse_source:
                raise UserError("models of an ensemble must read sources alike: one has model.reverse_source")
        longest = min(model.longest for model in (self, *others))
        twin = Translator(self.settings, self.search, self.sides, self.network, longest, self.usual)
        twin.recipe, twin.int8, twin.others = self.recipe, self.int8, [*self.others, *others]
        return twin

    # Translating

    @overload
    def predict(self, texts: str, **options: Any) -> Translation: ...

    @overload
    def predict(self, texts: Sequence[str], **options: Any) -> list[Translation]: ...

    def predict(self, texts: str | Sequence[str], **options: Any) -> Translation | list[Translation]:
        """Translate a text, or each of several; the options are those of `Search`."""
        if isinstance(texts, str):
            return self.predict([texts], **options)[0]
        check_texts(texts)
        search = Search.of(options)
        return self.translate(texts, [search] * len(texts))

    def translate(self, texts: Sequence[str], searches: Sequence[Search]) -> list[Translation]:
        """Translate texts, each with what is asked of it; those that are too long in parts."""
        parts = [self.parts(text, search) for text, search in zip(texts, searches, strict=True)]
        pieces = [part for several in parts for part in several]
        asked = [search for several, search in zip(parts, searches, strict=True) for _ in several]
        found = iter(self._translate(pieces, asked))
        return [joined(text, [next(found) for _ in several]) for text, several in zip(texts, parts, strict=True)]

    def parts(self, text: str, search: Search) -> list[str]:
        """A text in parts that the network is used to, mostly one; refused where they cannot be what is asked for."""
        inside = self.settings.places is not None  # what is beyond those is never looked at
        several = windows(text, self.longest, lambda part: len(self.sides.read(part)), inside=inside)
        if len(several) > 1 and (search.prefix or search.require):
            raise UserError(
                f"the text {several[0][:30]!r} ... has more than {self.longest} tokens: it is translated in parts, "
                "which cannot all have the prefix and the required words: shorten it, or leave those out"
            )
        return several

    def predict_lines(self, lines: Iterable[str], options: PredictOptions) -> Iterator[str]:
        """What `elman predict` prints for lines of text, of a table, or of JSON."""
        return translate_lines(self, lines, options)

    def tree(self, text: str, **options: Any) -> SearchTree:
        """Everything that the search for one translation looked at."""
        search, tree = Search.of(options), SearchTree()
        if search.sampling is not None:
            raise UserError("a text that is drawn has no tree of hypotheses: leave temperature out")
        self._search([text], [self._source(text)], [search], tree)
        return tree

    def _translate(self, texts: Sequence[str], searches: Sequence[Search]) -> list[Translation]:
        sources = [self._source(text) for text in texts]
        found: list[Translation | None] = [None] * len(texts)
        for rows in by_length([len(source) for source in sources], SENTENCES, tokens=TOKENS):
            alike: dict[tuple[Any, ...], list[int]] = {}  # only prefixes and words may differ within a search
            for row in rows.tolist():
                alike.setdefault(_settings_of(searches[row]), []).append(row)
            for group in alike.values():
                several = self._search(
                    [texts[row] for row in group], [sources[row] for row in group], [searches[row] for row in group]
                )
                for row, hypotheses in zip(group, several, strict=True):
                    found[row] = self._translation(texts[row], sources[row], hypotheses)
        self._align(cast(list[Translation], found), sources, searches)
        return [self._finished(one, search) for one, search in zip(cast(Any, found), searches, strict=True)]

    def _source(self, text: str) -> Ints:
        """The ids that the encoder reads: from the end where it was trained so."""
        ids = self.sides.read(text)
        if not len(ids):
            raise UserError(f"the text {text!r} has no tokens that the model knows: give it some words")
        return ids[::-1].copy() if self.settings.reverse_source else ids

    @torch.no_grad()
    def _search(
        self, texts: list[str], sources: list[Ints], searches: list[Search], tree: SearchTree | None = None
    ) -> list[list[Hypothesis]]:
        padded, lengths = pad(sources)
        every = [model.steps(padded, lengths) for model in (self, *self.others)]
        steps = Ensemble(every) if self.others else every[0]
        first, controls = searches[0], [search.control(self.sides) for search in searches]
        room = limits(self.search, first, lengths.tolist(), controls)
        if first.sampling is not None:
            return drawn(steps, first.sampling, self.end, room)
        try:
            return self._beam(steps, first, controls, room, lengths.tolist(), tree)
        except NothingFound as error:
            raise UserError(
                f"no translation of {texts[error.row]!r} was found that keeps to all that is asked of it: "
                "ask for less, or take a larger beam or max_length"
            ) from None

    def _beam(
        self,
        steps: StepModel[Any],
        search: Search,
        controls: list[Control],
        room: list[int],
        lengths: list[int],
        tree: SearchTree | None,
    ) -> list[list[Hypothesis]]:
        beam = search.settled(self.search, max(room), self.sides.target.size)
        if beam.coverage and any(model.settings.decoder == "plain" for model in (self, *self.others)):
            raise UserError("coverage counts where a model looks, and this one has no attention: leave it out")
        return beam_search(
            steps,
            len(lengths),
            start_id=self.end,
            stop_id=self.end,
            beam=beam,
            lengths=room,
            controls=controls,
            source_lengths=lengths,
            tree=tree,
        )

    def _translation(self, text: str, source: Ints, found: list[Hypothesis]) -> Translation:
        n_best = [
            Alternative(self.sides.write(one.ids), one.score, one.log_prob, one.ids, one.finished) for one in found
        ]
        tokens = self.sides.source.tokens
        names = [tokens[id] for id in (source[::-1] if self.settings.reverse_source else source).tolist()]
        return Translation(text, n_best, names, [self.sides.target.tokens[id] for id in n_best[0].ids])

    def _finished(self, found: Translation, search: Search) -> Translation:
        return replace_unknown(found, self.sides) if search.replace_unknown else found

    # Learning from pairs, and looking at them

    def batches(self, pairs: Sequence[tuple[Ints, Ints]]) -> Iterator[tuple[Ints, Batch]]:
        """Encoded pairs in batches of similar length, with the places of the pairs in each row."""
        for rows in by_length([len(target) + 1 for _, target in pairs], SENTENCES, tokens=TOKENS):
            batch = make_batch([pairs[row][0] for row in rows], [pairs[row][1] for row in rows], self.end)
            yield rows[batch.order], batch

    @property
    def end(self) -> int:
        """The id that stands before and behind every target."""
        return self.sides.target.eos_id

    def encode(self, source: str, target: str) -> tuple[Ints, Ints]:
        """A pair as ids."""
        return self._source(source), self.sides.say(target)

    @torch.no_grad()
    def log_probs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """log p(target | source) of each pair, the end token counted."""
        network = self.ready()
        found = np.zeros(len(pairs))
        for rows, batch in self.batches([self.encode(*pair) for pair in pairs]):
            hidden = network.readouts(batch.source, batch.lengths, batch.inputs, batch.batch_sizes)
            each = network.softmax.target_log_probs(hidden, batch.targets).double().numpy()
            for size, part in zip(batch.batch_sizes.tolist(), np.split(each, _cuts(batch)), strict=True):
                found[rows[:size]] += part
        return found.tolist()

    @torch.no_grad()
    def weights(self, pairs: Sequence[tuple[Ints, Ints]]) -> list[np.ndarray]:
        """Where each token of each target looked, the end token's place left out: T x S for each encoded pair."""
        network = self.ready()
        found: list[np.ndarray] = [np.zeros((0, 0), np.float32)] * len(pairs)
        for rows, batch in self.batches(pairs):
            seen = network.attended(batch.source, batch.lengths, batch.inputs, batch.batch_sizes)  # B x T x S
            for row, place in enumerate(rows):
                source, target = pairs[place]
                table = seen[row, : len(target), : len(source)].numpy()
                found[place] = table[:, ::-1] if self.settings.reverse_source else table
        return found

    def align(self, source: str, target: str) -> Translation:
        """A pair as if the model had written the target itself: its log-probability, and where each token looks."""
        if isinstance(target, str) and not target.strip():
            raise UserError("the target is empty: give it at least one character")
        pair = self.encode(source, target)
        (log_prob,) = self.log_probs([(source, target)])
        length = len(pair[1]) + 1
        score = log_prob / length**self.search.length_power
        found = [self._translation(source, pair[0], [Hypothesis(pair[1].tolist(), log_prob, score, True)])]
        self._align(found, [pair[0]], [Search(alignments=True)])
        return found[0]

    def _align(self, found: list[Translation], sources: list[Ints], searches: Sequence[Search]) -> None:
        """Put the weights of the attention where they are asked for."""
        asked = [row for row, search in enumerate(searches) if search.alignments or search.replace_unknown]
        if not asked:
            return
        if self.settings.decoder == "plain":
            raise UserError("this model has no attention, so it cannot say where it looked: train one that has")
        pairs = [(sources[row], np.array(found[row].n_best[0].ids, np.int64)) for row in asked]
        for row, table in zip(asked, self.weights(pairs), strict=True):
            found[row] = replace(found[row], weights=table)


def _cuts(batch: Batch) -> np.ndarray:
    return np.cumsum(batch.batch_sizes.numpy())[:-1]


def _settings_of(search: Search) -> tuple[Any, ...]:
    """What all texts of one search must have in common."""
    alone = {"prefix", "require", "forbid", "alignments", "replace_unknown"}
    return tuple(search.model_dump(exclude=alone).values())
