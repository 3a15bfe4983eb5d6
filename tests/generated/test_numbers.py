"""Number words."""

from pathlib import Path

import pytest

from elman.corpora import export, locate
from elman.errors import UserError
from elman.generated.numbers import LANGUAGES, number_pairs, number_parts, spell
from elman.records import PairReader, read_pairs

KNOWN = """
en 0 zero
en 13 thirteen
en 40 forty
en 99 ninety-nine
en 100 one hundred
en 101 one hundred one
en 1000 one thousand
en 12015 twelve thousand fifteen
en 1000000 one million
en 999999999 nine hundred ninety-nine million nine hundred ninety-nine thousand nine hundred ninety-nine
de 0 null
de 1 eins
de 7 sieben
de 16 sechzehn
de 17 siebzehn
de 21 einundzwanzig
de 30 dreißig
de 66 sechsundsechzig
de 100 einhundert
de 101 einhunderteins
de 111 einhundertelf
de 1000 eintausend
de 1001 eintausendeins
de 21000 einundzwanzigtausend
de 101000 einhunderteintausend
de 1000000 eine Million
de 1000001 eine Million eins
de 2000100 zwei Millionen einhundert
de 777777 siebenhundertsiebenundsiebzigtausendsiebenhundertsiebenundsiebzig
fr 0 zéro
fr 16 seize
fr 17 dix-sept
fr 21 vingt et un
fr 22 vingt-deux
fr 61 soixante et un
fr 70 soixante-dix
fr 71 soixante et onze
fr 77 soixante-dix-sept
fr 80 quatre-vingts
fr 81 quatre-vingt-un
fr 91 quatre-vingt-onze
fr 99 quatre-vingt-dix-neuf
fr 100 cent
fr 180 cent quatre-vingts
fr 200 deux cents
fr 201 deux cent un
fr 1000 mille
fr 2000 deux mille
fr 80000 quatre-vingt mille
fr 200000 deux cent mille
fr 1000000 un million
fr 80000000 quatre-vingts millions
fr 200000000 deux cents millions
fr 1999 mille neuf cent quatre-vingt-dix-neuf
tr 0 sıfır
tr 11 on bir
tr 100 yüz
tr 101 yüz bir
tr 200 iki yüz
tr 1000 bin
tr 1001 bin bir
tr 2000 iki bin
tr 1000000 bir milyon
tr 1923 bin dokuz yüz yirmi üç
"""


@pytest.mark.parametrize("line", KNOWN.strip().splitlines())
def test_known_values(line: str) -> None:
    language, number, words = line.split(maxsplit=2)
    assert spell(int(number), language) == words


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_two_numbers_are_read_alike(language: str) -> None:
    numbers = [*range(2500), *range(99_000, 102_000), *range(999_900, 1_002_100), *range(10**6, 10**9, 7_654_321)]
    words = [spell(number, language) for number in numbers]
    assert len(set(words)) == len(set(numbers))
    assert all(text == " ".join(text.split()) and text for text in words)


def test_what_cannot_be_spelled_is_refused() -> None:
    with pytest.raises(UserError, match="choose 0 to 999,999,999"):
        spell(10**9, "en")
    with pytest.raises(UserError, match="no number words for the language 'ge'"):
        spell(1, "ge")


def test_the_seed_decides_and_no_number_of_test_stands_in_train() -> None:
    assert number_pairs(300, 1) == number_pairs(300, 1) != number_pairs(300, 2)
    parts = number_parts(3000)
    train, test = ({pair.source.split()[1] for pair in parts[part]} for part in ("train", "test"))
    assert not train & test
    assert {pair.source.split()[0] for pair in parts["test"]} == set(LANGUAGES)
    assert {len(number) for number in train} == {1, 2, 3, 4, 5, 6}


def test_the_corpus_is_files_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path / "cache"))
    assert read_pairs(PairReader().files(locate("numbers")["dev"])).pairs == number_parts()["dev"]
    assert [path.name for path in export("numbers", tmp_path / "out")] == ["train.tsv", "dev.tsv", "test.tsv"]
