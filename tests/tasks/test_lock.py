"""A folder's lock: what is left behind, and where there are no locks."""

import errno
import os
from pathlib import Path

import pytest

from elman.errors import UserError
from elman.tasks import lock
from elman.tasks.lock import LOCK, locked

pytestmark = pytest.mark.skipif(lock.fcntl is None, reason="there are no locks here")


def test_the_lock_names_the_process_and_goes_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "run"
    with locked(folder, pytest.fail):
        assert (folder / LOCK).read_text().startswith(f"{os.getpid()} on ")
        with (
            pytest.raises(UserError, match=rf"process {os.getpid()} on .* is at work in {folder}"),
            locked(folder, print),
        ):
            pass
        (folder / "kept").touch()
    assert [path.name for path in folder.iterdir()] == ["kept"]
    with locked(folder, pytest.fail):
        pass


def test_a_folder_that_stays_empty_is_taken_away(tmp_path: Path) -> None:
    with pytest.raises(KeyError), locked(tmp_path / "a" / "b", pytest.fail):
        raise KeyError
    assert not (tmp_path / "a").exists()


def test_where_there_are_no_locks_the_user_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(file: int, operation: int) -> None:
        raise OSError(errno.ENOTSUP, "not supported")

    said: list[str] = []
    monkeypatch.setattr(lock.fcntl, "flock", unsupported)
    with locked(tmp_path / "run", said.append):
        assert "has no locks" in said[0]
    monkeypatch.setattr(lock, "fcntl", None)
    with locked(tmp_path / "run", said.append):
        assert len(said) == 2


def test_a_lock_whose_file_was_just_removed_is_taken_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hold, calls = lock._hold, []

    def slow(file: int) -> bool:
        calls.append(file)
        if len(calls) == 1:  # the process before removes its file between our opening and our locking it
            (tmp_path / LOCK).unlink()
        return hold(file)

    monkeypatch.setattr(lock, "_hold", slow)
    with locked(tmp_path, pytest.fail):
        assert len(calls) == 2
        with pytest.raises(UserError, match="is at work"), locked(tmp_path, print):
            pass


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="--out"), locked(tmp_path / "file", pytest.fail):
        pass
    with (
        pytest.raises(UserError, match=r"could not write .*: not a directory; name another folder with --out"),
        locked(tmp_path / "file" / "x", pytest.fail),
    ):
        pass
