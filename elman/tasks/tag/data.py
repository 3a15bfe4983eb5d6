"""From a recipe's data section to tagged sentences, checked; what is odd about them is said, not hidden."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from elman.errors import UserError, nearest
from elman.metrics.spans import OUTSIDE, Scheme, detect_scheme, repair
from elman.records.tagged import Sentence, TaggedFiles, read_tagged
from elman.tasks.recipes import find_files
from elman.tasks.tag.settings import DataSettings, TagRecipe

NAMES = {"train": "training", "dev": "held-out", "test": "test"}
ODD = 4  # times as many tags mark spans as do not: then those that do not are odd
Say = Callable[[str], None]


@dataclass(frozen=True)
class TagData:
    """Sentences by split, and the scheme in which their tags write spans; None where they write none."""

    train: list[Sentence]
    dev: list[Sentence]
    test: list[Sentence]
    scheme: Scheme | None


def open_data(recipe: TagRecipe, data_dir: Path | None = None, say: Say = lambda warning: None) -> TagData:
    """Read what the recipe names; `say` is told, in one sentence each, what a user should know of it."""
    read = {split: read_files(recipe.data, paths) for split, paths in find_files(recipe.data, data_dir).items()}
    scheme = scheme_of(recipe.data, read["train"], say)
    settled = {split: settle(sentences, scheme, NAMES[split], say) for split, sentences in read.items()}
    if "dev" not in settled:
        settled["train"], settled["dev"] = _hold_out(settled["train"], recipe.data.dev_fraction, recipe.train.seed)
    data = TagData(settled["train"], settled["dev"], settled.get("test", []), scheme)
    _check_tags(data, say)
    _check_overlap(data, say)
    return data


def read_files(data: DataSettings, paths: Sequence[Path], tagged: bool = True) -> list[Sentence]:
    """The sentences of some files, as the data section says they are written."""
    files = TaggedFiles(
        paths,
        format=data.format,
        token=data.token_column,
        tag=data.tag_column,
        comments=data.comments,
        tagged=tagged,
        encoding=data.encoding,
    )
    return read_tagged(files)


def scheme_of(data: DataSettings, sentences: Sequence[Sentence], say: Say = lambda warning: None) -> Scheme | None:
    """The scheme that the settings name, or that the tags look like."""
    if data.scheme != "auto":
        return None if data.scheme == "plain" else data.scheme
    scheme = detect_scheme(sentence.tags for sentence in sentences)
    if scheme is None:
        _check_odd_tags(sentences, say)
    return scheme


def _check_odd_tags(sentences: Sequence[Sentence], say: Say) -> None:
    """A few tags that mark no span among many that do are rather mistakes than parts of speech."""
    counts = Counter(tag for sentence in sentences for tag in sentence.tags)
    odd = {tag for tag in counts if tag != OUTSIDE and tag.partition("-")[0] not in ("B", "I", "E", "S")}
    strays = sum(counts[tag] for tag in odd)
    if strays * ODD <= counts.total() - strays - counts[OUTSIDE]:
        sentence = next(sentence for sentence in sentences if odd & set(sentence.tags))
        tag = next(tag for tag in sentence.tags if tag in odd)
        say(
            f"warning: {strays:,} of the training tags mark no span, the first {tag!r} at {sentence.where}, so every "
            "tag stands for itself and there is no span F1: mend them, or say data.scheme=plain if it is meant so"
        )


def settle(sentences: Sequence[Sentence], scheme: Scheme | None, name: str, say: Say) -> list[Sentence]:
    """Valid tags: those that are not are repaired as conlleval reads them, and counted."""
    if scheme is None:
        return list(sentences)
    settled, changed, where = [], 0, ""
    for sentence in sentences:
        try:
            repaired = repair(sentence.tags, scheme)
        except UserError as error:
            raise UserError(f"{sentence.where}: {error}") from None
        settled.append(replace(sentence, tags=tuple(repaired.tags)))
        changed += repaired.changed
        if repaired.first is not None and not where:
            where = f"{sentence.where}, token {repaired.first + 1} ({sentence.tags[repaired.first]})"
    if changed:
        say(
            f"warning: {changed:,} of the {name} tags are not valid {scheme} and are read as conlleval reads them, "
            f"the first at {where}"
        )
    return settled


def _hold_out(sentences: list[Sentence], share: float, seed: int) -> tuple[list[Sentence], list[Sentence]]:
    """Some sentences by chance, the same for the same seed; both parts keep the order of the file."""
    if len(sentences) < 2:
        raise UserError("there is one training sentence only: give more, so that some can be held out")
    count = min(max(1, round(len(sentences) * share)), len(sentences) - 1)
    held = set(np.random.default_rng(seed).permutation(len(sentences))[:count].tolist())
    parts: tuple[list[Sentence], list[Sentence]] = ([], [])
    for number, sentence in enumerate(sentences):
        parts[number in held].append(sentence)
    return parts


def _check_tags(data: TagData, say: Say) -> None:
    known = {tag for sentence in data.train for tag in sentence.tags}
    if len(known) < 2:
        raise UserError(
            f"all training tokens have the tag {next(iter(known))!r}: a tagger needs at least two, "
            "so look whether data.tag_column is right"
        )
    for split, sentences in (("dev", data.dev), ("test", data.test)):
        unknown = Counter(tag for sentence in sentences for tag in sentence.tags if tag not in known)
        if unknown:
            tag = next(iter(unknown))
            where = next(sentence.where for sentence in sentences if tag in sentence.tags)
            say(
                f"warning: {unknown.total():,} {NAMES[split]} tokens have a tag that training never saw and count as "
                f"mistakes, the first {tag!r} at {where}: {nearest(tag, sorted(known))}"
            )


def _check_overlap(data: TagData, say: Say) -> None:
    seen = {sentence.tokens for sentence in data.train}
    for split, sentences in (("dev", data.dev), ("test", data.test)):
        both = [sentence for sentence in sentences if sentence.tokens in seen]
        if both:
            say(
                f"warning: {len(both):,} of the {len(sentences):,} {NAMES[split]} sentences stand in the training set "
                f"too, the first at {both[0].where}"
            )
