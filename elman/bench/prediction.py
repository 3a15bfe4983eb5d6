"""Tagging and classifying: one sentence of 20 words at a time, and many together; PyTorch, flair, Elman.

Elman and plain PyTorch run the same network with the same weights; flair has one of the same sizes.
"""

import logging
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import torch

from elman.baselines.lexicon import MostFrequentTag
from elman.bench import machine
from elman.bench.machine import Follow
from elman.bench.plain import PlainClassifier, PlainTagger
from elman.errors import RunError
from elman.tasks.classify import ClassifierConfig, ClassifyRecipe, TextClassifier
from elman.tasks.tag import TaggerConfig, TagModel, TagRecipe
from elman.text import fit_tokenizer
from elman.text.encoder import TokenEncoder
from elman.text.spans import convert
from elman.text.spelling import Speller

TORCH, FLAIR, FLOAT, INT8 = "PyTorch", "flair", "Elman float32", "Elman int8"
WORDS, HIDDEN, EMBEDDING, CHARACTERS = 5000, 256, 100, 50
LENGTH = 20
"""Words of the sentence that is answered by itself; together they have 5 to 35."""
TAGS = ("O", *(f"{place}-{kind}" for kind in ("PER", "LOC", "ORG", "MISC") for place in "BIES"))
UNMET = 0.1
"""The share of words that were never met before."""
LABELS = ("bad", "fair", "fine", "good")
AGREEMENT = 0.99
"""How many answers of two that are compared have to be the same: rounding may decide between two that are equal."""

Sentences = Sequence[Sequence[str]]
Answer = Callable[[Sentences], list[Any]]
"""Sentences, already cut into words, to their tags or labels."""


@dataclass(frozen=True)
class PredictionCase:
    """A network: one bidirectional LSTM; a tagger has another over characters."""

    task: str
    crf: bool = False
    hidden: int = HIDDEN

    @property
    def name(self) -> str:
        """What a table calls it.

        >>> PredictionCase("tag", crf=True).name
        'tagger, CRF'
        """
        return "classifier" if self.task == "classify" else "tagger, CRF" if self.crf else "tagger"

    def model(self) -> TagModel | TextClassifier:
        """The model, with random weights."""
        torch.manual_seed(0)
        words = vocabulary()
        if self.task == "tag":
            sizes = {"layers": 1, "hidden": self.hidden, "embedding": EMBEDDING, "character_hidden": CHARACTERS}
            recipe = TagRecipe.model_validate({"model": {**sizes, "crf": self.crf}})
            speller = Speller.fit(words, prefixes=(2, 3), suffixes=(1, 2, 3, 4))
            config = TaggerConfig.new("tag", recipe, model=recipe.model, tags=TAGS, scheme="BIO")
            network = TagModel.build(config, speller).eval()
            with torch.no_grad():  # as in a text, most words belong to no span
                network.scores.bias[TAGS.index("O")] += 0.15
            tagger = TagModel(config, speller, network)
            tagger.lexicon = MostFrequentTag({}, "O")
            return tagger
        settings = {"cell": "lstm", "hidden": self.hidden, "embedding": EMBEDDING}
        chosen = ClassifyRecipe.model_validate({"model": settings, "text": {"kind": "words"}})
        encoder = TokenEncoder(fit_tokenizer(chosen.text, [" ".join(words)]), edges=chosen.model.edges)
        about = ClassifierConfig.new(
            "classify", chosen, model=chosen.model, text=chosen.text, labels=LABELS, several=False
        )
        return TextClassifier(about, encoder, TextClassifier.build(about, encoder).eval())


@dataclass(frozen=True)
class Speed:
    """How fast one of them answers."""

    median: float
    """Seconds for one sentence of `LENGTH` words."""
    p99: float
    """Seconds for the slowest sentence of a hundred."""
    texts_per_second: float
    """Of many sentences that are given together."""
    tokens_per_second: float


@dataclass(frozen=True)
class PredictionRow:
    """What was measured for one case, by who answered."""

    case: PredictionCase
    speeds: dict[str, Speed]

    def ratio(self, who: str, peer: str = TORCH) -> tuple[float, float] | None:
        """How many times faster one is than the other: with one sentence, and with many."""
        if who not in self.speeds or peer not in self.speeds:
            return None
        ours, theirs = self.speeds[who], self.speeds[peer]
        return theirs.median / ours.median, ours.tokens_per_second / theirs.tokens_per_second


@dataclass(frozen=True)
class PredictionReport:
    """All rows of one run."""

    facts: dict[str, Any]
    rows: list[PredictionRow]
    skipped: list[str]
    """A line for each peer that could not be measured."""

    def record(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        rows = [
            asdict(row.case)
            | {
                "speeds": {who: asdict(speed) for who, speed in row.speeds.items()},
                "ratio": {who: {"single": r[0], "batch": r[1]} for who in row.speeds if (r := row.ratio(who))},
            }
            for row in self.rows
        ]
        return {"machine": self.facts, "words": LENGTH, "rows": rows, "skipped": self.skipped}


def run(
    *,
    quick: bool = False,
    seconds: float | None = None,
    threads: int | None = None,
    follow: Follow | None = None,
) -> PredictionReport:
    """Measure every case (where quick, one tagger and fewer sentences), `seconds` on each (8; 2 where quick)."""
    machine.need_kernels()
    chosen = cases(quick=quick)
    budget = seconds if seconds is not None else 2.0 if quick else 8.0
    with machine.using_threads(threads):
        rows = machine.all_rows(chosen, lambda case: measure(case, budget, 200 if quick else 1000), follow)
        return PredictionReport(machine.facts(), rows, skipped())


def cases(*, quick: bool = False) -> list[PredictionCase]:
    """What is measured.

    >>> [case.name for case in cases()]
    ['tagger', 'tagger, CRF', 'classifier']
    """
    return (
        [PredictionCase("tag")]
        if quick
        else [PredictionCase("tag"), PredictionCase("tag", crf=True), PredictionCase("classify")]
    )


def skipped() -> list[str]:
    """A line for each peer that cannot be used."""
    return machine.not_measured(FLAIR, {"flair": ["flair.data", "flair.embeddings", "flair.models"]})


def vocabulary() -> list[str]:
    """Made-up words of two to ten letters, the same in every run."""
    draw = random.Random(1)
    return ["".join(draw.choice("etaoinshrdlu") for _ in range(draw.randint(2, 10))) for _ in range(WORDS)]


class Text:
    """Sentences without end, the same in every run, in which every tenth word has never been met before.

    >>> [len(sentence) for sentence in Text().sentences(2, 20, 20)]
    [20, 20]
    """

    def __init__(self) -> None:
        self.draw, self.words, self.met = random.Random(2), vocabulary(), 0

    def sentences(self, count: int, shortest: int, longest: int) -> list[list[str]]:
        """The next ones, of so many words."""
        return [[self._word() for _ in range(self.draw.randint(shortest, longest))] for _ in range(count)]

    def _word(self) -> str:
        word = self.draw.choice(self.words)
        if self.draw.random() >= UNMET:
            return word
        self.met += 1
        return f"{word}{self.met}"


def measure(case: PredictionCase, seconds: float, count: int) -> PredictionRow:
    """Time one case: half of the time with single sentences, half with `count` of 5 to 35 words together."""
    who, text = answerers(case), Text()
    _compare(case, who, text.sentences(count, 5, 35))
    answers = list(who.values())
    alone = by_turns(answers, lambda: [[one] for one in text.sentences(50, LENGTH, LENGTH)], seconds / 2, rounds=2)
    together = by_turns(answers, lambda: [text.sentences(count, 5, 35)], seconds / 2, rounds=3)
    speeds = {}
    for name, single, many in zip(who, alone, together, strict=True):
        took = [call.seconds for call in single]
        best = min(many, key=lambda call: call.seconds / call.tokens)
        speeds[name] = Speed(
            float(np.median(took)), float(np.percentile(took, 99)), count / best.seconds, best.tokens / best.seconds
        )
    return PredictionRow(case, speeds)


class TimedCall(NamedTuple):
    """What one call was given, and how long it took."""

    tokens: int
    seconds: float


def by_turns(
    answers: Sequence[Answer], make: Callable[[], list[Sentences]], seconds: float, rounds: int
) -> list[list[TimedCall]]:
    """The calls of each of those who answer, by turns and for so long: everyone is given the same new sentences.

    Before its turn each is left alone for a moment and called once, as in `machine.interleave`.
    """
    found: list[list[TimedCall]] = [[] for _ in answers]
    end, done = time.perf_counter() + seconds, 0
    while done < rounds or time.perf_counter() < end:
        given = make()
        for answer, calls in zip(answers, found, strict=True):
            time.sleep(machine.SETTLE)
            answer([["warm"] * LENGTH])
            for sentences in given:
                start = time.perf_counter()
                answer(sentences)
                calls.append(TimedCall(sum(map(len, sentences)), time.perf_counter() - start))
        done += 1
    return found


def answerers(case: PredictionCase) -> dict[str, Answer]:
    """Everyone who can answer on this machine."""
    model = case.model()
    found: dict[str, Answer] = {}
    if isinstance(model, TagModel):
        found[TORCH] = PlainTagger(model)
        if not skipped():
            found[FLAIR] = flair_tagger(case)
        for who, one in ((FLOAT, model), (INT8, model.to_int8())):
            found[who] = partial(_tags, one)
        return found
    plain = PlainClassifier(model)
    found[TORCH] = lambda given: plain([" ".join(words) for words in given])
    for who, classifier in ((FLOAT, model), (INT8, model.to_int8())):
        found[who] = partial(_labels, classifier)
    return found


def _tags(model: TagModel, given: Sentences) -> list[Any]:
    return [tagging.tags for tagging in model.predict(tokens=given)]


def _labels(model: TextClassifier, given: Sentences) -> list[Any]:
    return [prediction.label for prediction in model.predict([" ".join(words) for words in given])]


def _compare(case: PredictionCase, who: dict[str, Answer], given: Sentences) -> None:
    """RunError where Elman does not answer what PyTorch answers."""
    ours, theirs = who[FLOAT](given), who[TORCH](given)
    if case.task == "tag":  # Elman's predict answers in the scheme of the training files
        ours, theirs = ([tag for row in found for tag in convert(row, "BIO")] for found in (ours, theirs))
    same = float(np.mean([our == their for our, their in zip(ours, theirs, strict=True)]))
    if not same >= AGREEMENT:
        raise RunError(f"only {same:.1%} of the answers of the {case.name} are PyTorch's: Elman is mistaken")


def flair_tagger(case: PredictionCase) -> Answer:
    """A tagger of flair's of the same sizes: trainable word embedding, character LSTM, LSTM, softmax or CRF."""
    logging.getLogger("flair").setLevel(logging.WARNING)  # it prints the whole vocabulary otherwise
    data, embeddings, models = (import_module(f"flair.{name}") for name in ("data", "embeddings", "models"))
    words, characters, tags = (data.Dictionary(add_unk=unknown) for unknown in (True, True, False))
    for word in vocabulary():
        words.add_item(word)
    for character in sorted(set("".join(vocabulary()))):
        characters.add_item(character)
    for tag in TAGS:
        tags.add_item(tag)
    seen = embeddings.StackedEmbeddings(
        [
            embeddings.OneHotEmbeddings(words, embedding_length=EMBEDDING),
            embeddings.CharacterEmbeddings(characters, 32, CHARACTERS),
        ]
    )
    tagger = models.SequenceTagger(
        seen, tags, "tag", hidden_size=case.hidden, use_crf=case.crf, reproject_embeddings=False
    )

    def answer(given: Sentences) -> list[Any]:
        made = [data.Sentence(list(words)) for words in given]
        tagger.predict(made, mini_batch_size=32)
        return made

    return answer
