"""How text is to be cut into tokens, as a recipe says it."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

UNK = "<unk>"
EOS = "<eos>"
BOS = "<bos>"
PAD = "<pad>"
BYTES = 256
SUBWORD_SIZE = 8000

Kind = Literal["characters", "codepoints", "bytes", "words", "bpe", "unigram"]
Count = Annotated[int, Field(ge=0, lt=2**63)]
"""How often a token stood in the training text, as a file holds it."""


class TokenizerSettings(BaseModel):
    """What a token is, and which of them get an id of their own.

    `size` is the largest vocabulary allowed, the special tokens included. `<unk>` (unknown) and `<eos>` (end) are
    always there. With `bos` a text begins with a token of its own, `<bos>`; else `<eos>` stands before it too. With
    `pad` there is `<pad>` to fill texts up with. `specials` adds more after them.

    >>> settings = TokenizerSettings(kind="words", min_count=2, bos=True, pad=True, specials=("<sep>",))
    >>> settings.special_tokens
    ['<unk>', '<eos>', '<bos>', '<pad>', '<sep>']
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Kind = "characters"
    size: int | None = Field(default=None, ge=3, strict=True)
    min_count: int = Field(default=1, ge=1, strict=True)  # true is no number
    lowercase: bool = False
    normalise: Literal["none", "NFC", "NFKC"] = "none"
    bos: bool = False
    pad: bool = False
    specials: tuple[str, ...] = ()

    @property
    def tokenizer(self) -> "TokenizerSettings":
        """The settings of the tokenizer alone, without what the section of a task has beside them."""
        return TokenizerSettings.model_validate({name: getattr(self, name) for name in TokenizerSettings.model_fields})

    @field_validator("normalise", mode="before")
    @classmethod
    def _none_is_a_word(cls, value: object) -> object:
        return "none" if value is None else value  # how `-s text.normalise=none` arrives

    @field_validator("specials")
    @classmethod
    def _distinct(cls, specials: tuple[str, ...], known: ValidationInfo) -> tuple[str, ...]:
        names = [*_first_tokens(known.data.get("bos", False), known.data.get("pad", False)), *specials]
        if len(set(names)) < len(names) or not all(specials):
            first = " and ".join(names[: len(names) - len(specials)])
            raise ValueError(f"special tokens should differ from each other and from {first}")
        if any(name != "".join(name.split()) for name in specials):
            raise ValueError("special tokens should not hold blanks")
        return specials

    @model_validator(mode="after")
    def _room_for_bytes(self) -> "TokenizerSettings":
        floor = BYTES + len(self.special_tokens)
        if self.kind in ("bytes", "bpe", "unigram") and self.size is not None and self.size < floor:
            raise ValueError(
                f"text.size should be at least {floor} for {self.kind}: the {BYTES} bytes and the special tokens"
            )
        return self

    @property
    def special_tokens(self) -> list[str]:
        """The tokens that hold the first ids."""
        return [*_first_tokens(self.bos, self.pad), *self.specials]

    def stored(self) -> dict[str, Any]:
        """As a `tokenizer.json` has them; what is not there was not asked for, as in files older than the key."""
        plain = self.model_dump(mode="json")
        return {name: value for name, value in plain.items() if value or name not in ("bos", "pad")}


def _first_tokens(bos: bool, pad: bool) -> list[str]:
    return [UNK, EOS, *[BOS] * bos, *[PAD] * pad]
