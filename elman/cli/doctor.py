"""`elman doctor`: what this machine has, what is missing, what that costs and how to get it."""

import json
import math
import os
import re
from pathlib import Path
from typing import Any

import typer

COST = "recurrent layers are 1.1 to 1.9 times slower without them, packed batches 2.5, generation 20 to 80"
REMEDY = (
    "install a C++ compiler (g++ or clang), then install Elman again, not from pip's cache: "
    "ELMAN_REQUIRE_KERNELS=1 pip install --no-cache-dir --force-reinstall --no-deps ."
)
PEERS = ("jax", "onnx", "onnxruntime")
"""What `elman bench` compares with where it is there."""
LEAST_DIGITS = 4
"""Float32 has seven; sums in another order lose one or two."""


def doctor(as_json: bool = typer.Option(False, "--json", help="The same as JSON.")) -> None:
    """Say what this machine has: versions, processor, compiled kernels, extras, cache."""
    from elman.errors import RunError

    found = examine()
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        for name, text in _lines(found):
            typer.echo(f"{name:16}{text}")
    digits = found["kernels"].get("digits")
    if digits is not None and digits < LEAST_DIGITS:
        raise RunError(
            f"the kernels agree with PyTorch to {digits} digits only: set ELMAN_ISA=baseline and report this"
        )


def examine() -> dict[str, Any]:
    """Everything that the command says, ready for JSON."""
    from elman.bench.machine import facts, installed
    from elman.cache import cache_folder

    cache = cache_folder()
    return facts() | {
        "kernels": _kernels(),
        "extras": {
            extra: {name: installed(name) for name in names} for extra, names in _extras().items() if extra != "dev"
        },
        "peers": {name: installed(name) for name in PEERS},
        "cache": {"folder": str(cache), "bytes": _size(cache)},
    }


def _kernels() -> dict[str, Any]:
    """The compiled kernels: what they run on and whether they are right, or why they are not there."""
    from elman import kernels

    if not kernels.available():
        return {"available": False, "why": kernels.missing, "cost": COST, "remedy": REMEDY}
    return {
        "available": True,
        "instruction_sets": kernels.instruction_sets(),
        "in_use": kernels.instruction_set(),
        "forced": os.environ.get("ELMAN_ISA") or None,
        "thread_library": kernels.native.thread_library(),
        "digits": agreement(),
    }


def agreement() -> int:
    """To how many digits a small LSTM that runs through the kernels gives the output of PyTorch's.

    >>> from elman import kernels
    >>> not kernels.available() or agreement() >= LEAST_DIGITS
    True
    """
    import torch

    from elman.nn import LSTM

    generator = torch.Generator().manual_seed(0)
    x = torch.randn(20, 8, 64, generator=generator)  # T x B x I
    ours = LSTM(64, 100, bidirectional=True, backend="compiled")
    theirs = torch.nn.LSTM(64, 100, bidirectional=True)
    theirs.load_state_dict(ours.state_dict())
    with torch.no_grad():
        expected = theirs(x)[0]
        far = float((ours(x)[0] - expected).abs().max() / expected.abs().max())
    if not math.isfinite(far):
        return 0
    return max(0, math.floor(-math.log10(max(far, torch.finfo(torch.float32).eps))))


def _extras() -> dict[str, list[str]]:
    """The packages of each extra, as the installed Elman declares them."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        declared = requires("elman") or []
    except PackageNotFoundError:  # run from its source
        return {}
    found: dict[str, list[str]] = {}
    for line in declared:
        match = re.fullmatch(r"([\w.-]+)[^;]*;.*extra == ['\"]([\w-]+)['\"].*", line)
        if match:
            found.setdefault(match[2], []).append(match[1].lower())
    return found


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    """What was found as a person reads it."""
    versions = found["versions"]
    cache = found["cache"]
    lines = [
        ("elman", versions["elman"]),
        *((name, versions[name]) for name in ("python", "torch", "numpy")),
        ("processor", f"{found['processor']}, {_count(found['cores'], 'core')}, {found['system']}"),
        *_kernel_lines(found),
    ]
    for extra, packages in found["extras"].items():
        lacking = [name for name, version in packages.items() if version is None]
        here = ", ".join(f"{name} {version}" for name, version in packages.items() if version)
        lines.append((f"[{extra}]", here if not lacking else f"not installed: pip install 'elman[{extra}]'"))
    for name, version in found["peers"].items():
        lines.append((name, version or "not installed; only `elman bench` compares with it"))
    lines.append(("cache", f"{cache['folder']}, {cache['bytes'] / 2**20:,.1f} MB"))
    return lines


def _kernel_lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    kernels = found["kernels"]
    if not kernels["available"]:
        return [
            ("kernels", f"not there, Elman runs on PyTorch: {kernels['why']}"),
            ("", kernels["cost"]),
            ("", kernels["remedy"]),
        ]
    forced = f", forced by ELMAN_ISA={kernels['forced']}" if kernels["forced"] else ""
    return [
        ("kernels", f"compiled, in use is {kernels['in_use']} of {', '.join(kernels['instruction_sets'])}{forced}"),
        ("", f"a small LSTM agrees with PyTorch's to {_count(kernels['digits'], 'digit')}"),
        ("threads", f"{found['threads']}, {_whose(kernels['thread_library'])}"),
    ]


def _whose(library: str) -> str:
    """Whose pool of threads the kernels run on, by its library."""
    if library == "std::thread":
        return "the kernels' own: PyTorch's OpenMP library was not found"
    folders = Path(library).parts
    owner = "PyTorch's" if any(part in ("torch", "torch.libs") for part in folders) else "shared with PyTorch"
    return f"{owner} ({folders[-1]})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}"
