"""What the service counts, for Prometheus: `/metrics`."""

import os
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from elman.serve.workers import FOLDER

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """The figures of one process, or of several workers together."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        made: dict[str, Any] = {"registry": self.registry}
        self.requests = Counter("elman_requests", "Requests by path and status.", ["path", "status"], **made)
        self.duration = Histogram("elman_request_seconds", "From request to answer.", ["path"], buckets=SECONDS, **made)
        self.rejections = Counter("elman_rejections", "Requests that were refused, by reason.", ["reason"], **made)
        self.queue = Gauge(
            "elman_queue_length", "Requests that wait for a model.", ["model"], multiprocess_mode="livesum", **made
        )
        self.queued = Histogram("elman_queue_seconds", "Time in the queue.", ["model"], buckets=SECONDS, **made)
        self.batch = Histogram("elman_batch_size", "Texts of a batch.", ["model"], buckets=SIZES, **made)
        self.streams = Gauge(
            "elman_streams", "Texts that are being written.", ["model"], multiprocess_mode="livesum", **made
        )
        self.first_token = Histogram(
            "elman_first_token_seconds", "From request to its first token.", ["model"], buckets=SECONDS, **made
        )
        self.between_tokens = Histogram(
            "elman_between_tokens_seconds", "Between two tokens of a text.", ["model"], buckets=SECONDS, **made
        )
        self.tokens = Counter("elman_tokens", "Tokens that were written.", ["model"], **made)
        self.loads = Counter("elman_loads", "Models that were loaded, by outcome.", ["model", "outcome"], **made)
        self._counted: dict[tuple[str, str], tuple[Counter, Histogram]] = {}

    def count(self, path: str, status: str, seconds: float) -> None:
        """Count a request."""
        if (path, status) not in self._counted:
            self._counted[path, status] = self.requests.labels(path, status), self.duration.labels(path)
        requests, duration = self._counted[path, status]
        requests.inc()
        duration.observe(seconds)

    def written(self) -> tuple[bytes, str]:
        """The figures as Prometheus reads them, and their content type."""
        registry = self.registry
        if FOLDER in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry), CONTENT_TYPE_LATEST
