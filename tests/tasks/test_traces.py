"""States of any model as arrays, and decoders that begin with any."""

from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from elman.decode import Sampling
from elman.errors import UserError
from elman.tasks.traces import write_states
from tests.inspect.small_models import classifier, tagger
from tests.tasks.language_models import untrained as language_model
from tests.tasks.translate_runs import untrained as translator

TEXTS = ["abc", "fedcba", "h"]


def single(**options: Any) -> Any:
    model = translator(**options)
    model.network.float()
    return model


def by_torch(model: Any) -> Any:
    twin = copy(model)
    twin.backend = "torch"
    return twin


# States


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_language_models_states_are_those_of_its_layers(direction: str) -> None:
    model = language_model(cell="lstm", direction=direction)
    found = model.states("the cat")
    ids = torch.tensor([model.read_ids("the cat")])
    with torch.no_grad():
        output, (h, c) = model.network.bodies[0](model.network.embed(ids))  # type: ignore[operator]
    rows = output[0, 1:].numpy()[:: -1 if direction == "backward" else 1]
    np.testing.assert_allclose(found.output, rows, atol=1e-6)
    np.testing.assert_allclose(found.parts["2.h"], rows, atol=1e-6)
    assert found.tokens == list("the cat") and set(found.parts) >= {"1.h", "1.c", "1.i", "1.f", "1.o", "2.g"}
    for layer in (0, 1):
        np.testing.assert_allclose(found.final[f"{layer + 1}.h"], h[layer, 0].numpy(), atol=1e-6)
        np.testing.assert_allclose(found.final[f"{layer + 1}.c"], c[layer, 0].numpy(), atol=1e-6)
    one = model.states("the cat", layer=2)
    assert {name[0] for name in (*one.parts, *one.final)} == {"2"}
    with pytest.raises(UserError, match="no layer 3"):
        model.states("the cat", layer=3)
    with pytest.raises(UserError, match="only translators"):
        model.states("the cat", target="x")


def test_both_directions_end_at_their_own_end_and_pooling_attends() -> None:
    model = classifier("model.pooling=attention", "model.bidirectional=true")
    first, second = model.states(["a fine film", "dull"])
    size = model.config.model.hidden
    letter = first.final["1.h"]
    np.testing.assert_allclose(letter[:size], first.parts["1.h"][-1, :size], atol=1e-6)
    np.testing.assert_allclose(letter[size:], first.parts["1.h"][0, size:], atol=1e-6)
    assert first.attention is not None and first.attention.shape == (len(first.tokens),)
    assert first.attention.sum() == pytest.approx(1.0, abs=1e-5)
    assert len(second.tokens) < len(first.tokens)
    assert tagger().states("a fine film").attention is None


def test_a_network_whose_output_is_combined_has_its_input_beside_its_state() -> None:
    found = language_model(cell="rnn", layers=1, output="combined").states("the cat")
    h, u = found.parts["1.h"], found.parts["1.u"]  # T x H, T x (I + H)
    assert set(found.parts) == {"1.h", "1.u"}
    np.testing.assert_allclose(u[1:, -h.shape[1] :], h[:-1], atol=1e-6)  # u has the state before the token
    np.testing.assert_allclose(found.final["1.h"], h[-1], atol=1e-6)
    np.testing.assert_allclose(found.output, u, atol=1e-6)


@pytest.mark.parametrize("decoder", ["plain", "bahdanau", "luong", "luong-feeding"])
@pytest.mark.parametrize("reverse_source", [False, True])
def test_a_translators_decoder_is_shown_as_it_writes(decoder: str, reverse_source: bool) -> None:
    model = single(decoder=decoder, reverse_source=reverse_source, cell="lstm")
    found, written = model.states("abc"), model.predict("abc", alignments=decoder != "plain")
    assert found.target_tokens == written.target_tokens and found.tokens == list("abc")
    assert found.decoder["1.h"].shape == found.decoder["1.c"].shape == (len(found.target_tokens), 12)
    if decoder == "plain":
        assert found.attention is None
    else:
        np.testing.assert_allclose(found.attention, written.weights, atol=1e-5)
    told = model.states("abc", target="cb")
    assert told.target_tokens == ["c", "b"]


def test_states_are_written_and_read_back(tmp_path: Path) -> None:
    model = single()
    traces = model.states(TEXTS)
    write_states(tmp_path / "all.npz", traces)
    with np.load(tmp_path / "all.npz") as found:
        assert found["lengths"].tolist() == [3, 6, 1] and found["1.h"].shape == (10, 12)
        assert found["target_lengths"].tolist() == [len(trace.target_tokens) for trace in traces]
        np.testing.assert_array_equal(found["final.1.h"], [trace.final["1.h"] for trace in traces])
        np.testing.assert_array_equal(found["attention.2"], traces[1].attention)
    with pytest.raises(UserError, match=r"ends in \.npz"):
        write_states(tmp_path / "all.txt", traces)


def test_last_states_are_features_for_other_models() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    model = language_model(layers=1, hidden=24)
    texts = ["the cat sat", "a cat ran", "one cat off", "the dog sat", "a dog ran", "one dog off"]
    features = np.stack([trace.final["1.h"] for trace in model.states(texts)])  # N x H
    labels = ["cat"] * 3 + ["dog"] * 3
    assert linear_model.LogisticRegression(C=100).fit(features, labels).score(features, labels) == 1.0


# Beginnings


@pytest.mark.parametrize("options", [{}, {"cell": "lstm", "learned_state": True}, {"direction": "backward"}])
def test_a_language_model_begins_with_any_state(options: dict[str, Any]) -> None:
    model, sampling = language_model(**options), Sampling(seed=5)
    for part in getattr(model.network.bodies[0], "initial", ()):
        part.data.normal_()
    given = {"length": 12, "samples": 3, "sampling": sampling}
    plain = model.generate("the", **given)
    assert model.generate("the", state={}, **given) == plain  # all of it is as usual
    state = model.states("a dog").final
    began = model.generate("the", state=state, **given)
    assert began == by_torch(model).generate("the", state=state, **given)
    scores = [[token.log_prob for token in one.score("the cat", state=state)] for one in (model, by_torch(model))]
    assert scores[0] == pytest.approx(scores[1], abs=1e-5)
    usual = [token.log_prob for token in model.score("the cat")]
    assert [token.log_prob for token in model.score("the cat", state={})] == pytest.approx(usual, abs=1e-5)
    assert scores[0] != pytest.approx(usual, abs=1e-3)
    for wrong, sentence in (({"3.h": [1]}, "no part '3.h'"), ({"1.h": [1]}, "9 numbers"), ([1], "a mapping")):
        with pytest.raises(UserError, match=sentence):
            model.generate("the", state=wrong)


def test_a_network_whose_output_is_combined_refuses_a_state_by_name() -> None:
    model = language_model(cell="rnn", layers=1, output="combined")
    with pytest.raises(UserError, match=r"model\.output = combined begins with its own state"):
        model.score("the cat", state={"1.h": np.zeros(9)})


@pytest.mark.parametrize("decoder", ["plain", "bahdanau", "luong", "luong-feeding"])
@pytest.mark.parametrize(
    "options",
    [
        {"layers": 2, "cell": "lstm"},
        {"attention": "additive", "reverse_source": True},
        {"bridge": "zero", "learned_state": True},
    ],
)
def test_decoding_from_the_encoders_own_memory_is_translating(decoder: str, options: dict[str, Any]) -> None:
    if decoder == "plain":
        options = {**options, "attention": "general"}
    model = single(decoder=decoder, **options)
    for part in model.network.decoder.body.initial:
        part.data.normal_()
    asked: dict[str, Any] = {"n_best": 3, "beam": 4, "alignments": decoder != "plain"}
    expected, traces = model.predict(TEXTS, **asked), model.states(TEXTS)
    for one in (model, by_torch(model)):
        found = one.decode([t.output for t in traces], [t.final for t in traces], **asked)
        for mine, theirs in zip(found, expected, strict=True):
            assert [other.ids for other in mine.n_best] == [other.ids for other in theirs.n_best]
            assert mine.score == pytest.approx(theirs.score, abs=1e-5)
            if decoder != "plain":
                np.testing.assert_allclose(mine.weights, theirs.weights, atol=1e-5)


def test_a_memory_may_be_anything_of_the_right_size() -> None:
    model = single()
    memory = np.random.default_rng(0).normal(size=(4, 12))
    found, same = model.decode(memory), by_torch(model).decode(memory)
    assert found.text == same.text and found.source_tokens == ["1", "2", "3", "4"]
    assert model.decode(memory, {"1.h": np.ones(12)}).score != found.score
    assert len(model.decode([memory, memory[:2]])) == 2 and model.decode([]) == []
    for wrong in (memory[:, :5], memory[0], np.full((2, 12), np.nan), np.zeros((0, 12))):
        with pytest.raises(UserError, match="memory 1"):
            model.decode(wrong)
    with pytest.raises(UserError, match="one for each"):
        model.decode([memory], [{}, {}])
