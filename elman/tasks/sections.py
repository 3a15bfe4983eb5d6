"""Sections that the recipes of several tasks have in common."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from elman.runtime.layers import Layers
from elman.train.recipe import BatchSection, Section

if TYPE_CHECKING:
    from elman.nn.cells import Cell as NetworkCell
    from elman.nn.recurrent import Recurrent

Cell = Literal["rnn", "elman", "lstm", "gru", "gru-cho", "mut1", "mut2", "mut3"]
Name = Annotated[str, Field(coerce_numbers_to_str=True)]
"""A column of a table or a field of an object: its name, or its number from 1."""
Names = Annotated[tuple[Name, ...], BeforeValidator(lambda one: one if isinstance(one, list | tuple) else (one,))]
"""Several of them; one may stand for itself."""


def _rising(shares: tuple[float, ...]) -> tuple[float, ...]:
    if not all(0 < share < 1 for share in shares) or list(shares) != sorted(set(shares)):
        raise ValueError("should be rising numbers between 0 and 1")
    return shares


Shares = Annotated[tuple[float, ...], AfterValidator(_rising)]
"""Of a distribution: its quantiles."""


class DataSection(Section):
    """Where the records come from: a corpus of the catalogue, or the user's own files."""

    corpus: str | None = Field(None, description="a name that `elman data list` shows")
    train: tuple[str, ...] = ()
    dev: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    dev_fraction: float = Field(0.1, gt=0, lt=1, description="of train, held out where dev is not given")
    encoding: str = "utf-8"

    @field_validator("train", "dev", "test", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value


def column(name: str | None) -> str | int | None:
    """A column by its number, counted from 1, or by its name.

    >>> column("2"), column("review"), column(None)
    (2, 'review', None)
    """
    return int(name) if name is not None and name.isdecimal() else name


class SizeSection(BatchSection):
    """How many examples of similar length make a batch."""

    chosen: ClassVar[tuple[str, int, int]] = ("size", 32, 8)

    size: int | None = Field(
        None, ge=1, description="examples in an update; 32, or down to 8 for small data, if not given"
    )


class LayersSection(Section):
    """Recurrent layers."""

    cell: Cell = "lstm"
    nonlinearity: Literal["tanh", "relu", "logistic", "identity"] = Field("tanh", description="of the rnn cell")
    layers: int = Field(1, ge=1, le=64)
    hidden: int = Field(128, ge=1)
    connections: Literal["plain", "residual", "dense"] = "plain"
    initialise: Literal["uniform", "orthogonal", "identity"] = "uniform"
    forget_bias: float | None = Field(None, description="of the LSTM; none leaves PyTorch's initialisation")
    dropout: float = Field(0.3, ge=0, lt=1, description="between layers")
    weight_dropout: float = Field(0.0, ge=0, lt=1, description="of the recurrent weights (DropConnect)")

    @model_validator(mode="after")
    def _goes_with_the_cell(self) -> "LayersSection":
        if self.nonlinearity != "tanh" and self.cell not in ("rnn", "elman"):
            raise ValueError("model.nonlinearity goes with the rnn cell only")
        if self.forget_bias is not None and self.cell != "lstm":
            raise ValueError("model.forget_bias goes with the lstm cell only")
        return self

    def body(self, input_size: int, **options: Any) -> "Recurrent":
        """Fresh layers; `options` are those of `Recurrent` that the section does not say."""
        from elman.nn.initialise import initialise
        from elman.nn.recurrent import Recurrent

        asked: dict[str, Any] = {
            "hidden_size": self.hidden,
            "num_layers": self.layers,
            "weight_dropout": self.weight_dropout,
            "connections": self.connections,
            "nonlinearity": self.nonlinearity,
            **options,
        }
        dropout = self.dropout if asked["num_layers"] > 1 else 0.0
        body = Recurrent(self.cell_class(), input_size, dropout=dropout, **asked)
        initialise(body, self.initialise, forget_bias=self.forget_bias)
        return body

    def cell_class(self) -> "str | type[NetworkCell]":
        """The cell of the layers, as `Recurrent` takes it."""
        return self.cell

    def described(self, name: str, input_size: int, **options: Any) -> Layers:
        """The layers in plain words, for the compiled runtime; their weights begin with `name`."""
        asked: dict[str, Any] = {"hidden_size": self.hidden, "num_layers": self.layers, **options}
        return Layers(
            name, self.cell, input_size, connections=self.connections, nonlinearity=self.nonlinearity, **asked
        )

    def words(self) -> str:
        """The layers in a few words: 2 x lstm 256."""
        return f"{self.layers} x {self.cell} {self.hidden}"


class OutputSection(LayersSection):
    """Recurrent layers, and what of them the output layer reads."""

    output: Literal["state", "combined"] = Field(
        "state", description="what the output layer reads: the state, or combined: the input and the state before it"
    )

    @model_validator(mode="after")
    def _combined_is_one_simple_layer(self) -> "OutputSection":
        if self.output == "combined" and (self.cell not in ("rnn", "elman") or self.layers > 1):
            raise ValueError("model.output = combined goes with one layer of the rnn cell only")
        return self

    def cell_class(self) -> "str | type[NetworkCell]":
        if self.output == "state":
            return super().cell_class()
        from elman.nn.combined import CombinedCell

        return CombinedCell

    def described(self, name: str, input_size: int, **options: Any) -> Layers:
        layers = super().described(name, input_size, **options)
        return layers if self.output == "state" else replace(layers, cell="combined rnn")
