"""`elman serve` from its arguments to its end: one process, or a parent and its workers."""

import os
from collections.abc import Sequence
from typing import Any

from elman.errors import ElmanError
from elman.serve.limits import Limits
from elman.serve.metrics import Metrics
from elman.serve.server import address_of, listen
from elman.serve.server import run as run_server
from elman.serve.service import Service
from elman.serve.shelf import Shelf, named_folders
from elman.serve.workers import Workers

RELOAD_SECONDS = 1.0


def run(
    models: Sequence[str],
    host: str,
    port: int,
    *,
    workers: int = 1,
    reload: bool = False,
    limits: Limits | None = None,
    **options: Any,
) -> int:
    """Serve models until told to end; the exit code. `options` are those of `Service`."""
    shelf = Shelf(named_folders(list(models)), limits or Limits(), Metrics())
    bound = listen(host, port)
    service, address = Service(shelf, **options), address_of(bound)
    seconds = RELOAD_SECONDS if reload else None

    def told() -> None:
        names = ", ".join(f"{served.name} ({served.task})" for served in shelf.served.values())
        print(f"{address} serves {names}", flush=True)

    if workers == 1:
        run_server(service, bound, reload=seconds, told=told)
        return 0
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads are not there after a fork
    shelf.load()
    told()

    def work() -> int:
        try:
            run_server(service, bound, reload=seconds, told=None)
        except ElmanError as error:
            print(f"elman: {error}", flush=True)
            return 2
        return 0

    return Workers(workers, work).run()
