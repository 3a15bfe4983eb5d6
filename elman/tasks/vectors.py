"""Embeddings that begin with word vectors: `-s model.vectors=FOLDER|FILE`, for whatever task has words.

A word that the vectors know, as it stands or in small letters, begins with its vector. Every other token begins as it
would without them, at random and as large as the section says. The vectors are read when a run begins, and once more
where it is resumed; a model's folder has them inside.
"""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from pydantic import Field, model_validator

from elman.errors import UserError
from elman.tasks.transfer import with_units
from elman.text import Tokenizer, fit_tokenizer
from elman.text.vector_files import read_vectors
from elman.text.vectors import WordVectors
from elman.text.words import WordTokenizer
from elman.train.recipe import Section

if TYPE_CHECKING:
    from elman.tasks.task import Data, Say, Task, Training

R = TypeVar("R", bound=Section)


class VectorsSection(Section):
    """Word vectors to begin with, in a section `model` that has an `embedding`."""

    takes_their_size: ClassVar[bool] = False
    """Whether `embedding` is the vectors' size whatever it says; else one that differs is refused."""

    vectors: str | None = Field(None, description="word vectors to begin with: a model's folder, or a file")
    vectors_frozen: bool | float = Field(
        False, description="true: they stay as they are; a number: for so many epochs, and are tuned then"
    )

    @model_validator(mode="after")
    def _frozen_what(self) -> "VectorsSection":
        named = [key for key in ("vectors", "target_vectors") if getattr(self, key, None)]
        if self.vectors_frozen < 0:
            raise ValueError("model.vectors_frozen should be true, false, or a number of epochs from 0 on")
        if self.vectors_frozen and not named:
            raise ValueError("model.vectors_frozen needs model.vectors, a folder or a file to take them from")
        if self.vectors_frozen and getattr(self, "max_norm", None) is not None:
            raise ValueError("model.max_norm would shorten frozen vectors: leave it out, or model.vectors_frozen")
        for key, start in (("vectors", "start"), ("target_vectors", "decoder_start")):
            if key in named and getattr(self, start, None):
                raise ValueError(f"model.{start} has vectors of its own: leave model.{key} out")
        one_hot = getattr(self, "one_hot", False) or (
            not self.takes_their_size and not getattr(self, "embedding", True)
        )
        if named and one_hot:
            raise ValueError(f"model.{named[0]} is for an embedding, and one-hot input has none: leave one of them out")
        return self


class Embedded(NamedTuple):
    """An embedding of a network, by the name of the attribute, and the tokens of its rows with their counts."""

    attribute: str
    tokens: Sequence[str]
    counts: np.ndarray


Found = dict[str, WordVectors]
"""The vectors that a section names, by its key."""


def word_vectors(
    path: Path | str, *, first: int | None = None, wanted: Collection[str] = (), lowercase: bool = False
) -> WordVectors:
    """The vectors of a file, or of the folder of word vectors: the first so many words, and the `wanted` ones.

    Of a model with n-grams every wanted word has one.
    """
    if not Path(path).is_dir():
        return read_vectors(path, first=first, wanted=wanted, lowercase=lowercase)
    from elman.tasks.embed import VectorModel

    known = VectorModel.load(path).vectors
    rows: dict[str, np.ndarray] = {}
    for place, word in enumerate(known.words):
        word = word.lower() if lowercase else word
        if first is None or place < first or word in wanted:
            rows.setdefault(word, known.matrix[place])
    if known.unseen is not None:
        made = {word: known.unseen(word) for word in wanted if word not in rows}
        rows |= {word: vector for word, vector in made.items() if vector is not None}
    if not rows:
        raise UserError(f"{path} has none of the words that are looked for: give vectors of such words")
    return WordVectors(list(rows), np.stack(list(rows.values())))


def _named_vectors(key: str, path: str, **options: Any) -> WordVectors:
    """The vectors that a key of `model` names."""
    from elman.tasks.recipes import check_made

    check_made(f"model.{key}", path, "embed")
    try:
        return word_vectors(path, **options)
    except UserError as error:
        raise UserError(f"model.{key}: {error}") from None


def check_vectors(recipe: Any) -> None:
    """Refuse vectors that cannot be read, or that no recipe has made yet."""
    for key in ("vectors", "target_vectors"):
        if (path := getattr(recipe.model, key, None)) is not None:
            _named_vectors(key, path, first=1, wanted=set())


def known_vectors(recipe: Any, data: "Data[Any]", words: Iterable[str]) -> WordVectors | None:
    """The vectors that a recipe names, if any: of the words of the training records, and of `text.vector_words` more.

    They are read once, and kept among the facts of the data.
    """
    text, path = recipe.text, recipe.model.vectors
    if path is None:
        return None
    if "vectors" not in data.facts:
        seen = {word.lower() if text.lowercase else word for word in words}
        options: dict[str, Any] = {"first": text.vector_words, "lowercase": text.lowercase}
        data.facts["vectors"] = _named_vectors("vectors", path, wanted=seen, **options)
    return data.facts["vectors"]  # type: ignore[no-any-return]


def words_beside(recipe: Any, data: "Data[Any]", texts: Iterable[str]) -> Sequence[str]:
    """The words of a recipe's vectors, known beside those of training texts; none where tokens are no words."""
    if recipe.text.kind != "words":
        return ()
    vectors = known_vectors(recipe, data, (word for text in texts for word in text.split()))
    return () if vectors is None else vectors.words


def fit_with_vectors(recipe: Any, data: "Data[Any]", texts: Sequence[str]) -> Tokenizer:
    """A tokenizer of training texts that also knows the words of a recipe's vectors."""
    tokenizer = fit_tokenizer(recipe.text.tokenizer, texts)
    if not isinstance(tokenizer, WordTokenizer):
        return tokenizer
    known = set(tokenizer.tokens)
    return with_units(tokenizer, {word: 0 for word in words_beside(recipe, data, texts) if word not in known})


def find_vectors(task: "Task[Any, Any]", recipe: R, data: "Data[Any]", vocabulary: Any) -> tuple[R, Found]:
    """The vectors that a recipe begins with, and the recipe with their dimensions as `model.embedding`."""
    found: Found = {}
    model: Any = getattr(recipe, "model", None)
    for key, embedded in task.embedded(vocabulary).items():
        path = getattr(model, key, None)
        if path is None:
            continue
        wanted = {spelling for token in embedded.tokens for spelling in (token, token.lower())}
        kept = data.facts.get(key)
        found[key] = kept if isinstance(kept, WordVectors) else _named_vectors(key, path, first=0, wanted=wanted)
    for key, vectors in found.items():
        size = model.embedding
        told = not model.takes_their_size and "embedding" in model.model_fields_set  # or by the other side
        if vectors.size != size and told:
            raise UserError(
                f"model.{key} has vectors of {vectors.size} dimensions, and model.embedding is {size}: "
                f"say -s model.embedding={vectors.size}"
            )
        model = model.model_copy(update={"embedding": vectors.size})
    if found and model.vectors_frozen and recipe.train.weight_decay:  # type: ignore[attr-defined]
        raise UserError("train.weight_decay would change frozen vectors: leave it out, or model.vectors_frozen")
    return (recipe.model_copy(update={"model": model}) if found else recipe), found


def refuse_other_vectors(recipe: Section, start: Any) -> None:
    """A run that starts from a trained model has that model's embedding: other vectors would have to be ignored."""
    trained = start.recipe.get("model", {}) | {"older": start.recipe.get("text", {}).get("vectors")}
    for key in ("vectors", "target_vectors"):
        named = getattr(getattr(recipe, "model", None), key, None)
        if named is not None and named not in (trained.get(key), trained["older"]):
            raise UserError(f"model.{key} is for a fresh network, and --start brings a trained one: leave one out")
    if getattr(getattr(recipe, "model", None), "vectors_frozen", False):
        raise UserError("model.vectors_frozen is for a fresh network, and --start brings a trained one: leave one out")


def fill_embeddings(run: "Training[Any, Any]", found: Found, say: "Say") -> None:
    """Put vectors into the embeddings of a fresh network; `say` is told how many of its words have one."""
    import torch

    from elman.nn.embedding import clear_padding

    for key, embedded in (run.task.embedded(run.model.vocabulary) if found else {}).items():
        if key not in found:
            continue
        vectors, table = found[key], getattr(run.network, embedded.attribute)
        weight = table.weight
        places = [vectors.index.get(token, vectors.index.get(token.lower(), -1)) for token in embedded.tokens]
        rows = np.flatnonzero(np.array(places) >= 0)
        with torch.no_grad():
            weight[torch.from_numpy(rows)] = torch.from_numpy(vectors.matrix[np.array(places)[rows]])
            clear_padding(table)
        share = embedded.counts[rows].sum() / max(int(embedded.counts.sum()), 1)
        name = Path(str(getattr(run.recipe.model, key))).name
        say(f"model.{key}: {len(rows):,} of {len(places):,} tokens, {share:.0%} of the text, have a vector in {name}")
        if run.recipe.model.vectors_frozen:
            _freeze(run, weight, torch.from_numpy(rows))


def _freeze(run: "Training[Any, Any]", weight: Any, rows: Any) -> None:
    """Rows get no gradient: always, or for the first epochs; all others still learn."""
    import torch

    epochs = run.recipe.model.vectors_frozen
    learns = torch.ones(len(weight), 1).index_fill(0, rows, 0.0)  # V x 1

    def hold(gradient: Any) -> Any:
        if epochs is not True and run.current.progress >= epochs:
            return gradient
        if not gradient.is_sparse:
            return gradient.index_fill(0, rows, 0.0)
        read, values = gradient._indices(), gradient._values()  # 1 x N, N x E; a row may be there several times
        return torch.sparse_coo_tensor(read, values * learns[read[0]], gradient.shape, check_invariants=False)

    weight.register_hook(hold)
