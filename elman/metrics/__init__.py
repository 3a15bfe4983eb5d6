"""Scores of models."""

from elman.metrics.alignments import (
    alignment_groups,
    count_kinds,
    fertile_sources,
    from_pharaoh,
    hard_alignment,
    soft_alignment,
    to_pharaoh,
)
from elman.metrics.bleu import Bleu, CorpusScores, bleu, corpus_scores
from elman.metrics.brackets import bracket_scores
from elman.metrics.classification import (
    Bin,
    Calibration,
    Confusion,
    MultilabelScores,
    Score,
    calibration,
    confusion_table,
    draw_confusion,
    macro_f1,
    most_confident_mistakes,
    multilabel_scores,
    pooled,
    score_table,
    weighted_f1,
)
from elman.metrics.edits import EditScores, edit_distance, edit_scores
from elman.metrics.perplexity import Scores, bits, perplexity, unigram_loss
from elman.metrics.spans import SpanScores, span_scores
from elman.metrics.tagging import TagScores, tag_scores

__all__ = [
    "Bin",
    "Bleu",
    "Calibration",
    "Confusion",
    "CorpusScores",
    "EditScores",
    "MultilabelScores",
    "Score",
    "Scores",
    "SpanScores",
    "TagScores",
    "alignment_groups",
    "bits",
    "bleu",
    "bracket_scores",
    "calibration",
    "confusion_table",
    "corpus_scores",
    "count_kinds",
    "draw_confusion",
    "edit_distance",
    "edit_scores",
    "fertile_sources",
    "from_pharaoh",
    "hard_alignment",
    "macro_f1",
    "most_confident_mistakes",
    "multilabel_scores",
    "perplexity",
    "pooled",
    "score_table",
    "soft_alignment",
    "span_scores",
    "tag_scores",
    "to_pharaoh",
    "unigram_loss",
    "weighted_f1",
]
