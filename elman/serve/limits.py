"""What a request may ask for at most: each limit is an option of `elman serve`, with a default."""

from pydantic import Field

from elman.train.recipe import Section


class Limits(Section):
    """What the service takes on, and how long it works on it."""

    max_bytes: int = Field(2**20, ge=1024, le=2**30, description="Bytes of a request at most.")
    max_texts: int = Field(256, ge=1, le=100_000, description="Texts or records of a request at most.")
    max_characters: int = Field(20_000, ge=1, le=2**30, description="Characters of a text at most.")
    max_tokens: int = Field(4096, ge=1, le=2**31 - 1, description="Tokens that a text may get written at most.")
    max_beam: int = Field(32, ge=1, le=10_000, description="Hypotheses of a beam at most.")
    max_n: int = Field(16, ge=1, le=10_000, description="Texts that are written or found for one prompt at most.")
    max_seconds: float = Field(60.0, gt=0, le=86_400, description="Seconds that a request may take.")
    max_streams: int = Field(
        256, ge=1, le=10_000, description="Texts that a model writes at a time; more are refused (429)."
    )
    max_queue: int = Field(
        256, ge=1, le=1_000_000, description="Requests that wait for a model; more are refused (429)."
    )
    max_connections: int = Field(900, ge=1, le=1_000_000, description="Connections at a time; more are refused (503).")
    max_batch: int = Field(64, ge=1, le=100_000, description="Texts of a batch at most.")
    batch_wait: float = Field(
        2.0, ge=0, le=1000, description="Milliseconds that a batch waits for others while there is much to do."
    )
    body_seconds: float = Field(10.0, gt=0, le=3600, description="Seconds that a sender has for a request.")
    drain_seconds: float = Field(30.0, ge=0, le=86_400, description="Seconds that running requests have at the end.")
