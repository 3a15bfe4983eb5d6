"""Character models inside a tagger: what its config keeps of them, and their states while it is trained.

elman.fit("tag", train="news.conll", settings={"model.strings": ["runs/forward", "runs/backward"]}, out="runs/entities")
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from elman.batches.examples import by_length
from elman.errors import UserError
from elman.files import Stored
from elman.ragged import Ragged
from elman.runtime.layers import Layers
from elman.runtime.quantise import dequantise
from elman.tasks.sections import LayersSection
from elman.tasks.transfer import embedding_size, layers_of, read_language_model, vectors_of
from elman.text import Tokenizer
from elman.text.encoder import words
from elman.text.strings import StringReader

if TYPE_CHECKING:
    from elman.nn.strings import StringEmbedding, StringEmbeddings
    from elman.tasks.language import LanguageModel

KINDS = ("characters", "bytes")
"""What the tokens of a model of strings may be."""
CACHE_BYTES = 1 << 30
"""States that are kept while a tagger is trained, at most; those of more sentences are computed each time."""
Make = Callable[[Ragged], np.ndarray]
"""What reads sentences with the character models: N x S."""
SENTENCES, TOKENS = 128, 1 << 14  # read at a time, at most: tokens here are words


class StringModel(Stored):
    """One tower of a character model, as a tagger's config.json holds it; its weights stand among the tagger's."""

    name: str
    backward: bool
    start_id: int = Field(ge=0)
    embedding: int = Field(ge=1)
    layers: LayersSection
    tokenizer: dict[str, Any]

    def described(self, number: int) -> Layers:
        """Its layers in plain words; `number` is its own among those of the tagger."""
        return self.layers.described(f"strings.{number}.body", self.embedding)

    def reader(self, where: str) -> StringReader:
        """How it reads sentences; `where` is what to name if the tokenizer is damaged."""
        import json

        tokenizer = Tokenizer.from_json(json.dumps(self.tokenizer), where)
        if self.start_id >= tokenizer.size:
            raise UserError(f"{where} is damaged: 'start_id' = {self.start_id}, and ids go to {tokenizer.size - 1}")
        return StringReader(tokenizer, self.start_id, self.backward)

    def build(self, size: int) -> "StringEmbedding":
        """Its network; `size` is how many characters it knows."""
        from torch import nn

        from elman.nn.strings import StringEmbedding

        body = self.layers.model_copy(update={"dropout": 0.0, "weight_dropout": 0.0}).body(self.embedding)
        return StringEmbedding(nn.Embedding(size, self.embedding), body)


def read_strings(folder: str) -> "LanguageModel":
    """The character model of a folder that `model.strings` names."""
    language = read_language_model(folder, "model.strings", None)
    if (kind := language.tokenizer.settings.kind) not in KINDS:
        raise UserError(
            f"model.strings: {folder} reads {kind}, and strings are of characters or bytes: give such a model"
        )
    return language


def string_models(languages: Mapping[str, "LanguageModel"]) -> tuple[StringModel, ...]:
    """What a tagger keeps of character models, by their folders: each direction that one reads in by itself."""
    import json

    return tuple(
        StringModel(
            name=Path(folder).name,
            backward=backward,
            start_id=language.reading.start_id,
            embedding=embedding_size(language),
            layers=LayersSection.model_validate(layers_of(language.settings)),
            tokenizer=json.loads(language.tokenizer.to_json()),
        )
        for folder, language in languages.items()
        for backward in _directions(language)
    )


def _directions(language: "LanguageModel") -> tuple[bool, ...]:
    from elman.nn.towers import BACKWARD

    return BACKWARD[language.settings.direction]


def fill_strings(languages: Iterable["LanguageModel"], strings: "StringEmbeddings") -> None:
    """Put the weights of character models where a fresh tagger has them."""
    import torch

    modules: Any = iter(strings)
    with torch.no_grad():
        for language in languages:
            weights = dequantise(language.weights())
            for tower in range(len(_directions(language))):
                module = next(modules)
                module.embedding.weight.copy_(torch.from_numpy(vectors_of(language, weights)))
                for name, parameter in module.body.named_parameters():
                    parameter.copy_(torch.from_numpy(weights[f"bodies.{tower}.{name}"]))


class StringStates:
    """The states of sentences that are read again and again while a tagger is trained: they do not change.

    >>> make = lambda sentences: print(len(sentences)) or np.ones((len(sentences.data), 2), np.float32)
    >>> states = StringStates()
    >>> states.keep([("a", "b"), ("c",)], make)
    2
    >>> states.of(words([["c"], ["a", "b"]]), make).shape
    (3, 2)
    >>> states.of(words([["c"], ["new"]]), make).shape
    1
    (2, 2)
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[str, ...], np.ndarray] = {}
        self._bytes = 0

    def keep(self, sentences: Iterable[Sequence[str]], make: Make) -> None:
        """Compute those of some sentences, and keep them as long as there is room."""
        new = words([one for one in dict.fromkeys(map(tuple, sentences)) if one not in self._kept])
        for rows in by_length(new.lengths, SENTENCES, tokens=TOKENS) if len(new) else ():
            if self._bytes >= CACHE_BYTES:
                return
            part = new.take(rows)
            found = part.with_data(np.arange(len(part.data)))
            states = make(part)  # N x S
            self._bytes += states.nbytes
            for number in range(len(part)):
                self._kept[tuple(part[number])] = states[found[number]]

    def of(self, sentences: Ragged, make: Make) -> np.ndarray:
        """The states of all words (N x S): those that are kept, and those of other sentences computed now."""
        keys = [tuple(one) for one in sentences]
        missing = [number for number, key in enumerate(keys) if key not in self._kept]
        rest = sentences.take(np.array(missing, np.int64)) if missing else None
        made = {} if rest is None else dict(zip(missing, _cut(rest, make(rest)), strict=True))
        return np.concatenate([made[number] if number in made else self._kept[key] for number, key in enumerate(keys)])


def _cut(sentences: Ragged, states: np.ndarray) -> list[np.ndarray]:
    return np.split(states, sentences.starts[1:])
