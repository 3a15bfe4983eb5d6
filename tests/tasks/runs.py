"""Small runs of language models that take a second or less."""

from pathlib import Path
from typing import Any

from elman.batches import stream_ids
from elman.records import TextFiles
from elman.tasks import language
from elman.tasks.language.data import open_data
from elman.tasks.language.model import LanguageModel
from elman.tasks.language.task import LanguageTask
from elman.train import Trainer, seed_everything
from tests.train.toy import quiet

SMALL = (
    "model.cell=gru",
    "model.layers=1",
    "model.hidden=24",
    "model.embedding=12",
    "batch.size=4",
    "batch.steps=16",
    "train.log_every=1",
    "train.threads=1",
    "baseline.order=0",
)
SENTENCE = "the cat sat on a mat and saw the dog that ran to the sea while a bird sang of rain"


def prose(lines: int = 60) -> str:
    """Lines of words that follow a rule, so that there is something to learn."""
    words = SENTENCE.split()
    return "".join(" ".join(words[(i * k + k) % len(words)] for k in range(1, 8)) + "\n" for i in range(lines))


def write_names(path: Path) -> Path:
    """A labelled table in which the label says which letters come."""
    rows = [f"{'ab' * (1 + i % 3)},north\n{'xy' * (1 + i % 3)},south\n" for i in range(30)]
    path.write_text("text,label\n" + "".join(rows))
    return path


def recipe(train: Path, *settings: str) -> language.LanguageRecipe:
    """The small recipe on a file, with settings laid over it."""
    return language.read_recipe(None, [*SMALL, f'data.train=["{train}"]', *settings])


def run(train: Path, out: Path, *settings: str, **options: Any) -> LanguageModel:
    """Train, and load what came of it."""
    language.train(recipe(train, *settings), out, reporter=quiet(), **options)
    return LanguageModel.load(out)


def trainer(train: Path, out: Path, *settings: str) -> Trainer:
    """A trainer as `language.train` makes it, for tests that stop it."""
    chosen = recipe(train, *settings)
    data = open_data(chosen)
    seed_everything(chosen.train.seed)
    return Trainer(LanguageTask(chosen, data), chosen.train, out, quiet())


def ids_of(model: LanguageModel, path: Path) -> Any:
    """A file as the model reads it."""
    return stream_ids(TextFiles(path), model.tokenizer)[0]
