"""Classifiers and taggers as all that explains them sees them: tokens, a vector for each, outputs made of the vectors.

    subject = subject_of(model)
    cut = subject.cut("a fine film")           # pieces and tokens
    subject.outputs([cut.tokens])[0]           # R x C: a row for the text, or one for each token

What is explained is a `Question`: a sum of outputs, of one class or tag, or of one against another.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from elman.batches.examples import by_length
from elman.errors import UserError, nearest
from elman.inspect.pieces import pieces_of
from elman.inspect.view import AnyModel
from elman.ragged import Ints, Ragged
from elman.tasks.answer import ImageAnswerer
from elman.tasks.classify import TextClassifier, chances
from elman.tasks.tag import TagModel
from elman.text import tagging
from elman.text.encoder import TokenEncoder, WordEncoder, words
from elman.text.settings import EOS, UNK
from elman.text.spans import OUTSIDE

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.nn.utils.rnn import PackedSequence

    from elman.nn.pooling import Pooling
    from elman.nn.recurrent import Recurrent
    from elman.nn.towers import Towers

Floats = NDArray[np.floating]
TEXTS, TOKENS = 256, 1 << 13  # computed on at a time, at most


@dataclass(frozen=True)
class Cut:
    """A text as a network reads it."""

    pieces: tuple[str, ...]
    """T: its tokens as the text writes them."""
    tokens: NDArray[Any]
    """Ids, or words; with the end tokens before and behind the text where the network reads such."""
    first: int
    """Where the text's own tokens begin."""
    left_out: int = 0
    """Tokens of the text beyond those that are read."""

    def shortened(self, most: int) -> "Cut":
        """The first tokens of a text, so many at most, with the end tokens around them."""
        over = len(self.pieces) - most
        if over <= 0:
            return self
        behind = self.first + len(self.pieces)
        tokens = np.concatenate([self.tokens[: behind - over], self.tokens[behind:]])
        return replace(self, pieces=self.pieces[:most], tokens=tokens, left_out=self.left_out + over)

    def own(self, values: NDArray[Any]) -> NDArray[Any]:
        """Of values for all tokens, those of the text's own (T)."""
        return values[self.first : self.first + len(self.pieces)]


@dataclass(frozen=True)
class Question:
    """What is to be explained: the sum of `weights` times the outputs of a text (R x C)."""

    targets: tuple[str, ...]
    """The class; of a tagger, a tag for each position."""
    against: str | None
    """The class or tag whose score is taken off."""
    positions: tuple[int, ...]
    """The tokens whose tags are explained, from 0; none for a class."""
    weights: Floats
    """R x C."""

    def score(self, output: Floats) -> float:
        """What the outputs of a text, or of an edited one with as many rows, come to."""
        return float((self.weights * output).sum())


class Subject(ABC):
    """A network with names for its outputs; R rows of C outputs for a text."""

    kind: ClassVar[str]
    """What an output is called: class, tag."""
    most: ClassVar[int] = 2000
    """Tokens of a text that are explained."""
    spaced: bool
    """Whether tokens are words."""

    def __init__(self, model: AnyModel, names: Sequence[str], spaced: bool) -> None:
        model.refuse_ensemble("explained")
        self.model, self.names, self.spaced = model, list(names), spaced

    # What a kind of model says

    @abstractmethod
    def cut(self, text: str | Sequence[str]) -> Cut:
        """A text as it is read."""

    @abstractmethod
    def embed(self, tokens: Ragged) -> "PackedSequence":
        """The vectors of tokens (N x E)."""

    @abstractmethod
    def rows(self, values: NDArray[Any], tokens: Ragged) -> list[NDArray[Any]]:
        """What the network gives for some texts, by text: each R x C."""

    @abstractmethod
    def stacked(self, values: Sequence[Floats], tokens: Ragged) -> Floats:
        """The other way round: R x C of each text, as the network orders its outputs."""

    @abstractmethod
    def probabilities(self, output: Floats) -> Floats:
        """Outputs as probabilities (R x C)."""

    @abstractmethod
    def best(self, output: Floats) -> Ints:
        """The most probable class, or tag of each token (R)."""

    @abstractmethod
    def prediction(self, output: Floats) -> list[str]:
        """The class, or classes, of a text; the tag of each token."""

    @abstractmethod
    def ask(
        self,
        cut: Cut,
        output: Floats,
        target: str | None = None,
        against: str | None = None,
        position: int | None = None,
    ) -> Question:
        """The score of a class or tag, or of one against another; `position` counts from 1."""

    @abstractmethod
    def removed(self, cut: Cut, places: Sequence[int]) -> NDArray[Any]:
        """The tokens without some of the text's own: dropped; of a tagger, which tags each of them, made unknown."""

    @property
    @abstractmethod
    def unknown(self) -> Any:
        """The token that stands for any that is unknown."""

    @property
    @abstractmethod
    def head(self) -> "nn.Linear":
        """The layer whose output is explained."""

    @property
    @abstractmethod
    def pooling(self) -> "Pooling | None":
        """How steps become one vector; None where each has an output of its own."""

    # What follows

    @property
    def scored(self) -> int:
        """Numbers behind the vector of a token that are added to the outputs as they are: the scores of n-grams."""
        return 0

    @property
    def body(self) -> "Recurrent | Towers":
        """The recurrent layers."""
        return self.model.network.body  # type: ignore[no-any-return]

    def evaluating(self) -> AbstractContextManager[Any]:
        """While inside, the network is without its dropout."""
        return self.model.evaluating()

    def score(self, embedded: "PackedSequence") -> "Tensor":
        """The outputs that follow from the vectors of tokens."""
        return self.model.network.score(embedded)  # type: ignore[no-any-return]

    def batches(self, sequences: Sequence[NDArray[Any]]) -> Iterator[tuple[Ints, Ragged]]:
        """Sequences of like length together: their numbers, and themselves."""
        every = Ragged.of(sequences)
        for numbers in by_length(every.lengths, TEXTS, tokens=TOKENS):
            yield numbers, every.take(numbers)

    def outputs(self, sequences: Sequence[NDArray[Any]]) -> list[Floats]:
        """What the network says to sequences of tokens: R x C for each."""
        import torch

        found: list[Floats] = [np.empty(0)] * len(sequences)
        with torch.inference_mode(), self.evaluating():
            for numbers, tokens in self.batches(sequences) if sequences else ():
                values = self.score(self.embed(tokens)).numpy()
                for number, rows in zip(numbers.tolist(), self.rows(values, tokens), strict=True):
                    found[number] = rows
        return found

    def probability(self, question: Question, output: Floats) -> float:
        """How probable what is asked for is; of several tokens, their mean."""
        table = self.probabilities(output)
        rows = question.positions or (0,)
        places = [self.names.index(target) for target in question.targets]
        return float(np.mean([table[row, place] for row, place in zip(rows, places, strict=True)]))

    def place(self, name: str) -> int:
        """The number of a class or tag."""
        if name not in self.names:
            raise UserError(f"there is no {self.kind} {name!r}: {nearest(name, self.names)}")
        return self.names.index(name)

    def _other(self, against: str | None, target: str | None) -> int | None:
        if against is None:
            return None
        if against == target:
            raise UserError(f"{target!r} against itself is always 0: name another {self.kind}")
        return self.place(against)


class ClassifierSubject(Subject):
    """One row for a text: a score for each class."""

    kind = "class"
    model: TextClassifier

    def __init__(self, model: TextClassifier) -> None:
        super().__init__(model, model.labels, spaced=model.config.text.kind == "words")

    def cut(self, text: str | Sequence[str]) -> Cut:
        vocabulary = self.model.vocabulary
        whole = text if isinstance(text, str) else " ".join(text)
        tokens = vocabulary.encode([whole])[0]
        if isinstance(vocabulary, TokenEncoder):
            pieces = pieces_of(vocabulary.tokenizer, whole)
        else:
            pieces = vocabulary._ready(whole).split()
        if not pieces:
            raise UserError(f"the text {whole!r} has no token: give it at least one")
        read = tuple(pieces[: vocabulary.longest])
        return Cut(read, tokens, int(vocabulary.edges), len(pieces) - len(read))

    def embed(self, tokens: Ragged) -> "PackedSequence":
        from elman.nn.inputs import Inputs

        return self.model.network.embed(Inputs.of(*self.model.vocabulary.spelled(tokens)))

    @property
    def scored(self) -> int:
        return 0 if self.model.network.ngrams is None else len(self.names)

    def rows(self, values: NDArray[Any], tokens: Ragged) -> list[NDArray[Any]]:
        return [row[None] for row in values]

    def stacked(self, values: Sequence[Floats], tokens: Ragged) -> Floats:
        return np.concatenate(values)

    def probabilities(self, output: Floats) -> Floats:
        return chances(output, self.model.several)

    def best(self, output: Floats) -> Ints:
        return np.asarray(output.argmax(axis=1))

    def prediction(self, output: Floats) -> list[str]:
        return list(self.model._prediction(self.probabilities(output)[0].tolist()).labels)

    def ask(
        self,
        cut: Cut,
        output: Floats,
        target: str | None = None,
        against: str | None = None,
        position: int | None = None,
    ) -> Question:
        if position is not None:
            raise UserError("a position is for taggers: the class of a text is that of all its tokens")
        name = self.names[int(self.best(output)[0])] if target is None else target
        weights = np.zeros((1, len(self.names)))
        weights[0, self.place(name)] = 1
        if (other := self._other(against, name)) is not None:
            weights[0, other] = -1
        return Question((name,), against, (), weights)

    def removed(self, cut: Cut, places: Sequence[int]) -> NDArray[Any]:
        left = np.delete(cut.tokens, [cut.first + place for place in places])
        if len(left):
            return left
        vocabulary = self.model.vocabulary  # as it encodes an empty text
        return (
            np.array([EOS], object) if isinstance(vocabulary, WordEncoder) else np.array([vocabulary.tokenizer.eos_id])
        )

    @property
    def unknown(self) -> Any:
        vocabulary = self.model.vocabulary
        return UNK if isinstance(vocabulary, WordEncoder) else vocabulary.tokenizer.unk_id

    @property
    def head(self) -> "nn.Linear":
        return self.model.network.output

    @property
    def pooling(self) -> "Pooling | None":
        return self.model.network.pooling


class AnswerSubject(ClassifierSubject):
    """A question about one image, `keys` being what the network's join needs of it (1 x P x K)."""

    def __init__(self, model: ImageAnswerer, keys: "Tensor") -> None:
        super().__init__(cast(TextClassifier, model))
        self.keys = keys

    def score(self, embedded: "PackedSequence") -> "Tensor":
        network: Any = self.model.network
        return network.answer(embedded, self.keys.expand(int(embedded.batch_sizes[0]), -1, -1))  # type: ignore[no-any-return]


class TaggerSubject(Subject):
    """A row for each token: a score for each tag. What a CRF adds for tags side by side is no part of it."""

    kind = "tag"
    most = 500  # each edited text is tagged anew
    model: TagModel

    def __init__(self, model: TagModel) -> None:
        super().__init__(model, model.tags, spaced=True)

    def cut(self, text: str | Sequence[str]) -> Cut:
        pieces = tagging.cut(text).tokens if isinstance(text, str) else tuple(text)
        if not pieces or not all(pieces):
            raise UserError(f"the text {text!r} has an empty token, or none at all: give it at least one")
        return Cut(pieces, words([pieces]).data, 0)

    def embed(self, tokens: Ragged) -> "PackedSequence":
        return self.model.network.embed(self.model.inputs(tokens))

    def rows(self, values: NDArray[Any], tokens: Ragged) -> list[NDArray[Any]]:
        return list(tokens.unpacked(values))

    def stacked(self, values: Sequence[Floats], tokens: Ragged) -> Floats:
        return tokens.packed(np.concatenate(values))

    def probabilities(self, output: Floats) -> Floats:
        """Those of a softmax; with a CRF, its marginals."""
        import torch

        if self.model.network.crf is None:
            return chances(output, several=False)
        emissions = torch.from_numpy(np.asarray(output, np.float32)[None])
        return self.model.network.crf.marginals(emissions, torch.tensor([len(output)]))[0].numpy()

    def best(self, output: Floats) -> Ints:
        import torch

        scores = torch.from_numpy(np.asarray(output, np.float32))
        return self.model.network.best_tags(scores, torch.ones(len(output), dtype=torch.int64)).numpy()

    def prediction(self, output: Floats) -> list[str]:
        return [self.names[id] for id in self.best(output).tolist()]

    def ask(
        self,
        cut: Cut,
        output: Floats,
        target: str | None = None,
        against: str | None = None,
        position: int | None = None,
    ) -> Question:
        """The score of a tag at one token.

        Without a position: at all tokens that were given that tag, or where none was, at that where it scores best;
        without a tag either: of each token that is not outside (O), its own.
        """
        found = self.prediction(output)
        other = self._other(against, target)
        if position is not None:
            if not 1 <= position <= len(cut.pieces):
                raise UserError(f"position {position} is outside: the tokens count from 1 to {len(cut.pieces)}")
            positions = [position - 1]
        elif target is not None:
            highest = int(output[:, self.place(target)].argmax())
            positions = [row for row, tag in enumerate(found) if tag == target] or [highest]
        else:
            positions = [row for row, tag in enumerate(found) if tag != OUTSIDE] or list(range(len(found)))
        if target is None and against is not None:
            positions = [row for row in positions if found[row] != against]
            if not positions:
                raise UserError(f"{against!r} against itself is always 0: name another {self.kind}")
        targets = tuple(found[row] if target is None else target for row in positions)
        weights = np.zeros(output.shape)
        for row, name in zip(positions, targets, strict=True):
            weights[row, self.place(name)] = 1
            if other is not None:
                weights[row, other] = -1
        return Question(targets, against, tuple(positions), weights)

    def removed(self, cut: Cut, places: Sequence[int]) -> NDArray[Any]:
        masked = cut.tokens.copy()
        masked[list(places)] = self.unknown
        return masked

    @property
    def unknown(self) -> Any:
        return UNK

    @property
    def head(self) -> "nn.Linear":
        return self.model.network.scores

    @property
    def pooling(self) -> "Pooling | None":
        return None


def cuts_of(subject: Subject, texts: str | Sequence[str | Sequence[str]]) -> list[Cut]:
    """Texts to explain as they are read, each of `most` tokens at most; a str is a single text."""
    each: Sequence[str | Sequence[str]] = [texts] if isinstance(texts, str) else texts
    if not each:
        raise UserError("there is nothing to explain: give at least one text")
    return [subject.cut(text).shortened(subject.most) for text in each]


def subject_of(model: AnyModel) -> Subject:
    """A classifier or a tagger as what explains it sees it."""
    if isinstance(model, TextClassifier):
        return ClassifierSubject(model)
    if isinstance(model, TagModel):
        return TaggerSubject(model)
    raise UserError(f"saliency is for classifiers and taggers: this model is for the task '{model.task}'")
