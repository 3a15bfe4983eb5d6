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
    """Of a layer, forwards and backwards, of the engine and the encoder: each would take some seconds more."""
    out = python(
        """
import signal, threading
network = make("lstm", hidden=1024)
engine = Engine.of(network, threads=THREADS)
encoder = Network(hidden=1024).encoder(threads=THREADS)
torch.set_num_threads(THREADS)
layer = elman.nn.GRU(1, 1024, backend="compiled")
text = np.zeros((1, 20_000), np.int32)
numbers = torch.zeros(6000, 1, 1)
with torch.no_grad():
    few = layer(numbers[:2])
output = elman.nn.RNN(1, 1024, backend="compiled")(torch.zeros(20_000, 1, 1))[0].sum()
calls = {
    "layer": lambda: layer(numbers),
    "way back": lambda: output.backward(),
    "scores": lambda: engine.log_probs(text, text),
    "prompt": lambda: list(engine.generate([[1] * 20_000], length=1)),
    "encoder": lambda: encoder(np.zeros((12_000, 7), np.float32), [12_000]),
    "texts": lambda: encoder(np.zeros((24_000, 7), np.float32), [60] * 400),
}
for name, call in calls.items():
    told = []

    def interrupt():
        told.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.3, interrupt)
    timer.start()
    try:
        call()
        time.sleep(1)
        print(name, "was too quick")
    except KeyboardInterrupt:
        late = time.monotonic() - told[0]
        if late > 4:
            print(name, "ended after", late)
    timer.join()
assert np.isfinite(engine.log_probs(text[:, :50], text[:, :50])[0]).all(), "all goes on afterwards"
assert torch.equal(layer(numbers[:2])[0], few[0])
""".replace("THREADS", str(threads))
    )
    assert out == ""
