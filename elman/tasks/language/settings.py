"""The recipe of a language model: every key, its type and its bounds."""

from typing import ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from elman.text import TokenizerSettings
from elman.train.recipe import BatchSection, Section, TrainSettings


class DataSettings(Section):
    """Where the text comes from: a corpus of the catalogue, or the user's own files."""

    corpus: str | None = Field(None, description="a name that `elman data list` shows")
    train: tuple[str, ...] = ()
    dev: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    dev_fraction: float = Field(0.1, gt=0, lt=1, description="held out from the end of train where dev is not given")
    dev_characters: int = Field(500_000, ge=2, description="held out at most")
    encoding: str = "utf-8"
    unit: Literal["stream", "line"] = Field("stream", description="one running text, or one text a line")
    text_column: str | None = Field(
        None, coerce_numbers_to_str=True, description="name or number of the column, in tables"
    )
    label_column: str | None = Field(
        None, coerce_numbers_to_str=True, description="the model is told this column's value"
    )

    @field_validator("train", "dev", "test", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _labels_need_lines(self) -> "DataSettings":
        if self.label_column is not None and self.unit != "line":
            raise ValueError('data.label_column needs data.unit = "line"')
        return self


class ModelSettings(Section):
    """The network, or the n-gram model in its place."""

    kind: Literal["recurrent", "window", "ngram"] = "recurrent"
    cell: Literal["rnn", "elman", "lstm", "gru", "gru-cho", "mut1", "mut2", "mut3"] = "lstm"
    nonlinearity: Literal["tanh", "relu", "logistic"] = Field("tanh", description="of the rnn cell")
    layers: int = Field(2, ge=1, le=64)
    hidden: int = Field(256, ge=1)
    projection: int = Field(0, ge=0, description="size an LSTM's output is projected to; 0 is none")
    embedding: int = Field(128, ge=0, description="0 is one-hot input")
    label_embedding: int = Field(16, ge=1)
    direction: Literal["forward", "backward", "both"] = "forward"
    connections: Literal["plain", "residual", "dense"] = "plain"
    learned_state: bool = False
    tied: bool = Field(False, description="one matrix for embedding and softmax")
    softmax: Literal["full", "sampled", "adaptive"] = "full"
    samples: int = Field(4096, ge=1, description="negative words of the sampled softmax")
    initialise: Literal["uniform", "orthogonal", "identity"] = "uniform"
    forget_bias: float | None = Field(None, description="of the LSTM; none leaves PyTorch's initialisation")
    dropout: float = Field(0.2, ge=0, lt=1, description="between layers")
    input_dropout: float = Field(0.0, ge=0, lt=1, description="of embedded tokens")
    output_dropout: float = Field(0.2, ge=0, lt=1, description="before the softmax")
    locked: bool = Field(True, description="these three have the same mask for all steps of a window")
    embedding_dropout: float = Field(0.0, ge=0, lt=1, description="of whole words")
    weight_dropout: float = Field(0.0, ge=0, lt=1, description="of the recurrent weights (DropConnect)")
    window: int = Field(5, ge=1, description="tokens the window model sees")
    order: int = Field(5, ge=1, le=12, description="of the n-gram model")

    @model_validator(mode="after")
    def _parts_fit(self) -> "ModelSettings":
        if self.nonlinearity != "tanh" and self.cell not in ("rnn", "elman"):
            raise ValueError("model.nonlinearity goes with the rnn cell only")
        if self.forget_bias is not None and self.cell != "lstm":
            raise ValueError("model.forget_bias goes with the lstm cell only")
        if self.projection and self.cell != "lstm":
            raise ValueError("model.projection goes with the lstm cell only")
        if self.projection and self.projection >= self.hidden:
            raise ValueError("model.projection should be smaller than model.hidden")
        if self.tied and not self.embedding:
            raise ValueError("model.tied needs model.embedding above 0")
        if self.tied and self.softmax == "adaptive":
            raise ValueError("model.tied does not go with the adaptive softmax")
        if self.kind == "ngram" and self.direction != "forward":
            raise ValueError('model.kind = "ngram" reads forward only')
        return self


class BatchSettings(BatchSection):
    """How text is cut into batches."""

    chosen: ClassVar[tuple[str, int, int]] = ("size", 32, 8)

    size: int | None = Field(
        None,
        ge=1,
        description="streams, or lines, side by side; 32, or down to 8 for small data, if not given",
    )
    steps: int = Field(64, ge=1, description="tokens the gradient reaches back")
    bptt: Literal["regular", "random", "full"] = "regular"
    reset_documents: bool = Field(True, description="forget the state where a document begins")
    forget: float = Field(0.01, ge=0, le=1, description="chance to drop a stream's state before a window")


class BaselineSettings(Section):
    """The n-gram model that every report shows beside the network."""

    order: int = Field(5, ge=0, le=12, description="0 leaves it out")
    tokens: int = Field(1_000_000, ge=1, description="of the training text, at most")


class LanguageRecipe(Section):
    """Everything a language-model run depends on."""

    task: Literal["lm"] = "lm"
    data: DataSettings = DataSettings()
    text: TokenizerSettings = TokenizerSettings()
    model: ModelSettings = ModelSettings()
    batch: BatchSettings = BatchSettings()
    train: TrainSettings = TrainSettings()
    baseline: BaselineSettings = BaselineSettings()

    @model_validator(mode="after")
    def _labels_need_a_network(self) -> "LanguageRecipe":
        if self.data.label_column is not None and self.model.kind == "ngram":
            raise ValueError('model.kind = "ngram" cannot be told labels: leave data.label_column out')
        return self
