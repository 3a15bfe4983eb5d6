"""Surnames by language, from the lists that Faker comes with: nothing is downloaded.

Latin script: most languages as they are written, with their accents; Chinese and Japanese in Faker's romanised lists,
Indian names as they are written in English. In their own script: Arabic, Armenian, Bulgarian, Georgian, Greek, Hebrew,
Persian, Russian, Thai, Ukrainian. A name may be at home in several languages, and then has a row in each.
"""

import random
from importlib import import_module

from elman.errors import UserError
from elman.records.labelled import LabelledText
from elman.records.places import Place
from elman.records.splits import draw

LISTS = {  # for each language, Faker's locales and the list in each
    "Arabic": ("ar_AA.last_names", "ar_DZ.last_names"),
    "Armenian": ("hy_AM.last_names",),
    "Bulgarian": ("bg_BG.last_names",),
    "Chinese": ("zh_CN.last_romanized_names", "zh_TW.last_romanized_names"),
    "Croatian": ("hr_HR.last_names",),
    "Czech": ("cs_CZ.last_names",),
    "Dutch": ("nl_NL.last_names", "nl_BE.last_names"),
    "English": ("en_GB.last_names", "en_NZ.last_names"),
    "Estonian": ("et_EE.last_names_est",),
    "Finnish": ("fi_FI.last_names",),
    "French": ("fr_FR.last_names", "fr_CA.last_names"),
    "Georgian": ("ka_GE.last_names",),
    "German": ("de_DE.last_names", "de_AT.last_names"),
    "Greek": ("el_GR.last_names",),
    "Hebrew": ("he_IL.last_names",),
    "Hungarian": ("hu_HU.last_names",),
    "Indian": ("en_IN.last_names",),
    "Indonesian": ("id_ID.last_names",),
    "Irish": ("ga_IE.last_names",),
    "Italian": ("it_IT.last_names",),
    "Japanese": ("ja_JP.last_romanized_names",),
    "Latvian": ("lv_LV.last_names",),
    "Norwegian": ("no_NO.last_names",),
    "Persian": ("fa_IR.last_names",),
    "Polish": ("pl_PL.unisex_last_names", "pl_PL.male_last_names"),
    "Portuguese": ("pt_PT.last_names", "pt_BR.last_names"),
    "Russian": ("ru_RU.last_names",),
    "Slovak": ("sk_SK.last_names",),
    "Slovene": ("sl_SI.last_names",),
    "Spanish": ("es_ES.last_names", "es_MX.last_names"),
    "Swedish": ("sv_SE.last_names",),
    "Thai": ("th_TH.last_names",),
    "Turkish": ("tr_TR.last_names",),
    "Ukrainian": ("uk_UA.last_names",),
    "Uzbek": ("uz_UZ.last_names",),
    "Yoruba": ("yo_NG.last_names",),
}
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

    >>> parts = surnames()
    >>> sorted(parts), len(parts["test"]) < len(parts["train"])
    (['test', 'train'], True)
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


def _names(sources: tuple[str, ...]) -> list[str]:
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
