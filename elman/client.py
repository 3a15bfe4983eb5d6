"""A client of `elman serve` whose models look like local ones.

client = elman.client.Client("http://127.0.0.1:8000")
client.model("tagger").predict("Ask Ada Lovelace.")           # a Tagging, as elman.load(folder).predict gives it
client.model("eyes").predict("photo.jpg", "is it raining ?")  # an image is sent, never its name
client.model("eyes").predict([("one.jpg", "is it raining ?"), ("two.jpg", "is there a dog ?")])
client.model("poet").generate("ROMEO:", length=100)
for row, piece in client.model("poet").stream("ROMEO:"): ...

async with elman.client.AsyncClient("http://127.0.0.1:8000") as client:
    model = await client.model("tagger")
    await model.predict(["one text", "another"])
"""

import base64
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from elman.errors import RunError, UserError
from elman.files import reading
from elman.records.images import ONE_IMAGE
from elman.sampling import Sampling

try:
    import httpx
except ImportError:  # told when a client is made
    httpx = None  # type: ignore[assignment]

IMAGES = ("caption", "answer")
"""Tasks whose models are given images."""
SECONDS = 120.0
"""How long an answer is waited for."""
TEXTS, CHARACTERS = 64, 500_000
"""What one request has at most: a list of more is asked about in several."""


class Call(NamedTuple):
    """What the service is asked, whether that is one text that was not in a list, and what images are called."""

    path: str
    body: dict[str, Any]
    single: bool = False
    images: tuple[str, ...] = ()

    def bodies(self, most: int = TEXTS) -> Iterator[dict[str, Any]]:
        """Its requests, one after the other, with so many texts each at most.

        >>> [len(body["input"]) for body in Call("/v1/classify", {"input": ["a fine film"] * 150}).bodies()]
        [64, 64, 22]
        """
        name = next(name for name in ("input", "tokens", "records") if name in self.body)
        asked = {**self.body, **self.body.get("options", {})}
        if self.single or asked.get("temperature") is not None:
            yield self.body  # what is drawn depends on its place among the others
            return
        some, size = list[Any](), 0
        for one in self.body[name]:
            length = len(json.dumps(one))
            if some and (len(some) == most or size + length > CHARACTERS):
                yield self.body | {name: some}
                some, size = [], 0
            some.append(one)
            size += length
        if some:
            yield self.body | {name: some}


# From what a local model is asked to requests


def prediction(name: str, task: str, given: Any, question: str | None, options: Mapping[str, Any]) -> Call:
    """The request for what `predict` of a local model is called with.

    >>> prediction("mine", "classify", "a fine film", None, {})
    Call(path='/v1/classify', body={'model': 'mine', 'input': 'a fine film'}, single=True, images=())
    """
    body: dict[str, Any] = {"model": name}
    if (images := _images(task, given, question)) is not None:
        names, records = images
        asked = body | {"records": records, "options": dict(options)}
        return Call("/v1/predict", asked, isinstance(given, ONE_IMAGE), names)
    if task == "tag" and (tokens := options.get("tokens")) is not None:
        sentences = [one if isinstance(one, str) else list(one) for one in tokens]
        return Call("/v1/tag", body | {"tokens": sentences}, bool(sentences) and isinstance(sentences[0], str))
    if task == "series":
        return Call("/v1/predict", body | {"records": np.asarray(given, np.float64).tolist()}, True)
    single = isinstance(given, str)
    texts = given if single else _texts(given)
    paths = {"classify": "/v1/classify", "tag": "/v1/tag", "translate": "/v1/translate", "lm": "/v1/next"}
    if task in paths:
        return Call(paths[task], body | {"input": texts} | dict(options), single)
    return Call("/v1/predict", body | {"records": [texts] if single else texts, "options": dict(options)}, single)


def explanation(
    name: str, task: str, given: Any, question: str | None, view: str | None, options: Mapping[str, Any]
) -> Call:
    """The request for what a view computes of texts or images; of a question about one, as a pair (image, question)."""
    if task == "answer" and question is None:
        if isinstance(given, ONE_IMAGE):
            raise UserError("there is an image and no question: call explain(image, question=...), or with pairs")
        if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], str):
            given = [given]
    body = {"model": name, "view": view, "options": dict(options)}
    images = _images(task, given, question)
    return Call("/v1/explain", body | ({"input": given} if images is None else {"records": images[1]}))


def _images(task: str, given: Any, question: Any) -> tuple[tuple[str, ...], list[dict[str, str]]] | None:
    """What images are called, and their records: the content of each, and what is asked about it; of texts None.

    >>> _images("answer", b"a", "is it red ?")
    (('the image',), [{'image': 'YQ==', 'question': 'is it red ?'}])
    """
    if question is not None and task != "answer":
        raise UserError(f"a model for the task '{task}' is asked no question: leave it out")
    if task not in IMAGES:
        return None
    pairs: list[tuple[Any, dict[str, str]]]
    if task == "answer":
        from elman.tasks.answer import pairs_of

        pairs = [(image, {"question": asked}) for image, asked in pairs_of(given, question)]
    else:
        several = [given] if isinstance(given, ONE_IMAGE) or not isinstance(given, Iterable) else given
        pairs = [(image, {}) for image in several]
    names = tuple("the image" if isinstance(image, bytes) else str(image) for image, _ in pairs)
    return names, [{"image": base64.b64encode(_content(image)).decode(), **asked} for image, asked in pairs]


def _content(image: Any) -> bytes:
    if isinstance(image, bytes):
        return image
    if not isinstance(image, (str, Path)):
        raise UserError(f"a {type(image).__name__} is no image: give the path of one, or its content")
    with reading(Path(image)):
        return Path(image).read_bytes()


def _texts(given: Any) -> list[Any]:
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise UserError(f"a {type(given).__name__} is no text and no list of texts: give such")
    return list(given)


def completion(
    name: str,
    prompt: str,
    *,
    label: str | None = None,
    length: int = 200,
    samples: int = 1,
    sampling: Sampling | None = None,
    stop: str | Iterable[str] = (),
    stream: bool = False,
) -> Call:
    """The request for what `generate` and `stream` of a local language model are called with."""
    body = {"model": name, "prompt": prompt, "max_tokens": length, "n": samples, "stream": stream}
    stops = [stop] if isinstance(stop, str) else list(stop)
    return Call("/v1/completions", body | asdict(sampling or Sampling()) | {"stop": stops or None, "label": label})


# From answers to what a local model gives


def predictions(card: Mapping[str, Any], call: Call, results: Sequence[dict[str, Any]]) -> Any:
    """What `predict` of a local model gives, from the results of a call."""
    found = [_read(card, one) for one in results]
    if card["task"] == "caption":
        found = [replace(one, image=name) for one, name in zip(found, call.images, strict=True)]
    return found[0] if call.single else found


def _read(card: Mapping[str, Any], one: dict[str, Any]) -> Any:
    task = card["task"]
    if task == "classify":
        from elman.tasks.classify import Prediction

        return Prediction(tuple(one["labels"]), one["probabilities"])
    if task == "tag":
        return _tagging(one)
    if task == "translate":
        return _translation(one)
    if task == "lm":
        from elman.tasks.next_tokens import NextToken

        return [NextToken(each["token"], each["probability"]) for each in one["next"]]
    if task == "tree":
        return _tree(one, card["labels"])
    if task == "caption":
        return _caption(one)
    if task == "answer":
        from elman.tasks.classify import Prediction

        return Prediction((one["answer"],), one["probabilities"])
    if task == "series":
        from elman.runtime.forecaster import Forecast

        quantiles = {float(share): np.array(values) for share, values in one["quantiles"].items()}
        return Forecast(one["series"], np.array(one["mean"]), quantiles)
    if task == "embed":
        from elman.text.vectors import Neighbour

        return [Neighbour(each["word"], each["score"]) for each in one["nearest"]]
    return one


def _tagging(one: dict[str, Any]) -> Any:
    from elman.text.spans import Span
    from elman.text.tagging import Tagging

    offsets = tuple((start, end) for start, end in one["offsets"])
    starts, ends = ({place[side]: number for number, place in enumerate(offsets)} for side in (0, 1))
    spans = [Span(starts[span["start"]], ends[span["end"]] + 1, span["type"]) for span in one["spans"]]
    return Tagging(one["text"], tuple(one["tokens"]), offsets).tagged(one["tags"], spans)


def _translation(one: dict[str, Any]) -> Any:
    from elman.tasks.translation import Translation
    from elman.tasks.writer import Alternative

    n_best = [
        Alternative(each["translation"], each["score"], each["log_prob"], [], each["finished"])
        for each in one["n_best"]
    ]
    weights = None
    if "weights" in one:
        size = (len(one["target_tokens"]), len(one["source_tokens"]))
        weights = np.array(one["weights"], np.float32).reshape(size)
    return Translation(one["text"], n_best, one["source_tokens"], one["target_tokens"], weights, one.get("parts", 1))


def _tree(one: dict[str, Any], labels: Sequence[str]) -> Any:
    from elman.records.treebank import LabelledTree
    from elman.tasks.tree import TreePrediction

    nodes = one["nodes"]
    parents, words = (tuple(node[what] for node in nodes) for what in ("parent", "word"))
    tree = LabelledTree(tuple(one["tokens"]), parents, words, (None,) * len(nodes))
    probabilities = [[node["probabilities"][label] for label in labels] for node in nodes]  # N x C
    return TreePrediction(tree, tuple(labels), np.array(probabilities, np.float32))


def _caption(one: dict[str, Any]) -> Any:
    """A caption; its ids are empty, since the service sends words alone."""
    from elman.tasks.caption import Caption
    from elman.tasks.writer import Alternative

    n_best = [
        Alternative(each["caption"], each["score"], each["log_prob"], [], each.get("finished", True))
        for each in (one, *one.get("n_best", [])[1:])
    ]
    weights = np.array(one["attention"], np.float32) if "attention" in one else None
    return Caption(one["image"], n_best, one["tokens"], weights)


def scores(answer: Mapping[str, Any]) -> Any:
    """What `score` of a local language model gives."""
    from elman.tasks.language import TokenScore

    return [TokenScore(each["token"], each["log_prob"]) for each in answer["results"][0]["tokens"]]


def texts_of(answer: Mapping[str, Any]) -> list[str]:
    """What `generate` of a local language model gives."""
    return [choice["text"] for choice in sorted(answer["choices"], key=lambda choice: int(choice["index"]))]


def pieces(line: str) -> Iterator[tuple[int, str]]:
    """What `stream` of a local language model gives, from a line of an event stream."""
    if not line.startswith("data: ") or line == "data: [DONE]":
        return
    value = json.loads(line.removeprefix("data: "))
    if "error" in value:
        raise RunError(value["error"]["message"])
    yield from ((choice["index"], choice["text"]) for choice in value["choices"])


def checked(status: int, text: str) -> Any:
    """An answer, where it is one; else the sentence of the service as an error: the caller's mistake, or a failure."""
    try:
        value = json.loads(text)
        sentence = value["error"]["message"] if status >= 400 else ""
    except (ValueError, KeyError, TypeError):
        raise RunError(f"this is no answer of a service of Elman's (status {status}): check the address") from None
    if status >= 500 or status in (408, 429):
        raise RunError(sentence)
    if status >= 400:
        raise UserError(sentence)
    return value


# The clients


def _settings(url: str, api_key: str | None, timeout: float) -> dict[str, Any]:
    if httpx is None:
        raise UserError("elman.client needs httpx: pip install 'elman[client]'")
    headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
    return {"base_url": url, "headers": headers, "timeout": timeout}


def _unreachable(url: str, error: Exception) -> RunError:
    return RunError(f"no service answers at {url} ({error or type(error).__name__}): is `elman serve` running there?")


class Client:
    """A service, asked by calls that wait for their answers."""

    def __init__(self, url: str = "http://127.0.0.1:8000", *, api_key: str | None = None, timeout: float = SECONDS):
        self.url, self._http = url, httpx.Client(**_settings(url, api_key, timeout))

    def models(self) -> list[dict[str, Any]]:
        """The models of the service, as `/v1/models` tells of them."""
        found: list[dict[str, Any]] = self.ask("/v1/models")["data"]
        return found

    def model(self, name: str) -> "RemoteModel":
        """A model by its name."""
        return RemoteModel(self, self.ask(f"/v1/models/{name}"))

    def ask(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The answer of a path, to a body or to none."""
        try:
            sent = self._http.get(path) if body is None else self._http.post(path, json=body)
        except httpx.HTTPError as error:
            raise _unreachable(self.url, error) from None
        return checked(sent.status_code, sent.text)

    def events(self, call: Call) -> Iterator[str]:
        """The lines of an event stream; whoever stops reading ends the work."""
        try:
            with self._http.stream("POST", call.path, json=call.body) as sent:
                if sent.status_code >= 400:
                    checked(sent.status_code, sent.read().decode())
                yield from sent.iter_lines()
        except httpx.HTTPError as error:
            raise _unreachable(self.url, error) from None

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class RemoteModel:
    """A model of a service; its `predict` is called as that of a local one, and gives the same."""

    def __init__(self, client: Client, card: Mapping[str, Any]) -> None:
        self.client, self.card = client, card
        self.name, self.task, self.most = str(card["id"]), str(card["task"]), min(TEXTS, card.get("max_texts", TEXTS))

    def predict(self, given: Any = None, question: str | None = None, **options: Any) -> Any:
        """The prediction for a text or an image, or a list for several, as the local model's `predict` gives them.

        The service sends no ids of tokens.
        """
        call = prediction(self.name, self.task, given, question, options)
        found = [one for body in call.bodies(self.most) for one in self.client.ask(call.path, body)["results"]]
        return predictions(self.card, call, found)

    def generate(self, prompt: str = "", **options: Any) -> list[str]:
        """As `LanguageModel.generate`: the same texts for the same seed."""
        call = completion(self.name, prompt, **options)
        return texts_of(self.client.ask(call.path, call.body))

    def stream(self, prompt: str = "", **options: Any) -> Iterator[tuple[int, str]]:
        """As `LanguageModel.stream`: pieces (number of the sample, text) as they are made."""
        for line in self.client.events(completion(self.name, prompt, stream=True, **options)):
            yield from pieces(line)

    def score(self, text: str, label: str | None = None) -> Any:
        """As `LanguageModel.score`."""
        return scores(self.client.ask("/v1/score", {"model": self.name, "input": text, "label": label}))

    def explain(self, given: Any, view: str | None = None, question: str | None = None, **options: Any) -> Any:
        """What a view computes of texts or images, as its JSON."""
        call = explanation(self.name, self.task, given, question, view, options)
        return self.client.ask(call.path, call.body)

    def __repr__(self) -> str:
        return f"RemoteModel({self.name!r} at {self.client.url}: {self.card.get('about')})"


class AsyncClient:
    """A service, asked by calls that are awaited."""

    def __init__(self, url: str = "http://127.0.0.1:8000", *, api_key: str | None = None, timeout: float = SECONDS):
        self.url, self._http = url, httpx.AsyncClient(**_settings(url, api_key, timeout))

    async def models(self) -> list[dict[str, Any]]:
        """The models of the service, as `/v1/models` tells of them."""
        found: list[dict[str, Any]] = (await self.ask("/v1/models"))["data"]
        return found

    async def model(self, name: str) -> "AsyncRemoteModel":
        """A model by its name."""
        return AsyncRemoteModel(self, await self.ask(f"/v1/models/{name}"))

    async def ask(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The answer of a path, to a body or to none."""
        try:
            sent = await (self._http.get(path) if body is None else self._http.post(path, json=body))
        except httpx.HTTPError as error:
            raise _unreachable(self.url, error) from None
        return checked(sent.status_code, sent.text)

    async def events(self, call: Call) -> AsyncIterator[str]:
        """The lines of an event stream; whoever stops reading ends the work."""
        try:
            async with self._http.stream("POST", call.path, json=call.body) as sent:
                if sent.status_code >= 400:
                    checked(sent.status_code, (await sent.aread()).decode())
                async for line in sent.aiter_lines():
                    yield line
        except httpx.HTTPError as error:
            raise _unreachable(self.url, error) from None

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class AsyncRemoteModel:
    """A model of a service, as `RemoteModel`, whose calls are awaited."""

    def __init__(self, client: AsyncClient, card: Mapping[str, Any]) -> None:
        self.client, self.card = client, card
        self.name, self.task, self.most = str(card["id"]), str(card["task"]), min(TEXTS, card.get("max_texts", TEXTS))

    async def predict(self, given: Any = None, question: str | None = None, **options: Any) -> Any:
        """As `RemoteModel.predict`."""
        call = prediction(self.name, self.task, given, question, options)
        found = [one for body in call.bodies(self.most) for one in (await self.client.ask(call.path, body))["results"]]
        return predictions(self.card, call, found)

    async def generate(self, prompt: str = "", **options: Any) -> list[str]:
        """As `LanguageModel.generate`: the same texts for the same seed."""
        call = completion(self.name, prompt, **options)
        return texts_of(await self.client.ask(call.path, call.body))

    async def stream(self, prompt: str = "", **options: Any) -> AsyncIterator[tuple[int, str]]:
        """As `LanguageModel.stream`: pieces (number of the sample, text) as they are made."""
        async for line in self.client.events(completion(self.name, prompt, stream=True, **options)):
            for piece in pieces(line):
                yield piece

    async def score(self, text: str, label: str | None = None) -> Any:
        """As `LanguageModel.score`."""
        return scores(await self.client.ask("/v1/score", {"model": self.name, "input": text, "label": label}))

    async def explain(self, given: Any, view: str | None = None, question: str | None = None, **options: Any) -> Any:
        """What a view computes of texts or images, as its JSON."""
        call = explanation(self.name, self.task, given, question, view, options)
        return await self.client.ask(call.path, call.body)
