"""Images over HTTP: uploaded, described, asked about; never read from the service's own files."""

import base64
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import elman
from elman.serve.app import create_app
from elman.serve.service import Service
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


def test_an_uploaded_image_is_described_and_a_path_is_refused(folder: Path) -> None:
    service = Service.loading({name: folder / name for name in ("caption", "answer")})
    client, image = TestClient(create_app(service)), next((folder / "c").rglob("*.png"))
    content = base64.b64encode(image.read_bytes()).decode()

    def ask(model: str, **record: str) -> Any:
        return client.post("/v1/predict", json={"model": model, "records": [record]})

    found = ask("caption", image=content).json()["results"][0]
    assert found["caption"] == elman.load(folder / "caption").predict(image).text
    answered = ask("answer", image=content, question="is there a circle ?").json()["results"][0]
    assert answered["answer"] in elman.load(folder / "answer").labels
    for record in ({"image": str(image)}, {"image": "?"}, {}):
        refused = ask("caption", **record)
        assert refused.status_code == 400 and "base64" in refused.json()["error"]["message"]
    assert ask("answer", image=content).status_code == 400
    broken = ask("caption", image=base64.b64encode(b"no image").decode())
    assert broken.status_code == 400 and str(folder) not in broken.text
    view = client.post("/v1/explain", json={"model": "caption", "input": str(image)})
    assert view.status_code == 400
    service.close()
