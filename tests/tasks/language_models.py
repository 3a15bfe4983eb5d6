"""Language models that were never trained: what has to hold exactly holds for any weights."""

from typing import Any

from elman.tasks.language import LanguageConfig, LanguageModel, LanguageRecipe
from elman.tasks.reading import Reading
from elman.text import TokenizerSettings, fit_tokenizer
from elman.train.loop import seed_everything

TEXT = "the cat saw a dog\nthe dog ran off\na cat sat\n" * 9


def untrained(
    kind: Any = "characters", unit: Any = "line", labels: tuple[str, ...] = (), size: int | None = None, **model: Any
) -> LanguageModel:
    """A small model with random weights that are far from even."""
    text = TokenizerSettings(kind=kind, size=size)
    tokenizer = fit_tokenizer(text, [TEXT], ends=27)
    settings = {"cell": "gru", "hidden": 9, "embedding": 6, "layers": 2} | model
    recipe = LanguageRecipe.model_validate({"text": text, "model": settings, "data": {"unit": unit}})
    reading = Reading(unit, tokenizer.eos_id, True)
    config = LanguageConfig.new("lm", recipe, model=recipe.model, reading=reading, labels=labels)
    seed_everything(3)
    network = LanguageModel.build(config, tokenizer).eval()
    for parameter in network.parameters():
        parameter.data.mul_(2.5)
    return LanguageModel(config, tokenizer, network)
