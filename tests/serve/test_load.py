"""The clients that measure a service count what it answers."""

from elman.bench.load import Target, body, closed, measured, paced
from tests.serve.running import Running


def test_clients_that_wait_for_their_answers(service: Running) -> None:
    target = Target(service.port, "/v1/classify", [body(input="grimgrima"), body(input="ettiolae")])
    before = service.metric("elman_requests_total", path="/v1/classify", status="200")
    found = measured(lambda: closed(target, clients=4, seconds=0.2))
    assert len(found.answered) >= 4 and not found.failed and not found.refused
    after = service.metric("elman_requests_total", path="/v1/classify", status="200")
    assert after - before == len(found.answered)
    assert 0 < found.quantile(0.5) <= found.quantile(0.99)


def test_requests_at_a_rate(service: Running) -> None:
    target = Target(service.port, "/v1/classify", [body(input="grimgrima")])
    found = measured(lambda: paced(target, rate=50, seconds=0.4))
    assert len(found.answered) > 2 and not found.failed


def test_streams_and_their_tokens(service: Running) -> None:
    asked = {"model": "lm", "prompt": "the ", "max_tokens": 30, "stream": True}
    target = Target(
        service.port, "/v1/completions", [body(**asked, stream_options={"include_usage": True})], stream=True
    )
    found = measured(lambda: closed(target, clients=2, seconds=0.1))
    assert found.tokens == 30 * len(found.answered) and not found.failed


def test_wrong_answers_are_failures(service: Running) -> None:
    found = measured(lambda: closed(Target(service.port, "/v1/classify", [b"{}"]), clients=1, seconds=0.05))
    assert found.failed and not found.answered
