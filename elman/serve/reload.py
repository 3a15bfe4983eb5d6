"""`--reload`: a model whose folder has changed is loaded beside the old one and put in its place whole."""

import asyncio
import logging

from elman.errors import ElmanError
from elman.serve.errors import without_paths
from elman.serve.garbage import settle
from elman.serve.service import Service
from elman.serve.shelf import Signature, signature

log = logging.getLogger("elman.serve")


async def watch(service: Service, seconds: float) -> None:
    """Look at the models' folders again and again, without end."""
    refused: dict[str, Signature] = {}
    replaced = False
    while True:
        await asyncio.sleep(seconds)
        if service.ready and not service.draining:
            if replaced:  # a while ago: the old one has hardly a request left, and can be thrown away
                await asyncio.to_thread(settle)
            replaced = await look(service, refused)


async def look(service: Service, refused: dict[str, Signature]) -> bool:
    """Replace each model whose folder has changed; whether there was one.

    What cannot be loaded is noted in `refused` and not tried again.
    """
    replaced = False
    for name in list(service.shelf.changed()):
        now = signature(service.shelf.folders[name])
        if refused.get(name) == now:
            continue
        try:
            await asyncio.to_thread(service.shelf.replace, name)
        except ElmanError as error:
            refused[name] = now
            log.error("%s is not replaced, and the old one goes on: %s", name, without_paths(str(error)))
        except Exception:
            refused[name] = now
            log.exception("%s is not replaced, and the old one goes on", name)
        else:
            replaced = True
            log.warning("%s is replaced by what its folder holds now", name)
    return replaced
