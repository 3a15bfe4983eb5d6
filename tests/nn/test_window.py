"""The feed-forward body: a window that streams."""

import pytest
import torch

from elman.nn import FixedWindow


@pytest.mark.parametrize("window", [1, 2, 5])
def test_streaming_equals_one_pass(window: int) -> None:
    layer, x = FixedWindow(3, window, 4), torch.randn(2, 7, 3)
    whole, end = layer(x)
    state, outputs = None, []
    for step in x.split([1, 3, 1, 2], dim=1):
        output, state = layer(step, state)
        outputs.append(output)
    torch.testing.assert_close(torch.cat(outputs, dim=1), whole)
    assert state is not None
    assert torch.equal(state, end)
    assert end.shape == (2, window - 1, 3)


def test_an_output_sees_its_window_and_no_more() -> None:
    layer, x = FixedWindow(3, 3, 4), torch.randn(1, 6, 3, requires_grad=True)
    layer(x)[0][0, 4].sum().backward()
    assert (x.grad[0].abs().sum(dim=-1) > 0).tolist() == [False, False, True, True, True, False]


def test_equation() -> None:
    layer, x = FixedWindow(2, 2, 4), torch.randn(1, 2, 2)
    expected = torch.tanh(layer.hidden.weight @ torch.cat((x[0, 0], x[0, 1])) + layer.hidden.bias)
    torch.testing.assert_close(layer(x)[0][0, 1], expected)


def test_dropout_only_while_training() -> None:
    layer, x = FixedWindow(3, 2, 50, dropout=0.5), torch.randn(2, 7, 3)
    assert (layer(x)[0] == 0).any()
    assert torch.equal(layer.eval()(x)[0], layer(x)[0])


def test_wrong_input_raises() -> None:
    with pytest.raises(ValueError, match="window must be at least 1"):
        FixedWindow(3, 0, 4)
    layer = FixedWindow(3, 2, 4)
    with pytest.raises(ValueError, match="B x T x 3"):
        layer(torch.zeros(2, 7, 5))
    with pytest.raises(RuntimeError, match="expected a state of"):
        layer(torch.zeros(2, 7, 3), torch.zeros(1, 1, 3))
