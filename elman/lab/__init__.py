"""The claims of the course, each an experiment that can be run and a picture that can be looked at.

import elman.lab

outcome = elman.lab.run("gradients", seeds=3)
outcome.holds, outcome.verdict
outcome.save("gradients.html")               # or .json, .png, .svg
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from elman.errors import UserError, nearest
from elman.lab.experiment import Experiment, Outcome
from elman.lab.experiments import EXPERIMENTS
from elman.train.recipe import parse

__all__ = ["EXPERIMENTS", "Experiment", "Outcome", "run"]


def find_experiment(name: str) -> Experiment[Any]:
    """An experiment by its name."""
    if not isinstance(name, str) or name not in EXPERIMENTS:
        raise UserError(f"there is no experiment '{name}': {nearest(str(name), EXPERIMENTS)}")
    return EXPERIMENTS[name]


def run(name: str, *, say: Callable[[str], Any] = lambda line: None, **options: Any) -> Outcome:
    """Run an experiment; the options are its own, such as `seeds`, and `say` is told what is being done."""
    experiment = find_experiment(name)
    settled = parse(experiment.Options, options, where=f"the experiment '{name}'")
    began = time.monotonic()
    with one_thread(), _own_random_numbers():
        data = experiment.measure(settled, say)
    return Outcome(experiment, data, time.monotonic() - began)


@contextmanager
def _own_random_numbers() -> Iterator[None]:
    """While inside, PyTorch's generator may be seeded; the caller's numbers go on afterwards as if it had not been."""
    import torch

    with torch.random.fork_rng(devices=[]):
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """While inside, PyTorch has one thread: networks of an experiment are too small to share out."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
