"""The noisy channel: translations that a reverse model and a language model have a say in.

channel = NoisyChannel(Translator.load("runs/de-en"), Translator.load("runs/en-de"), LanguageModel.load("runs/en"))
channel.tune(pairs)
channel.predict("Zwei Hunde spielen im Schnee.").text
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack, overload

from pydantic import model_validator

from elman.decode import Tuned, tune
from elman.errors import UserError
from elman.metrics.bleu import BleuCounts
from elman.tasks.language import LanguageModel
from elman.tasks.predict import PredictOptions
from elman.tasks.reading import with_reading_settings
from elman.tasks.search import Search, SearchOptions
from elman.tasks.task import Source
from elman.tasks.translate import Translate, TranslateRecipe, Translator, lines_of, translated, written_scores
from elman.tasks.translation import Translation
from elman.tasks.writer import Alternative
from elman.text.tokenizer import normaliser
from elman.train.recipe import Section, apply_overrides, parse


class ChannelWeights(Section):
    """forward log p(y | x) + channel log p(x | y) + language log p(y) + length |y|, the end counted in |y|

    >>> ChannelWeights.read("channel=0.4,length=0.2")
    ChannelWeights(forward=1.0, channel=0.4, language=0.25, length=0.2)
    """

    forward: float = 1.0
    channel: float = 0.5
    language: float = 0.25
    length: float = 1.0

    @model_validator(mode="after")
    def _some(self) -> "ChannelWeights":
        if not any(self.model_dump().values()):
            raise ValueError("at least one weight should not be 0")
        return self

    @classmethod
    def read(cls, text: str) -> "ChannelWeights":
        """Weights as they stand on the command line; those that are left out are the usual ones."""
        return parse(cls, apply_overrides({}, text.split(",")), where="the weights of the channel")

    @classmethod
    def of(cls, weights: Mapping[str, float]) -> "ChannelWeights":
        """Tuned weights, of which only the proportions matter: that of the forward model is 1 where it can be.

        >>> ChannelWeights.of({"forward": 0.5, "channel": 0.25, "language": 0.25, "length": 0})
        ChannelWeights(forward=1.0, channel=0.5, language=0.5, length=0.0)
        """
        scale = weights["forward"] if weights["forward"] > 0 else 1.0
        return cls(**{name: value / scale for name, value in weights.items()})

    def __str__(self) -> str:
        return ",".join(f"{name}={value:.4g}" for name, value in self.model_dump().items())


@dataclass(frozen=True)
class Candidates:
    """The n-best lists of some texts, and what each of the models thinks of each translation in them."""

    found: list[Translation]
    features: list[list[dict[str, float]]]

    def ranked(self, weights: ChannelWeights) -> list[Translation]:
        """Each list in the order of the weighted sums, which become the scores."""
        named = weights.model_dump()
        ordered = []
        for found, features in zip(self.found, self.features, strict=True):
            sums = [sum(named[name] * feature[name] for name in named) for feature in features]
            order = sorted(range(len(sums)), key=lambda place: -sums[place])  # equals stay as they were
            n_best = [replace(found.n_best[place], score=sums[place]) for place in order]
            ordered.append(replace(found, n_best=n_best))
        return ordered


class NoisyChannel:
    """A translator's n-best list, put into the order of the weighted sum of three models' log-probabilities.

    `reverse` translates the other way, `language` is a language model of the target. `n_best` is how many
    translations they choose from where the user does not give a beam.
    """

    def __init__(
        self,
        model: Translator,
        reverse: Translator,
        language: LanguageModel,
        weights: ChannelWeights | None = None,
        n_best: int = 20,
    ) -> None:
        if n_best < 2:
            raise UserError(f"a channel chooses among at least 2 translations, not {n_best}: take a larger n_best")
        if language.labels:
            raise UserError("the language model writes by label: a channel needs one without")
        self.model, self.reverse, self.language = model, reverse, language
        self.weights, self.n_best = weights or ChannelWeights(), n_best

    @classmethod
    def load(
        cls,
        model: "Translator | Path | str",
        reverse: Path | str,
        language: Path | str,
        weights: str | None = None,
        n_best: int = 20,
    ) -> "NoisyChannel":
        """The three models of their folders as one; `weights` as they stand on the command line."""
        forward = model if isinstance(model, Translator) else Translator.load(model)
        chosen = None if weights is None else ChannelWeights.read(weights)
        return cls(forward, Translator.load(reverse), LanguageModel.load(language), chosen, n_best)

    @overload
    def predict(self, texts: str, **options: Unpack[SearchOptions]) -> Translation: ...  # type: ignore[overload-overlap]

    @overload
    def predict(self, texts: Iterable[str], **options: Unpack[SearchOptions]) -> list[Translation]: ...

    def predict(self, texts: str | Iterable[str], **options: Unpack[SearchOptions]) -> Translation | list[Translation]:
        """Translate a text, or each of several; the options are those of `Search`, the scores the weighted sums."""
        return translated(self.translate, texts, options)

    def translate(self, texts: Sequence[str], searches: Sequence[Search]) -> list[Translation]:
        """Translate texts, each with what is asked of it."""
        ranked = self.candidates(texts, searches).ranked(self.weights)
        return [self._shown(one, search) for one, search in zip(ranked, searches, strict=True)]

    def predict_lines(self, lines: Iterable[str], options: PredictOptions) -> Iterator[str]:
        """What `elman predict` prints for lines of text, of a table, or of JSON."""

        def answers(records: Sequence[Any]) -> list[Translation]:
            return self.translate([pair.source for pair, _ in records], [search for _, search in records])

        return self.model.predict_lines(lines, options, answers)

    def candidates(self, texts: Sequence[str], searches: Sequence[Search] | None = None) -> Candidates:
        """The n-best lists of texts, and how likely each model finds each of them."""
        asked = [self._wide(search) for search in searches or [Search()] * len(texts)]
        found = [_written(one) for one in self.model.translate(texts, asked)]
        written = [(one.text, many.source) for many in found for one in many.n_best if one.text.strip()]
        channel = iter(self.reverse.log_probs(written))
        language = iter(self.language.line_log_probs([text for text, _ in written]))
        features = [[_features(one, channel, language) for one in many.n_best] for many in found]
        return Candidates(found, features)

    def tune(self, pairs: Sequence[tuple[str, str]], *, seed: int = 0) -> Tuned:
        """Take the weights with the best BLEU on pairs that were not trained on; returns them and that BLEU."""
        return self.tune_on(self.candidates([source for source, _ in pairs]), [[target] for _, target in pairs], seed)

    def tune_on(self, candidates: Candidates, references: Sequence[Sequence[str]], seed: int = 0) -> Tuned:
        """Take the weights with the best BLEU of candidates that are at hand, given the right translations of each."""
        settings = self.model.sides.target.settings
        ready = normaliser(settings)
        counts = BleuCounts(
            [[ready(one.text) for one in many.n_best] for many in candidates.found],
            [[ready(text) for text in several] for several in references],
            lowercase=settings.lowercase,
            tokenize=self.model.recipe.get("report", {}).get("tokenize"),
        )
        found = tune(candidates.features, counts.bleu, start=self.weights.model_dump(), seed=seed)
        self.weights = ChannelWeights.of(found.weights)
        return Tuned(self.weights.model_dump(), found.quality)

    def _wide(self, search: Search) -> Search:
        if search.temperature is not None or search.replace_unknown:
            what = "temperature" if search.temperature is not None else "replace_unknown"
            raise UserError(f"a channel puts lists of translations in order: leave {what} out")
        most = max(search.beam or self.n_best, search.n_best)
        return search.also({"n_best": min(most, self.model.sides.target.size), "alignments": False})

    def _shown(self, found: Translation, search: Search) -> Translation:
        """As many translations as were asked for, with the alignment of the one that is now the best."""
        cut = replace(found, n_best=found.n_best[: search.n_best])
        tokens = [self.model.sides.target.tokens[id] for id in cut.n_best[0].ids]
        if not search.alignments or not cut.text.strip():
            return replace(cut, target_tokens=tokens)
        seen = self.model.align(cut.source, cut.text)
        return replace(cut, target_tokens=seen.target_tokens, source_tokens=seen.source_tokens, weights=seen.weights)


def _written(found: Translation) -> Translation:
    """Without the empty texts, from which no source could come, if there are others."""
    return replace(found, n_best=[one for one in found.n_best if one.text.strip()] or found.n_best[:1])


def _features(one: Alternative, channel: Iterator[float], language: Iterator[float]) -> dict[str, float]:
    """What the models think of a translation; an empty one is alone in its list, so nothing need be known of it."""
    return {
        "forward": one.log_prob,
        "channel": next(channel) if one.text.strip() else 0.0,
        "language": next(language) if one.text.strip() else 0.0,
        "length": len(one.ids) + 1.0,
    }


def rerank_report(
    channel: NoisyChannel,
    *,
    dev: Sequence[Path] = (),
    test: Sequence[Path] = (),
    seed: int = 0,
    settings: Sequence[str] = (),
) -> dict[str, Any]:
    """BLEU of the translator and of the channel, whose weights are tuned on `dev` where that is given.

    The translator is used as it is by itself, with its own beam. The files are read as those that it learned from;
    `settings` say where they differ, as `data.encoding=latin-1`.
    """
    task, recipe = Translate(), parse(TranslateRecipe, channel.model.recipe, where="the model's config.json")
    report: dict[str, Any] = {}
    for name, paths in (("dev", dev), ("test", test)):
        if not paths:
            continue
        reading = with_reading_settings(recipe, settings)
        pairs = task.read_set(channel.model, reading, Source(paths), name, lambda line: None)
        sources, right = lines_of(pairs, recipe.report)
        candidates = channel.candidates(sources)
        if name == "dev":
            channel.tune_on(candidates, right, seed)
        alone = [one.text for one in channel.model.predict(sources)]
        chosen = [one.text for one in candidates.ranked(channel.weights)]
        before, after = (written_scores(said, right, channel.model, recipe.report) for said in (alone, chosen))
        report[name] = {"before": before["bleu"], "after": after["bleu"], "lines": len(sources)}
        report["signature"] = after["bleu_signature"]
    if not report:
        raise UserError("there is nothing to score: give pairs to tune on, pairs to test on, or both")
    return {"weights": str(channel.weights), **report}
