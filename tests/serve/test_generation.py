"""What writes for many requests at once."""

import asyncio
from pathlib import Path

import elman
from elman.sampling import Sampling
from elman.serve.generation import Generator, Prompt
from elman.serve.limits import Limits
from elman.serve.metrics import Metrics


def test_requests_that_come_after_the_end_are_written(models: Path) -> None:
    model = elman.load(models / "lm", "lm")
    generator = Generator("mine", model, Limits(), Metrics())

    async def main() -> str:
        stream = generator.open([Prompt("the ", 1, 30, Sampling(seed=5))])
        await stream.begins()
        written, over = "", False
        while not over:
            for _, piece in await stream.next():
                written, over = written + piece.piece, piece.end is not None
        return written

    expected = model.generate("the ", length=30, sampling=Sampling(seed=5))[0]
    for _ in range(3):  # a request may have found its model just before another took the model's place
        assert asyncio.run(main()) == expected
        generator.close()
    assert generator.rows == 0
