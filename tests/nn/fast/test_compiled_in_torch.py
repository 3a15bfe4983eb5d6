"""The compiled kernels in PyTorch's company: autograd, `torch.func`, tracing, autocast, several processes."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.autograd import forward_ad
from torch.func import functional_call, functionalize, grad, hessian, jacrev, jvp, stack_module_state, vmap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import elman.nn
from elman import kernels
from elman.nn.fast.backends import choose, run_torch
from tests.nn.parity import KINDS, pair, result, state_for, values

pytestmark = pytest.mark.skipif(not kernels.available(), reason="Elman was built without its kernels")

X, H, B, T = 3, 5, 4, 6
LAYERS = ["RNN", "LSTM", "GRU"]


def make(name: str, backend: str = "compiled", **options: Any) -> nn.RNNBase:
    return getattr(elman.nn, name)(X, H, backend=backend, **options)


def twins(name: str, **options: Any) -> tuple[nn.RNNBase, nn.RNNBase]:
    """The same layer by the readable equations and by the kernels."""
    readable = make(name, "cells", **options)
    compiled = make(name, **options)
    compiled.load_state_dict(readable.state_dict())
    return readable, compiled


def loss(layer: nn.RNNBase, x: Tensor) -> Tensor:
    return layer(x)[0].square().sum()


@pytest.mark.parametrize("kind", KINDS)
def test_without_gradients_the_same_numbers(kind: str) -> None:
    _, layer = pair(kind, "compiled", torch.float32, X, H, num_layers=2, bidirectional=True)
    x = torch.randn(T, B, X)
    expected = layer(x)[0]
    assert expected.requires_grad
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            output = layer(x)[0]
        assert not output.requires_grad
        assert torch.equal(output, expected)


@pytest.mark.parametrize("name", LAYERS)
def test_torch_func(name: str) -> None:
    readable, compiled = twins(name, bidirectional=True, dtype=torch.float64)
    weights, x = dict(compiled.named_parameters()), torch.randn(3, T, 2, X, dtype=torch.float64)

    def of_weights(layer: nn.RNNBase) -> Callable[..., Tensor]:
        return lambda weights, x: functional_call(layer, weights, (x,))[0].square().sum()

    def of_input(layer: nn.RNNBase) -> Callable[[Tensor], Tensor]:
        return lambda x: layer(x)[0][-1]

    single = [grad(of_weights(readable))(weights, each) for each in x]
    each_alone = vmap(grad(of_weights(compiled)), in_dims=(None, 0))(weights, x)
    for key, value in grad(of_weights(compiled))(weights, x[0]).items():
        torch.testing.assert_close(value, single[0][key])
        torch.testing.assert_close(each_alone[key], torch.stack([one[key] for one in single]))
    torch.testing.assert_close(jacrev(of_input(compiled))(x[0]), jacrev(of_input(readable))(x[0]))
    with torch.no_grad():
        torch.testing.assert_close(vmap(of_input(compiled))(x), torch.stack([of_input(readable)(one) for one in x]))


@pytest.mark.parametrize("name", LAYERS)
def test_a_tensor_that_left_a_transform_computes_as_itself(name: str) -> None:
    layer, x, left = make(name), torch.randn(T, B, X), []
    grad(lambda x: (left.append(x), x.sum())[1])(x)
    assert left[0] is not x
    expected, got = layer(x)[0], layer(left[0])[0]
    assert torch.equal(got, expected)
    weights = list(layer.parameters())
    pairs = zip(*(torch.autograd.grad(output.sum(), weights) for output in (got, expected)), strict=True)
    assert all(torch.equal(mine, right) for mine, right in pairs)


def test_an_ensemble_by_vmap() -> None:
    layers = [make("LSTM") for _ in range(3)]
    x, (weights, buffers) = torch.randn(T, B, X), stack_module_state(layers)
    outputs = vmap(lambda w, b: functional_call(layers[0], (w, b), (x,))[0])(weights, buffers)
    torch.testing.assert_close(outputs, torch.stack([layer(x)[0] for layer in layers]))


@pytest.mark.parametrize("lengths", [None, [3, 2]], ids=["padded", "packed"])
@pytest.mark.parametrize("kind", KINDS)
def test_second_and_third_derivatives_are_those_of_the_cells(kind: str, lengths: list[int] | None) -> None:
    _, layer = pair(kind, "auto", torch.float64, X, 4, num_layers=2, bidirectional=True)
    x = torch.randn(3, 2, X, dtype=torch.float64, requires_grad=True)
    leaves, found = [x, *layer.parameters()], []
    for layer.backend in ("auto", "cells"):
        input = x if lengths is None else pack_padded_sequence(x, lengths)
        value = values(layer(input)[0]).square().sum()
        for _ in range(3):
            gradients = torch.autograd.grad(value, leaves, create_graph=True)
            found.append(gradients)
            value = sum(g.square().sum() for g in gradients)
    torch.testing.assert_close(found[:3], found[3:])


@pytest.mark.parametrize("name", LAYERS)
def test_second_derivatives_of_weights_that_two_layers_share(name: str) -> None:
    layers = [make(name, dtype=torch.float64) for _ in range(2)]
    first, second = layers
    second.input_size = H
    second.weight_ih_l0 = second.weight_hh_l0 = first.weight_hh_l0  # so the input of the second is made of its weight
    x, found = torch.randn(3, 2, X, dtype=torch.float64), []
    for backend in ("compiled", "cells"):
        first.backend = second.backend = backend
        value = second(first(x)[0])[0].square().sum()
        (once,) = torch.autograd.grad(value, first.weight_hh_l0, create_graph=True)
        found.append((once, *torch.autograd.grad(once.square().sum(), first.weight_hh_l0)))
    torch.testing.assert_close(found[0], found[1])


@pytest.mark.parametrize("name", LAYERS)
def test_many_gradients_at_once(name: str) -> None:
    readable, compiled = twins(name, bidirectional=True, dtype=torch.float64)
    x = torch.randn(3, 2, X, dtype=torch.float64, requires_grad=True)

    def of_input(x: Tensor) -> Tensor:
        return compiled(x)[0].sin()

    jacobian, hessian = torch.autograd.functional.jacobian, torch.autograd.functional.hessian
    torch.testing.assert_close(jacobian(of_input, x, vectorize=True), jacobian(lambda x: readable(x)[0].sin(), x))
    curved = hessian(lambda x: of_input(x).sum(), x[:2, :1], vectorize=True)
    torch.testing.assert_close(curved, hessian(lambda x: readable(x)[0].sin().sum(), x[:2, :1]))
    given = torch.randn(5, 3, 2, 2 * H, dtype=torch.float64)
    weights = [[x, *layer.parameters()] for layer in (compiled, readable)]
    together = torch.autograd.grad(compiled(x)[0], weights[0], given, is_grads_batched=True)
    alone = [torch.autograd.grad(readable(x)[0], weights[1], one) for one in given]
    torch.testing.assert_close(together, tuple(map(torch.stack, zip(*alone, strict=True))))
    func = torch.func.jacrev(torch.func.jacrev(lambda x: of_input(x).sum()))(x[:2, :1])
    torch.testing.assert_close(func, curved)


@pytest.mark.parametrize("name", LAYERS)
def test_forward_mode_is_refused_in_a_sentence(name: str) -> None:
    layer, x = make(name), torch.randn(T, B, X, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"no derivative in forward mode: .* backend='auto' or backend='cells'"):
        jvp(lambda x: layer(x)[0], (x.detach(),), (torch.ones_like(x),))
    output = layer(x)[0]
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match="no derivative in forward mode"):
        towards = forward_ad.make_dual(torch.ones_like(output), torch.ones_like(output))
        torch.autograd.grad(output, x, towards)


@pytest.mark.parametrize("backend", ["auto", "compiled", "cells", "torch"])
@pytest.mark.parametrize("name", LAYERS)
def test_a_tensor_on_another_device(name: str, backend: str) -> None:
    x, away = torch.randn(T, B, X), torch.zeros(1, B, H, device="meta")
    layer = make(name, backend)
    state = (away, torch.zeros(1, B, H)) if name == "LSTM" else away
    moved = make(name, backend)
    moved.bias_hh_l0 = nn.Parameter(moved.bias_hh_l0.to("meta"))
    own = "not at the same device" if backend in ("auto", "torch") else "meta"
    for module, given in ((layer, (x, state)), (moved, (x,)), (layer, (x.to("meta"),))):
        with pytest.raises(RuntimeError, match=own):
            module(*given)


@pytest.mark.parametrize("kind", KINDS)
def test_two_backward_passes_give_the_same(kind: str) -> None:
    _, layer = pair(kind, "compiled", torch.float32, X, H, bidirectional=True)
    x = torch.randn(T, B, X, requires_grad=True)
    total = loss(layer, x)
    leaves = [x, *layer.parameters()]
    first = torch.autograd.grad(total, leaves, retain_graph=True)
    second = torch.autograd.grad(total, leaves)
    assert all(torch.equal(*both) for both in zip(first, second, strict=True))


@pytest.mark.parametrize("name", LAYERS)
def test_what_was_changed_since_is_noticed(name: str) -> None:
    layer, x = make(name), torch.randn(T, B, X)
    for changed in (x, layer.weight_ih_l0, layer.weight_hh_l0):
        total = loss(layer, x)
        with torch.no_grad():
            changed.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            total.backward()


@pytest.mark.parametrize("bidirectional", [False, True], ids=["one way", "two ways"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_output_changed_in_place_never_makes_a_gradient_wrong(kind: str, bidirectional: bool) -> None:
    _, layer = pair(kind, "compiled", torch.float64, X, H, bidirectional=bidirectional)
    x = torch.randn(T, B, X, dtype=torch.float64)
    leaves = list(layer.parameters())
    expected = torch.autograd.grad((2 * layer(x)[0]).square().sum(), leaves)
    output, state = layer(x)
    output.mul_(2)
    for part in state if isinstance(state, tuple) else [state]:
        part.zero_()
    torch.testing.assert_close(torch.autograd.grad(output.square().sum(), leaves), expected)


@pytest.mark.parametrize("name", LAYERS)
def test_steps_computed_again_for_their_gradient(name: str) -> None:
    layer, x = make(name, num_layers=2), torch.randn(T, B, X, requires_grad=True)
    leaves = [x, *layer.parameters()]
    expected = torch.autograd.grad(loss(layer, x), leaves)
    again = checkpoint(loss, layer, x, use_reentrant=False)
    assert all(torch.equal(*both) for both in zip(torch.autograd.grad(again, leaves), expected, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_tensors_that_are_not_contiguous(kind: str) -> None:
    _, layer = pair(kind, "compiled", torch.float64, X, H)
    x = torch.randn(B, 2 * X, 2 * T, dtype=torch.float64).permute(2, 0, 1)[::2, :, 1::2]  # T x B x X
    state = [part.transpose(1, 2).contiguous().transpose(1, 2) for part in state_for(layer, torch.float64, B)]
    layer.weight_hh_l0.data = layer.weight_hh_l0.data.t().contiguous().t()
    assert not any(tensor.is_contiguous() for tensor in (x, *state, layer.weight_hh_l0))
    got = result(layer, x, state)
    plain = copy.deepcopy(layer)
    plain.weight_hh_l0.data = plain.weight_hh_l0.data.contiguous()
    expected = result(plain, x.contiguous(), [part.contiguous() for part in state])
    for key, value in expected.items():
        torch.testing.assert_close(got[key], value)
    expanded = state[0][:, :1].expand(-1, B, -1), *(part[:, :1].expand(-1, B, -1) for part in state[1:])
    output = layer(x, expanded if len(expanded) == 2 else expanded[0])[0]
    alone = layer(x[:, 2:3], tuple(p[:, :1] for p in expanded) if len(expanded) == 2 else expanded[0][:, :1])[0]
    torch.testing.assert_close(output[:, 2:3], alone)


@pytest.mark.parametrize("kind", KINDS)
def test_frozen_weights_get_no_gradient_and_the_others_theirs(kind: str) -> None:
    _, layer = pair(kind, "compiled", torch.float64, X, H, num_layers=2, bidirectional=True)
    x = torch.randn(T, B, X, dtype=torch.float64)
    loss(layer, x).backward()
    expected = {name: p.grad for name, p in layer.named_parameters()}
    for trained in ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr", "_l1"):
        if not any(trained in name for name in expected):
            continue
        layer.zero_grad()
        for name, p in layer.named_parameters():
            p.requires_grad_(trained in name)
        loss(layer, x).backward()
        for name, p in layer.named_parameters():
            if trained in name:
                torch.testing.assert_close(p.grad, expected[name], msg=name)
            else:
                assert p.grad is None, name


@pytest.mark.parametrize("name", LAYERS)
def test_weights_that_two_layers_share(name: str) -> None:
    def tied(library: Any) -> nn.ModuleList:
        torch.manual_seed(1)
        layers = nn.ModuleList(getattr(library, name)(H, H, dtype=torch.float64) for _ in range(2))
        layers[1].weight_hh_l0 = layers[0].weight_hh_l0
        return layers

    x, gradients = torch.randn(T, B, H, dtype=torch.float64), []
    for layers in (tied(nn), tied(elman.nn)):
        layers[1](layers[0](x)[0])[0].square().sum().backward()
        gradients.append([p.grad for p in layers.parameters()])
    torch.testing.assert_close(gradients[1], gradients[0])


@pytest.mark.parametrize("name", LAYERS)
def test_weight_dropout_drops_the_same_weights_as_on_torchs_path(name: str) -> None:
    theirs = make(name, "torch", weight_dropout=0.5, num_layers=2, dropout=0.3, dtype=torch.float64)
    ours = make(name, weight_dropout=0.5, num_layers=2, dropout=0.3, dtype=torch.float64)
    ours.load_state_dict(theirs.state_dict())
    x, gradients = torch.randn(T, B, X, dtype=torch.float64), []
    for layer in (theirs, ours):
        torch.manual_seed(11)
        gradients.append(torch.autograd.grad(loss(layer, x), list(layer.parameters())))
    torch.testing.assert_close(gradients[1], gradients[0])


class Tagger(nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.encoder = make(name, "auto", batch_first=True, bidirectional=True)
        self.scores = nn.Linear(2 * H, 7)

    def forward(self, x: Tensor) -> Tensor:
        return self.scores(self.encoder(x)[0])


@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("name", LAYERS)
def test_what_records_operations_takes_torchs_path(name: str) -> None:
    tagger, example, x = Tagger(name).eval(), torch.randn(B, T, X), torch.randn(B, T, X)
    expected = tagger(x)
    traced = torch.jit.trace(tagger, example)
    exported = torch.export.export(tagger, (example,)).module()
    compiled = torch.compile(tagger, backend="eager")
    for recorded in (traced, exported, compiled):
        torch.testing.assert_close(recorded(x), expected, atol=1e-5, rtol=0)


class Watching(TorchDispatchMode):
    """Sees every operation, and changes none."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.add(str(func))
        return func(*args, **(kwargs or {}))


class Marked(Tensor):
    """A tensor of another type."""


@pytest.mark.parametrize("name", LAYERS)
def test_what_replaces_operations_takes_torchs_path(name: str) -> None:
    layer, x = make(name, "auto", bidirectional=True), torch.randn(T, B, X)
    expected = layer(x)[0].detach()
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        assert isinstance(shown := layer(mode.from_tensor(x))[0], FakeTensor) and shown.shape == expected.shape
    graph = make_fx(lambda x: layer(x)[0])(torch.randn(T, B, X))
    with Watching() as watching:
        layer(x)
    assert len(watching.seen) > 1  # what the kernels do nobody would see
    functional = functionalize(lambda x: layer(x)[0])
    for found in (graph(x), functional(x), layer(x.as_subclass(Marked))[0].as_subclass(Tensor)):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    weight = {"weight_hh_l0": layer.weight_hh_l0.detach().as_subclass(Marked)}
    assert isinstance(functional_call(layer, weight, (x,))[0], Marked)


@pytest.mark.parametrize("name", LAYERS)
def test_derivatives_in_forward_mode(name: str) -> None:
    layer, readable = make(name, "auto", dtype=torch.float64), make(name, "cells", dtype=torch.float64)
    readable.load_state_dict(layer.state_dict())
    x, weight = torch.randn(T, 2, X, dtype=torch.float64), layer.weight_hh_l0.detach()

    def of_weight(weight: Tensor) -> Tensor:
        return functional_call(layer, {"weight_hh_l0": weight}, (x,))[0]

    for function, at in ((lambda x: layer(x)[0], x), (of_weight, weight)):
        towards = torch.randn_like(at)
        ahead = function(at + 1e-6 * towards) - function(at - 1e-6 * towards)
        torch.testing.assert_close(jvp(function, (at,), (towards,))[1], ahead.detach() / 2e-6, atol=1e-7, rtol=1e-5)
    small = x[:2, :1]
    for chosen in (layer, readable):
        curved = hessian(lambda x, chosen=chosen: loss(chosen, x))(small)
        by_rows = torch.autograd.functional.hessian(lambda x: loss(readable, x), small)
        torch.testing.assert_close(curved, by_rows)


def test_autocast_and_short_numbers_take_torchs_path() -> None:
    x = torch.randn(T, B, X)
    with torch.autocast("cpu", torch.bfloat16):
        assert choose("auto", x) is run_torch
    for dtype in (torch.float16, torch.bfloat16):
        theirs = nn.GRU(X, H, dtype=dtype)
        ours = make("GRU", "auto", dtype=dtype)
        ours.load_state_dict(theirs.state_dict())
        assert torch.equal(ours(x.to(dtype))[0], theirs(x.to(dtype))[0])
    assert choose("auto", x) is not run_torch


def train_apart(rank: int, folder: str) -> None:
    """One of two processes: a backward pass over its half of the batch; the first writes what came of it."""
    torch.set_num_threads(1)
    store = torch.distributed.FileStore(f"{folder}/store", 2)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=2)
    layer, x = torch.load(f"{folder}/layer.pt", weights_only=False)
    wrapped = nn.parallel.DistributedDataParallel(layer)
    loss(wrapped, x[:, 2 * rank : 2 * rank + 2]).backward()
    if rank == 0:
        torch.save([p.grad for p in layer.parameters()], f"{folder}/gradients.pt")
    torch.distributed.destroy_process_group()


def test_two_processes_find_the_gradients_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    layer, x = make("LSTM", num_layers=2, bidirectional=True, dtype=torch.float64), torch.randn(T, B, X).double()
    torch.save((layer, x), tmp_path / "layer.pt")
    torch.multiprocessing.spawn(train_apart, args=(str(tmp_path),), nprocs=2)
    loss(layer, x).backward()
    for got, p in zip(torch.load(tmp_path / "gradients.pt"), layer.parameters(), strict=True):
        torch.testing.assert_close(2 * got, p.grad)  # the mean over the two
