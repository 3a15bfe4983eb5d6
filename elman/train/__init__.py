"""Training: one loop for every task, exact resume, recipes."""

from elman.train.loop import Trainer, seed_everything
from elman.train.progress import Reporter
from elman.train.recipe import Section, TrainSettings
from elman.train.task import Batches, Loss, Task

__all__ = [
    "Batches",
    "Loss",
    "Reporter",
    "Section",
    "Task",
    "TrainSettings",
    "Trainer",
    "seed_everything",
]
