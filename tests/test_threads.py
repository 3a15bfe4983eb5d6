"""Whose threads the kernels run on, and what they do in a forked process, beside other pools, and at Ctrl-C."""

import os
import subprocess
import sys

import pytest

from elman import kernels

pytestmark = [
    pytest.mark.skipif(not kernels.available(), reason="Elman was built without its kernels"),
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, forks"),
]

BEGIN = """
import os, sys, time
import numpy as np, torch
import elman.nn
from elman import kernels
from elman.runtime import Encoder, Engine
from tests.runtime.networks import make
from tests.runtime.test_encoder import Network

def tasks():
    return set(os.listdir("/proc/self/task"))

ids = np.arange(41)[None] % 27

def kernel(threads=2):  # whose steps are worth two threads
    return engine.log_probs(ids[:, :-1], ids[:, 1:])[0] if threads == 2 else alone.log_probs(ids[:, :-1], ids[:, 1:])[0]

network = make("lstm", hidden=200)
engine, alone = Engine.of(network, threads=2), Engine.of(network, threads=1)
"""


def python(code: str, begin: str = BEGIN, **environment: str) -> str:
    command = [sys.executable, "-c", begin + code]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_pool_is_pytorchs_whatever_was_imported_before() -> None:
    pytest.importorskip("sklearn")
    shown = "from elman import kernels; print(kernels.native.thread_library())"
    assert python("import sklearn.ensemble; " + shown, begin="") == python(shown, begin="")


def test_the_team_is_always_as_large_as_pytorchs() -> None:
    """With another size OpenMP ends threads and starts others."""
    python("""
torch.set_num_threads(4)
numbers = torch.zeros(2**20)
numbers.exp()
before = tasks()
for _ in range(3):
    kernel()
    numbers.exp()
assert tasks() == before, (before, tasks())
""")


def test_more_threads_than_pytorchs_may_be_asked_for() -> None:
    code = """
before = tasks()
assert np.array_equal(kernel(2), kernel(1))
assert len(tasks()) == len(before) + 1
"""
    python(code, OMP_NUM_THREADS="1")


def test_a_pool_of_our_own_lasts() -> None:
    out = python(
        """
from concurrent.futures import ThreadPoolExecutor
print(kernels.native.thread_library())
before = tasks()
right = kernel(1)
assert np.array_equal(kernel(2), right)
during = tasks()
assert len(during) == len(before) + 1
layer, x = elman.nn.GRU(64, 128, backend="compiled"), torch.randn(20, 40, 64)
expected = layer(x)[0]
torch.set_num_threads(2)
for _ in range(20):
    assert np.array_equal(kernel(2), right)
    assert torch.equal(layer(x)[0], expected)
assert during <= tasks()
with ThreadPoolExecutor(3) as pool:  # one of them has it, the others run alone meanwhile
    assert all(np.array_equal(found, right) for found in pool.map(lambda _: kernel(2), range(60)))
""",
        ELMAN_OWN_THREADS="1",
        OMP_NUM_THREADS="1",
    )
    assert out == "std::thread"


@pytest.mark.parametrize("own", [False, True], ids=["PyTorch's", "own"])
def test_a_forked_process_runs_on_one_thread(own: bool) -> None:
    python(
        """
torch.set_num_threads(2)
torch.zeros(2**20).exp()
network = Network(hidden=100)
encoder, texts, lengths = network.encoder(threads=2), np.ones((200, 7), np.float32), [20] * 10
layer, x = elman.nn.LSTM(32, 64, backend="compiled"), torch.randn(50, 32, 32)
layer.requires_grad_(False)
right, read, learnt = kernel(2), encoder(texts, lengths), layer(x)[0]
child = os.fork()
if child == 0:
    before = tasks()
    same = np.array_equal(kernel(2), right) and np.allclose(encoder(texts, lengths), read, atol=1e-6)
    same = same and np.array_equal(layer(x)[0].numpy(), learnt.numpy())  # PyTorch itself would hang
    os._exit(0 if same and tasks() == before else 1)
for _ in range(600):
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        break
    time.sleep(0.1)
else:
    os.kill(child, 9)
    os.waitpid(child, 0)
    sys.exit("the child hangs")
assert status == 0, status
""",
        **({"ELMAN_OWN_THREADS": "1"} if own else {}),
    )


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_a_long_call(threads: int) -> None:
    """Of a layer, there and back, of the engine, the encoder and the tagger: each would take 20 seconds or more."""
    out = python(
        """
import signal, threading
network = make("lstm", hidden=1024)
engine = Engine.of(network, threads=THREADS)
encoder = Network(hidden=2048).encoder(threads=THREADS)
torch.set_num_threads(THREADS)
layer = elman.nn.GRU(1, 2048, backend="compiled").requires_grad_(False)
text = np.zeros((1, 100_000), np.int32)
numbers = torch.zeros(6000, 1, 1)
few = layer(numbers[:2])
tags, places, steps = 100, 600_000, 200_000  # of the tagger; of the backward pass

def row(size):
    return np.zeros((1, size), np.float32)

def backward_pass():
    matrix, kept = np.zeros((1024, 1024), np.float32), {name: np.zeros((steps, 1024), np.float32) for name in "abc"}
    direction = {"weight_hh": matrix, "before": kept["a"], "last": row(1024), "d_gates": kept["b"]}
    kernels.native.recurrence(True, "RNN_TANH", 0, 1024, 1024, THREADS, [1] * steps, kept["c"], {}, [direction])

def tagger():
    emissions, lengths = np.zeros((places, tags), np.float32), np.full(places // 100, 100)
    kernels.native.viterbi(emissions, lengths, row(tags)[0], np.zeros((tags, tags), np.float32), row(tags)[0])

calls = {
    "layer": lambda: layer(numbers),
    "backward pass": backward_pass,
    "scores": lambda: engine.log_probs(text, text),
    "prompt": lambda: list(engine.generate([[1] * 100_000], length=1)),
    "writing": lambda: list(engine.generate([[1]], length=100_000)),
    "encoder": lambda: encoder(np.zeros((2500, 7), np.float32), [2500]),
    "texts": lambda: encoder(np.zeros((120_000, 7), np.float32), [60] * 2000),
    "tagger": tagger,
}
for name, call in calls.items():
    asked, finished = [], False

    def interrupt():
        asked.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(1, interrupt)
    timer.start()
    try:
        call()
        finished = True
        time.sleep(1)
    except KeyboardInterrupt:
        late = time.monotonic() - asked[0]
        if late > 2:
            print(name, "ended after", late)
    if finished:
        print(name, "was too quick")
    timer.join()
assert np.isfinite(engine.log_probs(text[:, :50], text[:, :50])[0]).all(), "all goes on afterwards"
assert torch.equal(layer(numbers[:2])[0], few[0])
""".replace("THREADS", str(threads))
    )
    assert out == ""


def test_what_was_written_before_ctrl_c_is_not_lost() -> None:
    python(
        """
import signal, threading
engine = Engine.of(make("lstm", hidden=2048), threads=1)
request = dict(length=300, temperature=1.0, top_k=0, top_p=1.0, repetition_penalty=1.0, seed=0, stop_ids=[])
request |= dict(prompts=[[1], [2, 3]], suppressed=[], first_stream=0, label=0, threads=1)

def writing():
    return kernels.native.generate(engine=engine._native, **request)

right, finished = writing().advance(400), False
half = writing()
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    half.advance(400)
    finished = True
    time.sleep(1)
except KeyboardInterrupt:
    assert not finished, "it was too quick"
found = [half.advance(3), half.advance(1)]
while len(found[-1]):
    found.append(half.advance(50))
assert [len(some) for some in found[:2]] == [3, 1]
assert np.array_equal(np.concatenate(found), right)
"""
    )


def test_only_the_main_thread_asks_for_pythons_lock() -> None:
    """No other sees a signal, so a worker computes on while something else holds the lock."""
    python(
        """
import ctypes, threading
text = np.zeros((1, 400_000), np.int32)  # a minute or so, most of which is never computed
engine = Engine.of(make("lstm", hidden=1024), threads=1)
worker = threading.Thread(target=lambda: engine.log_probs(text, text), daemon=True)
worker.start()
time.sleep(0.5)

def computed():  # seconds
    fields = open(f"/proc/self/task/{worker.native_id}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

before = computed()
ctypes.PyDLL(None).sleep(3)  # with the lock
took = computed() - before
os._exit(0 if took > 0.4 else 1)
"""
    )


@pytest.mark.parametrize("value", ["", "0"])
def test_a_pool_of_our_own_can_be_said_no_to(value: str) -> None:
    shown = "from elman import kernels; print(kernels.native.thread_library())"
    assert python(shown, begin="", ELMAN_OWN_THREADS=value) == python(shown, begin="")
