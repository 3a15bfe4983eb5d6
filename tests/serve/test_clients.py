"""Stock clients, and Elman's own, get what a local model gives."""

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elman
from elman.client import AsyncClient, Call, Client, RemoteModel
from elman.errors import RunError, UserError
from elman.sampling import Sampling
from tests.serve.running import Running
from tests.tasks.tree_runs import CONLLU, SMALL, write_trees

TEXTS = {"lm": ["the c", "a "], "classify": ["grimgrima", "ettiolae"], "tag": ["Kurt went", "to Ada."]}
TEXTS["translate"] = ["gdced", "hchb"]
VECTORS = np.array([[1, 0], [1, 0.1], [0, 1]], np.float32)


def test_openais_own_client(service: Running, models: Path) -> None:
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=service.url + "/v1", api_key="none", max_retries=0)
    assert [model.id for model in client.models.list()] == ["lm", "classify", "tag", "translate"]
    asked: dict[str, Any] = {"model": "lm", "prompt": "the cat", "max_tokens": 30, "seed": 4, "temperature": 0.7}
    whole = client.completions.create(**asked, logprobs=2, stop=["\n\n"])
    sampling = Sampling(temperature=0.7, seed=4)
    (local,) = elman.load(models / "lm", "lm").generate("the cat", length=30, sampling=sampling, stop="\n\n")
    assert whole.choices[0].text == local and whole.usage.prompt_tokens == 7
    assert len(whole.choices[0].logprobs.tokens) == len(local)
    pieces = client.completions.create(**asked, stream=True, stop=["\n\n"])
    assert "".join(piece.choices[0].text for piece in pieces) == local
    with pytest.raises(openai.BadRequestError, match="at most 16"):
        client.completions.create(**asked, n=99)
    with pytest.raises(openai.NotFoundError, match="there is no model"):
        client.completions.create(model="gpt", prompt="x")
    with pytest.raises(openai.NotFoundError, match="chat is not offered"):
        client.chat.completions.create(model="lm", messages=[{"role": "user", "content": "x"}])


@pytest.mark.parametrize("task", TEXTS)
def test_predict_looks_like_a_local_models(service: Running, models: Path, task: str) -> None:
    local = elman.load(models / task)
    with Client(service.url) as client:
        remote = client.model(task)
        for given in (TEXTS[task][0], TEXTS[task]):
            assert same(remote.predict(given), local.predict(given))
        if task == "tag":
            assert remote.predict(tokens=["Kurt", "went"]) == local.predict(tokens=["Kurt", "went"])
        if task == "translate":
            found, expected = (one.predict("gdced", n_best=2, alignments=True, prefix="a") for one in (remote, local))
            assert found.pharaoh == expected.pharaoh and found.weights.shape == expected.weights.shape
        if task == "lm":
            options: dict[str, Any] = {"length": 40, "samples": 2, "sampling": Sampling(0.9, seed=3), "stop": "ra"}
            assert remote.generate("the ", **options) == local.generate("the ", **options)
            texts = ["", ""]
            for row, piece in remote.stream("the ", **options):
                texts[row] += piece
            assert texts == local.generate("the ", **options)
            assert [one.token for one in remote.score("the")] == list("the")


def test_a_list_is_sent_in_as_many_requests_as_the_service_wants(models: Path) -> None:
    with Running(str(models / "classify"), "--max-texts", "2") as service, Client(service.url) as client:
        texts = [TEXTS["classify"][0]] * 5
        assert same(client.model("classify").predict(texts), elman.load(models / "classify").predict(texts))


def same(one: Any, other: Any) -> bool:
    """Whether two predictions are the same but for the last digits of numbers."""
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    assert type(one) is type(other)
    if hasattr(one, "probabilities"):
        return bool(one.labels == other.labels and one.probabilities == pytest.approx(other.probabilities, abs=1e-5))
    if hasattr(one, "n_best"):
        return [each.text for each in one.n_best] == [each.text for each in other.n_best]
    if hasattr(one, "probability"):
        return bool(one.token == other.token and one.probability == pytest.approx(other.probability, abs=1e-5))
    return bool(one == other)


def test_calls_that_are_awaited(service: Running, models: Path) -> None:
    async def work() -> tuple[Any, ...]:
        async with AsyncClient(service.url) as client:
            tagger, poet = await client.model("tag"), await client.model("lm")
            several = await asyncio.gather(*(tagger.predict("Kurt went") for _ in range(8)))
            assert len(await tagger.predict(["Kurt went"] * 300)) == 300
            text = "".join([piece async for _, piece in poet.stream("the ", length=20)])
            whole = await poet.generate("the ", length=20)
            view = await poet.explain("the", "ranks")
            return several, text, whole, await client.models(), await poet.score("the"), view

    several, text, whole, known, score, view = asyncio.run(work())
    assert several == [elman.load(models / "tag").predict("Kurt went")] * 8
    assert [text] == whole and len(known) == 4 and len(score) == 3 and view["view"] == "ranks"


def test_mistakes_and_failures_are_told_apart(service: Running) -> None:
    with Client(service.url) as client:
        with pytest.raises(UserError, match="there is no model"):
            client.model("nothing")
        with pytest.raises(UserError, match="is empty"):
            client.model("classify").predict(" ")
        with pytest.raises(UserError, match="no list of texts"):
            client.model("classify").predict({"text": "x"})
        with pytest.raises(UserError, match="never saw"):
            next(client.model("lm").stream("ü"))
    with pytest.raises(RunError, match="no service answers"):
        Client("http://127.0.0.1:9").models()


def test_a_reader_who_stops_ends_the_work(service: Running) -> None:
    from tests.serve.running import eventually

    with Client(service.url) as client:
        pieces = client.model("lm").stream("the ", length=100_000)
        next(pieces)
        pieces.close()  # type: ignore[attr-defined]
    eventually(lambda: service.metric("elman_streams") == 0)


def test_numbers_over_time_and_words_with_vectors(tmp_path: Path) -> None:
    from starlette.testclient import TestClient

    from elman.serve.app import create_app
    from elman.serve.service import Service

    rows = [{"x": float(i % 7)} for i in range(200)]
    settings = {"model.hidden": 8, "model.layers": 1, "train.steps": 2, "data.horizon": 3, "data.context": 14}
    forecaster = elman.fit("series", train=rows, out=tmp_path / "waves", settings=settings, verbose=False)
    vectors = elman.tasks.VectorModel.of(elman.text.vectors.WordVectors(["cat", "dog", "car"], VECTORS))
    vectors.save(tmp_path / "words")
    service = Service.loading({"waves": tmp_path / "waves", "words": tmp_path / "words"})
    http = TestClient(create_app(service))
    numbers = [float(i % 7) for i in range(60)]
    assert read(http, "waves").predict(numbers).mean == pytest.approx(forecaster.predict(numbers).mean, rel=1e-5)
    table = http.post("/v1/predict", json={"model": "waves", "records": [{"x": one} for one in numbers]}).json()
    assert np.array(table["results"][0]["mean"]) == pytest.approx(forecaster.predict(numbers).mean)
    near = read(http, "words").predict("cat", neighbours=1)
    assert [one.word for one in near] == ["dog"]
    service.close()


def test_more_texts_than_a_request_may_have_are_sent_in_several(service: Running) -> None:
    texts = [f"grimgrima {number}" for number in range(300)]
    with Client(service.url) as client:
        assert len(client.model("classify").predict(texts)) == 300
        assert client.model("classify").predict([]) == []
    long = list(Call("/v1/classify", {"input": ["a" * 200_000] * 5}).bodies())
    assert [len(body["input"]) for body in long] == [2, 2, 1]  # of a size that is taken
    drawn = Call("/v1/translate", {"input": ["a"] * 300, "temperature": 1.0})
    assert list(drawn.bodies()) == [drawn.body]  # in one batch, where its random numbers are


@pytest.mark.parametrize("dependency", [False, True])
def test_trees_are_those_of_a_local_model(dependency: bool, tmp_path: Path) -> None:
    from starlette.testclient import TestClient

    from elman.serve.app import create_app
    from elman.serve.service import Service

    if dependency:
        (tmp_path / "train.conllu").write_text(CONLLU * 12)
    else:
        write_trees(tmp_path / "train.txt", 40)
    settings = [*SMALL, "train.steps=2", *(["model.network=child-sum"] if dependency else [])]
    (train,) = tmp_path.glob("train.*")
    local = elman.fit("tree", train=train, out=tmp_path / "tree", settings=settings, verbose=False)
    service = Service.loading({"tree": tmp_path / "tree"})
    remote = read(TestClient(create_app(service)), "tree")
    texts = ["a fine film and/or (a dull) film ...", "film"]
    for found, expected in zip(remote.predict(texts), local.predict(texts), strict=True):
        assert type(found) is type(expected) and same(found, expected)
        assert (found.bracketed, found.label) == (expected.bracketed, expected.label)
        assert found.nodes.max(axis=1) == pytest.approx(expected.nodes.max(axis=1), abs=1e-5)
        assert (found.tree.tokens, found.tree.parents) == (expected.tree.tokens, expected.tree.parents)
    assert remote.predict("film").label == local.predict("film").label
    service.close()


def read(http: Any, name: str) -> RemoteModel:
    """A remote model of a service in this process."""

    class Inside(Client):
        def __init__(self) -> None:
            self.url = "inside"

        def ask(self, path: str, body: Any = None) -> Any:
            response = http.get(path) if body is None else http.post(path, json=body)
            assert response.status_code == 200, response.text
            return json.loads(response.text)

    return Inside().model(name)
