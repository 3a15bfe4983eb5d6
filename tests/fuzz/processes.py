"""A case as a user meets it: a process of its own, with as much memory as a small machine has."""

import random
import subprocess
import sys
from pathlib import Path

from tests.end_to_end.processes import environment
from tests.fuzz.case import Case, Place
from tests.fuzz.contract import SECONDS, Ending, judge
from tests.fuzz.world import World, snapshot

START = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, resource.RLIM_INFINITY))
sys.argv[0] = "elman"
from elman.cli.main import run
run()
"""


def check_process(case: Case, world: World, folder: Path) -> None:
    """Run a command as `contract.check` does, in a process of its own."""
    command = case.make(Place(world, folder, random.Random(case.name)))
    before = snapshot(folder)
    done = subprocess.run(
        [sys.executable, "-c", START, *command.arguments],
        input=command.stdin,
        capture_output=True,
        cwd=folder,
        env=environment(),
        timeout=10 * SECONDS,
    )
    ending = Ending(done.returncode, done.stdout.decode(), done.stderr.decode())
    wrong = judge(case, command, ending, folder)
    if ending.code == 2 and snapshot(folder) != before:
        wrong.append("it left something behind")
    assert not wrong, f"{'; '.join(wrong)}\n{ending.error[-1500:]}\nexit code {ending.code}"
