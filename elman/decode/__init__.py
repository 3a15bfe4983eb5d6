"""Searching a model's next-token distribution: sampling, greedy, beam, exhaustive.

A model is known here by `StepModel` alone. How an id is sampled is specified in `docs/sampling.md`, how a beam
search goes and what may be asked of it in `docs/search.md`.
"""

from elman.decode.beam import Beam
from elman.decode.control import Control
from elman.decode.finished import NothingFound
from elman.decode.generate import generate
from elman.decode.rerank import Tuned, rerank, tune
from elman.decode.sampling import next_ids, uniform
from elman.decode.scores import Hypothesis, log_softmax
from elman.decode.scoring import Scored, exhaustive, forced_log_probs
from elman.decode.search import beam_search
from elman.decode.step_model import Attending, Ensemble, Greedy, Repeated, StepModel
from elman.decode.stop_strings import StopStrings
from elman.decode.tree import SearchTree
from elman.sampling import Sampling, fresh_seed

__all__ = [
    "Attending",
    "Beam",
    "Control",
    "Ensemble",
    "Greedy",
    "Hypothesis",
    "NothingFound",
    "Repeated",
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
    "log_softmax",
    "next_ids",
    "rerank",
    "tune",
    "uniform",
]
