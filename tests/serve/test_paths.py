"""What each path answers is what the library answers."""

import json
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

import elman
from elman.sampling import Sampling
from tests.serve.running import Running, events
from tests.serve.test_leaving import raw_request

SAMPLED: dict[str, Any] = {"temperature": 0.8, "top_k": 9, "top_p": 0.95, "repetition_penalty": 1.1, "seed": 5}


def choices(response: httpx.Response) -> list[dict[str, Any]]:
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["choices"]
    return found


def test_completions_are_what_generate_writes(service: Running, models: Path) -> None:
    model = elman.load(models / "lm", "lm")
    asked = {"prompt": "the cat", "max_tokens": 60, "n": 3, "stop": ["ra", "zz"], **SAMPLED}
    found = choices(service.post("/v1/completions", **asked))
    local = model.generate("the cat", length=60, samples=3, stop=["ra", "zz"], sampling=Sampling(**SAMPLED))
    assert [choice["text"] for choice in found] == local
    assert [choice["index"] for choice in found] == [0, 1, 2]
    assert all(choice["finish_reason"] in ("stop", "length") for choice in found)


def test_a_stream_is_the_same_text_in_pieces(service: Running, models: Path) -> None:
    asked = {"prompt": "the cat", "max_tokens": 80, **SAMPLED}
    (whole,) = choices(service.post("/v1/completions", **asked))
    told = {"stream": True, "stream_options": {"include_usage": True}}
    with service.http.stream("POST", "/v1/completions", json=asked | told, timeout=60) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        *found, usage, done = list(events(response))
    pieces = [json.loads(one)["choices"][0] for one in found]
    assert done == "[DONE]" and json.loads(usage)["choices"] == [] and len(pieces) > 1
    assert json.loads(usage)["usage"] == {"prompt_tokens": 7, "completion_tokens": 80, "total_tokens": 87}
    assert "".join(piece["text"] for piece in pieces) == whole["text"]
    assert [piece["finish_reason"] for piece in pieces if piece["finish_reason"]] == ["length"]


def test_what_the_model_thought_of_each_token(service: Running, models: Path) -> None:
    model = elman.load(models / "lm", "lm")
    asked = {"prompt": ["the c", "a "], "max_tokens": 9, "logprobs": 3, "echo": True, "seed": 1}
    for prompt, choice in zip(("the c", "a "), choices(service.post("/v1/completions", **asked)), strict=True):
        told = choice["logprobs"]
        assert "".join(told["tokens"]) == choice["text"] and choice["text"].startswith(prompt)
        assert told["text_offset"] == list(range(len(choice["text"])))
        expected = [one.log_prob for one in model.score(choice["text"])]
        assert told["token_logprobs"] == pytest.approx(expected, abs=1e-4)
        for token, log_prob, near, rank in zip(
            told["tokens"], told["token_logprobs"], told["top_logprobs"], told["ranks"], strict=True
        ):
            assert len(near) == 3 and (token in near) == (rank <= 3)
            assert log_prob <= max(near.values()) + 1e-6


def test_no_tokens_but_those_of_the_prompt(service: Running) -> None:
    (choice,) = choices(service.post("/v1/completions", prompt="the c", max_tokens=0, echo=True, logprobs=0))
    assert choice["text"] == "the c" and choice["finish_reason"] == "length"
    assert len(choice["logprobs"]["tokens"]) == 5


def test_large_requests_are_answered_as_small_ones(service: Running, models: Path) -> None:
    """They are read and written in threads, so that others do not wait for it."""
    sentences = [f"Kurt went to Oslo {number} times." for number in range(200)]
    found = service.post("/v1/tag", input=sentences).json()
    tagged = elman.load(models / "tag", "tag").predict(sentences)
    assert found == {"model": "tag", "results": json.loads(json.dumps([one.to_dict() for one in tagged]))}
    asked = {"prompt": "the ", "max_tokens": 500, "logprobs": 2, "seed": 3}
    (whole,) = choices(service.post("/v1/completions", **asked))
    assert len(whole["logprobs"]["tokens"]) == 500 and "".join(whole["logprobs"]["tokens"]) == whole["text"]


def test_classes_tags_and_translations(service: Running, models: Path) -> None:
    names = ["grimgrima", "ettiolae"]
    found = service.post("/v1/classify", input=names).json()["results"]
    for one, local in zip(found, elman.load(models / "classify", "classify").predict(names), strict=True):
        assert one["label"] == local.label and one["probabilities"] == pytest.approx(local.probabilities, abs=1e-5)
    tagger = elman.load(models / "tag", "tag")
    assert service.post("/v1/tag", input="Kurt went.").json()["results"] == [
        json.loads(json.dumps(tagger.predict("Kurt went.").to_dict()))
    ]
    (tagged,) = service.post("/v1/tag", tokens=["Kurt", "went"]).json()["results"]
    assert tagged["tags"] == list(tagger.predict(tokens=["Kurt", "went"]).tags)
    options: dict[str, Any] = {"beam": 4, "n_best": 2, "prefix": "a", "alignments": True}
    local = elman.load(models / "translate", "translate").predict("gdced", **options)
    (one,) = service.post("/v1/translate", input="gdced", **options).json()["results"]
    assert [each["translation"] for each in one["n_best"]] == [each.text for each in local.n_best]
    assert one["alignment"] == local.pharaoh and one["weights"][0] == pytest.approx(local.weights[0], abs=1e-4)
    forced = service.post("/v1/translate", input="gdced", require=["b"], forbid=["a"]).json()["results"][0]
    assert "b" in forced["translation"] and "a" not in forced["translation"]


def test_the_head_of_an_answer_comes_by_itself_where_nothing_follows_it(service: Running) -> None:
    found = service.http.head("/healthz", timeout=10)
    assert found.status_code == 405 and found.headers["x-request-id"] and not found.content
    head, blank, body = raw_request("/v1/tag", {"input": "Kurt went."}).partition(b"\r\n\r\n")
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
        connection.sendall(head + b"\r\nExpect: 100-continue" + blank)
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        answer = connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n") and answer.endswith(b"]}")  # both parts in one


def test_an_empty_token_is_told_with_the_number_of_its_text(service: Running) -> None:
    found = service.post("/v1/tag", tokens=[["Kurt", "went"], ["Kurt", " "]])
    assert found.status_code == 400 and found.json()["error"]["param"] == "tokens"
    assert found.json()["error"]["message"] == "text 2 of 2 has an empty token: leave it out"
    found = service.post("/v1/tag", tokens=[["Kurt", "went"], ["Kurt"]]).json()["results"]
    assert [one["text"] for one in found] == ["Kurt went", "Kurt"]


def test_drawn_translations_depend_on_their_seed_alone(service: Running) -> None:
    asked = {"input": ["gdced", "hchb"], "temperature": 1.0, "seed": 3}
    first, second = (service.post("/v1/translate", **asked).json()["results"] for _ in range(2))
    assert first == second


def test_scores_and_next_tokens(service: Running, models: Path) -> None:
    model = elman.load(models / "lm", "lm")
    (one,) = service.post("/v1/score", model="lm", input="the cat").json()["results"]
    local = model.score("the cat")
    assert [token["token"] for token in one["tokens"]] == [each.token for each in local]
    assert one["log_prob"] == pytest.approx(sum(each.log_prob for each in local), abs=1e-4)
    (after,) = service.post("/v1/next", input="the c", top=4).json()["results"]
    assert [each["token"] for each in after["next"]] == [each.token for each in model.predict("the c", top=4)]
    translator = elman.load(models / "translate", "translate")
    (pair,) = service.post("/v1/score", input="gdced", target="dec").json()["results"]
    assert pair["log_prob"] == pytest.approx(translator.log_probs([("gdced", "dec")])[0], abs=1e-4)


@pytest.mark.parametrize("task", ["lm", "classify", "tag", "translate"])
def test_records_of_any_task_are_answered_as_on_the_command_line(service: Running, task: str) -> None:
    text = {"lm": "the c", "classify": "grimgrima", "tag": "Kurt went", "translate": "gdced"}[task]
    found = service.post("/v1/predict", model=task, records=[text, {"text": text, "id": 7}]).json()["results"]
    assert found[0]["text"] == text and found[1]["id"] == 7
    assert {key: found[0][key] for key in found[0] if key != "line"} == {
        key: found[1][key] for key in found[1] if key not in ("line", "id")
    }


def test_libretranslate(service: Running) -> None:
    wanted = service.post("/v1/translate", input="gdced", n_best=2).json()["results"][0]
    assert service.post("/translate", q="gdced", source="auto", target="translate", alternatives=1).json() == {
        "translatedText": wanted["translation"],
        "alternatives": [wanted["n_best"][1]["translation"]],
    }
    form = service.http.post("/translate", data={"q": "gdced", "target": "translate"}, timeout=60)
    assert form.json() == {"translatedText": wanted["translation"]}
    several = service.post("/translate", q=["gdced", "hchb"], target="translate").json()["translatedText"]
    assert several[0] == wanted["translation"] and len(several) == 2
    assert service.http.get("/languages").json() == [{"code": "und", "name": "und", "targets": ["translate"]}]
    assert service.post("/translate", q="x", target="xx").status_code == 400


def test_every_view_is_the_json_of_explain(service: Running, models: Path) -> None:
    from elman.inspect.explain import explain

    texts = {"lm": "the cat", "classify": "grimgrima", "tag": "Kurt went", "translate": "gdced"}
    for card in service.http.get("/v1/models", timeout=60).json()["data"]:
        model, text = elman.load(models / card["id"]), texts[card["task"]]
        assert [view["name"] for view in card["views"]]
        for view in card["views"][:3]:
            response = service.post("/v1/explain", model=card["id"], view=view["name"], input=text)
            if response.status_code == 400:  # a view that needs more than a text says so
                continue
            local = json.loads(json.dumps(explain(model, text, view["name"]).to_dict()))
            assert _near(response.json(), local)


def _near(one: Any, other: Any) -> bool:
    """Whether plain data are the same but for the last digits of numbers."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_near(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_near, one, other))
    return bool(one == pytest.approx(other, abs=1e-3)) if isinstance(one, float) else bool(one == other)


def test_models_say_what_can_be_asked_of_them(service: Running) -> None:
    cards = {card["id"]: card for card in service.http.get("/v1/models", timeout=60).json()["data"]}
    assert set(cards) == {"lm", "classify", "tag", "translate"}
    assert cards["lm"]["compiled"] and cards["lm"]["tokens"] == "characters"
    assert cards["classify"]["labels"] == ["north", "south", "west"]
    assert "beam" in cards["translate"]["options"]["properties"]
    for task in ("translate", "tag", "classify"):
        assert "ensemble" not in cards[task]["options"]["properties"]  # the name of a folder
    told = service.post("/v1/predict", model="tag", records=["Ada"], options={"window": 1}).json()["error"]["message"]
    assert told == "a prediction of 'tag' has no option 'window': leave it out"
    one = service.http.get("/v1/models/classify", timeout=60).json()
    assert one["metrics"]["dev"]["accuracy"] >= 0


def test_runs_and_their_logs(service: Running, models: Path) -> None:
    runs = {run["id"]: run for run in service.http.get("/v1/runs", timeout=60).json()["runs"]}
    assert set(runs) == {"lm", "classify", "tag", "translate"} and runs["lm"]["state"] == "finished"
    run = service.http.get("/v1/runs/lm", timeout=60)
    assert run.json()["recipe"]["data"]["train"] == ["lm.txt"] and str(models) not in run.text
    log = service.http.get("/v1/runs/lm/log", timeout=60).json()
    rest = service.http.get(f"/v1/runs/lm/log?after={log['next'] - 1}", timeout=60).json()
    assert rest["records"] == log["records"][-1:] and rest["next"] == log["next"] == len(log["records"])
    for wrong in ("nothing", "..", "%2e%2e/models"):
        assert service.http.get(f"/v1/runs/{wrong}", timeout=60).status_code == 404


def test_what_cannot_be_asked_so_is_told_with_what_can(service: Running) -> None:
    for path, body, message in (
        ("/v1/classify", {"model": "lm", "input": "x"}, "this path is for 'classify': ask /v1/predict"),
        ("/v1/predict", {"model": "lm", "records": []}, "'records' is empty: give at least one"),
        ("/v1/classify", {"input": []}, "'input' is empty: give at least one"),
        (
            "/v1/predict",
            {"model": "lm", "records": ["x"] * 300},
            "give at most 256, and the others in further requests",
        ),
        ("/v1/next", {"input": ["x"] * 300}, "300 texts are too many: give at most 256"),
        ("/v1/next", {"input": "x" * 30_000}, "a text has 30,000 characters: give at most 20,000"),
    ):
        response = service.post(path, **body)
        assert response.status_code == 400 and message in response.json()["error"]["message"], response.text


def test_chat_is_not_offered_and_says_so(service: Running) -> None:
    response = service.post("/v1/chat/completions", model="lm", messages=[{"role": "user", "content": "hello"}])
    assert response.status_code == 404 and "chat is not offered" in response.json()["error"]["message"]


def test_health_and_figures(service: Running) -> None:
    assert service.http.get("/healthz").json() == {"status": "ok"}
    assert service.http.get("/readyz").json()["status"] == "ready"
    service.post("/v1/classify", input="x")
    before = service.metric("elman_requests_total", path="/v1/classify", status="200")
    service.post("/v1/classify", input="x")
    assert service.metric("elman_requests_total", path="/v1/classify", status="200") == before + 1
    text = service.http.get("/metrics").text
    for name in ("queue_length", "queue_seconds", "first_token_seconds", "between_tokens_seconds", "batch_size"):
        assert f"elman_{name}" in text
    assert 'le="0.001"' in text


def test_an_id_is_taken_or_made(service: Running) -> None:
    given = service.http.get("/healthz", headers={"X-Request-Id": "mine-7"})
    assert given.headers["x-request-id"] == "mine-7"
    made = [service.http.get(path).headers["x-request-id"] for path in ("/healthz", "/nothing")]
    assert len(set(made)) == 2 and all(len(one) == 16 for one in made)
    odd = service.http.get("/healthz", headers={"X-Request-Id": "x" * 500})
    assert len(odd.headers["x-request-id"]) == 16
