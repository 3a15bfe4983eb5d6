"""Every experiment by its name: a new one is a class in a file of its own, and a line here."""

from typing import Any

from elman.lab.agreement import AgreementExperiment
from elman.lab.bptt import BpttExperiment
from elman.lab.experiment import Experiment
from elman.lab.gradients import GradientsExperiment
from elman.lab.initialisation import InitExperiment
from elman.lab.languages import LanguagesExperiment
from elman.lab.memory import MemoryExperiment
from elman.lab.minimal import MinimalExperiment

EXPERIMENTS: dict[str, Experiment[Any]] = {
    experiment.name: experiment
    for experiment in (
        GradientsExperiment(),
        MemoryExperiment(),
        BpttExperiment(),
        LanguagesExperiment(),
        MinimalExperiment(),
        InitExperiment(),
        AgreementExperiment(),
    )
}
"""In the order in which they are listed."""
