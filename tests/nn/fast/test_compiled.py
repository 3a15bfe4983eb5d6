"""The compiled kernels at every instruction set: against PyTorch, against finite differences, on several threads."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.utils.rnn import pack_sequence

import elman.nn
from elman import kernels
from elman.nn.fast import compiled
from elman.nn.fast.compiled import Shape, run_layer
from tests.nn.parity import KINDS, pair, result, state_for, values

pytestmark = pytest.mark.skipif(not kernels.available(), reason="Elman was built without its kernels")

DTYPES = [torch.float32, torch.float64]
NAMES = ["float32", "float64"]


def assert_near(got: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Equal up to rounding, beside the largest number of each tensor."""
    assert got.keys() == expected.keys()
    for name, value in expected.items():
        close = 3e-5 if value.dtype == torch.float32 else 1e-12
        assert got[name].dtype == value.dtype, name
        scale = max(1.0, float(value.detach().abs().max()))
        difference = float((got[name] - value).detach().abs().max())
        assert difference <= close * scale, f"{name} is off by {difference}, its largest number is {scale}"


def assert_equals_torch(
    kind: str, dtype: torch.dtype, sizes: tuple[int, int, int, int], layout: str, **options: Any
) -> None:
    """PyTorch's results and the kernels' for sizes I, H, B, T."""
    inputs, hidden, batch, steps = sizes
    torch.manual_seed(sum(sizes))
    theirs, ours = pair(kind, "compiled", dtype, inputs, hidden, batch_first=layout == "batch first", **options)
    shape = {"batch first": (batch, steps, inputs), "unbatched": (steps, inputs)}.get(layout, (steps, batch, inputs))
    x, state = torch.randn(shape, dtype=dtype), state_for(theirs, dtype, None if layout == "unbatched" else batch)
    lengths = None
    if layout == "packed":
        lengths = torch.randint(1, steps + 1, (batch,)).tolist()
    elif layout == "packed alike":
        lengths = [steps] * batch
    assert_near(result(ours, x, state, lengths), result(theirs, x, state, lengths))


LAYOUTS = ["padded", "batch first", "unbatched", "packed", "packed alike"]


@pytest.mark.parametrize("dtype", DTYPES, ids=NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_equals_torch_where_blocks_and_chunks_end(instruction_set: str, kind: str, dtype: torch.dtype) -> None:
    """Sums longer than a block, batches larger than a chunk, and the least of everything."""
    assert_equals_torch(kind, dtype, (3, 259, 5, 3), "packed", bidirectional=True)
    assert_equals_torch(kind, dtype, (1, 21, 101, 3), "packed", bidirectional=True, num_layers=2)
    assert_equals_torch(kind, dtype, (2, 33, 49, 2), "padded", bias=False)
    assert_equals_torch(kind, dtype, (263, 35, 50, 3), "packed")
    assert_equals_torch(kind, dtype, (1, 3, 1, 1), "unbatched")


@st.composite
def calls(draw: st.DrawFn) -> dict[str, Any]:
    """Any call of any layer, small numbers and awkward ones."""
    kind = draw(st.sampled_from(list(KINDS)))
    hidden = draw(st.integers(3 if kind == "lstm projected" else 1, 40) | st.sampled_from([63, 67, 130]))
    batch = draw(st.integers(1, 9) | st.sampled_from([47, 48, 50]))
    return {
        "kind": kind,
        "dtype": draw(st.sampled_from(DTYPES)),
        "sizes": (draw(st.integers(1, 9)), hidden, batch, draw(st.integers(1, 7))),
        "layout": draw(st.sampled_from(LAYOUTS)),
        "num_layers": draw(st.integers(1, 2)),
        "bidirectional": draw(st.booleans()),
        "bias": draw(st.booleans()),
    }


@settings(max_examples=60, deadline=None, derandomize=True)
@given(calls())
def test_equals_torch_whatever_the_shape(instruction_set: str, call: dict[str, Any]) -> None:
    assert_equals_torch(**call)


@pytest.mark.slow
@settings(max_examples=1500, deadline=None)
@given(calls())
def test_equals_torch_in_a_long_search(instruction_set: str, call: dict[str, Any]) -> None:
    assert_equals_torch(**call)


@pytest.mark.parametrize("layout", ["padded", "packed, two ways"])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_equal_finite_differences(instruction_set: str, kind: str, layout: str) -> None:
    torch.manual_seed(3)
    _, layer = pair(kind, "compiled", torch.float64, 2, 3, bidirectional=layout != "padded")
    names = [name for name, _ in layer.named_parameters()]
    x = [torch.randn(length, 2, dtype=torch.float64) for length in ((2,) * 4 if layout == "padded" else (1, 3))]
    state = state_for(layer, torch.float64, len(x))
    leaves = [leaf.detach().clone().requires_grad_() for leaf in (*x, *state, *layer.parameters())]

    def outputs(*given: Tensor) -> tuple[Tensor, ...]:
        sequences, others = given[: len(x)], given[len(x) :]
        begin, weights = others[: len(state)], others[len(state) :]
        input = torch.stack(sequences, dim=1) if layout == "padded" else pack_sequence(sequences, enforce_sorted=False)
        arguments = (input, tuple(begin) if len(begin) == 2 else begin[0])
        output, final = torch.func.functional_call(layer, dict(zip(names, weights, strict=True)), arguments)
        return values(output), *(final if len(begin) == 2 else [final])

    assert torch.autograd.gradcheck(outputs, leaves)


@pytest.mark.parametrize("both_ways", [False, True], ids=["one way", "both ways"])
@pytest.mark.parametrize("kind", KINDS)
def test_results_do_not_depend_on_the_threads(
    instruction_set: str, threads: None, monkeypatch: pytest.MonkeyPatch, kind: str, both_ways: bool
) -> None:
    _, layer = pair(kind, "compiled", torch.float32, 5, 37, num_layers=2, bidirectional=both_ways)
    lengths = torch.randint(1, 9, (53,)).tolist()
    x, state = torch.randn(max(lengths), len(lengths), 5), state_for(layer, torch.float32, len(lengths))
    torch.set_num_threads(1)
    monkeypatch.setattr(compiled, "GRAIN", 1)  # as many as there are, however small the work
    alone = result(layer, x, state, lengths)
    for count in (1, 2, 3, 7):  # the kernels' own number: to the last bit, and from run to run
        monkeypatch.setattr(kernels, "threads", lambda count=count: count)
        got = result(layer, x, state, lengths)
        assert all(torch.equal(got[name], value) for name, value in alone.items())
    monkeypatch.undo()
    for count in (2, 3):  # everyone's: PyTorch's products round differently
        torch.set_num_threads(count)
        assert_near(result(layer, x, state, lengths), alone)


def test_several_python_threads_at_once(threads: None) -> None:
    torch.set_num_threads(2)
    together = Barrier(4)
    layers = [pair(kind, "compiled", torch.float32, 8, 50)[1] for kind in ("tanh", "lstm", "lstm projected", "gru")]
    inputs = [(torch.randn(20, 12, 8), state_for(layer, torch.float32, 12)) for layer in layers]
    alone = [result(layer, *given) for layer, given in zip(layers, inputs, strict=True)]

    def run(which: int) -> list[dict[str, Tensor]]:
        together.wait(timeout=60)
        return [result(layers[which], *inputs[which]) for _ in range(10)]

    with ThreadPoolExecutor(4) as pool:
        for expected, found in zip(alone, pool.map(run, range(4)), strict=True):
            for got in found:
                assert_near(got, expected)


def test_one_layer_serves_several_python_threads() -> None:
    _, layer = pair("lstm", "compiled", torch.float32, 4, 24, bidirectional=True)
    inputs = [torch.randn(steps, 3, 4) for steps in range(1, 17)]
    with torch.no_grad():
        alone = [layer(x)[0] for x in inputs]

    def run(x: Tensor) -> Tensor:
        with torch.no_grad():
            return layer(x)[0]

    with ThreadPoolExecutor(4) as pool:
        for got, expected in zip(pool.map(run, inputs), alone, strict=True):
            torch.testing.assert_close(got, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("dtype", DTYPES, ids=NAMES)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("kind", KINDS)
def test_nan_and_infinity_spread_as_in_torch(instruction_set: str, kind: str, bad: float, dtype: torch.dtype) -> None:
    torch.manual_seed(5)
    theirs, ours = pair(kind, "compiled", dtype, 3, 19)
    x, state = torch.randn(4, 5, 3, dtype=dtype), state_for(theirs, dtype, 5)
    x[1, 2, 0] = bad
    expected, got = result(theirs, x, state), result(ours, x, state)
    for name, value in expected.items():
        torch.testing.assert_close(got[name], value, atol=1e-5, rtol=1e-4, equal_nan=True, msg=name)
    rest = [0, 1, 3, 4]
    assert got["output"][:, rest].isfinite().all(), "other sequences see nothing of it"
    assert got["d input"][:, rest].isfinite().all()


@pytest.mark.parametrize("dtype", DTYPES, ids=NAMES)
@pytest.mark.parametrize("kind", ["tanh", "lstm", "lstm projected", "gru"])
def test_large_values_saturate(instruction_set: str, kind: str, dtype: torch.dtype) -> None:
    theirs, ours = pair(kind, "compiled", dtype, 3, 19)
    x = torch.randn(6, 4, 3, dtype=dtype) * torch.logspace(0, 30, 4, dtype=dtype).view(4, 1)
    state = [part * 1e4 for part in state_for(theirs, dtype, 4)]
    expected, got = result(theirs, x, state), result(ours, x, state)
    for name, value in expected.items():
        assert got[name].isfinite().all(), name
        if not name.startswith("d "):
            torch.testing.assert_close(got[name], value, atol=1e-5, rtol=1e-5, msg=name)


def elementwise(mode: str, x: Tensor) -> Tensor:
    """The kernel's nonlinearity of each number, as the gate of a unit without a recurrence."""
    count, blocks = len(x), 4 if mode == "LSTM" else 1
    identity = torch.eye(count, dtype=x.dtype).repeat(blocks, 1)  # of every gate
    zeros = x.new_zeros(blocks * count, count)
    shape = Shape(mode, count, count, projected=False, bias=False, directions=1, batch_sizes=(1,), keep=True)
    state = tuple(x.new_zeros(1, 1, count) for _ in range(shape.parts))
    output, _, kept = run_layer(shape, x.unsqueeze(0), state, [[identity, zeros]])
    return kept[0]["gates"][0, :count] if mode == "LSTM" else output[0]


@pytest.mark.parametrize("dtype", DTYPES, ids=NAMES)
def test_tanh_and_logistic_are_exact_to_the_last_digits(instruction_set: str, dtype: torch.dtype) -> None:
    """Relative to the value, however small it is: near 0 as far out."""
    small = torch.logspace(-30, 0, 200, dtype=torch.float64)
    far = torch.linspace(-80, 80, 401, dtype=torch.float64)
    x = torch.cat([small, -small, far, torch.tensor([0.0, 1e6, -1e6, 1e30, -1e30])]).to(dtype)
    close = 8 * torch.finfo(dtype).eps
    for mode, function in (("RNN_TANH", torch.tanh), ("LSTM", torch.sigmoid)):
        expected = function(x.double())
        got = elementwise(mode, x).double()
        tiny = 1e-38 if dtype == torch.float32 else 1e-300  # the least that a logistic far out comes to
        torch.testing.assert_close(got, expected, rtol=close, atol=tiny, msg=lambda m, mode=mode: f"{mode}: {m}")
        assert got.abs().max() <= 1


@pytest.mark.parametrize("kind", ["tanh", "lstm", "gru"])
def test_tiny_outputs_keep_their_digits(instruction_set: str, kind: str) -> None:
    theirs, ours = pair(kind, "compiled", torch.float32, 4, 19, bias=False)
    for layer in (theirs, ours):
        layer.load_state_dict({name: 1e-6 * torch.ones_like(p) for name, p in layer.state_dict().items()})
    x = torch.rand(5, 3, 4) + 0.5
    expected = theirs.double()(x.double())[0]
    assert expected.abs().min() > 1e-8 and expected.abs().max() < 1e-4
    torch.testing.assert_close(ours(x)[0].double(), expected, rtol=1e-5, atol=0)


def test_nothing_to_compute_on_raises_as_in_torch() -> None:
    for name in ("RNN", "LSTM", "GRU"):
        automatic = getattr(elman.nn, name)(3, 4)
        for empty in (torch.zeros(0, 2, 3), torch.zeros(0, 3)):
            with pytest.raises(RuntimeError, match="larger than 0"):
                automatic(empty)
        assert automatic(torch.zeros(5, 0, 3))[0].shape == (5, 0, 4), "PyTorch computes on no sequence"
        compiled = getattr(elman.nn, name)(3, 4, backend="compiled")
        for empty in (torch.zeros(0, 2, 3), torch.zeros(5, 0, 3)):
            with pytest.raises(RuntimeError, match="at least one step and one sequence"):
                compiled(empty)


def test_a_state_of_another_type_raises_as_in_torch() -> None:
    x, h = torch.zeros(5, 2, 3), torch.zeros(1, 2, 4)
    for name, state in (("RNN", h.double()), ("GRU", h.double()), ("LSTM", (h, h.double())), ("GRU", h.half())):
        for library in (torch.nn, elman.nn):
            with pytest.raises(RuntimeError):
                getattr(library, name)(3, 4)(x, state)
    with pytest.raises(RuntimeError, match=r"torch\.float32 as the input is, got torch\.float64"):
        elman.nn.GRU(3, 4)(x, h.double())


@pytest.mark.parametrize("both_ways", [False, True], ids=["one way", "both ways"])
def test_very_many_sequences(both_ways: bool) -> None:
    """So many that the product of two counts is no int."""
    count = 700_000
    theirs = torch.nn.RNN(1, 1, bidirectional=both_ways)
    ours = elman.nn.RNN(1, 1, bidirectional=both_ways, backend="compiled")
    ours.load_state_dict(theirs.state_dict())
    inputs = torch.linspace(-1, 1, count).view(1, count, 1)
    found = []
    for layer in (theirs, ours):
        x = inputs.clone().requires_grad_()
        output, last = layer(x)
        output.sum().backward()
        assert x.grad is not None
        found.append((output.detach(), last.detach(), x.grad))
    for got, expected in zip(found[1], found[0], strict=True):
        torch.testing.assert_close(got, expected, atol=1e-6, rtol=1e-5)


def test_very_many_steps() -> None:
    """As many in one call as in two, the second going on from the first's state."""
    layer, x = elman.nn.LSTM(1, 1, backend="compiled"), torch.linspace(-1, 1, 700_000).view(-1, 1, 1)
    with torch.no_grad():
        output, (h, c) = layer(x)
        first, state = layer(x[:350_000])
        second, (h_2, c_2) = layer(x[350_000:], state)
    assert torch.equal(output, torch.cat([first, second])) and torch.equal(h, h_2) and torch.equal(c, c_2)
