"""From recurrent networks to translation: the exercises solved."""

import numpy as np
import pytest
import torch

import elman
import elman.nn
from elman.decode import Beam, beam_search, exhaustive


def test_1_an_lstm_that_keeps_its_cell() -> None:
    """Forget gate open (bias 100: σ is 1), input gate shut (-100: σ is 0); the output gate does not matter."""
    lstm = elman.nn.LSTM(3, 4)
    for weight in lstm.parameters():
        weight.data.zero_()
    i, f, _g, _o = lstm.bias_ih_l0.data.chunk(4)  # views into the bias: what is written there is written in the layer
    i.fill_(-100)
    f.fill_(100)
    h, c = torch.randn(1, 1, 4), torch.randn(1, 1, 4)
    _, (_, kept) = lstm(torch.randn(1000, 1, 3), (h, c))
    assert torch.equal(kept, c)


def gru_step(x, h, W, U, b_ih, b_hh, reset_before):
    """One step of a GRU; the blocks of all weights are r, z, n."""
    (W_r, W_z, W_n), (U_r, U_z, U_n) = W.chunk(3), U.chunk(3)
    (i_r, i_z, i_n), (h_r, h_z, h_n) = b_ih.chunk(3), b_hh.chunk(3)
    r = torch.sigmoid(W_r @ x + i_r + U_r @ h + h_r)
    z = torch.sigmoid(W_z @ x + i_z + U_z @ h + h_z)
    if reset_before:  # Cho et al. 2014
        n = torch.tanh(W_n @ x + i_n + U_n @ (r * h) + h_n)
    else:  # libraries: r is applied to the product, its bias among it
        n = torch.tanh(W_n @ x + i_n + r * (U_n @ h + h_n))
    return z * h + (1 - z) * n


def test_2_both_forms_of_the_gru() -> None:
    torch.manual_seed(0)
    x = torch.randn(6, 3)
    cho, library = elman.nn.ChoGRUCell(3, 4), torch.nn.GRU(3, 4)
    state = None
    for x_t in x:
        state = cho(x_t.unsqueeze(0), state)
    nothing = torch.zeros(12)
    weights = [
        cho.weight_ih,
        cho.weight_hh,
        *(nothing if bias is None else bias for bias in (cho.bias_ih, cho.bias_hh)),
    ]
    assert torch.allclose(run(x, weights, reset_before=True), state[0][0], atol=1e-6)
    weights = [library.weight_ih_l0, library.weight_hh_l0, library.bias_ih_l0, library.bias_hh_l0]
    assert torch.allclose(run(x, weights, reset_before=False), library(x)[1][0], atol=1e-6)


def run(x, weights, reset_before):
    h = torch.zeros(4)
    for x_t in x:
        h = gru_step(x_t, h, *weights, reset_before)
    return h


class Tree:
    """Three words and an end; the third word begins badly, and what follows it is certain."""

    first = np.array([0.0, 0.4, 0.35, 0.25])
    second = np.array([[1, 0, 0, 0], [0.4, 0.2, 0.2, 0.2], [0.4, 0.2, 0.2, 0.2], [0, 0, 0, 1]], dtype=float)

    def start(self, batch_size):
        return 0

    def step(self, ids, state):
        ids = np.asarray(ids)
        rows = np.tile(self.first, (len(ids), 1)) if state == 0 else self.second[ids]
        if state == 2:
            rows = np.tile([1.0, 0, 0, 0], (len(ids), 1))
        with np.errstate(divide="ignore"):
            return np.log(rows), state + 1

    def select(self, state, rows):
        return state


def test_3_a_beam_that_is_too_narrow() -> None:
    def best(size):
        return beam_search(Tree(), 1, start_id=0, stop_id=0, beam=Beam(size=size, length=3, length_power=0))[0][0].ids

    best_of_all = exhaustive(Tree(), start_id=0, stop_id=0, length=3)[0].ids
    assert best_of_all == [3, 3, 0]
    assert best(2) != [3, 3] and best(3) == [3, 3]


def test_4_surnames_of_a_language() -> None:
    """Homework: a model that is told a label beside every character writes names of that language."""
    pytest.importorskip("faker")
    from elman.decode import Sampling
    from elman.generated.surnames import surname_lists

    lists = surname_lists()
    names = [(name, language) for language in ("Italian", "Polish") for name in lists[language][:500]]
    settings = {"data.unit": "line", "data.label_column": "1", "data.text_column": "0", "model.hidden": 48}
    settings |= {"model.layers": 1, "model.embedding": 16, "train.steps": 120, "train.lr": 1e-2, "baseline.order": 0}
    frame = {"0": [name for name, _ in names], "1": [language for _, language in names]}
    model = elman.fit("lm", train=frame, settings=settings, verbose=False)
    written = {
        language: model.generate(label=language, samples=40, length=20, stop="\n", sampling=Sampling(seed=1))
        for language in ("Italian", "Polish")
    }
    vowels = {language: sum(name[-1:] in "aeiou" for name in texts) for language, texts in written.items()}
    assert vowels["Italian"] > vowels["Polish"]  # Italian surnames end in vowels
