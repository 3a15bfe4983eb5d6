"""What a translator writes: scored as forced decoding does, alike alone and in company, as asked, kept in a folder."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from elman.errors import UserError
from elman.records.pairs import Pair
from elman.tasks.search import Search, SearchOptions
from elman.tasks.translate import Translator
from elman.tasks.translation import Translation, replace_unknown
from elman.tasks.writer import Alternative, make_batch
from tests.end_to_end.processes import environment
from tests.nn.translators import DECODERS
from tests.tasks.translate_runs import run, sentences, strings, untrained, write

TEXTS = ["abc", "h", "fedcba", "gg", "abcdefgh", "ba"]


@pytest.fixture(scope="module")
def reverser(tmp_path_factory: pytest.TempPathFactory) -> tuple[Translator, Path]:
    folder = tmp_path_factory.mktemp("reverser")
    settings = ("train.epochs=24", "model.hidden=40", "batch.tokens=128", "data.dev_fraction=0.1")
    return run(write(folder / "pairs.tsv", strings(400)), folder / "run", *settings), folder / "run"


def test_it_learns_to_reverse(reverser: tuple[Translator, Path]) -> None:
    model, folder = reverser
    report = json.loads((folder / "metrics.json").read_text())
    assert report["dev"]["exact_match"] > 0.8 > report["baselines"]["copied source"]["dev"]["exact_match"]
    found = model.align("abcdef", "fedcba")
    assert found.weights is not None
    assert [int(row.argmax()) for row in found.weights] == [5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("reverse_source", [False, True])
def test_scores_are_those_of_forced_decoding(decoder: str, reverse_source: bool) -> None:
    model = untrained(decoder=decoder, reverse_source=reverse_source, tied="none")
    with torch.no_grad():
        model.network.softmax.bias[model.end] += 1  # so that random weights come to an end
    found = model.predict(TEXTS, n_best=3, beam=4)
    for one in found:
        for other in one.n_best:
            length = len(other.ids) + other.finished
            assert other.score == pytest.approx(other.log_prob / length, abs=1e-9)
    ended = [(one.source, other) for one in found for other in one.n_best if other.finished]
    assert len(ended) > 5
    forced = model.log_probs([(source, other.text) for source, other in ended])
    assert forced == pytest.approx([other.log_prob for _, other in ended], abs=1e-5)


@pytest.mark.parametrize("decoder", DECODERS)
def test_batched_equals_one_by_one(decoder: str) -> None:
    model = untrained(decoder=decoder, tied="none")
    options: dict[str, Any] = {"n_best": 3, "alignments": model.settings.attends}
    together, alone = model.predict(TEXTS, **options), [model.predict(text, **options) for text in TEXTS]
    for one, other in zip(together, alone, strict=True):
        assert [x.text for x in one.n_best] == [x.text for x in other.n_best]
        assert [x.log_prob for x in one.n_best] == pytest.approx([x.log_prob for x in other.n_best], abs=1e-5)
        if model.settings.attends:
            np.testing.assert_allclose(one.weights, other.weights, atol=1e-6)
    assert model.predict([]) == []


def test_several_samples_are_drawn_and_the_first_is_the_one_that_is_drawn_alone() -> None:
    model = untrained()
    alone = [one.text for one in model.predict(TEXTS, temperature=1.0, seed=3)]
    several = model.predict(TEXTS, temperature=1.0, seed=3, n_best=7)
    assert [len(one.n_best) for one in several] == [7] * len(TEXTS)
    for text, one in zip(alone, several, strict=True):
        assert text in [other.text for other in one.n_best]
        assert len({other.text for other in one.n_best}) > 1
        assert [other.score for other in one.n_best] == sorted((o.score for o in one.n_best), reverse=True)
    ended = [(one.source, other) for one in several for other in one.n_best if other.finished]
    forced = model.log_probs([(source, other.text) for source, other in ended])
    assert forced == pytest.approx([other.log_prob for _, other in ended], abs=1e-5)


def test_many_samples_are_drawn_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    model = untrained()
    whole = model.predict(TEXTS, temperature=1.0, n_best=5)
    monkeypatch.setattr("elman.tasks.search.SAMPLED", 12)
    blocks = model.predict(TEXTS, temperature=1.0, n_best=5)
    assert [[o.ids for o in one.n_best] for one in whole] == [[o.ids for o in one.n_best] for one in blocks]


def test_unknown_words_are_sampled_only_where_they_are_asked_for() -> None:
    model = untrained()
    unknown = model.sides.target.unk_id
    model.network.softmax.bias.data[unknown] += 3  # type: ignore[union-attr]
    options: SearchOptions = {"temperature": 1.0, "n_best": 5}

    def drawn(**more: Any) -> set[int]:
        return {id for one in model.predict(TEXTS, **options, **more) for other in one.n_best for id in other.ids}

    assert unknown not in drawn()
    assert unknown in drawn(allow_unknown=True)


def test_a_search_stops_at_as_many_finished_ones_as_it_is_told() -> None:
    model = untrained()
    few, many = (model.predict(TEXTS, beam=4, stop_at=n) for n in (1, 40))
    assert all(one.score <= other.score for one, other in zip(few, many, strict=True))
    assert any(one.score < other.score for one, other in zip(few, many, strict=True))
    with pytest.raises(UserError, match="stop_at = 2"):
        model.predict("abc", n_best=3, stop_at=2)


def test_greedy_is_a_beam_of_one_and_sampling_repeats() -> None:
    model = untrained()
    greedy = [one.text for one in model.predict(TEXTS, beam=1)]
    assert [one.text for one in model.predict(TEXTS, temperature=0)] == greedy
    drawn = model.predict(TEXTS, temperature=1.0, seed=3)
    assert [one.text for one in drawn] == [one.text for one in model.predict(TEXTS, temperature=1.0, seed=3)]
    ended = [one for one in drawn if one.n_best[0].finished]
    assert ended
    forced = model.log_probs([(one.source, one.text) for one in ended])
    assert forced == pytest.approx([one.n_best[0].log_prob for one in ended], abs=1e-5)
    short = model.predict(TEXTS, temperature=1.0, max_length=1)
    assert all(len(one.n_best[0].ids) == (not one.n_best[0].finished) for one in short)


def test_controls() -> None:
    model = untrained()
    plain = model.predict("abcd", max_length=8)
    assert model.predict("abcd", prefix="hgf").text.startswith("hgf")
    assert "hh" in model.predict("abcd", require=["hh"]).text
    for word in plain.text:
        assert word not in model.predict("abcd", forbid=[word]).text
    asked = [Search(prefix="a"), Search(), Search(require=("gg", "e"))]
    found = model.translate(["abcd", "abcd", "abcd"], asked)
    assert found[0].text.startswith("a") and "gg" in found[2].text and "e" in found[2].text
    assert found[1].text == model.predict("abcd").text
    long = "abcdefgh" * 5  # more than a source of one token has room for by itself
    assert model.predict("a", prefix=long).text.startswith(long)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"beam": 0}, "'beam' = 0"),
        ({"n_best": 0}, "'n_best' = 0"),
        ({"beam": 11}, "a beam of 11 is larger than the target's vocabulary of 10"),
        ({"n_best": 11}, "n_best = 11 is larger than the target's vocabulary of 10"),
        ({"beam": 2, "n_best": 3}, "n_best = 3 is more than beam = 2"),
        ({"beem": 3}, "did you mean 'beam'"),
        ({"beam": "many"}, "'beam' = 'many'"),
        ({"require": "ab"}, "'require' = 'ab'"),
        ({"require": ["xyz"]}, "'xyz' cannot be asked for"),
        ({"prefix": "xyz"}, "'xyz' cannot be asked for"),
        ({"require": [" "]}, "' ' cannot be asked for"),
        ({"forbid": [""]}, "a word to forbid is empty"),
        ({"require": ["abc"], "forbid": ["b"]}, "'abc' is asked for and 'b', which is in it, forbidden"),
        ({"prefix": "abc", "forbid": ["bc"]}, "'abc' is asked for and 'bc'"),
        ({"require": ["abc", "def"], "max_length": 5}, "takes 6 tokens, and max_length = 5"),
        ({"min_length": 5, "max_length": 4}, "min_length = 5 is more than max_length = 4"),
        ({"block_ngrams": 1, "min_length": 30}, "no translation of 'abc' was found that keeps to all"),
        ({"temperature": 1.0, "require": ["a"]}, "leave require out"),
        ({"temperature": -1.0}, "'temperature' = -1.0"),
        ({"replace_unknown": True}, "both sides are words"),
    ],
)
def test_what_cannot_be_is_refused_in_the_users_words(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError) as error:
        untrained().predict("abc", **options)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_the_usual_beam_fits_a_tiny_vocabulary() -> None:
    model = untrained([Pair("ab", "x")])
    assert model.config.search.beam > model.sides.target.size
    assert set(model.predict("ab").text) <= {"x"}


def test_what_a_model_without_attention_cannot_do() -> None:
    model = untrained(decoder="plain")
    for options in ({"alignments": True}, {"coverage": 0.2}):
        with pytest.raises(UserError, match="no attention"):
            model.predict("abc", **options)
    with pytest.raises(UserError, match="text 2 of 2 is empty"):
        model.predict(["abc", " "])


def test_saved_and_loaded_in_another_process(reverser: tuple[Translator, Path]) -> None:
    model, folder = reverser
    code = (
        "import json, sys, elman\n"
        "found = elman.load(sys.argv[1]).predict(sys.argv[2:], n_best=3)\n"
        "print(json.dumps([[x.text, x.score, x.log_prob] for one in found for x in one.n_best]))"
    )
    command = [sys.executable, "-c", code, str(folder), *TEXTS]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=True)
    here = [[x.text, x.score, x.log_prob] for one in model.predict(TEXTS, n_best=3) for x in one.n_best]
    assert json.loads(done.stdout) == here


def test_ensembles() -> None:
    one, other = untrained(seed=1), untrained(seed=2)
    text = "abcd"
    twice = one.ensemble_with(one).predict(text, n_best=3)
    assert [x.text for x in twice.n_best] == [x.text for x in one.predict(text, n_best=3).n_best]
    best = one.ensemble_with(other).predict(text).n_best[0]
    batch = make_batch([(one.sides.read(text), np.array(best.ids))], one.end)
    each = []
    for model in (one, other):
        hidden = model.network.readouts(batch.source, batch.lengths, batch.inputs, batch.batch_sizes)
        each.append(model.network.softmax.target_log_probs(hidden, batch.targets).exp())
    mean = ((each[0] + each[1]) / 2).log()[: len(best.ids) + best.finished].sum()
    assert best.log_prob == pytest.approx(float(mean.detach()), abs=1e-6)
    both = one.ensemble_with(other)
    assert both.network is one.network and one.others == ()
    pair = (text, best.text)
    batch = make_batch([one.encode(*pair)], one.end)
    each = []
    for model in (one, other):
        hidden = model.network.readouts(batch.source, batch.lengths, batch.inputs, batch.batch_sizes)
        each.append(model.network.softmax.target_log_probs(hidden, batch.targets).detach().exp())
    mean = ((each[0] + each[1]) / 2).log()
    assert both.log_probs([pair])[0] == pytest.approx(float(mean.sum()), abs=1e-5)
    assert both.expected_scores([batch])["loss"] == pytest.approx(-float(mean.mean()), abs=1e-5)
    weights = [model.align(*pair).weights for model in (one, other, both)]
    np.testing.assert_allclose((weights[0] + weights[1]) / 2, weights[2], atol=1e-6)
    assert untrained(longest=7).ensemble_with(untrained(longest=5)).longest == 5
    with pytest.raises(UserError, match="same vocabularies"):
        one.ensemble_with(untrained([Pair("xy", "yx")]))
    with pytest.raises(UserError, match="reverse_source"):
        one.ensemble_with(untrained(reverse_source=True))


def test_long_texts_are_translated_in_parts() -> None:
    model = untrained(sentences(), kind="words", longest=6)
    text = "der hund sieht ein vogel . ein vogel hört"
    found = model.predict(text, alignments=True, n_best=2)
    parts = [model.predict(part, n_best=2) for part in ("der hund sieht ein vogel .", "ein vogel hört")]
    assert found.parts == 2 and found.source == text
    assert found.text == " ".join(part.text for part in parts)
    assert found.n_best[1].log_prob == pytest.approx(sum(part.n_best[1].log_prob for part in parts))
    assert found.weights is not None
    first, tokens = len(parts[0].target_tokens), 6
    assert found.weights.shape == (len(found.target_tokens), len(found.source_tokens))
    assert not found.weights[:first, tokens:].any() and not found.weights[first:, :tokens].any()
    with pytest.raises(UserError, match="translated in parts, which cannot all have"):
        model.predict(text, require=["dog"])
    assert "dog" not in model.predict(text, forbid=["dog"]).text


def test_an_attention_of_fixed_length_looks_at_every_part() -> None:
    for attention, decoder in (("location", "luong"), ("fixed-length", "bahdanau")):
        model = untrained(longest=4, attention=attention, decoder=decoder)
        found = model.predict("abcdefgha", alignments=True)  # a single word
        assert found.parts == 3 and found.weights is not None and found.weights.shape[1] == 9
    assert untrained(longest=4).predict("abcdefgha").parts == 1  # others can look at all of it


def test_unknown_words_are_taken_from_the_source() -> None:
    model = untrained(sentences(), kind="words")
    sides = model.sides
    ids = sides.say("the waschbär sees").tolist()
    table = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])
    found = Translation("Der kleine Waschbär sieht", [Alternative("", -1.0, -1.0, ids)], list("....")[:4])
    fixed = replace_unknown(replace(found, weights=table, target_tokens=["the", "<unk>", "sees"]), sides)
    assert fixed.text == "the Waschbär sees"
    assert fixed.target_tokens == ["the", "Waschbär", "sees"]
    assert model.predict("der waschbär", replace_unknown=True).weights is not None
    assert "<unk>" not in model.predict("der waschbär", replace_unknown=True).text


def test_the_tree_of_a_search() -> None:
    model = untrained()
    tree = model.tree("abc", beam=3)
    assert len(tree.nodes) > 3
    with pytest.raises(UserError, match="leave temperature out"):
        model.tree("abc", temperature=1.0)


def test_predict_is_typed_with_every_option_of_a_search() -> None:
    assert list(SearchOptions.__annotations__) == list(Search.model_fields)
