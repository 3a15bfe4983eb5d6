"""What tests of several tasks share: language models of a second or less, each made once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tasks.runs import prose, run

LanguageModels = Callable[..., Path]
"""From the kind of tokens, the direction and further settings to the folder of a language model."""


@pytest.fixture(scope="session")
def language_models(tmp_path_factory: pytest.TempPathFactory) -> LanguageModels:
    root = tmp_path_factory.mktemp("language-models")
    text = root / "text.txt"
    text.write_text(prose(30), encoding="utf-8")

    def make(kind: str = "words", direction: str = "both", *settings: str) -> Path:
        folder = root / "-".join((kind, direction, *settings)).replace("=", "-").replace("/", "-")
        if not folder.exists():
            told = (f"text.kind={kind}", f"model.direction={direction}", "data.unit=line", "train.steps=2")
            size = ("text.size=300",) if kind == "bpe" else ()
            small = ("model.hidden=10", "model.embedding=6", "model.layers=2")
            run(text, folder, *told, *size, *small, *settings)
        return folder

    return make
