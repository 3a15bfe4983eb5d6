"""Scores of models, and the baselines that every report shows beside them."""

from elman.metrics.kneser_ney import KneserNey
from elman.metrics.perplexity import Scores, bits, perplexity, unigram_loss

__all__ = ["KneserNey", "Scores", "bits", "perplexity", "unigram_loss"]
