"""Small translators that take a second or less: they copy, reverse or rename letters."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elman.records.pairs import Pair, write_pairs
from elman.tasks.recipes import load_recipe
from elman.tasks.search import SearchSettings
from elman.tasks.translate import ModelSettings, TextSettings, TranslateRecipe, Translator, TranslatorConfig
from elman.text.profile import SourceProfile
from elman.text.sides import Sides
from elman.train.loop import Trainer, seed_everything
from tests.tasks.runs import run_task, task_trainer

SMALL = (
    "text.kind=characters",
    "model.cell=gru",
    "model.hidden=24",
    "model.embedding=16",
    "model.dropout=0",
    "model.input_dropout=0",
    "model.output_dropout=0",
    "loss.smoothing=0",
    "batch.tokens=256",
    "train.lr=0.01",
    'train.average="none"',
    "train.log_every=1",
    "train.threads=1",
    "data.dev_size=20",
)
LETTERS = "abcdefgh"
WORDS = {"ein": "a", "der": "the", "hund": "dog", "vogel": "bird", "sieht": "sees", "hört": "hears"}


def strings(count: int = 200, seed: int = 0) -> list[Pair]:
    """Short strings and their reverse, all different."""
    chance = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(chance.choices(LETTERS, k=chance.randint(2, 6)))] = None
    return [Pair(text, text[::-1]) for text in found]


def sentences(count: int = 60, seed: int = 0) -> list[Pair]:
    """Sentences of words and, word by word, their translation."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        words = [w for _ in range(2) for w in (chance.choice(["ein", "der"]), chance.choice(["hund", "vogel"]))]
        words.insert(2, chance.choice(["sieht", "hört"]))
        found.append(Pair(" ".join(words), " ".join(WORDS[word] for word in words)))
    return found


def write(path: Path, pairs: Sequence[Pair] | None = None) -> Path:
    """A table of pairs."""
    write_pairs(path, strings() if pairs is None else pairs)
    return path


def recipe(train: Path, *settings: str) -> TranslateRecipe:
    """The small recipe on a file, with settings laid over it."""
    return load_recipe(TranslateRecipe, None, [*SMALL, f'data.train=["{train}"]', *settings])


def run(train: Path, out: Path, *settings: str, **options: Any) -> Translator:
    """Train, and load what came of it."""
    return run_task("translate", recipe(train, *settings), out, **options)  # type: ignore[no-any-return]


def trainer(train: Path, out: Path, *settings: str) -> Trainer:
    """A trainer as a run makes it, for tests that stop it."""
    return task_trainer("translate", recipe(train, *settings), out)


def untrained(
    pairs: Sequence[Pair] | None = None,
    *,
    kind: str = "characters",
    joint: bool = False,
    seed: int = 0,
    longest: int = 12,
    tokens: dict[str, Any] | None = None,
    **model: Any,
) -> Translator:
    """A model with random weights, which has much to say about everything, in double precision."""
    given = strings() if pairs is None else pairs
    text = TextSettings.model_validate({"kind": kind, "joint": joint} | (tokens or {}))
    sides = Sides.fit(
        [(pair.source, pair.target) for pair in given], text.side(False), None if joint else text.side(True)
    )
    settings = ModelSettings.model_validate({"cell": "gru", "hidden": 12, "embedding": 8, "longest": longest} | model)
    seed_everything(seed)
    encoded = [(sides.read(pair.source), sides.say(pair.target)) for pair in given]
    characters = sum(len(pair.source) for pair in given)
    profile = SourceProfile.of(encoded, characters=characters, size=sides.source.size, joint=sides.joint)
    search = SearchSettings(length_factor=1.0, length_extra=4)
    recipe = TranslateRecipe(text=text, model=settings)
    config = TranslatorConfig.new("translate", recipe, model=settings, search=search, longest=longest, **vars(profile))
    network = Translator.build(config, sides).double().eval()
    for parameter in network.parameters():
        parameter.data.mul_(2.5)  # far from even, so that what is found is found for a reason
    assert network.softmax.bias is not None
    network.softmax.bias.data[sides.target.eos_id] += 1  # and most of it ends
    return Translator(config, sides, network)
