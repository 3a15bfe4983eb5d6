"""A classifier from table to answers in processes of its own: the same scores after loading, exact after a kill."""

import json
import signal
import time
from pathlib import Path

from tests.end_to_end.processes import finish, start
from tests.tasks.classify_runs import names, write_table

SETTINGS = (
    "text.kind=characters",
    "model.hidden=24",
    "model.layers=2",
    "model.pooling=attention",
    "model.token_dropout=0.05",
    "loss.smoothing=0.1",
    "train.average=ema",
    "train.epochs=15",
    "train.checkpoint_seconds=0.05",
    "train.threads=1",
    "baseline.ngrams=false",
)


def command(table: Path, out: Path) -> list[str]:
    overrides = [part for setting in SETTINGS for part in ("-s", setting)]
    return [
        "train",
        "classify",
        "--train",
        str(table),
        "--test",
        str(table.with_name("test.csv")),
        "--out",
        str(out),
        *overrides,
    ]


def test_killed_resumed_loaded_elsewhere(tmp_path: Path) -> None:
    table = write_table(tmp_path / "names.csv", names(400))
    test = write_table(tmp_path / "test.csv", names(90))
    code, _, error = finish(start(*command(table, tmp_path / "whole")))
    assert code == 0, error

    out = tmp_path / "cut"
    process = start(*command(table, out))
    while process.poll() is None and not (out / "checkpoint" / "state.safetensors").exists():
        time.sleep(0.02)
    time.sleep(0.3)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    code, _, error = finish(start("train", "classify", "--out", str(out), "--resume"))
    assert code == 0, error
    assert (out / "model.safetensors").read_bytes() == (tmp_path / "whole" / "model.safetensors").read_bytes()
    kept, whole = (json.loads((tmp_path / name / "metrics.json").read_text()) for name in ("cut", "whole"))
    assert kept["test"] == whole["test"]

    code, out_text, error = finish(start("evaluate", str(out), str(test), "--json"))
    assert code == 0, error
    assert json.loads(out_text)[str(test)] == kept["test"]  # to the last digit, in a process that never trained
