"""Word vectors: Elman beside gensim, on the same text with the same settings; how fast they learn, and how well.

Skip-gram, negative sampling with 5 words, 100 dimensions, a window of 5, 5 epochs. Both read words that are in
memory or mapped there: what is timed is training alone. A second run of each is another seed.
"""

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from elman.batches.ids import stream_ids
from elman.bench import machine
from elman.bench.machine import Follow
from elman.corpora.catalogue import locate
from elman.metrics.words import analogy_scores, similarity_scores
from elman.records.running_text import TextFiles
from elman.records.word_tests import Analogies, WordTest, read_word_test
from elman.tasks import fit
from elman.text import TokenizerSettings
from elman.text.vectors import WordVectors

GENSIM, ELMAN = "gensim", "Elman"
TEXTS = ("wikitext2/train.txt", "brown/brown.txt", "movie-reviews")
TESTS = ("questions-words.txt", "wordsim353_combined.csv", "SimLex-999.txt")
SIZE, WINDOW, NEGATIVES, EPOCHS, MIN_COUNT = 100, 5, 5, 5, 5
SEEDS = (1, 2, 3)


@dataclass(frozen=True)
class Run:
    """One training: whose, its seed, words a second of time and of all processors' time, and what the vectors score."""

    who: str
    seed: int
    words_per_second: float
    words_per_processor_second: float
    scores: dict[str, float]


@dataclass(frozen=True)
class VectorsReport:
    """All runs, on one text."""

    facts: dict[str, Any]
    words: int
    vocabulary: int
    text: list[str]
    runs: list[Run]
    skipped: list[str]
    """A line where gensim is not installed."""

    def of(self, who: str) -> list[Run]:
        """The runs of one of them."""
        return [run for run in self.runs if run.who == who]

    def mean(self, who: str, of: Callable[[Run], float]) -> tuple[float, float]:
        """The mean of a figure over the seeds, and its standard deviation."""
        values = [of(run) for run in self.of(who)]
        return float(np.mean(values)), float(np.std(values))

    def ratio(self, of: Callable[[Run], float]) -> float | None:
        """How many times faster Elman is; None without gensim."""
        return self.mean(ELMAN, of)[0] / self.mean(GENSIM, of)[0] if self.of(GENSIM) else None

    def record(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            "machine": self.facts,
            "settings": {"size": SIZE, "window": WINDOW, "negatives": NEGATIVES, "epochs": EPOCHS},
            "words": self.words,
            "vocabulary": self.vocabulary,
            "text": self.text,
            "runs": [asdict(run) for run in self.runs],
            "ratio": self.ratio(lambda run: run.words_per_second),
            "ratio_of_processor_time": self.ratio(lambda run: run.words_per_processor_second),
            "skipped": self.skipped,
        }


def run(
    *,
    quick: bool = False,
    threads: int | None = None,
    data_dir: Path | str | None = None,
    follow: Follow | None = None,
) -> VectorsReport:
    """Train with each seed (where quick, one), Elman and gensim in turn."""
    machine.need_kernels()
    files, tests = _texts(data_dir)
    settings = TokenizerSettings(kind="words", min_count=MIN_COUNT, lowercase=True)
    ids, tokenizer = stream_ids(TextFiles(files), settings)
    every = ids.read(0, len(ids))
    words, lines = int((every != tokenizer.eos_id).sum()), _lines(every, tokenizer.tokens)
    skipped = machine.not_measured(GENSIM, {"gensim": ["gensim.models"]})
    with machine.using_threads(threads) as count:

        def measure(case: tuple[str, int]) -> Run:
            who, seed = case
            learn = _elman(files, seed, count) if who == ELMAN else _gensim(lines, seed, count)
            return _timed(who, seed, learn, words, tests)

        peers = (ELMAN,) if skipped else (ELMAN, GENSIM)
        cases = [(who, seed) for seed in (SEEDS[:1] if quick else SEEDS) for who in peers]
        runs = machine.all_rows(cases, measure, follow)
        names = [str(Path(name)) for name in TEXTS] if tests else [f"{len(files)} files of Python's library"]
        return VectorsReport(machine.facts(), words, tokenizer.size - 2, names, runs, skipped)


def _texts(data_dir: Path | str | None) -> tuple[list[Path], list[WordTest]]:
    """The public texts and tests where they are, else the text that every Python has, with no tests."""
    for root in (data_dir, os.environ.get("ELMAN_DATA")):
        files = [Path(root) / name for name in TEXTS] if root else []
        tests = [Path(root) / "word-eval" / name for name in TESTS] if root else []
        if files and all(path.exists() for path in (*files, *tests)):
            return files, [read_word_test(path) for path in tests]
    return locate("python")["train"], []


def _lines(ids: np.ndarray, tokens: Sequence[str]) -> list[list[str]]:
    """Sentences as gensim takes them: known words only, as it would drop the others."""
    lines: list[list[str]] = [[]]
    for id in ids.tolist():
        if id == 1:
            lines.append([])
        elif id > 1:
            lines[-1].append(tokens[id])
    return [line for line in lines if line]


Learn = Callable[[], tuple[float, float, WordVectors]]
"""Trains; seconds, processor seconds, and the vectors."""


def _timed(who: str, seed: int, learn: Learn, words: int, tests: list[WordTest]) -> Run:
    seconds, processor, vectors = learn()
    scores = {}
    for name, test in zip(("analogies", "wordsim", "simlex"), tests, strict=False):
        kind: Any = analogy_scores if isinstance(test, Analogies) else similarity_scores
        scores[name] = kind(vectors, test)["analogies" if isinstance(test, Analogies) else "spearman"]
    return Run(who, seed, EPOCHS * words / seconds, EPOCHS * words / processor, scores)


def _elman(files: Sequence[Path], seed: int, threads: int) -> Learn:
    settings = {
        "text": {"lowercase": True, "min_count": MIN_COUNT},
        "model": {"embedding": SIZE, "window": WINDOW, "negatives": NEGATIVES},
        "train": {"epochs": EPOCHS, "seed": seed, "threads": threads},
        "data": {"dev_words": 2},  # which leaves gensim and Elman the same text
    }

    def learn() -> tuple[float, float, WordVectors]:
        with tempfile.TemporaryDirectory(prefix="elman-") as folder:
            marks: list[float] = []
            callbacks = [lambda record: marks.append(time.process_time())]
            given: dict[str, Any] = {"train": list(files), "settings": settings, "verbose": False}
            model = fit("embed", out=Path(folder) / "run", callbacks=callbacks, **given)
            run = model.report["run"]
            # The log is told of every tenth update, so its first and last record are nearly the whole.
            share = max(1.0 - 2 * 10 / run["steps"], 0.5)
            return run["seconds"], max(marks[-1] - marks[0], 1e-9) / share, model.vectors

    return learn


def _gensim(lines: list[list[str]], seed: int, threads: int) -> Learn:
    def learn() -> tuple[float, float, WordVectors]:
        from gensim.models import Word2Vec

        model = Word2Vec(
            vector_size=SIZE, window=WINDOW, negative=NEGATIVES, sg=1, min_count=1, seed=seed, workers=threads
        )
        model.build_vocab(lines)
        began, used = time.perf_counter(), time.process_time()
        model.train(lines, total_examples=len(lines), epochs=EPOCHS)
        seconds, processor = time.perf_counter() - began, time.process_time() - used
        return seconds, processor, WordVectors(list(model.wv.index_to_key), model.wv.vectors)

    return learn
