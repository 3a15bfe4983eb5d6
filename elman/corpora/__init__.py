"""The corpora that Elman knows by name, and how they come onto this machine."""

from elman.corpora.catalogue import export, info, locate
from elman.corpora.download import download
from elman.corpora.entries import CATALOGUE, Corpus, CorpusFile

__all__ = [
    "CATALOGUE",
    "Corpus",
    "CorpusFile",
    "download",
    "export",
    "info",
    "locate",
]
