"""Bytes of a file to text, in pieces: gzip, encodings, line ends, and what can be wrong with them."""

import codecs
import gzip
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from elman.errors import UserError
from elman.files import explained, reading
from elman.records.paths import on_disk

RAW_CHUNK = 1 << 18
GZIP_MAGIC = b"\x1f\x8b"
USUAL = "usual ones are utf-8, latin-1, utf-16"
ENCODING_OPTION = "-s data.encoding="  # what a user types before the name of an encoding, where files are trained on
HALVES = (b"+2AA-", rb"\ud800")  # half a surrogate pair, as utf-7 and Python's escapes write it
WIDE = ("utf-16", "utf-32")  # encodings in which a character is more than one byte
WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def check_encoding(encoding: str) -> str:
    """The name of `encoding` as Python spells it.

    >>> check_encoding("latin1")
    'iso8859-1'
    """
    probe = "line\n" * 20
    try:
        name = codecs.lookup(encoding).name
    except (LookupError, ValueError) as error:
        raise UserError(f"no such encoding: {encoding!r}; {USUAL}") from error
    try:  # text is read in pieces: two encoded texts, one after the other, have to be the two texts
        is_text = (probe.encode(encoding) * 2).decode(encoding).replace("\ufeff", "") == probe * 2
    except (LookupError, ValueError):
        is_text = False
    if not is_text or _has_halves(encoding):
        raise UserError(f"{encoding!r} is no encoding of running text; {USUAL}")
    return name


def _has_halves(encoding: str) -> bool:
    """Whether an encoding lets half a surrogate pair through, which is no character and cannot be written again."""
    for half in HALVES:
        try:
            half.decode(encoding).encode("utf-8")
        except UnicodeEncodeError:
            return True
        except UnicodeError:  # these bytes are nothing at all in it
            continue
    return False


def raw_chunks(path: Path) -> Iterator[bytes]:
    """The bytes of a file (standard input for `-`), unpacked where its first two bytes say gzip."""
    with reading(path):
        if path.is_fifo():  # which would wait for a writer, and is gone once it was read
            raise UserError(f"{path} is a pipe, and files are read more than once: write it to a file, and name that")
        with on_disk(path).open("rb") as plain:
            packed = plain.read(2) == GZIP_MAGIC
            plain.seek(0)
            source = cast(BinaryIO, gzip.GzipFile(fileobj=plain)) if packed else plain
            try:
                while chunk := source.read(RAW_CHUNK):
                    yield chunk
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise UserError(f"{path} is a damaged gzip file: fetch or pack it again") from error


def is_binary(path: Path, encoding: str) -> bool:
    """Whether the beginning of a file has bytes that no text has, in this encoding or another one."""
    start = next(raw_chunks(path), b"")
    return b"\0" in start and not start.startswith(WIDE_MARKS) and not check_encoding(encoding).startswith(WIDE)


def stream_chunks(stream: BinaryIO, where: Path) -> Iterator[bytes]:
    """The bytes of an open stream, as much as is there each time, so that nobody waits for more than that."""
    read = getattr(stream, "read1", stream.read)
    try:
        while chunk := read(RAW_CHUNK):
            yield chunk
    except OSError as error:
        raise explained(f"{where} cannot be read", error, "give a file, or a pipe") from error


def text_chunks(path: Path, chunks: Iterable[bytes], encoding: str, option: str = ENCODING_OPTION) -> Iterator[str]:
    """Decode the `chunks` of `path`; CRLF becomes LF, other line ends stay.

    `option` is what the user types before the name of another encoding.
    """
    utf8 = codecs.lookup(encoding).name == "utf-8"
    decoder = codecs.getincrementaldecoder("utf-8-sig" if utf8 else encoding)()
    wide = encoding.startswith(WIDE)
    line, held = 1, ""
    for chunk in chunks:
        if not wide and b"\0" in chunk:
            raise UserError(f"{path} looks like a binary file, not text: {_way_out(chunk, utf8, option)}")
        text = held + _decode(decoder, chunk, path, line, encoding, option)
        held = "\r" if text.endswith("\r") else ""  # its LF may stand in the next chunk
        if "\r" in text:
            text = text[: len(text) - len(held)].replace("\r\n", "\n")
        line += text.count("\n")
        yield text
    yield held + _decode(decoder, b"", path, line, encoding, option)


def _decode(decoder: codecs.IncrementalDecoder, chunk: bytes, path: Path, line: int, encoding: str, option: str) -> str:
    try:
        return decoder.decode(chunk, final=not chunk)
    except UnicodeDecodeError as error:
        seen = bytes(error.object)
        line += seen[: error.start].count(b"\n")
        other = "utf-8" if encoding != "utf-8" else "utf-16" if seen.startswith(WIDE_MARKS) else "latin-1"
        raise UserError(
            f"{path}:{line} is not {encoding} (byte 0x{seen[error.start]:02x}): "
            f"mend the line, or give {option}{other} if the file is that"
        ) from error
    except UnicodeError as error:  # a wide encoding without the mark that tells which of the two it is
        raise UserError(f"{path} is not {encoding}: {error}; give {option}{encoding}-le or {option}utf-8") from error


def _way_out(chunk: bytes, utf8: bool, option: str) -> str:
    if utf8 and chunk.startswith(WIDE_MARKS):
        return f"give {option}utf-16 if it is that"
    return "give a text file"
