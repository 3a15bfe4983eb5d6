"""Pairs of lines, from every format."""

import gzip
from itertools import islice
from pathlib import Path

import pytest

from elman.corpora import locate
from elman.errors import UserError
from elman.records import BadLines, Files, Pair, PairReader, Place, read_pairs, references, write_pairs

GERMAN, ENGLISH = ["Ein Hund.", "Zwei Katzen.", "Drei Vögel."], ["A dog.", "Two cats.", "Three birds."]
BOTH = list(zip(GERMAN, ENGLISH, strict=True))


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def sides(files: Files[Pair], bad: BadLines | None = None) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in (files.records(bad) if bad else files.records())]


@pytest.fixture
def parallel(tmp_path: Path) -> list[Path]:
    return [written(tmp_path / "train.de", *GERMAN), written(tmp_path / "train.en", *ENGLISH)]


def test_line_i_belongs_to_line_i(parallel: list[Path]) -> None:
    files = PairReader().files(parallel)
    assert (files.format, files.guess) == ("parallel", "")
    assert sides(files) == BOTH
    assert next(files.records()).where == Place(parallel[0], 1)


@pytest.mark.parametrize(
    "chosen", [{"source": "en"}, {"target": "de"}, {"source": 2}, {"source": "en", "target": "de"}]
)
def test_the_direction_is_chosen_by_how_files_end(parallel: list[Path], chosen: dict) -> None:
    assert sides(PairReader(**chosen).files(parallel)) == [(english, german) for german, english in BOTH]


def test_several_twos_of_files_follow_one_another(parallel: list[Path], tmp_path: Path) -> None:
    more = [written(tmp_path / "more.de", "Ja."), written(tmp_path / "more.en", "Yes.")]
    assert sides(PairReader().files([*parallel, *more])) == [*BOTH, ("Ja.", "Yes.")]
    with pytest.raises(UserError, match=r"more\.de has no file beside it"):
        PairReader().files([*parallel, more[0]])


@pytest.mark.parametrize("longer", [0, 1])
def test_different_lengths_are_refused_with_the_longer_and_by_how_much(parallel: list[Path], longer: int) -> None:
    with parallel[longer].open("a", encoding="utf-8") as out:
        out.write("x\ny\n")
    with pytest.raises(UserError, match=rf"{parallel[longer].name} is longer than .* by 2 lines \(5 and 3\)"):
        list(PairReader().files(parallel).records())
    with pytest.raises(UserError, match=rf"{parallel[longer].name} is longer"):
        list(PairReader(source="en").files(parallel).records())


def test_a_file_that_is_neither_side_is_named(parallel: list[Path]) -> None:
    with pytest.raises(UserError, match=r"is the side 'fr' that .*: give -s data\.source=de -s data\.target=en"):
        PairReader(source="fr").files(parallel)
    with pytest.raises(UserError, match="source and target are both"):
        PairReader(source="de", target=1).files(parallel)


def test_tabs_show_pairs_whatever_the_name_and_quotes_are_characters(tmp_path: Path) -> None:
    path = written(tmp_path / "fra.txt", '"Look," she said.\t« Regarde. »', 'No."\tNon."')
    files = PairReader().files(path)
    assert files.format == "tsv"
    assert sides(files)[0] == ('"Look," she said.', "« Regarde. »")
    assert files.guess == "fra.txt: the source is column 1, the target is column 2 (guessed)"
    assert sides(PairReader(source=2, target=1).files(path))[1] == ('Non."', 'No."')


def test_more_columns_are_allowed_and_chosen_by_number_or_name(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", "Go.\tVa !\tCC-BY 7", "Run!\tCours !\tCC-BY 8")
    assert sides(PairReader().files(path)) == [("Go.", "Va !"), ("Run!", "Cours !")]
    named = written(tmp_path / "b.tsv", "id\tsrc\ttgt", "1\tGo.\tVa !")
    assert sides(PairReader().files(named)) == [("Go.", "Va !")]
    assert sides(PairReader(source="tgt", target="src").files(named)) == [("Va !", "Go.")]
    with pytest.raises(UserError, match=r"b\.tsv:1 has no column called 'trg': did you mean 'tgt'"):
        PairReader(source="src", target="trg").files(named)
    with pytest.raises(UserError, match="the same column"):
        PairReader(source="src", target="src").files(named)


def test_a_header_of_languages_is_no_pair(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", "en\tde", "Go.\tGeh.")
    files = PairReader(source="de").files(path)
    assert sides(files) == [("Geh.", "Go.")]
    assert sides(PairReader().files(path)) == [("Go.", "Geh.")]
    assert sides(PairReader().files(written(tmp_path / "words.tsv", "word\tWort", "dog\tHund")))[0] == ("word", "Wort")


def test_csv_has_quotes(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "source,target", '"Go, go.","Va, va !"')
    assert sides(PairReader().files(path)) == [("Go, go.", "Va, va !")]


def test_json_fields_are_guessed_and_said(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", '{"id": 1, "en": "Go.", "fr": "Va !"}')
    files = PairReader().files(path)
    assert sides(files) == [("Go.", "Va !")]
    assert files.guess == "a.jsonl: the source is field 'en', the target is field 'fr' (guessed)"
    assert sides(PairReader(source="fr", target="en").files(path)) == [("Va !", "Go.")]
    unclear = written(tmp_path / "b.jsonl", '{"a": "x", "b": "y", "c": "z"}')
    with pytest.raises(UserError, match=r"b\.jsonl:1 has the fields a, b, c: say which"):
        PairReader().files(unclear)


def test_a_bad_line_is_named_or_skipped_and_counted(tmp_path: Path) -> None:
    table = written(tmp_path / "a.tsv", "Go.\tVa !", "Run!", "Wow!\tÇa alors !")
    with pytest.raises(UserError, match=r"a\.tsv:2 has 1 columns where the first row has 2"):
        list(PairReader().files(table).records())
    bad = BadLines("skip")
    assert [source for source, _ in sides(PairReader().files(table), bad)] == ["Go.", "Wow!"]
    assert bad.count == 1
    objects = written(tmp_path / "a.jsonl", '{"source": "a", "target": "b"}', '{"source": "c"}')
    with pytest.raises(UserError, match=r"a\.jsonl:2 has no field 'target'"):
        list(PairReader().files(objects).records())


def test_gzip_is_read_as_it_is(tmp_path: Path) -> None:
    for name, lines in (("train.de.gz", GERMAN), ("train.en.gz", ENGLISH)):
        (tmp_path / name).write_bytes(gzip.compress("\n".join(lines).encode()))
    assert (
        sides(PairReader(source="en").files([tmp_path / "train.de.gz", tmp_path / "train.en.gz"]))[0] == BOTH[0][::-1]
    )


def test_what_is_left_out_is_counted_and_said(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", "Go.\tVa !", "Go.\tVa !", "Run!\t ", "\tRien", "Go.\tPars !")
    kept = read_pairs(PairReader().files(path))
    assert (len(kept.pairs), kept.empty, kept.duplicates) == (3, 2, 1)
    dropped = read_pairs(PairReader().files(path), drop_duplicates=True)
    assert dropped.pairs == [Pair("Go.", "Va !"), Pair("Go.", "Pars !")]
    assert dropped.said == [
        "a.tsv: 2 pairs with an empty side are left out",
        "a.tsv: 1 pair repeats an earlier one, and is left out",
    ]
    with pytest.raises(UserError, match="holds no pairs"):
        read_pairs(PairReader().files(written(tmp_path / "b.tsv", "Run!\t ")))


def test_files_are_read_in_a_stream(tmp_path: Path) -> None:
    """The first pairs come before the file's end, where a line is wrong, has been looked at."""
    path = tmp_path / "large.tsv"
    with path.open("w", encoding="utf-8") as out:
        out.writelines(f"{number}\tnumber {number}\n" for number in range(100_000))
        out.write("the end\n")
    first = list(islice(PairReader().files(path).records(), 2))
    assert [pair.target for pair in first] == ["number 0", "number 1"]


def test_a_pronouncing_dictionary(tmp_path: Path) -> None:
    lines = (";;; comment", "aalto AA1 L T OW2 # name, finnish", "read R EH1 D", "read(2) R IY1 D", "'s EH1 S")
    path = written(tmp_path / "cmudict.dict", *lines)
    pairs = list(PairReader().files(path).records())
    assert pairs[0] == Pair("aalto", "AA1 L T OW2")
    assert pairs[0].where == Place(path, 2)
    assert references(pairs)["read"] == ["R EH1 D", "R IY1 D"]
    assert sides(PairReader(stress=False).files(path))[0] == ("aalto", "AA L T OW")
    assert sides(PairReader(source=2, target=1).files(path))[0] == ("AA1 L T OW2", "aalto")
    with pytest.raises(UserError, match=r"b\.dict:1 has no sounds after 'mute'"):
        list(PairReader().files(written(tmp_path / "b.dict", "mute")).records())


def test_options_of_another_format_are_refused(parallel: list[Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="stress=false is for pronouncing dictionaries"):
        PairReader(stress=False).files(parallel)
    with pytest.raises(UserError, match="no format 'jsnol': did you mean 'jsonl'"):
        PairReader(format="jsnol").files(parallel)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="does not show its pairs"):
        PairReader().files(parallel[0])
    with pytest.raises(UserError, match="written in different ways"):
        PairReader().files([parallel[0], written(tmp_path / "a.tsv", "a\tb")])
    with pytest.raises(UserError, match="no such file"):
        PairReader().files(tmp_path / "none.tsv")


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    pairs = [Pair('"a" b', "é"), Pair("source", "target")]
    write_pairs(tmp_path / "out.tsv", pairs)
    assert read_pairs(PairReader().files(tmp_path / "out.tsv")).pairs == pairs
    with pytest.raises(UserError, match="has a tab or a line end"):
        write_pairs(tmp_path / "bad.tsv", [Pair("a\tb", "c")])
    assert not (tmp_path / "bad.tsv").exists()


@pytest.mark.data
@pytest.mark.parametrize(
    ("corpus", "split", "pairs", "sources"),
    [
        ("multi30k", "train", 29_000, 28_975),
        ("multi30k", "dev", 1_014, 1_014),
        ("multi30k", "test", 1_000, 1_000),
        ("tatoeba-fra-eng", "train", 142_787, 98_659),
        ("cmudict", "train", 135_166, 126_052),
    ],
)
def test_published_sizes(data_dir: Path, corpus: str, split: str, pairs: int, sources: int) -> None:
    found = read_pairs(PairReader().files(locate(corpus, data_dir)[split])).pairs
    assert (len(found), len(references(found))) == (pairs, sources)
