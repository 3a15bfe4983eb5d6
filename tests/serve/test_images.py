"""Images over HTTP: uploaded, described, asked about; never read from the service's own files."""

import base64
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import elman
from elman.client import Client
from elman.errors import UserError
from elman.inspect import explain
from elman.serve.app import create_app
from elman.serve.service import Service
from tests.cli.invoke import invoke
from tests.records.test_images import claimed
from tests.tasks import answer_runs, caption_runs
from tests.train.toy import quiet


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    (folder / "c").mkdir()
    (folder / "a").mkdir()
    captions, questions = caption_runs.images(folder / "c", 12), answer_runs.write(folder / "a" / "questions.tsv", 12)
    short: dict[str, Any] = {"reporter": quiet()}
    elman.fit(
        "caption", train=captions, out=folder / "caption", settings=[*caption_runs.SMALL, "train.steps=2"], **short
    )
    elman.fit("answer", train=questions, out=folder / "answer", settings=[*answer_runs.SMALL, "train.steps=2"], **short)
    return folder


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    service = Service.loading({name: folder / name for name in ("caption", "answer")})
    yield TestClient(create_app(service))
    service.close()


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def first_image(folder: Path) -> Path:
    return next((folder / "c").rglob("*.png"))


def test_an_uploaded_image_is_described_and_a_path_is_refused(folder: Path, client: TestClient) -> None:
    image = first_image(folder)
    content = encoded(image.read_bytes())

    def ask(model: str, **record: str) -> Any:
        return client.post("/v1/predict", json={"model": model, "records": [record]})

    found = ask("caption", image=content).json()["results"][0]
    assert found["caption"] == elman.load(folder / "caption").predict(image).text
    asked = ask("answer", image=content, question="is there a circle ?", id="7").json()["results"][0]
    on_line = ("predict", str(folder / "answer"), "is there a circle ?", "--image", str(image), "--json")
    assert asked == {**json.loads(invoke(*on_line)[1]), "image": "image 1", "id": "7"}
    assert list(asked["probabilities"].values()) == sorted(asked["probabilities"].values(), reverse=True)
    line = json.loads(invoke("predict", str(folder / "caption"), str(image), "--json")[1])
    assert found == {**line, "image": "image 1"} and found["tokens"] == found["caption"].split()
    assert ask("caption", image=f"data:image/png;base64,{content}").json()["results"] == [found]
    for record, sentence in (
        ({"image": image.name}, "'image' of record 2 is not base64"),
        ({"image": "?"}, "'image' of record 2 is not base64"),
        ({"image": "data:image/png,?"}, "'image' of record 2 is not base64"),
        ({}, "record 2 needs 'image'"),
    ):
        refused = client.post("/v1/predict", json={"model": "caption", "records": [{"image": content}, record]})
        assert refused.status_code == 400 and sentence in refused.json()["error"]["message"]
    assert ask("answer", image=content).status_code == 400
    broken = ask("caption", image=encoded(b"no image"))
    assert broken.status_code == 400 and str(folder) not in broken.text
    assert "record 1 of the request has no caption" in broken.text


def test_where_a_model_looked_is_what_elman_explain_says_and_names_no_file(folder: Path, client: TestClient) -> None:
    image, question = first_image(folder), "is there a circle ?"
    record = {"image": encoded(image.read_bytes()), "question": question}
    for name, text, options in (
        ("caption", str(image), {"target": "this is red"}),
        ("answer", question, {"image": str(image)}),
    ):
        local = explain(elman.load(folder / name), text, **options).to_dict()["texts"][0]
        asked = {key: value for key, value in options.items() if key != "image"}
        body = {"model": name, "records": [record, record], "options": asked}
        told = client.post("/v1/explain", json=body)
        first, second = told.json()["texts"]
        assert (first["image"], second["image"]) == ("image 1", "image 2")
        assert np.allclose(first["attention"], local["attention"], atol=1e-4)
        assert first["tokens"] == local["tokens"]
        drawn = client.post("/v1/explain", json={**body, "format": "panels"}).json()["html"]
        assert drawn.count("data:image/png") >= 2
        for answer in (told.text, drawn):
            assert tempfile.gettempdir() not in answer and str(folder) not in answer


def test_a_remote_model_is_given_images_as_a_local_one_is(folder: Path, client: TestClient, tmp_path: Path) -> None:
    image, question = first_image(folder), "is there a circle ?"
    remote = Client("http://testserver")
    remote._http = client  # type: ignore[assignment]
    captioner, answerer = remote.model("caption"), remote.model("answer")
    local = elman.load(folder / "caption").predict([image], n_best=2, min_length=3, alignments=True)[0]
    (found,) = captioner.predict([image.read_bytes()], n_best=2, min_length=3, alignments=True)
    assert (found.text, found.tokens, len(found.n_best)) == (local.text, local.tokens, len(local.n_best))
    assert found.score == pytest.approx(local.score, abs=1e-4) and np.allclose(found.weights, local.weights, atol=1e-3)
    one, other = (each.predict(str(image), min_length=3) for each in (captioner, elman.load(folder / "caption")))
    assert (one.image, one.text, one.tokens) == (other.image, other.text, other.tokens)
    assert one.image == str(image) and one.tokens
    assert (found.image, captioner.predict([image])[0].image) == ("the image", str(image))
    answer = answerer.predict(image, question)
    near = pytest.approx(elman.load(folder / "answer").predict(image, question).probabilities, abs=1e-5)
    assert answer.probabilities == near
    pairs = [(str(image), question), (image.read_bytes(), question)]
    assert [each.probabilities for each in answerer.predict(pairs)] == [near, near]
    with pytest.raises(UserError, match=r"question 1 of 2 is a list: give .*pairs \(image, question\)"):
        answerer.predict([image, image], [question, question])
    told = answerer.explain(str(image), question=question)
    assert told["texts"][0]["tokens"] and told == answerer.explain((str(image), question))
    assert [one["text"] for one in answerer.explain(pairs)["texts"]] == [question, question]
    with pytest.raises(UserError, match=r"no question: call explain\(image, question=...\)"):
        answerer.explain(str(image), question)
    with pytest.raises(UserError, match="is asked no question"):
        captioner.predict(image, question)
    for wrong in (tmp_path / "none.png", 3):
        with pytest.raises(UserError):
            captioner.predict([wrong])


def test_what_is_no_image_or_names_a_file_is_not_explained(folder: Path, client: TestClient) -> None:
    image = first_image(folder)
    good = {"image": encoded(image.read_bytes()), "question": "is there a circle ?"}
    huge = claimed(9000, 9000)
    for change, message in (
        ({"input": str(image)}, "'records'"),
        ({"records": [{"image": str(image)}]}, "base64"),
        ({"records": [{"image": encoded(b"no image")}]}, "image 1 is broken or no image"),
        ({"records": [{"image": encoded(huge)}]}, "9,000 x 9,000 pixels"),
        ({"records": [good], "view": "gallery"}, "reads files"),
        ({"model": "answer", "records": [good], "options": {"image": str(image)}}, "names a file"),
        ({"model": "answer", "records": [good, {**good, "question": " "}]}, "record 2 needs its 'question'"),
        (
            {"model": "answer", "records": [{**good, "question": "a" * 30_000}]},
            "a text has 30,000 characters: give at most 20,000",
        ),
        ({"records": [good] * 65}, "65 images are too many"),
    ):
        refused = client.post("/v1/explain", json={"model": "caption", **change})
        assert refused.status_code == 400 and message in refused.json()["error"]["message"], refused.text
        assert tempfile.gettempdir() not in refused.text
    cards = {card["id"]: card for card in client.get("/v1/models").json()["data"]}
    assert [view["name"] for view in cards["caption"]["views"]] == ["image"]
    assert "image" not in cards["answer"]["views"][0]["options"]["properties"]
