"""Series from tables and from memory: which columns, which rows, what is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from elman.errors import UserError
from elman.records.lines import BadLines
from elman.records.series import Series, SeriesReader


def read(folder: Path, text: str, name: str = "a.csv", **options: object) -> list[Series]:
    """The series of a table."""
    (folder / name).write_text(text)
    return SeriesReader(**options).files([folder / name]).read()  # type: ignore[arg-type]


def test_columns_of_numbers_are_forecast_and_others_are_not(tmp_path: Path) -> None:
    (one,) = read(tmp_path, "date,town,a,b\n2020-01-01,x,1,2\n2020-01-02,y,3,4\n")
    assert (
        one.columns.target == ("a", "b")
        and one.columns.left_out == ("town",)
        and one.values.tolist() == [[1, 2], [3, 4]]
    )


def test_a_table_without_a_heading_has_numbered_columns(tmp_path: Path) -> None:
    (one,) = read(tmp_path, "1,2\n3,4\n", target=["2"])
    assert one.values.ravel().tolist() == [2, 4]


def test_columns_are_found_by_name_or_by_number(tmp_path: Path) -> None:
    table = "who,x,y\na,1,2\nb,3,4\na,5,6\n"
    by_name = read(tmp_path, table, key="who", target=["x"], covariates=["y"])
    by_number = read(tmp_path, table, key="1", target=["2"], covariates=["3"])
    for found in (by_name, by_number):
        assert [(one.name, one.values.ravel().tolist(), one.covariates.ravel().tolist()) for one in found] == [
            ("a", [1, 5], [2, 6]),
            ("b", [3], [4]),
        ]
    with pytest.raises(UserError, match="no column 'z'"):
        read(tmp_path, table, target=["z"])


def test_jsonl_and_semicolons_are_tables_too(tmp_path: Path) -> None:
    (one,) = read(tmp_path, '{"x": 1}\n{"x": 2.5}\n', "a.jsonl")
    (other,) = read(tmp_path, "x;y\n1;2\n3;4\n", target=["y"])
    assert one.values.ravel().tolist() == [1, 2.5] and other.values.ravel().tolist() == [2, 4]


def test_labels_are_read_where_they_are_asked_for(tmp_path: Path) -> None:
    table = "who,x,size\na,1,7\na,2,7\nb,3,9\n"
    assert [one.label for one in read(tmp_path, table, key="who", label="size")] == [7, 9]
    late = "who,x,size\na,1,\na,2,7\n"
    assert [one.label for one in read(tmp_path, late, key="who", label="size")] == [7]
    with pytest.raises(UserError, match="has no 'size'"):
        read(tmp_path, "who,x,size\na,1,\n", key="who", label="size")
    without = list(SeriesReader(key="who", label="size").lines(["who,x", "a,1", "a,2"], Path("-")))
    assert [one.label for one in without] == [None] and without[0].columns.target == ("x",)


@pytest.mark.parametrize(("missing", "filled"), [("previous", [1, 1, 1, 4]), ("interpolate", [1, 2, 3, 4])])
def test_gaps_are_filled_as_is_said(tmp_path: Path, missing: str, filled: list[float]) -> None:
    (one,) = read(tmp_path, "t,x\na,1\nb,\nc,NA\nd,4\n", missing=missing)
    assert one.values.ravel().tolist() == filled


@pytest.mark.parametrize(("missing", "filled"), [("previous", [2, 2, 3, 3]), ("interpolate", [2, 2, 3, 3])])
def test_gaps_at_the_ends_have_the_nearest_value(missing: str, filled: list[float]) -> None:
    rows = [{"x": value} for value in (None, 2, 3, float("nan"))]
    assert next(SeriesReader(missing=missing).objects(rows)).values.ravel().tolist() == filled  # type: ignore[arg-type]


def test_an_empty_line_in_a_table_of_one_column_is_a_gap(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r":3 has no number in the column 'x'.*data.missing=interpolate"):
        read(tmp_path, "x\n1\n\n3\n")
    assert read(tmp_path, "x\n1\n\n3\n\n", missing="interpolate")[0].values.ravel().tolist() == [1, 2, 3]


@pytest.mark.parametrize("cell", ["high", "1,5", "inf", "1e999", "1_100", "\u0661\u0662", "9" * 400])
def test_what_is_no_number_is_told_of_by_its_place(tmp_path: Path, cell: str) -> None:
    with pytest.raises(UserError, match=r"a.csv:3 has '.*' in the column 'x'.*-s data.target=NAME"):
        read(tmp_path, f'x,y\n1,1\n"{cell}",2\n')


@pytest.mark.parametrize(
    "times",
    [
        ["2020-01-31", "2020-02-29", "2020-03-31", "2020-04-30"],
        ["19580329", "19580405", "19580412", "19580419"],
        ["1700", "1701", "1702", "1703"],
        ["2021-03-27 23:00", "2021-03-28 00:00", "2021-03-28 01:00", "2021-03-28 02:00"],
        ["Q1", "Q2", "Q3", "Q4"],
        ["2020-11", "2020-12", "2021-01", "2021-02"],
        ["2020/2", "2020/3", "2020/4", "2020/5"],
        ["2020-Q3", "2020-Q4", "2021-Q1", "2021-Q2"],
    ],
)
def test_even_steps_are_taken(tmp_path: Path, times: list[str]) -> None:
    assert len(read(tmp_path, "date,x\n" + "".join(f"{time},1\n" for time in times))[0]) == 4


@pytest.mark.parametrize(
    ("times", "line"),
    [
        (["1", "2", "4", "5", "6"], 4),
        (["3", "2", "1"], 3),
        (["1", "1", "1"], 3),
        (["1", "?", "3"], 3),
        (["2020-01", "2020-02", "2020-04", "2020-05", "2020-06"], 4),
        (["2020Q1", "2020Q2", "2020Q4", "2021Q1"], 4),
    ],
)
def test_uneven_steps_are_told_of_unless_rows_are_to_be_counted(tmp_path: Path, times: list[str], line: int) -> None:
    table = "time,x\n" + "".join(f"{time},1\n" for time in times)
    with pytest.raises(UserError, match=rf"a.csv:{line if times != ['3', '2', '1'] else '[23]'} .*data.uneven=true"):
        read(tmp_path, table)
    assert len(read(tmp_path, table, uneven=True)[0]) == len(times)


def test_nothing_to_read_is_told_of(tmp_path: Path) -> None:
    for text, message in (("x\n", "no rows"), ("t,y\na,b\nc,d\n", "-s data.target=NAME")):
        with pytest.raises(UserError, match=message):
            read(tmp_path, text)


def test_data_in_memory() -> None:
    frame = pd.DataFrame({"date": pd.date_range("2020-01-01", periods=3), "x": [1.0, 2.0, 3.0]})
    for data in (frame, [1, 2, 3], np.array([1.0, 2.0, 3.0]), [{"x": 1}, {"x": 2}, {"x": 3}], [[1], [2], [3]]):
        (one,) = SeriesReader().objects(data)
        assert one.values.ravel().tolist() == [1, 2, 3]
    (rows,) = SeriesReader(target=["1"], covariates=["2"]).objects(np.array([[1, 2], [3, 4]]))
    assert rows.values.tolist() == [[1], [3]] and rows.covariates.tolist() == [[2], [4]]


def test_decimal_commas_are_read_where_they_part_no_columns(tmp_path: Path) -> None:
    (one,) = read(tmp_path, "day;x\n1;1,5\n2;-2,25\n3;4\n")
    assert one.values.ravel().tolist() == [1.5, -2.25, 4]
    with pytest.raises(UserError, match=r"'1,5' in the column 'x', .*: write a point in place of the comma"):
        read(tmp_path, 'day,x\n1,1\n2,"1,5"\n')


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a.csv:1 has two columns called 'x': give one of them another name"):
        read(tmp_path, "x,y,x\n1,2,3\n")
    with pytest.raises(UserError, match="train has two columns called 'x'"):
        list(SeriesReader().objects(pd.DataFrame([[1, 2], [3, 4]], columns=["x", "x"])))


@pytest.mark.parametrize(
    "roles",
    [
        {"target": ["x"], "covariates": ["x"]},
        {"target": ["x", "x"]},
        {"target": ["t"], "time": "t"},
        {"target": ["x"], "label": "x"},
        {"target": ["x"], "key": "2"},
    ],
)
def test_a_column_has_one_role(tmp_path: Path, roles: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"a.csv: the column '[xt]' is two things at once .*: name another"):
        read(tmp_path, "t,x,y\n1,2,3\n2,3,4\n", **roles)


def test_a_row_of_no_series_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a.csv:3 has no 'who', which tells series apart: write it in every row"):
        read(tmp_path, "who,x\na,1\n,2\n", key="who")
    rows = pd.DataFrame({"who": ["a", None], "x": [1, 2]})
    with pytest.raises(UserError, match="record 2 of train has no 'who'"):
        list(SeriesReader(key="who").objects(rows))


def test_series_of_several_files_have_names_of_their_own(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for name in ("a", "b"):
            (tmp_path / folder / f"{name}.csv").write_text("who,x\nnorth,1\nnorth,2\n")
    paths = [tmp_path / "one" / "a.csv", tmp_path / "one" / "b.csv", tmp_path / "two" / "a.csv"]
    assert [one.name for one in SeriesReader(target=["x"]).files(paths)] == ["a", "b", "a (2)"]
    assert [one.name for one in SeriesReader(key="who").files(paths)] == ["north", "north (2)", "north (3)"]


def test_other_files_are_read_by_the_names_of_the_first(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n3,4\n")
    (tmp_path / "b.csv").write_text("z,y,x\n9,6,5\n9,8,7\n")
    found = SeriesReader().files([tmp_path / "a.csv", tmp_path / "b.csv"]).read()
    assert [one.values.tolist() for one in found] == [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    (tmp_path / "b.csv").write_text("x,w\n1,2\n")
    with pytest.raises(UserError, match=r"b.csv has no column 'y': known are: x, w; name .* -s data.target=NAME"):
        SeriesReader().files([tmp_path / "a.csv", tmp_path / "b.csv"]).read()


def test_a_table_without_names_has_the_columns_that_are_told_in_their_order() -> None:
    (one,) = SeriesReader(target=["height"], covariates=["hint"]).objects([[1, 2], [3, 4]])
    assert one.values.tolist() == [[1], [3]] and one.covariates.tolist() == [[2], [4]]
    with pytest.raises(UserError, match="has no column 'height'"):
        list(SeriesReader(target=["height"]).objects([[1, 2], [3, 4]]))


def test_the_index_of_a_data_frame_is_its_time() -> None:
    days = pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-04", "2020-01-05", "2020-01-06"])
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0, 5.0]}, index=days)
    for data in (frame, frame["x"]):
        with pytest.raises(UserError, match="record 3 of train does not follow the row before it"):
            list(SeriesReader().objects(data))
        (one,) = SeriesReader(uneven=True).objects(data)
        assert one.columns.target == ("x",) and one.columns.time == "time" and len(one) == 5


def test_what_pandas_has_for_nothing_is_a_gap() -> None:
    frame = pd.DataFrame({"x": pd.array([1, None, 3], dtype="Int64")})
    with pytest.raises(UserError, match=r"record 2 of train has no number in the column 'x'.*data.missing"):
        list(SeriesReader().objects(frame))
    (one,) = SeriesReader(missing="interpolate").objects(frame)
    assert one.values.ravel().tolist() == [1, 2, 3]


def test_rows_of_a_series_are_not_skipped() -> None:
    with pytest.raises(UserError, match=r"cannot be left out, .*: leave --on-error out"):
        SeriesReader().lines(["x", "1", "2"], Path("-"), BadLines("skip"))


def test_what_is_no_series_is_told_of() -> None:
    for wrong, sentence in (
        ([1, 2, float("nan")], "step 3 of 3 is nan: put one there"),
        ([1.0, None], "step 2 of 2 is nan"),
        (5.0, "a series is a list of numbers"),
        ([10**400], "a series is a list of numbers"),
        ([1.7e308], r"step 1 of 1 is 1.7e\+308"),
    ):
        with pytest.raises(UserError, match=sentence):
            Series.of(wrong, channels=1, width=1)  # type: ignore[arg-type]
