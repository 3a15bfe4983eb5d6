"""`log.jsonl`: one JSON record a line for each logged step and evaluation, and the curves drawn from it."""

import json
from pathlib import Path
from typing import Any

from elman.errors import UserError
from elman.files import write_aside, write_text, writing


class RunLog:
    """Appends records to a run's log; TensorBoard gets them too where the recipe asks for it."""

    def __init__(self, folder: Path, tensorboard: bool = False) -> None:
        self.path = folder / "log.jsonl"
        self._folder = folder / "tensorboard" if tensorboard else None
        self._board: Any = None

    def rewind(self, step: int) -> None:
        """Drop what was logged after `step`: a resumed run will log it again."""
        kept = [record for record in read_log(self.path) if record["step"] <= step]
        write_text(self.path, "".join(json.dumps(record) + "\n" for record in kept))
        if self._folder is not None:
            self._board = _tensorboard(self._folder, step)

    def add(self, kind: str, step: int, **values: float) -> None:
        """Write one record of `kind` ("train" or "dev")."""
        record = {"kind": kind, "step": step, **{key: _rounded(value) for key, value in values.items()}}
        with writing(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        if self._board is not None:
            for key, value in values.items():
                self._board.add_scalar(f"{kind}/{key}", value, step)

    def close(self) -> None:
        """Flush what TensorBoard still holds."""
        if self._board is not None:
            self._board.close()


def read_log(path: Path) -> list[dict[str, Any]]:
    """The records of a log, up to the first line that is none, as a last one that a kill cut in half is."""
    if not path.exists():
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


def _rounded(value: float) -> float:
    return float(f"{value:.7g}")


def _tensorboard(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise UserError("train.tensorboard needs TensorBoard: pip install 'elman[track]'") from None
    return SummaryWriter(str(folder), purge_step=step + 1)
