"""The three softmaxes: distributions that sum to one, losses that equal or approach the full cross-entropy."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn.functional import cross_entropy

from elman.nn import AdaptiveSoftmax, ChunkedSoftmax, SampledSoftmax
from elman.nn.softmax import _losses, inclusion_probabilities

N, H, V = 7, 4, 12
COUNTS = 1000 / torch.arange(1, V + 1)
Softmax = ChunkedSoftmax | SampledSoftmax | AdaptiveSoftmax


def batch(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    torch.manual_seed(5)
    return torch.randn(N, H, dtype=dtype, requires_grad=True), torch.tensor([0, 3, 11, 3, 0, 7, 1])


def make(kind: str, **options: Any) -> Softmax:
    if kind == "adaptive":
        return AdaptiveSoftmax(H, V, **options).double()
    if kind == "sampled":
        return SampledSoftmax(H, V, samples=5, frequencies=COUNTS, **options).double()
    return ChunkedSoftmax(H, V, **options).double()


def gradients(loss: Tensor, *leaves: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss, leaves))


@pytest.mark.parametrize("kind", ["chunked", "sampled", "adaptive"])
def test_one_interface(kind: str) -> None:
    softmax, (hidden, targets) = make(kind).eval(), batch()
    log_probs = softmax.log_probs(hidden)
    assert log_probs.shape == (N, V)
    torch.testing.assert_close(log_probs.exp().sum(dim=1), torch.ones(N, dtype=torch.float64))
    own = log_probs[torch.arange(N), targets]
    torch.testing.assert_close(softmax.target_log_probs(hidden, targets), own)
    torch.testing.assert_close(softmax.loss(hidden, targets), -own.mean())
    with torch.no_grad():
        torch.testing.assert_close(softmax.loss(hidden, targets), -own.mean())
    softmax.loss(hidden, targets).backward()
    assert hidden.grad is not None
    assert all(p.grad is not None and p.grad.any() for p in softmax.parameters())


@pytest.mark.parametrize("chunk", [1, 3, N, 100, None])
@pytest.mark.parametrize("bias", [True, False])
def test_chunked_equals_cross_entropy(bias: bool, chunk: int | None) -> None:
    softmax, (hidden, targets) = make("chunked", chunk=chunk, bias=bias), batch()
    leaves = [hidden, *softmax.parameters()]
    full = cross_entropy(nn.functional.linear(hidden, softmax.weight, softmax.bias), targets)
    loss = softmax.loss(hidden, targets)
    torch.testing.assert_close(loss, full, atol=1e-12, rtol=0)
    for ours, theirs in zip(gradients(3 * loss, *leaves), gradients(3 * full, *leaves), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=0)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("words", [1, 7, 64, 1000, 20011])
def test_compiled_losses_equal_cross_entropy(instruction_set: str, words: int, smoothing: float) -> None:
    torch.manual_seed(2)
    hidden = torch.tensor([[0.0], [1], [2], [-4], [64]])  # products with these lose no digits
    weight, targets = 5 * torch.randn(words, 1), torch.randint(words, (5,))
    logits = (hidden * weight.t()).double().requires_grad_()
    right = cross_entropy(logits, targets, reduction="none", label_smoothing=smoothing)
    losses, g = _losses(hidden, weight, None, targets.int(), smoothing)
    torch.testing.assert_close(losses, right.detach().float(), atol=1e-5, rtol=1e-6)
    (gradient,) = gradients(right.sum(), logits)
    torch.testing.assert_close(g, gradient.float(), atol=4e-12, rtol=1e-5)


@pytest.mark.parametrize("other", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("place", [0, 3])
def test_compiled_losses_of_what_is_not_finite(instruction_set: str, place: int, other: float) -> None:
    weight, targets = torch.ones(13, 1), torch.tensor([0])
    weight[place] = other
    losses, g = _losses(torch.ones(1, 1), weight, None, targets)
    torch.testing.assert_close(losses, cross_entropy(weight.t(), targets, reduction="none"), equal_nan=True)
    if other < 0:
        assert g[0, place] == (-1 if place == 0 else 0)
    else:
        assert g.isnan().any()


def test_compiled_target_that_is_not_there(instruction_set: str) -> None:
    with pytest.raises(IndexError, match="target 13 is not from 0 to 12"):
        _losses(torch.ones(1, 1), torch.ones(13, 1), None, torch.tensor([13]))


def test_chunked_gradients_equal_finite_differences() -> None:
    hidden, targets = batch()
    softmax = make("chunked", chunk=3)

    def loss(hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        leaves = {"softmax.weight": weight, "softmax.bias": bias}
        return torch.func.functional_call(_Loss(softmax), leaves, (hidden, targets))

    inputs = [t.detach().clone().requires_grad_() for t in (hidden, softmax.weight, softmax.bias)]
    assert torch.autograd.gradcheck(loss, inputs)


class _Loss(nn.Module):
    """The loss of a softmax as a module's forward."""

    def __init__(self, softmax: Softmax) -> None:
        super().__init__()
        self.softmax = softmax

    def forward(self, hidden: Tensor, targets: Tensor) -> Tensor:
        return self.softmax.loss(hidden, targets)


def test_chunk_is_chosen_so_that_logits_stay_small() -> None:
    assert ChunkedSoftmax(1, 2**15).chunk == 2**9
    assert ChunkedSoftmax(1, 2**25).chunk == 1


@pytest.mark.parametrize("kind", ["chunked", "sampled"])
def test_tied_weight_is_one_parameter_with_both_gradients(kind: str) -> None:
    embedding, (_, targets) = nn.Embedding(V, H, dtype=torch.float64), batch()
    softmax = make(kind, tied=embedding.weight)
    assert softmax.weight is embedding.weight
    torch.manual_seed(1)
    softmax.loss(embedding(torch.arange(N)), targets).backward()
    torch.manual_seed(1)
    hidden = embedding(torch.arange(N)).detach().requires_grad_()
    below, above = gradients(softmax.loss(hidden, targets), hidden, embedding.weight)
    above[:N] += below
    torch.testing.assert_close(embedding.weight.grad, above)
    with pytest.raises(ValueError, match="V x H = 12 x 5"):
        ChunkedSoftmax(5, V, tied=embedding.weight)


def test_sampled_gradients_equal_finite_differences() -> None:
    hidden, targets = batch()
    softmax = make("sampled")

    def loss(hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        torch.manual_seed(2)  # the same sample at every call
        leaves = {"softmax.weight": weight, "softmax.bias": bias}
        return torch.func.functional_call(_Loss(softmax), leaves, (hidden, targets))

    inputs = [t.detach().clone().requires_grad_() for t in (hidden, softmax.weight, softmax.bias)]
    assert torch.autograd.gradcheck(loss, inputs)


def test_sampled_equals_full_when_it_samples_everything() -> None:
    hidden, targets = batch()
    softmax = SampledSoftmax(H, V, samples=V, frequencies=COUNTS).double()
    leaves = [hidden, *softmax.parameters()]
    sampled = gradients(softmax.loss(hidden, targets), *leaves)
    full = gradients(softmax.eval().loss(hidden, targets), *leaves)
    for ours, theirs in zip(sampled, full, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=0)


def test_sampled_normaliser_is_unbiased() -> None:
    hidden, targets = batch()
    softmax = make("sampled")
    with torch.no_grad():
        own = nn.functional.linear(hidden, softmax.weight, softmax.bias)[torch.arange(N), targets]
        one = hidden[:1], targets[:1]
        Z = [(softmax.loss(*one) + own[0]).exp() for _ in range(4000)]
        exact = (softmax.eval().loss(*one) + own[0]).exp()
    assert torch.stack(Z).mean() == pytest.approx(exact.item(), rel=0.02)
    assert torch.stack(Z).std() > 0.01


def test_sampled_loss_nears_the_full_one_with_more_samples() -> None:
    torch.manual_seed(0)
    vocabulary, hidden = 2000, torch.randn(64, 16)
    targets, counts = torch.randint(vocabulary, (64,)), 1e6 / torch.arange(1, vocabulary + 1)
    errors = []
    for samples in (20, 200, 1500):
        softmax = SampledSoftmax(16, vocabulary, samples=samples, frequencies=counts)
        full = softmax.eval().loss(hidden, targets).detach()
        softmax.train()
        losses = torch.stack([softmax.loss(hidden, targets).detach() for _ in range(20)])
        errors.append((losses - full).abs().mean())
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.02


def test_the_targets_of_a_batch_are_always_in_its_sample() -> None:
    (hidden, _), targets = batch(), torch.arange(N) % 3 + 4
    counts = torch.ones(V).index_fill(0, torch.tensor([0]), 1e12)  # of all words the first alone is ever drawn
    softmax = SampledSoftmax(H, V, samples=1, frequencies=counts).double()
    logits = nn.functional.linear(hidden, softmax.weight, softmax.bias)[:, [0, 4, 5, 6]]
    exact = nn.functional.cross_entropy(logits, targets - 3)
    torch.testing.assert_close(softmax.loss(hidden, targets), exact, atol=1e-6, rtol=0)


def test_sampling_resumes_with_the_random_state_and_the_state_dict() -> None:
    hidden, targets = batch()
    first, second = make("sampled"), SampledSoftmax(H, V, samples=5, frequencies=torch.ones(V)).double()
    second.load_state_dict(first.state_dict(), strict=True)
    state = torch.get_rng_state()
    losses = [first.loss(hidden, targets) for _ in range(3)]
    torch.set_rng_state(state)
    assert torch.equal(torch.stack(losses), torch.stack([second.loss(hidden, targets) for _ in range(3)]))


def test_inclusion_probabilities_sum_to_the_samples() -> None:
    counts = torch.tensor([1e6, 1e5, 100.0, 50.0, 10.0, 0.0])
    chance = inclusion_probabilities(counts, 0.75, 4)
    assert chance.sum().item() == pytest.approx(4, abs=1e-5)
    assert chance.max() == 1
    assert chance.min() > 0, "a word that was never counted can be drawn too"
    assert (inclusion_probabilities(counts, 0.75, 6) == 1).all()
    assert (inclusion_probabilities(counts, 0.75, 60) == 1).all()


def test_no_targets_cost_nothing() -> None:
    hidden, targets = torch.zeros(0, H, dtype=torch.float64, requires_grad=True), torch.zeros(0, dtype=torch.long)
    for kind in ("chunked", "sampled"):
        softmax = make(kind)
        loss = softmax.loss(hidden, targets)
        assert loss == 0
        loss.backward()
        assert softmax.weight.grad is not None and not softmax.weight.grad.any()
        with torch.no_grad():
            assert softmax.eval().loss(hidden, targets) == 0
            assert softmax.target_log_probs(hidden, targets).shape == (0,)


def test_gradients_in_half_precision_are_not_lost() -> None:
    torch.manual_seed(0)
    softmax, hidden, targets = ChunkedSoftmax(H, 5000, bias=False), torch.randn(2000, H), torch.arange(2000)
    (right,) = gradients(softmax.loss(hidden, targets), softmax.weight)
    (found,) = gradients(softmax.half().loss(hidden.half(), targets), softmax.weight)
    assert (found - right).norm() < 0.02 * right.norm()


def test_forward_mode_without_gradients() -> None:
    softmax, hidden, targets = ChunkedSoftmax(H, V), torch.randn(5, H), torch.arange(5)
    with torch.no_grad(), forward_ad.dual_level():
        dual = forward_ad.make_dual(hidden, torch.ones_like(hidden))
        found = forward_ad.unpack_dual(softmax.target_log_probs(dual, targets)).tangent
        right = forward_ad.unpack_dual(softmax.log_probs(dual).gather(1, targets.unsqueeze(1))).tangent
    assert found is not None and right is not None
    torch.testing.assert_close(found, right.squeeze(1))


def test_learns_after_it_was_scored_in_inference_mode() -> None:
    softmax, hidden, targets = ChunkedSoftmax(H, V), torch.randn(5, H), torch.arange(5)

    def score_and_learn() -> None:
        with torch.inference_mode(), torch.device("meta"):  # neither may cling to the memory
            before = softmax.loss(hidden, targets)
        loss = softmax.loss(hidden, targets)
        torch.testing.assert_close(loss, before.clone())
        loss.backward()
        assert softmax.weight.grad is not None and softmax.weight.grad.any()

    with ThreadPoolExecutor(1) as fresh:  # a thread that has computed nothing before
        fresh.submit(score_and_learn).result()


def test_adaptive_chooses_cutoffs_that_fit() -> None:
    assert AdaptiveSoftmax(200, 33000).cutoffs == [3300, 11000]
    assert AdaptiveSoftmax(4, 33000).cutoffs == [3300]
    assert AdaptiveSoftmax(H, 2).log_probs(torch.zeros(1, H)).shape == (1, 2)
    assert AdaptiveSoftmax(64, 100, cutoffs=[5, 20, 50]).cutoffs == [5, 20, 50]


def test_wrong_input_raises() -> None:
    for kind in ("chunked", "sampled", "adaptive"):
        with pytest.raises(ValueError, match="N x 4 and N targets"):
            make(kind).loss(torch.zeros(N, H).double(), torch.zeros(N + 1, dtype=torch.long))
        for dtype in (torch.float64, torch.float32):
            with pytest.raises((RuntimeError, IndexError)):
                make(kind).to(dtype).loss(torch.zeros(1, H, dtype=dtype), torch.tensor([V]))
    with pytest.raises(ValueError, match="frequencies must be 12 counts"):
        SampledSoftmax(H, V, samples=2, frequencies=torch.ones(3))
    with pytest.raises(ValueError, match="samples must be at least 1"):
        SampledSoftmax(H, V, samples=0, frequencies=COUNTS)
    with pytest.raises(ValueError, match="chunk must be at least 1"):
        ChunkedSoftmax(H, V, chunk=0)
    with pytest.raises(ValueError, match="at least 2 words"):
        AdaptiveSoftmax(H, 1)


def test_a_second_derivative_of_a_loss_whose_gradients_are_known_is_refused() -> None:
    softmax, hidden = ChunkedSoftmax(3, 7), torch.randn(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="log_probs"):
        torch.autograd.grad(softmax.loss(hidden, torch.tensor([1, 2])), hidden, create_graph=True)
