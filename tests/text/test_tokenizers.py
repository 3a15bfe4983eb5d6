"""Every kind of tokenizer: round trips, unknown text, streaming, files."""

import argparse
import inspect
import json
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from elman.errors import UserError
from elman.text import Tokenizer, TokenizerSettings, fit_tokenizer

KINDS = ["characters", "codepoints", "bytes", "words", "bpe", "unigram"]
LOSSLESS = ["bytes", "bpe", "unigram"]
SAMPLE = "the cat sat on the mat; the dog barked at the cat.\nA rose is a rose is a rose.\n\nÜber größe 12 345\n" * 20


@cache
def fitted(kind: str) -> Tokenizer:
    size = 300 if kind in ("bpe", "unigram") else None
    return fit_tokenizer(TokenizerSettings(kind=kind, size=size), [SAMPLE])


def ids_of(tokenizer: Tokenizer) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, tokenizer.size - 1), max_size=30)


@pytest.mark.parametrize("kind", LOSSLESS)
@given(text=st.text())
def test_any_text_comes_back(kind: str, text: str) -> None:
    tokenizer = fitted(kind)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.unknown(text) == []


@given(text=st.text(alphabet=sorted(set(SAMPLE))))
def test_known_characters_come_back(text: str) -> None:
    tokenizer = fitted("characters")
    assert tokenizer.decode(tokenizer.encode(text)) == text


@given(lines=st.lists(st.lists(st.sampled_from(SAMPLE.split())), min_size=1))
def test_known_words_come_back(lines: list[list[str]]) -> None:
    text = "\n".join(" ".join(line) for line in lines)
    tokenizer = fitted("words")
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text(alphabet=st.characters(), max_size=40))
def test_no_text_is_too_strange(kind: str, text: str) -> None:
    tokenizer = fitted(kind)
    ids = tokenizer.encode(text)
    named = kind == "words" and "<unk>" in text.split()
    assert ids.dtype == np.int64
    assert ids.size == 0 or (ids.min() >= 0 and ids.max() < tokenizer.size)
    assert bool((ids == tokenizer.unk_id).any()) == bool(tokenizer.unknown(text) or named)


@pytest.mark.parametrize("kind", KINDS)
def test_lone_surrogates_do_not_crash(kind: str) -> None:
    assert len(fitted(kind).encode("a\ud800b")) >= 1


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_streamed_pieces_are_the_decoded_text(kind: str, data: st.DataObject) -> None:
    tokenizer = fitted(kind)
    ids = data.draw(ids_of(tokenizer))
    stream = tokenizer.stream()
    assert "".join([stream.push(token) for token in ids]) + stream.finish() == tokenizer.decode(ids)


def test_a_stream_holds_back_half_a_character() -> None:
    tokenizer = fitted("bytes")
    stream = tokenizer.stream()
    assert [stream.push(token) for token in tokenizer.encode("é!").tolist()] == ["", "é", "!"]
    stream.push(int(tokenizer.encode("é")[0]))
    assert stream.finish() == "\N{REPLACEMENT CHARACTER}"


def test_streamed_words_have_blanks_between() -> None:
    tokenizer = fitted("words")
    stream = tokenizer.stream()
    pieces = [stream.push(token) for token in tokenizer.encode("the cat\nsat").tolist()]
    assert pieces == ["the", " cat", "\n", "sat"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_tokenizer_gives_the_same_ids(kind: str, tmp_path) -> None:
    tokenizer = fitted(kind)
    tokenizer.save(tmp_path / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    text = SAMPLE + "something ∑lse <unk>\n"
    assert again.encode(text).tolist() == tokenizer.encode(text).tolist()
    assert again.tokens == tokenizer.tokens
    assert again.counts.tolist() == tokenizer.counts.tolist()
    assert again.settings == tokenizer.settings
    assert again.fingerprint() == tokenizer.fingerprint()


@pytest.mark.parametrize("kind", KINDS)
def test_counts_are_those_of_the_training_text_and_fall(kind: str) -> None:
    tokenizer = fitted(kind)
    found = np.bincount(tokenizer.encode(SAMPLE), minlength=tokenizer.size)
    assert tokenizer.counts.tolist() == found.tolist()
    if kind != "codepoints":  # whose order is that of the characters
        assert (np.diff(tokenizer.counts[2:]) <= 0).all()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "unigram"])
def test_fitting_in_blocks_changes_nothing(kind: str) -> None:
    tokenizer = fitted(kind)
    blocks = iter(SAMPLE.splitlines(keepends=True))
    assert fit_tokenizer(tokenizer.settings, blocks).to_json() == tokenizer.to_json()


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_sub_words_stay_within_their_size_and_lines(kind: str) -> None:
    text = inspect.getsource(argparse)
    tokenizer = fit_tokenizer(TokenizerSettings(kind=kind, size=500), [text])
    ids = tokenizer.encode(text)
    assert tokenizer.size <= 500
    assert len(ids) < len(text) / 2
    assert np.concatenate([tokenizer.encode(line) for line in text.splitlines(keepends=True)]).tolist() == ids.tolist()


def test_sub_words_need_text() -> None:
    with pytest.raises(UserError, match="no text"):
        fit_tokenizer(TokenizerSettings(kind="bpe"), [""])


def test_rare_tokens_become_unknown_and_are_counted_so() -> None:
    blocks = ["a a a b b c"]
    tokenizer = fit_tokenizer(TokenizerSettings(kind="words", min_count=2), blocks)
    assert tokenizer.tokens[2:] == ["a", "b"]
    assert tokenizer.counts.tolist() == [1, 0, 3, 2]
    assert fit_tokenizer(TokenizerSettings(kind="words", size=3), blocks).tokens[2:] == ["a"]
    assert tokenizer.unknown("c a d c") == ["c", "d"]


def test_specials_in_the_text_are_words_but_not_characters() -> None:
    words = fit_tokenizer(TokenizerSettings(kind="words", specials=("<pad>",)), ["x <unk> <pad> y\n"])
    assert words.encode("<unk> <eos> <pad>").tolist() == [0, 1, 2]
    assert words.special_id("<pad>") == 2
    characters = fit_tokenizer(TokenizerSettings(specials=("<pad>",)), ["<unk>"])
    assert characters.decode(characters.encode("<unk>")) == "<unk>"
    assert characters.decode([characters.eos_id, 2]) == ""


@pytest.mark.parametrize("kind", KINDS)
def test_text_is_normalised_alike_in_fitting_and_encoding(kind: str) -> None:
    chosen = TokenizerSettings(kind=kind, lowercase=True, normalise="NFC")
    tokenizer = fit_tokenizer(chosen, ["E\N{COMBINING ACUTE ACCENT}t\n"])
    assert tokenizer.decode(tokenizer.encode("ÉT")) == "ét"
    assert tokenizer.unknown("ÉT" if kind == "words" else "É") == []


@pytest.mark.parametrize("wrong", ['{"vers', "[]", "{}", '{"version": 1, "format": "other"}', "null", "3"])
def test_a_damaged_file_is_one_sentence(wrong: str, tmp_path) -> None:
    place = tmp_path / "tokenizer.json"
    place.write_text(wrong)
    with pytest.raises(UserError, match=r"tokenizer\.json is damaged"):
        Tokenizer.load(place)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(data=st.data())
def test_a_file_with_a_part_missing_or_changed_is_damaged(kind: str, data: st.DataObject) -> None:
    value = json.loads(fitted(kind).to_json())
    key = data.draw(st.sampled_from(sorted(value)))
    if data.draw(st.booleans()):
        del value[key]
    else:
        value[key] = data.draw(st.sampled_from([None, "x", [1], -1.5]))
    with pytest.raises(UserError):
        Tokenizer.from_json(json.dumps(value))


def test_a_newer_file_asks_for_an_upgrade() -> None:
    value = json.loads(fitted("words").to_json()) | {"version": 99}
    with pytest.raises(UserError, match="upgrade elman"):
        Tokenizer.from_json(json.dumps(value))


def test_a_missing_file_is_named(tmp_path) -> None:
    with pytest.raises(UserError, match="no such file"):
        Tokenizer.load(tmp_path / "tokenizer.json")


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "morphemes"},
        {"kind": "bpe", "size": 100},
        {"kind": "bytes", "size": 200},
        {"specials": ("<unk>",)},
        {"specials": ("<pad>", "<pad>")},
        {"specials": ("a b",)},
        {"min_count": 0},
        {"sise": 10},
    ],
)
def test_wrong_settings_are_refused(wrong: dict) -> None:
    with pytest.raises(ValidationError):
        TokenizerSettings(**wrong)
