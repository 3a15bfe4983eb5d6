"""The experiments: each in a small size, what it measures, and what is said of wrong options."""

import itertools
import json
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import elman.lab
from elman.errors import UserError
from elman.lab import bptt, bptt_numpy, gradients, languages, memory, minimal, minimal_numpy
from elman.lab.networks import LabNetwork, layer_of, set_weights
from elman.nn.cells import ElmanCell
from tests.cli.invoke import invoke

SMALL: dict[str, dict[str, Any]] = {
    "gradients": {"cells": ("rnn", "lstm"), "seeds": 2, "steps": 24, "hidden": 8, "updates": 3},
    "memory": {"cells": ("lstm",), "seeds": 1, "distances": (2, 3), "hidden": 8, "updates": 30},
    "bptt": {"seeds": 2, "steps": 12, "truncations": (1, 4, 12)},
    "languages": {"cells": ("lstm",), "seeds": 1, "hidden": 6, "updates": 5},
    "minimal": {"updates": 20, "hidden": 10},
    "init": {"seeds": 1, "hidden": 8, "steps": 32, "updates": 5},
    "agreement": {"cells": ("rnn",), "seeds": 1, "hidden": 8, "updates": 5, "pairs": 5},
}


@pytest.mark.parametrize("name", SMALL)
def test_every_experiment_says_its_claim_its_numbers_and_a_verdict(name: str, tmp_path: Path) -> None:
    before = torch.get_num_threads()
    outcome = elman.lab.run(name, **SMALL[name])
    assert torch.get_num_threads() == before
    told = json.loads(json.dumps(outcome.to_dict()))
    assert told["experiment"] == name and told["claim"]
    assert told["holds"] is None if name == "memory" else isinstance(told["holds"], bool)
    titles = [panel.title for panel in outcome.page().columns[0].panels]
    assert titles[:2] == ["the claim", "verdict"] and len(titles) > 3
    outcome.save(tmp_path / "page.html")
    assert outcome.experiment.claim[:30] in (tmp_path / "page.html").read_text()
    assert set(SMALL) == set(elman.lab.EXPERIMENTS)


def test_what_was_not_run_is_not_decided() -> None:
    """The claim is about two cells: without them nothing holds, and nothing was measured beyond the first failure."""
    outcome = elman.lab.run("memory", cells=("rnn", "lstm"), distances=(5, 10), seeds=1, hidden=4, updates=1)
    assert outcome.holds is None and "Not decided" in outcome.page().columns[0].panels[1].text  # type: ignore[attr-defined]
    assert [one.scores[10] for one in outcome.data.results] == [[None]] * 4
    assert elman.lab.run("gradients", cells=("rnn",), seeds=1, steps=8, hidden=4, updates=0).holds is None


def test_the_same_seeds_give_the_same_numbers() -> None:
    one, other = (elman.lab.run("gradients", **SMALL["gradients"]).data for _ in range(2))
    assert one == other


# Gradients


def test_gradients_are_those_of_autograd_through_the_layer() -> None:
    """The share that each step has of the gradient of the input weights, against weights of its own for every step."""
    torch.manual_seed(0)
    layer = layer_of("lstm", 4, 5)
    x = gradients.one_hot(gradients.brackets(1, 6, np.random.default_rng(0)))
    found = gradients.input_gradients(layer, x)
    cell = gradients.cell_of(layer)
    weights = [cell.weight_ih.detach().clone().requires_grad_() for _ in range(6)]
    state = cell.initial_state(1, x)
    for step, weight in zip(x.unbind(1), weights, strict=True):
        state = cell.with_weights(weight_ih=weight)(step, state)
    error = torch.randn(state[0].shape, generator=torch.Generator().manual_seed(0))
    norms = [float(g.norm()) for g in torch.autograd.grad((state[0] * error).sum(), weights)]
    assert found == pytest.approx([norm / norms[-1] for norm in norms], rel=1e-4)


def test_no_gradient_of_a_plain_network_is_above_its_bound() -> None:
    for seed in range(3):
        torch.manual_seed(seed)
        layer = layer_of("rnn", 4, 12)
        set_weights(layer, "normal 0.1")
        x = gradients.one_hot(gradients.brackets(1, 20, np.random.default_rng(seed)))
        cell = gradients.cell_of(layer)
        projected = [cell.project(step).detach().requires_grad_() for step in x.unbind(1)]
        states = [cell.initial_state(1, x)]
        for one in projected:
            states.append(cell.step(one, states[-1]))
        outputs = [state[0] for state in states[1:]]
        norms = [float(g.norm()) for g in torch.autograd.grad(outputs[-1].sum(), outputs)]
        bound = gradients.singular_bound(layer, 20)
        assert all(norm <= most * norms[-1] * 1.001 for norm, most in zip(norms, bound, strict=True))


def test_a_forget_gate_that_is_open_lets_gradients_pass() -> None:
    reached = []
    for bias in (0.0, 2.0):
        torch.manual_seed(0)
        layer = layer_of("lstm", 4, 16)
        set_weights(layer, "uniform", bias)
        x = gradients.one_hot(gradients.brackets(4, 64, np.random.default_rng(0)))
        reached.append(gradients.reach(gradients.input_gradients(layer, x)))
    assert reached[1] > 2 * reached[0]


def test_products_shrink_where_the_largest_singular_value_is_below_one() -> None:
    for seed in range(5):
        for largest in (0.5, 0.9):
            norms = gradients.relu_product(largest, np.random.default_rng(seed)).norms
            assert all(after <= largest * before * 1.0001 for before, after in itertools.pairwise(norms))
    grown = [gradients.relu_product(None, np.random.default_rng(seed)).norms for seed in range(10)]
    assert max(norms[-1] / norms[0] for norms in grown) > 1e6


def test_clipping_keeps_updates_small_at_the_cliff() -> None:
    free, norm, value = (gradients.descend(one) for one in ("none", "norm", "value"))
    assert norm.furthest <= 0.1 + 1e-6 and value.furthest <= 0.1 + 1e-6
    assert free.furthest > 100 * norm.furthest and free.losses[-1] > norm.losses[-1]


class LeakyCell(ElmanCell):
    """A cell of the user's own."""

    def step(self, projected: torch.Tensor, state: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        return (0.5 * state[0] + 0.5 * super().step(projected, state)[0],)


def test_a_class_of_the_users_own_is_measured_too() -> None:
    outcome = elman.lab.run("gradients", cells=(LeakyCell, "rnn"), seeds=1, steps=16, hidden=6, updates=1)
    assert [curve.cell for curve in outcome.data.curves] == ["LeakyCell", "RNN (tanh)"]
    assert outcome.data.curves[0].norms != outcome.data.curves[1].norms


# Backpropagation through time


def test_the_derivation_by_hand_equals_autograd_term_by_term() -> None:
    network = bptt_numpy.Network.draw(hidden=5, steps=9, seed=3)
    ours, theirs = bptt_numpy.by_hand(network), bptt.by_autograd(network)
    for name in ("U", "W_h", "W_e"):
        assert np.allclose(getattr(ours, name), getattr(theirs, name), rtol=0, atol=1e-12)
    assert not ours.W_h[2, 3:].any(), "no loss reaches a later step"


def test_truncation_at_the_whole_length_is_the_full_gradient() -> None:
    terms = bptt_numpy.by_hand(bptt_numpy.Network.draw(5, 9, 3)).W_h
    assert np.allclose(bptt.truncated(terms, 9), terms.sum(axis=(0, 1)))
    angles = [bptt.angle(bptt.truncated(terms, k), terms.sum(axis=(0, 1))) for k in (1, 3, 9)]
    assert angles[0] > angles[1] > angles[2] == pytest.approx(0, abs=1e-4)


# Memory


def test_tasks_need_what_stands_at_their_beginning() -> None:
    chance = np.random.default_rng(0)
    x, y = memory.adding_batch(50, 10, chance)
    assert x.shape == (50, 11, 2) and torch.allclose((x[:, :, 0] * x[:, :, 1]).sum(dim=1, keepdim=True), y)
    assert (x[:, :, 1].sum(dim=1) == 2).all() and (x[:, 0, 1] == 1).all()
    x, y = memory.copy_batch(50, 10, chance)
    assert (x[:, :3].argmax(dim=2) == y).all() and x.shape[1] == 3 + 9 + 3


def test_a_network_that_has_learned_goes_on_to_the_next_distance() -> None:
    found = memory.remember(memory.TASKS[0], "gru", (2, 3), 24, 700, 1)
    assert found.scores[2][0] >= memory.LEARNED and found.scores[3][0] > 0.5
    assert found.longest.mean == (3 if found.scores[3][0] >= memory.LEARNED else 2)
    stopped = memory.remember(memory.TASKS[1], "gru", (2, 3), 24, 1, 1)
    assert 0 < stopped.scores[2][0] < memory.LEARNED
    assert not stopped.scores[3][0] and stopped.longest.mean == 0  # which was not tried


# Languages


@pytest.mark.parametrize("language", languages.LANGUAGES)
def test_words_of_a_language_and_what_may_follow(language: str) -> None:
    symbols, make = languages.LANGUAGES[language]
    chance = np.random.default_rng(1)
    for n in (1, 2, 5):
        word, after = make(n, chance)
        assert len(word) == n * (3 if "c" in symbols else 2) == len(after)
        assert after[-1] >= {"$"} and all(following in legal for following, legal in zip(word[1:], after, strict=False))
    assert languages.counted(2, "ab") == ("aabb", [{"a", "b"}, {"a", "b"}, {"b"}, {"$"}])


@pytest.mark.parametrize("language", languages.STACKS)
@given(n=st.integers(1, 40), seed=st.integers(0, 99))
def test_a_stack_recognises_every_word_of_brackets_and_a_finite_automaton_those_of_its_depth(
    language: str, n: int, seed: int
) -> None:
    word, after = languages.LANGUAGES[language][1](n, np.random.default_rng(seed))
    stack = languages.STACKS[language]
    assert stack.read(word) == after and stack.accepts(word)
    assert not stack.accepts(word + word[-1]) and not stack.accepts(word[1:])
    finite = stack.finite(21)
    depth = max(accumulate((symbol in stack.pairs) - (symbol not in stack.pairs) for symbol in word))
    assert finite.accepts(word) == (depth <= finite.depth)
    assert finite.states <= 21 < replace(finite, depth=finite.depth + 1).states


def prefixes(longest: int) -> set[frozenset[str]]:
    """The states that aⁿbⁿcⁿ needs up to some n: prefixes of its words differ where different ends complete them."""
    words = ["a" * n + "b" * n + "c" * n for n in range(longest + 1)]
    begun = {word[:length] for word in words for length in range(len(word) + 1)}
    return {frozenset(word[len(one) :] for word in words if word.startswith(one)) for one in begun}


def test_automata_stand_beside_the_cells() -> None:
    finite, stack = languages.recognise("Dyck-2", states=21)
    assert stack.automaton == "stack" and set(stack.accuracy.values()) == {1.0}
    assert finite.accuracy[2] == 1.0 and finite.accuracy[40] < 0.5
    (alone,) = languages.recognise("aⁿbⁿcⁿ", states=16)  # which no stack recognises
    assert alone.accuracy[4] == 1.0 and alone.accuracy[6] == 0.0
    assert len(prefixes(4)) == 16 and len(prefixes(5)) == 22
    assert languages.StackRecogniser({"a": "b"}, turns=True).read("aba") is None


def test_a_cell_that_learns_to_count_has_a_unit_that_follows_the_count() -> None:
    options = languages.LanguageOptions(cells=("lstm",), seeds=1, hidden=8, updates=250)
    found = languages.learn("lstm", "aⁿbⁿ", options)
    assert found.accuracy[4][0] == 1.0
    assert found.counter.correlation > 0.8
    assert max(found.counter.depth) == languages.LONGEST and found.counter.depth[-1] == 0


# The minimal model


def test_the_minimal_model_and_elmans_have_the_same_losses() -> None:
    outcome = elman.lab.run("minimal", updates=60, hidden=20)
    assert outcome.holds and outcome.data.difference < 1e-6
    assert outcome.data.numpy[0][-1] < outcome.data.numpy[0][0]


def test_the_minimal_gradients_are_right() -> None:
    chance = np.random.default_rng(0)
    w = minimal_numpy.draw_weights(5, 4, chance)
    inputs, targets, h = [0, 3, 1, 2], [3, 1, 2, 4], chance.normal(size=4)
    _, found, _ = minimal_numpy.loss_and_gradients(w, inputs, targets, h)
    for name, weight in w.items():
        for place in np.ndindex(weight.shape):
            kept = weight[place]
            weight[place] = kept + 1e-6
            above = minimal_numpy.loss_and_gradients(w, inputs, targets, h)[0]
            weight[place] = kept - 1e-6
            below = minimal_numpy.loss_and_gradients(w, inputs, targets, h)[0]
            weight[place] = kept
            assert found[name][place] == pytest.approx((above - below) / 2e-6, abs=1e-7)


def test_the_minimal_model_is_a_program_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    minimal_numpy.main("abcd" * 50, updates=1000)
    assert "--- 1000: loss" in capsys.readouterr().out
    source = Path(minimal_numpy.__file__).read_text()
    assert len(source.splitlines()) < 140
    assert minimal.default_text().startswith("0 is zero")


# What cannot be asked


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("gradient", {}, "did you mean 'gradients'"),
        ("gradients", {"cells": ("lstn",)}, "there is no cell 'lstn'"),
        ("gradients", {"cells": ()}, "give at least one cell"),
        ("gradients", {"seeds": 0}, "greater than or equal to 1"),
        ("gradients", {"seed": 1}, "seeds"),
        ("memory", {"distances": (0,)}, "whole numbers from 1"),
        ("memory", {"distances": (2, 100_001)}, "from 1 to 100,000"),
        ("bptt", {"truncations": (0,)}, "whole numbers from 1"),
        ("bptt", {"steps": 500, "hidden": 256}, "take over 2 GB"),
        ("gradients", {"forget_bias": 1e9}, "less than or equal to 100"),
        ("minimal", {"rate": 11}, "less than or equal to 10"),
        ("minimal", {"text": "/nope"}, "^no such file: /nope$"),
        ("minimal", {"text": "/dev/zero"}, "no regular file"),
        ("minimal", {"text": "no-such-file.txt"}, "no-such-file.txt"),
    ],
)
def test_what_does_not_fit_is_a_sentence(name: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        elman.lab.run(name, **options)


def test_a_text_of_just_enough_characters_is_learned(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("abcabc")
    asked = {"text": str(text), "updates": 2, "hidden": 3}
    elman.lab.run("minimal", **asked, steps=4)
    with pytest.raises(UserError, match="at least 7 characters"):
        elman.lab.run("minimal", **asked, steps=5)
    text.write_bytes(b"caf\xe9 " * 10)
    with pytest.raises(UserError, match="not UTF-8 at byte 3: convert it to UTF-8"):
        elman.lab.run("minimal", **asked)
    text.write_bytes(b"ab" * 5_000_001)
    with pytest.raises(UserError, match="10,000,002 bytes: give a text of at most 10,000,000"):
        elman.lab.run("minimal", **asked)


def test_the_command_line(tmp_path: Path) -> None:
    code, out, error = invoke("lab")
    assert code == 0 and all(name in out for name in SMALL), error
    code, out, error = invoke("lab", "bptt", "--seeds", "1", "--steps", "8", "--out", str(tmp_path / "bptt.png"))
    assert code == 0 and "It holds" in out, error
    assert (tmp_path / "bptt.png").read_bytes().startswith(b"\x89PNG")
    code, out, _ = invoke("lab", "bptt", "--seeds", "1", "--steps", "8", "--truncations", "2", "--json")
    assert json.loads(out)["angles"].keys() == {"2"}
    code, out, _ = invoke("lab", "bptt", "--help")
    assert "--truncations" in out and "--distances" not in out
    code, _, error = invoke("lab", "bptt", "--distances", "3")
    assert code == 2 and "--distances is an option of memory" in error
    for name in ("a.pdf", "a.gif"):  # it has no film; both are told before anything is computed
        code, _, error = invoke("lab", "bptt", "--out", str(tmp_path / name))
        assert code == 2 and f"{name} should end in .html" in error and "seed 0" not in error


def test_a_film_of_training(tmp_path: Path) -> None:
    outcome = elman.lab.run("gradients", cells=("rnn",), seeds=1, steps=12, hidden=4, updates=3)
    outcome.save(tmp_path / "film.gif")
    assert (tmp_path / "film.gif").read_bytes()[:6] in (b"GIF89a", b"GIF87a")


def test_networks_take_batches_of_sequences() -> None:
    assert LabNetwork("mut1", 3, 5, 2)(torch.zeros(4, 7, 3)).shape == (4, 7, 2)
