"""Texts that come and go are the texts that `generate` writes, whatever the model is."""

from pathlib import Path
from typing import Any

import pytest

from elman.errors import UserError
from elman.sampling import Sampling
from elman.tasks.continuous import ContinuousWriter, WrittenToken
from elman.tasks.language import LanguageModel
from tests.tasks import runs

KINDS = {
    "network": (),
    "backward": ("model.direction=backward",),
    "ngrams": ("model.kind=ngram", "model.order=3"),
    "sub-words": ("text.kind=bytes",),
}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "prose.txt"
    path.write_text(runs.prose())
    return path


def write(writer: ContinuousWriter, asked: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """Texts that begin one after the other while others are written."""
    owners: dict[int, tuple[str, int]] = {}
    texts: dict[str, list[str]] = {}
    waiting = list(asked.items())
    while waiting or writer.texts:
        if waiting:
            prompt, options = waiting.pop()
            numbers = writer.begin(prompt, **options)
            owners |= {number: (prompt, place) for place, number in enumerate(numbers)}
            texts[prompt] = [""] * len(numbers)
        for piece in writer.advance(3):
            prompt, place = owners[piece.text]
            texts[prompt][place] += piece.piece
            assert piece.failure is None
    return texts


@pytest.mark.parametrize("kind", KINDS)
def test_the_texts_of_generate(kind: str, text: Path, tmp_path: Path) -> None:
    model: LanguageModel = runs.run(text, tmp_path / "run", *KINDS[kind], "train.steps=2")
    asked: dict[str, dict[str, Any]] = {
        "": {"length": 30, "sampling": Sampling(seed=1)},
        "the cat": {"length": 25, "samples": 3, "sampling": Sampling(0.7, seed=2), "stop": ["at", "zz"]},
        "a mat": {"length": 40, "sampling": Sampling(top_k=4, seed=3), "stop": "e"},
        "the dog sat on a mat": {"length": 5, "sampling": Sampling(0.0)},
    }
    found = write(ContinuousWriter(model), asked)
    assert found == {prompt: model.generate(prompt, **options) for prompt, options in asked.items()}


def test_tokens_are_those_of_the_text_that_is_shown(text: Path, tmp_path: Path) -> None:
    model: LanguageModel = runs.run(text, tmp_path / "run", "train.steps=2")
    writer = ContinuousWriter(model)
    writer.begin("the ", length=60, sampling=Sampling(seed=4), stop=["at", "e "], alternatives=2)
    shown, tokens = "", list[WrittenToken]()
    while writer.texts:
        for piece in writer.advance(4):
            shown += piece.piece
            tokens += piece.tokens
    assert "".join(token.token for token in tokens) == shown
    assert [token.start for token in tokens] == list(range(len(shown)))
    scored = model.score("the " + shown)[4:]
    assert [token.log_prob for token in tokens] == pytest.approx([one.log_prob for one in scored], abs=1e-4)


def test_a_text_that_is_ended_and_mistakes(text: Path, tmp_path: Path) -> None:
    model: LanguageModel = runs.run(text, tmp_path / "run", "train.steps=2")
    writer = ContinuousWriter(model)
    (one,) = writer.begin("the ", length=1000)
    writer.advance()
    writer.end(one)
    writer.end(one)
    assert writer.texts == 0 and writer.advance() == []
    for wrong in ({"prompt": "ü"}, {"samples": 0}, {"label": "x"}, {"stop": ""}, {"length": 0}):
        with pytest.raises(UserError):
            writer.begin(**wrong)  # type: ignore[arg-type]
    assert writer.texts == 0
