"""An experiment: a claim of the course, numbers that check it, pictures of them, and the verdict.

An experiment is one class in one file. It says the claim, what can be asked of it, what it measures, and which panels
show that. Pages, pictures, terminals, JSON and the options of the command line exist once and know it by this class.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from elman.draw.output import write
from elman.draw.panels import Column, Note, Page, Panel
from elman.draw.plain import plain
from elman.train.recipe import Section

D = TypeVar("D")

Say = Callable[[str], Any]


class Experiment(Generic[D]):
    """What an experiment says; D is what it measures: a dataclass of plain data."""

    name: ClassVar[str]
    about: ClassVar[str]
    """What it does, in a sentence of the help."""
    claim: ClassVar[str]
    """The sentence of the course that it checks."""
    Options: ClassVar[type[Section]]
    """What can be asked of it, `seeds` among them: an option of the command line for each."""

    def measure(self, options: Any, say: Say) -> D:
        """The numbers; `say` is told what is being done, now and then."""
        raise NotImplementedError

    def verdict(self, data: D) -> tuple[bool | None, str]:
        """Whether the claim held (None: the numbers do not decide it), and a sentence with the figures that say so."""
        raise NotImplementedError

    def panels(self, data: D) -> list[Panel]:
        """How the numbers are drawn."""
        raise NotImplementedError

    def film(self, data: D) -> list[Page]:
        """The frames of a film, for `--out NAME.gif`; none where it has no film."""
        return []

    def asks_for_film(self, path: Path) -> bool:
        """Whether a name is that of a film (.gif), and the experiment has one."""
        return path.suffix.lower() == ".gif" and type(self).film is not Experiment.film


@dataclass(frozen=True)
class Outcome:
    """What an experiment found."""

    experiment: Experiment[Any]
    data: Any
    seconds: float

    @property
    def holds(self) -> bool | None:
        """Whether the claim held; None where what was asked for does not decide it."""
        return self.experiment.verdict(self.data)[0]

    @property
    def verdict(self) -> str:
        """A sentence with the figures that say so."""
        return self.experiment.verdict(self.data)[1]

    def to_dict(self) -> dict[str, Any]:
        """The numbers as JSON has them: `docs/lab.md` says what each experiment's are."""
        told = {"experiment": self.experiment.name, "claim": self.experiment.claim, "holds": self.holds}
        return {**told, "verdict": self.verdict, "seconds": round(self.seconds, 1), **plain(self.data)}

    def page(self) -> Page:
        """What is to be drawn."""
        words = {True: "It holds", False: "It does not hold", None: "Not decided"}
        verdict = Note("verdict", f"{words[self.holds]}: {self.verdict}")
        panels = [Note("the claim", self.experiment.claim), verdict, *self.experiment.panels(self.data)]
        return Page(f"{self.experiment.name}: {self.experiment.about}", f"{self.seconds:.0f} s", [Column("", panels)])

    def _repr_html_(self) -> str:
        from elman.draw.page import page_frame

        return page_frame(self.page())

    def save(self, path: Path | str) -> None:
        """Write a page (.html), the numbers (.json), a picture (.png, .svg) or a film (.gif)."""
        path = Path(path)
        if self.experiment.asks_for_film(path):
            from elman.draw.picture import draw_film

            draw_film(self.experiment.film(self.data), path)
        else:
            write(path, self.page, self.to_dict)
