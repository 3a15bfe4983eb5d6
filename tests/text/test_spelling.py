"""What words are made of: the same whatever came before, and after a file."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elman.errors import UserError
from elman.text import spelling
from elman.text.spelling import CASES, Spelled, Speller, case_of

WORDS = ["The", "cat", "saw", "the", "USA", "and", "3", "dogs", "ran", "B2B", ";", "naïve"]


def speller(**options: object) -> Speller:
    return Speller.fit(WORDS, prefixes=(2,), suffixes=(1, 3), **options)  # type: ignore[arg-type]


def same(one: Spelled, other: Spelled) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_each_distinct_word_is_spelled_once_as_it_is_written() -> None:
    found = speller()
    spelled = found(["The", "cat", "the", "The"])
    assert spelled.words.tolist() == [0, 1, 2, 0]
    assert found.characters is not None
    letters = [[found.characters.tokens[id] for id in row[:n]] for row, n in zip(*spelled[2:4], strict=True)]
    assert letters == [list("The"), list("cat"), list("the")]
    assert spelled.ids[0] == spelled.ids[2] != 0  # looked up in small letters
    assert spelled.features[0, 0] != spelled.features[2, 0]  # and yet of another case
    assert spelled.features[0, 1:].tolist() == spelled.features[2, 1:].tolist()


def test_case_matters_to_words_where_it_is_to() -> None:
    spelled = speller(lowercase=False)(["The", "the", "THE"])
    assert len(set(spelled.ids.tolist())) == 3
    assert spelled.ids[2] == 0


@pytest.mark.parametrize(
    ("word", "case"),
    [("ß", "lower"), ("Éa", "title"), ("O'Neill", "mixed"), ("日本", "mixed"), ("…", "symbols"), ("3.5", "number")],
)
def test_shapes_of_case(word: str, case: str) -> None:
    assert CASES[case_of(word)] == case


def test_of_a_long_word_both_ends_are_seen() -> None:
    found = Speller.fit(["abcdefgh"], longest=5)
    assert found.characters is not None
    spelled = found(["abcdefgh"])
    assert "".join(found.characters.tokens[id] for id in spelled.characters[0]) == "abcgh"


def test_unknown_words_and_characters_have_the_unknown_id() -> None:
    spelled = speller(character_count=2)(["Zürich"])
    assert spelled.ids.tolist() == [0]
    assert spelled.characters[0, 0] == 0


def test_without_characters_there_are_none() -> None:
    spelled = speller(characters=False)(["cat"])
    assert spelled.characters.shape == (1, 0)
    assert spelled.lengths.tolist() == [0]


@given(st.lists(st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=12), min_size=1, max_size=4))
def test_what_came_before_does_not_matter(batches: list[list[str]]) -> None:
    used = speller()
    for batch in batches:
        assert same(used(batch), speller()(batch))


def test_a_text_without_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spelling, "KEPT", 10)
    found = speller()
    for start in range(0, 60, 6):
        batch = [f"w{number}" for number in range(start, start + 6)]
        assert same(found(batch), speller()(batch))
        assert len(found._known) <= 10


def test_threads_share_one_speller() -> None:
    found = speller()
    batches = [[f"{start}x{number}" for number in range(50)] for start in range(40)]
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(found, batches))
    assert all(same(result, speller()(batch)) for result, batch in zip(results, batches, strict=True))


def test_saved_and_loaded_gives_the_same_parts_in_the_same_order(tmp_path: Path) -> None:
    first = Speller.fit(WORDS, prefixes=(3, 1, 2), suffixes=(4, 2, 10), lowercase=False, longest=7)
    first.save(tmp_path / "tokenizer.json")
    again = Speller.load(tmp_path / "tokenizer.json")
    assert again.to_json() == first.to_json()
    assert again.feature_counts == first.feature_counts
    assert same(again([*WORDS, "unheard-of"]), first([*WORDS, "unheard-of"]))


@pytest.mark.parametrize(
    "text", ["", "{}", '{"format": "elman-speller", "version": 1}', '{"format": "x", "version": 1}']
)
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    place = tmp_path / "tokenizer.json"
    place.write_text(text)
    with pytest.raises(UserError, match=r"tokenizer\.json is damaged"):
        Speller.load(place)


def test_a_file_of_a_newer_elman_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "tokenizer.json"
    place.write_text(speller().to_json().replace('"version": 1', '"version": 99'))
    with pytest.raises(UserError, match="newer Elman"):
        Speller.load(place)
