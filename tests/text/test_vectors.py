"""Pre-trained word vectors as their makers write them."""

from pathlib import Path

import numpy as np
import pytest

from elman.errors import UserError
from elman.text.vector_files import read_vectors
from elman.text.vectors import WordVectors


def write(folder: Path, text: str) -> Path:
    place = folder / "vectors.txt"
    place.write_bytes(text.encode())
    return place


def test_word2vec_has_a_heading_and_glove_has_none(tmp_path: Path) -> None:
    glove = read_vectors(write(tmp_path, "the 0.5 -1e-2\ncat 1 2\n"))
    word2vec = read_vectors(write(tmp_path, "2 2\nthe 0.5 -1e-2 \ncat 1 2 \n"))
    assert glove.words == word2vec.words == ["the", "cat"]
    assert glove.matrix.tolist() == word2vec.matrix.tolist()
    assert glove.matrix[1].tolist() == [1.0, 2.0]


def test_a_word_may_hold_blanks(tmp_path: Path) -> None:
    vectors = read_vectors(write(tmp_path, "the 1 2 3\n. . . 4 5 6\n"))
    assert vectors.words == ["the", ". . ."]
    assert vectors.matrix[1].tolist() == [4.0, 5.0, 6.0]


def test_only_the_first_and_the_wanted_are_read(tmp_path: Path) -> None:
    place = write(tmp_path, "a 1\nb 2\nc 3\nd broken\ne 5\n")
    assert read_vectors(place, first=2, wanted={"e"}).words == ["a", "b", "e"]


def test_of_several_spellings_the_first_counts(tmp_path: Path) -> None:
    vectors = read_vectors(write(tmp_path, "The 1\nthe 2\nCat 3\n"), lowercase=True, first=0, wanted={"the", "cat"})
    assert dict(zip(vectors.words, vectors.matrix[:, 0].tolist(), strict=True)) == {"the": 1.0, "cat": 3.0}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a 1 2\nb 1\n", r"vectors\.txt:2 is not a word with 2 numbers"),
        ("a 1 2\nb 1 x\n", r"vectors\.txt:2 is not a word with 2 numbers"),
        ("a 1 nan\n", r"vectors\.txt:1 is not a word with 2 numbers"),
        ("a\n", r"vectors\.txt:1 is not a word with some numbers"),
        ("2 2\na 1 2 3\nb 1 2 3\n", r"vectors\.txt:2 has 3 numbers behind its word, and the first line says 2"),
        ("1 2\na 1\n", r"vectors\.txt:2 has 1 numbers behind its word, and the first line says 2"),
        ("-1 2\na 1 2\n", r"vectors\.txt says that it has -1 vectors of 2 dimensions"),
        ("", "none of the words"),
    ],
)
def test_what_is_wrong_is_named_by_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        read_vectors(write(tmp_path, text))


def test_words_that_cannot_be_read_are_no_double_ones(tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes(b"the 1 2\n\xff 3 4\n\xfe 5 6\n")
    assert read_vectors(tmp_path / "latin.txt").words == ["the", "\ufffd"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no word vectors at .*none\.txt: name a file of them"):
        read_vectors(tmp_path / "none.txt")


def test_vectors_whose_squares_overflow_have_cosines() -> None:
    matrix = np.array([[1, 2], [2, 1]], np.float32)
    vectors = WordVectors(["a", "b"], matrix * np.float32(1e38))
    assert vectors.similarity("a", "b") == pytest.approx(0.8)
    assert vectors.nearest("a", 1)[0].score == pytest.approx(0.8)


def test_a_text_file_that_ends_too_soon_is_told(tmp_path: Path) -> None:
    (tmp_path / "cut.txt").write_text("3 2\nthe 0.5 1\ncat 1 2\n")
    with pytest.raises(UserError, match="ends behind 2 of 3 vectors: copy it again"):
        read_vectors(tmp_path / "cut.txt")


@pytest.mark.parametrize(
    ("heading", "behind", "sentence"),
    [
        (b"1 2\n", b"cat ", r"vectors\.bin goes on behind the 1 vectors that its first line says: copy it again"),
        (b"-1 2\n", b"", r"vectors\.bin says that it has -1 vectors of 2 dimensions: copy it again"),
        (b"1 -2\n", b"", r"vectors\.bin says that it has 1 vectors of -2 dimensions: copy it again"),
    ],
)
def test_a_binary_file_has_the_vectors_that_it_says(
    tmp_path: Path, heading: bytes, behind: bytes, sentence: str
) -> None:
    path, row = tmp_path / "vectors.bin", b"the " + np.array([0.5, 1], "<f4").tobytes()
    path.write_bytes(b"1 2\n" + row + b"\n")
    assert read_vectors(path).matrix.tolist() == [[0.5, 1]]  # as word2vec ends a vector
    path.write_bytes(heading + row + b"\n" + behind)
    with pytest.raises(UserError, match=sentence):
        read_vectors(path)


def test_text_in_another_encoding_is_not_taken_for_binary(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_bytes("3 2\nthe 1 2\ncaf\xe9 3 4\ncat 5 6\n".encode("latin-1"))
    vectors = read_vectors(path)
    assert vectors.words[::2] == ["the", "cat"] and vectors.matrix.tolist() == [[1, 2], [3, 4], [5, 6]]


@pytest.mark.filterwarnings("error")
def test_a_number_that_is_too_large_is_told_and_not_warned_of(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"vectors\.txt:1 is not a word with 2 numbers"):
        read_vectors(write(tmp_path, "a 1e39 2\n"))


def test_a_word_that_is_wanted_and_stands_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "twice.txt").write_text("2 3\ngood 1 2 3\ngood 3 2 1\n")
    with pytest.raises(UserError, match=r"twice.txt:3 has the word 'good' for the second time"):
        read_vectors(tmp_path / "twice.txt", first=0, wanted={"good"})
