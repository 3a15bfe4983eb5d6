"""Training speed of a word model: Elman against plain PyTorch, in one run.

    python benchmarks/word_training.py [--vocabulary 33278] [--rounds 5]

Both train two LSTM layers of 200 over windows of 35 words, 20 streams, embedding and softmax tied: the setting of
PyTorch's own word_language_model example. The peer computes the full softmax over the vocabulary, as that example
does; Elman is measured with the full one, in chunks, and with the sampled one that its recipe uses (evaluation is
over the whole vocabulary in every case). Random ids: the time does not depend on the words. Peer and Elman take
turns; the best round of each counts.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from elman.batches import IdStream
from elman.batches.batches import StreamBatches
from elman.nn.language import detach
from elman.tasks.language import LanguageConfig, LanguageModel, LanguageRecipe
from elman.tasks.reading import Reading
from elman.tasks.scoring import hidden_and_targets
from elman.text import TokenizerSettings, fit_tokenizer

SIZE, LAYERS, STREAMS, STEPS, UPDATES = 200, 2, 20, 35, 8


class PlainModel(nn.Module):
    """What one writes with PyTorch alone."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, SIZE)
        self.lstm = nn.LSTM(SIZE, SIZE, LAYERS, dropout=0.2)
        self.output = nn.Linear(SIZE, vocabulary)
        self.output.weight = self.embedding.weight

    def forward(self, ids: Tensor, state: object) -> tuple[Tensor, object]:
        output, state = self.lstm(self.embedding(ids), state)
        return self.output(output).log_softmax(dim=-1), state


def plain_updates(ids: np.ndarray, vocabulary: int) -> Callable[[], None]:
    """Some updates of the peer."""
    model = PlainModel(vocabulary)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    table = torch.from_numpy(ids[: len(ids) // STREAMS * STREAMS].reshape(STREAMS, -1).T.copy())
    state: object = None
    position = 0

    def run() -> None:
        nonlocal state, position
        for _ in range(UPDATES):
            x, y = table[position : position + STEPS], table[position + 1 : position + 1 + STEPS]
            position = (position + STEPS) % (len(table) - STEPS - 1)
            optimizer.zero_grad()
            log_probs, state = model(x, state)
            state = tuple(part.detach() for part in state)  # type: ignore[attr-defined]
            nn.functional.nll_loss(log_probs.flatten(0, 1), y.flatten()).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.25)
            optimizer.step()

    return run


def elman_updates(ids: np.ndarray, vocabulary: int, softmax: str) -> Callable[[], None]:
    """The same updates by Elman."""
    tokenizer = fit_tokenizer(TokenizerSettings(kind="words"), [" ".join(f"w{i}" for i in range(vocabulary - 2))])
    tokenizer.counts = np.bincount(ids, minlength=tokenizer.size)
    sizes = {"layers": LAYERS, "hidden": SIZE, "embedding": SIZE, "tied": True, "softmax": softmax}
    recipe = LanguageRecipe.model_validate({"model": sizes})
    reading = Reading("stream", tokenizer.eos_id, ends_text=True)
    config = LanguageConfig.new("lm", recipe, model=recipe.model, reading=reading, labels=())
    network = LanguageModel.build(config, tokenizer)
    optimizer = torch.optim.SGD(network.parameters(), lr=1.0)
    batches = StreamBatches(IdStream(ids.astype(np.uint32)), STREAMS, STEPS, start_id=1)
    state: object = None

    def run() -> None:
        nonlocal state
        for _ in range(UPDATES):
            optimizer.zero_grad()
            hidden, targets, state = hidden_and_targets(network, next(batches), state)
            state = detach(state)
            network.softmax.loss(hidden, targets).backward()
            nn.utils.clip_grad_norm_(network.parameters(), 0.25)
            optimizer.step()

    return run


def matmul_peak() -> float:
    """GFLOP/s of a large product: the machine's limit."""
    a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
    return 2 * 2048**3 / min(seconds(lambda: a @ b) for _ in range(5)) / 1e9


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vocabulary", type=int, default=33_278)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    # Word frequencies fall as 1/rank, as they do in text.
    weights = 1.0 / np.arange(1, arguments.vocabulary + 1)
    ids = np.random.default_rng(0).choice(arguments.vocabulary, 400_000, p=weights / weights.sum())
    contestants = {
        "plain PyTorch, full softmax": plain_updates(ids, arguments.vocabulary),
        "Elman, full softmax in chunks": elman_updates(ids, arguments.vocabulary, "full"),
        "Elman, sampled softmax": elman_updates(ids, arguments.vocabulary, "sampled"),
    }
    best = {name: float("inf") for name in contestants}
    for run in contestants.values():
        run()  # warm
    for _ in range(arguments.rounds):
        for name, run in contestants.items():
            best[name] = min(best[name], seconds(run))
    tokens = UPDATES * STREAMS * STEPS
    peer = best["plain PyTorch, full softmax"]
    print(f"{torch.get_num_threads()} threads, matrix-multiply peak {matmul_peak():.0f} GFLOP/s")
    for name, value in best.items():
        print(f"{name:32} {tokens / value:8,.0f} tokens/s   {peer / value:5.2f} x")


if __name__ == "__main__":
    main()
