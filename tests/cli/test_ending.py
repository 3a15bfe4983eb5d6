"""How commands end: streams that are closed, full or not read, signals, errors of the system; always one sentence."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from elman.bench import machine
from elman.cli.ending import explain
from elman.corpora import CATALOGUE
from tests.cli.invoke import invoke
from tests.end_to_end.processes import environment, finish, start

COMMAND = f"{sys.executable} -m elman.cli.main"
SMALL = ("model.hidden=8", "model.layers=1", "batch.size=4", "batch.steps=8", "train.steps=20",
         "train.evaluate_every=2", "train.threads=1", "baseline.order=0")  # fmt: skip


def shell(line: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash, which gives back what the first of its commands does."""
    whole = f"set -o pipefail; {line}"
    return subprocess.run(["bash", "-c", whole], capture_output=True, text=True, env=environment() | more, check=False)


# Streams


@pytest.mark.parametrize("buffered", ["", "1"])
@pytest.mark.parametrize("command", ["data list", "--version", "train lm --help"])
def test_a_reader_that_has_had_enough(command: str, buffered: str) -> None:
    done = shell(f"{COMMAND} {command} | true", PYTHONUNBUFFERED=buffered)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("pipe", ["| true", "2>&1 | true"])
def test_a_run_goes_on_to_its_end_where_nobody_reads_what_it_says(tmp_path: Path, pipe: str) -> None:
    (tmp_path / "a.txt").write_text("the cat sat on the mat\n" * 60)
    settings = " ".join(f"-s {setting}" for setting in SMALL)
    done = shell(f"{COMMAND} train lm --train {tmp_path}/a.txt --out {tmp_path}/run {settings} {pipe}")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["run"]["steps"] == 20


def test_a_mistake_is_one_where_nobody_reads_of_it(tmp_path: Path) -> None:
    assert shell(f"{COMMAND} train lm --train {tmp_path}/none.txt --out {tmp_path}/run 2>&1 | true").returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("command", ["data list", "--version", "data info python --json"])
def test_a_full_output(command: str) -> None:
    done = shell(f"{COMMAND} {command} > /dev/full", PYTHONUNBUFFERED="")
    assert done.returncode == 1
    assert done.stderr.startswith("elman: output cannot be written: no space left on device")
    assert len(done.stderr.splitlines()) == 1


def test_closed_streams() -> None:
    done = shell(f"{COMMAND} data list >&-")
    assert done.returncode == 2
    assert done.stderr == "elman: standard output is closed: give it a place to go, such as > /dev/null\n"
    done = shell(f"{COMMAND} --version 2>&-")
    assert (done.returncode, done.stderr) == (0, "")


def test_an_output_that_cannot_show_a_character() -> None:
    done = shell(f"{COMMAND} --version --nöne > /dev/null", PYTHONIOENCODING="ascii")
    assert done.returncode == 2
    code = explain(UnicodeEncodeError("ascii", "é", 0, 1, "ordinal not in range(128)"))
    assert code == 2


def test_a_table_in_a_pipe_is_not_cut() -> None:
    code, out, error = invoke("data", "list")
    assert code == 0, error
    lines = out.splitlines()
    assert len(lines) == 1 + len(CATALOGUE)
    for line, entry in zip(lines[1:], CATALOGUE.values(), strict=True):
        assert entry.name in line
        assert entry.description in line
        assert entry.licence in line


@pytest.mark.parametrize(
    "command", [[], ["predict"], ["generate"], ["train", "lm"], ["data", "info"], ["bench", "layers"]]
)
def test_flags_have_no_type(command: list[str]) -> None:
    code, out, error = invoke(*command, "--help")
    assert code == 0, error
    assert "--help" in out
    assert "bool" not in out.lower()


# Signals


@pytest.mark.parametrize("module", ["typer", "torch"])
def test_an_interrupt_while_it_is_starting(tmp_path: Path, module: str) -> None:
    """A module that takes long to import stands for the start of a slow machine."""
    (tmp_path / "slow.py").write_text(
        "import sys, time\n"
        "class Slow:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            print('now', flush=True)\n"
        "            time.sleep(30)\n"
        "sys.meta_path.insert(0, Slow())\n"
    )
    start = "import sys; sys.argv = ['elman', 'doctor']; import slow; from elman.cli.main import run; run()"
    child = subprocess.Popen(
        [sys.executable, "-c", start], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment() | {"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "now\n"
    time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    _, error = child.communicate(timeout=30)
    assert (child.returncode, error) == (130, "elman: interrupted\n")


def test_an_interrupt_that_is_ignored_stays_so(tmp_path: Path) -> None:
    """As that of a command which a script starts in the background: the Ctrl-C is meant for another."""
    before = (
        "import os, signal\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "import elman.train.loop as loop\n"
        "update = loop.Trainer._update\n"
        "def interrupted(self):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    return update(self)\n"
        "loop.Trainer._update = interrupted\n"
    )
    (tmp_path / "a.txt").write_text("the cat sat on the mat\n" * 60)
    settings = [part for setting in SMALL for part in ("-s", setting)]
    child = start(
        "train", "lm", "--train", str(tmp_path / "a.txt"), "--out", str(tmp_path / "run"), *settings, before=before
    )
    code, _, error = finish(child, 120)
    assert code == 0, error
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["run"]["steps"] == 20


# Errors of the system


def test_names_that_are_none(tmp_path: Path) -> None:
    long = str(tmp_path / ("a" * 300))
    text = tmp_path / "a.txt"
    text.write_text("the cat sat on the mat\n" * 20)
    for command in (
        ("train", "lm", "--train", str(text), "--out", long),
        ("train", "lm", "--train", long, "--out", str(tmp_path / "run")),
        ("generate", long),
        ("predict", long),
        ("train", "lm", long, "--out", str(tmp_path / "run")),
        ("data", "list", "--data-dir", long),
    ):
        code, _, error = invoke(*command)
        assert code == 2, error
        assert "--debug" not in error
        assert len(error.strip().splitlines()) <= 1


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (PermissionError(13, "Permission denied", "a.txt"), 2, "'a.txt': permission denied; change its permissions"),
        (IsADirectoryError(21, "Is a directory", "a"), 2, "name a file"),
        (OSError(36, "File name too long", "a" * 999), 2, "give a shorter name"),
        (OSError(5, "Input/output error", "a"), 1, "input/output error"),
        (MemoryError(), 2, "not enough memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"), 2, "memory"),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"), 2, "no character"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (ValueError("a\nb"), 1, "ValueError: a b; --debug shows where this happened"),
        # Mistakes of Elman's own: nobody's memory, files or numbers are to blame.
        (RuntimeError("shape '[2, 3]' is invalid for input of size 5"), 1, "RuntimeError: shape"),
        (RuntimeError("Overflow when unpacking long"), 1, "RuntimeError: Overflow"),
        (OverflowError("Python int too large to convert to C long"), 1, "OverflowError: Python"),
        (RecursionError("maximum recursion depth exceeded"), 1, "RecursionError: maximum"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), 1, "UnicodeDecodeError: "),
        (OSError("no device"), 1, "OSError: no device; --debug"),
        (ValueError("can't allocate memory for this joke"), 1, "ValueError: "),
    ],
)
def test_every_error_is_one_sentence(
    error: BaseException, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert explain(error) == code
    said = capsys.readouterr().err
    assert words in said
    assert len(said.splitlines()) == 1


def test_a_folder_in_the_place_of_a_file(tmp_path: Path) -> None:
    for task in ("classify", "tag", "translate"):
        (tmp_path / "folder").mkdir(exist_ok=True)
        code, _, error = invoke("train", task, "--train", str(tmp_path / "folder"), "--out", str(tmp_path / "run"))
        assert code == 2, error
        assert "folder" in error
        assert len(error.strip().splitlines()) == 1


@pytest.mark.parametrize("option", ["--seed", "--n-best"])
def test_numbers_that_are_too_small(tmp_path: Path, option: str) -> None:
    code, _, error = invoke("rerank", "a", "--channel", "b", "--lm", "c", "--dev", "d", option, "-5")
    assert code == 2
    assert option in error


@pytest.mark.parametrize(
    "command", ["predict a --window", "generate a --length", "generate a --samples", "bench layers --threads"]
)
def test_numbers_that_are_too_large(command: str) -> None:
    code, _, error = invoke(*command.split(), str(10**30))
    assert code == 2
    assert command.split()[-1] in error


# Peers


def test_a_peer_that_is_broken_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in (
        ("broken_a", "raise OSError('libcuda.so: no such\\nfile')"),
        ("broken_b", "raise SystemExit(3)"),
    ):
        (tmp_path / f"{name}.py").write_text(content)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(machine, "installed", lambda package: "1.0")
    for name, why in (("broken_a", "OSError: libcuda.so: no such file"), ("broken_b", "SystemExit: 3")):
        assert machine.not_measured("Peer", {name: [name]}) == [
            f"Peer was not measured: {name} is installed, but cannot be imported ({why})"
        ]


def test_a_process_with_pytorch_ends_as_any_other(tmp_path: Path) -> None:
    code = (
        "import atexit, sys, threading, time; import torch; import elman.cli.main as entry\n"
        "atexit.register(lambda: print('at exit'))\n"
        "threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()\n"
        "sys.argv = ['elman', 'explain', 'nowhere', 'a text']\n"
        "entry.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2 and "no model folder" in done.stderr
    assert done.stdout.split("\n") == ["thread", "at exit", ""]
