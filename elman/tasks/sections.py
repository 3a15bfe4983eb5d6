"""Sections that the recipes of several tasks have in common."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from elman.errors import UserError
from elman.records.images import check_images
from elman.records.places import source_of
from elman.runtime.layers import Layers
from elman.runtime.quantise import Arrays, with_max_norm
from elman.train.recipe import EPOCHS, BatchSection, Section, TrainSettings

if TYPE_CHECKING:
    from torch import nn

    from elman.batches.features import FeatureSet
    from elman.nn.cells import Cell as NetworkCell
    from elman.nn.embedding import Embedding, OneHot
    from elman.nn.recurrent import Recurrent
    from elman.nn.towers import Towers

N = TypeVar("N", bound="nn.Module")

Cell = Literal["rnn", "elman", "lstm", "gru", "gru-cho", "mut1", "mut2", "mut3"]
Name = Annotated[str, Field(coerce_numbers_to_str=True)]
"""A column of a table or a field of an object: its name, or its number from 1."""
Names = Annotated[tuple[Name, ...], BeforeValidator(lambda one: one if isinstance(one, list | tuple) else (one,))]
"""Several of them; one may stand for itself."""


def _full_name(name: str) -> str:
    return str(Path(name).absolute())


Folder = Annotated[str, AfterValidator(_full_name)]
"""A folder by a name that holds wherever the model is used from."""


def _rising(shares: tuple[float, ...]) -> tuple[float, ...]:
    if not all(0 < share < 1 for share in shares) or list(shares) != sorted(set(shares)):
        raise ValueError("should be rising numbers between 0 and 1")
    return shares


Shares = Annotated[tuple[float, ...], AfterValidator(_rising)]
"""Of a distribution: its quantiles."""


class DataSection(Section):
    """Where the records come from: a corpus of the catalogue, or the user's own files."""

    corpus: str | tuple[str, ...] | None = Field(None, description="a name that `elman data list` shows, or several")
    train: tuple[str, ...] = ()
    dev: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    dev_fraction: float = Field(0.1, gt=0, lt=1, description="of train, held out where dev is not given")
    encoding: str = "utf-8"

    @field_validator("train", "dev", "test", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @property
    def corpora(self) -> tuple[str, ...]:
        """The names of `corpus`: none, one, or several that are read one behind the other."""
        return (self.corpus,) if isinstance(self.corpus, str) else self.corpus or ()


class UnlabelledSection(DataSection):
    """Data of which some may be without labels."""

    labels: int = Field(0, ge=0, description="training records that are used, drawn by the seed; 0 is all")
    unlabelled: tuple[str, ...] = Field((), description="files of texts without labels, for a language model to learn")

    @field_validator("unlabelled", mode="before")
    @classmethod
    def _one_file_or_several(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value


class TransferSettings(Section):
    """How the language model of unlabelled texts is made, and what is trained to compare with."""

    lm: tuple[str, ...] = Field((), description='settings of the language model, as `["train.epochs=3"]`')
    baseline: bool = Field(True, description="the task is trained without the language model too, and shown beside")

    @field_validator("lm", mode="before")
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
    projection: int = Field(0, ge=0, description="size an LSTM's output is projected to; 0 is none")
    learned_state: bool = Field(False, description="the state before the first step is learned; else it is zeros")
    connections: Literal["plain", "residual", "dense"] = "plain"
    initialise: Literal["uniform", "orthogonal", "identity", "gaussian", "uniform-0.1"] = Field(
        "uniform",
        description="recurrent weights: uniform (PyTorch's), orthogonal, identity; all: gaussian, uniform-0.1",
    )
    forget_bias: float | None = Field(None, description="of the LSTM; none leaves PyTorch's initialisation")
    dropout: float = Field(0.3, ge=0, lt=1, description="between layers")
    weight_dropout: float = Field(0.0, ge=0, lt=1, description="of the recurrent weights (DropConnect)")

    @model_validator(mode="after")
    def _goes_with_the_cell(self) -> "LayersSection":
        if self.nonlinearity != "tanh" and self.cell not in ("rnn", "elman"):
            raise ValueError("model.nonlinearity goes with the rnn cell only")
        if self.forget_bias is not None and self.cell != "lstm":
            raise ValueError("model.forget_bias goes with the lstm cell only")
        if self.projection and self.cell != "lstm":
            raise ValueError("model.projection goes with the lstm cell only")
        if self.projection and self.projection >= self.hidden:
            raise ValueError("model.projection should be smaller than model.hidden")
        return self

    def body(self, input_size: int, **options: Any) -> "Recurrent":
        """Fresh layers; `options` are those of `Recurrent` that the section does not say."""
        from elman.nn.initialise import OF_ALL_WEIGHTS, initialise
        from elman.nn.recurrent import Recurrent

        asked: dict[str, Any] = {**self._options(), "weight_dropout": self.weight_dropout, **options}
        dropout = self.dropout if asked["num_layers"] > 1 else 0.0
        body = Recurrent(self.cell_class(), input_size, dropout=dropout, **asked)
        how = "uniform" if self.initialise in OF_ALL_WEIGHTS else self.initialise  # those come in `initialised`
        initialise(body, how, forget_bias=self.forget_bias)
        return body

    def initialised(self, network: N, *bodies: "Recurrent | Towers") -> N:
        """A whole network, all its weights drawn anew where the section asks for that; `bodies` are its layers."""
        from elman.nn.initialise import OF_ALL_WEIGHTS, forget_bias_, initialise

        if self.initialise in OF_ALL_WEIGHTS:
            initialise(network, self.initialise)
            if self.forget_bias is not None:
                for body in bodies:
                    for stack in getattr(body, "towers", [body]):
                        forget_bias_(stack, self.forget_bias)
        return network

    def _options(self) -> dict[str, Any]:
        """What of the section is told both to the layers of PyTorch and to the compiled ones."""
        return {
            "hidden_size": self.hidden,
            "num_layers": self.layers,
            "connections": self.connections,
            "nonlinearity": self.nonlinearity,
            "proj_size": self.projection,
            "learned_state": self.learned_state,
        }

    def cell_class(self) -> "str | type[NetworkCell]":
        """The cell of the layers, as `Recurrent` takes it."""
        return self.cell

    def described(self, name: str, input_size: int, **options: Any) -> Layers:
        """The layers in plain words, for the compiled runtime; their weights begin with `name`."""
        return Layers(name, self.cell, input_size, **{**self._options(), **options})

    def words(self) -> str:
        """The layers in a few words: 2 x lstm 256."""
        return f"{self.layers} x {self.cell} {self.hidden}"


class TwoWaySection(LayersSection):
    """Recurrent layers that read in both directions."""

    merge: Literal["concat", "mean"] = Field("concat", description="how a layer's two directions are joined")

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), "merge": self.merge}


class EmbeddingSection(Section):
    """What a token's vector is."""

    embedding: int = Field(128, ge=0, description="size of a token's vector; 0 is one-hot input")
    padding_index: int | None = Field(None, ge=0, description="an id whose vector is zero and never trained")
    max_norm: float | None = Field(None, gt=0, description="longer vectors are shortened to it")
    norm_type: float = Field(2.0, gt=0, description="which norm model.max_norm is of")
    scale_by_frequency: bool = Field(False, description="gradients are divided by how often a token is in the batch")
    sparse: bool = Field(False, description="gradients of the tokens in the batch alone: for large vocabularies")

    @model_validator(mode="after")
    def _goes_with_an_embedding(self) -> "EmbeddingSection":
        asked = [key for key in EMBEDDING_KEYS if getattr(self, key) != type(self).model_fields[key].default]
        if asked and not self.embedding:
            raise ValueError(f"model.{asked[0]} is about the vectors of an embedding: it needs model.embedding above 0")
        if self.norm_type != 2 and self.max_norm is None:
            raise ValueError("model.norm_type says which norm model.max_norm is of: give both")
        if self.sparse and self.scale_by_frequency:
            raise ValueError("model.scale_by_frequency does not go with model.sparse: leave one of them out")
        tied = getattr(self, "tied", False) not in (False, "none")
        for key in ("padding_index", "max_norm", "sparse"):
            if tied and key in asked:
                raise ValueError(
                    f"model.{key} needs an embedding of its own, and model.tied makes it the softmax's too"
                )
        return self

    def fresh_embedding(self, size: int) -> "Embedding | OneHot":
        """Fresh vectors of `size` tokens, of an embedding or one-hot."""
        from elman.nn.embedding import make_embedding

        if self.padding_index is not None and self.padding_index >= size:
            raise UserError(f"model.padding_index = {self.padding_index}: the vocabulary has ids from 0 to {size - 1}")
        return make_embedding(
            size,
            self.embedding,
            padding_idx=self.padding_index,
            max_norm=self.max_norm,
            norm_type=self.norm_type,
            scale_grad_by_freq=self.scale_by_frequency,
            sparse=self.sparse,
        )

    def shortened(self, weights: Arrays, *names: str) -> Arrays:
        """Weights for the compiled runtime: the rows of the tables of these names no longer than the section says."""
        return weights if self.max_norm is None else with_max_norm(weights, names, self.max_norm, self.norm_type)


EMBEDDING_KEYS = ("padding_index", "max_norm", "norm_type", "scale_by_frequency", "sparse")


class FeaturesSection(Section):
    """What a network sees of an image."""

    features: str = Field(
        "efficientnet-lite0",
        min_length=1,
        description="what is seen of an image: pixels, efficientnet-lite0, or a file of features, .npy or .safetensors",
    )
    image_size: int | None = Field(
        None, ge=8, le=1024, description="pixels of a side, to which images are scaled; 64 or 224 if not given"
    )
    image_hidden: int = Field(128, ge=1, description="size of the vector of each place of an image")
    image_dropout: float = Field(0.2, ge=0, lt=1, description="of the features, or of what is made of pixels")

    @field_validator("features")
    @classmethod
    def _file(cls, name: str) -> str:
        """A file by a name that holds wherever the model is used from."""
        from elman.batches.features import is_given

        return _full_name(name) if is_given(name) else name

    @property
    def seen(self) -> str:
        """What is seen of images, in a word."""
        return Path(self.features).name

    def trained_on(self, places: int, channels: int, named: str | None = None) -> "FeatureSet":
        """The features that a model was trained on, of so many numbers; `named` is another file of such, if it was."""
        from elman.batches.features import find_features, is_given

        name = self.features if named is None else named
        if named not in (None, self.features) and not is_given(self.features):
            raise UserError(f"the model was trained on {self.features}, not on {named}: leave the features out")
        found = find_features(name, self.image_size)
        if (found.places, found.channels) != (places, channels):
            raise UserError(
                f"{name} has {found.places} x {found.channels} numbers for an image, and the model was trained on "
                f"{places} x {channels} of {self.features}: give features of the same make"
            )
        return found

    def check_images(self, records: Sequence[Any]) -> None:
        """Refuse records whose images are not there; where features are given no image is needed."""
        from elman.batches.features import is_given

        if records and not is_given(self.features):
            check_images((record.image for record in records), source_of(records[0].where))


class ForcingSection(Section):
    """What a network that writes is told of the right tokens while it learns."""

    teacher_forcing: float = Field(
        1.0, ge=0, le=1, description="share of steps that see the right token before them, else the network's own"
    )
    teacher_forcing_end: float | None = Field(
        None, ge=0, le=1, description="the share at the end of training; it changes evenly from the one at the start"
    )
    teacher_forcing_by: Literal["token", "sequence"] = Field(
        "token", description="whether that is decided for each token or once for a sequence"
    )

    def forcing(self, train: TrainSettings, batches: Any) -> float:
        """The share by now; `batches` say how many an epoch has (`len`), and their `progress` in epochs."""
        if self.teacher_forcing_end is None:
            return float(self.teacher_forcing)
        epochs = train.epochs or EPOCHS
        if train.steps is not None:
            epochs = train.steps * train.accumulate / len(batches)
        done = min(1.0, batches.progress / epochs)
        return float(self.teacher_forcing + (self.teacher_forcing_end - self.teacher_forcing) * done)


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
