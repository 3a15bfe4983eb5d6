"""Searching a model's next-token distribution: sampling, greedy, exhaustive.

A model is known here by `StepModel` alone. How an id is drawn is specified in `docs/sampling.md`.
"""

from elman.decode.exhaustive import Scored, exhaustive
from elman.decode.generate import generate
from elman.decode.random_stream import fresh_seed, uniform
from elman.decode.sampling import Sampling, next_ids
from elman.decode.step_model import StepModel
from elman.decode.stop_strings import StopStrings

__all__ = [
    "Sampling",
    "Scored",
    "StepModel",
    "StopStrings",
    "exhaustive",
    "fresh_seed",
    "generate",
    "next_ids",
    "uniform",
]
