"""Surnames by language, from the lists that Faker comes with (`surnames.toml`): nothing is downloaded.

Latin script: most languages as they are written, with their accents; Chinese and Japanese in Faker's romanised lists,
Indian names as they are written in English. In their own script: Arabic, Armenian, Bulgarian, Georgian, Greek, Hebrew,
Persian, Russian, Thai, Ukrainian. A name may be at home in several languages, and then has a row in each.
"""

import random
import tomllib
from importlib import import_module
from pathlib import Path

from elman.errors import UserError
from elman.records.labelled import LabelledText
from elman.records.places import Place
from elman.records.splits import draw

LISTS: dict[str, list[str]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
TEST_SHARE = 0.25


def surname_lists() -> dict[str, list[str]]:
    """The surnames of each language, sorted, each once.

    >>> lists = surname_lists()
    >>> len(lists) >= 18, "Smith" in lists["English"], "Иванов" in lists["Russian"]
    (True, True, True)
    """
    return {language: _names(sources) for language, sources in LISTS.items()}


def surnames(seed: int = 0) -> dict[str, list[LabelledText]]:
    """Names with their language for "train" and "test", in an order as random as the seed.

    A name goes to one side with all its languages, so no test name stands in training.
    """
    parts: dict[str, list[LabelledText]] = {"train": [], "test": []}
    for language, names in surname_lists().items():
        for number, name in enumerate(names, 1):
            side = "test" if draw(name, seed) < TEST_SHARE else "train"
            parts[side].append(LabelledText(name, (language,), Place(f"Faker's {language} surnames", number)))
    generator = random.Random(seed)
    for records in parts.values():
        generator.shuffle(records)
    return parts


def _names(sources: list[str]) -> list[str]:
    unique: set[str] = set()
    for source in sources:
        locale, _, attribute = source.partition(".")
        try:
            names = getattr(import_module(f"faker.providers.person.{locale}").Provider, attribute)
        except (ImportError, AttributeError) as error:
            raise UserError(
                "the surnames are made with Faker, which is missing or old: pip install -U elman[demo]"
            ) from error
        unique.update(" ".join(name.split()) for name in names)
    # One of the Chinese lists is in capitals, which would give it away.
    return sorted({name.title() if name.isupper() else name for name in unique})
