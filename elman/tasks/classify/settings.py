"""The recipe of a classifier: every key, its type and its bounds."""

from typing import ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from elman.text import TokenizerSettings
from elman.train.recipe import BatchSection, Section, TrainSettings


class DataSettings(Section):
    """Where the texts come from: a corpus of the catalogue, or the user's own files."""

    corpus: str | None = Field(None, description="a name that `elman data list` shows")
    train: tuple[str, ...] = ()
    dev: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    format: Literal["csv", "tsv", "jsonl", "lines", "trees", "files", "folders"] | None = Field(
        None, description="guessed from names and first lines where it is not given"
    )
    text_column: str | None = Field(
        None, coerce_numbers_to_str=True, description="name or number; guessed if not given"
    )
    label_column: str | None = Field(
        None, coerce_numbers_to_str=True, description="name or number; guessed if not given"
    )
    separator: str | None = Field(None, min_length=1, description="cuts a label into several")
    several: bool | None = Field(None, description="several labels a text; seen from the texts if not given")
    classes: Literal["fine", "coarse", "binary"] = "fine"
    dev_fraction: float = Field(0.1, ge=0, lt=1, description="of train, held out where dev is not given")
    test_fraction: float = Field(0.0, ge=0, lt=1, description="of train, held out where test is not given")
    folds: int = Field(0, ge=0, description="parts of a cross-validation; 0 is none")
    fold: int | None = Field(None, ge=1, description="the part to test on, where only one is to be run")
    encoding: str | None = Field(None, description="the corpus' own, or utf-8")

    @field_validator("train", "dev", "test", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _parts_fit(self) -> "DataSettings":
        if self.folds == 1:
            raise ValueError("data.folds should be 0, or 2 and more")
        if self.folds and (self.test or self.test_fraction):
            raise ValueError("data.folds makes test sets of the training texts: leave data.test out")
        if self.fold is not None and self.fold > self.folds:
            raise ValueError("data.fold should be at most data.folds")
        if self.dev_fraction + self.test_fraction >= 1:
            raise ValueError("data.dev_fraction and data.test_fraction leave nothing to train on")
        if self.several is False and self.separator is not None:
            raise ValueError("data.separator makes several labels of one: leave it out, or data.several")
        return self


class TextSettings(TokenizerSettings):
    """What a token is. Sub-words unless told otherwise, since they can read any text."""

    kind: Literal["characters", "bytes", "words", "bpe", "unigram"] = "bpe"
    lowercase: bool = True


class ModelSettings(Section):
    """The network."""

    cell: Literal["rnn", "elman", "lstm", "gru", "gru-cho", "mut1", "mut2", "mut3"] = "gru"
    nonlinearity: Literal["tanh", "relu", "logistic"] = Field("tanh", description="of the rnn cell")
    layers: int = Field(1, ge=1, le=64)
    hidden: int = Field(128, ge=1)
    bidirectional: bool = True
    pooling: Literal["last", "mean", "max", "attention"] = Field("max", description="how steps become one vector")
    embedding: int = Field(128, ge=1)
    embedding_scale: float = Field(
        0.1, gt=0, description="of the random vectors that tokens begin with; small for words"
    )
    characters: int = Field(0, ge=0, description="hidden size of a character-level network beside the words; 0 is none")
    character_embedding: int = Field(32, ge=1)
    edges: bool = Field(True, description="an end token stands before and behind each text")
    longest: int = Field(2000, ge=1, description="tokens of a text that are read; what comes after is left out")
    connections: Literal["plain", "residual", "dense"] = "plain"
    initialise: Literal["uniform", "orthogonal", "identity"] = "uniform"
    forget_bias: float | None = Field(None, description="of the LSTM; none leaves PyTorch's initialisation")
    token_dropout: float = Field(0.0, ge=0, lt=1, description="share of tokens that are made unknown")
    input_dropout: float = Field(0.3, ge=0, lt=1, description="of embedded tokens")
    dropout: float = Field(0.3, ge=0, lt=1, description="between layers")
    output_dropout: float = Field(0.5, ge=0, lt=1, description="of the text's vector")
    locked: bool = Field(False, description="input_dropout and dropout have the same mask for all steps of a text")
    weight_dropout: float = Field(0.0, ge=0, lt=1, description="of the recurrent weights (DropConnect)")

    @model_validator(mode="after")
    def _parts_fit(self) -> "ModelSettings":
        if self.nonlinearity != "tanh" and self.cell not in ("rnn", "elman"):
            raise ValueError("model.nonlinearity goes with the rnn cell only")
        if self.forget_bias is not None and self.cell != "lstm":
            raise ValueError("model.forget_bias goes with the lstm cell only")
        return self


class LossSettings(Section):
    """What the network is trained to do."""

    smoothing: float = Field(0.0, ge=0, lt=1, description="share of the probability that is spread over all classes")
    class_weights: tuple[str, ...] = Field(
        (), description='"balanced" by how rare a class is, or `["spam=2.5"]`; what is not named weighs 1'
    )

    @field_validator("class_weights", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("class_weights")
    @classmethod
    def _each_a_weight(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if value != ("balanced",):
            for entry in value:
                try:
                    positive = float(entry.rpartition("=")[2]) > 0 and "=" in entry
                except ValueError:
                    positive = False
                if not positive:
                    raise ValueError(f'loss.class_weights: {entry!r} should be "balanced", or LABEL=WEIGHT')
        return value


class BatchSettings(BatchSection):
    """How texts are put together."""

    chosen: ClassVar[tuple[str, int, int]] = ("size", 32, 8)

    size: int | None = Field(
        None,
        ge=1,
        description="texts side by side, of similar length; 32, or down to 8 for small data, if not given",
    )


class BaselineSettings(Section):
    """The character n-gram regression that every report shows beside the network."""

    ngrams: bool = True
    texts: int = Field(50_000, ge=1, description="of the training texts, at most")


class ClassifyRecipe(Section):
    """Everything a classifier's run depends on."""

    task: Literal["classify"] = "classify"
    data: DataSettings = DataSettings()
    text: TextSettings = TextSettings()
    model: ModelSettings = ModelSettings()
    loss: LossSettings = LossSettings()
    batch: BatchSettings = BatchSettings()
    train: TrainSettings = TrainSettings()
    baseline: BaselineSettings = BaselineSettings()

    @model_validator(mode="after")
    def _characters_need_words(self) -> "ClassifyRecipe":
        if self.model.characters and self.text.kind != "words":
            raise ValueError('model.characters spells words: it needs text.kind = "words"')
        return self
