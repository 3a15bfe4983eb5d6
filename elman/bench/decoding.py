"""Translators that write and learn: Elman's decoders, JoeyNMT where it is installed, the loop of a course.

JoeyNMT, the course and Elman's "luong-feeding" are the same network with the same weights; that they agree is checked
before they are timed. All write the same number of ids for every sentence: none may end before.
"""

from dataclasses import asdict, dataclass
from typing import Any

from elman.bench import machine
from elman.bench.course import CourseTranslator
from elman.bench.joey import MODULES, Joey
from elman.bench.machine import Follow, Work, interleave
from elman.bench.translators import Elman, IdPairs, Peer, Sizes
from elman.errors import RunError
from elman.nn.decoder import Kind

JOEY, COURSE = "JoeyNMT", "course loop"
KINDS: tuple[Kind, ...] = ("bahdanau", "luong", "luong-feeding")
OURS = {f"Elman {kind}": kind for kind in KINDS}
SAME = "Elman luong-feeding"
"""Which of Elman's is the network of the peers."""
SIZES = Sizes()
LENGTH = 15
"""Ids that are written for a sentence."""
TRAINED, COURSE_TRAINED = 80, 8
"""Pairs of a batch to learn from; the course goes through them one by one, so fewer will do to time it."""
ALONE = 4
"""Sentences that are timed together where they are translated one by one."""
TOLERANCE = 1e-3


@dataclass(frozen=True)
class DecodingCase:
    """What is done: translating with a beam (1 is greedy), or training; so many sentences at once."""

    work: str
    beam: int
    batch: int

    @property
    def unit(self) -> str:
        """What is counted in a second."""
        return "target tokens" if self.work == "training" else "sentences"


@dataclass(frozen=True)
class DecodingRow:
    """What was measured for one case: units a second, by who did it."""

    case: DecodingCase
    speeds: dict[str, float]
    gflops: dict[str, float]
    """Of training: 10^9 operations a second in products, padding not counted."""

    def ratio(self, who: str, peer: str) -> float | None:
        """How many times faster one is than the other; None where one of them was not measured."""
        return machine.ratio(self.speeds, who, peer)


@dataclass(frozen=True)
class DecodingReport:
    """All rows of one run, beside the machine's peak."""

    facts: dict[str, Any]
    peak: float
    """10^9 operations a second of a large product: the better of one before and one after."""
    rows: list[DecodingRow]
    skipped: list[str]
    """A line for each peer that is not installed."""

    def one_by_one(self, beam: int) -> float | None:
        """Sentences a second of the course's loop, which knows no batches; None where that was not measured."""
        found = [row.speeds.get(COURSE) for row in self.rows if row.case == DecodingCase("translating", beam, 1)]
        return found[0] if found else None

    def record(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            "machine": self.facts,
            "sizes": asdict(SIZES),
            "peak_gflops": self.peak,
            "rows": [self._row(row) for row in self.rows],
            "skipped": self.skipped,
        }

    def _row(self, row: DecodingRow) -> dict[str, Any]:
        alone = self.one_by_one(row.case.beam) if row.case.work == "translating" else None
        return asdict(row.case) | {
            "unit": row.case.unit,
            "per_second": row.speeds,
            "ratio": {
                who: {peer: row.ratio(who, peer) for peer in (JOEY, COURSE) if peer in row.speeds}
                | ({"course loop one by one": row.speeds[who] / alone} if alone else {})
                for who in OURS
            },
            "of_peak": {who: speed / self.peak for who, speed in row.gflops.items()},
        }


def run(
    *,
    quick: bool = False,
    seconds: float | None = None,
    threads: int | None = None,
    follow: Follow | None = None,
) -> DecodingReport:
    """Measure every case (where quick, a beam of 5 only and no training), `seconds` on each (5; 1 where quick)."""
    machine.need_kernels()
    chosen = cases(quick=quick)
    budget = seconds if seconds is not None else 1.0 if quick else 5.0
    with machine.using_threads(threads):
        peak = machine.matmul_gflops(min(budget, 1.0))
        peers = peers_here()
        check(peers)
        rows = machine.all_rows(chosen, lambda case: measure(case, peers, budget), follow)
        return DecodingReport(machine.facts(), max(peak, machine.matmul_gflops(min(budget, 1.0))), rows, skipped())


def cases(*, quick: bool = False) -> list[DecodingCase]:
    """What is measured."""
    found = [DecodingCase("translating", beam, batch) for beam in ((5,) if quick else (1, 5)) for batch in (1, 64)]
    return found if quick else [*found, DecodingCase("training", 1, TRAINED)]


def skipped() -> list[str]:
    """A line for JoeyNMT where it cannot be used."""
    return machine.not_measured(JOEY, {"joeynmt": MODULES})


def peers_here() -> dict[str, Peer]:
    """Everyone who can translate on this machine."""
    same = SIZES.network("luong-feeding")
    theirs: dict[str, Peer] = {} if skipped() else {JOEY: Joey(SIZES, same)}
    theirs[COURSE] = CourseTranslator(SIZES, same)
    return theirs | {who: Elman(SIZES.network(kind)) for who, kind in OURS.items()}


def check(peers: dict[str, Peer]) -> None:
    """RunError where peers with the same weights differ in their loss on the same pairs."""
    pairs = IdPairs.of(3, SIZES.vocabulary)
    losses = {who: peer.learning(pairs)() for who, peer in peers.items() if who not in OURS or who == SAME}
    for who, loss in losses.items():
        if not abs(loss - losses[SAME]) < TOLERANCE:
            raise RunError(f"{who} and {SAME} differ in their loss on the same pairs: {loss:.4f}, {losses[SAME]:.4f}")


def measure(case: DecodingCase, peers: dict[str, Peer], seconds: float) -> DecodingRow:
    """Time one case, everyone in turn."""
    works: dict[str, tuple[Work, int]] = {}
    for who, peer in peers.items():
        if case.work == "training":
            pairs = IdPairs.of(COURSE_TRAINED if who == COURSE else case.batch, SIZES.vocabulary)
            works[who] = peer.learning(pairs), pairs.tokens
        elif who != COURSE or case.batch == 1:  # the course has no batches
            sentences = IdPairs.of(max(case.batch, ALONE), SIZES.vocabulary)
            works[who] = _translating(peer, sentences.batches(case.batch), case.beam), len(sentences.sources)
    best = interleave([work for work, _ in works.values()], seconds)
    speeds = {who: units / took for took, (who, (_, units)) in zip(best, works.items(), strict=True)}
    return DecodingRow(case, speeds, _gflops(case, speeds) if case.work == "training" else {})


def _translating(peer: Peer, batches: list[IdPairs], beam: int) -> Work:
    return lambda: [peer.translate(batch, beam, LENGTH) for batch in batches]


def _gflops(case: DecodingCase, speeds: dict[str, float]) -> dict[str, float]:
    """10^9 operations a second of those that trained on the batch of the case."""
    pairs = IdPairs.of(case.batch, SIZES.vocabulary)
    return {
        who: SIZES.flops(OURS.get(who, "luong-feeding"), pairs) * speed / pairs.tokens / 1e9
        for who, speed in speeds.items()
        if who != COURSE
    }
