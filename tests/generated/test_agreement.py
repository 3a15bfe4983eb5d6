"""Agreement: sentences by rule, and pairs of which one is right."""

import random
import re
from itertools import groupby

import pytest

from elman.corpora import locate
from elman.errors import UserError
from elman.generated.agreement import BE, LINKS, NOUNS, VERBS, agreement, agreement_pairs, agreement_sentence

NUMBER = {word: plural for two in NOUNS for plural, word in enumerate(two)}
VERB = {word: plural for two in (*BE, *VERBS, *LINKS) for plural, word in enumerate(two)}
INNER = {word for two in LINKS for word in two}


def drawn(seed: int) -> tuple[list[bool], str, str]:
    """Numbers of a subject and of up to five nouns after it, and the two sentences."""
    generator = random.Random(seed)
    plurals = [generator.random() < 0.5 for _ in range(generator.randint(1, 6))]
    return plurals, *agreement_sentence(plurals, generator)


def test_the_verb_has_the_number_of_the_first_noun() -> None:
    for plurals, right, wrong in map(drawn, range(300)):
        assert [NUMBER[word] for word in right.split() if word in NUMBER] == plurals
        differing = [(one, other) for one, other in zip(right.split(), wrong.split(), strict=True) if one != other]
        assert len(differing) == 1
        assert [VERB[word] for word in differing[0]] == [plurals[0], not plurals[0]]
        assert differing[0][0] not in INNER


def test_verbs_inside_agree_with_the_noun_that_they_belong_to() -> None:
    """`that the kings praise` with its own noun; `that praise the kings` with the noun before the clause."""
    met = 0
    for _, right, _ in map(drawn, range(300)):
        words, heads = right.split(), list[int]()
        for place, word in enumerate(words):
            if word in NUMBER and words[place - 2] == "that":  # that the NOUN verb
                assert VERB[words[place + 1]] == NUMBER[word]
                met += 1
            elif word in NUMBER:
                heads.append(NUMBER[word])
            elif word in INNER and words[place - 1] == "that":
                assert VERB[word] == heads[-1]
                met += 1
    assert met > 300


def test_pairs_by_the_nouns_between() -> None:
    pairs = agreement_pairs(each=3, most=2)
    groups = [(key, len(list(group))) for key, group in groupby(pairs, lambda one: (one.between, one.attractors))]
    assert groups == [((0, 0), 3), ((1, 0), 3), ((1, 1), 3), ((2, 0), 3), ((2, 2), 3)]
    for pair in pairs:
        first, *rest = [NUMBER[word] for word in pair.right.split() if word in NUMBER]
        assert len(rest) == pair.between and sum(one != first for one in rest) == pair.attractors
    assert agreement_pairs(each=3) == agreement_pairs(each=3) != agreement_pairs(each=3, seed=1)
    with pytest.raises(UserError, match="0 pairs with up to 4 attractors cannot be made"):
        agreement_pairs(each=0)


def test_no_pair_and_no_held_out_sentence_is_learned_from() -> None:
    files = {part: paths[0].read_text().splitlines() for part, paths in locate("agreement").items()}
    assert files == {part: agreement()[part] for part in files}
    train = set(files["train"])
    assert train.isdisjoint(files["dev"]) and train.isdisjoint(files["test"])
    assert train.isdisjoint(pair.right for pair in agreement_pairs())
    assert all(re.fullmatch(r"the \w+ .* \.", line) for line in files["dev"])
