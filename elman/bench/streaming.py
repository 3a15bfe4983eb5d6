"""Writing with a character model, one token after the other: the loops that people write, ONNX Runtime, Elman.

All of them run the same network (embedding, LSTM, softmax) and draw the next character at temperature 1.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from itertools import product
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from elman.bench import machine
from elman.bench.machine import Follow, interleave
from elman.nn.language import LanguageNetwork
from elman.nn.recurrent import Recurrent
from elman.nn.softmax import ChunkedSoftmax
from elman.runtime import Engine

LSTM, CELL, ONNX, FLOAT, INT8 = "nn.LSTM", "nn.LSTMCell", "ONNX Runtime", "Elman float32", "Elman int8"
VOCABULARY = 96
HIDDEN, LAYERS, STREAMS = (128, 256, 512), (1, 2), (1, 16)
ONNX_OPSET, ONNX_FORMAT = 17, 8  # old enough for any ONNX Runtime of the last years

State = Any
Write = Callable[[int], object]
"""Writes so many tokens in each stream."""


@dataclass(frozen=True)
class StreamingCase:
    """A model, and how many texts it writes at once."""

    hidden: int
    layers: int
    streams: int

    def network(self) -> LanguageNetwork:
        """The model, with random weights: an embedding as wide as the LSTM, and a softmax."""
        torch.manual_seed(0)
        body = Recurrent("lstm", self.hidden, self.hidden, self.layers, batch_first=True)
        softmax = ChunkedSoftmax(self.hidden, VOCABULARY)
        return LanguageNetwork(nn.Embedding(VOCABULARY, self.hidden), [body], softmax).eval()

    def weight_bytes(self, int8: bool = False) -> int:
        """What Elman reads for one step: every matrix but the first layer's input, which is a table of tokens.

        >>> StreamingCase(hidden=128, layers=1, streams=1).weight_bytes()
        313728
        """
        rows = 4 * self.hidden
        matrices = [(rows, self.hidden)] * (2 * self.layers - 1) + [(VOCABULARY, self.hidden)]
        numbers = sum(height * width for height, width in matrices)
        floats = (self.layers - 1) * rows + VOCABULARY + self.streams * rows  # biases; a row of the table each
        if int8:
            return numbers + 4 * (floats + sum(height for height, _ in matrices))  # a scale for every row
        return 4 * (numbers + floats)


@dataclass(frozen=True)
class StreamingRow:
    """What was measured for one case, by writer."""

    case: StreamingCase
    tokens_per_second: dict[str, float]
    gigabytes_per_second: dict[str, float]
    """Of Elman's: how fast memory of the size of its weights can be read, in a cache or not."""

    @property
    def of_bandwidth(self) -> dict[str, float]:
        """Of Elman's: how much of that its weights alone take up."""
        found = {}
        for who, limit in self.gigabytes_per_second.items():
            steps = self.tokens_per_second[who] / self.case.streams
            found[who] = steps * self.case.weight_bytes(who == INT8) / (limit * 1e9)
        return found

    def ratio(self, who: str, peer: str) -> float | None:
        """How many times faster one is than the other; None where one of them was not measured."""
        return machine.ratio(self.tokens_per_second, who, peer)


@dataclass(frozen=True)
class StreamingReport:
    """All rows of one run."""

    facts: dict[str, Any]
    rows: list[StreamingRow]
    skipped: list[str]
    """A line for each peer that is not installed."""

    def record(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {"machine": self.facts, "rows": [_record(row) for row in self.rows], "skipped": self.skipped}


def _record(row: StreamingRow) -> dict[str, Any]:
    speeds = row.tokens_per_second
    return asdict(row.case) | {
        "tokens_per_second": speeds,
        "microseconds_a_token": {who: 1e6 / speed for who, speed in speeds.items()},
        "ratio": {
            who: {peer: row.ratio(who, peer) for peer in (LSTM, ONNX) if peer in speeds} for who in (FLOAT, INT8)
        },
        "weight_bytes": {who: row.case.weight_bytes(who == INT8) for who in (FLOAT, INT8)},
        "memory_gigabytes_per_second": row.gigabytes_per_second,
        "of_bandwidth": row.of_bandwidth,
    }


def run(
    *,
    quick: bool = False,
    seconds: float | None = None,
    threads: int | None = None,
    follow: Follow | None = None,
) -> StreamingReport:
    """Measure every case (where quick, one stream and hidden 128 and 512), `seconds` on each (3; 0.5 where quick)."""
    machine.need_kernels()
    chosen = cases(quick=quick)
    budget = seconds if seconds is not None else 0.5 if quick else 3.0
    with machine.using_threads(threads), torch.inference_mode():
        rows = machine.all_rows(chosen, lambda case: measure(case, budget), follow)
        return StreamingReport(machine.facts(), rows, skipped())


def cases(*, quick: bool = False) -> list[StreamingCase]:
    """What is measured."""
    found = product(HIDDEN[::2], LAYERS[:1], STREAMS[:1]) if quick else product(HIDDEN, LAYERS, STREAMS)
    return [StreamingCase(hidden, layers, streams) for hidden, layers, streams in found]


def skipped() -> list[str]:
    """A line for each peer that cannot be used."""
    return machine.not_measured(ONNX, {"onnx": ["onnx"], "onnxruntime": ["onnxruntime"]})


def measure(case: StreamingCase, seconds: float) -> StreamingRow:
    """Time one case, every writer in turn."""
    writers = {who: _timed(write, seconds / 20) for who, write in writers_of(case).items()}
    best = interleave([work for work, _ in writers.values()], seconds)
    lengths = [length for _, length in writers.values()]
    speeds = [case.streams * length / took for took, length in zip(best, lengths, strict=True)]
    limits = {who: machine.gigabytes_per_second(case.weight_bytes(who == INT8), seconds / 20) for who in (FLOAT, INT8)}
    return StreamingRow(case, dict(zip(writers, speeds, strict=True)), limits)


def _timed(write: Write, seconds: float) -> tuple[Callable[[], object], int]:
    """A piece of work that takes about so long, and how many tokens a stream it writes."""
    write(8)
    start = time.perf_counter()
    write(16)
    length = int(np.clip(16 * seconds / (time.perf_counter() - start), 16, 10_000))
    return lambda: write(length), length


def writers_of(case: StreamingCase) -> dict[str, Write]:
    """Everyone who can write on this machine."""
    network = case.network()
    loops: dict[str, Loop] = {LSTM: LSTMLoop(network), CELL: CellLoop(network)}
    if not skipped():
        loops[ONNX] = OnnxLoop(network, case.streams, torch.get_num_threads())
    writers: dict[str, Write] = {who: _writer(loop, case.streams) for who, loop in loops.items()}
    for who in (FLOAT, INT8):
        writers[who] = _engine_writer(Engine.of(network, int8=who == INT8), case.streams)
    return writers


def _engine_writer(engine: Engine, streams: int) -> Write:
    return lambda length: list(engine.generate([[0]] * streams, length=length, temperature=1.0, seed=1))


def _writer(loop: "Loop", streams: int) -> Write:
    def write(length: int) -> list[Any]:
        ids, state = loop.start(streams)
        written = []
        for _ in range(length):
            logits, state = loop.step(ids, state)
            ids = loop.draw(logits)
            written.append(ids)
        return written

    return write


class Loop(Protocol):
    """How a peer writes: read one id a stream, get logits (B x V), draw the next ids (B)."""

    def start(self, streams: int) -> tuple[Any, State]: ...

    def step(self, ids: Any, state: State) -> tuple[Any, State]: ...

    def draw(self, logits: Any) -> Any: ...


class LSTMLoop:
    """`torch.nn.LSTM` called with one step at a time."""

    def __init__(self, network: LanguageNetwork) -> None:
        self.embedding, self.linear = _ends(network)
        size, layers = self.embedding.embedding_dim, len(_weights(network))
        self.lstm = nn.LSTM(size, size, layers)
        for depth, weights in enumerate(_weights(network)):
            for name, weight in weights.items():
                getattr(self.lstm, f"{name}_l{depth}").data.copy_(weight)

    def start(self, streams: int) -> tuple[Tensor, State]:
        """Ids and state of texts of which nothing was read yet."""
        zeros = torch.zeros(self.lstm.num_layers, streams, self.lstm.hidden_size)  # L x B x H
        return torch.zeros(streams, dtype=torch.long), (zeros, zeros)

    def step(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        """The logits after one more id a text."""
        output, state = self.lstm(self.embedding(ids).unsqueeze(0), state)  # 1 x B x H
        return self.linear(output[0]), state  # B x V

    def draw(self, logits: Tensor) -> Tensor:
        """As people do it in PyTorch."""
        return torch.multinomial(logits.softmax(dim=-1), 1).squeeze(1)  # B


class CellLoop(LSTMLoop):
    """A loop over `torch.nn.LSTMCell`."""

    def __init__(self, network: LanguageNetwork) -> None:
        super().__init__(network)
        size = self.embedding.embedding_dim
        self.cells = [nn.LSTMCell(size, size) for _ in _weights(network)]
        for cell, weights in zip(self.cells, _weights(network), strict=True):
            for name, weight in weights.items():
                getattr(cell, name).data.copy_(weight)

    def start(self, streams: int) -> tuple[Tensor, State]:
        ids, (h, c) = super().start(streams)
        return ids, [(h[0], c[0]) for _ in self.cells]

    def step(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        x, after = self.embedding(ids), []  # B x H
        for cell, old in zip(self.cells, state, strict=True):
            new = cell(x, old)
            after.append(new)
            x = new[0]
        return self.linear(x), after


class OnnxLoop:
    """ONNX Runtime on a graph of one step, with the state going in and coming out."""

    def __init__(self, network: LanguageNetwork, streams: int, threads: int) -> None:
        runtime: Any = import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        graph = onnx_step(network, streams)
        self.session = runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        inputs = self.session.get_inputs()
        self.names = [given.name for given in inputs]
        self.shapes = [given.shape for given in inputs[1:]]
        self.random = np.random.default_rng(1)

    def start(self, streams: int) -> tuple[NDArray[np.int64], State]:
        """Ids and state of texts of which nothing was read yet."""
        return np.zeros(streams, dtype=np.int64), [np.zeros(shape, dtype=np.float32) for shape in self.shapes]

    def step(self, ids: NDArray[np.int64], state: State) -> tuple[NDArray[np.float32], State]:
        """The logits after one more id a text."""
        logits, *after = self.session.run(None, dict(zip(self.names, (ids[None], *state), strict=True)))
        return logits, after

    def draw(self, logits: NDArray[np.float32]) -> NDArray[np.int64]:
        """As people do it in NumPy, without the slow parts."""
        sums = np.exp(logits - logits.max(axis=1, keepdims=True)).cumsum(axis=1)  # B x V
        chosen = (sums > self.random.random((len(sums), 1)) * sums[:, -1:]).argmax(axis=1)  # B
        return np.asarray(chosen, dtype=np.int64)


def onnx_step(network: LanguageNetwork, streams: int) -> bytes:
    """The graph of one step: ids (1 x B) and every layer's h and c (1 x B x H) to logits and the new h and c."""
    onnx: Any = import_module("onnx")
    make, whole = onnx.helper, onnx.TensorProto
    embedding, linear = _ends(network)
    size = embedding.embedding_dim
    weights = {"embedding": embedding.weight, "softmax": linear.weight, "softmax_bias": linear.bias}
    nodes = [make.make_node("Gather", ["embedding", "ids"], ["x0"])]  # 1 x B x H
    states = []
    for depth, layer in enumerate(_weights(network), start=1):
        w, r, b = (f"{name}{depth}" for name in "wrb")
        weights[w] = _onnx_gates(layer["weight_ih"]).unsqueeze(0)
        weights[r] = _onnx_gates(layer["weight_hh"]).unsqueeze(0)
        weights[b] = torch.cat([_onnx_gates(layer["bias_ih"]), _onnx_gates(layer["bias_hh"])]).unsqueeze(0)
        given = [f"x{depth - 1}", w, r, b, "", f"h{depth}", f"c{depth}"]
        # With a single step the final h is the output as the next layer takes it.
        nodes.append(make.make_node("LSTM", given, ["", f"x{depth}", f"c{depth}_after"], hidden_size=size))
        states += [(f"h{depth}", f"x{depth}"), (f"c{depth}", f"c{depth}_after")]
    nodes.append(make.make_node("Squeeze", [f"x{depth}", "first"], ["top"]))  # B x H
    nodes.append(make.make_node("Gemm", ["top", "softmax", "softmax_bias"], ["logits"], transB=1))

    def number(name: str, *shape: int) -> Any:
        return make.make_tensor_value_info(name, whole.FLOAT, shape)

    inputs = [make.make_tensor_value_info("ids", whole.INT64, (1, streams))]
    inputs += [number(before, 1, streams, size) for before, _ in states]
    outputs = [number("logits", streams, VOCABULARY), *(number(after, 1, streams, size) for _, after in states)]
    constants = {name: weight.detach().numpy() for name, weight in weights.items()} | {"first": np.zeros(1, np.int64)}
    kept = [onnx.numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in constants.items()]
    graph = make.make_graph(nodes, "step", inputs, outputs, kept)
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", ONNX_OPSET)], ir_version=ONNX_FORMAT)
    return bytes(model.SerializeToString())


def _onnx_gates(weight: Tensor) -> Tensor:
    """From PyTorch's order of the gates (i, f, g, o) to that of ONNX (i, o, f, g)."""
    i, f, g, o = weight.detach().chunk(4)
    return torch.cat([i, o, f, g])


def _ends(network: LanguageNetwork) -> tuple[nn.Embedding, nn.Linear]:
    """The embedding and the softmax's product."""
    embedding, softmax = network.embedding, network.softmax
    assert isinstance(embedding, nn.Embedding)
    assert isinstance(softmax, ChunkedSoftmax)
    linear = nn.Linear(softmax.hidden_size, softmax.vocab_size)
    linear.load_state_dict(softmax.state_dict())
    return embedding, linear


def _weights(network: LanguageNetwork) -> list[dict[str, Tensor]]:
    """The weights of each layer, by name."""
    layers: Any = network.bodies[0]
    return [{name.removesuffix("_l0"): weight for name, weight in layer.named_parameters()} for layer in layers.layers]
