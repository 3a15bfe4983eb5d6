"""The clients that measure a service count what it answers."""

import asyncio
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elman.bench.load import Alarm, AnswerReader, Connection, Endpoint, Tally, body, closed, measured, paced
from elman.bench.serving import Server, ServingReport, half
from tests.serve.running import Running


def test_clients_that_wait_for_their_answers(service: Running) -> None:
    target = Endpoint(service.port, "/v1/classify", [body(input="grimgrima"), body(input="ettiolae")])
    before = service.metric("elman_requests_total", path="/v1/classify", status="200")
    found = measured(lambda: closed(target, clients=4, seconds=0.2))
    assert len(found.answered) >= 4 and not found.failed and not found.refused
    after = service.metric("elman_requests_total", path="/v1/classify", status="200")
    assert after - before == len(found.answered)
    assert 0 < found.quantile(0.5) <= found.quantile(0.99)


def test_requests_at_a_rate(service: Running) -> None:
    target = Endpoint(service.port, "/v1/classify", [body(input="grimgrima")])
    found = measured(lambda: paced(target, rate=50, seconds=0.4))
    assert len(found.answered) > 2 and not found.failed


def test_requests_at_a_rate_count_from_when_they_were_due() -> None:
    """A service that stands still makes all wait that come meanwhile, not only the one that it is at."""

    stood = []

    async def still(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1000):
            if not stood:
                stood.append(1)
                time.sleep(0.5)  # clients and all
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    async def both() -> Tally:
        server = await asyncio.start_server(still, "127.0.0.1", 0)
        async with server:
            return await paced(Endpoint(server.sockets[0].getsockname()[1], "/", [b""]), rate=100, seconds=0.5)

    found = measured(both)
    assert len(found.answered) > 20 and not found.failed and found.quantile(0.5) > 0.1
    assert len(found.late) == len(found.answered) and min(found.late) >= 0 and max(found.late) > 0.3


def test_obedient_clients_come_again_when_they_are_told_to() -> None:
    asked = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1000):
            asked.append(1)
            writer.write(b"HTTP/1.1 429 Too Many\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n")

    async def both(obedient: bool) -> Tally:
        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        async with server:
            target = Endpoint(server.sockets[0].getsockname()[1], "/", [b""])
            return await closed(target, clients=2, seconds=0.3 if obedient else 1, obedient=obedient)

    assert len(measured(lambda: both(True)).refused) == 2 == len(asked)
    assert len(measured(lambda: both(False)).refused) > 4


def test_streams_and_their_tokens(service: Running) -> None:
    asked = {"model": "lm", "prompt": "the ", "max_tokens": 30, "stream": True}
    target = Endpoint(service.port, "/v1/completions", [body(**asked, stream_options={"include_usage": True})])
    found = measured(lambda: closed(target, clients=2, seconds=0.1))
    assert found.tokens == 30 * len(found.answered) and not found.failed


def test_wrong_answers_are_failures(service: Running) -> None:
    found = measured(lambda: closed(Endpoint(service.port, "/v1/classify", [b"{}"]), clients=1, seconds=0.05))
    assert found.failed and not found.answered


def chunked(*parts: bytes) -> bytes:
    written = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (*parts, b""))
    return b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + written


ANSWERS = {
    b'HTTP/1.1 200 OK\r\nContent-Length:9\r\n\r\n{"a":"b"}': (200, 0, 0, False),
    b"HTTP/1.1 429 Too Many\r\nretry-after: 7\r\ncontent-length: 0\r\nConnection: close\r\n\r\n": (429, 0, 7, True),
    chunked(): (200, 0, 0, False),
    chunked(b"\r\n0\r\n\r\n", b'{"completion_tokens":1}', b'{"completion_tokens": 30}'): (200, 30, 0, False),
    chunked(b'{"completion_tokens":1}', b" " * 9000): (200, 0, 0, False),  # only the end is kept
}


@given(st.sampled_from(list(ANSWERS)), st.lists(st.integers(1, 150), max_size=5))
def test_an_answer_is_read_in_whatever_pieces_it_comes(whole: bytes, cuts: list[int]) -> None:
    reading, edges = AnswerReader(0.0), sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    *begun, reply = [reading.read(whole[edges[i] : edges[i + 1]]) for i in range(len(edges) - 1)]
    assert not any(begun)
    assert reply is not None
    assert (reply.status, reply.tokens, reply.retry_after, reading.closes) == ANSWERS[whole]


@pytest.mark.parametrize(
    "sent", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n{", b"hello, who is there\r\n\r\n"]
)
def test_answers_that_are_cut_off_or_no_http_are_failures(sent: bytes) -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(sent)
        writer.close()

    async def both() -> Tally:
        async with await asyncio.start_server(half, "127.0.0.1", 0) as server:
            return await closed(Endpoint(server.sockets[0].getsockname()[1], "/", [b""]), clients=1, seconds=0.05)

    found = measured(both)
    assert found.failed and not found.answered


def test_a_connection_that_was_closed_is_made_anew() -> None:
    """The server says so, or just does it; what is left of the old one does not touch the new one's requests."""
    asked = []

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.read(1000))
        told = b"connection: close\r\n" if len(asked) % 2 else b""
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n" + told + b"\r\nx and more than was told")
        await writer.drain()
        writer.close()

    async def both() -> Tally:
        async with await asyncio.start_server(once, "127.0.0.1", 0) as server:
            connection, found = Connection(server.sockets[0].getsockname()[1]), Tally()
            for _ in range(6):
                reply = await connection.ask(b"x" * 1_000_000 if not asked else b"x")
                found.answered.append(reply.status)
                await asyncio.sleep(0.02)  # so that it is known
            connection.close()
            return found

    assert measured(both).answered == [200] * 6 and len(asked) == 6


@pytest.mark.parametrize("system", [sys.platform, "another"])
def test_an_alarm_rings_after_its_time(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", system)

    async def slept() -> list[float]:
        found = []
        with Alarm() as alarm:
            for seconds in (0.0, 1e-10, 0.0003, 0.02):
                start = time.perf_counter()
                await alarm.sleep(seconds)
                found.append(time.perf_counter() - start - seconds)
        return found

    assert all(late >= -0.001 for late in asyncio.run(slept()))  # an event loop's own timers may be a little early


def test_half_load_tells_the_best_and_the_middle_round(service: Running) -> None:
    found = half("tag", Server(service.port, service.process.pid), seconds=0.3)
    assert 0 < found.best <= found.middle and found.per_second > 0 and found.lone > 0 and not found.failed
    assert found.bound == 2 * found.lone + 0.002
    (told,) = ServingReport({}, [], [found], []).record()["half"]
    assert told["best"] == found.best and told["middle"] == found.middle
