"""Classifiers and taggers that were never trained: what has to hold exactly holds for any weights."""

from collections.abc import Sequence
from typing import Any

import torch

from elman.baselines.lexicon import MostFrequentTag
from elman.tasks.classify import ClassifierConfig, ClassifyRecipe, TextClassifier
from elman.tasks.recipes import load_recipe
from elman.tasks.tag import TaggerConfig, TagModel, TagRecipe
from elman.text import fit_tokenizer
from elman.text.encoder import TokenEncoder, WordEncoder
from elman.text.spelling import Speller

TEXTS = ("a fine film with a good end", "dull", "no one had a film as dull as that in mind")
LABELS = ("bad", "good", "so-so")
TAGS = ("B-PER", "I-PER", "O", "S-LOC")
LARGER = 2.5  # times the usual weights: gates that are half open would make everything a straight line


def classifier(*settings: str, several: bool = False, texts: Sequence[str] = TEXTS) -> TextClassifier:
    """A small classifier of words with random weights."""
    given = ["text.kind=words", "model.hidden=7", "model.embedding=5", "model.embedding_scale=1", *settings]
    recipe = load_recipe(ClassifyRecipe, None, given)
    options: dict[str, Any] = {"edges": recipe.model.edges, "longest": recipe.model.longest}
    vocabulary: TokenEncoder | WordEncoder
    if recipe.model.characters:
        vocabulary = WordEncoder.fit(texts, recipe.text, **options)
    else:
        vocabulary = TokenEncoder(fit_tokenizer(recipe.text, texts), **options)
    facts = {"labels": LABELS, "several": several}
    config = ClassifierConfig.new("classify", recipe, model=recipe.model, text=recipe.text, **facts)
    torch.manual_seed(3)
    return TextClassifier(config, vocabulary, _enlarged(TextClassifier.build(config, vocabulary)))


def tagger(*settings: str, tags: Sequence[str] = TAGS) -> TagModel:
    """A small tagger with random weights."""
    given = ["model.hidden=6", "model.embedding=5", "model.character_hidden=3", "model.layers=1", *settings]
    recipe = load_recipe(TagRecipe, None, given)
    speller = Speller.fit((word for text in TEXTS for word in text.split()), suffixes=(2,))
    config = TaggerConfig.new("tag", recipe, model=recipe.model, tags=tuple(tags), scheme=None)
    torch.manual_seed(3)
    network = TagModel.build(config, speller)
    for part in (network.words, network.scores, network.crf):
        for weight in () if part is None else part.parameters():
            torch.nn.init.normal_(weight)
    model = TagModel(config, speller, _enlarged(network))
    model.lexicon = MostFrequentTag({}, "O")
    return model


def _enlarged(network: Any) -> Any:
    with torch.no_grad():
        for weight in network.body.parameters():
            weight.mul_(LARGER)
        for state in getattr(network.body, "initial", ()):
            state.normal_()
    return network.eval()
