"""Scores of models, and the baselines that every report shows beside them."""

from elman.metrics.alignments import from_pharaoh, hard_alignment, to_pharaoh
from elman.metrics.bleu import Bleu, CorpusScores, bleu, corpus_scores
from elman.metrics.edits import EditScores, edit_distance, edit_scores
from elman.metrics.kneser_ney import KneserNey
from elman.metrics.neighbours import CopySource, NearestPair
from elman.metrics.perplexity import Scores, bits, perplexity, unigram_loss

__all__ = [
    "Bleu",
    "CopySource",
    "CorpusScores",
    "EditScores",
    "KneserNey",
    "NearestPair",
    "Scores",
    "bits",
    "bleu",
    "corpus_scores",
    "edit_distance",
    "edit_scores",
    "from_pharaoh",
    "hard_alignment",
    "perplexity",
    "to_pharaoh",
    "unigram_loss",
]
