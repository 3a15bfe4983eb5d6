"""Text files: what is read, what is left out, and every way a file can be wrong."""

import gzip
import os
from pathlib import Path

import pytest

from elman.errors import UserError
from elman.records import TextFiles, running_text


def text_of(files: TextFiles, start: float = 0.0, stop: float = 1.0) -> str:
    return "".join(files.blocks(start, stop))


def write(place: Path, content: bytes | str) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content.encode() if isinstance(content, str) else content)
    return place


def test_a_folder_is_its_text_files_in_order(tmp_path: Path) -> None:
    write(tmp_path / "b.txt", "two\n")
    write(tmp_path / "a" / "deep.md", "one\n")
    write(tmp_path / "c.txt.gz", gzip.compress(b"three\n", mtime=0))
    write(tmp_path / "picture.png", b"\x89PNG\0")
    write(tmp_path / ".hidden.txt", "no")
    write(tmp_path / ".git" / "x.txt", "no")
    write(tmp_path / "empty.txt", "")
    files = TextFiles(tmp_path)
    assert text_of(files) == "one\ntwo\nthree\n"
    assert (files.survey().characters, files.survey().lines) == (14, 3)
    assert [facts.lines for facts in files.survey().files] == [1, 1, 1]


def test_only_crlf_is_translated_even_across_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elman.records.decoding.RAW_CHUNK", 3)
    place = write(tmp_path / "a.txt", "ab\r\ncd\re\u2028f\r\n\r\ng\r")
    files = TextFiles(place)
    assert text_of(files) == "ab\ncd\re\u2028f\n\ng\r"
    assert files.survey().characters == len(text_of(files))


def test_a_byte_order_mark_is_no_character(tmp_path: Path) -> None:
    assert text_of(TextFiles(write(tmp_path / "a.txt", b"\xef\xbb\xbfhi"))) == "hi"


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252"])
def test_other_encodings(tmp_path: Path, encoding: str) -> None:
    place = write(tmp_path / "a.txt", "größer\n".encode(encoding))
    assert text_of(TextFiles(place, encoding=encoding)) == "größer\n"


def test_parts_meet_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elman.records.decoding.RAW_CHUNK", 7)
    whole = "".join(f"Zeile {n} mit ü\n" for n in range(50))
    places = [write(tmp_path / "a.txt", whole[:300]), write(tmp_path / "b.txt", whole[300:])]
    files = TextFiles(places)
    for cut in (0.1, 1 / 3, 0.5, 0.9):
        first, second = text_of(files, stop=cut), text_of(files, start=cut)
        assert first + second == whole
        assert len(first) == int(cut * len(whole))


def test_blocks_end_at_line_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elman.records.decoding.RAW_CHUNK", 16)
    monkeypatch.setattr(running_text, "BLOCK", 64)
    monkeypatch.setattr(running_text, "LONGEST_LINE", 256)
    text = "".join(f"some words in line {n}\n" for n in range(100)) + "word " * 200
    blocks = list(TextFiles(write(tmp_path / "a.txt", text)).blocks())
    assert "".join(blocks) == text
    assert max(map(len, blocks)) <= 300
    assert all(block.endswith((" ", "\n")) for block in blocks)


def test_blocks_can_be_gone_through_again(tmp_path: Path) -> None:
    blocks = TextFiles(write(tmp_path / "a.txt", "text\n")).blocks()
    assert list(blocks) == list(blocks) == ["text\n"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"a\.txt is empty"),
        (b"\xef\xbb\xbf", r"a\.txt is empty"),
        (gzip.compress(b"", mtime=0), r"a\.txt is empty"),
        (b"ab\0cd", r"a\.txt looks like a binary file"),
        ("x".encode("utf-16"), "encoding=utf-16"),
        (b"fine\nfine\nna\xefve\n", r"a\.txt:3 is not utf-8 .*encoding=latin-1"),
        (b"fine\ncut \xc3", r"a\.txt:2 is not utf-8"),
        (gzip.compress(b"text\n" * 1000, mtime=0)[:-10], r"a\.txt is a damaged gzip file"),
        (b"\x1f\x8bnothing of the kind", r"a\.txt is a damaged gzip file"),
    ],
)
def test_wrong_content_is_one_sentence(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(UserError, match=message):
        TextFiles(write(tmp_path / "a.txt", content)).survey()


def test_the_line_of_a_wrong_byte_is_right_far_into_a_file(tmp_path: Path) -> None:
    place = write(tmp_path / "a.txt", "0123456789ü\r\n".encode() * 200_000 + b"\xff\n")
    with pytest.raises(UserError, match=r"a\.txt:200001 "):
        TextFiles(place).survey()


def test_missing_files_and_empty_folders(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        TextFiles(tmp_path / "absent.txt")
    with pytest.raises(UserError, match="holds no text files"):
        TextFiles(tmp_path)
    with pytest.raises(UserError, match="no text file was named"):
        TextFiles([])
    with pytest.raises(UserError, match="no such encoding: 'utf-9'"):
        TextFiles(tmp_path, encoding="utf-9")


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = write(tmp_path / "a.txt", "text")
    if os.geteuid() == 0:  # root may read everything, so the system's refusal is acted

        def refuse(self: Path, *args: object, **kwargs: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "open", refuse)
    else:
        place.chmod(0)
    with pytest.raises(UserError, match="cannot be read: permission denied; change its permissions"):
        TextFiles(place).survey()


@pytest.mark.parametrize("part", [(0.5, 0.5), (-0.1, 1.0), (0.0, 1.1), (0.9, 0.1)])
def test_parts_that_are_none(tmp_path: Path, part: tuple[float, float]) -> None:
    files = TextFiles(write(tmp_path / "a.txt", "text"))
    with pytest.raises(UserError, match="0 <= start < stop <= 1"):
        files.blocks(*part)


def test_a_part_without_a_character(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no character"):
        TextFiles(write(tmp_path / "a.txt", "text")).blocks(0.0, 0.1)


@pytest.mark.data
def test_the_usual_split_of_tinyshakespeare(data_dir: Path) -> None:
    files = TextFiles(data_dir / "tinyshakespeare" / "input.txt")
    assert sum(map(len, files.blocks(stop=0.9))) == 1_003_854
    assert sum(map(len, files.blocks(start=0.9))) == 111_540


@pytest.mark.parametrize("name", ["base64", "undefined", "idna", "punycode", "rot13", "hex", "zlib"])
def test_what_is_no_text_encoding_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.txt").write_text("text")
    with pytest.raises(UserError, match=f"'{name}' is no encoding of running text"):
        TextFiles(tmp_path / "a.txt", encoding=name)


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800"])
def test_names_that_no_encoding_could_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="no such encoding"):
        TextFiles(tmp_path, encoding=name)


@pytest.mark.parametrize("name", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1", "cp1252", "shift_jis", "koi8-r"])
def test_usual_encodings_are_taken(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.txt").write_bytes("two\nlines".encode(name))
    assert list(TextFiles(tmp_path / "a.txt", encoding=name).blocks()) == ["two\nlines"]


def test_a_wide_text_without_its_mark(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("text".encode("utf-16-le"))
    with pytest.raises(UserError, match=r"give -s data\.encoding=utf-16-le"):
        list(TextFiles(tmp_path / "a.txt", encoding="utf-16").blocks())
