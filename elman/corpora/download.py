"""Fetching a file over HTTP: goes on where it broke off, is checked, and appears whole or not at all."""

import gzip
import hashlib
import http.client
import shutil
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from pathlib import Path

from elman.errors import UserError
from elman.files import write_aside

CHUNK = 1 << 18
TRIES = 3
TIMEOUT = 30.0

Progress = Callable[[int, int | None], None]


class _BrokenOff(Exception):
    """The connection ended before the file did."""


def download(address: str, target: Path, sha256: str, progress: Progress | None = None) -> Path:
    """Fetch `address` to `target`, whose content must have the checksum `sha256`.

    An address that ends in `.gz` is unpacked where `target` does not, and the checksum is that of the unpacked
    content. What has come stays in a `.part` file, so that a second call goes on from there. `progress` is
    called with the bytes so far and in all (None where the server does not say).
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    resumed = part.exists()
    _fetch(address, part, target, progress)
    if not _settle(part, target, address, sha256) and resumed:
        # The part that was here already may have been of another version.
        _fetch(address, part, target, progress)
        _settle(part, target, address, sha256)
    if not target.exists():
        raise UserError(
            f"what came from {address} has the wrong checksum: try again later, or put the right file at {target}"
        )
    return target


def _settle(part: Path, target: Path, address: str, sha256: str) -> bool:
    """Check what came and move it into place; a part that is wrong is of no use and goes."""
    packed = address.endswith(".gz") and target.suffix != ".gz"
    digest = hashlib.sha256()
    try:
        with write_aside(target) as aside:
            with gzip.open(part) if packed else part.open("rb") as source, aside.open("wb") as out:
                while chunk := source.read(CHUNK):
                    digest.update(chunk)
                    out.write(chunk)
            if digest.hexdigest() != sha256:
                raise ValueError("wrong checksum")
    except (ValueError, EOFError, zlib.error, gzip.BadGzipFile):
        part.unlink(missing_ok=True)
        return False
    part.unlink(missing_ok=True)
    return True


def _fetch(address: str, part: Path, target: Path, progress: Progress | None) -> None:
    reason = ""
    for _ in range(TRIES):
        try:
            _fetch_once(address, part, progress)
            return
        except urllib.error.HTTPError as error:
            if error.code == 416 and part.exists():  # the part is as long as the file, or longer
                part.unlink()
                continue
            raise _failure(address, target, f"the server answers {error.code} {error.reason}") from error
        except urllib.error.URLError as error:
            raise _failure(address, target, f"no connection: {error.reason}") from error
        except (_BrokenOff, http.client.HTTPException, OSError) as error:
            reason = f"broken off after {part.stat().st_size if part.exists() else 0} bytes: {error}"
    raise _failure(address, target, reason)


def _fetch_once(address: str, part: Path, progress: Progress | None) -> None:
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(address, headers={"User-Agent": "elman"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        continues = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        have = have if continues else 0
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length else None
        with part.open("ab" if continues else "wb") as out:
            while chunk := answer.read(CHUNK):
                out.write(chunk)
                have += len(chunk)
                if progress is not None:
                    progress(have, total)
    if total is not None and have < total:
        raise _BrokenOff(f"{total} were promised")


def _failure(address: str, target: Path, reason: str) -> UserError:
    return UserError(
        f"could not download {address} ({reason}): run it again when there is a connection, or put the file at {target}"
    )


def copy_whole(source: Path, target: Path) -> None:
    """Copy a file so that it appears whole or not at all."""
    with write_aside(target) as aside:
        shutil.copyfile(source, aside)
