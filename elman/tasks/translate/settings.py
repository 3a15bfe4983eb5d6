"""The recipe of a translator: every key, its type and its bounds."""

from typing import ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from elman.errors import nearest
from elman.text import TokenizerSettings
from elman.train.recipe import BatchSection, Count, Section, TrainSettings

Kind = Literal["characters", "bytes", "words", "bpe", "unigram"]


class DataSettings(Section):
    """Where the pairs come from: a corpus of the catalogue, or the user's own files."""

    corpus: str | None = Field(None, description="a name that `elman data list` shows")
    train: tuple[str, ...] = Field((), description="two parallel files, source and target, or files of pairs")
    dev: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    format: Literal["parallel", "tsv", "csv", "jsonl", "cmudict"] | None = Field(
        None, description="follows the files' names"
    )
    source: str | None = Field(
        None, coerce_numbers_to_str=True, description="column or key of the source; of a corpus: its language"
    )
    target: str | None = Field(None, coerce_numbers_to_str=True, description="the same of the target")
    split_by: Literal["source", "target", "pair"] = Field(
        "pair", description="what must not stand in two parts where a part is split off"
    )
    dev_fraction: float = Field(0.05, gt=0, lt=1, description="of train, held out where dev is not given")
    test_fraction: float = Field(0.0, ge=0, lt=1, description="of train, held out where test is not given")
    dev_size: int = Field(2000, ge=1, description="pairs held out so, at most")
    test_size: int | None = Field(None, ge=1, description="pairs held out for test, at most")
    stress: bool = Field(True, description="of a pronouncing dictionary: vowels keep the digit of their stress")
    longest: int = Field(100, ge=1, description="training pairs with a side of more tokens are left out")
    drop_duplicates: bool = Field(False, description="of training pairs that are the same, one is kept")
    encoding: str = "utf-8"

    @field_validator("train", "dev", "test", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _parts_fit(self) -> "DataSettings":
        if self.dev_fraction + self.test_fraction >= 1:
            raise ValueError("data.dev_fraction and data.test_fraction leave nothing to train on")
        return self


class TextSettings(TokenizerSettings):
    """What a token is, on either side."""

    kind: Kind = "bpe"
    target_kind: Kind | None = Field(None, description="of the target, where it is another")
    target_size: int | None = Field(None, ge=3, description="of the target's vocabulary, where it is another")
    joint: bool = Field(False, description="one vocabulary for both sides")
    same_as: str | None = Field(
        None, description="a translator's folder, to take its vocabularies: models of an ensemble need the same"
    )

    @model_validator(mode="after")
    def _joint_is_one(self) -> "TextSettings":
        if self.joint and (self.target_kind or self.target_size):
            raise ValueError("text.joint makes one vocabulary: leave text.target_kind and text.target_size out")
        return self

    def side(self, target: bool) -> TokenizerSettings:
        """The settings of one side's tokenizer."""
        plain = self.model_dump(exclude={"target_kind", "target_size", "joint", "same_as"})
        if target:
            plain |= {"kind": self.target_kind or self.kind, "size": self.target_size or self.size}
        return TokenizerSettings.model_validate(plain)


class ModelSettings(Section):
    """The network: an encoder that reads both ways, a decoder that looks back at what was read."""

    cell: Literal["rnn", "elman", "lstm", "gru", "gru-cho", "mut1", "mut2", "mut3"] = "lstm"
    layers: int = Field(1, ge=1, le=64, description="of the encoder")
    decoder_layers: int | None = Field(None, ge=1, le=64, description="as many as the encoder's where not given")
    hidden: int = Field(256, ge=1, description="of the decoder")
    encoder_hidden: int | None = Field(
        None, ge=1, description="in each direction; so that both make model.hidden where not given"
    )
    bidirectional: bool = Field(True, description="the encoder reads both ways")
    reverse_source: bool = Field(False, description="the source is read from its end (Sutskever et al. 2014)")
    connections: Literal["plain", "residual", "dense"] = "plain"
    embedding: int = Field(256, ge=1)
    tied: Literal["none", "target", "all"] = Field(
        "target", description="the softmax is the target embedding; all: and that is the source's too"
    )
    bridge: Literal["copy", "linear", "zero"] = Field("linear", description="encoder's last state to decoder's first")
    decoder: Literal["plain", "bahdanau", "luong", "luong-feeding"] = "luong"
    attention: Literal[
        "dot", "scaled-dot", "general", "reduced-rank", "additive", "cosine", "location", "fixed-length"
    ] = "general"
    longest: int = Field(
        50, ge=1, description="source places that the location and fixed-length attentions can look at"
    )
    token_dropout: float = Field(0.0, ge=0, lt=1, description="share of tokens that are made unknown")
    input_dropout: float = Field(0.3, ge=0, lt=1, description="of embedded tokens")
    dropout: float = Field(0.3, ge=0, lt=1, description="between layers")
    output_dropout: float = Field(0.3, ge=0, lt=1, description="before the softmax")
    weight_dropout: float = Field(0.0, ge=0, lt=1, description="of the recurrent weights (DropConnect)")

    @field_validator("tied", mode="before")
    @classmethod
    def _none_is_a_word(cls, value: object) -> object:
        return "none" if value is None else value  # how `-s model.tied=none` arrives

    @model_validator(mode="after")
    def _parts_fit(self) -> "ModelSettings":
        both = 2 if self.bidirectional else 1
        if self.encoder_hidden is None and self.hidden % both:
            raise ValueError("model.hidden should be even, half of it for each direction of the encoder")
        memory = both * self.encoder_size
        if self.decoder != "plain" and self.attention in ("dot", "scaled-dot", "cosine") and memory != self.hidden:
            raise ValueError(
                f"model.attention = {self.attention} compares the decoder's {self.hidden} entries with the encoder's "
                f"{memory}: leave model.encoder_hidden out, or take general"
            )
        if self.bridge == "copy" and memory != self.hidden:
            raise ValueError(f"model.bridge = copy cannot put {memory} entries into {self.hidden}: take linear")
        if self.attention == "fixed-length" and self.decoder != "bahdanau":
            raise ValueError("model.attention = fixed-length sees the step's input: it goes with the bahdanau decoder")
        return self

    @property
    def encoder_size(self) -> int:
        """The encoder's hidden size in each direction."""
        return self.encoder_hidden or self.hidden // (2 if self.bidirectional else 1)

    @property
    def places(self) -> int | None:
        """How many places of a source the attention can look at, from the first one read; None where all."""
        fixed = self.attention in ("location", "fixed-length") and self.decoder != "plain"
        return self.longest if fixed else None


class LossSettings(Section):
    """What the network is trained to do."""

    smoothing: float = Field(0.1, ge=0, lt=1, description="share of the probability that is spread over all tokens")
    teacher_forcing: float = Field(
        1.0, ge=0, le=1, description="share of steps that see the right token before them, else the network's own"
    )
    teacher_forcing_end: float | None = Field(
        None, ge=0, le=1, description="the share at the end of training; it changes evenly from the one at the start"
    )


class BatchSettings(BatchSection):
    """How pairs are put together."""

    chosen: ClassVar[tuple[str, int, int]] = ("tokens", 2048, 128)

    tokens: int | None = Field(
        None,
        ge=1,
        description="target tokens side by side, in pairs of similar length; 2048, or down to 128 for small data, "
        "if not given",
    )


class SearchSettings(Section):
    """How a translation is looked for where the user does not say it."""

    beam: Count = Field(5, ge=1, description="hypotheses side by side; 1 is greedy")
    length_power: float = Field(1.0, ge=0, description="a score is divided by the length to this power")
    coverage: float = Field(0.0, ge=0, description="weight of the penalty for source places not looked at")
    length_factor: float = Field(3.0, gt=0, description="tokens at most, as a multiple of the source's ...")
    length_extra: Count = Field(10, ge=1, description="... and so many more")


class ReportSettings(Section):
    """How the scores are counted."""

    references: Literal["pair", "source"] = Field(
        "pair", description="a line is a pair, or a source with all its targets, each of which is right"
    )
    tokenize: str | None = Field(None, description="how sacrebleu cuts words for BLEU: 13a unless set; char, zh, ...")
    baselines: bool = Field(True, description="copying the source, and the most similar training pair's target")

    @field_validator("tokenize")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        from sacrebleu.metrics.bleu import BLEU  # slow to import, and mostly not needed

        if value is not None and value not in BLEU.TOKENIZERS:
            raise ValueError(f"report.tokenize: {nearest(value, BLEU.TOKENIZERS)}")
        return value


class TranslateRecipe(Section):
    """Everything a translator's run depends on."""

    task: Literal["translate"] = "translate"
    data: DataSettings = DataSettings()
    text: TextSettings = TextSettings()
    model: ModelSettings = ModelSettings()
    loss: LossSettings = LossSettings()
    batch: BatchSettings = BatchSettings()
    train: TrainSettings = TrainSettings(average="ema")
    search: SearchSettings = SearchSettings()
    report: ReportSettings = ReportSettings()

    @model_validator(mode="after")
    def _one_matrix(self) -> "TranslateRecipe":
        if self.model.tied == "all" and not self.text.joint:
            raise ValueError("model.tied = all makes one matrix of both embeddings: it needs text.joint = true")
        return self
