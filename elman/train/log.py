"""`log.jsonl`: one JSON record a line for each logged step and evaluation, and the curves drawn from it."""

import json
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from elman.errors import UserError
from elman.files import write_aside, write_text, writing

Callback = Callable[[dict[str, Any]], object]
Tracker = tuple[Callback, Callable[[], object]]


class RunLog:
    """Appends records to a run's log, and tells whoever else wants to know: some of `TRACKERS`, and callbacks."""

    def __init__(self, folder: Path, track: Sequence[str] = (), callbacks: Sequence[Callback] = ()) -> None:
        self.path, self._folder, self._track = folder / "log.jsonl", folder, track
        self._callbacks, self._closing = list(callbacks), list[Callable[[], object]]()

    def rewind(self, step: int) -> None:
        """Drop what was logged after `step`: a resumed run will log it again."""
        kept = [record for record in read_log(self.path) if record["step"] <= step]
        write_text(self.path, "".join(json.dumps(record) + "\n" for record in kept))
        for name in self._track:
            tell, close = TRACKERS[name](self._folder, step)
            self._callbacks.append(tell)
            self._closing.append(close)

    def add(self, kind: str, step: int, **values: float | str) -> None:
        """Write one record of `kind`: "train", "dev" or "sample"."""
        record = {"kind": kind, "step": step, **{key: _rounded(value) for key, value in values.items()}}
        with writing(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        for tell in self._callbacks:
            tell(record)

    def close(self) -> None:
        """Flush what others still hold."""
        for close in self._closing:
            close()


def read_log(path: Path) -> list[dict[str, Any]]:
    """The records of a log, up to the first line that is none, as a last one that a kill cut in half is."""
    if not path.is_file():
        return []
    records = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            break
        if not isinstance(record, dict) or "step" not in record:
            break
        records.append(record)
    return records


def draw_curves(folder: Path) -> None:
    """`curves.png`: training and held-out loss, and the learning rate, over the steps."""
    from matplotlib.figure import Figure  # slow to import, and only needed here

    records = read_log(folder / "log.jsonl")
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    losses, rates = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    for kind, style in (
        ("train", {"color": "#8fb4d9", "lw": 1}),
        ("dev", {"color": "#c0392b", "marker": "o", "ms": 3}),
    ):
        points = [(r["step"], r["loss"]) for r in records if r["kind"] == kind]
        if points:
            losses.plot(*zip(*points, strict=True), label={"train": "training", "dev": "held out"}[kind], **style)
    points = [(r["step"], r["lr"]) for r in records if r["kind"] == "train"]
    if points:
        rates.plot(*zip(*points, strict=True), color="#555555", lw=1)
    losses.set_ylabel("loss (nats)")
    if losses.lines:
        losses.legend(frameon=False)
    rates.set_ylabel("learning rate")
    rates.set_xlabel("updates")
    for axes in (losses, rates):
        axes.spines[["top", "right"]].set_visible(False)
    with write_aside(folder / "curves.png") as aside:
        figure.savefig(aside, format="png", dpi=120)


def _rounded(value: float | str) -> float | str:
    return value if isinstance(value, str) else float(f"{value:.7g}")


def _imported(module: str, name: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise UserError(f"train.{name} needs {module.partition('.')[0]}: pip install 'elman[{extra}]'") from None


def _figures(record: Mapping[str, Any]) -> dict[str, float]:
    numbers = {key: value for key, value in record.items() if not isinstance(value, str)}
    return {f"{record['kind']}/{key}": value for key, value in numbers.items() if key != "step"}


def _tensorboard(folder: Path, step: int) -> Tracker:
    module = _imported("torch.utils.tensorboard", "tensorboard", "track")
    board = module.SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)

    def tell(record: dict[str, Any]) -> None:
        for key, value in _figures(record).items():
            board.add_scalar(key, value, record["step"])

    return tell, board.close


def _wandb(folder: Path, step: int) -> Tracker:
    run = _imported("wandb", "wandb", "wandb").init(dir=str(folder), name=folder.name, resume="allow")
    return lambda record: run.log(_figures(record), step=record["step"]), run.finish


def _mlflow(folder: Path, step: int) -> Tracker:
    mlflow = _imported("mlflow", "mlflow", "mlflow")
    mlflow.start_run(run_name=folder.name)
    return lambda record: mlflow.log_metrics(_figures(record), step=record["step"]), mlflow.end_run


TRACKERS: dict[str, Callable[[Path, int], Tracker]] = {"tensorboard": _tensorboard, "wandb": _wandb, "mlflow": _mlflow}
"""Who is told of a run where the recipe asks for it: from the folder to what to call for a record, and at the end."""
