"""Past one machine: the service as an application of Ray Serve, our batches inside each replica.

serve run elman.serve.ray:app model=runs/mine replicas=2
serve run elman.serve.ray:app model=poet=runs/poet,tagger=runs/tagger max_streams=64
serve deploy docs/examples/ray-serve.yaml

Every machine of the cluster needs the models' folders under the same names.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from elman.errors import UserError, nearest
from elman.serve.limits import Limits
from elman.serve.shelf import named_folders
from elman.tasks.folder import Config, read_config
from elman.train.recipe import from_toml, parse

OWN = ("model", "replicas", "api_key_file", "runs")


def app(arguments: Mapping[str, Any]) -> Any:
    """The application of Ray Serve: `model` is a folder or several, `replicas` how many processes answer.

    All limits of `elman serve` may be given by their names.
    """
    try:
        from ray import serve
    except ImportError:
        raise UserError("elman.serve.ray needs Ray: pip install 'elman[ray]'") from None
    folders, limits = checked(arguments)
    replica: Any = serve.deployment(serve.ingress(builder(folders, limits, arguments.get("api_key_file")))())
    return replica.options(
        name="elman",
        num_replicas=int(from_toml(arguments.get("replicas", "1"))),
        max_ongoing_requests=limits.max_queue + limits.max_streams,
        graceful_shutdown_timeout_s=limits.drain_seconds,
    ).bind()


def checked(arguments: Mapping[str, Any]) -> tuple[dict[str, str], Limits]:
    """The folders of models by name, and the limits, of the arguments of an application.

    >>> checked({"modle": "runs/mine"})
    Traceback (most recent call last):
    elman.errors.UserError: there is no argument 'modle' of the service: did you mean 'model'?
    """
    known = [*OWN, *Limits.model_fields]
    for name in arguments:
        if name not in known:
            raise UserError(f"there is no argument '{name}' of the service: {nearest(name, known)}")
    given = arguments.get("model", ())
    several = named_folders(given.split(",") if isinstance(given, str) else list(given))
    if not several:
        raise UserError("give the folder of a model: model=FOLDER")
    for folder in several.values():
        read_config(folder, Config)
    told = {name: from_toml(value) for name, value in arguments.items() if name in Limits.model_fields}
    return {name: str(folder.absolute()) for name, folder in several.items()}, parse(Limits, told, where="the limits")


def builder(folders: Mapping[str, str], limits: Limits, key_file: str | None) -> Callable[[], Any]:
    """What makes the service inside a replica, where its models are loaded."""

    def build() -> Any:
        from elman.serve.app import create_app
        from elman.serve.service import Service

        key = None if key_file is None else Path(key_file).read_text(encoding="utf-8").strip()
        return create_app(Service.loading(folders, limits, api_key=key))

    return build
