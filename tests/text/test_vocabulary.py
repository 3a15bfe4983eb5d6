"""Ready tokens to ids, and a file to find them in again."""

from pathlib import Path

import pytest

from elman.errors import UserError
from elman.text.vocabulary import Vocabulary


def test_rare_tokens_share_the_unknown_id_and_are_counted_there() -> None:
    vocabulary = Vocabulary.fit(["b", "a", "a", "c", "b", "a"], min_count=2)
    assert vocabulary.tokens == ["<unk>", "a", "b"]
    assert vocabulary.counts.tolist() == [1, 3, 2]
    assert vocabulary.encode(["c", "b", "never"]).tolist() == [0, 2, 0]


def test_equal_counts_do_not_depend_on_the_order_of_the_text() -> None:
    assert Vocabulary.fit(["x", "y", "z"]).tokens == Vocabulary.fit(["z", "x", "y"]).tokens


def test_size_counts_the_unknown_token_and_extra_words_come_behind() -> None:
    vocabulary = Vocabulary.fit(["a", "a", "b", "b", "c"], size=2, extra=["z", "a", "z", "c"])
    assert vocabulary.tokens == ["<unk>", "a", "z", "c"]
    assert vocabulary.counts.tolist() == [2, 2, 0, 1]


def test_a_literal_unknown_token_in_the_text_is_the_unknown_one() -> None:
    vocabulary = Vocabulary.fit(["<unk>", "a", "<unk>"])
    assert vocabulary.tokens == ["<unk>", "a"]
    assert vocabulary.counts.tolist() == [2, 1]
    assert vocabulary.id("<unk>") == 0


def test_saved_and_loaded_gives_the_same_ids(tmp_path: Path) -> None:
    vocabulary = Vocabulary.fit(["naïve", "日本", "\ud800", "a b"])
    vocabulary.save(tmp_path / "words.json")
    again = Vocabulary.load(tmp_path / "words.json")
    assert again.tokens == vocabulary.tokens
    assert again.counts.tolist() == vocabulary.counts.tolist()


@pytest.mark.parametrize("text", ["", "[]", '{"tokens": ["a"], "counts": [1]}', '{"tokens": ["<unk>"], "counts": []}'])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    place = tmp_path / "words.json"
    place.write_text(text)
    with pytest.raises(UserError, match=r"words\.json is damaged"):
        Vocabulary.load(place)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read the vocabulary .*none\.json"):
        Vocabulary.load(tmp_path / "none.json")
