"""Ids on disk: what they are, that they are made once, and that they need little memory."""

import json
import shutil
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from elman.batches import IdStream, line_ids, stream, stream_ids
from elman.batches.ids import line_stream_ids
from elman.errors import UserError
from elman.records import Record, TextFiles, read_records
from elman.records.records import Part, RecordFiles
from elman.text import TokenizerSettings, fit_tokenizer

WORDS = TokenizerSettings(kind="words")
HELD = Part(held=1, seed=0, inside=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.txt").write_text("ab\nc")
    (tmp_path / "text" / "b.txt").write_text("a\n")
    return tmp_path


def everything(ids: IdStream) -> list[int]:
    return ids.read(0, len(ids)).tolist()


def test_several_documents_are_each_ended(folder: Path) -> None:
    ids, tokenizer = stream_ids(TextFiles(folder / "text"), TokenizerSettings(), cache_dir=folder / "cache")
    assert [tokenizer.tokens[token] for token in everything(ids)] == ["a", "b", "\n", "c", "<eos>", "a", "\n", "<eos>"]
    assert ids.documents.tolist() == [0, 5]
    assert tokenizer.counts.tolist() == np.bincount(everything(ids), minlength=tokenizer.size).tolist()


def test_a_last_line_end_is_the_eos_of_words(folder: Path) -> None:
    ids, tokenizer = stream_ids(TextFiles(folder / "text"), WORDS, cache_dir=folder / "cache")
    assert [tokenizer.tokens[token] for token in everything(ids)] == ["ab", "<eos>", "c", "<eos>", "a", "<eos>"]
    assert tokenizer.counts[tokenizer.eos_id] == 3


def test_one_document_gets_no_eos(folder: Path) -> None:
    ids, tokenizer = stream_ids(TextFiles(folder / "text" / "a.txt"), TokenizerSettings(), cache_dir=folder / "cache")
    assert tokenizer.decode(everything(ids)) == "ab\nc"
    assert tokenizer.eos_id not in everything(ids)


def test_the_tokenizer_is_fitted_on_the_part_alone(folder: Path) -> None:
    files = TextFiles(folder / "text" / "a.txt")
    train, tokenizer = stream_ids(files, TokenizerSettings(), stop=0.5, cache_dir=folder / "cache")
    rest, same = stream_ids(files, tokenizer, start=0.5, cache_dir=folder / "cache")
    assert (len(train), len(rest), same.tokens[2:]) == (2, 2, ["a", "b"])
    assert everything(rest) == [tokenizer.unk_id] * 2


def test_a_second_start_reads_nothing_of_the_text(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = stream_ids(TextFiles(folder / "text"), WORDS, cache_dir=folder / "cache")
    opened: list[Path] = []
    really_open = Path.open

    def watch(self: Path, *args, **kwargs):
        opened.append(self)
        return really_open(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", watch)
    again, _ = stream_ids(TextFiles(folder / "text"), WORDS, cache_dir=folder / "cache")
    assert everything(again) == everything(first)
    assert opened and not [path for path in opened if path.suffix == ".txt"]
    opened.clear()
    lines, _, _ = line_stream_ids(RecordFiles(folder / "text"), WORDS, part=HELD, cache_dir=folder / "cache")
    assert [path for path in opened if path.suffix == ".txt"]
    opened.clear()
    same, _, _ = line_stream_ids(RecordFiles(folder / "text"), WORDS, part=HELD, cache_dir=folder / "cache")
    assert (everything(same), len(same.documents)) == (everything(lines), 1)
    assert opened and not [path for path in opened if path.suffix == ".txt"]


def test_who_brings_the_tokenizer_finds_its_ids(folder: Path) -> None:
    files = TextFiles(folder / "text")
    settings = TokenizerSettings(kind="unigram", size=300)
    first, tokenizer = stream_ids(files, settings, cache_dir=folder / "cache")
    again, same = stream_ids(files, tokenizer, cache_dir=folder / "cache")
    assert (everything(again), same) == (everything(first), tokenizer)
    line_stream_ids(RecordFiles(folder / "text"), settings, cache_dir=folder / "cache")
    _, tokenizer, _ = line_stream_ids(RecordFiles(folder / "text"), settings, cache_dir=folder / "cache")
    line_stream_ids(RecordFiles(folder / "text"), tokenizer, cache_dir=folder / "cache")
    assert len(list((folder / "cache" / "ids").iterdir())) == 2


def test_a_damaged_tokenizer_is_fitted_again(folder: Path) -> None:
    first, _ = stream_ids(TextFiles(folder / "text"), WORDS, cache_dir=folder / "cache")
    (place,) = (folder / "cache" / "tokenizers").iterdir()
    place.write_text(place.read_text()[:-9])
    again, _ = stream_ids(TextFiles(folder / "text"), WORDS, cache_dir=folder / "cache")
    assert everything(again) == everything(first)
    assert json.loads(place.read_text())["settings"]["kind"] == "words"


@pytest.mark.parametrize("kind", ["characters", "bytes", "words", "bpe"])
def test_characters_are_known_whatever_the_tokens(folder: Path, kind: str) -> None:
    settings = TokenizerSettings(kind=kind, size=300)
    files = TextFiles(folder / "text")
    for _ in range(2):  # made, then found
        ids, tokenizer = stream_ids(files, settings, cache_dir=folder / "cache")
        assert ids.characters == 6
    assert stream_ids(files, tokenizer, start=0.5, cache_dir=folder / "cache")[0].characters == 3
    assert ids.view(0, 2).characters is None
    lines, _, _ = line_stream_ids(RecordFiles(folder / "text"), tokenizer, cache_dir=folder / "cache")
    assert lines.characters == len("ab\nc\na\n")
    assert line_ids([Record("né"), Record("")], tokenizer)[0].characters == 4


def test_blanks_are_no_tokens(tmp_path: Path) -> None:
    (tmp_path / "blank.txt").write_text("  \t  ")
    (tmp_path / "end.txt").write_text("some words" + " " * 10)
    with pytest.raises(UserError, match=r"blank\.txt holds no tokens"):
        stream_ids(TextFiles(tmp_path / "blank.txt"), WORDS, cache_dir=tmp_path / "cache")
    text = TextFiles(tmp_path / "end.txt")
    _, tokenizer = stream_ids(text, WORDS, stop=0.9, cache_dir=tmp_path / "cache")
    with pytest.raises(UserError, match=r"the part from 0\.9 to 1 of .*end\.txt holds no tokens"):
        stream_ids(text, tokenizer, start=0.9, cache_dir=tmp_path / "cache")


def test_a_changed_file_is_read_again(folder: Path) -> None:
    stream_ids(TextFiles(folder / "text"), WORDS, cache_dir=folder / "cache")
    (folder / "text" / "b.txt").write_text("new\n")
    _, tokenizer = stream_ids(TextFiles(folder / "text"), WORDS, cache_dir=folder / "cache")
    assert "new" in tokenizer.tokens


def test_the_same_text_elsewhere_is_not_encoded_again(folder: Path) -> None:
    stream_ids(TextFiles(folder / "text"), WORDS, cache_dir=folder / "cache")
    shutil.copytree(folder / "text", folder / "copy")
    stream_ids(TextFiles(folder / "copy"), WORDS, cache_dir=folder / "cache")
    assert len(list((folder / "cache" / "ids").iterdir())) == 1


@pytest.mark.parametrize("name", ["ids.bin", "documents.bin", "facts.json"])
@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_a_damaged_cache_is_made_again(folder: Path, name: str, damage: str) -> None:
    first, _ = stream_ids(TextFiles(folder / "text"), WORDS, cache_dir=folder / "cache")
    expected = everything(first)
    (made,) = (folder / "cache" / "ids").iterdir()
    if damage == "cut":
        content = (made / name).read_bytes()
        (made / name).unlink()
        (made / name).write_bytes(content[:-2])
    else:
        (made / name).unlink()
    again, _ = stream_ids(TextFiles(folder / "text"), WORDS, cache_dir=folder / "cache")
    assert everything(again) == expected
    assert [path.name for path in (folder / "cache" / "ids").iterdir()] == [made.name]


def test_a_failure_leaves_nothing_behind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = fit_tokenizer(WORDS, ["a"])

    def fail(text: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tokenizer, "encode", fail)
    with pytest.raises(KeyboardInterrupt):
        stream_ids(TextFiles(folder / "text"), tokenizer, cache_dir=folder / "cache")
    assert list((folder / "cache" / "ids").iterdir()) == []


def _encode_in_a_process(folder: Path) -> list[int]:
    ids, _ = stream_ids(TextFiles(folder / "text"), WORDS, cache_dir=folder / "cache")
    return everything(ids)


def test_two_processes_at_once(folder: Path) -> None:
    (folder / "text" / "c.txt").write_text("some words here\n" * 20_000)
    with ProcessPoolExecutor(2) as pool:
        first, second = pool.map(_encode_in_a_process, [folder, folder])
    assert first == second
    assert len(list((folder / "cache" / "ids").iterdir())) == 1


def test_memory_does_not_grow_with_the_text(tmp_path: Path) -> None:
    place = tmp_path / "big.txt"
    line = "the quick brown fox jumps over the lazy dög\n"
    with place.open("w", encoding="utf-8") as out:
        for _ in range(40):
            out.write(line * 20_000)
    tracemalloc.start()
    ids, tokenizer = stream_ids(TextFiles(place), TokenizerSettings(), cache_dir=tmp_path / "cache")
    for start in range(0, len(ids), 1 << 20):
        ids.read(start, min(start + (1 << 20), len(ids)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(ids) == 40 * 20_000 * len(line)
    assert ids.dtype == np.uint8
    # 35 million characters: as ids they are 35 MB, as the int64 they are read as 280 MB.
    assert peak < 40e6
    assert tokenizer.decode(ids.read(len(ids) - len(line), len(ids))) == line


def test_pages_are_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "DROP_AFTER", 1000)
    monkeypatch.setattr(stream, "AROUND", 100)  # every short read costs more than itself
    advice: list[str] = []
    monkeypatch.setattr(stream.MappedIds, "_advise", lambda self, what: advice.append(what))
    (tmp_path / "a.txt").write_text("abcdefghij" * 500)
    ids, _ = stream_ids(TextFiles(tmp_path / "a.txt"), TokenizerSettings(), cache_dir=tmp_path / "cache")
    for start in range(0, 5000, 100):
        ids.read(start, start + 100)
    assert advice.count("MADV_RANDOM") >= 1
    assert advice.count("MADV_DONTNEED") == 10


def test_a_view_is_a_stream_of_its_own() -> None:
    ids = IdStream(np.arange(10, dtype=np.uint8), documents=[0, 3, 7], labels=[5, 6, 7])
    view = ids.view(4, 9)
    assert (len(view), everything(view)) == (5, [4, 5, 6, 7, 8])
    assert (view.documents.tolist(), view.labels.tolist()) == ([0, 3], [6, 7])
    assert everything(view.view(1, 3)) == [5, 6]
    assert view.read(0, 2).dtype == np.int64
    for wrong in ((0, 6), (-1, 2), (3, 2)):
        with pytest.raises(IndexError):
            view.read(*wrong)
        with pytest.raises(IndexError):
            view.view(*wrong)


def test_lines_are_documents_with_labels() -> None:
    records = [Record("ab", "x"), Record("", "y"), Record("a", "x")]
    ids, tokenizer, labels = line_ids(records, TokenizerSettings())
    assert ids.documents.tolist() == [0, 3, 4]
    assert (ids.labels.tolist(), labels) == ([0, 1, 0], ["x", "y"])
    assert tokenizer.counts[tokenizer.eos_id] == 3
    assert tokenizer.decode(ids.read(4, 6)) == "a"
    plain, same, none = line_ids([Record("a")], tokenizer)
    assert (plain.labels, none, same) == (None, None, tokenizer)


def test_labels_that_are_missing_or_unknown_are_placed() -> None:
    with pytest.raises(UserError, match=r"t\.csv:2 has no label"):
        line_ids([Record("a", "x", "t.csv:1"), Record("b", None, "t.csv:2")], WORDS)
    with pytest.raises(UserError, match=r"t\.csv:1 has the unknown label 'Czec': did you mean 'Czech'"):
        line_ids([Record("a", "Czec", "t.csv:1")], WORDS, labels=["Czech", "Dutch"])
    with pytest.raises(UserError, match="no records"):
        line_ids([], WORDS)


@pytest.mark.parametrize("kind", ["characters", "bytes", "words", "bpe"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_lines_on_disk_are_those_in_memory(tmp_path: Path, kind: str, lowercase: bool) -> None:
    rows = [f"ΟΔΟΣ {'a' * (i % 7)} \N{GRINNING FACE}, l{i % 3}" for i in range(3000)]
    (tmp_path / "a.csv").write_text("\n".join(rows), encoding="utf-8")
    settings = TokenizerSettings(kind=kind, size=300, lowercase=lowercase)
    expected, tokenizer, labels = line_ids(read_records(tmp_path / "a.csv", 1, 2), settings)
    files = RecordFiles(tmp_path / "a.csv", 1, 2)
    found, same, names = line_stream_ids(files, settings, cache_dir=tmp_path / "cache")
    assert (same.fingerprint(), names) == (tokenizer.fingerprint(), labels)
    assert everything(found) == everything(expected)
    assert found.documents.tolist() == expected.documents.tolist()
    assert found.document_ends.tolist() == [*expected.documents[1:].tolist(), len(found)]
    assert found.labels.tolist() == expected.labels.tolist()
    assert found.characters == expected.characters


def test_parts_of_lines_are_drawn_and_share_the_labels(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("".join(f"{i:03d}\tl{i}\n" for i in range(100)))
    files = RecordFiles(tmp_path / "a.tsv", 1, 2)
    parts = [Part(30, 7, inside) for inside in (False, True)]
    kept, tokenizer, labels = line_stream_ids(files, TokenizerSettings(), part=parts[0], cache_dir=tmp_path / "cache")
    held, _, _ = line_stream_ids(files, tokenizer, labels, part=parts[1], cache_dir=tmp_path / "cache")
    assert (len(kept.documents), len(held.documents), len(labels)) == (70, 30, 100)
    assert sorted([*kept.labels.tolist(), *held.labels.tolist()]) == list(range(100))
    assert held.labels.tolist() != list(range(70, 100))
    assert tokenizer.counts[tokenizer.eos_id] == 70
    other = line_stream_ids(files, tokenizer, labels, part=Part(30, 8, True), cache_dir=tmp_path / "cache")[0]
    assert other.labels.tolist() != held.labels.tolist()


@pytest.mark.parametrize("name", ["ids.bin", "documents.bin", "labels.bin", "facts.json"])
def test_a_damaged_cache_of_lines_is_made_again(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.csv").write_text("ab,x\nc,y\n")
    files = RecordFiles(tmp_path / "a.csv", 1, 2)
    first, _, _ = line_stream_ids(files, WORDS, cache_dir=tmp_path / "cache")
    expected = (everything(first), first.labels.tolist())
    (made,) = (tmp_path / "cache" / "ids").iterdir()
    content = (made / name).read_bytes()
    (made / name).unlink()
    (made / name).write_bytes(content[:-1])
    again, _, _ = line_stream_ids(files, WORDS, cache_dir=tmp_path / "cache")
    assert (everything(again), again.labels.tolist()) == expected


def test_a_table_and_plain_lines_of_the_same_bytes_differ(tmp_path: Path) -> None:
    for name in ("a.csv", "a.txt"):
        (tmp_path / name).write_text("ab,x\nc,y\n")
    found = [
        line_stream_ids(RecordFiles(tmp_path / name), WORDS, cache_dir=tmp_path / "cache")
        for name in ("a.csv", "a.txt")
    ]
    assert [tokenizer.tokens[2:] for _, tokenizer, _ in found] == [["ab", "c"], ["ab,x", "c,y"]]


def test_memory_does_not_grow_with_the_lines(tmp_path: Path) -> None:
    place = tmp_path / "big.txt"
    place.write_text("some short line\n" * 200_000)
    tracemalloc.start()
    ids, _, _ = line_stream_ids(RecordFiles(place), TokenizerSettings(), cache_dir=tmp_path / "cache")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (len(ids), len(ids.documents)) == (200_000 * 16, 200_000)
    # The records themselves would be 50 MB; the places of the documents are 0.8 MB.
    assert peak < 20e6


@pytest.mark.data
def test_published_counts_of_wikitext2(data_dir: Path) -> None:
    train, tokenizer = stream_ids(TextFiles(data_dir / "wikitext2" / "train.txt"), WORDS)
    assert (len(train), tokenizer.size) == (2_088_628, 33_278)
    assert tokenizer.counts.sum() == 2_088_628
    for name, tokens in (("valid.txt", 217_646), ("test.txt", 245_569)):
        ids, _ = stream_ids(TextFiles(data_dir / "wikitext2" / name), tokenizer)
        assert len(ids) == tokens


@pytest.mark.data
def test_names_as_lines(data_dir: Path) -> None:
    records = read_records(data_dir / "names" / "names_train.csv")
    ids, tokenizer, labels = line_ids(records, TokenizerSettings())
    assert (len(records), len(labels)) == (13_374, 18)
    assert (records[0].text, records[0].label) == ("Adsit", "Czech")
    assert tokenizer.decode(ids.read(0, 6)) == "Adsit"
