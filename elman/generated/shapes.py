"""Scenes of coloured shapes, drawn by seed, with exact captions and questions: what is said of one can be checked.

scene = make_scene(np.random.default_rng(1))
scene.draw()                                    # size x size x 3
captions(scene, chance), questions(scene, chance)
is_true("there is a red circle left of a blue square", scene)
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import numpy as np

SEED = 11
SIZE, GRID = 48, 3  # pixels of a side; cells of a side, at most one shape in each
MOST = 4  # shapes of a scene
SHAPES = ("circle", "square", "triangle", "cross")
COLOURS = {
    "red": (214, 39, 40), "green": (44, 160, 44), "blue": (31, 100, 190), "yellow": (240, 200, 30),
    "purple": (140, 70, 180), "grey": (120, 120, 120),
}  # fmt: skip
SIZES = {"small": 4.0, "large": 6.5}  # half the width, in pixels
NAMES = (tuple(SIZES), tuple(COLOURS), SHAPES)
JITTER = 1.5  # pixels that a shape may stand off the middle of its cell
PAPER = (245, 245, 245)
NUMBERS = ("zero", "one", "two", "three", "four")
RELATIONS = {"left of": (0, -1), "right of": (0, 1), "above": (-1, 0), "below": (1, 0)}
"""Which way one shape stands from another, in rows and columns of the grid."""
SPLITS = {"train": 6000, "dev": 500, "test": 500}
"""Scenes."""
PER_SCENE = 5  # captions
PER_TYPE = 3  # questions, those that are the same once
TRIES = 20  # questions that are thought of before another answer is taken
ALIKE = 0.35  # how likely it is that a shape has the size, the colour or the kind of the one before it


@dataclass(frozen=True)
class Thing:
    """One shape of a scene, and its cell of the grid."""

    size: str
    colour: str
    shape: str
    row: int
    column: int

    def fits(self, words: tuple[str, ...]) -> bool:
        """Whether it is what some words say: `large`, `red`, `circle`; `shape` is said of all.

        >>> Thing("large", "red", "circle", 0, 1).fits(("red", "shape"))
        True
        """
        return all(word in (self.size, self.colour, self.shape, "shape") for word in words)

    def stands(self, relation: str, other: "Thing") -> bool:
        """Whether it stands left of, right of, above or below another: by their cells."""
        down, across = RELATIONS[relation]
        return (self.row - other.row) * down + (self.column - other.column) * across > 0


@dataclass(frozen=True)
class Scene:
    """Some shapes on a grid, in the order of its cells; `seed` is that of their small moves when they are drawn."""

    things: tuple[Thing, ...]
    seed: int = 0

    def __str__(self) -> str:
        return "; ".join(f"{t.size} {t.colour} {t.shape} {t.row} {t.column}" for t in self.things)

    @classmethod
    def parse(cls, text: str) -> "Scene":
        """The scene that `str` wrote; a ValueError where a text is none.

        >>> Scene.parse("large red circle 0 1; small blue square 2 2").things[1].colour
        'blue'
        """
        cells = (part.split() for part in text.split(";") if part.strip())
        return cls(tuple(Thing(a, b, c, int(row), int(column)) for a, b, c, row, column in cells))

    def count(self, words: tuple[str, ...]) -> int:
        """How many of its shapes are what some words say."""
        return sum(thing.fits(words) for thing in self.things)

    def draw(self, size: int = SIZE) -> np.ndarray:
        """The picture: size x size x 3, from 0 to 255, with smooth edges.

        >>> Scene.parse("large red circle 1 1").draw()[24, 24].tolist()
        [214, 39, 40]
        """
        chance, unit = np.random.default_rng(self.seed), size / SIZE
        down, across = np.mgrid[0:size, 0:size] + 0.5
        picture = np.full((size, size, 3), PAPER, np.float64)
        for thing in self.things:
            off = chance.uniform(-JITTER, JITTER, 2)
            y = ((thing.row + 0.5) * SIZE / GRID + off[0]) * unit
            x = ((thing.column + 0.5) * SIZE / GRID + off[1]) * unit
            distance = _distance(thing.shape, across - x, down - y, SIZES[thing.size] * unit)  # size x size
            cover = np.clip(0.5 - distance, 0, 1)[..., None]
            picture += cover * (np.array(COLOURS[thing.colour]) - picture)
        return picture.round().astype(np.uint8)


def _distance(shape: str, x: np.ndarray, y: np.ndarray, r: float) -> np.ndarray:
    """About how far each pixel is outside a shape of half the width r around 0; inside, it is below 0."""
    if shape == "circle":
        return np.asarray(np.hypot(x, y) - r)
    if shape == "square":
        return np.asarray(np.maximum(abs(x), abs(y)) - 0.88 * r)
    if shape == "triangle":  # with its point above
        return np.asarray(np.maximum(y - 0.8 * r, (2 * abs(x) - y) / 5**0.5 - 0.45 * r))
    bar = 0.32 * r
    return np.asarray(np.minimum(np.maximum(abs(x) - r, abs(y) - bar), np.maximum(abs(y) - r, abs(x) - bar)))


def make_scene(chance: np.random.Generator) -> Scene:
    """One to four shapes in different cells, some of them alike.

    >>> str(make_scene(np.random.default_rng(1)))
    'small green cross 0 0; small blue triangle 0 1; large blue square 1 1; large blue square 2 1'
    """
    cells = sorted(chance.permutation(GRID * GRID)[: chance.integers(1, MOST + 1)].tolist())
    things: list[Thing] = []
    for cell in cells:
        size, colour, shape = (str(chance.choice(names)) for names in NAMES)
        if things:
            old = things[-1]
            size, colour, shape = (
                before if chance.random() < ALIKE else new
                for before, new in ((old.size, size), (old.colour, colour), (old.shape, shape))
            )
        things.append(Thing(size, colour, shape, *divmod(cell, GRID)))
    return Scene(tuple(things), int(chance.integers(1 << 31)))


def scenes(split: str, count: int | None = None) -> Iterator[Scene]:
    """The scenes of a split, the same every time; no scene of another split is among them."""
    numbers = list(SPLITS)
    chance = np.random.default_rng((SEED, numbers.index(split)))
    others = {str(scene) for other in numbers[numbers.index(split) + 1 :] for scene in scenes(other)}
    made = 0
    while made < (SPLITS[split] if count is None else count):
        scene = make_scene(chance)
        if str(scene) not in others:
            made += 1
            yield scene


# Captions


def captions(scene: Scene, chance: np.random.Generator, count: int = PER_SCENE) -> list[str]:
    """Some true sentences about a scene, in turn: what is there, how many, where, and all of it.

    >>> captions(Scene.parse("large red circle 1 1"), np.random.default_rng(1), 2)
    ['there is a large shape', 'there is one large red circle']
    """
    several = [_where, _all] if len(scene.things) > 1 else []
    makers = [_there_is, _how_many, *several]
    return [makers[number % len(makers)](scene, chance) for number in range(count)]


def _there_is(scene: Scene, chance: np.random.Generator) -> str:
    return f"there is {_a(_words(_one(scene, chance), chance))}"


def _how_many(scene: Scene, chance: np.random.Generator) -> str:
    words = _words(_one(scene, chance), chance)
    number = scene.count(words)
    return f"there {'is' if number == 1 else 'are'} {NUMBERS[number]} {_plural(words, number)}"


def _where(scene: Scene, chance: np.random.Generator) -> str:
    one, other = _two(scene, chance)
    relation = str(chance.choice([name for name in RELATIONS if one.stands(name, other)]))
    return f"{_a(_words(one, chance))} is {relation} {_a(_words(other, chance))}"


def _all(scene: Scene, chance: np.random.Generator) -> str:
    *most, last = (_a(_words(thing, chance, least=2)) for thing in scene.things)
    return f"{' , '.join(most)} and {last}"


def _one(scene: Scene, chance: np.random.Generator) -> Thing:
    return scene.things[chance.integers(len(scene.things))]


def _two(scene: Scene, chance: np.random.Generator) -> tuple[Thing, Thing]:
    first, second = chance.permutation(len(scene.things))[:2].tolist()
    return scene.things[first], scene.things[second]


def _words(thing: Thing, chance: np.random.Generator, least: int = 1) -> tuple[str, ...]:
    """A shape in at least so many of the words that it could be told by; the last is its kind, or `shape`."""
    told = set(chance.permutation(3)[: chance.integers(least, 4)].tolist())
    size, colour = ((word,) if number in told else () for number, word in enumerate((thing.size, thing.colour)))
    return (*size, *colour, thing.shape if 2 in told else "shape")


def _a(words: tuple[str, ...]) -> str:
    return f"a {' '.join(words)}"


def _plural(words: tuple[str, ...], number: int) -> str:
    *before, last = words
    ending = "" if number == 1 else "es" if last.endswith("s") else "s"
    return " ".join([*before, last + ending])


# What a sentence says


PHRASE = f"(?:({'|'.join(SIZES)}) )?(?:({'|'.join(COLOURS)}) )?({'|'.join(SHAPES)}|shape)(?:e?s)?"
RELATION = re.compile(rf"a ({PHRASE}) is ({'|'.join(RELATIONS)}) a ({PHRASE})")
COUNT = re.compile(rf"there (?:is|are) ({'|'.join(NUMBERS)}) ({PHRASE})")
LIST = re.compile(rf"(?:there is )?(a {PHRASE}(?:(?: , | and )a {PHRASE})*)")


def is_true(caption: str, scene: Scene) -> bool:
    """Whether a sentence of the grammar is true of a scene; one that is none says nothing, and is not.

    >>> scene = Scene.parse("large red circle 0 0; small blue square 0 2")
    >>> is_true("a circle is left of a blue square", scene), is_true("there are two red shapes", scene)
    (True, False)
    >>> is_true("a shape and a small shape", scene), is_true("a circle and a circle", scene), is_true("a a", scene)
    (True, False, False)
    """
    text = " ".join(caption.split()).removesuffix(" .")
    if found := RELATION.fullmatch(text):
        one, relation, other = _said(found[1]), found[5], _said(found[6])
        return any(a.fits(one) and b.fits(other) and a.stands(relation, b) for a, b in permutations(scene.things, 2))
    if found := COUNT.fullmatch(text):
        return scene.count(_said(found[2])) == NUMBERS.index(found[1])
    if found := LIST.fullmatch(text):
        said = [_said(part.removeprefix("a ")) for part in re.split(" , | and ", found[1])]
        choices = permutations(scene.things, len(said))  # none where more is said than there is
        return any(all(thing.fits(words) for thing, words in zip(choice, said, strict=True)) for choice in choices)
    return False


def _said(phrase: str) -> tuple[str, ...]:
    """The words of a phrase, in the singular."""
    found = re.fullmatch(PHRASE, phrase)
    return tuple(word for word in (found.groups() if found else ()) if word)


# Questions


class Question(NamedTuple):
    """A question about a scene, its answer, and its type."""

    text: str
    answer: str
    type: str


def questions(scene: Scene, chance: np.random.Generator) -> list[Question]:
    """One question of each type that the scene allows: existence, count, colour, comparison, relation.

    >>> scene = Scene.parse("large red circle 0 0; small blue square 0 2")
    >>> [question.type for question in questions(scene, np.random.default_rng(1))]
    ['existence', 'count', 'comparison', 'colour', 'relation']
    """
    counts = NUMBERS[: len(scene.things) + 1]
    found = [
        _aimed(_existence, ("yes", "no"), scene, chance),
        _aimed(_counted, counts, scene, chance),
        _aimed(_comparison, ("yes", "no"), scene, chance),
    ]
    for thing in (scene.things[number] for number in chance.permutation(len(scene.things)).tolist()):
        if (words := _only(thing, scene, chance, without=thing.colour)) is not None:
            found.append(Question(f"what colour is the {' '.join(words)} ?", thing.colour, "colour"))
            break
    only = [(thing, words) for thing in scene.things if (words := _only(thing, scene, chance)) is not None]
    if len(only) > 1:
        found.append(_relation(only, chance))
    return found


Maker = Callable[[Scene, np.random.Generator], Question]


def _aimed(make: Maker, answers: Sequence[str], scene: Scene, chance: np.random.Generator) -> Question:
    """A question with each of some answers as often, where such is found: else the question alone would tell it."""
    wanted = str(chance.choice(answers))
    tries = (make(scene, chance) for _ in range(TRIES))
    return next((question for question in tries if question.answer == wanted), make(scene, chance))


def _existence(scene: Scene, chance: np.random.Generator) -> Question:
    words = _words(_drawn(scene, chance), chance)
    return Question(f"is there {_a(words)} ?", "yes" if scene.count(words) else "no", "existence")


def _counted(scene: Scene, chance: np.random.Generator) -> Question:
    words = _words(_drawn(scene, chance), chance)
    return Question(f"how many {_plural(words, 2)} are there ?", NUMBERS[scene.count(words)], "count")


def _comparison(scene: Scene, chance: np.random.Generator) -> Question:
    words, others = (_words(_drawn(scene, chance), chance) for _ in range(2))
    while words == others:
        others = _words(_drawn(scene, chance), chance)
    more = chance.random() < 0.5
    one, other = scene.count(words), scene.count(others)
    right = one > other if more else one < other
    text = f"are there {'more' if more else 'fewer'} {_plural(words, 2)} than {_plural(others, 2)} ?"
    return Question(text, "yes" if right else "no", "comparison")


def _relation(only: list[tuple[Thing, tuple[str, ...]]], chance: np.random.Generator) -> Question:
    first, second = chance.permutation(len(only))[:2].tolist()
    (one, words), (other, others) = only[first], only[second]
    wanted = chance.random() < 0.5
    relation = str(chance.choice([name for name in RELATIONS if one.stands(name, other) == wanted]))
    text = f"is the {' '.join(words)} {relation} the {' '.join(others)} ?"
    return Question(text, "yes" if wanted else "no", "relation")


def _drawn(scene: Scene, chance: np.random.Generator) -> Thing:
    """A shape of the scene, or, as often, one that differs from it in one or two of its words."""
    thing = _one(scene, chance)
    if chance.random() < 0.5:
        return thing
    words = [thing.size, thing.colour, thing.shape]
    for number in chance.permutation(3)[: chance.integers(1, 3)].tolist():
        words[number] = str(chance.choice(NAMES[number]))
    size, colour, shape = words
    return Thing(size, colour, shape, thing.row, thing.column)


def _only(thing: Thing, scene: Scene, chance: np.random.Generator, without: str = "") -> tuple[str, ...] | None:
    """Words that a shape is told from all others by; None where none are found."""
    ways = (_words(thing, chance) for _ in range(TRIES))
    return next((words for words in ways if scene.count(words) == 1 and without not in words), None)


# Tables


def caption_rows(scene: Scene) -> list[tuple[str, ...]]:
    """The captions of a scene, the same every time."""
    return [(text,) for text in captions(scene, np.random.default_rng((SEED, scene.seed)))]


def question_rows(scene: Scene) -> list[tuple[str, ...]]:
    """Up to three questions of each type about a scene, with answer and type, the same every time."""
    chance = np.random.default_rng((SEED, scene.seed))
    return list(dict.fromkeys(tuple(question) for _ in range(PER_TYPE) for question in questions(scene, chance)))
