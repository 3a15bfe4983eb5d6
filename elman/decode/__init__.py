"""Searching a model's next-token distribution: sampling, greedy, beam, exhaustive.

A model is known here by `StepModel` alone. How an id is drawn is specified in `docs/sampling.md`, how a beam
search goes and what may be asked of it in `docs/search.md`.
"""

from elman.decode.beam import Beam
from elman.decode.control import Control
from elman.decode.ended import NothingFound
from elman.decode.ensemble import Ensemble
from elman.decode.exhaustive import Scored, exhaustive
from elman.decode.forced import forced_log_probs
from elman.decode.generate import generate
from elman.decode.hypothesis import Hypothesis
from elman.decode.random_stream import fresh_seed, uniform
from elman.decode.rerank import Tuned, rerank, tune
from elman.decode.sampling import Sampling, next_ids
from elman.decode.search import beam_search
from elman.decode.step_model import Attending, StepModel
from elman.decode.stop_strings import StopStrings
from elman.decode.tree import SearchTree

__all__ = [
    "Attending",
    "Beam",
    "Control",
    "Ensemble",
    "Hypothesis",
    "NothingFound",
    "Sampling",
    "Scored",
    "SearchTree",
    "StepModel",
    "StopStrings",
    "Tuned",
    "beam_search",
    "exhaustive",
    "forced_log_probs",
    "fresh_seed",
    "generate",
    "next_ids",
    "rerank",
    "tune",
    "uniform",
]
