"""A trained tagger: a tag for each token, the spans that tags write, a folder to live in.

model = TagModel.load(Path("runs/entities"))
model.predict("Ask Ada Lovelace, ada@example.org.").spans
model.predict(tokens=["Ask", "Ada", "Lovelace"]).tags
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from elman.baselines.lexicon import MostFrequentTag
from elman.batches.examples import by_length
from elman.errors import UserError
from elman.files import COPY_AGAIN, Stored, checked, read_json, write_text
from elman.metrics.spans import OUTSIDE, Scheme, Span, convert, read_spans, split_tag, write_tags
from elman.metrics.tagging import TagScores, tag_scores
from elman.nn.recurrent import Recurrent
from elman.records.tagged import Sentence
from elman.tasks import folder as folders
from elman.tasks.compiled import CompiledModel
from elman.tasks.predict import PredictOptions
from elman.tasks.tag.batch import Batch, Ints, make_batch
from elman.tasks.tag.compiled import CompiledTagger
from elman.tasks.tag.lines import tag_lines
from elman.tasks.tag.network import TagNetwork, build_network
from elman.tasks.tag.records import Trained
from elman.tasks.tag.settings import ModelSettings
from elman.tasks.tag.tagging import Tagging, cut, join, with_spans
from elman.text.spelling import Speller

TASK = "tag"
SENTENCES, TOKENS = 256, 4096  # computed on at a time, at most
LEXICON = "lexicon.json"


class TaggerConfig(folders.Config):
    """What a tagger's config.json holds."""

    model: ModelSettings
    tags: tuple[str, ...] = Field(min_length=1)
    scheme: Scheme | None


class _Lexicon(Stored):
    """What lexicon.json holds."""

    unseen: str
    tags: dict[str, str]


class TagModel(CompiledModel[CompiledTagger]):
    """p(tags | tokens), and what its reports are measured against.

    `tags` are those of the network, in the scheme that it learned in; `scheme` is that of the training files, which
    `predict` answers in. `lexicon` knows the words of the training set and the tag that each mostly had.
    """

    def __init__(
        self,
        settings: ModelSettings,
        speller: Speller,
        network: TagNetwork,
        tags: Sequence[str],
        scheme: Scheme | None,
        lexicon: MostFrequentTag,
    ) -> None:
        self.settings, self.speller = settings, speller
        self.network: TagNetwork = network
        self.tags, self.scheme, self.lexicon = list(tags), scheme, lexicon
        self._tag_ids = {tag: number for number, tag in enumerate(self.tags)}
        self.recipe: dict[str, Any] = {}  # what it was trained by; kept in its config

    # The folder

    @classmethod
    def load(cls, folder: Path | str) -> "TagModel":
        """Read a model folder."""
        folder = Path(folder)
        config = folders.read_config(folder, TaggerConfig, TASK)
        speller = Speller.load(folder / "tokenizer.json")
        _check_parts(config, speller, folder)
        network, int8 = folders.load_network(
            lambda: build_network(config.model, speller, config.tags, trained=False), folder
        )
        lexicon = _read_lexicon(folder / LEXICON)
        model = cls(config.model, speller, network, config.tags, config.scheme, lexicon)
        model.recipe, model.int8 = config.recipe, int8
        return model

    def save(self, folder: Path) -> None:
        """Write the model folder's config, vocabularies and weights."""
        config = {
            "model": self.settings.model_dump(mode="json"),
            "tags": self.tags,
            "scheme": self.scheme,
            "recipe": self.recipe,
        }
        path = folder / LEXICON
        lexicon = json.dumps({"unseen": self.lexicon.unseen, "tags": self.lexicon.tags}) + "\n"
        if not path.exists() or path.read_bytes() != lexicon.encode():
            write_text(path, lexicon)
        folders.write_model(folder, TASK, config, self._kept_weights(), self.speller)

    # The compiled network

    exact = ("crf.transitions",)  # which add up over a sentence

    def _bodies(self) -> list[Recurrent]:
        characters = self.network.characters
        return [self.network.body, *([] if characters is None else [characters.body])]

    def _compile(self) -> CompiledTagger:
        return CompiledTagger(self.speller, self.network, self.int8)

    # Tagging

    @overload
    def predict(self, text: str) -> Tagging: ...  # type: ignore[overload-overlap]

    @overload
    def predict(self, text: Sequence[str]) -> list[Tagging]: ...

    @overload
    def predict(self, *, tokens: Sequence[str]) -> Tagging: ...  # type: ignore[overload-overlap]

    @overload
    def predict(self, *, tokens: Sequence[Sequence[str]]) -> list[Tagging]: ...

    def predict(
        self,
        text: str | Sequence[str] | None = None,
        *,
        tokens: Sequence[str] | Sequence[Sequence[str]] | None = None,
    ) -> Tagging | list[Tagging]:
        """Tag one raw text or several, or the ready tokens of one sentence or of several."""
        if (text is None) == (tokens is None):
            raise UserError("a tagger wants either a text or ready tokens: give one of them")
        if text is not None:
            cuts = [cut(one) for one in ([text] if isinstance(text, str) else text)]
            single = isinstance(text, str)
        else:
            if isinstance(tokens, str):
                raise UserError("tokens are a list of words: give a text that is not cut yet as predict(text)")
            words: list[Any] = [] if tokens is None else list(tokens)
            single = bool(words) and all(isinstance(word, str) for word in words)
            sentences = [words] if single else words
            if not all(map(_are_words, sentences)):
                raise UserError("tokens are words: give predict(tokens=['Ask', 'Ada']), or a list of such lists")
            cuts = [join(sentence) for sentence in sentences]
        for number, one in enumerate(cuts, 1):
            if not all(one.tokens) or not one.tokens:
                raise UserError(
                    f"text {number} of {len(cuts)} has an empty token, or none at all: give it at least one"
                )
        tagged = self.tag(cuts)
        return tagged[0] if single else tagged

    def predict_lines(self, lines: Iterable[str], options: PredictOptions) -> Iterator[str]:
        """What `elman predict` prints for lines of raw text, of columns, or of JSON."""
        kinds = self.tags if self.scheme is None else sorted({split_tag(tag)[1] for tag in self.tags if tag != OUTSIDE})
        return tag_lines(self.tag, kinds, lines, options, Trained.by(self.recipe))

    def tag(self, cuts: Sequence[Tagging]) -> list[Tagging]:
        """The same sentences with their tags and spans."""
        found = self._find([one.tokens for one in cuts])
        return [with_spans(one, tags, spans) for one, (tags, spans) in zip(cuts, found, strict=True)]

    def tag_tokens(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """The tags of ready tokens, in the scheme of the training files."""
        return [tags for tags, _ in self._find(sentences)]

    def measure(self, sentences: Sequence[Sentence], strict: bool = False) -> tuple[TagScores, float]:
        """The scores of the tags found for tagged sentences, and the mean loss per token; by PyTorch, or in int8.

        Without CRF the network may give tags that its scheme would not write: their spans are read as conlleval
        reads them, or left out where `strict`. A sentence with a tag that training never saw has no loss.
        """
        found: list[list[str]] = [[]] * len(sentences)
        gold = [self.encode_tags(sentence.tags) for sentence in sentences]
        total, counted = 0.0, 0
        runtime = None if self.int8 is None else self._runtime()
        for scored in (True, False):
            group = [number for number, ids in enumerate(gold) if (ids is not None) == scored]
            right = [ids for ids in gold if ids is not None] if scored else None
            tokens = [sentences[number].tokens for number in group]
            for places in self._groups(tokens):
                chosen = [tokens[place] for place in places]
                batch = make_batch(self.speller, chosen, None if right is None else [right[place] for place in places])
                loss, ids = self._run(batch, None if runtime is None else batch.pack(runtime.scores(chosen)[0]))
                for place, row in zip(places, ids, strict=True):
                    found[group[place]], _ = self._read(row, strict)
                total += loss * len(batch.rows)
                counted += len(batch.rows) if scored else 0
        words = [sentence.tokens for sentence in sentences]
        scores = tag_scores(words, [sentence.tags for sentence in sentences], found, self.lexicon.tags)
        return scores, total / max(counted, 1)

    def encode_tags(self, tags: Sequence[str]) -> Ints | None:
        """The ids of tags that are in the scheme of the training files; None where one of them is unknown."""
        written = tags if self.scheme is None else convert(tags, self.settings.scheme)
        ids = [self._tag_ids.get(tag, -1) for tag in written]
        return None if -1 in ids else np.array(ids, np.int64)

    def _find(self, sentences: Sequence[Sequence[str]]) -> list[tuple[list[str], list[Span]]]:
        """The tags and spans of ready tokens."""
        found: list[tuple[list[str], list[Span]]] = [([], [])] * len(sentences)
        runtime = self._runtime()
        for numbers in self._groups(sentences):
            chosen = [sentences[number] for number in numbers]
            ids = self._run(make_batch(self.speller, chosen))[1] if runtime is None else runtime.best_tags(chosen)
            for number, row in zip(numbers, ids, strict=True):
                found[number] = self._read(row)
        return found

    def _groups(self, sentences: Sequence[Sequence[str]]) -> Iterator[list[int]]:
        """The numbers of sentences of like length."""
        if len(sentences) == 1:  # the answer to one question should not wait for sorting
            yield [0]
            return
        for rows in by_length([len(sentence) for sentence in sentences], SENTENCES, tokens=TOKENS):
            yield rows.tolist()

    @torch.inference_mode()
    def _run(self, batch: Batch, scores: Tensor | None = None) -> tuple[float, list[Ints]]:
        """The loss, where the right tags are known, and the ids of the tags found, an array a sentence."""
        self.network.eval()
        scores = self.network(batch) if scores is None else scores
        loss = 0.0 if batch.tags is None else float(self.network.loss(scores, batch))
        return loss, batch.unpack(self.network.best_tags(scores, batch))

    def _read(self, ids: Ints, strict: bool = False) -> tuple[list[str], list[Span]]:
        """What the network's tags stand for: tags in the scheme of the training files, and the spans they write."""
        tags = [self.tags[number] for number in ids.tolist()]
        if self.scheme is None:
            return tags, []
        spans = read_spans(tags, strict=self.settings.scheme if strict else None)
        return write_tags(spans, len(tags), self.scheme), spans


def _are_words(sentence: Any) -> bool:
    listed = isinstance(sentence, Iterable) and not isinstance(sentence, str)
    return listed and all(isinstance(word, str) for word in sentence)


def _check_parts(config: TaggerConfig, speller: Speller, folder: Path) -> None:
    """Refuse what the network could not be made of, or only with a table that has a place for each pair of tags."""
    found = folders.read_shapes(folder).get("scores.bias") or (0,)
    if len(config.tags) != found[0]:
        raise UserError(
            f"{folder / 'config.json'} is damaged: 'tags' are {len(config.tags)}, and the weights are for {found[0]}"
        )
    try:
        for tag in config.tags if config.scheme is not None else ():
            split_tag(tag)
    except UserError as error:
        raise UserError(f"{folder / 'config.json'} is damaged: 'tags': {error}; {COPY_AGAIN}") from None
    if config.model.character_hidden and speller.characters is None:
        raise UserError(
            f"{folder / 'tokenizer.json'} is damaged: 'characters' is none, and the model looks at them; {COPY_AGAIN}"
        )


def _read_lexicon(path: Path) -> MostFrequentTag:
    if not path.exists():
        raise UserError(f"no such file: {path}; a tagger's folder holds a {LEXICON}")
    stored = checked(_Lexicon, read_json(path), str(path))
    return MostFrequentTag(stored.tags, stored.unseen)
