"""What every report shows beside a model: simple models that it has to beat."""

from elman.baselines.kneser_ney import KneserNey
from elman.baselines.lexicon import CharacterNgrams, MostFrequentClass, MostFrequentTag, MultilabelCharacterNgrams
from elman.baselines.neighbours import CopySource, NearestPair, NearestVector

__all__ = [
    "CharacterNgrams",
    "CopySource",
    "KneserNey",
    "MostFrequentClass",
    "MostFrequentTag",
    "MultilabelCharacterNgrams",
    "NearestPair",
    "NearestVector",
]
