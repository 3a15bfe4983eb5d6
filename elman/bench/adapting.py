"""Scoring text with a language model that adapts, beside the same model as it is: a word model and a character model.

All read the same text with the same random weights on the same threads.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from elman.batches.stream import IdStream
from elman.bench import machine
from elman.bench.machine import Follow, interleave
from elman.nn.cache import ContinuousCache
from elman.nn.dynamic import DynamicEvaluation
from elman.nn.language import LanguageNetwork
from elman.nn.recurrent import Recurrent
from elman.nn.softmax import ChunkedSoftmax
from elman.tasks.adaptive_scoring import Follower
from elman.tasks.reading import Reading
from elman.tasks.scoring import network_log_probs

STATIC, CACHE, DYNAMIC = "static", "cache", "dynamic"
SIZE = 2000  # of the cache
SEGMENT = 20  # of dynamic evaluation
READING = Reading("stream", 0, ends_text=False)


@dataclass(frozen=True)
class AdaptingCase:
    """A model of two LSTM layers, and how many tokens are scored; dynamic evaluation is given a part of them."""

    name: str
    vocabulary: int
    embedding: int
    hidden: int
    tokens: int
    learned: int

    def network(self) -> LanguageNetwork:
        """The model, with random weights; its softmax is tied to the embedding where the sizes are the same."""
        torch.manual_seed(0)
        embedding = nn.Embedding(self.vocabulary, self.embedding)
        tied = cast(nn.Parameter, embedding.weight) if self.embedding == self.hidden else None
        body = Recurrent("lstm", self.embedding, self.hidden, 2, batch_first=True)
        return LanguageNetwork(embedding, [body], ChunkedSoftmax(self.hidden, self.vocabulary, tied=tied)).eval()


CASES = (AdaptingCase("words", 33_278, 200, 200, 16_384, 400), AdaptingCase("characters", 65, 64, 384, 65_536, 2_000))


@dataclass(frozen=True)
class AdaptingRow:
    """What was measured for one model."""

    case: AdaptingCase
    tokens_per_second: dict[str, float]

    def ratio(self, who: str) -> float | None:
        """How many times as fast as the model that does not adapt."""
        return machine.ratio(self.tokens_per_second, who, STATIC)


@dataclass(frozen=True)
class AdaptingReport:
    """All rows of one run."""

    facts: dict[str, Any]
    rows: list[AdaptingRow]

    def record(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            "machine": self.facts,
            "cache": SIZE,
            "segment": SEGMENT,
            "rows": [
                asdict(row.case)
                | {"tokens_per_second": row.tokens_per_second}
                | {"ratio": {who: row.ratio(who) for who in (CACHE, DYNAMIC)}}
                for row in self.rows
            ],
        }


def run(
    *, quick: bool = False, seconds: float | None = None, threads: int | None = None, follow: Follow | None = None
) -> AdaptingReport:
    """Measure both models, about `seconds` on each (20; 5 where quick)."""
    machine.need_kernels()
    budget = seconds if seconds is not None else 5.0 if quick else 20.0
    with machine.using_threads(threads):
        return AdaptingReport(
            machine.facts(), machine.all_rows(list(CASES), lambda case: measure(case, budget), follow)
        )


def measure(case: AdaptingCase, seconds: float) -> AdaptingRow:
    """Time one model, each way of reading in turn."""
    readers = readers_of(case)
    best = interleave([read for read, _ in readers.values()], seconds)
    return AdaptingRow(case, {who: count / took for (who, (_, count)), took in zip(readers.items(), best, strict=True)})


def readers_of(case: AdaptingCase) -> dict[str, tuple[Callable[[], object], int]]:
    """Each way of reading, and how many tokens it reads."""
    network, learner = case.network(), case.network()
    ids = IdStream(np.random.default_rng(0).integers(0, case.vocabulary, case.tokens).astype(np.uint32))
    rms = {name: torch.full_like(weight, 1e-3) for name, weight in learner.named_parameters()}
    dynamic = DynamicEvaluation(learner, rms, rate=1e-6, decay=1e-3)
    cached = Follower(network, READING, cache=ContinuousCache(SIZE, 0.3, 0.1))
    learned = Follower(learner, READING, dynamic=dynamic, segment=SEGMENT)
    return {
        STATIC: (lambda: network_log_probs(network, ids, READING), case.tokens),
        CACHE: (lambda: cached.read(ids), case.tokens),
        DYNAMIC: (lambda: learned.read(ids.view(0, case.learned)), case.learned),
    }
