"""Made-up sentences with personal data: exact tags, and splits that share no template."""

import os
import re
import subprocess
import sys
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest

from elman.corpora import locate
from elman.errors import UserError
from elman.generated.entities import (
    ENTITIES,
    LANGUAGES,
    SIZES,
    entity_sentences,
    marked_texts,
    tagged_tokens,
    templates,
)
from elman.records import TaggedReader
from elman.text.words import TOKEN

pytest.importorskip("faker")


@pytest.mark.parametrize("language", LANGUAGES)
def test_templates_are_many_and_every_split_has_every_entity(language: str) -> None:
    parts = templates(language)
    assert len(parts["train"]) >= 20
    everything = [template for split in SIZES for template in parts[split]]
    assert len(set(everything)) == len(everything)
    for split in SIZES:
        slots = Counter(slot for template in parts[split] for slot in re.findall(r"\{([A-Z]+)\}", template))
        assert set(slots) == set(ENTITIES), split
        assert any(not re.search(r"\{[A-Z]", template) for template in parts[split])
    names = [name for split in SIZES for name in LANGUAGES[language]["things"][split]]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("language", LANGUAGES)
def test_tags_give_the_entities_back_from_the_raw_text(language: str) -> None:
    for marked in marked_texts(language, "train", 200, seed=5):
        sentence = tagged_tokens(marked)
        places = [match.span() for match in TOKEN.finditer(marked.text)]
        assert [marked.text[start:end] for start, end in places] == list(sentence.tokens)
        spans: list[tuple[int, int, str]] = []
        for (start, end), tag in zip(places, sentence.tags, strict=True):
            if tag.startswith("B-"):
                spans.append((start, end, tag[2:]))
            elif tag.startswith("I-"):
                assert spans[-1][2] == tag[2:]
                spans[-1] = (spans[-1][0], end, tag[2:])
        assert tuple(spans) == marked.spans
        assert ".." not in marked.text


def test_some_texts_are_lower_case_and_some_hold_nothing() -> None:
    texts = list(marked_texts("en", "train", 500))
    assert 30 < sum(marked.text.islower() for marked in texts) < 120
    assert 30 < sum(not marked.spans for marked in texts) < 250


def test_splits_have_the_sizes_that_are_told_and_share_no_sentence() -> None:
    dev, test = entity_sentences("dev"), entity_sentences("test")
    assert len(dev) == SIZES["dev"] * len(LANGUAGES)
    assert {tag[2:] for sentence in test for tag in sentence.tags if tag != "O"} == set(ENTITIES)
    people = [
        {s.tokens[i] for s in part for i, tag in enumerate(s.tags) if tag == "B-EMAIL" and len(s.tokens[i]) > 8}
        for part in (dev, test)
    ]
    assert not people[0] & people[1]


def test_the_same_in_every_process_and_another_with_another_seed() -> None:
    code = (
        "from elman.generated.entities import entity_sentences; from hashlib import sha256;"
        "print(sha256(repr(entity_sentences('dev', 3)).encode()).hexdigest())"
    )
    here = sha256(repr(entity_sentences("dev", 3)).encode()).hexdigest()
    environment = {**os.environ, "PYTHONHASHSEED": "11"}
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, env=environment)
    assert there.stdout.strip() == here
    assert repr(entity_sentences("dev", 4)) != repr(entity_sentences("dev", 3))


def test_the_corpus_is_files_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path))
    files = locate("entities")
    assert list(files) == ["train", "dev", "test"]
    read = list(TaggedReader().files(files["dev"]))
    assert [(s.tokens, s.tags) for s in read] == [(s.tokens, s.tags) for s in entity_sentences("dev")]


def test_wrong_names_and_a_missing_faker(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="no templates for the language 'sv'"):
        next(marked_texts("sv", "train", 1))
    with pytest.raises(UserError, match="there is no split 'tests': did you mean 'test'"):
        entity_sentences("tests")
    monkeypatch.setitem(sys.modules, "faker", None)
    with pytest.raises(UserError, match=r"pip install elman\[demo\]"):
        next(marked_texts("en", "train", 1))
