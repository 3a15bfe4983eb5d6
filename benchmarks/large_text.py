"""A text larger than memory should be: what a training run on 1 GB takes in memory and in time to begin.

    python benchmarks/large_text.py [--bytes 1000000000] [--source FILE]

Makes the text by repeating one (the source of Python's library, unless another is named), trains a small character
model for a few steps in a process of its own, twice, and prints the peak of its resident memory and the seconds from
its start to its first step. The second start finds everything encoded. The text and its ids are removed at the end.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from elman.generated.builtin import python_sources

SETTINGS = ("train.steps=20", "train.log_every=1", "data.dev_characters=50000")


def make_text(path: Path, size: int, source: Path | None) -> None:
    """`size` bytes of repeated text."""
    sources = [source] if source else python_sources(limit=4_000_000)
    text = b"".join(file.read_bytes() for file in sources)
    with path.open("wb") as out:
        while out.tell() < size:
            out.write(text[: size - out.tell()])


def train(text: Path, out: Path, cache: Path) -> tuple[float, int]:
    """Seconds to the first step, and the peak resident memory in bytes, of one run."""
    command = [sys.executable, "-m", "elman.cli.main", "train", "lm", "--train", str(text), "--out", str(out)]
    for setting in SETTINGS:
        command += ["-s", setting]
    began = time.monotonic()
    process = subprocess.Popen(command, env={**os.environ, "ELMAN_CACHE": str(cache)}, stderr=subprocess.DEVNULL)
    log, first, peak = out / "log.jsonl", 0.0, 0
    while process.poll() is None:
        if not first and log.exists() and log.stat().st_size:
            first = time.monotonic() - began
        peak = max(peak, _high_water(process.pid))
        time.sleep(0.05)
    if process.returncode:
        raise SystemExit(f"the run failed with exit code {process.returncode}")
    return first, peak


def _high_water(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", type=int, default=1_000_000_000)
    parser.add_argument("--source", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text, cache = Path(folder) / "text.txt", Path(folder) / "cache"
        make_text(text, arguments.bytes, arguments.source)
        for number in (1, 2):
            first, peak = train(text, Path(folder) / f"run{number}", cache)
            print(f"start {number}: first step after {first:.1f} s, peak resident memory {peak / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
