"""Models that an earlier version wrote load, and answer as they did."""

import json
from pathlib import Path
from typing import Any

import pytest

import elman

KEPT = Path(__file__).parent / "kept"
ANSWERS: dict[str, Any] = json.loads((KEPT / "answers.json").read_text(encoding="utf-8"))


def answers(model: Any) -> Any:
    """What each model was asked, in the form in which its answers were written down."""
    if model.task == "lm":
        told = {"label": "north"} if model.labels else {}
        return [[score.token, score.log_prob] for score in model.score("ab", **told)]
    if model.task == "classify":
        return [[list(one.labels), one.probabilities] for one in model.predict(["ababc", "red and gold"])]
    if model.task == "tag":
        found = model.predict(["Ada Kurt went to Oslo."])
        return [[list(one.tags), [[span.type, span.text] for span in one.spans]] for one in found]
    return [[one.text, one.score] for one in model.predict(["ein hund sieht der vogel"])]


def about(value: Any, error: float) -> Any:
    """The numbers in a nest up to an error."""
    if isinstance(value, dict):
        return {key: about(item, error) for key, item in value.items()}
    if isinstance(value, list):
        return [about(item, error) for item in value]
    return pytest.approx(value, abs=error) if isinstance(value, float) else value


@pytest.mark.parametrize("backend", ["auto", "torch"])
@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_a_folder_of_an_earlier_version_answers_as_it_did(name: str, backend: Any) -> None:
    # PyTorch has the rounded weights of an int8 model, and does not round what goes through them.
    error = 5e-3 if backend == "torch" and "int8" in name else 2e-5
    assert answers(elman.load(KEPT / name, backend=backend)) == about(ANSWERS[name], error)


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_it_is_written_again_to_the_byte(name: str, tmp_path: Path) -> None:
    elman.load(KEPT / name).save(tmp_path)
    for file in ("model.safetensors", "tokenizer.json"):
        assert (tmp_path / file).read_bytes() == (KEPT / name / file).read_bytes()
