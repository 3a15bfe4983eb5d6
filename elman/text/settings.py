"""How text is to be cut into tokens, as a recipe says it."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

UNK = "<unk>"
EOS = "<eos>"
BYTES = 256
SUBWORD_SIZE = 8000

Kind = Literal["characters", "bytes", "words", "bpe", "unigram"]
Count = Annotated[int, Field(ge=0, lt=2**63)]
"""How often a token stood in the training text, as a file holds it."""


class TokenizerSettings(BaseModel):
    """What a token is, and which of them get an id of their own.

    `size` is the largest vocabulary allowed, the special tokens included. `<unk>` and `<eos>` are always
    there; `specials` adds more after them.

    >>> settings = TokenizerSettings(kind="words", min_count=2, specials=("<pad>",))
    >>> settings.special_tokens
    ['<unk>', '<eos>', '<pad>']
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Kind = "characters"
    size: int | None = Field(default=None, ge=3, strict=True)
    min_count: int = Field(default=1, ge=1, strict=True)  # true is no number
    lowercase: bool = False
    normalise: Literal["none", "NFC", "NFKC"] = "none"
    specials: tuple[str, ...] = ()

    @field_validator("specials")
    @classmethod
    def _distinct(cls, specials: tuple[str, ...]) -> tuple[str, ...]:
        names = [UNK, EOS, *specials]
        if len(set(names)) < len(names) or not all(specials):
            raise ValueError(f"special tokens should differ from each other and from {UNK} and {EOS}")
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
        return [UNK, EOS, *self.specials]
