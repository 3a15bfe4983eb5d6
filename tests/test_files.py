import json
import os
import stat
from pathlib import Path

import pytest

from elman.errors import RunError, UserError
from elman.files import read_json, reading, write_aside, write_json, write_text
from elman.train.checkpoint import save_checkpoint


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
    with pytest.raises(UserError, match=r"could not write .*: not a directory; check the name"):
        write_text(tmp_path / "file" / "below" / "x", "text")


@pytest.mark.parametrize("umask", [0o022, 0o002, 0o077])
def test_whatever_writes_a_file_others_may_read_it_as_the_umask_says(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with write_aside(tmp_path / "file") as aside:
            aside.unlink()
            os.close(os.open(aside, os.O_CREAT | os.O_WRONLY, 0o600))  # as some libraries do
        save_checkpoint(tmp_path / "state.safetensors", {"step": 3})
    finally:
        os.umask(before)
    for name in ("file", "state.safetensors"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o666 & ~umask


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(13, "Permission denied"), "permission denied; .*name another place"),
        (OSError(36, "File name too long"), "file name too long; give a shorter name"),
    ],
)
def test_a_place_that_cannot_be_written_to_is_the_users_to_change(tmp_path: Path, error: OSError, words: str) -> None:
    with pytest.raises(UserError, match=rf"could not write .*{words}"), write_aside(tmp_path / "file"):
        raise error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FileNotFoundError(2, "No such file or directory"), "no such file: a.txt"),
        (PermissionError(13, "Permission denied"), r"a.txt cannot be read: permission denied; change its permissions"),
        (OSError(5, "Input/output error"), "a.txt cannot be read: input/output error; name another file"),
    ],
)
def test_a_file_that_cannot_be_read_is_the_users_to_change(error: OSError, words: str) -> None:
    with pytest.raises(UserError, match=words), reading(Path("a.txt")):
        raise error


def test_json_that_is_none_is_told(tmp_path: Path) -> None:
    for content in (b"", b"[1]", b"{", b"[" * 200_000, b"\xff", b'{"a": ' + b"1" * 5000 + b"}"):
        (tmp_path / "a.json").write_bytes(content)
        with pytest.raises(UserError, match=r"a\.json is damaged"):
            read_json(tmp_path / "a.json")
    with pytest.raises(UserError, match="no such file"):
        read_json(tmp_path / "b.json")
    with pytest.raises(UserError, match="cannot be read"):
        read_json(tmp_path)
