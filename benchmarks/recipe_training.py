"""Training speed of the language-model recipes: Elman's kernels against PyTorch's own, in one run.

    python benchmarks/recipe_training.py [tinyshakespeare wikitext2 ...] [--seconds 10]

Each recipe trains as `elman train lm` does (its text, its batches, an AdamW), by turns with its recurrent layers on
either; the best turn of each counts. The corpora are looked for as always: in ELMAN_DATA, in the cache, or downloaded.
"""

import argparse
import time

import torch
from torch import nn

from elman.tasks import TASKS, training
from elman.tasks.recipes import load_recipe

RECIPES = ("tinyshakespeare", "wikitext2", "sonnets", "names-generate", "python")
TURNS = 3


class Training:
    """A recipe in training that can change its layers' backend."""

    def __init__(self, name: str) -> None:
        task = TASKS["lm"]
        recipe = load_recipe(task.Recipe, name)
        data = task.open(recipe, training.sources_of(recipe.data, None, None), None, lambda line: None)
        self.task = training.begin(task, recipe, data)
        self.batches, self.state = self.task.batches(), None
        self.optimizer = torch.optim.AdamW(self.task.network.parameters(), lr=recipe.train.lr)

    def tokens_per_second(self, backend: str, seconds: float) -> float:
        """How fast it trains for so long."""
        for module in self.task.network.modules():
            if isinstance(module, nn.RNNBase):
                module.backend = backend  # type: ignore[assignment]
        self.update()
        tokens, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            tokens += self.update()
        return tokens / (time.perf_counter() - began)

    def update(self) -> int:
        loss = self.task.loss(next(self.batches), self.state)
        self.state = loss.state
        self.optimizer.zero_grad()
        loss.mean.backward()
        nn.utils.clip_grad_norm_(self.task.network.parameters(), 1.0)
        self.optimizer.step()
        return loss.tokens


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipes", nargs="*", default=RECIPES)
    parser.add_argument("--seconds", type=float, default=10.0, help="for a recipe, all turns together")
    arguments = parser.parse_args()
    print(f"{torch.get_num_threads()} threads; tokens a second")
    for name in arguments.recipes:
        training = Training(name)
        best = {"torch": 0.0, "compiled": 0.0}
        for _ in range(TURNS):
            for backend in best:
                speed = training.tokens_per_second(backend, arguments.seconds / TURNS / len(best))
                best[backend] = max(best[backend], speed)
        ratio = best["compiled"] / best["torch"]
        print(f"{name:16}  PyTorch {best['torch']:8,.0f}   Elman {best['compiled']:8,.0f}   {ratio:.2f} x")


if __name__ == "__main__":
    main()
