"""Word vectors beside gensim, on a text so small that it takes a second."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from elman import kernels
from elman.bench import machine, table, vectors
from tests.tasks.embed_runs import write_text

pytestmark = pytest.mark.skipif(not kernels.available(), reason="the kernels were not built")


def corpora(folder: Path) -> Path:
    for name in ("wikitext2/train.txt", "brown/brown.txt", "movie-reviews/pos/a.txt"):
        (folder / name).parent.mkdir(parents=True)
        write_text(folder / name, 60)
    (folder / "word-eval").mkdir()
    (folder / "word-eval" / "questions-words.txt").write_text(": a\ncat dog axe saw\n")
    for name in ("wordsim353_combined.csv", "SimLex-999.txt"):
        (folder / "word-eval" / name).write_text("cat,dog,9\ncat,axe,1\nrice,soup,8\n")
    return folder


def test_both_learn_the_same_text_and_are_scored_alike(tmp_path: Path) -> None:
    report = vectors.run(quick=True, threads=1, data_dir=corpora(tmp_path))
    assert report.words == 3 * 60 * 6
    assert report.vocabulary == 12
    peers = {"Elman"} if machine.installed("gensim") is None else {"Elman", "gensim"}
    assert {run.who for run in report.runs} == peers
    assert all(
        run.words_per_second > 0 and set(run.scores) == {"analogies", "wordsim", "simlex"} for run in report.runs
    )
    record = report.record()
    assert (record["ratio"] is None) == (len(peers) == 1)
    text = io.StringIO()
    table.show_vectors(report, Console(file=text, width=160))
    assert "Word vectors: 1,080 words" in text.getvalue() and "words/s of a core" in text.getvalue()


def test_without_public_texts_it_takes_what_every_python_has() -> None:
    files, tests = vectors._texts(None) if not machine.os.environ.get("ELMAN_DATA") else ([Path("a.py")], [])
    assert files[0].suffix == ".py" and not tests
