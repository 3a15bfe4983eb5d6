"""The corpora that Elman knows by name, and how they come onto this machine."""

from elman.corpora.catalogue import CATALOGUE, Corpus, CorpusFile, export, info, locate
from elman.corpora.download import download

__all__ = ["CATALOGUE", "Corpus", "CorpusFile", "download", "export", "info", "locate"]
