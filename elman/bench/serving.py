"""The service under load on this machine, against FastAPI with PyTorch models in a pool of threads.

Both have the same models, are started in the same run, and are asked by the same clients: 1, 16 and 64 of them that
each wait for their answers. Then requests come at random: at half the rate that was reached, and at ten times the rate
that Elman can answer, of a kind that is so much work for the models that this is a rate at which clients can send. And
there are ten times as many clients as are answered at their best, which come again when they are told to.
"""

import asyncio
import os
import random
import re
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from elman.bench import machine, prediction
from elman.bench.load import Endpoint, Tally, body, closed, measured, paced, quantile
from elman.bench.machine import Follow
from elman.errors import RunError
from elman.serve.limits import Limits

NAIVE, ELMAN = "FastAPI + PyTorch", "elman serve"
CLIENTS = (1, 16, 64)
TIMES = 10
"""How much more than is answered at its best comes in, in the end."""
LONE = 20
"""Requests a second that never meet."""
ROUNDS = 10
"""Of half load: each so short that a machine which others use too is left alone in some of them."""
WORDS, LENGTH, TOKENS = 5000, 15, 200
"""Words of the translator, tokens of a translation, tokens of a stream."""
LONG, MANY = 40, 64
"""Of requests that are much work: tokens of a sentence and of its translation; sentences that are tagged."""


@dataclass(frozen=True)
class ServingCase:
    """What is asked for, and by how many clients."""

    work: str
    clients: int


@dataclass(frozen=True)
class ServingSpeed:
    """How one of the two answered."""

    per_second: float
    """Predictions, or tokens."""
    median: float
    """Seconds to the answer, or to the first token."""
    p99: float
    failed: int
    processor: float
    """Seconds of the server's processor time for one: on a machine that others use too, the figure to go by."""


@dataclass(frozen=True)
class ServingRow:
    """What was measured for one case."""

    case: ServingCase
    speeds: dict[str, ServingSpeed]

    @property
    def ratio(self) -> float:
        """How many times more Elman answers in a second."""
        return self.speeds[ELMAN].per_second / self.speeds[NAIVE].per_second

    @property
    def saving(self) -> float:
        """How many times less processor time Elman needs for one."""
        return self.speeds[NAIVE].processor / self.speeds[ELMAN].processor


@dataclass(frozen=True)
class Half:
    """Elman's service at half of the rate that 64 clients reach, in some rounds."""

    work: str
    lone: float
    """The median seconds of a request that comes alone, from when it was due."""
    per_second: float
    """Requests that came in a second, at random."""
    best: float
    """Of the best round: the seconds, from when they were due, in which 99 of 100 requests were answered."""
    middle: float
    """The same of the middle round."""
    late: float
    """Seconds after which 99 of 100 requests of the best were sent: what the clients themselves were behind."""
    failed: int
    """Requests of all rounds that were refused or failed."""

    @property
    def bound(self) -> float:
        """Seconds that it should take at most: twice those of a lone request, and the wait for others."""
        return 2 * self.lone + Limits().batch_wait / 1e3


@dataclass(frozen=True)
class Overload:
    """Elman's service at ten times what it can do, and after it."""

    work: str
    clients: str
    """How the requests came."""
    per_second: float
    """Requests that were answered or refused in a second."""
    answered: int
    refused: int
    failed: int
    answered_p99: float
    refused_p99: float
    late: float
    """Seconds after which 99 of 100 requests were sent; not a number where clients wait for their answers."""
    before: float
    """Requests answered a second before, by 16 clients."""
    after: float
    memory: float
    """Megabytes of the process after it, over those before."""


@dataclass(frozen=True)
class ServingReport:
    """All rows of one run."""

    facts: dict[str, Any]
    rows: list[ServingRow]
    halves: list[Half]
    overloads: list[Overload]

    def record(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        rows = [
            asdict(row.case)
            | {"speeds": {who: asdict(speed) for who, speed in row.speeds.items()}}
            | {"ratio": row.ratio, "saving": row.saving}
            for row in self.rows
        ]
        loads = {"half": [asdict(one) for one in self.halves], "overload": [asdict(one) for one in self.overloads]}
        return {"machine": self.facts, "rows": rows, **loads}


def run(
    *, quick: bool = False, seconds: float | None = None, threads: int | None = None, follow: Follow | None = None
) -> ServingReport:
    """Measure every case (where quick, 1 and 16 clients), `seconds` on each (8; 1 where quick)."""
    machine.need_kernels()
    budget = seconds if seconds is not None else 1.0 if quick else 8.0
    works = ("tag", "translate", "stream")
    cases = [ServingCase(work, clients) for work in works for clients in (CLIENTS[:2] if quick else CLIENTS)]
    with TemporaryDirectory(prefix="elman-serving-") as folder, machine.using_threads(threads):
        write_models(Path(folder))
        with serving(Path(folder)) as servers:
            rows = machine.all_rows(cases, lambda case: measure(case, servers, budget), follow)
            ours, less = servers[ELMAN], () if quick else works[:2]
            halves = [half(work, ours, budget) for work in less]
            overloads = [too_much(work, ours, budget) for work in less] + [flood(work, ours, budget) for work in less]
    return ServingReport(machine.facts(), rows, halves, overloads)


@dataclass(frozen=True)
class Server:
    """One of the two: where it listens, and its process."""

    port: int
    pid: int

    def processor(self) -> float:
        """Seconds of processor time that its process has used; not a number where the system does not tell."""
        stat = Path(f"/proc/{self.pid}/stat")
        if not stat.exists():
            return float("nan")
        user, system = stat.read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def measure(case: ServingCase, servers: dict[str, Server], seconds: float) -> ServingRow:
    """Ask both, one after the other."""
    speeds = {}
    for who, server in servers.items():
        target = target_of(case.work, who, server.port)
        measured(lambda target=target: closed(target, case.clients, seconds / 4))  # type: ignore[misc]
        before = server.processor()
        found = measured(lambda target=target: closed(target, case.clients, seconds))  # type: ignore[misc]
        used = server.processor() - before
        if not found.answered:
            raise RunError(f"{who} gave no answer to {case.clients} clients that asked it to {case.work}")
        count = found.tokens if case.work == "stream" else len(found.answered)
        times = (found.quantile(0.5), found.quantile(0.99))
        speeds[who] = ServingSpeed(count / found.seconds, *times, found.failed, used / count)
    return ServingRow(case, speeds)


def half(work: str, server: Server, seconds: float) -> Half:
    """Half of what the service can do, in rounds that are short: a machine that is shared has moments of its own."""
    target = target_of(work, ELMAN, server.port)
    lone, full = measured(lambda: paced(target, LONE, seconds)), measured(lambda: closed(target, 64, seconds / 2))
    rate, long = full.per_second / 2, 2 * seconds / ROUNDS
    rounds = [measured(lambda seed=seed: paced(target, rate, long, seed)) for seed in range(ROUNDS)]  # type: ignore[misc]
    rounds.sort(key=lambda one: one.quantile(0.99))
    times = [one.quantile(0.99) for one in rounds]
    failed = sum(one.failed + len(one.refused) for one in rounds)
    late = quantile(rounds[0].late, 0.99)
    return Half(work, lone.quantile(0.5), rate, times[0], times[ROUNDS // 2], late, failed)


def too_much(work: str, server: Server, seconds: float) -> Overload:
    """Requests that come at random, ten times as many as the service can answer, of a kind that is much work."""
    target, title = heavy_target(work, server.port)
    best = measured(lambda: closed(target, 16, seconds / 2))
    rate = TIMES * best.per_second
    return _overload(title, f"{rate:,.0f} a second", server, target, seconds, lambda: paced(target, rate, seconds))


def flood(work: str, server: Server, seconds: float) -> Overload:
    """Ten times as many clients as are answered at their best, which come again when they are told to."""
    target, clients = target_of(work, ELMAN, server.port), CLIENTS[-1] * TIMES
    asked = partial(closed, target, clients, seconds, obedient=True)
    return _overload(work, f"{clients} clients", server, target, seconds, asked)


def _overload(
    work: str, clients: str, server: Server, target: Endpoint, seconds: float, load: Callable[[], Awaitable[Tally]]
) -> Overload:
    before, size = measured(lambda: closed(target, 16, seconds / 2)), memory(server.pid)
    much = measured(load)
    after = measured(lambda: closed(target, 16, seconds / 2))
    return Overload(
        work,
        clients,
        (len(much.answered) + len(much.refused)) / much.seconds,
        len(much.answered),
        len(much.refused),
        much.failed,
        much.quantile(0.99),
        quantile(much.refused, 0.99),
        quantile(much.late, 0.99),
        before.per_second,
        after.per_second,
        memory(server.pid) / size,
    )


def memory(pid: int) -> float:
    """Megabytes of a process; 1 where the system does not tell."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return 1.0
    return float(re.search(r"VmRSS:\s+(\d+)", status.read_text())[1]) / 1024  # type: ignore[index]


def target_of(work: str, who: str, port: int) -> Endpoint:
    """What clients send: the same texts to both, and what only Elman has to be told."""
    draw = random.Random(3)
    told: dict[str, Any]
    if work == "stream":
        told = {"stream": True, "stream_options": {"include_usage": True}} if who == ELMAN else {}
        return Endpoint(port, "/v1/completions", [body(prompt="te ", max_tokens=TOKENS, **told)])
    if work == "translate":
        words = made_words()
        texts = [" ".join(draw.choices(words, k=draw.randint(8, 16))) for _ in range(256)]
        told = {"max_length": LENGTH} | ({"min_length": LENGTH, "beam": 1} if who == ELMAN else {})
        return Endpoint(port, "/v1/translate", [body(input=text, **told) for text in texts])
    texts = [" ".join(sentence) for sentence in prediction.Text().sentences(256, 15, 25)]
    return Endpoint(port, "/v1/tag", [body(input=text) for text in texts])


def heavy_target(work: str, port: int) -> tuple[Endpoint, str]:
    """Requests that are much work for a model and little for everything else, and what they ask for."""
    if work == "translate":
        draw, words = random.Random(3), made_words()
        told = {"beam": 5, "min_length": LONG, "max_length": LONG}
        texts = [" ".join(draw.choices(words, k=LONG)) for _ in range(64)]
        return Endpoint(port, "/v1/translate", [body(input=text, **told) for text in texts]), "translate, beam 5"
    sentences = [" ".join(sentence) for sentence in prediction.Text().sentences(256, 15, 25)]
    several = [[sentences[(first + place) % 256] for place in range(MANY)] for first in range(0, 256, 4)]
    return Endpoint(port, "/v1/tag", [body(input=texts) for texts in several]), f"tag, {MANY} sentences"


def made_words() -> list[str]:
    """Words of the translator."""
    return [f"w{number}" for number in range(WORDS)]


def write_models(folder: Path) -> None:
    """A tagger, a translator and a language model with random weights."""
    prediction.PredictionCase("tag").model().save(folder / "tag")
    write_translator(folder / "translate")
    write_language_model(folder / "lm")


def write_translator(folder: Path) -> None:
    """GRUs of 256 with additive attention over words, as `elman.bench.course` has them."""
    from elman.tasks.search import SearchSettings
    from elman.tasks.translate import TranslateRecipe, Translator, TranslatorConfig
    from elman.text import TokenizerSettings
    from elman.text.sides import Sides

    torch.manual_seed(0)
    settings = {"cell": "gru", "hidden": 256, "encoder_hidden": 256, "embedding": 256, "tied": "none"}
    settings |= {"decoder": "luong-feeding", "attention": "additive"}
    recipe = TranslateRecipe.model_validate({"model": settings, "text": {"kind": "words"}})
    words, text = TokenizerSettings(kind="words"), " ".join(made_words())
    sides = Sides.fit([(text, text)], words, words)
    config = TranslatorConfig.new(
        "translate", recipe, model=recipe.model, search=SearchSettings(), longest=100, tokens_per_character=0.2
    )
    network: Any = Translator.build(config, sides).eval()
    with torch.no_grad():
        network.softmax.bias.zero_()  # which the course has none of
        network.decoder.attention.U.bias.zero_()
    Translator(config, sides, network).save(folder)


def write_language_model(folder: Path) -> None:
    """Two LSTMs of 256 over characters, after one step of training on made-up text."""
    from elman.tasks import fit

    draw = random.Random(1)
    text = "\n".join(" ".join(draw.choices(prediction.vocabulary(), k=12)) for _ in range(300))
    source = folder.parent / "text.txt"
    source.write_text(text, encoding="utf-8")
    settings = {"model.cell": "lstm", "model.layers": 2, "model.hidden": 256, "model.embedding": 256}
    settings |= {"train.steps": 1, "baseline.order": 0, "sample.length": 0, "batch.size": 8}
    fit("lm", train=source, out=folder, settings=settings, verbose=False)


@contextmanager
def serving(folder: Path) -> Iterator[dict[str, Server]]:
    """Both servers at free ports, until the end."""
    models = [str(folder / name) for name in ("tag", "translate", "lm")]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    ours = subprocess.Popen(
        [sys.executable, "-m", "elman", "serve", *models, "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    theirs = subprocess.Popen([sys.executable, "-m", "elman.bench.naive", str(folder), str(port)])
    try:
        assert ours.stdout is not None
        line = ours.stdout.readline()
        found = re.match(r"http://127\.0\.0\.1:(\d+) serves", line)
        if found is None:
            raise RunError("the service did not start: try `elman serve` by itself")
        asyncio.run(_wait(port))
        yield {NAIVE: Server(port, theirs.pid), ELMAN: Server(int(found[1]), ours.pid)}
    finally:
        for process in (ours, theirs):
            process.terminate()
            process.wait()


async def _wait(port: int, seconds: float = 300) -> None:
    """Wait until something listens at a port."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.2)
        else:
            writer.close()
            return
    raise RunError("the server to compare with did not start")
