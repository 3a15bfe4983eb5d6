"""`elman serve` from its arguments to its end: one process, or a parent and its workers."""

import os
import sys
from collections.abc import Sequence
from typing import Any

from elman import kernels
from elman.errors import ElmanError
from elman.serve.garbage import settle
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
    leave_a_core(workers)
    shelf = Shelf(named_folders(list(models)), limits or Limits(), Metrics())
    bound = listen(host, port)
    service, address = Service(shelf, **options), address_of(bound)
    seconds = RELOAD_SECONDS if reload else None
    print(f"loading {', '.join(shelf.folders)}", file=sys.stderr, flush=True)

    def told() -> None:
        names = ", ".join(f"{served.name} ({served.task})" for served in shelf.served.values())
        print(f"{address} serves {names}", flush=True)

    if workers == 1:
        run_server(service, bound, reload=seconds, told=told)
        return 0
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads are not there after a fork
    shelf.load()
    settle()  # before the workers are forked, whose memory of it is then never written to
    told()

    def work() -> int:
        try:
            run_server(service, bound, reload=seconds, told=None)
        except ElmanError as error:
            print(f"elman: {error}", flush=True)
            return 2
        return 0

    return Workers(workers, work).run()


def leave_a_core(workers: int) -> None:
    """Compute on one core fewer than there are, of several workers each on one, unless the environment says otherwise.

    A batch whose threads wait for each other stands still while the event loop has the core of one of them, and the
    event loop waits for a core while they compute: with a core of its own, answers come sooner, and as many.
    """
    if kernels.THREADS not in os.environ:
        kernels.use_threads(1 if workers > 1 else max(1, kernels.threads() - 1))
