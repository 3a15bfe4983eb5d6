"""What a person sees of a report, on a terminal and off it."""

import io

import pytest
from rich.console import Console

from elman.bench import layers, serving, streaming, table

FACTS = {"threads": 2, "processor": "a processor", "instruction_set": "avx2"}


def console(terminal: bool) -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, force_terminal=terminal, width=160), text


def layers_report(**more: float) -> layers.LayersReport:
    row = layers.LayerRow(layers.LayerCase("gru", 100, 256, 12, packed=True), {"torch": 0.4, "elman": 0.1, **more})
    product = {
        name: {"best": 10.0, "median": median}
        for name, median in zip(("alone", "torch", "elman"), (11, 12, 13.4), strict=True)
    }
    return layers.LayersReport(FACTS, 50.0, [row], product)


@pytest.mark.parametrize("terminal", [False, True])
def test_layers(terminal: bool) -> None:
    screen, text = console(terminal)
    table.show_layers(layers_report(jax=0.8), screen)
    shown = text.getvalue()
    assert all(word in shown for word in ("100/256/12", "packed", "4.00", "8.00", "50 GFLOP/s", "a processor"))
    assert any(line.split()[-4:] == ["after", "elman.nn.GRU", "10", "13"] for line in shown.splitlines())
    assert ("\x1b[" in shown) == terminal


def test_without_jax_there_is_no_column_of_it() -> None:
    screen, text = console(False)
    table.show_layers(layers_report(), screen)
    assert "jax" not in text.getvalue()


def test_streaming() -> None:
    case = streaming.StreamingCase(128, 1, 1)
    speeds = {streaming.LSTM: 1000.0, streaming.FLOAT: 50_000.0, streaming.INT8: 100_000.0}
    row = streaming.StreamingRow(case, speeds, {streaming.FLOAT: 50.0, streaming.INT8: 50.0})
    screen, text = console(False)
    table.show_streaming(streaming.StreamingReport(FACTS, [row], ["ONNX Runtime was not measured"]), screen)
    lines = text.getvalue().splitlines()
    (own,) = [line for line in lines if line.startswith("Elman float32")]
    assert own.split()[2:] == ["128", "1", "1", "50,000", "20.0", "50.0", "31%"]
    assert lines[-1] == "ONNX Runtime was not measured"


def test_serving() -> None:
    speeds = {
        serving.NAIVE: serving.ServingSpeed(200.0, 0.3, 0.5, 0, 7e-3),
        serving.ELMAN: serving.ServingSpeed(3000.0, 0.02, 0.03, 0, 5e-4),
    }
    row = serving.ServingRow(serving.ServingCase("tag", 64), speeds)
    half = serving.Half("tag", 0.002, 1500.0, 0.005, 0.0085, 0.0004, 0)
    load = serving.Overload(
        "tag", "640 clients", 2800.0, 21_000, 2000, 0, 0.22, 0.09, float("nan"), 2126.0, 2000.0, 1.0
    )
    screen, text = console(False)
    table.show_serving(serving.ServingReport(FACTS, [row], [half], [load]), screen)
    lines = [line.split() for line in text.getvalue().splitlines()]
    assert ["tag", "2.0", "1,500", "5.0", "8.5", "6.0", "0.4", "0"] in lines
    assert any(line[-2:] == ["0.500", "14.0"] and "15.0" in line for line in lines)
    assert any("21,000" in line and "220" in line and "nan" not in line for line in lines)


def test_progress_off_a_terminal_is_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 100, 6))
    monkeypatch.setattr(table.time, "monotonic", lambda: float(next(clock)))
    screen, text = console(False)
    assert list(table.follow(iter("abcd"), 4, screen)) == list("abcd")
    assert text.getvalue().splitlines() == ["2 of 4 measured, 12 s left"]


def test_progress_on_a_terminal_is_a_bar() -> None:
    screen, text = console(True)
    assert list(table.follow(iter("ab"), 2, screen)) == ["a", "b"]
    assert "measuring" in text.getvalue()
