"""The recipe of a tagger: every key, its type and its bounds."""

from typing import ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from elman.train.recipe import BatchSection, Section, TrainSettings


class DataSettings(Section):
    """Where the tagged sentences come from: a corpus of the catalogue, or the user's own files."""

    corpus: str | None = Field(None, description="a name that `elman data list` shows")
    train: tuple[str, ...] = ()
    dev: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    dev_fraction: float = Field(0.1, gt=0, lt=1, description="sentences of train held out where dev is not given")
    format: Literal["conll", "conllu", "jsonl"] | None = Field(None, description="none follows the file's suffix")
    token_column: str | None = Field(
        None, coerce_numbers_to_str=True, description="conll: a number from 1; jsonl: a field"
    )
    tag_column: str | None = Field(
        None, coerce_numbers_to_str=True, description="the same; conllu: upos, xpos, deprel, feats.NAME"
    )
    comments: bool = Field(False, description="lines of columns that begin with # are passed over")
    scheme: Literal["auto", "plain", "BIO", "IOB1", "BIOES"] = Field(
        "auto", description="how the tags write spans; plain: each tag stands for itself"
    )
    encoding: str = "utf-8"

    @field_validator("train", "dev", "test", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value


class TextSettings(Section):
    """What of a word is looked at."""

    lowercase: bool = Field(True, description="words and affixes are looked up in small letters")
    min_count: int = Field(1, ge=1, description="a word seen less often is unknown")
    size: int | None = Field(None, ge=2, description="words at most")
    character_count: int = Field(2, ge=1, description="a character seen less often is unknown")
    prefixes: tuple[int, ...] = Field((2, 3), description="lengths of the beginnings looked at")
    suffixes: tuple[int, ...] = Field((1, 2, 3, 4), description="lengths of the endings looked at")
    affix_count: int = Field(3, ge=1, description="a beginning or ending seen less often is unknown")
    longest: int = Field(32, ge=2, description="characters of a word at most: its first and its last")
    vectors: str | None = Field(None, description="a file of pre-trained word vectors, word2vec or GloVe text")
    vector_words: int = Field(200_000, ge=0, description="words of that file that are known beside those of train")

    @field_validator("prefixes", "suffixes")
    @classmethod
    def _lengths(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if any(length < 1 for length in value) or len(set(value)) < len(value):
            raise ValueError("text.prefixes and text.suffixes are different lengths from 1")
        return value


class ModelSettings(Section):
    """The network: word vectors, recurrent layers that read both ways, softmax or CRF."""

    cell: Literal["rnn", "elman", "lstm", "gru", "gru-cho", "mut1", "mut2", "mut3"] = "lstm"
    layers: int = Field(2, ge=1, le=64)
    hidden: int = Field(200, ge=1, description="in each direction")
    connections: Literal["plain", "residual", "dense"] = "plain"
    embedding: int = Field(100, ge=0, description="of words; 0 leaves them out; with text.vectors it is their size")
    freeze_vectors: bool = Field(False, description="pre-trained vectors stay as they are")
    character_embedding: int = Field(32, ge=1)
    character_hidden: int = Field(50, ge=0, description="of the character RNN, in each direction; 0 leaves it out")
    character_cell: Literal["rnn", "elman", "lstm", "gru"] = "lstm"
    case_embedding: int = Field(8, ge=0, description="0 leaves case and affixes out")
    affix_embedding: int = Field(16, ge=1)
    crf: bool = Field(False, description="tags scored as a whole sequence; else each by itself")
    scheme: Literal["BIO", "BIOES"] = Field("BIOES", description="that spans are learned in")
    dropout: float = Field(0.4, ge=0, lt=1, description="between layers")
    input_dropout: float = Field(0.4, ge=0, lt=1, description="of the words' vectors")
    output_dropout: float = Field(0.4, ge=0, lt=1, description="before the softmax")
    character_dropout: float = Field(0.0, ge=0, lt=1, description="of embedded characters")
    locked: bool = Field(True, description="these have the same mask for all tokens of a sentence")
    weight_dropout: float = Field(0.0, ge=0, lt=1, description="of the recurrent weights (DropConnect)")
    word_dropout: float = Field(
        0.25, ge=0, description="a: a word seen n times is made unknown in a / (a + n) of its places"
    )

    @model_validator(mode="after")
    def _sees_something(self) -> "ModelSettings":
        if not (self.embedding or self.character_hidden or self.case_embedding):
            raise ValueError(
                "a tagger has to see words: give model.embedding, model.character_hidden or model.case_embedding"
            )
        return self


class BatchSettings(BatchSection):
    """How sentences are put together."""

    chosen: ClassVar[tuple[str, int, int]] = ("size", 32, 8)

    size: int | None = Field(
        None, ge=1, description="sentences in an update; 32, or down to 8 for small data, if not given"
    )
    made_up: float = Field(0.0, ge=0, le=1, description="share of words that are made up of others of their tag")
    swapped: float = Field(0.0, ge=0, le=1, description="share of spans in whose place another one is put")


class ReportSettings(Section):
    """How the scores are counted."""

    strict: bool = Field(False, description="spans that the scheme would not write so are none; else as conlleval")


class TagRecipe(Section):
    """Everything that a tagger's run depends on."""

    task: Literal["tag"] = "tag"
    data: DataSettings = DataSettings()
    text: TextSettings = TextSettings()
    model: ModelSettings = ModelSettings()
    batch: BatchSettings = BatchSettings()
    train: TrainSettings = TrainSettings(average="ema")
    report: ReportSettings = ReportSettings()

    @model_validator(mode="after")
    def _vectors_stay(self) -> "TagRecipe":
        if self.model.freeze_vectors and self.text.vectors is None:
            raise ValueError("model.freeze_vectors needs text.vectors, a file to take them from")
        if self.model.freeze_vectors and self.train.weight_decay:
            raise ValueError("train.weight_decay would change frozen vectors: leave it out, or model.freeze_vectors")
        return self
