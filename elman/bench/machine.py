"""What this machine is, and what it can do at most: the figures that every measurement stands beside."""

import math
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from elman import __version__, kernels
from elman.errors import UserError

Work = Callable[[], object]
Follow = Callable[[Iterator[Any], int], Iterable[Any]]
"""Sees each row as it is measured, and is told how many there will be."""

PRODUCT_SIZE = 2048
"""Rows and columns of the product that the peak is measured with."""
SETTLE = 0.05
"""Seconds that a library's threads need to go to sleep."""
READ_BYTES = 2**26
"""How much one timed call reads at least, so that the call itself weighs nothing."""


def interleave(works: Sequence[Work], seconds: float, rounds: int = 3) -> list[float]:
    """The best time of each of `works`, done in turn: one round to get warm, then for so long, `rounds` at least.

    Before its turn each is left alone for a moment and called once: the threads of the one before it may still spin.

    >>> quick, slow = interleave([lambda: None, lambda: time.sleep(0.01)], seconds=0.0)
    >>> quick < slow
    True
    """
    for work in works:
        work()
    best = [math.inf] * len(works)
    end, done = time.perf_counter() + seconds, 0
    while done < rounds or time.perf_counter() < end:
        for place, work in enumerate(works):
            time.sleep(SETTLE)
            work()
            start = time.perf_counter()
            work()
            best[place] = min(best[place], time.perf_counter() - start)
        done += 1
    return best


def all_rows(cases: Sequence[Any], measure: Callable[[Any], Any], follow: Follow | None) -> list[Any]:
    """What is measured for each case, one after the other.

    >>> all_rows([1, 2], lambda case: -case, follow=None)
    [-1, -2]
    """
    rows = map(measure, cases)
    return list(rows if follow is None else follow(rows, len(cases)))


def ratio(speeds: Mapping[str, float], who: str, peer: str) -> float | None:
    """How many times faster one is than the other; None where one of them was not measured.

    >>> ratio({"elman": 6.0, "torch": 2.0}, "elman", "torch"), ratio({"elman": 6.0}, "elman", "torch")
    (3.0, None)
    """
    return speeds[who] / speeds[peer] if who in speeds and peer in speeds else None


@contextmanager
def using_threads(count: int | None) -> Iterator[int]:
    """Inside, PyTorch and with it the kernels use `count` threads (None: as many as before).

    >>> with using_threads(1) as count:
    ...     count == torch.get_num_threads() == 1
    True
    """
    before = torch.get_num_threads()
    if count is not None and count < 1:
        raise UserError(f"the number of threads must be 1 or more, not {count}")
    torch.set_num_threads(count or before)
    try:
        yield torch.get_num_threads()
    finally:
        torch.set_num_threads(before)


def matmul_gflops(seconds: float = 1.0) -> float:
    """The machine's matrix-multiply peak: 10^9 float32 operations a second in one large product."""
    left, right = torch.randn(2, PRODUCT_SIZE, PRODUCT_SIZE).unbind()
    (took,) = interleave([lambda: left @ right], seconds)
    return 2 * PRODUCT_SIZE**3 / took / 1e9


def gigabytes_per_second(size: int, seconds: float = 0.2) -> float:
    """How fast memory of `size` bytes can be gone through again and again: that of a cache, where it fits in one.

    The best of reading all of it and of copying one half to the other, on one thread and on all of them.
    """
    count = max(2, size // 4)
    memory = torch.ones(count)
    passes = max(2, READ_BYTES // (4 * count))
    upper, lower = memory[: count // 2], memory[count // 2 : count // 2 * 2]

    def read() -> None:
        memory.expand(passes, count).sum(dim=1)

    def copy() -> None:
        for _ in range(passes):
            lower.copy_(upper)

    best = math.inf
    for threads in {1, torch.get_num_threads()}:
        with using_threads(threads):
            best = min(best, *interleave([read, copy], seconds, rounds=1))
    return passes * 4 * count / best / 1e9


def installed(package: str) -> str | None:
    """The version of a package, None where it is not installed.

    >>> installed("no-such-package") is None, installed("torch") is None
    (True, False)
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def not_measured(who: str, needed: Mapping[str, Sequence[str]]) -> list[str]:
    """A line that says why a peer is left out, or none where it can be used.

    `needed` has the modules to import of each package. One that is installed may still be broken: what that does to the
    import is of no concern to the others.

    >>> not_measured("a peer", {"no-such-package": ["no_such_module"]})
    ['a peer was not measured: no-such-package not installed']
    """
    lacking = [package for package in needed if installed(package) is None]
    if lacking:
        return [f"{who} was not measured: {' and '.join(lacking)} not installed"]
    for package, modules in needed.items():
        try:
            for module in modules:
                import_module(module)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # some even exit
            why = " ".join(f"{type(error).__name__}: {error}".split())
            return [f"{who} was not measured: {package} is installed, but cannot be imported ({why[:200]})"]
    return []


def processor() -> str:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def facts() -> dict[str, Any]:
    """Versions, processor and kernels, ready for JSON.

    >>> sorted(facts())
    ['cores', 'instruction_set', 'processor', 'system', 'threads', 'versions']
    """
    packages = {name: installed(name) for name in ("torch", "numpy", "jax", "onnx", "onnxruntime", "joeynmt", "flair")}
    packages["gensim"] = installed("gensim")
    return {
        "processor": processor(),
        "cores": cores(),
        "system": f"{platform.system()} {platform.machine()}",
        "instruction_set": kernels.instruction_set(),
        "threads": kernels.threads(),
        "versions": {"elman": __version__, "python": platform.python_version(), **packages},
    }


def need_kernels() -> None:
    """UserError where there are no kernels to be measured."""
    if not kernels.available():
        raise UserError(f"there are no compiled kernels to measure ({kernels.missing}): `elman doctor` says what to do")
