"""docs/errata.md: every check runs, every test that it names is there, and what is wrong differs from what is right."""

import ast
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elman.decode import Sampling, next_ids
from elman.lab.gradients import relu_product
from elman.metrics import bleu
from elman.nn import ElmanCell
from elman.train.optimizer import clip
from elman.train.recipe import TrainSettings

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
ENTRIES = dict(re.findall(r"^### ([A-Z]\d?-\d+)\. .*?\n(.*?)(?=^##|\Z)", PAGE, flags=re.MULTILINE | re.DOTALL))
BLOCKS = [
    pytest.param(block, id=name)
    for name, entry in ENTRIES.items()
    for block in re.findall(r"```python\n(.*?)```", entry, flags=re.DOTALL)
]


@pytest.mark.parametrize("block", BLOCKS)
def test_the_check_runs(block: str) -> None:
    torch.manual_seed(0)
    lines = PAGE[: PAGE.index(block)].count("\n")  # so that a failure names its line of the page
    exec(compile("\n" * lines + block, str(ROOT / "docs" / "errata.md"), "exec"), {"__name__": "errata"})
    assert any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(block))), "a check asserts something"


def test_every_entry_says_where_what_stands_there_what_is_right_and_has_a_check() -> None:
    assert len(ENTRIES) == len(re.findall(r"^### ", PAGE, flags=re.MULTILINE)) > 60
    for name, entry in ENTRIES.items():
        for part in ("where", "there", "right"):
            assert entry.count(f"- {part}: ") == 1, f"{name}: {part}"
        assert "```python" in entry or "- check: `tests/" in entry, name
    for letter in ("M1", "C", "B", "W", "M2"):
        numbers = [int(name.partition("-")[2]) for name in ENTRIES if name.partition("-")[0] == letter]
        assert numbers == list(range(1, len(numbers) + 1)), letter


def test_every_test_that_is_named_is_there() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert named
    for file, name in named:
        assert re.search(rf"^def {name}\(", (ROOT / file).read_text(encoding="utf-8"), flags=re.MULTILINE), name


# The main ones, whatever the numbers


@settings(deadline=None)
@given(st.lists(st.floats(-4, 4), min_size=2, max_size=8), st.data())
def test_the_gradient_of_the_logits(q: list[float], data: st.DataObject) -> None:
    """B eq. 37 as it stands there is -y - Σ_k≠l y_k ŷ_l; by eq. 24 and 36 it is ŷ - y."""
    target = data.draw(st.integers(0, len(q) - 1))
    logits = torch.tensor(q, dtype=torch.float64, requires_grad=True)
    (true,) = torch.autograd.grad(torch.nn.functional.cross_entropy(logits, torch.tensor(target)), logits)
    p, y = logits.softmax(0).detach(), torch.eye(len(q), dtype=torch.float64)[target]
    there = -y - (1 - y) * p
    torch.testing.assert_close(true, p - y)
    assert (there - true).abs().max() > 1e-4


@settings(deadline=None)
@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=20), st.floats(0, 1, exclude_max=True))
def test_the_inverse_transform(weights: list[float], u: float) -> None:
    """M2's inequality chooses the first id always; the right one is what `next_ids` has."""
    p = np.array(weights) / np.sum(weights)
    v = p.cumsum()
    chosen = next_ids(np.log(p)[None], Sampling(), None, np.array([u])).item()
    assert np.argmax(u > v) == 0
    if abs(v - u).min() > 1e-9:
        assert chosen == min(int(np.argmax(u < v)) if (u < v).any() else len(p) - 1, len(p) - 1)


@settings(deadline=None)
@given(st.lists(st.floats(-50, 50), min_size=1, max_size=6), st.floats(0.1, 10))
def test_clipping_by_norm(values: list[float], most: float) -> None:
    """B's algorithm 3, and M2's; divided by the threshold and multiplied by it again, nothing is clipped."""
    weight, gradient = torch.nn.Parameter(torch.zeros(len(values))), torch.tensor(values)
    weight.grad = gradient.clone()
    norm = clip(TrainSettings(clip_norm=most), [weight])
    right = gradient * most / norm if norm >= most else gradient
    torch.testing.assert_close(weight.grad, right, rtol=1e-4, atol=1e-5)
    if norm > 1.01 * most:
        assert (gradient / most * most).norm() > weight.grad.norm()


@pytest.mark.parametrize("seed", range(5))
def test_jacobians_do_not_commute(seed: int) -> None:
    """M1's slides and B eq. 67 gather the powers of W_hh; the bound of their norms holds for both."""
    torch.manual_seed(seed)
    cell, start = ElmanCell(3, 6, dtype=torch.float64), torch.zeros(1, 6, dtype=torch.float64)
    x, W = torch.randn(4, 1, 3, dtype=torch.float64), cell.weight_hh.detach()

    def last(h: torch.Tensor) -> torch.Tensor:
        for step in x:
            (h,) = cell(step, (h,))
        return h

    true = torch.func.jacrev(last)(start)[0, :, 0].detach()
    h, slopes, product = start, torch.eye(6, dtype=torch.float64), torch.eye(6, dtype=torch.float64)
    for step in x:
        (h,) = cell(step, (h,))
        slope = torch.diag(1 - h[0].detach() ** 2)
        slopes, product = slope @ slopes, slope @ W @ product
    torch.testing.assert_close(product, true)
    gathered = slopes @ torch.linalg.matrix_power(W, 4)
    assert (gathered - true).norm() > 0.05 * true.norm()
    bound = torch.linalg.matrix_norm(W, ord=2) ** 4 * (1 + 1e-9)
    assert torch.linalg.matrix_norm(true, ord=2) <= bound and torch.linalg.matrix_norm(gathered, ord=2) <= bound


@pytest.mark.parametrize("seed", range(5))
def test_the_mask_of_relu_is_that_of_its_output(seed: int) -> None:
    """What `elman.lab` multiplies through is autograd's gradient; by M1's mask it would be another."""
    found = relu_product(None, np.random.default_rng(seed), T=5)
    chance = np.random.default_rng(seed)
    W, first = chance.normal(size=(5, 5)), chance.normal(size=5)
    error = chance.normal(size=5)
    h, states = torch.tensor(first), []
    for _ in range(5):
        h = torch.relu(torch.tensor(W) @ h).requires_grad_()
        states.append(h)
    norms = [torch.autograd.grad(h @ torch.tensor(error), state, retain_graph=True)[0].norm() for state in states]
    assert found.norms == pytest.approx([float(norm) for norm in reversed(norms)])


@pytest.mark.parametrize("order", [2, 3, 4])
def test_the_weights_of_bleu_are_a_mean(order: int) -> None:
    """w_n = 1/N: one wrong word costs as much as sacrebleu says; 1/n would sum to more than 1."""
    from sacrebleu import BLEU

    said, right = "a b c d e f g h", "a b c d e x g h"
    found = bleu([said.split()], [[right.split()]], order=order)
    theirs = BLEU(tokenize="none", smooth_method="none", max_ngram_order=order).corpus_score([said], [[right]])
    logs = [math.log(p) for p in found.precisions]
    assert 100 * found.brevity_penalty * math.exp(sum(logs) / order) == pytest.approx(theirs.score)
    there = math.exp(sum(log / n for n, log in enumerate(logs, start=1)))
    assert there < 0.95 * found.score and sum(1 / n for n in range(1, order + 1)) > 1
