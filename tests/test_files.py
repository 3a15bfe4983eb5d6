import json
from pathlib import Path

import pytest

from elman.errors import RunError
from elman.files import write_aside, write_json, write_text


def test_a_file_and_its_folders_appear(tmp_path: Path) -> None:
    write_text(tmp_path / "a" / "b" / "c.txt", "Grüße\n")
    assert (tmp_path / "a" / "b" / "c.txt").read_text(encoding="utf-8") == "Grüße\n"
    write_json(tmp_path / "v.json", {"ß": [1, None]})
    assert json.loads((tmp_path / "v.json").read_text(encoding="utf-8")) == {"ß": [1, None]}


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError("other"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file_alone(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "file"
    write_text(path, "old")
    expected = RunError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected), write_aside(path) as aside:
        aside.write_text("new, but only ha")
        raise error
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RunError, match="could not write"):
        write_text(tmp_path / "file" / "below" / "x", "text")
