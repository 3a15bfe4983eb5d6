"""The compiled kernels: whether they are there, and for which instruction set.

`ELMAN_ISA` in the environment forces a lower instruction set than the processor's best.
"""

import os
import sys
import warnings
from functools import cache
from importlib import import_module
from typing import Any

from elman.errors import UserError

THREADS = "OMP_NUM_THREADS"
"""The variable of the environment that says how many threads there are to be."""

native: Any = None
"""The compiled module."""
missing: str | None = None
"""Why it is not there."""

try:
    native = import_module("elman._kernels")
except ImportError as error:  # installed where there was no compiler
    missing = str(error)
    warnings.warn(
        f"Elman's compiled kernels are not there ({missing}), so it runs on PyTorch, more slowly: "
        "`elman doctor` says how to get them",
        RuntimeWarning,
        stacklevel=2,
    )


def available() -> bool:
    """Whether the kernels were built; without them everything runs on PyTorch."""
    return native is not None


def instruction_sets() -> list[str]:
    """What this processor can run, the lowest first; empty without the kernels."""
    return list(native.instruction_sets()) if native is not None else []


def instruction_set() -> str | None:
    """The instruction set in use."""
    return str(native.instruction_set()) if native is not None else None


def use(name: str) -> None:
    """Compute with the kernels for one of `instruction_sets()` from now on."""
    if name not in instruction_sets():
        raise UserError(f"ELMAN_ISA is {name!r}, and this machine's kernels are: {', '.join(instruction_sets())}")
    native.use(name)


def threads() -> int:
    """How many threads the kernels use: PyTorch's number in a process that has loaded it, else `OMP_NUM_THREADS`, or
    the cores that this process may run on."""
    counted = getattr(sys.modules.get("torch"), "get_num_threads", _threads_alone)
    return int(counted())


def use_threads(count: int) -> None:
    """Compute on so many threads from now on, and PyTorch as well, whether this process has loaded it or not yet."""
    os.environ[THREADS] = str(count)
    _threads_alone.cache_clear()
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(count)


@cache
def _threads_alone() -> int:
    wanted = os.environ.get(THREADS, "").split(",")[0].strip()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(int(wanted) if wanted.isdecimal() and int(wanted) else cores, 1024)


FEW = 2**14
"""Numbers that are not worth a second thread, where each costs about as much as an exponential."""


def threads_for(numbers: int) -> int:
    """`threads()`, or one where there is too little to share out.

    >>> threads_for(FEW), threads_for(FEW + 1) == threads()
    (1, True)
    """
    return threads() if numbers > FEW else 1


if native is not None and os.environ.get("ELMAN_ISA"):
    use(os.environ["ELMAN_ISA"])
