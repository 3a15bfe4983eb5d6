import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from elman.nn.embedding import OneHot
from elman.nn.language import LanguageNetwork, detach
from elman.nn.recurrent import Recurrent
from elman.nn.softmax import ChunkedSoftmax
from elman.nn.window import FixedWindow

V, E, H = 7, 5, 6
IDS = torch.tensor([[1, 2, 3, 4, 5], [6, 5, 4, 3, 2], [0, 0, 1, 1, 2]])


def network(kind: str = "lstm", towers: int = 1, labels: int = 0, **options: float) -> LanguageNetwork:
    torch.manual_seed(0)
    size = E + (2 if labels else 0)
    if kind == "window":
        bodies: list = [FixedWindow(size, 3, H) for _ in range(towers)]
    else:
        bodies = [Recurrent(kind, size, H, 2, learned_state=True, batch_first=True) for _ in range(towers)]
        for body in bodies:
            for part in body.initial:
                nn.init.normal_(part)
    label_embedding = nn.Embedding(labels, 2) if labels else None
    return LanguageNetwork(nn.Embedding(V, E), bodies, ChunkedSoftmax(H, V), labels=label_embedding, **options)


@pytest.mark.parametrize("kind", ["lstm", "gru", "window"])
def test_windows_with_a_carried_state_are_one_long_window(kind: str) -> None:
    model = network(kind).eval()
    whole, end = model.hidden(IDS)
    first, state = model.hidden(IDS[:, :2])
    second, after = model.hidden(IDS[:, 2:], detach(state))
    assert torch.allclose(torch.cat([first, second], dim=1), whole, atol=1e-6)
    for a, b in zip(
        end if isinstance(end, tuple) else [end], after if isinstance(after, tuple) else [after], strict=True
    ):
        assert torch.allclose(a, b, atol=1e-6)


@pytest.mark.parametrize("kind", ["lstm", "gru", "window"])
@pytest.mark.parametrize("tower", [0, 1])
def test_forgotten_rows_begin_anew_and_the_others_go_on(kind: str, tower: int) -> None:
    model = network(kind, towers=2).eval()
    fresh, _ = model.hidden(IDS, tower=tower)
    _, state = model.hidden(IDS.flip(1), tower=tower)
    carried, _ = model.hidden(IDS, state, tower=tower)
    mixed, _ = model.hidden(IDS, model.forget(state, torch.tensor([0, 2]), tower), tower=tower)
    assert torch.allclose(mixed[[0, 2]], fresh[[0, 2]], atol=1e-6)
    assert torch.allclose(mixed[1], carried[1], atol=1e-6)
    assert not torch.allclose(carried[0], fresh[0], atol=1e-3)
    assert model.forget(None, torch.tensor([0])) is None


@pytest.mark.parametrize("kind", ["lstm", "gru", "window"])
def test_selected_rows_keep_their_state(kind: str) -> None:
    model = network(kind).eval()
    _, state = model.hidden(IDS)
    rows = torch.tensor([2, 0, 2])
    together, _ = model.hidden(IDS, state)
    picked, _ = model.hidden(IDS[rows], model.select(state, rows))
    assert torch.allclose(picked, together[rows], atol=1e-6)


@pytest.mark.parametrize("kind", ["lstm", "gru", "window"])
def test_lines_are_the_same_as_one_by_one(kind: str) -> None:
    model = network(kind, labels=3).eval()
    lengths, labels = torch.tensor([2, 5, 3]), torch.tensor([0, 2, 1])
    rows, packed = model.hidden_of_lines(IDS, lengths, labels=labels)
    table, _ = nn.utils.rnn.pad_packed_sequence(packed._replace(data=rows), batch_first=True)
    for i, length in enumerate(lengths.tolist()):
        alone, _ = model.hidden(IDS[i : i + 1, :length], labels=labels[i : i + 1])
        assert torch.allclose(table[i, :length], alone[0], atol=1e-6)
    expected = pack_padded_sequence(IDS, lengths, batch_first=True, enforce_sorted=False)
    assert len(rows) == len(expected.data) == 10


def test_the_label_matters_and_must_be_given() -> None:
    model = network(labels=2).eval()
    zeros, ones = (model.hidden(IDS, labels=torch.full((3,), label))[0] for label in (0, 1))
    assert not torch.allclose(zeros, ones, atol=1e-3)
    with pytest.raises(AssertionError, match="labels"):
        model.hidden(IDS)


def test_dropouts_fall_in_training_only() -> None:
    model = network(embedding_dropout=0.5, input_dropout=0.5, output_dropout=0.5)
    assert not torch.equal(model.hidden(IDS)[0], model.hidden(IDS)[0])
    model.eval()
    assert torch.equal(model.hidden(IDS)[0], model.hidden(IDS)[0])


def test_detached_states_stop_the_gradient() -> None:
    model = network("gru")
    _, state = model.hidden(IDS)
    cut = detach(state)
    assert state.requires_grad
    assert not cut.requires_grad
    assert torch.equal(cut, state)
    assert detach(None) is None


def test_one_hot_input_has_no_parameters() -> None:
    assert list(OneHot(4).parameters()) == []
    vectors = OneHot(4)(torch.tensor([[3, 0]]))
    assert vectors.tolist() == [[[0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0]]]
