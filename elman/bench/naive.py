"""The server that most people write: FastAPI that calls a PyTorch model in its pool of threads, a text at a time.

python -m elman.bench.naive FOLDER PORT

The models are those of `elman.bench.serving` with the same weights, in layers of `torch.nn`.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from elman.bench.course import CourseTranslator
from elman.bench.plain import PlainTagger
from elman.bench.streaming import LSTMLoop
from elman.bench.translators import Sizes
from elman.tasks import load
from elman.text.tagging import cut


class Texts(BaseModel):
    """A text to tag or to translate."""

    input: str
    max_length: int = 15


class NaivePrompt(BaseModel):
    """A text to go on with."""

    prompt: str
    max_tokens: int


def naive_app(folder: Path) -> FastAPI:
    """The application, with its models loaded."""
    torch.set_num_threads(1)  # the threads of the pool share the cores
    tagger, translator, writer = load(folder / "tag", "tag"), load(folder / "translate", "translate"), folder / "lm"
    tag, language = PlainTagger(tagger), load(writer, "lm")
    vocabulary = translator.sides.target.size
    course = CourseTranslator(Sizes(vocabulary, 256, 256), translator.network).eval()
    loop, tokenizer = LSTMLoop(language.network), language.tokenizer
    step = torch.inference_mode()(loop.step)  # call by call: each may be on another thread of the pool
    app = FastAPI()

    @app.post("/v1/tag")
    def tags(body: Texts) -> dict[str, list[str]]:
        return {"tags": tag([cut(body.input).tokens])[0]}

    @app.post("/v1/translate")
    def translation(body: Texts) -> dict[str, str]:
        source = torch.from_numpy(translator.source_ids(body.input)).unsqueeze(0)
        return {"translation": translator.sides.write(greedy(course, source, translator.start, body.max_length))}

    @app.post("/v1/completions")
    def completion(body: NaivePrompt) -> StreamingResponse:
        def events() -> Iterator[str]:
            _, state = loop.start(1)
            for id in language.read_ids(body.prompt):
                logits, state = step(torch.tensor([id]), state)
            for _ in range(body.max_tokens):
                ids = loop.draw(logits)
                yield f"data: {json.dumps({'text': tokenizer.decode(ids.tolist())})}\n\n"
                logits, state = step(ids, state)
            yield f'data: {{"completion_tokens":{body.max_tokens}}}\n\n'

        return StreamingResponse(events(), media_type="text/event-stream")

    return app


@torch.inference_mode()
def greedy(course: CourseTranslator, source: torch.Tensor, start: int, length: int) -> list[int]:
    """The likeliest id at each step, so many."""
    states, hidden, fed = course.encode(source)
    ids = [start]
    for _ in range(length):
        logits, hidden, fed = course.step(torch.tensor([ids[-1:]]), hidden, fed, states)
        ids.append(int(logits.argmax()))
    return ids[1:]


if __name__ == "__main__":
    uvicorn.run(naive_app(Path(sys.argv[1])), port=int(sys.argv[2]), log_level="warning")
