"""Every entry of the compiled module, called wrongly in every way: it refuses, and never crashes.

The wrong values are the same for all entries, made from the arguments of a right call. An array that another thread
overwrites during a call changes nothing, and an object that one thread writes with is refused to a second.
"""

import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from elman import kernels
from elman.nn.pooling import AttentionPooling
from elman.nn.recurrent import Recurrent
from elman.runtime import CompiledTranslator, Encoder, Engine
from tests.nn import translators
from tests.runtime.networks import make

pytestmark = pytest.mark.skipif(not kernels.available(), reason="the kernels were not built")

REFUSALS = (ValueError, TypeError, IndexError, RuntimeError, OverflowError)
Arguments = dict[str, Any]
Entry = tuple[Callable[..., Any], Arguments]


class Recorder:
    """The compiled module, which remembers what objects were made of."""

    def __init__(self, native: Any) -> None:
        self.native, self.descriptions = native, {}

    def __getattr__(self, name: str) -> Any:
        made = getattr(self.native, name)
        if not name.startswith("make_"):
            return made

        def make_it(description: Arguments) -> Any:
            self.descriptions[name] = description
            return made(description)

        return make_it


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def whole(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def encoders() -> tuple[Any, Any]:
    """One that reads vectors, and one that reads ids."""
    torch.manual_seed(0)
    body = Recurrent("lstm", 5, 6, 2, bidirectional=True)
    network = torch.nn.ModuleDict({"body": body, "pooling": AttentionPooling(body)})
    words = torch.nn.ModuleDict({"body": Recurrent("gru", 5, 6), "words": torch.nn.Embedding(9, 5)})
    vectors = Encoder.of(network, body, pooling=network["pooling"])
    return vectors._native, Encoder.of(words, words["body"], embedding=words["words"])._native


def decoder() -> CompiledTranslator:
    return CompiledTranslator.of(translators.network("bahdanau", "additive").float())


def step_of(native: Any) -> Arguments:
    memory, keys = floats(2, 3, 8), floats(2, 3, 8)
    return {
        "ids": whole(1, 2, 3),
        "owners": np.array([0, 1, 1], np.int32),
        "states": np.zeros((3, native.state_size), np.float32),
        "keys": keys,
        "memory": memory,
        "lengths": np.array([3, 2], np.int32),
        "logits": np.zeros((3, native.padded_vocabulary), np.float32),
        "threads": 1,
    }


def greedy_of(native: Any) -> Arguments:
    first = {name: value for name, value in step_of(native).items() if name in ("keys", "memory", "lengths", "threads")}
    states = np.zeros((2, native.state_size), np.float32)
    asked = {"start": 1, "stop": 2, "shortest": 0, "never": whole(4), "limits": whole(5, 3)}
    return {**first, "states": states, **asked}


TEXT: Arguments = {
    "prompt": [1, 2],
    "samples": 2,
    "length": 5,
    "temperature": 1.0,
    "top_k": 3,
    "top_p": 0.9,
    "repetition_penalty": 1.2,
    "seed": 0,
    "stop_ids": [3],
    "suppressed": [4],
    "first_stream": 0,
    "label": 0,
    "alternatives": 2,
}


def written(engine: Any) -> Any:
    """A batch of texts that are under way."""
    batch = kernels.native.continuous_batch(engine, 1)
    batch.add(**TEXT)
    return batch


WRITE: Arguments = {
    "prompts": [[1, 2], [1]],
    "length": 5,
    "temperature": 1.0,
    "top_k": 3,
    "top_p": 0.9,
    "repetition_penalty": 1.2,
    "seed": 0,
    "stop_ids": [3],
    "suppressed": [4],
    "first_stream": 0,
    "label": 0,
    "threads": 1,
}


def recurrence() -> Arguments:
    direction = {"weight_ih": floats(16, 3), "weight_hh": floats(16, 4), "gates": floats(5, 16), "input": floats(5, 3)}
    return {
        "backward": False,
        "mode": "LSTM",
        "input_size": 3,
        "hidden": 4,
        "output_size": 4,
        "threads": 1,
        "batch_sizes": [3, 2],
        "output": floats(5, 4),
        "states": {"h": floats(3, 4), "c": floats(3, 4)},
        "directions": [direction],
    }


def embedder() -> Arguments:
    """Word vectors of three words, with n-grams."""
    sizes = {
        "size": 5,
        "words": 5,
        "first": 2,
        "end": 1,
        "window": 2,
        "negatives": 3,
        "input_rows": 7,
        "output_rows": 5,
    }
    return {
        "description": sizes | {"cbow": False, "dynamic": True, "objective": "negative"},
        "keep": np.full(5, 2**32 - 1, np.uint32),
        "chance": np.full(3, 2**31, np.uint32),
        "alias": np.array([1, 2, 0], np.int32),
        "places": np.zeros(0, np.int64),
        "nodes": np.zeros(0, np.int32),
        "codes": np.zeros(0, np.int8),
        "starts": np.array([0, 1, 2, 4, 5, 6], np.int64),
        "rows": np.array([0, 1, 2, 6, 3, 4], np.int32),
    }


def learning() -> Arguments:
    arrays = {"input": np.zeros((7, 16), np.float32), "output": np.zeros((5, 16), np.float32)}
    return {**arrays, "ids": whole(2, 3, 4, 1, 3, 0, 2), "rate": 0.1, "seed": 1, "threads": 2}


@cache
def entries() -> dict[str, Entry]:
    """A right call of each entry."""
    native = kernels.native
    engine = Engine.of(make("lstm", labels=2))._native
    vectors, words = encoders()
    translator = decoder()._native
    state, labels = np.zeros((2, engine.state_size), np.float32), whole(0, 1)
    after, log_probs = np.zeros_like(state), np.zeros((2, engine.vocabulary), np.float32)
    scores = {"query": floats(2, 3, 4), "keys": floats(2, 5, 4), "v": floats(4), "padding": np.zeros((2, 5), np.uint8)}
    scores |= {"counts": whole(3, 2), "scores": floats(2, 3, 5), "threads": 2}
    gradients = {"d_query": floats(2, 3, 4), "d_keys": floats(2, 5, 4), "d_v": floats(2, 4)}
    seen = {"weights": floats(2, 5), "states": floats(3, 5, 4), "padding": np.zeros((3, 5), np.uint8)}
    chain = {"start": floats(3), "transitions": floats(3, 3), "end": floats(3)}
    first = {"log_probs": floats(4, 9), "running": np.zeros(4), "first": whole(0, 1, 4), "best": 3, "threads": 2}
    step = {"ids": whole(3, 1), "labels": labels, "states": state, "log_probs": log_probs, "after": after, "threads": 2}
    score = {"inputs": whole(1, 2, 3, 4).reshape(2, 2), "targets": whole(1, 2, 3, 4).reshape(2, 2)}
    places = {"scores": floats(2, 5), "ids": whole(0, 1, 2, 1, 0), "targets": whole(1, 2), "size": 3, "theta": 0.5}
    losses = {"logits": floats(3, 7), "targets": whole(0, 6, 3), "losses": floats(3)}
    return {
        "additive_scores": (native.additive_scores, scores | dict.fromkeys(gradients)),
        "additive_scores backward": (native.additive_scores, scores | gradients),
        "contexts": (native.contexts, seen | {"contexts": floats(2, 4), "backward": False, "threads": 2}),
        "cross_entropy": (native.cross_entropy, losses | {"smoothing": 0.1, "threads": 2}),
        "cache_shares": (native.cache_shares, places | {"threads": 2}),
        "recurrence": (native.recurrence, recurrence()),
        "viterbi": (native.viterbi, {"emissions": floats(5, 3), "lengths": whole(2, 3)} | chain),
        "best_continuations": (native.best_continuations, first),
        "generate": (native.generate, WRITE | {"engine": engine}),
        "Engine.step": (engine.step, step),
        "Engine.score": (engine.score, score | {"labels": labels, "states": state, "threads": 2}),
        "Encoder.read_vectors": (vectors.read_vectors, {"vectors": floats(5, 5), "lengths": whole(2, 3), "threads": 2}),
        "Encoder.read_ids": (words.read_ids, {"ids": whole(0, 8, 1, 2, 3), "lengths": whole(2, 3), "threads": 2}),
        "Encoder.gates": (vectors.gates, {"vectors": floats(5, 5), "threads": 2}),
        "Encoder.read_gates": (
            vectors.read_gates,
            {
                "gates": vectors.gates(floats(4, 5), 1),
                "ids": whole(0, 3, 1, 2, 3),
                "lengths": whole(2, 3),
                "threads": 2,
            },
        ),
        "Decoder.step": (translator.step, step_of(translator)),
        "Decoder.greedy": (translator.greedy, greedy_of(translator)),
        "Generation.advance": (lambda steps: native.generate(**WRITE, engine=engine).advance(steps), {"steps": 3}),
        "Embedder": (native.Embedder, embedder()),
        "Embedder.learn": (lambda **given: native.Embedder(**embedder()).learn(**given), learning()),
        "continuous_batch": (native.continuous_batch, {"engine": engine, "threads": 2}),
        "ContinuousBatch.add": (lambda **given: written(engine).add(**given), TEXT),
        "ContinuousBatch.advance": (lambda steps: written(engine).advance(steps), {"steps": 3}),
        "Generation.end": (lambda row: native.generate(**WRITE, engine=engine).end(row), {"row": 1}),
    }


NAMES = list(entries()) if kernels.available() else []
HUGE = (2**31 - 1, 2**40, 2**63 - 1, 2**64)


def wrong_arrays(right: np.ndarray) -> Iterator[Any]:
    """Other types, shapes and layouts."""
    yield from ("text", 5, object(), [[1.5]], {}, right.astype(object), right.astype(np.complex64))
    yield from (right.astype(np.float16), right.astype(np.bool_), right[:0], np.zeros((0, 2**40), right.dtype))
    yield right.astype(np.float64 if right.dtype != np.float64 else np.float32)
    yield from (
        right[..., :-1].copy(),
        np.concatenate([right, right]),
        right.reshape(-1)[:1],
        right.reshape(() + (1,) * 4 + (-1,)),
    )
    yield from (
        np.repeat(right, 2, axis=-1)[..., ::2],
        right[::-1],
        np.broadcast_to(right.reshape(-1)[:1], right.shape),
    )
    if right.dtype.kind == "i":
        for number in (-1, np.iinfo(right.dtype).min, np.iinfo(right.dtype).max, 10**6):
            yield np.full_like(right, np.array(number).astype(right.dtype))


def wrong_values(right: Any) -> Iterator[Any]:
    """What may stand in the place of an argument."""
    if right is not None:
        yield None
    if isinstance(right, np.ndarray):
        yield from wrong_arrays(right)
        if right.dtype.kind == "f":  # right in shape, and it may go through
            yield from (np.full_like(right, number) for number in (np.nan, np.inf, -np.inf, 3e38))
    elif isinstance(right, bool):
        yield "text"
    elif isinstance(right, int | float):
        yield from (-1, 0, -(2**31), 1.5, float("nan"), float("inf"), "1", [], *HUGE)
    elif isinstance(right, list):
        yield from ([], [None], ["a"], [-1], [10**6], [2**40], [[]], [[-1]], [[10**9]], [{}], 3, "text")
    elif isinstance(right, dict):
        yield from ({}, [], "text", {"weights": "text"})
        for name in right:
            for value in wrong_values(right[name]):
                yield right | {name: value}
    elif isinstance(right, str):
        yield from ("", "text", 3, b"LSTM")


def copied(given: Any) -> Any:
    """A call of its own memory, as some arrays are written to."""
    if isinstance(given, dict):
        return {name: copied(value) for name, value in given.items()}
    return given.copy() if isinstance(given, np.ndarray) and given.flags.writeable else given


@pytest.mark.parametrize("name", NAMES)
def test_wrong_arguments_end_in_an_exception_or_an_answer(name: str) -> None:
    entry, right = entries()[name]
    entry(**copied(right))
    tried = refused = 0
    for argument in right:
        for value in wrong_values(right[argument]):
            tried += 1
            try:
                entry(**copied(right) | {argument: value})
            except REFUSALS as error:
                assert str(error)
                refused += 1
    assert refused >= 0.6 * tried
    entry(**copied(right))


@pytest.mark.parametrize("name", [name for name in NAMES if "threads" in entries()[name][1]])
@pytest.mark.parametrize("threads", [0, -1, -(2**31), 10**6, 2**31 - 1])
def test_every_entry_refuses_a_wrong_number_of_threads(name: str, threads: int) -> None:
    entry, right = entries()[name]
    changed = {"threads": threads}
    if right.get("d_v") is not None:  # which has a row for each thread
        changed |= {"d_v": np.zeros((max(0, min(threads, 2)), 4), np.float32)}
    with pytest.raises(ValueError, match="threads"):
        entry(**copied(right) | changed)


INDICES = {
    "cross_entropy": ["targets"],
    "viterbi": ["lengths"],
    "best_continuations": ["first"],
    "Engine.step": ["ids", "labels"],
    "Engine.score": ["inputs", "targets", "labels"],
    "Encoder.read_vectors": ["lengths"],
    "Encoder.read_ids": ["ids", "lengths"],
    "Encoder.read_gates": ["ids", "lengths"],
    "Decoder.step": ["ids", "owners", "lengths"],
    "additive_scores": ["counts"],
    "Embedder": ["alias", "rows"],
    "Embedder.learn": ["ids"],
}


@pytest.mark.parametrize("name", INDICES)
def test_indices_out_of_range_or_of_another_type_are_refused(name: str) -> None:
    entry, right = entries()[name]
    for argument in INDICES[name]:
        indices = right[argument]
        for number in (-1, 10**6, np.iinfo(indices.dtype).min, np.iinfo(indices.dtype).max):
            for place in range(indices.size):
                wrong = indices.copy()
                wrong.reshape(-1)[place] = number
                with pytest.raises((ValueError, IndexError)):
                    entry(**copied(right) | {argument: wrong})
        for wrong in (indices.astype(np.float64), np.repeat(indices, 2, axis=-1)[..., ::2]):
            with pytest.raises(TypeError):
                entry(**copied(right) | {argument: wrong})


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("additive_scores", "scores"),
        ("additive_scores backward", "d_query"),
        ("additive_scores backward", "d_keys"),
        ("additive_scores backward", "d_v"),
        ("contexts", "contexts"),
        ("cross_entropy", "logits"),
        ("cross_entropy", "losses"),
        ("Engine.step", "log_probs"),
        ("Engine.step", "after"),
        ("Decoder.step", "logits"),
        ("recurrence", "output"),
        ("Embedder.learn", "input"),
        ("Embedder.learn", "output"),
    ],
)
def test_what_cannot_be_written_to_is_refused(name: str, argument: str) -> None:
    entry, right = entries()[name]
    fixed = right[argument].copy()
    fixed.flags.writeable = False
    with pytest.raises((TypeError, ValueError)):
        entry(**copied(right) | {argument: fixed})


@pytest.mark.parametrize("best", [0, -1, 2**24 + 1, 2**40, 2**62])
def test_an_enormous_number_of_continuations(best: int) -> None:
    entry, right = entries()["best_continuations"]
    with pytest.raises(ValueError, match="best"):
        entry(**right | {"best": best})


@pytest.mark.parametrize("name", ["hidden", "output_size", "input_size"])
def test_a_layer_of_enormous_size(name: str) -> None:
    entry, right = entries()["recurrence"]
    with pytest.raises(ValueError, match=str(2**28)):
        entry(**copied(right) | {name: 2**28 + 1})


def test_objects_cannot_be_made_of_nothing() -> None:
    native = kernels.native
    for kind in (native.Engine, native.Encoder, native.Decoder, native.Generation, native.ContinuousBatch):
        with pytest.raises(TypeError):
            kind()


# What objects are made of


def descriptions(monkeypatch: pytest.MonkeyPatch) -> dict[str, Arguments]:
    recorder = Recorder(kernels.native)
    with monkeypatch.context() as patch:
        patch.setattr(kernels, "native", recorder)
        Engine.of(make("gru", layers=2, labels=2, tied=True), int8=True)
        encoders()
        decoder()
    return recorder.descriptions


@pytest.mark.parametrize("name", ["make_engine", "make_encoder", "make_decoder"])
def test_wrong_descriptions_are_refused_or_packed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = descriptions(monkeypatch)[name]
    make_it = getattr(kernels.native, name)
    make_it(right)
    parts = "parts" if name == "make_encoder" else "layers"
    cases = [right | {key: value} for key in right for value in wrong_values(right[key])]
    cases += [right | {parts: [part, *right[parts][1:]]} for part in wrong_values(right[parts][0])]
    cases += [{other: right[other] for other in right if other != key} for key in right]
    refused = 0
    for case in cases:
        try:
            made = make_it(case)
        except REFUSALS as error:
            assert "bad_cast" not in str(error)
            refused += 1
        else:  # whatever was packed can be used
            if name == "make_decoder":
                translated(made)
    assert refused > len(cases) / 2


def translated(native: Any) -> None:
    given = step_of(native)
    for size in (0, 1, 8):
        try:
            native.step(**given | {"keys": floats(2, 3, size)})
        except ValueError:
            continue


def test_a_decoder_that_looks_before_the_step_reads_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    right = descriptions(monkeypatch)["make_decoder"]
    without = right | {"reads_token": False, "sees_token": False, "bridge_parts": right["bridge_parts"][1:]}
    without["bridge"] = np.ascontiguousarray(right["bridge"][:, right["token_size"] :])
    with pytest.raises(ValueError, match="the token"):
        kernels.native.make_decoder(without)


# Several threads of a program


def disturbed(call: Callable[[], Any], arrays: list[np.ndarray]) -> Any:
    """The answer of a call during which another thread overwrites the arrays with what would be out of bounds."""
    right = [array.copy() for array in arrays]
    began = time.perf_counter()
    call()
    span = time.perf_counter() - began
    for attempt in range(60):  # earlier and later: how soon the other thread begins depends on the machine's load
        answers: list[Any] = []
        worker = threading.Thread(target=lambda found=answers: found.append(call()))
        worker.start()
        time.sleep(span * (attempt % 10 + 1) / 11)
        alive = worker.is_alive()
        for array in arrays:
            array[...] = np.iinfo(array.dtype).max // 2
        worker.join()
        for array, before in zip(arrays, right, strict=True):
            array[...] = before
        if answers and alive:
            return answers[0]
    raise AssertionError("the call was never under way when its arrays were overwritten")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # refused: it had not begun
def test_arrays_that_are_overwritten_during_a_call() -> None:
    rng = np.random.default_rng(1)
    engine = Engine.of(make("lstm", hidden=64))._native
    inputs, targets = (rng.integers(0, engine.vocabulary, (20, 2000)) for _ in range(2))
    state = np.zeros((20, engine.state_size), np.float32)
    calls: list[tuple[Callable[[], Any], list[np.ndarray]]] = [
        (lambda: engine.score(inputs, targets, whole(), state, 1)[0], [inputs, targets])
    ]
    words = encoders()[1]
    ids, lengths = rng.integers(0, 9, 200_000), np.full(2000, 100)
    calls.append((lambda: words.read_ids(ids, lengths, 1)[0], [ids, lengths]))
    emissions, steps, chain = floats(40_000, 60), np.full(400, 100), (floats(60), floats(60, 60), floats(60))
    calls.append((lambda: kernels.native.viterbi(emissions, steps, *chain)[0], [steps]))
    logits, wanted = floats(4000, 2000), rng.integers(0, 2000, 4000)

    def losses() -> np.ndarray:
        found = np.zeros(4000, np.float32)
        kernels.native.cross_entropy(logits.copy(), wanted, found, 0.0, 1)
        return found

    calls.append((losses, [wanted]))
    for call, arrays in calls:
        expected = call()
        np.testing.assert_array_equal(disturbed(call, arrays), expected)


def test_a_text_is_written_by_one_thread_at_a_time() -> None:
    engine = Engine.of(make("lstm", hidden=128))._native
    request = {"engine": engine, "prompts": [[1], [2]], "length": 10**6, "repetition_penalty": 1.0, "stop_ids": []}
    writing = kernels.native.generate(**WRITE | request)
    worker = threading.Thread(target=lambda: writing.advance(20_000))
    worker.start()
    refusals = []
    while worker.is_alive():
        for again in (lambda: writing.advance(1), lambda: writing.end(0)):
            try:
                again()
            except RuntimeError as error:
                refusals.append(str(error))
        time.sleep(0.001)
    worker.join()
    assert any("another thread" in refusal for refusal in refusals)


def test_threads_share_an_engine_that_steps() -> None:
    engine = Engine.of(make("gru", hidden=40))
    expected = {rows: engine.step(range(rows), engine.start(rows))[0] for rows in (1, 2, 5)}
    wrong: list[int] = []

    def read() -> None:
        for _ in range(50):
            for rows, right in expected.items():
                if not np.array_equal(engine.step(range(rows), engine.start(rows))[0], right):
                    wrong.append(rows)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert not wrong
