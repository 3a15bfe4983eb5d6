"""Personal data in made-up sentences, every entity tagged exactly: templates (`entities.toml`), filled with Faker.

Train, dev and test have different templates and different seeds, so that the score on test says how a tagger does on
sentences it has not met. Some sentences are in lower case or capitals, some hold no entity, many hold numbers and
names that are none. A token is a run of letters and digits, or one other character (`TOKEN`).
"""

import random
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elman.errors import UserError, nearest
from elman.records.places import Place
from elman.records.tagged import Sentence
from elman.text.words import TOKEN

if TYPE_CHECKING:
    from faker import Faker

SLOT = re.compile(r"\{(\w+)\}")
ENTITIES = ("PERSON", "ADDRESS", "PHONE", "EMAIL", "COMPANY", "DATE", "IBAN", "CARD")
SIZES = {"train": 1500, "dev": 150, "test": 300}  # sentences of each language
LANGUAGES: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
"""Of each language: Faker's locales, templates, things (names that are no person's), months, ways to write dates."""


@dataclass(frozen=True)
class MarkedText:
    """A raw text and its entities: where each begins and ends in it, and what it is."""

    text: str
    spans: tuple[tuple[int, int, str], ...]


def templates(language: str) -> dict[str, list[str]]:
    """The templates of a language by split.

    >>> templates("de")["test"][0]
    'Am {DATE} trat {PERSON}, die Leiterin von {COMPANY}, zurück.'
    """
    return {split: text.splitlines() for split, text in LANGUAGES[language]["templates"].items()}


def marked_texts(language: str, split: str, count: int, seed: int = 0) -> Iterator[MarkedText]:
    """So many texts of a language; the same arguments give the same texts."""
    if language not in LANGUAGES:
        raise UserError(f"there are no templates for the language {language!r}: {nearest(language, LANGUAGES)}")
    _check_split(split)
    generator = random.Random(f"{seed} {split} {language}")
    fillers = [
        _Filler(language, locale, split, f"{seed} {split} {locale}") for locale in LANGUAGES[language]["locales"]
    ]
    choices = templates(language)[split]
    for _ in range(count):
        joined = " ".join(generator.choices(choices, k=2 if generator.random() < 0.25 else 1))
        yield _fill(joined, generator.choice(fillers), generator.random())


def tagged_tokens(marked: MarkedText, where: Place | None = None) -> Sentence:
    """The tokens of a text with their BIO tags.

    >>> tagged_tokens(MarkedText("Ask Ada Lovelace.", ((4, 16, "PERSON"),))).tags
    ('O', 'B-PERSON', 'I-PERSON', 'O')
    """
    tokens, tags = [], []
    for match in TOKEN.finditer(marked.text):
        tokens.append(match.group())
        inside = [(start, label) for start, end, label in marked.spans if start <= match.start() < end]
        tags.append(f"{'B' if inside[0][0] == match.start() else 'I'}-{inside[0][1]}" if inside else "O")
    return Sentence(tuple(tokens), tuple(tags), where)


def entity_sentences(split: str, seed: int = 0) -> list[Sentence]:
    """The sentences of "train", "dev" or "test" in all languages, mixed."""
    _check_split(split)
    sentences = [
        tagged_tokens(marked, Place(f"the {language} {split} sentences made with Faker", number))
        for language in LANGUAGES
        for number, marked in enumerate(marked_texts(language, split, SIZES[split], seed), 1)
    ]
    random.Random(f"{seed} {split}").shuffle(sentences)
    return sentences


def entities() -> dict[str, list[Sentence]]:
    """The sentences of each split."""
    return {split: entity_sentences(split) for split in SIZES}


def _check_split(split: str) -> None:
    if split not in SIZES:
        raise UserError(f"there is no split {split!r}: {nearest(split, SIZES)}")


def _fill(template: str, filler: "_Filler", case: float) -> MarkedText:
    """Put values in the slots; letters change their case piece by piece, since that can change their number."""
    cased = str.lower if case < 0.12 else str.upper if case < 0.15 else str
    text, spans = "", []
    for index, piece in enumerate(SLOT.split(template)):
        value = cased(filler.value(piece) if index % 2 else piece)
        if index % 2 and piece in ENTITIES:
            spans.append((len(text), len(text) + len(value), piece))
        elif text.endswith("."):
            value = value.removeprefix(".")  # nobody writes the full stop after S.A. twice
        text += value
    return MarkedText(text, tuple(spans))


class _Filler:
    """Values for the slots of templates, in one locale."""

    def __init__(self, language: str, locale: str, split: str, seed: str) -> None:
        self.faker = _faker(locale)
        self.faker.seed_instance(seed)
        self.random = random.Random(seed)
        self.dates, self.months = LANGUAGES[language]["dates"], LANGUAGES[language]["months"].split()
        self.things = LANGUAGES[language]["things"][split]

    def value(self, slot: str) -> str:
        """Something for a slot, with single blanks and none at its ends."""
        value: str = getattr(self, f"_{slot.lower()}")()
        return " ".join(value.split())

    def _person(self) -> str:
        first, last = self.faker.first_name(), self.faker.last_name()
        forms = (f"{first} {last}", first, last, f"{first[0]}. {last}", f"{first} {self.faker.first_name()} {last}")
        return self.random.choices(forms, weights=(6, 1, 1, 1, 1))[0]

    def _address(self) -> str:
        makers = (self.faker.address, self.faker.address, self.faker.street_address)
        return ", ".join(line.strip() for line in str(self.random.choice(makers)()).split("\n"))

    def _phone(self) -> str:
        return str(self.faker.phone_number())

    def _email(self) -> str:
        makers = (self.faker.ascii_free_email, self.faker.ascii_company_email, self.faker.ascii_safe_email)
        return str(self.random.choice(makers)())

    def _company(self) -> str:
        while " " not in (name := str(self.faker.company())):
            continue  # a bare surname cannot be told from a person
        return name

    def _date(self) -> str:
        month = self.random.randint(1, 12)
        form = str(self.random.choice(self.dates))
        day, year = self.random.randint(1, 28), self.random.randint(1930, 2030)
        return form.format(d=day, m=month, y=year, month=self.months[month - 1])

    def _iban(self) -> str:
        return self._grouped(str(self.faker.iban()), " ")

    def _card(self) -> str:
        return self._grouped(str(self.faker.credit_card_number()), self.random.choice(" -"))

    def _grouped(self, digits: str, blank: str) -> str:
        groups = [digits[start : start + 4] for start in range(0, len(digits), 4)]
        return self.random.choice((digits, blank.join(groups)))

    def _number(self) -> str:
        return str(self.random.randint(2, 10 ** self.random.randint(1, 4)))

    def _amount(self) -> str:
        amount = self.random.randint(100, 10**6) / 100
        return self.random.choice((f"{amount:.2f} €", f"${amount:,.2f}", f"{amount:.0f} EUR"))

    def _code(self) -> str:
        letters = "".join(self.random.choices("ABCDEFGHKLMNPRSTXYZ", k=2))
        return f"{letters}{self.random.choice(('-', '', '/'))}{self.random.randint(1000, 999999)}"

    def _time(self) -> str:
        return f"{self.random.randint(0, 23)}:{self.random.randint(0, 59):02}"

    def _thing(self) -> str:
        return str(self.random.choice(self.things))


def _faker(locale: str) -> "Faker":
    try:
        from faker import Faker
    except ImportError as error:
        raise UserError("the sentences are made with Faker, which is not installed: pip install elman[demo]") from error
    return Faker(locale)
