"""Language models that get used to what they read: a cache, dynamic evaluation, and both."""

import copy
import json
import pickle
import shutil
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
import torch

import elman
from elman.batches.stream import IdStream
from elman.decode import Sampling
from elman.errors import UserError
from elman.inspect.distributions import distributions
from elman.nn.dynamic import EPSILON
from elman.tasks import adaptive_scoring, scoring
from elman.tasks.adapting import FILE, AdaptingModel, AdaptingSettings, AdaptSettings, CacheSettings
from elman.tasks.gradient_statistics import FILE as GRADIENTS
from elman.tasks.gradient_statistics import gradient_rms
from elman.tasks.language import LanguageConfig, LanguageModel, LanguageRecipe, _reading
from elman.tasks.recipes import load_recipe
from elman.tasks.tuning import best_weight
from elman.text import fit_tokenizer
from tests.nn.test_cache import transcription
from tests.tasks.runs import SMALL, prose, run

CACHE = {"size": 30, "theta": 0.5, "weight": 0.2}
RATE = {"rate": 1e-3, "decay": 1e-2, "segment": 7}


def untrained(*settings: str, labels: tuple[str, ...] = ()) -> LanguageModel:
    """A small model with random weights: what has to hold exactly holds for any."""
    recipe = load_recipe(LanguageRecipe, None, [*SMALL, *settings])
    tokenizer = fit_tokenizer(recipe.text, [prose()])
    reading = _reading(recipe, tokenizer, IdStream(np.zeros(1, np.uint32), np.zeros(1, np.int64)))
    parts: dict[str, Any] = {"model": recipe.model, "reading": reading, "labels": labels}
    config = LanguageConfig.new("lm", recipe, **parts)
    torch.manual_seed(5)
    return LanguageModel(config, tokenizer, LanguageModel.build(config, tokenizer).eval())


def text_of(model: LanguageModel, count: int, documents: tuple[int, ...] = (0,), seed: int = 0) -> IdStream:
    """Ids by chance; a document ends with the end token."""
    ids = np.random.default_rng(seed).integers(2, model.tokenizer.size, count).astype(np.uint32)
    ids[[place - 1 for place in (*documents[1:], count)]] = model.tokenizer.eos_id
    labels = np.arange(len(documents)) % len(model.labels) if model.labels else None
    return IdStream(ids, documents, labels)


def statistics(model: LanguageModel) -> IdStream:
    """A text to measure gradients on."""
    starts = tuple(range(0, 300, 10)) if model.reading.unit == "line" else (0,)
    return text_of(model, 300, starts, seed=9)


def adapting(model: LanguageModel, cache: Any = CACHE, adapt: Any = RATE) -> AdaptingModel:
    return model.adapting(cache=cache, adapt=adapt, adapt_from=None if adapt is False else statistics(model))


def weights_of(model: LanguageModel) -> dict[str, np.ndarray]:
    return {name: array.copy() for name, array in model.weights().items()}


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in one)


# The cache


def by_hand(model: LanguageModel, ids: IdStream, settings: dict[str, Any]) -> np.ndarray:
    """Log-probabilities with a cache, document by document, by a plain transcription."""
    network, found, size = model.network, [], model.tokenizer.size
    carried: list[tuple[np.ndarray, np.ndarray]] = []
    for start, end in zip(ids.documents, ids.document_ends, strict=True):
        tokens = ids.read(int(start), int(end))
        inputs = torch.from_numpy(np.append(model.reading.start_id, tokens[:-1])[None])
        with torch.no_grad():
            hidden = network.hidden(inputs)[0][0]
            rows = network.softmax.log_probs(hidden).double().numpy()
        if model.reading.unit == "stream":
            carried.clear()
        carried.append((hidden.numpy(), tokens))
        states, seen = (np.concatenate(part) for part in zip(*carried, strict=True))
        cached = transcription(states, seen, settings["size"], settings["theta"], size)[-len(tokens) :]
        mixed = np.log((1 - settings["weight"]) * np.exp(rows) + settings["weight"] * cached)
        found.append(np.where(np.isnan(cached), rows, mixed)[np.arange(len(tokens)), tokens])
    return np.concatenate(found)


@pytest.mark.parametrize("unit", ["stream", "line"])
def test_a_cache_scores_as_its_equation_says_and_starts_anew_with_a_document(unit: str) -> None:
    model = untrained(f"data.unit={unit}")
    ids = text_of(model, 150, (0, 41, 64, 90))
    found = adapting(model, adapt=False).log_probs(ids)
    np.testing.assert_allclose(found, by_hand(model, ids, CACHE), atol=2e-5)
    assert np.abs(found - model.log_probs(ids)).max() > 1e-2


@pytest.mark.parametrize("unit", ["stream", "line"])
def test_a_model_that_reads_backwards_remembers_what_stands_behind(unit: str) -> None:
    backward, forward = untrained(f"data.unit={unit}", "model.direction=backward"), untrained(f"data.unit={unit}")
    ids = text_of(backward, 61, (0, 20, 38)) if unit == "line" else text_of(backward, 61)
    turned = [np.append(part[-2::-1], part[-1:]) for part in np.split(ids.read(0, 61), ids.documents[1:])]
    there = adapting(forward).log_probs(IdStream(np.concatenate(turned).astype(np.uint32), ids.documents))
    back = [np.append(part[-2::-1], part[-1:]) for part in np.split(there, ids.documents[1:])]
    found = backward.adapting(cache=CACHE, adapt=RATE, adapt_from=_turned(statistics(backward), unit)).log_probs(ids)
    np.testing.assert_allclose(found, np.concatenate(back), atol=1e-5)


def _turned(ids: IdStream, unit: str) -> IdStream:
    parts = [np.append(part[-2::-1], part[-1:]) for part in np.split(ids.read(0, len(ids)), ids.documents[1:])]
    return IdStream(np.concatenate(parts).astype(np.uint32), ids.documents)


def test_long_texts_are_read_in_blocks_and_streams_and_score_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model = untrained()
    ids = text_of(model, 3000, (0, 700, 1234))
    alone = adapting(model, adapt=False).log_probs(ids)
    monkeypatch.setattr(scoring, "PART", 300)
    monkeypatch.setattr(adaptive_scoring, "PART", 300)
    monkeypatch.setattr(adaptive_scoring, "HELD", 900 * model.network.softmax.hidden_size)
    np.testing.assert_allclose(adapting(model, adapt=False).log_probs(ids), alone, atol=1e-4)


# Dynamic evaluation


def test_dynamic_evaluation_is_its_equation_segment_by_segment() -> None:
    model = untrained()
    ids = text_of(model, 40, (0, 25))
    made = adapting(model, cache=False)
    rms, network = made.rms, copy.deepcopy(model).network
    mean = torch.stack([rms[name].mean() for name, _ in network.named_parameters()]).mean()
    trained = {name: weight.detach().clone() for name, weight in network.named_parameters()}
    expected: list[float] = []
    for start, end in ((0, 25), (25, 40)):
        for name, weight in network.named_parameters():
            weight.data.copy_(trained[name])
        tokens, state = torch.from_numpy(ids.read(start, end)), None
        inputs = torch.cat([torch.tensor([model.reading.start_id]), tokens[:-1]])
        for part in (slice(place, place + 7) for place in range(0, end - start, 7)):
            network.zero_grad()
            hidden, state = network.hidden(inputs[None, part], state)
            state = state.detach()
            found = network.softmax.log_probs(hidden[0]).gather(1, tokens[part, None])[:, 0]
            expected += found.tolist()
            (-found.mean() * len(found) / 7).backward()
            for name, weight in network.named_parameters():
                pull = (1e-2 * rms[name] / mean).clamp(max=1)
                moved = pull * (trained[name] - weight.data) - 1e-3 * weight.grad / (rms[name] + EPSILON * mean)
                weight.data += moved
    found = made.log_probs(ids)
    np.testing.assert_allclose(found, expected, atol=2e-4)
    assert np.abs(found - model.log_probs(ids)).max() > 1e-2


@pytest.mark.parametrize("unit", ["stream", "line"])
def test_a_rate_or_a_weight_of_zero_gives_the_static_scores_to_the_last_digit(unit: str) -> None:
    model = untrained(f"data.unit={unit}")
    starts = tuple(range(0, 9000, 30)) if unit == "line" else (0, 333)
    ids = text_of(model, 9000, starts)  # more than one stream
    static = model.log_probs(ids)
    assert np.array_equal(adapting(model, cache=False, adapt={"rate": 0.0}).log_probs(ids), static)
    assert np.array_equal(adapting(model, cache={"weight": 0.0}, adapt=False).log_probs(ids), static)
    found = adapting(model, cache={"weight": 0.0}, adapt={"rate": 1e-12, "decay": 0.0}).log_probs(ids.view(0, 300))
    np.testing.assert_allclose(found, static[:300], atol=1e-5)


def test_documents_are_scored_as_if_each_stood_alone() -> None:
    model = untrained()
    ids = text_of(model, 120, (0, 50, 81))
    made = adapting(model)
    parts = [IdStream(ids.read(start, end).astype(np.uint32)) for start, end in ((0, 50), (50, 81), (81, 120))]
    np.testing.assert_allclose(made.log_probs(ids), np.concatenate([made.log_probs(part) for part in parts]), atol=1e-6)


def test_lines_begin_anew_and_what_was_learnt_goes_on() -> None:
    model = untrained("data.unit=line")
    ids = text_of(model, 60, (0, 20, 40))
    ids = IdStream(np.tile(ids.read(0, 20), 3).astype(np.uint32), (0, 20, 40))  # the same line three times
    for made in (adapting(model, adapt=False), adapting(model, cache=False, adapt=RATE | {"rate": 5e-3})):
        each = made.log_probs(ids).reshape(3, 20).mean(axis=1)
        assert each[1:].min() > each[0] + 0.02


def test_gradients_are_counted_over_batches() -> None:
    model = untrained()
    rms, tokens = gradient_rms(model, text_of(model, 300, seed=9))
    assert tokens == 11 * 20  # 64 tokens of context are not counted
    network, squares = model.network, 0.0
    assert all(weight.grad is None for weight in network.parameters())
    ids = text_of(model, 300, seed=9).read(0, 300)
    for start in range(64, 64 + 220, 20):
        network.zero_grad()
        read = np.append(
            ids[start - 65 : start - 64] if start > 64 else [model.reading.start_id], ids[start - 64 : start - 1]
        )
        with torch.no_grad():
            _, state = network.hidden(torch.from_numpy(read[None]))
        hidden, _ = network.hidden(torch.from_numpy(ids[None, start - 1 : start + 19]), state)
        torch.nn.functional.cross_entropy(
            network.softmax.logits(hidden[0]), torch.from_numpy(ids[start : start + 20])
        ).backward()
        assert network.softmax.weight.grad is not None
        squares = squares + network.softmax.weight.grad**2
    torch.testing.assert_close(rms["softmax.weight"], (squares / 11).sqrt(), rtol=1e-3, atol=1e-6)


# Every kind of model


KINDS = {
    "window": ("model.kind=window",),
    "both ways": ("model.direction=both",),
    "sampled": ("model.softmax=sampled", "model.samples=5"),
    "adaptive": ("model.softmax=adaptive", "text.kind=words"),
    "tied, bridged": ("model.tied=true", "model.embedding=9"),
    "one-hot": ("model.embedding=0",),
    "sparse": ("model.sparse=true",),
    "learned state": ("model.learned_state=true", "model.cell=lstm"),
    "mut1": ("model.cell=mut1",),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_network_adapts(kind: str) -> None:
    model = untrained(*KINDS[kind])
    ids, made = text_of(model, 90), adapting(model)
    found, before = made.systems(ids), weights_of(made)
    assert set(found) == {"dynamic", "cache + dynamic"}
    assert all(np.isfinite(scores["loss"]) for scores in found.values())
    assert found["dynamic"]["loss"] != model.scores(ids)["loss"]
    assert same(before, weights_of(made)) and same(weights_of(model), before)
    assert len(made.follow(ids).generate("the", length=9, sampling=Sampling(seed=1))[0]) >= 0
    assert not same(before, weights_of(made))


def test_what_comes_next_is_what_the_model_would_score_there() -> None:
    made = adapting(untrained(), adapt=False).follow("the cat saw the cat")
    for one in made.predict("the ca", top=3):
        assert np.log(one.probability) == pytest.approx(made.score(f"the ca{one.token}")[-1].log_prob, abs=1e-5)
    assert made.predict("the ca")[0] != made.static.predict("the ca")[0]


def test_a_model_with_labels_adapts() -> None:
    model = untrained("data.unit=line", labels=("north", "south"))
    made = adapting(model)
    assert np.isfinite(made.log_probs(text_of(model, 80, tuple(range(0, 80, 8))))).all()
    assert len(made.score("the cat", label="south")) == len("the cat") + 1
    made.follow("the cat\nthe dog", label="north")
    assert made.generate(label="north", length=5, sampling=Sampling(seed=1))
    with pytest.raises(UserError, match="writes by label"):
        made.follow("the cat")


def test_ngrams_int8_and_other_tasks_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(prose())
    ngrams = run(tmp_path / "text.txt", tmp_path / "ngrams", "model.kind=ngram")
    with pytest.raises(UserError, match="n-gram model, which has no hidden states"):
        ngrams.adapting(cache=True)
    with pytest.raises(UserError, match="n-gram model, which has no gradients"):
        ngrams.adapting(adapt=True)
    int8 = untrained().to_int8()
    with pytest.raises(UserError, match="int8, which gives no gradients"):
        int8.adapting(adapt=True)
    with pytest.raises(UserError, match="int8, which gives no hidden states"):
        int8.adapting(cache=True)
    int8.backend = "torch"  # where it is computed with the rounded weights
    assert np.isfinite(int8.adapting(cache=True).log_probs(text_of(int8, 30))).all()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "nothing to adapt by"),
        ({"cache": {"size": 0}}, "'cache.size' = 0: should be greater than or equal to 1"),
        ({"cache": {"theta": -1}}, "'cache.theta' = -1: should be greater than or equal to 0"),
        ({"cache": {"weight": 1}}, "'cache.weight' = 1: should be less than 1"),
        ({"cache": {"wight": 0.1}}, "unknown key 'cache.wight': did you mean 'cache.weight'"),
        ({"adapt": {"rate": float("nan")}}, "'adapt.rate' = nan: should be a finite number"),
        ({"adapt": {"decay": -0.5}}, "'adapt.decay' = -0.5: should be greater than or equal to 0"),
        ({"adapt": {"segment": 0}}, "'adapt.segment' = 0: should be greater than or equal to 1"),
        ({"cache": 3}, "cache is True, or settings by key"),
        ({"cache": True, "adapt_from": "x.txt"}, "adapt_from is a text to measure gradients on"),
        ({"adapt": True}, "cannot be read .*give a text like it with --adapt-from"),
    ],
)
def test_bad_settings_are_one_sentence(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said) as error:
        untrained().adapting(**asked)
    assert "\n" not in str(error.value)


# What a user notices


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    """A small model of words in a folder, with its text."""
    folder = tmp_path_factory.mktemp("adapting")
    (folder / "text.txt").write_text(prose(200))
    return run(folder / "text.txt", folder / "run", "text.kind=words", "train.steps=40", "train.lr=0.01")


def folder_of(model: LanguageModel) -> dict[str, bytes]:
    assert model.folder is not None
    return {str(path): path.read_bytes() for path in sorted(model.folder.rglob("*")) if path.is_file()}


def test_a_text_that_repeats_itself_gains_and_one_that_the_model_drew_itself_does_not(trained: LanguageModel) -> None:
    """Of words that were drawn from the model's own distribution nobody can know more than the model does."""
    words = np.random.default_rng(3).integers(2, trained.tokenizer.size, 60).astype(np.uint32)
    repeats = IdStream(np.tile(words, 12))
    shuffled = IdStream(np.random.default_rng(3).permutation(np.tile(words, 12)))
    start = trained.reading.start_id
    drawn = [new[0] for new in trained.engine().generate([[start]], length=720, seed=1)]
    by_chance = IdStream(np.array(drawn, np.uint32))
    for asked in ({"cache": {"size": 200, "theta": 2.0, "weight": 0.4}}, {"adapt": {"rate": 3e-3, "decay": 0.0}}):
        made = trained.adapting(**asked)
        (scores,) = made.systems(repeats).values()
        gained = trained.scores(repeats)["loss"] - scores["loss"]
        assert gained > 0.3, asked
        (scores,) = made.systems(shuffled).values()  # what is left is how often each word stands there
        assert trained.scores(shuffled)["loss"] - scores["loss"] < gained / 2, asked
        gain = made.log_probs(by_chance) - trained.log_probs(by_chance)
        assert gain.mean() < 3 * gain.std() / len(gain) ** 0.5, asked


def test_the_model_and_its_folder_stay_as_they_are(trained: LanguageModel, tmp_path: Path) -> None:
    before, files = weights_of(trained), folder_of(trained)
    made = trained.adapting(cache=CACHE, adapt=RATE)
    static = trained.score(prose(3))
    first = [token.log_prob for token in made.score(prose(3))]
    assert [token.log_prob for token in made.score(prose(3))] == first, "each text is on its own"
    made.follow(prose(5))
    assert np.mean([token.log_prob for token in made.score(prose(3))]) > np.mean(first)
    made.save(tmp_path / "adapted")
    again = elman.load(tmp_path / "adapted")
    assert same(weights_of(again), weights_of(made)) and not same(weights_of(again), before)
    assert trained.score(prose(3)) == static
    assert same(weights_of(trained), before) and folder_of(trained) == files


def test_reports_have_rows_of_their_own_beside_the_static_ones(trained: LanguageModel, tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text(prose(9))
    path = str(tmp_path / "more.txt")
    static = elman.evaluate(trained, path, baselines=False)
    made = trained.adapting(cache=CACHE, adapt=RATE)
    report = elman.evaluate(made, path)
    assert report[path] == static[path]
    assert [row[0] for row in report.table(path)[1]] == ["this model", "dynamic", "cache + dynamic", "unigram"]
    found = made.systems(made_ids(made, tmp_path / "more.txt"))
    assert report["adapted"]["cache + dynamic"][path] == found["cache + dynamic"]
    assert report["adapting"]["cache"] == CACHE
    cached = elman.evaluate(trained.adapting(cache=CACHE), path, baselines=False)
    assert [row[0] for row in cached.table(path)[1]] == ["this model", "cache"]


def made_ids(model: LanguageModel, path: Path) -> IdStream:
    from elman.tasks.adapting import text_ids

    return text_ids(model, path)


@pytest.mark.parametrize("adapt", [False, RATE])
@pytest.mark.parametrize("cache", [False, CACHE])
def test_ranks_are_by_the_scores_of_the_model_that_adapts(trained: LanguageModel, cache: Any, adapt: Any) -> None:
    if not cache and not adapt:
        return
    made = trained.adapting(cache=cache, adapt=adapt)
    ids = text_of(trained, 200, (0, 80))
    seen = distributions(made, ids)
    np.testing.assert_allclose(seen.log_probs, made.log_probs(ids), atol=1e-5)
    assert (seen.ranks >= 1).all() and (seen.best_probabilities.sum(axis=1) <= 1 + 1e-6).all()


def test_what_is_written_follows_the_scores_and_branches_do_not_disturb_each_other(trained: LanguageModel) -> None:
    made = trained.adapting(cache=CACHE).follow(prose(2))
    ids = [made.reading.start_id, *made.tokenizer.encode(prose(12)).tolist()][:90]
    stepper = made.stepper()
    state, found, kept = stepper.start(1), [], None
    for place, (before, after) in enumerate(pairwise(ids)):
        rows, state = stepper.step(np.array([before]), state)
        np.testing.assert_allclose(np.exp(rows).sum(), 1.0, atol=1e-5)
        found.append(float(rows[0, after]))
        if place == 40:
            kept = state
    expected = made.log_probs(IdStream(np.array(ids[1:], np.uint32)))
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert kept is not None
    both = stepper.select(kept, np.array([0, 0]))
    for place in range(41, 60):
        rows, both = stepper.step(np.array([ids[place], ids[0]]), both)
        assert rows[0, ids[place + 1]] == pytest.approx(found[place], abs=1e-4)
    other = kept
    for place in range(41, 60):
        rows, other = stepper.step(np.array([ids[place]]), other)
        assert rows[0, ids[place + 1]] == pytest.approx(found[place], abs=1e-4)


def test_a_model_used_to_a_text_writes_its_words(trained: LanguageModel) -> None:
    greedy = Sampling(temperature=0)
    line = "rain rain rain sea sea sea "
    made = trained.adapting(cache={"size": 400, "theta": 1.0, "weight": 0.9}).follow(line * 20)
    written = made.generate(line + "rain ", length=20, sampling=greedy)[0]
    assert set(written.split()) == {"rain", "sea"}
    assert trained.generate(line + "rain ", length=20, sampling=greedy)[0] != written
    assert made.generate("the", length=5, samples=3, sampling=Sampling(seed=2)) == made.generate(
        "the", length=5, samples=3, sampling=Sampling(seed=2)
    )


def test_copies_are_plain_models_and_pickles_go_on(trained: LanguageModel) -> None:
    made = trained.adapting(cache=CACHE, adapt=RATE).follow(prose(4))
    twin = pickle.loads(pickle.dumps(made))
    assert [token.log_prob for token in twin.score("the cat")] == [token.log_prob for token in made.score("the cat")]
    plain = copy.deepcopy(made)
    assert type(plain) is LanguageModel and same(weights_of(plain), weights_of(made))


# Settings that are found, and kept


def test_tuned_settings_are_no_worse_and_are_kept_in_the_folder(trained: LanguageModel, tmp_path: Path) -> None:
    assert trained.folder is not None
    shutil.copytree(trained.folder, tmp_path / "run")
    model = elman.load(tmp_path / "run", "lm")
    ids = text_of(model, 400, seed=4)
    ids = IdStream(np.tile(ids.read(0, 50), 8).astype(np.uint32))
    said: list[str] = []
    start = model.adapting(cache=True, adapt=True)
    tuned = start.tune(ids, tokens=200, say=said.append)
    assert said and all(line.startswith(("cache:", "dynamic:")) for line in said)
    short = ids.view(0, 200)
    assert tuned.systems(short)["cache + dynamic"]["loss"] < start.systems(short)["cache + dynamic"]["loss"]
    assert not (tmp_path / "run" / FILE).exists() and not (tmp_path / "run" / GRADIENTS).exists()
    tuned.keep()
    again = elman.load(tmp_path / "run", "lm")
    heard: list[str] = []
    settled = again.adapting(cache=True, adapt={"segment": 3}, say=heard.append)
    assert settled.adapting_settings.cache == tuned.adapting_settings.cache
    assert settled.adapting_settings.adapt == tuned.adapting_settings.adapt.model_copy(update={"segment": 3})  # type: ignore[union-attr]
    assert not heard, "the gradients were kept"
    assert again.adapting(cache=True).adapting_settings == AdaptingSettings(cache=CacheSettings()), (
        "for both, not alone"
    )
    with torch.no_grad():
        again.network.softmax.bias.add_(1.0)  # type: ignore[union-attr]
    again.adapting(adapt=True, say=heard.append)
    assert "measured on" in heard[0], "those that were kept are of other weights"
    (tmp_path / "run" / FILE).write_text(json.dumps({"cache": {"cache": {"size": "many"}}}))
    with pytest.raises(UserError, match=r"adapting.json is damaged: 'cache.size' = 'many'"):
        elman.load(tmp_path / "run", "lm").adapting(cache=True)
    (tmp_path / "run" / FILE).unlink()
    (tmp_path / "run" / GRADIENTS).write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"gradients.safetensors is damaged"):
        elman.load(tmp_path / "run", "lm").adapting(adapt=True)


def test_the_best_weight_of_a_cache_is_where_no_other_is_better() -> None:
    random = np.random.default_rng(1)
    log_probs, shares = np.log(random.uniform(0.01, 0.5, 500)), random.uniform(0, 1, 500) ** 4
    shares[0] = np.nan
    weight, loss = best_weight(log_probs, shares)
    mixed = [
        -np.log((1 - w) * np.exp(log_probs[1:]) + w * shares[1:]).sum() - log_probs[0]
        for w in np.linspace(0, 0.99, 500)
    ]
    assert 0 < weight < 1 and loss == pytest.approx(min(mixed) / 500, abs=1e-6)
    assert best_weight(log_probs, np.zeros(500))[0] < 1e-8


def test_settings_are_written_as_the_command_line_takes_them() -> None:
    settings = AdaptingSettings(cache=CacheSettings(), adapt=AdaptSettings(rate=2e-5))
    assert settings.written() == (
        "-s cache.size=2000 -s cache.theta=0.3 -s cache.weight=0.1 -s adapt.rate=2e-05 -s adapt.decay=0.001 "
        "-s adapt.segment=20"
    )


def test_what_adapts_begins_with_what_it_has_read() -> None:
    model = untrained()
    state = model.states(prose()[:20]).final
    for call in (
        lambda one: one.generate(prose()[:5], length=3, state=state),
        lambda one: one.score("the", state=state),
    ):
        with pytest.raises(UserError, match="begins with what it has read"):
            call(model.adapting(cache=CACHE))


def test_what_is_written_waits_for_a_text_that_is_being_followed(trained: LanguageModel) -> None:
    made = trained.adapting(cache=CACHE)
    reading, go_on, written = Event(), Event(), list[str]()

    def hold(done: int, of: int) -> None:
        reading.set()
        assert go_on.wait(20)

    made.progress = hold
    follows = Thread(target=lambda: made.follow(prose(3)))
    follows.start()
    assert reading.wait(20)
    writes = Thread(target=lambda: written.extend(made.generate("the", length=3)))
    writes.start()
    writes.join(0.2)
    assert not written
    go_on.set()
    follows.join(20)
    writes.join(20)
    assert len(written) == 1
