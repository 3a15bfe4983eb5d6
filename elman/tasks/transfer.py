"""Language models under other tasks: a classifier, a tagger or a translator begins with their embedding and layers.

elman.fit("classify", train="reviews.csv", settings={"model.start": "runs/language-model"}, out="runs/reviews")

Sizes, cell and tokenizer follow from the language model. How the whole is then tuned (one layer after the other, slower
rates for lower ones: Howard and Ruder 2018) is said by the keys of `train`, which every task has.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import numpy as np
from pydantic import Field, model_validator

from elman.errors import UserError
from elman.runtime.layers import Layers
from elman.runtime.quantise import dequantise
from elman.tasks.sections import LayersSection
from elman.text import Tokenizer
from elman.text.characters import CharacterTokenizer
from elman.text.words import WordTokenizer
from elman.train.recipe import Section

if TYPE_CHECKING:
    from torch import nn

    from elman.nn.recurrent import Recurrent
    from elman.nn.towers import Towers
    from elman.tasks.language import LanguageModel

OWN = ("initialise", "forget_bias", "dropout", "weight_dropout")
"""What a task says of its layers itself, whatever language model it begins with."""
LAYERS = tuple(key for key in LayersSection.model_fields if key not in OWN)
"""The keys that make layers what they are."""
LANGUAGE_MODELS = ("start", "decoder_start", "strings")
"""The keys of `model` that name folders of language models."""
FOLDERS = (*LANGUAGE_MODELS, "vectors", "target_vectors")
"""The keys of `model` that name folders, or files of vectors."""
S = TypeVar("S", bound=Section)
READS = {"forward": "reads forwards", "backward": "reads backwards", "both": "reads both ways"}


# The recipe


class StartSection(LayersSection):
    """Recurrent layers that may be those of a language model."""

    start: str | None = Field(
        None, description="the folder of a language model whose embedding and layers to begin with"
    )
    direction: Literal["forward", "backward", "both"] | None = Field(
        None, description="in which towers read that see themselves only, as those of a language model; none: no towers"
    )

    starts: ClassVar[tuple[str, ...]] = ("start",)
    """The keys that name a language model to begin with."""
    not_followed: ClassVar[tuple[str, ...]] = ()
    """Keys of layers that a language model to begin with must not have."""

    @model_validator(mode="after")
    def _reads_as_it_says(self) -> "StartSection":
        both = getattr(self, "bidirectional", None)
        if self.direction is not None and both is not None and both != (self.direction == "both"):
            which = str(not both).lower()
            raise ValueError(f'model.direction = "{self.direction}" goes with model.bidirectional = {which} only')
        return self

    @model_validator(mode="after")
    def _towers_are_not_merged(self) -> "StartSection":
        if self.direction is not None and getattr(self, "merge", "concat") != "concat":
            raise ValueError("model.merge joins the directions of a layer, and towers have one each: leave it out")
        return self

    @classmethod
    def made(cls, table: Mapping[str, Any]) -> dict[str, Any]:
        """What of this section follows where a language model is made to go under it."""
        if table.get("vectors"):
            raise UserError(
                "the language model of the unlabelled texts has vectors of its own: leave model.vectors out, or begin "
                f"it with them by -s 'transfer.lm=[\"model.vectors={table['vectors']}\"]'"
            )
        if table.get("embedding") == 0:
            raise UserError("the language model of unlabelled texts needs vectors: give model.embedding above 0")
        both = table.get("bidirectional", cls.model_fields["bidirectional"].default)
        return {"direction": table.get("direction") or ("both" if both else "forward")}

    @classmethod
    def following(cls, key: str, language: "LanguageModel") -> dict[str, Any]:
        """What of this section follows from the language model that a key names."""
        found = layers_of(language.settings)
        found |= {"embedding": embedding_size(language), "direction": language.settings.direction}
        if "bidirectional" in cls.model_fields:
            found["bidirectional"] = language.settings.direction == "both"
        return found

    @classmethod
    def following_text(cls, key: str, tokenizer: Tokenizer) -> dict[str, Any]:
        """What of the section `text` follows from its tokenizer."""
        return tokenizer.settings.model_dump(mode="json")

    def body(self, input_size: int, **options: Any) -> "Recurrent | Towers":  # type: ignore[override]
        """Fresh layers; `options` are those of `Recurrent` that the section does not say."""
        if self.direction is None:
            return super().body(input_size, **options)
        from elman.nn.towers import BACKWARD, Towers

        alone = {**options, "bidirectional": False}
        return Towers(
            [super(StartSection, self).body(input_size, **alone) for _ in BACKWARD[self.direction]], self.direction
        )

    def described(self, name: str, input_size: int, **options: Any) -> Layers:
        """The layers in plain words, for the compiled runtime; their weights begin with `name`."""
        if self.direction is not None:
            options |= {"bidirectional": self.direction == "both", "direction": self.direction}
        return super().described(name, input_size, **options)


def layers_of(section: LayersSection) -> dict[str, Any]:
    """What makes the layers of a section what they are: all but how they begin and what they drop."""
    return {key: getattr(section, key) for key in LAYERS}


def embedding_size(language: "LanguageModel") -> int:
    """The size of its tokens' vectors; those of one-hot input have a place for each."""
    return language.settings.embedding or language.tokenizer.size


def can_start(kind: type[Any]) -> bool:
    """Whether the recipes of a kind can name a language model to begin with."""
    section = kind.model_fields["model"].annotation if "model" in kind.model_fields else None
    return isinstance(section, type) and issubclass(section, StartSection)


def followed(kind: type[Any], tables: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of a recipe with all that follows from the language models that it names.

    `asked` are the tables of what the user said: what differs there is refused, where the rest of a recipe gives way.
    """
    result = with_full_names(kind, tables)
    if not isinstance(result.get("model", {}), Mapping) or not can_start(kind):
        return result
    section: Any = kind.model_fields["model"].annotation
    own = {key: value for key, value in _table(result, "model").items() if key in FOLDERS and value}
    if _table(tables, "data").get("unlabelled"):  # for which a language model is made, if none is named
        made = {} if any(key in own for key in LANGUAGE_MODELS) else section.made(_table(result, "model"))
        _check_asked("model", made, asked, "of the unlabelled texts")
        result["model"] = {**_table(result, "model"), **made}
    sources: dict[str, str] = {}
    for key in section.starts:
        if not isinstance(folder := own.get(key), str):
            continue
        language = read_language_model(folder, f"model.{key}", section)
        follows = {"model": section.following(key, language)}
        follows["text"] = section.following_text(key, language.tokenizer)
        for name, values in follows.items():
            _check_asked(name, values, asked, folder)
            _check_other(name, values, result, sources, f"model.{key}")
            result[name] = {**_table(result, name), **values}
    return result


def with_full_names(kind: type[Any], tables: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of a recipe, the folders and files that a network begins with named from the root on.

    >>> from elman.tasks.language import LanguageRecipe
    >>> Path(with_full_names(LanguageRecipe, {"model": {"vectors": "v.txt"}})["model"]["vectors"]).is_absolute()
    True
    """
    named = tables.get("model")
    if not isinstance(named, Mapping) or "model" not in kind.model_fields:
        return dict(tables)
    known = getattr(kind.model_fields["model"].annotation, "model_fields", {})
    return {
        **tables,
        "model": {**named, **{key: _absolute(named[key]) for key in FOLDERS if key in known and named.get(key)}},
    }


def _absolute(given: Any) -> Any:
    if isinstance(given, str):
        return str(Path(given).absolute())
    return [_absolute(one) for one in given] if isinstance(given, list | tuple) else given


def _table(tables: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = tables.get(name)
    return found if isinstance(found, Mapping) else {}


def _check_asked(section: str, values: Mapping[str, Any], asked: Mapping[str, Any], folder: str) -> None:
    wanted = _table(asked, section)
    for key, value in values.items():
        if key in wanted and not _same(wanted[key], value):
            raise UserError(
                f"{section}.{key} = {_shown(wanted[key])} was asked for, and the language model {folder} makes it "
                f"{_shown(value)}: leave it out, or give another language model"
            )


def _check_other(
    section: str, values: Mapping[str, Any], tables: Mapping[str, Any], sources: dict[str, str], key: str
) -> None:
    """Refuse what two language models under one network do not have in common."""
    for name, value in values.items():
        place = f"{section}.{name}"
        if place in sources and not _same(tables[section][name], value):
            there = _shown(tables[section][name])
            raise UserError(f"{place} is {there} by {sources[place]} and {_shown(value)} by {key}: it can be one only")
        sources[place] = key


def _same(a: Any, b: Any) -> bool:
    return (list(a) if isinstance(a, tuple) else a) == (list(b) if isinstance(b, tuple) else b)


def _shown(value: Any) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


# The language model


def language_start(task: Any, folder: str | Path) -> dict[str, Any]:
    """The key of a task's `model` under which a language model to begin with goes, and its folder."""
    fields, name = task.Recipe.model_fields["model"].annotation.model_fields, str(Path(folder).absolute())
    if "strings" not in fields:
        return {"start": name}
    words = read_language_model(folder, "--start", None).tokenizer.settings.kind == "words"
    return {"start": name} if words else {"strings": [name]}


def read_language_model(folder: str | Path, key: str, section: type[StartSection] | None) -> "LanguageModel":
    """The language model of a folder; refused where it has no layers, or none that the section, if any, could make."""
    from elman.tasks.language import LanguageModel
    from elman.tasks.recipes import check_made

    check_made(key, folder, "lm")
    try:
        language = LanguageModel.load(folder)
    except UserError as error:
        raise UserError(f"{key}: {error}") from None
    settings = language.settings
    if settings.kind != "recurrent":
        what = "an n-gram model" if settings.kind == "ngram" else f"a {settings.kind} model"
        raise UserError(f"{key}: {folder} is {what}, which has no recurrent layers: give a recurrent language model")
    if language.labels:
        raise UserError(
            f"{key}: {folder} is told labels, and other texts have none: give one without data.label_column"
        )
    if settings.output == "combined":
        raise UserError(f"{key}: {folder} has model.output = combined, which these layers have not: give one without")
    for name in ("projection", "learned_state"):
        if section is not None and getattr(settings, name) and name in section.not_followed:
            raise UserError(f"{key}: {folder} has model.{name}, which these layers have not: give one without")
    return language


def without_folders(section: S) -> S:
    """The section `model` with the names of folders in place of where they are, which means nothing elsewhere."""
    named = {key: getattr(section, key) for key in (*FOLDERS, "features") if getattr(section, key, None)}
    short = {
        key: Path(one).name if isinstance(one, str) else tuple(Path(each).name for each in one)
        for key, one in named.items()
    }
    return section.model_copy(update=short)


def language_models(section: Any, say: Callable[[str], Any]) -> dict[str, Any]:
    """The language models that the section `model` of a recipe names, by their keys; `say` is told what follows."""
    if not isinstance(section, StartSection):
        return {}
    found: dict[str, Any] = {}
    for key in section.starts:
        if (folder := getattr(section, key)) is not None:
            found[key] = read_language_model(folder, f"model.{key}", type(section))
            say(told(key, folder, found[key]))
    if names := getattr(section, "strings", ()):
        from elman.tasks.strings import read_strings

        found["strings"] = {name: read_strings(name) for name in names}
        for name, language in found["strings"].items():
            what = f"{language.settings.words()}, {READS[language.settings.direction]}"
            say(f"model.strings: beside each word stand the states of {name} at its borders ({what})")
    return found


def extended(tokenizer: Tokenizer, texts: Iterable[str]) -> Tokenizer:
    """A tokenizer that has the words, or characters, of other texts as well, behind its own; others read any text.

    >>> from elman.text import TokenizerSettings, fit_tokenizer
    >>> extended(fit_tokenizer(TokenizerSettings(kind="words"), ["a cat"]), ["a dog", "dogs"]).tokens
    ['<unk>', '<eos>', 'a', 'cat', 'dog', 'dogs']
    """
    if not isinstance(tokenizer, WordTokenizer | CharacterTokenizer):
        return tokenizer
    counts: dict[str, int] = {}
    for text in texts:
        for unit in tokenizer.unknown(text):
            counts[unit] = counts.get(unit, 0) + 1
    new = sorted(unit for unit, count in counts.items() if count >= tokenizer.settings.min_count)
    return with_units(tokenizer, {unit: counts[unit] for unit in new})


def with_units(tokenizer: WordTokenizer | CharacterTokenizer, new: Mapping[str, int]) -> Tokenizer:
    """A tokenizer that has other words, or characters, as well, behind its own; `new` has their counts."""
    units = [*tokenizer.tokens[len(tokenizer.settings.special_tokens) :], *new]
    return type(tokenizer)(tokenizer.settings, units, [*tokenizer.counts.tolist(), *new.values()])


def word_rows(language: "LanguageModel", words: Sequence[str]) -> np.ndarray:
    """The id that each of some words has in a language model; -1 where it has none."""
    ids = {token: place for place, token in enumerate(language.tokenizer.tokens)}
    return np.array([ids.get(word, -1) for word in words], np.int64)


def same_rows(language: "LanguageModel", size: int) -> np.ndarray:
    """The ids of an extended tokenizer in the language model whose own it was; -1 where they are new."""
    return np.where(np.arange(size) < language.tokenizer.size, np.arange(size), -1)


def put_under(language: "LanguageModel", embedding: "nn.Embedding", body: "nn.Module", rows: np.ndarray) -> None:
    """Let a network begin with the vectors and the layers of a language model.

    `rows` say which of its vectors each token has; those it does not know (-1) have the mean of all. A decoder that
    sees more than its token keeps the fresh weights of the rest.
    """
    import torch

    from elman.nn.embedding import clear_padding

    weights = dequantise(language.weights())
    vectors = vectors_of(language, weights)
    known = np.where(rows[:, None] < 0, vectors.mean(axis=0), vectors[np.maximum(rows, 0)])
    with torch.no_grad():
        embedding.weight.copy_(torch.from_numpy(known.astype(np.float32)))
        clear_padding(embedding)
        for number, tower in enumerate(getattr(body, "towers", [body])):
            for name, parameter in tower.named_parameters():
                own = torch.from_numpy(weights[f"bodies.{number}.{name}"])
                if own.dim() == 2:  # what is fed to a decoder stands behind its token
                    parameter[:, : own.shape[1]] = own
                else:
                    parameter.copy_(own)


def vectors_of(language: "LanguageModel", weights: Mapping[str, np.ndarray]) -> np.ndarray:
    """The vectors of its tokens as it reads them (V x E): its embedding, or an identity where its input is one-hot."""
    if not language.settings.embedding:
        return np.eye(language.tokenizer.size, dtype=np.float32)
    return language.settings.shortened(weights, "embedding.weight")["embedding.weight"]


def told(key: str, folder: str | Path, language: "LanguageModel") -> str:
    """A line for the user: what follows from a language model."""
    what = f"{language.settings.words()}, embedding of {embedding_size(language)}, {READS[language.settings.direction]}"
    words = f"{language.tokenizer.size:,} {language.tokenizer.settings.kind}"
    return f"model.{key}: embedding, layers and tokenizer are those of {folder} ({what}; {words})"
