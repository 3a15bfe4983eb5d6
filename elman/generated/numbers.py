"""Numbers and how they are read out, in four languages: `de 21` becomes `einundzwanzig`. Nothing is downloaded.

English without "and" (one hundred one), German in one word below a million, French with its twenties and with hyphens
below a hundred, Turkish in words of their own. A function a language, from 0 to 999,999,999.
"""

import random
from collections.abc import Callable

from elman.errors import UserError, nearest
from elman.records.pairs import Pair
from elman.records.places import Place
from elman.records.splits import split_by_key

LIMIT = 1_000_000_000
DIGITS = 6  # of the numbers in the built-in set
SIZE = 20_000
MOST = 1_000_000
SHARES = {"dev": 0.05, "test": 0.1}

ENGLISH_WORDS = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
"""
ENGLISH = ENGLISH_WORDS.split()
ENGLISH_TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
GERMAN_WORDS = """
    null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn
    achtzehn neunzehn
"""
GERMAN = GERMAN_WORDS.split()
GERMAN_TENS = ["", "", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"]
FRENCH_WORDS = """
    zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit
    dix-neuf
"""
FRENCH = FRENCH_WORDS.split()
FRENCH_TENS = ["", "", "vingt", "trente", "quarante", "cinquante", "soixante", "soixante", "quatre-vingt"]
TURKISH = ["sıfır", "bir", "iki", "üç", "dört", "beş", "altı", "yedi", "sekiz", "dokuz"]
TURKISH_TENS = ["", "on", "yirmi", "otuz", "kırk", "elli", "altmış", "yetmiş", "seksen", "doksan"]


def english(number: int) -> str:
    """The number in English.

    >>> english(1234)
    'one thousand two hundred thirty-four'
    """
    millions, thousands, rest = _groups(number)
    words = [f"{_english_hundreds(millions)} million"] if millions else []
    words += [f"{_english_hundreds(thousands)} thousand"] if thousands else []
    words += [_english_hundreds(rest)] if rest or not words else []
    return " ".join(words)


def _english_hundreds(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    tens, units = divmod(rest, 10)
    if rest < 20:
        small = ENGLISH[rest]
    else:
        small = f"{ENGLISH_TENS[tens]}-{ENGLISH[units]}" if units else ENGLISH_TENS[tens]
    if not hundreds:
        return small
    return f"{ENGLISH[hundreds]} hundred {small}" if rest else f"{ENGLISH[hundreds]} hundred"


def german(number: int) -> str:
    """The number in German.

    >>> german(1234), german(1_000_001)
    ('eintausendzweihundertvierunddreißig', 'eine Million eins')
    """
    millions, thousands, rest = _groups(number)
    words = []
    if millions:  # a noun: one of it is "eine"
        count = _german_hundreds(millions)
        ending = "e" if millions % 100 == 1 else ""
        words.append(f"{count}{ending} Million{'en' * (millions > 1)}")
    below = f"{_german_hundreds(thousands)}tausend" if thousands else ""
    below += _german_hundreds(rest) if rest or not number else ""
    if below:
        words.append(below + "s" * (rest % 100 == 1))  # "eins" where nothing follows
    return " ".join(words)


def _german_hundreds(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    tens, units = divmod(rest, 10)
    if rest < 20:
        small = GERMAN[rest] if rest or not hundreds else ""
    else:
        small = f"{GERMAN[units]}und{GERMAN_TENS[tens]}" if units else GERMAN_TENS[tens]
    return f"{GERMAN[hundreds]}hundert{small}" if hundreds else small


def french(number: int) -> str:
    """The number in French.

    >>> french(1234), french(80), french(80_000)
    ('mille deux cent trente-quatre', 'quatre-vingts', 'quatre-vingt mille')
    """
    millions, thousands, rest = _groups(number)
    words = []
    if millions:  # a noun: what counts it keeps its plural, as at the end
        words.append(f"{_french_hundreds(millions, last=True)} million{'s' * (millions > 1)}")
    if thousands:
        words.append("mille" if thousands == 1 else f"{_french_hundreds(thousands, last=False)} mille")
    if rest or not number:
        words.append(_french_hundreds(rest, last=True))
    return " ".join(words)


def _french_hundreds(number: int, last: bool) -> str:
    """`last`: whether "cents" and "vingts" may have their plural, which only the last word of a number has."""
    hundreds, rest = divmod(number, 100)
    if not hundreds:
        return _french_tens(rest, last)
    words = [FRENCH[hundreds]] if hundreds > 1 else []
    words.append("cents" if hundreds > 1 and not rest and last else "cent")
    return " ".join([*words, _french_tens(rest, last)] if rest else words)


def _french_tens(number: int, last: bool) -> str:
    if number < 20:
        return FRENCH[number]
    tens = min(number // 10, 8)
    rest = number - 10 * tens  # up to 19 after eighty
    if tens == 7:
        rest += 10  # seventy is sixty and ten
    if not rest:
        return FRENCH_TENS[tens] + "s" * (tens == 8 and last)
    joint = " et " if rest in (1, 11) and tens < 8 else "-"
    return f"{FRENCH_TENS[tens]}{joint}{FRENCH[rest]}"


def turkish(number: int) -> str:
    """The number in Turkish.

    >>> turkish(1234)
    'bin iki yüz otuz dört'
    """
    millions, thousands, rest = _groups(number)
    words = [*_turkish_hundreds(millions), "milyon"] if millions else []
    words += [*(_turkish_hundreds(thousands) if thousands > 1 else []), "bin"] if thousands else []
    words += _turkish_hundreds(rest)
    return " ".join(words or TURKISH[:1])


def _turkish_hundreds(number: int) -> list[str]:
    hundreds, rest = divmod(number, 100)
    tens, units = divmod(rest, 10)
    words = [TURKISH[hundreds]] if hundreds > 1 else []
    words += ["yüz"] if hundreds else []
    words += [TURKISH_TENS[tens]] if tens else []
    return words + ([TURKISH[units]] if units else [])


LANGUAGES: dict[str, Callable[[int], str]] = {"de": german, "en": english, "fr": french, "tr": turkish}


def spell(number: int, language: str) -> str:
    """How a number from 0 to 999,999,999 is read out in a language.

    >>> spell(71, "fr")
    'soixante et onze'
    """
    if language not in LANGUAGES:
        raise UserError(f"there are no number words for the language {language!r}: {nearest(language, LANGUAGES)}")
    if not 0 <= number < LIMIT:
        raise UserError(f"{number} cannot be spelled: choose 0 to {LIMIT - 1:,}")
    return LANGUAGES[language](number)


def number_pairs(count: int = SIZE, seed: int = 0) -> list[Pair]:
    """So many different pairs, `language number` and its words; as many numbers of one digit as of six are tried.

    >>> number_pairs(1)[0].source, number_pairs(1)[0].target
    ('tr 112141', 'yüz on iki bin yüz kırk bir')
    """
    if not 0 <= count <= MOST:
        raise UserError(f"{count} number pairs cannot be made: choose up to {MOST:,}")
    generator = random.Random(f"numbers {seed}")
    numbers: dict[tuple[str, int], None] = {}
    while len(numbers) < count:
        digits = generator.randint(1, DIGITS)
        number = generator.randrange(10 ** (digits - 1) if digits > 1 else 0, 10**digits)
        numbers[generator.choice(list(LANGUAGES)), number] = None
    return [
        Pair(f"{language} {number}", spell(number, language), Place("the numbers", place))
        for place, (language, number) in enumerate(numbers, 1)
    ]


def number_parts(count: int = SIZE, seed: int = 0) -> dict[str, list[Pair]]:
    """The pairs as "train", "dev" and "test"; no number of a held-out part stands in training, in any language."""
    pairs = number_pairs(count, seed)
    rows = split_by_key([pair.source.partition(" ")[2] for pair in pairs], SHARES, seed=seed)
    return {part: [pairs[row] for row in members] for part, members in rows.items()}


def _groups(number: int) -> tuple[int, int, int]:
    """Millions, thousands, and the rest."""
    return number // 1_000_000, number // 1000 % 1000, number % 1000
