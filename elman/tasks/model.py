"""A trained model, whatever its task: a config, a vocabulary and weights in a folder; by PyTorch or compiled.

model = elman.load("runs/names")
model.predict("Nakamura")                       # compiled where the kernels run the network, else by PyTorch
elman.load("runs/names", backend="torch")       # always by PyTorch
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from html import escape
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar, cast, get_args, overload

import numpy as np

from elman.batches.examples import in_order
from elman.errors import UserError
from elman.files import checked
from elman.runtime import Layers, encoder_refusal
from elman.runtime.quantise import Arrays, dequantise, quantise, quantised
from elman.runtime.weights import Shapes, arrays_of, read_arrays, type_refusal
from elman.tasks import folder as folders
from elman.tasks.folder import Config
from elman.tasks.memory import built
from elman.tasks.predict import PredictOptions, read_texts

if TYPE_CHECKING:
    from torch import nn

    from elman.tasks.report import Report
    from elman.tasks.traces import Trace

Backend = Literal["auto", "compiled", "torch"]
"""What predictions are computed by: the compiled runtime where it can, always, or never."""

C = TypeVar("C", bound=Config)
V = TypeVar("V", bound=folders.AnyVocabulary | None)
N = TypeVar("N", bound="nn.Module")
R = TypeVar("R")


class _Made(NamedTuple, Generic[R]):
    """A runtime, and the weights that it was made of: to go through all layers takes as long as some answers."""

    parameters: "list[nn.Parameter]"
    versions: list[tuple[int, int]]
    runtime: R | None


def _versions(parameters: "list[nn.Parameter]") -> list[tuple[int, int]]:
    return [(parameter._version, parameter.data_ptr()) for parameter in parameters]


_building = Lock()
_modes = Lock()


class Model(Generic[C, V, N, R]):
    """What training leaves: what it is (`config`), what it reads with (`vocabulary`), its weights; R is its runtime."""

    task: ClassVar[str]
    Config: ClassVar[type[Config]]
    Recipe: ClassVar[type[Any]]
    exact: ClassVar[Sequence[str]] = ()
    """Matrices that int8 never rounds."""

    def __init__(
        self,
        config: C,
        vocabulary: V,
        weights: "Arrays | N",
        *,
        backend: Backend = "auto",
        report: "Report | Path | None" = None,
    ) -> None:
        if backend not in get_args(Backend):
            raise UserError(f"backend is auto, compiled or torch, not {backend!r}")
        self.config, self.vocabulary, self.backend, self._report = config, vocabulary, backend, report
        self._arrays: Arrays | None = weights if isinstance(weights, dict) else None
        self._network: N | None = None if isinstance(weights, dict) else cast(N, weights)
        self.int8: Arrays | None = self._arrays if self._arrays is not None and quantised(self._arrays) else None
        """The weights as integers, for a model that was exported so."""
        self._made: _Made[R] | None = None
        self._readers, self._was_training = 0, False  # calls that now need the network without its dropout

    # What a task says

    @classmethod
    def load_vocabulary(cls, folder: Path, config: Any) -> Any:
        """Read what the model of this config reads text with, its `tokenizer.json`; None where it reads no text."""
        return None

    @classmethod
    def build(cls, config: Any, vocabulary: Any) -> Any:
        """A network of this config, with weights of no meaning."""
        raise NotImplementedError

    def layers(self) -> Sequence[Layers]:
        """Its recurrent layers, described."""
        return ()

    def other_shapes(self) -> Shapes:
        """The shapes of all weights that are not those of recurrent layers, by name."""
        return {}

    def shapes(self) -> Shapes | None:
        """The shape of every weight by its name; None for networks that only PyTorch knows."""
        if not self.layers() or any(part.mode is None for part in self.layers()):
            return None
        return {name: shape for part in self.layers() for name, shape in part.shapes().items()} | self.other_shapes()

    def compile(self, weights: Arrays) -> R:
        """The compiled runtime of this model."""
        raise NotImplementedError

    def why_not_compiled(self) -> str | None:
        """What keeps the compiled runtime from running this network; None if nothing does."""
        return next((reason for part in self.layers() if (reason := encoder_refusal(part)) is not None), None)

    def about(self) -> str:
        """The model in a few words."""
        raise NotImplementedError

    def check(self, folder: Path) -> None:
        """Refuse parts of a folder that do not go together."""

    def read(self, lines: Iterable[str], options: PredictOptions) -> Iterator[Any]:
        """The records to predict for in some lines, which are read as those that it learned from unless told."""
        from elman.tasks import TASKS

        return read_texts(TASKS[self.task].reader(self._data()), lines, options)

    def answers(self, records: Sequence[Any]) -> Sequence[Any]:
        """A prediction for each record."""
        raise NotImplementedError

    def written(self, record: Any, answer: Any, options: PredictOptions) -> Iterable[str]:
        """The lines that `elman predict` prints for a prediction."""
        raise NotImplementedError

    # Ensembles

    @property
    def members(self) -> tuple[Self, ...]:
        """The models that answer together: it alone, unless it is an ensemble."""
        return (self,)

    def refuse_ensemble(self, doing: str) -> None:
        """Refuse what can be done with one network only."""
        if len(self.members) > 1:
            one = "give one of them, as the folder members/2 in its own, or model.alone() in Python"
            raise UserError(f"an ensemble of {len(self.members)} models cannot be {doing}: {one}")

    # The folder

    @property
    def recipe(self) -> dict[str, Any]:
        """What it was trained by."""
        return self.config.recipe

    def _data(self) -> Any:
        """How the records were written that it learned from."""
        kind = self.Recipe.model_fields["data"].annotation
        return checked(kind, self.recipe.get("data", {}), "the model's config.json: recipe.data")

    @property
    def report(self) -> "Report | None":
        """What it scored when it was trained; read from its folder when it is asked for, None where that has none."""
        if isinstance(self._report, Path):
            from elman.tasks import TASKS
            from elman.tasks.report import Report
            from elman.tasks.run import saved_report

            found = saved_report(self._report)
            self._report = None if found is None else Report(TASKS[self.task], found)
        return self._report

    @report.setter
    def report(self, report: "Report | None") -> None:
        self._report = report

    @classmethod
    def load(cls, folder: Path | str, *, backend: Backend = "auto") -> Self:
        """Read a model folder."""
        folder = Path(folder)
        config = folders.read_config(folder, cls.Config, cls.task)
        vocabulary = cls.load_vocabulary(folder, config)
        model = cls(cast(C, config), vocabulary, read_arrays(folder), backend=backend, report=folder.absolute())
        model.check(folder)
        model._check_weights(folder)
        return model

    def _check_weights(self, folder: Path) -> None:
        """See that the weights are the network's: all there, and of the right shapes."""
        expected = self.shapes() or folders.shapes_of(partial(self.build, self.config, self.vocabulary), folder)
        folders.check_weights(self.weights(), expected, folder)

    def save(self, folder: Path | str) -> None:
        """Write the model folder: config, vocabulary and weights.

        A folder with a run, with scores or with an ensemble is refused: what is beside the weights would be another's.
        """
        from elman.tasks.run import is_run

        folder = Path(folder)
        if is_run(folder) or (folder / "metrics.json").exists():
            raise UserError(f"{folder} holds a model with its scores, which are not this one's: name a new folder")
        if folders.member_folders(folder) or (len(self.members) > 1 and (folder / "config.json").exists()):
            raise UserError(f"{folder} holds another model, and ensembles replace none: name a new folder")
        self.write(folder)

    def write(self, folder: Path) -> None:
        """Write the model's parts into a folder, whatever else is in it."""
        folders.write_model(folder, self.task, self.config, self.weights(), self.vocabulary)

    # The weights

    @property
    def network(self) -> N:
        """The network as PyTorch has it."""
        if self._network is None:
            with _building:  # by one thread, while others wait
                self._build()
        assert self._network is not None
        return self._network

    def _build(self) -> None:
        if self._network is None:
            import torch

            assert self._arrays is not None
            settings = self.config.model  # type: ignore[attr-defined]
            make = partial(self.build, self.config, self.vocabulary)
            weights = dequantise(self._arrays)  # which were checked: they are the network's size
            size = sum(array.nbytes for array in weights.values())
            with torch.inference_mode(False):  # whoever asks for it first: its weights may be trained later
                network = built(make, settings, trained=False, size=size).eval()
                folders.fill(network, weights)
            self._network, self._arrays = network, None
            if self._made is not None:  # of the same weights, which may change from here on
                parameters = list(network.parameters())
                self._made = _Made(parameters, _versions(parameters), self._made.runtime)

    @contextmanager
    def evaluating(self) -> Iterator[N]:
        """While inside, the network is without its dropout."""
        # Changing the mode of every layer takes longer than some answers, so that is done only where it has to be.
        network = self.network
        with _modes:
            self._readers += 1
            if network.training:
                self._was_training = True
                network.eval()
        try:
            yield network
        finally:
            with _modes:
                self._readers -= 1
                if not self._readers and self._was_training:  # the last thread that reads
                    self._was_training = False
                    network.train()

    def weights(self) -> Arrays:
        """The weights as they are now, by name; integers with their scales where the model is in int8."""
        if self.int8 is not None:
            return self.int8
        if self._arrays is not None:
            return self._arrays
        assert self._network is not None
        return arrays_of(self._network)

    @property
    def parameters(self) -> int:
        """How many numbers the model consists of."""
        arrays = dequantise(self.weights()).values()
        return sum(array.size for array in arrays if array.dtype != np.bool_)  # a mask is none of them

    def to_int8(self) -> Self:
        """A copy with its matrices rounded to 8 bits: a quarter of the size, and quicker to answer."""
        if self.int8 is not None:
            return self
        return self._copy(quantise(self.weights(), keep=self.exact))

    def _copy(self, weights: Arrays) -> Self:
        return type(self)(self.config, self.vocabulary, dict(weights), backend=self.backend, report=self._report)

    def __getstate__(self) -> dict[str, Any]:
        weights = {name: array.copy() for name, array in self.weights().items()}
        return self.__dict__ | {"_made": None, "_readers": 0, "_network": None, "_arrays": weights}

    # The compiled runtime

    def refusal(self) -> str | None:
        """Why the compiled runtime does not run this model, so that PyTorch does; None if it does."""
        if self._network is not None and next(self._network.parameters()).device.type != "cpu":
            return "its network is not on the CPU"
        return self.why_not_compiled() or type_refusal(self.weights())

    def runtime(self) -> R:
        """The compiled network with the weights as they are now."""
        found = self._runtime()
        if found is None:
            raise UserError(f"the compiled runtime does not run this model: {self.refusal() or 'backend is torch'}")
        return found

    def _runtime(self) -> R | None:
        """The compiled network; None where PyTorch has to do it, or is asked to."""
        if self.backend == "torch":
            return None
        made = self._made
        if made is None or made.versions != _versions(made.parameters):
            parameters = [] if self._network is None else list(self._network.parameters())
            reason = self.refusal()
            if reason is not None and self.backend == "compiled":
                raise UserError(f"the compiled runtime does not run this model: {reason}")
            runtime = self.compile(self.weights()) if reason is None else None
            made = self._made = _Made(parameters, _versions(parameters), runtime)
        return made.runtime

    # Predicting

    def predict_each(self, given: Any) -> Any:
        """What `predict` gives: the prediction for one text, or a list of them for several of whatever kind."""
        texts = listed(given)
        check_texts(texts)
        answers = list(self.answers(texts)) if texts else []
        return answers[0] if isinstance(given, str) else answers

    def predict_lines(
        self, lines: Iterable[str], options: PredictOptions, answers: Callable[[list[Any]], Sequence[Any]] | None = None
    ) -> Iterator[str]:
        """What `elman predict` prints for lines of records, in their order, in constant memory.

        `answers` does the work where the model does not do it alone.
        """
        records, size = self.read(lines, options), options.window
        work = answers or self.answers
        for record, answer in in_order(records, self.length, work, batch_size=size, window=size, more=options.more):
            yield from self.written(record, answer, options)

    @overload
    def states(  # type: ignore[overload-overlap]
        self, texts: str, *, layer: int | None = None, label: str | None = None, target: str | None = None
    ) -> "Trace": ...

    @overload
    def states(
        self, texts: Iterable[str], *, layer: int | None = None, label: str | None = None, target: str | None = None
    ) -> "list[Trace]": ...

    def states(
        self,
        texts: str | Iterable[str],
        *,
        layer: int | None = None,
        label: str | None = None,
        target: str | None = None,
    ) -> "Trace | list[Trace]":
        """What its layers do while they read a text, or each of several: hidden states, cell states and gates.

        All layers, or the one with the number `layer`, from 1. A language model may need a `label`; a translator's
        decoder is shown as it writes `target`, or else its own translation. `help(elman.tasks.traces.Trace)` has the
        arrays and their shapes.
        """
        from elman.tasks.traces import states

        return states(self, texts, layer=layer, label=label, target=target)

    def length(self, record: Any) -> int:
        """About how much there is to compute for a record."""
        return len(record)

    # Being looked at

    def summary(self) -> str:
        """What it is and how large, in a line."""
        return f"{self.about()}, {self.parameters:,} parameters{', int8' if self.int8 else ''}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.summary()})"

    def _repr_html_(self) -> str:
        shown = f"<b>{type(self).__name__}</b> {escape(self.summary())}"
        for name in self.report.sets if self.report is not None else ():
            assert self.report is not None
            columns, rows = self.report.table(name)
            lines = [["", *columns], *rows]
            cells = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in lines)
            shown += f"<table><caption>{escape(self.report.title(name))}</caption>{cells}</table>"
        return shown

    def __copy__(self) -> Self:
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)  # the weights are shared
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._copy(copy.deepcopy(dict(self.weights()), memo))


def listed(given: Any) -> list[Any]:
    """A text, or several of whatever kind, as a list; a table is no list of texts.

    >>> listed({"text": ["one", "two"]})
    Traceback (most recent call last):
    elman.errors.UserError: a dict is no text and no list of texts: give such, or one column of it
    """
    if isinstance(given, str):
        return [given]
    if isinstance(given, Mapping) or hasattr(given, "columns"):
        raise UserError(f"a {type(given).__name__} is no text and no list of texts: give such, or one column of it")
    if not isinstance(given, Iterable):
        what = "None" if given is None else f"a {type(given).__name__}"
        raise UserError(f"{what} is no text and no list of texts: give such")
    return list(given)


def check_texts(texts: Sequence[Any]) -> None:
    """Refuse what is no text, and texts of nothing.

    >>> check_texts(["one", " "])
    Traceback (most recent call last):
    elman.errors.UserError: text 2 of 2 is empty: give it at least one character
    """
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise UserError(f"text {number} of {len(texts)} is a {type(text).__name__}: give it as a str")
        if not text.strip():
            raise UserError(f"text {number} of {len(texts)} is empty: give it at least one character")
