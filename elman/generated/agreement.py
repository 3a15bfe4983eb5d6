"""Sentences whose verb agrees with a subject that may stand far before it: `the writer of the books is old`.

Between the two stand other nouns. One that has another number than the subject is an attractor: whoever goes by the
nearest noun chooses the wrong verb (Linzen et al. 2016). Made by rule: nothing is downloaded.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from elman.errors import UserError

NOUN_WORDS = """
    writer/writers king/kings sailor/sailors child/children teacher/teachers friend/friends horse/horses
    doctor/doctors woman/women man/men painter/painters farmer/farmers book/books door/doors city/cities ship/ships
    house/houses garden/gardens river/rivers bird/birds
"""
VERB_WORDS = "waits/wait sings/sing falls/fall stays/stay moves/move shines/shine"
LINK_WORDS = "praises/praise sees/see knows/know follows/follow helps/help"
BE_WORDS = "is/are was/were"
NOUNS, VERBS, LINKS, BE = (
    [tuple(two.split("/")) for two in words.split()] for words in (NOUN_WORDS, VERB_WORDS, LINK_WORDS, BE_WORDS)
)
"""Words by number, singular first; a link is the verb of a clause between subject and verb."""
PREPOSITIONS = ("of", "near", "behind", "with", "beside")
ADVERBS = ("here", "again", "often", "there", "today")
ADJECTIVES = ("old", "new", "good", "strange", "red", "happy")
SIZES = {"test": 500, "dev": 500, "train": 20_000}
BETWEEN = (0, 0, 0, 0, 0, 1, 1, 1, 2, 2)
"""Nouns between subject and verb in the sentences to learn from: one of these, each as likely as the others."""
EACH, MOST = 200, 4
FURTHEST = 50  # nouns between subject and verb, at most


@dataclass(frozen=True)
class AgreementPair:
    """Two sentences that differ in the number of the verb alone, the first of them right.

    Of the nouns `between` subject and verb `attractors` have another number than the subject: all of them, or none.

    >>> pair = agreement_pairs(each=1, most=1)[-1]
    >>> pair.right, pair.attractors
    ('the house that knows the doors shines there .', 1)
    >>> pair.wrong
    'the house that knows the doors shine there .'
    """

    right: str
    wrong: str
    between: int
    attractors: int


def agreement_sentence(plurals: Sequence[bool], generator: random.Random) -> tuple[str, str]:
    """A sentence and the same with the wrong verb; `plurals` says of the subject and each noun after it its number.

    >>> agreement_sentence([False, True], random.Random(3))
    ('the doctor that the teachers help was happy .', 'the doctor that the teachers help were happy .')
    """

    def noun(plural: bool) -> str:
        return f"the {generator.choice(NOUNS)[plural]}"

    words = [noun(plurals[0])]
    head = plurals[0]  # the number of the noun that a clause would belong to
    for plural in plurals[1:]:
        kind, link = generator.randrange(3), generator.choice(LINKS)
        if kind == 0:
            words.append(f"{generator.choice(PREPOSITIONS)} {noun(plural)}")
        elif kind == 1:
            words.append(f"that {link[head]} {noun(plural)}")
        else:
            words.append(f"that {noun(plural)} {link[plural]}")
        head = head if kind == 2 else plural  # behind a whole clause stands what belongs to the noun before it
    if generator.random() < 0.5:
        verb, end = generator.choice(BE), generator.choice(ADJECTIVES)
    else:
        verb, end = generator.choice(VERBS), generator.choice(ADVERBS)
    right, wrong = verb[plurals[0]], verb[not plurals[0]]
    start = " ".join(words)
    return f"{start} {right} {end} .", f"{start} {wrong} {end} ."


def agreement_pairs(each: int = EACH, most: int = MOST, seed: int = 0) -> list[AgreementPair]:
    """So many pairs for each number of nouns between subject and verb, up to `most`: all attractors, and none.

    >>> [(pair.between, pair.attractors) for pair in agreement_pairs(each=1, most=2)]
    [(0, 0), (1, 0), (1, 1), (2, 0), (2, 2)]
    """
    if each < 1 or not 0 <= most <= FURTHEST:
        raise UserError(
            f"{each} pairs with up to {most} attractors cannot be made: choose 1 or more, and 0 to {FURTHEST}"
        )
    pairs = []
    for between in range(most + 1):
        for attracting in (False, True) if between else (False,):
            generator = random.Random(f"agreement {seed} {between} {attracting}")
            for _ in range(each):
                plural = generator.random() < 0.5
                plurals = [plural, *([plural != attracting] * between)]
                pairs.append(AgreementPair(*agreement_sentence(plurals, generator), between, between * attracting))
    return pairs


def agreement(seed: int = 0) -> dict[str, list[str]]:
    """Sentences for "train", "dev" and "test", with up to two nouns between subject and verb.

    Each noun's number is a matter of chance. Sentences of the held-out parts, and those of `agreement_pairs`, stand in
    no other part; in training a short one may stand twice, as short ones do.

    >>> parts = agreement()
    >>> {part: len(sentences) for part, sentences in parts.items()}
    {'test': 500, 'dev': 500, 'train': 20000}
    >>> set(parts["train"]).isdisjoint(parts["test"])
    True
    """
    generator = random.Random(f"agreement {seed}")
    taken = {pair.right for pair in agreement_pairs(seed=seed)}
    parts: dict[str, list[str]] = {}
    for part, size in SIZES.items():
        parts[part] = []
        while len(parts[part]) < size:
            plurals = [generator.random() < 0.5 for _ in range(1 + generator.choice(BETWEEN))]
            right, _ = agreement_sentence(plurals, generator)
            if right in taken:
                continue
            parts[part].append(right)
            if part != "train":
                taken.add(right)
    return parts
