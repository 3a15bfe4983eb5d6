"""What PyTorch's own module tests ask of `nn.RNN`, `nn.LSTM` and `nn.GRU`, asked of Elman's layers.

The samples (constructor arguments and inputs, references, errors) are those of the installed PyTorch.
"""

import copy
import io
import pickle
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck
from torch.testing._internal.common_modules import ModuleInfo, ModuleInput, module_db
from torch.utils._pytree import tree_flatten, tree_map

import elman.nn

INFOS = {info.module_cls.__name__: info for info in module_db if info.module_cls in (nn.RNN, nn.LSTM, nn.GRU)}
EACH = pytest.mark.parametrize("name", INFOS)
TRAINING = pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])


def samples(
    name: str, dtype: torch.dtype = torch.float32, training: bool = True, requires_grad: bool = False
) -> Iterator[tuple[nn.RNNBase, ModuleInput]]:
    """Every sample that PyTorch has for a module, each with Elman's layer made for it."""
    info: ModuleInfo = INFOS[name]
    options = {"device": "cpu", "dtype": dtype, "requires_grad": requires_grad, "training": training}
    torch.manual_seed(0)
    given = info.module_inputs_func(info, **options)
    assert len(given) > 10
    for sample in given:
        made = sample.constructor_input
        layer = getattr(elman.nn, name)(*made.args, **made.kwargs, dtype=dtype)
        yield layer.train(training), sample


def call(layer: nn.Module, sample: ModuleInput) -> Any:
    return layer(*sample.forward_input.args, **sample.forward_input.kwargs)


def tensors(nested: Any) -> list[Tensor]:
    return [leaf for leaf in tree_flatten(nested)[0] if isinstance(leaf, Tensor)]


def total(nested: Any) -> Tensor:
    return sum(part.sum() for part in tensors(nested))


def copied(sample: ModuleInput, change: Callable[[Tensor], Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call, each tensor changed."""
    given = sample.forward_input
    return tree_map(lambda x: change(x) if isinstance(x, Tensor) else x, (given.args, given.kwargs))


def test_all_three_have_samples() -> None:
    assert set(INFOS) == {"RNN", "LSTM", "GRU"}


@EACH
@TRAINING
@DTYPES
def test_forward_and_backward_are_torchs(name: str, training: bool, dtype: torch.dtype) -> None:
    for layer, sample in samples(name, dtype, training, requires_grad=True):
        theirs = INFOS[name].module_cls(*sample.constructor_input.args, **sample.constructor_input.kwargs, dtype=dtype)
        theirs.train(training).load_state_dict(layer.state_dict())
        leaves = [x for x in tensors((sample.forward_input.args, sample.forward_input.kwargs)) if x.requires_grad]
        found = []
        for module in (theirs, layer):
            torch.manual_seed(0)
            output = call(module, sample)
            found.append((output, torch.autograd.grad(total(output), [*leaves, *module.parameters()])))
        torch.testing.assert_close(found[1][0], found[0][0])
        rounding = {"atol": 1e-4, "rtol": 1e-4} if dtype == torch.float32 else {}  # of sums of large inputs
        torch.testing.assert_close(found[1][1], found[0][1], **rounding)
        if sample.reference_fn is not None:
            args, kwargs = copied(sample, lambda x: x)
            torch.testing.assert_close(found[1][0], sample.reference_fn(layer, *args, **kwargs))


@EACH
@TRAINING
def test_made_for_a_device_and_type(name: str, training: bool) -> None:
    info = INFOS[name]
    for sample in info.module_inputs_func(
        info, device="cpu", dtype=torch.float32, requires_grad=False, training=training
    ):
        made = sample.constructor_input
        for options in ({"dtype": torch.float64}, {"device": "meta"}, {"device": "cpu", "dtype": torch.float16}):
            layer = getattr(elman.nn, name)(*made.args, **made.kwargs, **options)
            for weight in layer.parameters():
                assert weight.dtype == options.get("dtype", torch.float32)
                assert weight.device.type == options.get("device", "cpu")


@EACH
@TRAINING
def test_pickles_copies_and_saved_layers_compute_the_same(name: str, training: bool) -> None:
    for layer, sample in samples(name, training=training):
        layer.eval()
        expected = call(layer, sample)
        saved = io.BytesIO()
        torch.save(layer, saved)
        saved.seek(0)
        twins = [pickle.loads(pickle.dumps(layer)), copy.deepcopy(layer), torch.load(saved, weights_only=False)]
        loaded = type(layer)(*sample.constructor_input.args, **sample.constructor_input.kwargs).eval()
        loaded.load_state_dict(layer.state_dict())
        for twin in (*twins, loaded):
            torch.testing.assert_close(call(twin, sample), expected, atol=0, rtol=0)


@EACH
def test_representation_is_torchs(name: str) -> None:
    for layer, sample in samples(name):
        made = sample.constructor_input
        assert repr(layer) == str(layer) == repr(INFOS[name].module_cls(*made.args, **made.kwargs))


@EACH
def test_training_and_evaluating_differ_by_the_flag_alone(name: str) -> None:
    for layer, sample in samples(name):
        layer.train()
        assert layer.training
        layer.eval()
        assert not layer.training
        first, second = call(layer, sample), call(layer, sample)
        torch.testing.assert_close(first, second, atol=0, rtol=0)


@EACH
@TRAINING
def test_inputs_that_are_not_contiguous(name: str, training: bool) -> None:
    def spread(x: Tensor) -> Tensor:
        if not x.is_floating_point() or x.dim() < 2:
            return x.detach().clone()
        wide = torch.stack([x.detach(), torch.full_like(x, torch.nan)], dim=-1)[..., 0]
        assert not wide.is_contiguous()
        return wide.requires_grad_(x.requires_grad)

    for layer, sample in samples(name, torch.float64, training, requires_grad=True):
        found = []
        for change in (lambda x: x.detach().clone().requires_grad_(x.requires_grad), spread):
            args, kwargs = copied(sample, change)
            leaves = [x for x in tensors((args, kwargs)) if x.requires_grad]
            output = layer(*args, **kwargs)
            found.append((output, torch.autograd.grad(total(output), [*leaves, *layer.parameters()])))
        torch.testing.assert_close(found[1], found[0])


@EACH
def test_channels_last_changes_nothing(name: str) -> None:
    """No tensor has four dimensions, and PyTorch's own modules return theirs contiguous here."""
    for layer, sample in samples(name):
        expected = call(layer, sample)
        output = call(layer.to(memory_format=torch.channels_last), sample)
        torch.testing.assert_close(output, expected, atol=0, rtol=0)
        assert [x.is_contiguous() for x in tensors(output)] == [x.is_contiguous() for x in tensors(expected)]


@EACH
@DTYPES
def test_to_another_type_and_back(name: str, dtype: torch.dtype) -> None:
    for layer, sample in samples(name):
        expected = call(layer, sample)
        args, kwargs = copied(sample, lambda x, dtype=dtype: x.to(dtype) if x.is_floating_point() else x)
        converted = layer.to(dtype)
        output = converted(*args, **kwargs)
        assert all(x.dtype == dtype for x in tensors(output) if x.is_floating_point())
        close = {"atol": 1e-5, "rtol": 1e-4, "check_dtype": False}
        torch.testing.assert_close(output, expected, **close)
        torch.testing.assert_close(call(converted.to(torch.float32), sample), expected, **close)


@EACH
def test_room_on_another_device(name: str) -> None:
    for layer, sample in samples(name):
        state = copy.deepcopy(layer.state_dict())
        expected = call(layer, sample)
        emptied = layer.to("meta").to_empty(device="cpu")
        emptied.load_state_dict(state)
        torch.testing.assert_close(call(emptied, sample), expected, atol=0, rtol=0)


@EACH
def test_wrong_inputs_raise_torchs_errors(name: str) -> None:
    info = INFOS[name]
    if info.module_error_inputs_func is None:
        pytest.skip("this PyTorch has no wrong inputs for it")
    wrong = info.module_error_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=False)
    for case in wrong:
        made = case.module_error_input.constructor_input
        given = case.module_error_input.forward_input
        with pytest.raises(case.error_type):
            layer = getattr(elman.nn, name)(*made.args, **made.kwargs)
            layer(*given.args, **given.kwargs)


def small(name: str) -> Iterator[tuple[Callable[..., Any], list[Tensor]]]:
    """Every sample as a function of all that has a gradient, the weights too."""
    for layer, sample in samples(name, torch.float64, training=False, requires_grad=True):
        (x, *state), kwargs = sample.forward_input.args, sample.forward_input.kwargs
        if kwargs or not isinstance(x, Tensor):
            continue
        names, weights = zip(*layer.named_parameters(), strict=True)
        flat, structure = tree_flatten(state)

        def function(
            x: Tensor, *others: Tensor, layer: Any = layer, names: Any = names, structure: Any = structure
        ) -> tuple[Tensor, ...]:
            count = structure.num_leaves
            given = structure.unflatten(others[:count])
            weights = dict(zip(names, others[count:], strict=True))
            return tuple(tensors(torch.func.functional_call(layer, weights, (x, *given))))

        leaves = [part.detach().clone().requires_grad_() for part in (x, *flat, *weights)]
        yield function, leaves


@EACH
def test_gradients_are_those_of_differences(name: str) -> None:
    for function, leaves in small(name):
        assert gradcheck(function, leaves, fast_mode=True)


@EACH
def test_second_derivatives_are_those_of_differences(name: str) -> None:
    for function, leaves in islice(small(name), None, None, 7):  # the options of the samples go in powers of two
        assert gradgradcheck(function, leaves, fast_mode=True, check_undefined_grad=False)
