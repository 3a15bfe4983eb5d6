"""The CRF: equal to adding up all tag sequences one by one, forbidden ones never among them."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from math import exp

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from elman import kernels
from elman.nn.crf import CRF, Forbidden, forbidden_transitions

Path = tuple[int, ...]


@dataclass
class Case:
    crf: CRF
    emissions: Tensor
    lengths: Tensor
    allowed: list[dict[Path, float]]
    """The score of every allowed tag sequence, for each row of the batch."""


@torch.no_grad()
def score_by_hand(crf: CRF, emissions: Tensor, path: Path) -> float:
    """s(x, y) of one path; -inf where it is forbidden."""
    steps = list(pairwise(path))
    if crf.forbidden_start[path[0]] or crf.forbidden_end[path[-1]]:
        return -torch.inf
    if any(crf.forbidden_transitions[step] for step in steps):
        return -torch.inf
    total = crf.start[path[0]] + crf.end[path[-1]] + sum(crf.transitions[step] for step in steps)
    return float(total + sum(emissions[t, tag] for t, tag in enumerate(path)))


def make_case(tags: int, lengths: list[int], seed: int, forbid: float) -> Case:
    torch.manual_seed(seed)
    masks = Forbidden(*(torch.rand(shape) < forbid for shape in [(tags,), (tags, tags), (tags,)]))
    crf = CRF(tags, masks).double()
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter)
    emissions = 2 * torch.randn(len(lengths), max(lengths) + 1, tags, dtype=torch.float64)
    for row, length in enumerate(lengths):
        emissions[row, length:] = torch.nan  # what lies behind the end must not be read
    allowed = []
    for row, length in enumerate(lengths):
        scores = {path: score_by_hand(crf, emissions[row], path) for path in product(range(tags), repeat=length)}
        allowed.append({path: score for path, score in scores.items() if score > -torch.inf})
    return Case(crf, emissions, torch.tensor(lengths), allowed)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Small CRFs; those that leave a row without any allowed sequence are dropped."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    case = make_case(
        draw(st.integers(1, 4)), lengths, draw(st.integers(0, 10**6)), draw(st.sampled_from([0, 0.15, 0.4]))
    )
    while not all(case.allowed):
        case = make_case(case.crf.tags, lengths, draw(st.integers(0, 10**6)), 0.1)
    return case


def rows(case: Case) -> Iterator[tuple[int, int, dict[Path, float]]]:
    return ((row, int(case.lengths[row]), scores) for row, scores in enumerate(case.allowed))


def log_sum(scores: dict[Path, float]) -> float:
    return float(torch.tensor(list(scores.values()), dtype=torch.float64).logsumexp(0))


@settings(deadline=None, max_examples=60)
@given(cases(), st.data())
def test_log_likelihood_is_that_of_enumeration(case: Case, data: st.DataObject) -> None:
    tags = torch.full(case.emissions.shape[:2], -100)
    expected = []
    for row, length, scores in rows(case):
        path = data.draw(st.sampled_from(sorted(scores)))
        tags[row, :length] = torch.tensor(path)
        expected.append(scores[path] - log_sum(scores))
    torch.testing.assert_close(case.crf(case.emissions, tags, case.lengths).tolist(), expected)


@settings(deadline=None, max_examples=60)
@given(cases())
def test_best_path_is_that_of_enumeration(case: Case) -> None:
    paths, best = case.crf.best_paths(case.emissions, case.lengths)
    for row, length, scores in rows(case):
        assert tuple(paths[row, :length].tolist()) == max(scores, key=scores.__getitem__)
        assert float(best[row]) == pytest.approx(max(scores.values()))
        assert not paths[row, length:].any()


@settings(deadline=None, max_examples=60)
@given(cases(), st.integers(1, 20))
def test_n_best_paths_are_those_of_enumeration(case: Case, n: int) -> None:
    paths, best = case.crf.n_best_paths(case.emissions, case.lengths, n)
    for row, length, scores in rows(case):
        expected = sorted(scores, key=scores.__getitem__, reverse=True)[:n]
        found = [tuple(path) for path in paths[row, :, :length].tolist()]
        assert found[: len(expected)] == expected
        assert best[row, : len(expected)].tolist() == pytest.approx([scores[path] for path in expected])
        assert best[row, len(expected) :].tolist() == [-torch.inf] * (n - len(expected))
        assert not paths[row, :, length:].any()
        assert not paths[row, len(expected) :].any()


@settings(deadline=None, max_examples=60)
@given(cases())
def test_marginals_are_those_of_enumeration(case: Case) -> None:
    expected = torch.zeros_like(case.emissions)
    for row, length, scores in rows(case):
        for path, score in scores.items():
            expected[row, torch.arange(length), torch.tensor(path)] += exp(score - log_sum(scores))
    marginals = case.crf.marginals(case.emissions, case.lengths)
    torch.testing.assert_close(marginals, expected, atol=1e-12, rtol=0)
    assert (marginals[expected == 0] == 0).all(), "what is forbidden has probability 0, not nearly 0"


@pytest.mark.parametrize("forbid", [0.0, 0.3])
def test_gradients(forbid: float) -> None:
    case = next(case for case in (make_case(3, [3, 1, 4], seed, forbid) for seed in range(100)) if all(case.allowed))
    crf = case.crf
    emissions = case.emissions.nan_to_num(0).requires_grad_()
    tags, _ = crf.best_paths(emissions, case.lengths)

    def likelihood(emissions: Tensor, *_: Tensor) -> Tensor:
        return crf(emissions, tags, case.lengths)

    inputs = (emissions, *crf.parameters())
    assert torch.autograd.gradcheck(likelihood, inputs, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(likelihood, inputs, fast_mode=True)


def test_gradient_of_what_is_forbidden_is_zero() -> None:
    crf = CRF(3, forbidden_transitions(["O", "B-x", "I-x"]))
    emissions = torch.full((2, 50, 3), 30.0).requires_grad_()
    crf(emissions, torch.zeros(2, 50, dtype=torch.long), torch.tensor([50, 7])).sum().backward()
    assert emissions.grad is not None and crf.transitions.grad is not None and crf.start.grad is not None
    assert emissions.grad.isfinite().all() and crf.transitions.grad.isfinite().all()
    assert crf.transitions.grad[0, 2] == 0 and crf.start.grad[2] == 0
    assert crf.transitions.grad[0, 1] != 0


def test_forbidden_stays_forbidden_however_good_it_looks() -> None:
    names = ["O", "B-x", "I-x", "B-y", "I-y"]
    crf = CRF(5, forbidden_transitions(names))
    emissions = 1000 * torch.randn(20, 200, 5, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        crf.transitions.copy_(1e4 * crf.forbidden_transitions)
    lengths = torch.arange(10, 210, 10)
    paths, scores = crf.best_paths(emissions, lengths)
    several, _ = crf.n_best_paths(emissions, lengths, 3)
    torch.testing.assert_close(crf.score(emissions, paths, lengths), scores)
    for tags in (paths, *several.unbind(1)):
        assert crf.score(emissions, tags, lengths).isfinite().all()  # it raises on a forbidden step
        assert not crf.forbidden_start[tags[:, 0]].any()
    assert crf.marginals(emissions, lengths)[:, 0, [2, 4]].eq(0).all()


def test_learns_what_only_transitions_can_tell() -> None:
    torch.manual_seed(0)
    crf = CRF(2)
    tags = torch.tensor([[0, 1, 0, 1, 0]])
    emissions, lengths = torch.zeros(1, 5, 2), torch.tensor([5])
    optimizer = torch.optim.Adam(crf.parameters(), lr=0.5)
    for _ in range(30):
        optimizer.zero_grad()
        (-crf(emissions, tags, lengths).sum()).backward()
        optimizer.step()
    assert torch.equal(crf.best_paths(emissions, lengths)[0], tags)
    assert crf.marginals(emissions, lengths).gather(2, tags.unsqueeze(2)).min() > 0.95


def test_a_saved_crf_forbids_the_same() -> None:
    crf = CRF(3, forbidden_transitions(["O", "B-x", "I-x"]))
    loaded = CRF(3)
    loaded.load_state_dict(crf.state_dict())
    emissions = torch.tensor([[[0.0, 0.0, 9.0]]])
    assert loaded.best_paths(emissions, torch.tensor([1]))[0].item() != 2


def test_works_in_inference_mode() -> None:
    crf = CRF(3)
    with torch.inference_mode():
        emissions, lengths = torch.zeros(2, 4, 3), torch.tensor([4, 2])
        assert crf.marginals(emissions, lengths).sum() == pytest.approx(6)
        assert crf.best_paths(emissions, lengths)[0].shape == (2, 4)


BIO = ["O", "B-x", "I-x", "B-y", "I-y"]
BIOES = ["O", *(f"{letter}-{kind}" for kind in "xy" for letter in "BIES")]


def valid(path: list[str], *, closed: bool) -> bool:
    """Read from left to right, as the definition of the scheme says it."""
    inside = ""
    for tag in path:
        letter, _, kind = tag.partition("-")
        if letter in "IE" and kind != inside:
            return False
        if closed and inside and letter not in "IE":
            return False
        inside = kind if letter in "BI" else ""
    return not (closed and inside)


@pytest.mark.parametrize(("names", "closed"), [(BIO, False), (BIOES, True), (["O", "B", "I"], False)])
def test_schemes_forbid_exactly_what_is_invalid(names: list[str], closed: bool) -> None:
    read = [name if "-" in name or name == "O" else f"{name}-z" for name in names]  # B, I without a kind: all of one
    forbidden = forbidden_transitions(names)
    for length in (1, 2, 3):
        for path in product(range(len(names)), repeat=length):
            free = not (
                forbidden.start[path[0]]
                or forbidden.end[path[-1]]
                or any(forbidden.transitions[step] for step in pairwise(path))
            )
            assert free == valid([read[tag] for tag in path], closed=closed), path


@pytest.mark.parametrize("names", [["NOUN", "VERB"], ["O", "I-x"], ["O", "E-mail", "phone"], ["O", "B-x", "S-x"], []])
def test_other_tags_are_free(names: list[str]) -> None:
    assert not any(mask.any() for mask in forbidden_transitions(names))


def test_wrong_input() -> None:
    crf = CRF(3, forbidden_transitions(["O", "B-x", "E-x"]))
    emissions = torch.zeros(2, 4, 3)
    with pytest.raises(ValueError, match="expected emissions B x T x 3"):
        crf.partition(torch.zeros(2, 4, 5), torch.tensor([4, 4]))
    for lengths in ([4], [0, 4], [4, 5]):
        with pytest.raises(ValueError, match="expected 2 lengths from 1 to 4"):
            crf.partition(emissions, torch.tensor(lengths))
    with pytest.raises(ValueError, match="tags given for sequence 1 take a step that is forbidden"):
        crf(emissions, torch.tensor([[0, 0, 0, 0], [0, 2, 0, 0]]), torch.tensor([4, 4]))
    with pytest.raises(ValueError, match=r"forbidden.start must be \[3\]"):
        CRF(3, forbidden_transitions(["O", "B-x"]))
    with pytest.raises(ValueError, match="n must be 1 or more"):
        crf.n_best_paths(emissions, torch.tensor([4, 4]), 0)


def test_a_length_without_any_allowed_sequence() -> None:
    crf = CRF(2, forbidden_transitions(["B-x", "E-x"]))
    emissions, lengths = torch.zeros(2, 3, 2), torch.tensor([2, 3])
    for ask in (crf.partition, crf.marginals, crf.best_paths, lambda *x: crf.n_best_paths(*x, 2)):
        with pytest.raises(ValueError, match="every tag sequence is forbidden for sequence 1"):
            ask(emissions, lengths)


@pytest.mark.skipif(not kernels.available(), reason="the kernels were not built")
@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    tags=st.integers(1, 40),
    coarse=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_the_compiled_search_is_the_readable_one(lengths: list[int], tags: int, coarse: bool, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)

    def numbers(*shape: int) -> Tensor:
        drawn = torch.randn(*shape, generator=generator)
        return drawn.round() if coarse else drawn  # whole numbers are often equal: the first of them wins

    crf = CRF(tags)
    with torch.no_grad():
        for parameter in crf.parameters():
            parameter.copy_(numbers(*parameter.shape))
    emissions = numbers(len(lengths), max(lengths), tags)
    compiled = crf.best_paths(emissions, torch.tensor(lengths))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "native", None)
        readable = crf.best_paths(emissions, torch.tensor(lengths))
    assert torch.equal(compiled[0], readable[0])
    assert torch.allclose(compiled[1], readable[1])


@pytest.mark.skipif(not kernels.available(), reason="the kernels were not built")
@pytest.mark.parametrize("step", range(4))
@pytest.mark.parametrize("tag", range(3))
def test_the_compiled_search_keeps_a_nan_as_the_readable_one_does(step: int, tag: int) -> None:
    crf, emissions, lengths = CRF(3), torch.randn(2, 4, 3), torch.tensor([4, 4])
    emissions[1, step, tag] = torch.nan
    compiled = crf.best_paths(emissions, lengths)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "native", None)
        readable = crf.best_paths(emissions, lengths)
    assert compiled[1].isnan().tolist() == readable[1].isnan().tolist() == [False, True]
    assert torch.equal(compiled[0], readable[0])
