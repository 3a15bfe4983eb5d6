"""Scenes of shapes: what is said of them is true, and the question alone does not tell the answer."""

from collections import Counter
from itertools import islice, pairwise, permutations

import numpy as np
import pytest

from elman.generated.shapes import (
    COLOURS,
    NUMBERS,
    RELATIONS,
    Scene,
    caption_rows,
    is_true,
    question_rows,
    scenes,
)

SOME = list(islice(scenes("train"), 300))
KINDS = {"existence", "count", "comparison", "colour", "relation"}


def test_every_caption_is_true_of_its_scene_and_rarely_of_another() -> None:
    assert all(is_true(text, scene) for scene in SOME for (text,) in caption_rows(scene))
    others = [is_true(text, other) for scene, other in pairwise(SOME) for (text,) in caption_rows(scene)]
    assert np.mean(others) < 0.3


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("there is a red circle", True),
        ("there is a small red circle", False),
        ("there are two large shapes", True),
        ("there is one large shape", False),
        ("there are zero crosses", True),
        ("a red circle is above a blue square", True),
        ("a blue square is above a red circle", False),
        ("a red circle is right of a circle", False),
        ("a circle , a large square and a small circle", True),
        ("a circle , a circle and a circle", False),
        ("a red circle .", True),
        ("", False),
        ("a circle is", False),
        ("red red red", False),
    ],
)
def test_a_sentence_is_checked_by_the_scene(caption: str, expected: bool) -> None:
    scene = Scene.parse("large red circle 0 0; large blue square 1 0; small green circle 2 2")
    assert is_true(caption, scene) is expected


def test_answers_follow_from_the_scene() -> None:
    for scene in SOME[:100]:
        for text, answer, kind in question_rows(scene):
            if kind == "existence":
                assert is_true(text.replace("is there", "there is").removesuffix(" ?"), scene) == (answer == "yes")
            if kind == "count":
                what = text.removeprefix("how many ").removesuffix(" are there ?")
                assert is_true(f"there are {answer} {what}", scene)
            if kind == "relation":
                text = text.removeprefix("is the ").removesuffix(" ?")
                relation = next(name for name in RELATIONS if f" {name} " in text)
                said = text.replace(f" {relation} the ", f" is {relation} a ")
                assert is_true(f"a {said}", scene) == (answer == "yes")
            if kind == "colour":
                assert answer in COLOURS


def test_no_answer_is_told_by_the_type_alone() -> None:
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for scene in SOME:
        for _, answer, kind in question_rows(scene):
            counts[kind][answer] += 1
    for kind, answers in counts.items():
        assert max(answers.values()) / sum(answers.values()) < 0.6, kind
    assert set(counts["count"]) == set(NUMBERS) and set(counts["colour"]) == set(COLOURS)


def test_pictures_show_what_the_scene_says() -> None:
    for scene in SOME[:40]:
        picture = scene.draw().astype(int)
        for thing in scene.things:
            near = picture[thing.row * 16 : thing.row * 16 + 16, thing.column * 16 : thing.column * 16 + 16].reshape(
                -1, 3
            )
            assert (abs(near - COLOURS[thing.colour]).max(1) == 0).sum() >= 9
    assert (SOME[0].draw() == SOME[0].draw()).all()


def test_no_scene_of_one_split_is_in_another() -> None:
    told = [{str(scene) for scene in scenes(split)} for split in ("train", "dev", "test")]
    assert not any(one & other for one, other in permutations(told, 2))
    assert str(Scene.parse(str(SOME[0]))) == str(SOME[0])
