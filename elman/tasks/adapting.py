"""Language models that get used to what they read: by a cache of late words, by dynamic evaluation, or by both.

adapting = elman.load("runs/mine").adapting(cache=True, adapt=True)
adapting.score("a text")                        # every token scored by what was read before it, then learned
adapting.follow("a long text of the user's")   # remembered from here on
adapting.generate("Once")
adapting.save("runs/mine-adapted")              # the weights as they are now; the folder that was loaded stays as it is
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field

from elman.batches.batches import Ids
from elman.batches.ids import line_ids
from elman.batches.stream import IdStream
from elman.decode.step_model import StepModel
from elman.errors import UserError
from elman.files import checked, read_json, write_json
from elman.records.records import Record
from elman.runtime import Engine
from elman.runtime.quantise import Arrays, dequantise
from elman.tasks.language import Language, LanguageModel
from elman.tasks.reading import Reading
from elman.tasks.recipes import check_named
from elman.tasks.task import Say, Source
from elman.tasks.training import sources_of
from elman.train.recipe import Section, parse

if TYPE_CHECKING:
    from torch import Tensor

    from elman.nn.cache import ContinuousCache
    from elman.nn.dynamic import DynamicEvaluation
    from elman.tasks.adaptive_scoring import Follower, Look, Progress

FILE = "adapting.json"
"""The settings that were found for a model, in its folder."""
CACHE, DYNAMIC, BOTH = "cache", "dynamic", "cache + dynamic"
"""What the systems are called in a report."""


class CacheSettings(Section):
    """The continuous cache (`elman.nn.cache`)."""

    size: int = Field(2000, ge=1, le=1_000_000, description="tokens that it remembers")
    theta: float = Field(0.3, ge=0, le=1e6, description="how much more the likest hidden states count than others")
    weight: float = Field(0.1, ge=0, lt=1, description="its part of the probability")


class AdaptSettings(Section):
    """Dynamic evaluation (`elman.nn.dynamic`)."""

    rate: float = Field(3e-5, ge=0, le=1e6, description="how far a gradient moves the weights")
    decay: float = Field(1e-3, ge=0, le=1e6, description="how strongly they are drawn back to the trained ones")
    segment: int = Field(20, ge=1, le=1_000_000, description="tokens between updates")


class AdaptingSettings(Section):
    """What a model adapts by."""

    cache: CacheSettings | None = None
    adapt: AdaptSettings | None = None

    @property
    def mode(self) -> str:
        """Which of the three: settings are found, and kept, for each."""
        return BOTH if self.cache and self.adapt else CACHE if self.cache else DYNAMIC

    def written(self) -> str:
        """As the command line takes them."""
        return " ".join(f"-s {key}={value:g}" for key, value in _flat(self).items())


def _flat(settings: AdaptingSettings) -> dict[str, float]:
    tables = settings.model_dump(exclude_none=True)
    return {f"{section}.{key}": value for section, table in tables.items() for key, value in table.items()}


class BothSettings(Section):
    """Both, so that a misspelt key of either is answered with the right one."""

    cache: CacheSettings = CacheSettings()
    adapt: AdaptSettings = AdaptSettings()


Asked = bool | Mapping[str, Any] | Section
"""Whether, or with which settings."""


def adapting(
    model: LanguageModel,
    *,
    cache: Asked = False,
    adapt: Asked = False,
    adapt_from: Path | str | Ids | None = None,
    data_dir: Path | str | None = None,
    say: Say = lambda line: None,
) -> "AdaptingModel":
    """A model that starts as `model` and gets used to what it reads; `LanguageModel.adapting` says more."""
    if cache is False and adapt is False:
        raise UserError("there is nothing to adapt by: ask for a cache, for adapt (dynamic evaluation), or for both")
    if adapt is False and adapt_from is not None:
        raise UserError("adapt_from is a text to measure gradients on for adapt, which is not asked for: leave it out")
    _check(model, cache is not False, adapt is not False)
    settings = _settled(model, cache, adapt)
    made = AdaptingModel(model, settings)
    if settings.adapt is not None and settings.adapt.rate:
        made.rms = _statistics(made, adapt_from, data_dir, say)
    return made


def _check(model: LanguageModel, cache: bool, adapt: bool) -> None:
    """Refuse models that cannot adapt."""
    if not isinstance(model, LanguageModel):
        raise UserError("a cache and dynamic evaluation are for language models, and this is a model of another task")
    if model.settings.kind == "ngram":
        lacks = "hidden states for a cache to go by" if cache else "gradients for dynamic evaluation to go by"
        raise UserError(f"this is an n-gram model, which has no {lacks}: leave out {'cache' if cache else 'adapt'}")
    if model.int8 is not None and model.backend != "torch":
        lacks = "hidden states to a cache" if cache else "gradients to dynamic evaluation"
        raise UserError(f"this model is in int8, which gives no {lacks}: use the one that it was exported from")


def _settled(model: LanguageModel, cache: Asked, adapt: Asked) -> AdaptingSettings:
    """The settings that are asked for over those that were kept for the model over the usual ones."""
    asked = {"cache": cache, "adapt": adapt}
    mode = BOTH if cache is not False and adapt is not False else CACHE if cache is not False else DYNAMIC
    kept = _kept(model).get(mode)
    tables: dict[str, dict[str, Any]] = {}
    for name, given in asked.items():
        if given is False:
            continue
        tables[name] = dict((kept.model_dump(exclude_none=True) if kept else {}).get(name, {}))
        if isinstance(given, Section):
            tables[name] |= given.model_dump()
        elif isinstance(given, Mapping):
            tables[name] |= given
        elif given is not True:
            raise UserError(f"{name} is True, or settings by key such as {{'size': 2000}}, not {given!r}")
    found = parse(BothSettings, tables, where="the settings")
    return AdaptingSettings(**{name: getattr(found, name) for name in tables})


def _kept(model: LanguageModel) -> dict[str, AdaptingSettings]:
    """What was found for the model before, by what it adapts by."""
    if model.folder is None or not (path := model.folder / FILE).exists():
        return {}
    return {mode: checked(AdaptingSettings, value, str(path)) for mode, value in read_json(path).items()}


def _statistics(
    made: "AdaptingModel", adapt_from: Path | str | Ids | None, data_dir: Path | str | None, say: Say
) -> "dict[str, Tensor]":
    """The size of each weight's gradients: as kept, or counted on a text that is given, or on the training text."""
    from elman.tasks.gradient_statistics import gradient_rms, kept_rms

    if adapt_from is None:
        if made.folder is not None and (kept := kept_rms(made.folder, made.weights())) is not None:
            return kept
        ids: Ids = _training_ids(made, data_dir)
        where = "of the training text"
    elif isinstance(adapt_from, Path | str):
        ids, where = text_ids(made, Path(adapt_from)), f"of {adapt_from}"
    else:
        ids, where = adapt_from, "of the text given"
    if len(ids) < 2:
        raise UserError("the text to measure gradients on has fewer than two tokens: give more")
    rms, tokens = gradient_rms(made, ids)
    say(f"the gradients that dynamic evaluation divides by were measured on {tokens:,} tokens {where}")
    return rms


def _training_ids(model: LanguageModel, data_dir: Path | str | None) -> IdStream:
    task = Language()
    recipe = parse(task.Recipe, model.recipe, where="the model's config.json")
    try:
        check_named(recipe.data)
        return task.read_again(model, recipe, sources_of(recipe.data, None, data_dir))  # type: ignore[no-any-return]
    except UserError as error:
        raise UserError(
            f"dynamic evaluation divides by the gradients of the training text, which cannot be read ({error}): give a "
            "text like it with --adapt-from (adapt_from=)"
        ) from None


def text_ids(model: LanguageModel, path: Path) -> IdStream:
    """A file as the model reads it."""
    task = Language()
    recipe = parse(task.Recipe, model.recipe, where="the model's config.json")
    return task.read_set(model, recipe, Source([path]), str(path), lambda line: None)


class AdaptingModel(LanguageModel):
    """A language model that gets used to what it reads, with weights of its own.

    `score`, `log_probs` and `scores` start from the texts that it was told to `follow` and end there: each text is on
    its own. So is what `generate` writes; with a cache the model remembers its own words as well.
    """

    adapts = True
    rms: "dict[str, Tensor]"
    """The root of the mean squared gradient of each weight in training."""
    keeps = False
    """Whether texts that `systems` gives the scores of are followed."""
    progress: "Progress | None" = None
    """Is told of how many tokens how many have been read."""

    _own: ClassVar[tuple[str, ...]] = ("_dynamic", "_lock", "progress")

    def __init__(self, static: LanguageModel, settings: AdaptingSettings) -> None:
        weights = {name: array.copy() for name, array in dequantise(static.weights()).items()}
        super().__init__(static.config, static.vocabulary, weights, backend=static.backend, report=static._report)
        self.static, self.adapting_settings, self.folder, self.rms = static, settings, static.folder, {}
        towers = 2 if self.settings.direction == "both" else 1
        self._caches = [_cache(settings.cache) for _ in range(towers)]
        self._dynamic: DynamicEvaluation | None = None
        self._lock = RLock()

    # Reading

    def log_probs(self, ids: Ids, tower: int = 0, reading: Reading | None = None) -> np.ndarray:
        """The log-probability of every token, each by what was read before it."""
        return self.follow_ids(ids, tower, reading)[0]

    def follow_ids(
        self, ids: Ids, tower: int = 0, reading: Reading | None = None, keep: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """The log-probability of every token with the cache, and without it; with `keep` the text is remembered."""
        with self._following(tower, reading, keep=keep) as follower:
            found = follower.read(ids)
            if keep:
                self._caches[tower] = follower.filled
        return found

    def systems(self, ids: IdStream) -> dict[str, dict[str, float]]:
        """The scores of what the model adapts by, each under its name: cache, dynamic, cache + dynamic."""
        towers = range(len(self._caches))
        read = [self.follow_ids(ids, tower, keep=self.keeps and len(towers) == 1) for tower in towers]
        if self.keeps and len(towers) > 1:  # each direction was scored from the weights as they were
            self.follow(ids)
        mode = self.adapting_settings.mode
        named = {DYNAMIC: 1, BOTH: 0} if mode == BOTH else {mode: 0}
        return {name: self._scores([found[place] for found in read], ids) for name, place in named.items()}

    def report_of(self, sets: Mapping[str, IdStream]) -> dict[str, Any]:
        """What a report says of it beside the model that does not adapt: `adapted`, scores by system and set."""
        found = {name: self.systems(ids) for name, ids in sets.items()}
        named = {who: {name: found[name][who] for name in found} for who in next(iter(found.values()), {})}
        return {"adapted": named, "adapting": self.adapting_settings.model_dump(exclude_none=True)}

    def follow(self, text: str | IdStream, label: str | None = None) -> "AdaptingModel":
        """Get used to a text, and stay so; gives the model itself."""
        ids = self._text_ids(text, label) if isinstance(text, str) else text
        if not len(ids):
            return self
        for tower in range(len(self._caches)):
            self.follow_ids(ids, tower, keep=True)
        return self

    def _text_ids(self, text: str, label: str | None) -> IdStream:
        lines = text.splitlines() if self.reading.unit == "line" else [text]
        records = [Record(line, self._checked_label(label)) for line in lines]
        ids = line_ids(records, self.tokenizer, self.labels or None)[0]
        return ids if self.reading.unit == "line" else ids.view(0, len(ids) - 1)  # a running text has no end

    @contextmanager
    def _following(
        self, tower: int, reading: Reading | None = None, look: "Look | None" = None, keep: bool = False
    ) -> Iterator["Follower"]:
        """What follows a text, one at a time; behind it the weights are as before, unless they are to be kept."""
        import torch

        from elman.tasks.adaptive_scoring import Follower

        adapt, backward = self.adapting_settings.adapt, tower == 1 or self.settings.direction == "backward"
        with self._lock, torch.inference_mode(False), self.evaluating() as network:
            dynamic, segment = self.dynamic(), 1 if adapt is None else adapt.segment
            try:
                parts = network, reading or self.reading, tower, backward, self._caches[tower], dynamic
                yield Follower(*parts, segment, look, self.progress)
                if dynamic is not None and keep:
                    dynamic.keep()
            finally:
                if dynamic is not None:
                    dynamic.restore()

    def dynamic(self) -> "DynamicEvaluation | None":
        """What moves the weights; None where nothing does."""
        from elman.nn.dynamic import DynamicEvaluation

        settings = self.adapting_settings.adapt
        if settings is None or not settings.rate:
            return None
        if self._dynamic is None:
            self._dynamic = DynamicEvaluation(self.network, self.rms, settings.rate, settings.decay)
        return self._dynamic

    # Writing

    def generate(self, prompt: str = "", **options: Any) -> list[str]:
        """As every language model; while another thread lets it follow a text, it waits for that."""
        with self._lock:
            return super().generate(prompt, **options)

    def stream(self, prompt: str = "", **options: Any) -> Iterator[tuple[int, str]]:
        """As `generate`, in pieces; each waits for a text that is being followed."""
        pieces = super().stream(prompt, **options)  # here, so that a mistake is told at once

        def one_by_one() -> Iterator[tuple[int, str]]:
            piece: tuple[int, str] | None = (0, "")
            while piece is not None:
                with self._lock:
                    piece = next(pieces, None)
                if piece is not None:
                    yield piece

        return one_by_one()

    def stepper(self, label: str | None = None) -> StepModel[Any]:
        """The model as something that reads one id at a time, and remembers it where there is a cache."""
        from elman.tasks.cached_steps import CachedSteps

        cache = self._caches[0]
        return super().stepper(label) if cache is None else CachedSteps(self.network, cache, self._label_place(label))

    def _runtime(self) -> list[Engine] | None:
        return None if self._caches[0] is not None else super()._runtime()

    # Settings

    def with_settings(self, settings: AdaptingSettings) -> "AdaptingModel":
        """The model that it started from, with other settings and the same measured gradients."""
        twin = AdaptingModel(self.static, settings)
        twin.rms = self.rms
        return twin

    def tune(
        self,
        data: Path | str | IdStream,
        *,
        tokens: int | None = None,
        say: Say = lambda line: None,
    ) -> "AdaptingModel":
        """The model with the settings that score best on held-out text, of which the first `tokens` are read.

        Never give it the text that you report scores on.
        """
        from elman.tasks.tuning import tune

        ids = text_ids(self, Path(data)) if isinstance(data, Path | str) else data
        return tune(self, ids, tokens, say)

    def keep(self) -> Path:
        """Write the settings, and the measured gradients if there are any, into the folder that the model is from."""
        from elman.tasks.gradient_statistics import keep_rms

        if self.folder is None:
            raise UserError("this model has no folder that settings could be kept in: save it, and load it from there")
        kept = _kept(self) | {self.adapting_settings.mode: self.adapting_settings}
        write_json(self.folder / FILE, {mode: one.model_dump(exclude_none=True) for mode, one in kept.items()})
        if self.rms:
            keep_rms(self.folder, self.rms, self.static.weights())
        return self.folder / FILE

    # Copies are plain models

    def _copy(self, weights: Arrays) -> Any:
        return LanguageModel(self.config, self.vocabulary, dict(weights), backend=self.backend, report=self._report)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in super().__getstate__().items() if key not in self._own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state | {"_dynamic": None, "_lock": RLock()}

    def about(self) -> str:
        return f"{super().about()}, adapting by {self.adapting_settings.mode}"


def _cache(settings: CacheSettings | None) -> "ContinuousCache | None":
    from elman.nn.cache import ContinuousCache

    return None if settings is None else ContinuousCache(settings.size, settings.theta, settings.weight)
