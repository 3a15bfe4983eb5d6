"""A service under a mix of requests for a long time: no request may fail, and memory may not grow.

python benchmarks/soak.py 3600

Eight clients tag, eight translate, eight let texts be written, two ask for explanations, and eight begin streams and
vanish in the middle of them. Memory is read every few seconds; the mean of the last fifth may be 5 % above that of the
second. When all is over no text is being written any more, and no connection is left open.
"""

import asyncio
import json
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from elman.bench.load import Endpoint, Tally, body, closed
from elman.bench.serving import ELMAN, memory, target_of, write_models

GROWTH = 1.05


async def vanish(port: int, seconds: float, seed: int) -> tuple[int, int]:
    """Begin streams and go away in the middle of them, again and again; how often, and how often there was none."""
    draw, end, count, failed = random.Random(seed), time.monotonic() + seconds, 0, 0
    content = body(prompt="te ", max_tokens=4000, stream=True)
    head = (
        f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(content)}"
    )
    while time.monotonic() < end:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head.encode() + b"\r\n\r\n" + content)
        failed += not (await reader.read(100)).startswith(b"HTTP/1.1 200")
        await asyncio.sleep(draw.random() * 0.3)
        writer.close()
        count += 1
    return count, failed


async def watch(pid: int, seconds: float) -> list[float]:
    """The megabytes of a process, again and again."""
    end, found = time.monotonic() + seconds, []
    while time.monotonic() < end:
        found.append(memory(pid))
        await asyncio.sleep(min(5.0, seconds / 50))
    return found


async def soak(port: int, pid: int, seconds: float) -> dict[str, Any]:
    """One of each, so that everything is loaded that ever will be; then all of it at once."""
    texts = ["a fine day", "one two three", "so it goes"]
    explain = [body(model="tag", view="saliency", input=text) for text in texts]
    targets = {work: (target_of(work, ELMAN, port), 8) for work in ("tag", "translate", "stream")}
    targets["explain"] = (Endpoint(port, "/v1/explain", explain), 2)
    for target, _ in targets.values():
        first = await closed(target, 1, 0)
        assert len(first.answered) == 1, f"{target.path} is not answered"
    leaving = asyncio.gather(*(vanish(port, seconds, seed) for seed in range(8)))
    loads = [closed(target, clients, seconds) for target, clients in targets.values()]
    *outcomes, sizes = await asyncio.gather(*loads, watch(pid, seconds))  # type: ignore[misc]
    counts, failures = zip(*await leaving, strict=True)
    found = {"outcomes": dict(zip(targets, outcomes, strict=True)), "memory": sizes}
    return found | {"vanished": sum(counts), "not begun": sum(failures)}


def connections(pid: int) -> int:
    """Sockets that a process has open; 0 where the system does not tell."""
    folder = Path(f"/proc/{pid}/fd")
    return sum("socket:" in str(each.readlink()) for each in folder.iterdir()) if folder.exists() else 0


def rows_left(port: int) -> float:
    """Texts that are still being written."""
    import urllib.request

    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith("elman_streams{"))


def main(seconds: float) -> int:
    """Serve, ask, and look at what came of it."""
    with TemporaryDirectory(prefix="elman-soak-") as folder:
        write_models(Path(folder))
        models = [str(Path(folder) / name) for name in ("tag", "translate", "lm")]
        line = [sys.executable, "-m", "elman", "serve", *models, "--port", "0"]
        process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        found = re.match(r"http://127\.0\.0\.1:(\d+) serves", process.stdout.readline())
        assert found is not None, "the service did not start"
        port = int(found[1])
        idle = connections(process.pid)
        result = asyncio.run(soak(port, process.pid, seconds))
        time.sleep(2)
        open_still = connections(process.pid) - idle
        left = rows_left(port)
        process.terminate()
        code = process.wait(60)
    sizes, outcomes = result["memory"], result["outcomes"]
    fifth = max(1, len(sizes) // 5)
    early, late = (sum(part) / len(part) for part in (sizes[fifth : 2 * fifth] or sizes, sizes[-fifth:]))
    told: dict[str, Any] = {work: _told(one) for work, one in outcomes.items()}
    told |= {key: result[key] for key in ("vanished", "not begun")} | {"exit code": code, "seconds": seconds}
    told |= {"rows left": left, "connections left": open_still}
    told |= {"megabytes": [round(early, 1), round(late, 1)], "growth": round(late / early, 4)}
    print(json.dumps(told, indent=2))
    failed = result["not begun"] + sum(one.failed + len(one.refused) for one in outcomes.values())
    return int(failed > 0 or left > 0 or open_still > 0 or code != 0 or late / early > GROWTH)


def _told(one: Tally) -> dict[str, Any]:
    answered = {"answered": len(one.answered), "failed": one.failed, "refused": len(one.refused)}
    return answered | {"p50 ms": round(one.quantile(0.5) * 1e3, 1), "p99 ms": round(one.quantile(0.99) * 1e3, 1)}


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 3600.0))
