"""Start, end, padding and unknown tokens; characters as their code points."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from elman.errors import UserError
from elman.text import Tokenizer, TokenizerSettings, fit_tokenizer
from elman.text.encoder import TokenEncoder, WordEncoder

LATIN = fit_tokenizer(TokenizerSettings(kind="codepoints"), ["\u02ff"])
KINDS = ["characters", "codepoints", "bytes", "words", "bpe"]


@pytest.mark.parametrize("kind", KINDS)
def test_start_and_padding_have_ids_of_their_own(kind: str) -> None:
    tokenizer = fit_tokenizer(TokenizerSettings(kind=kind, bos=True, pad=True), ["to be or not to be\n"], ends=3)
    assert tokenizer.tokens[:4] == ["<unk>", "<eos>", "<bos>", "<pad>"]
    assert (tokenizer.unk_id, tokenizer.eos_id, tokenizer.start_id, tokenizer.pad_id) == (0, 1, 2, 3)
    assert tokenizer.counts[2:4].tolist() == [0, 0]
    assert tokenizer.counts[1] == 3 + (kind == "words")
    assert tokenizer.decode([2, *tokenizer.encode("to be"), 3, 3]) == "to be"
    assert tokenizer.unwritten == {2, 3}
    again = Tokenizer.from_json(tokenizer.to_json())
    assert again.to_json() == tokenizer.to_json()
    assert again.encode("be to").tolist() == tokenizer.encode("be to").tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_without_them_the_end_token_stands_before_a_text_and_the_file_is_as_it_was(kind: str) -> None:
    tokenizer = fit_tokenizer(TokenizerSettings(kind=kind), ["to be or not to be"])
    assert (tokenizer.start_id, tokenizer.pad_id, tokenizer.unwritten) == (1, None, set())
    assert json.loads(tokenizer.to_json())["settings"].keys().isdisjoint({"bos", "pad"})


def test_a_special_token_that_the_training_text_has_may_be_written() -> None:
    settings = TokenizerSettings(kind="words", bos=True, specials=("<sep>", "<cls>"))
    tokenizer = fit_tokenizer(settings, ["<bos> a <sep> b"])
    assert tokenizer.unwritten == {tokenizer.special_id("<bos>"), tokenizer.special_id("<cls>")}


def test_names_do_not_stand_twice() -> None:
    with pytest.raises(ValidationError, match="differ from each other and from <unk> and <eos> and <bos>"):
        TokenizerSettings(bos=True, specials=("<bos>",))
    assert TokenizerSettings(specials=("<bos>",)).special_tokens == ["<unk>", "<eos>", "<bos>"]  # an ordinary one


def test_the_edges_of_a_text() -> None:
    plain, own = (
        TokenEncoder(fit_tokenizer(TokenizerSettings(bos=bos), ["abba"]), edges=True) for bos in (False, True)
    )
    assert plain.encode(["ab", ""]).data.tolist() == [1, 2, 3, 1, 1, 1]
    assert own.encode(["ab", ""]).data.tolist() == [2, 3, 4, 1, 2, 1]
    words = WordEncoder.fit(["a cat"], TokenizerSettings(kind="words", bos=True), edges=True)
    assert words.encode(["a cat"]).data.tolist() == ["<bos>", "a", "cat", "<eos>"]
    ids = words.speller.words.encode(words.encode(["a cat"]).data.tolist())
    assert len({*ids.tolist()}) == 4 and 0 not in ids


def test_the_names_of_the_notes() -> None:
    tokenizer = fit_tokenizer(TokenizerSettings(kind="codepoints"), ["adylov", "solan", "hard", "san"])
    assert tokenizer.size == 128
    assert tokenizer.encode("adylov").tolist() == [97, 100, 121, 108, 111, 118]
    assert tokenizer.counts[ord("a")] == 4 and tokenizer.counts[ord("z")] == 0


@given(text=st.text(alphabet=st.characters(min_codepoint=2, max_codepoint=0x2FF)))
def test_an_id_is_the_code_point(text: str) -> None:
    tokenizer = LATIN
    assert tokenizer.size == 0x300
    assert tokenizer.encode(text).tolist() == [ord(character) for character in text]
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.unknown(text) == []


def test_what_is_beyond_the_code_points_is_unknown() -> None:
    tokenizer = fit_tokenizer(TokenizerSettings(kind="codepoints", size=128), ["né né \x00\x01"])
    assert tokenizer.encode("né\x00\x01").tolist() == [110, 0, 0, 0]
    assert tokenizer.unknown("né\x01") == ["é", "\x01"]
    assert tokenizer.counts.sum() == 8 and tokenizer.counts[0] == 4
    rare = fit_tokenizer(TokenizerSettings(kind="codepoints", min_count=2), ["aa éé \N{SNOWMAN}"])
    assert rare.size == ord("é") + 1 and rare.counts[0] == 1


def test_half_a_character_is_none() -> None:
    tokenizer = fit_tokenizer(TokenizerSettings(kind="codepoints"), ["\N{GRINNING FACE}", "\ud800"])
    assert tokenizer.size == ord("\N{GRINNING FACE}") + 1
    assert tokenizer.encode("\ud800").tolist() == [0] and tokenizer.counts[0] == 1
    tokenizer.decode(np.arange(tokenizer.size)).encode("utf-8")  # which half a character could not be


def test_code_points_need_room_and_a_whole_file() -> None:
    with pytest.raises(UserError, match=r"room for the special tokens only: say -s text\.size=5"):
        fit_tokenizer(TokenizerSettings(kind="codepoints", size=3, bos=True, pad=True), ["a"])
    text = fit_tokenizer(TokenizerSettings(kind="codepoints"), ["a"]).to_json()
    value = json.loads(text) | {"counts": [1]}
    with pytest.raises(UserError, match="is damaged"):
        Tokenizer.from_json(json.dumps(value))
