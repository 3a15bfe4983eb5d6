"""Labels for trees and for every phrase in them: recursive networks, read from the words up to the root.

model = elman.fit("tree", train="sst.txt", out="runs/sst")
model.predict("It's not a bad film.").label
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from elman.baselines.lexicon import BagOfVectors, CharacterNgrams, MostFrequentClass, MostFrequentTag
from elman.batches.examples import by_length
from elman.errors import UserError
from elman.forest import Trees
from elman.metrics import classification
from elman.metrics.brackets import bracket_scores
from elman.metrics.metric import Metric
from elman.ragged import Ints, Ragged
from elman.records.classes import check_classes, check_known
from elman.records.labelled import Classes, LabelledText
from elman.records.lines import made
from elman.records.places import Place, RecordError, source_of
from elman.records.treebank import UNLABELLED, Format, LabelledTree, TreeReader, is_of_words, trees_of
from elman.runtime import Encoder as CompiledLayers
from elman.runtime import Layers
from elman.runtime.parser import LENGTHS, LONG, SHAPES, WORDS, Shape, ShiftReduce, features, oracle
from elman.runtime.quantise import Arrays, dequantised
from elman.runtime.trees import CompiledTrees
from elman.runtime.weights import Shapes
from elman.tasks.classify import chances
from elman.tasks.folder import Config
from elman.tasks.model import Model
from elman.tasks.predict import PredictOptions, read_texts
from elman.tasks.sections import DataSection, EmbeddingSection, Name, SizeSection, column
from elman.tasks.task import Data, Say, Score, Source, Task, Training
from elman.tasks.vectors import Embedded, VectorsSection, known_vectors
from elman.text.vocabulary import Vocabulary
from elman.train.recipe import Section, TrainSettings

if TYPE_CHECKING:
    from elman.tasks.report import Report
    from elman.train.task import Loss

BATCH, NODES = 256, 1 << 14  # trees and nodes computed on at a time, at most
SENTIMENT = ("0", "1", "2", "3", "4")  # grades from very negative to very positive, 2 neutral
NEGATION_WORDS = "not n't no never none nothing nobody neither nor without cannot hardly barely"
NEGATIONS = frozenset(NEGATION_WORDS.split())
EACH = 12  # depths up to which every depth of tree has a line of its own in a report
PARSER_EMBEDDING, PARSER_HIDDEN = 32, 128

Network = Literal["recursive", "rntn", "tree-lstm", "child-sum", "sequence"]
Parser = Literal["right", "balanced", "shift-reduce"]
Run = Training[LabelledTree, "TreeModel"]


# The recipe


class DataSettings(DataSection):
    """Where the trees come from: a corpus of the catalogue, or the user's own files."""

    format: Format | None = Field(None, description="guessed from names and first lines where it is not given")
    tree_column: Name | None = Field(None, description="of a table: name or number; guessed if not given")
    label_column: Name | None = Field(
        None, description="of a table: name or number; of CoNLL-U a comment (label), or upos, xpos, deprel, feats.NAME"
    )
    learned: Literal["all", "root"] = Field("all", description="which labels of a tree are learned")
    classes: Classes = "fine"


class TextSettings(Section):
    """Which words are known."""

    lowercase: bool = True
    min_count: int = Field(1, ge=1, strict=True)
    size: int | None = Field(None, ge=3, strict=True)
    vector_words: int = Field(200_000, ge=0, description="words of model.vectors that are known beside those of train")

    def spelled(self, record: LabelledTree) -> list[str]:
        """The words of a record, as the vocabulary has them."""
        return [word.lower() if self.lowercase else word for word in record.tokens]


class ModelSettings(VectorsSection, EmbeddingSection):
    """The network, and how a text without a tree gets one."""

    network: Network = Field("tree-lstm", description="what makes a node of its children; sequence reads words only")
    hidden: int = Field(128, ge=1)
    embedding_scale: float = Field(0.1, gt=0, description="of the random vectors that words begin with")
    token_dropout: float = Field(0.0, ge=0, lt=1, description="share of words that are made unknown")
    input_dropout: float = Field(0.3, ge=0, lt=1, description="of word vectors")
    dropout: float = Field(0.0, ge=0, lt=1, description="of what an LSTM's node adds to its cell")
    output_dropout: float = Field(0.5, ge=0, lt=1, description="of a node's vector")
    parser: Parser = Field("right", description="trees for plain texts: right-branching, balanced, or learned")
    longest: int = Field(1000, ge=1, description="words of a plain text that are read; what comes after is left out")

    def words(self) -> str:
        """The network in a few words."""
        return f"{self.network} {self.hidden}"


class LossSettings(Section):
    """What the network is trained to do."""

    smoothing: float = Field(0.0, ge=0, lt=1, description="share of the probability that is spread over all classes")


class BaselineSettings(Section):
    """The regressions that every report shows beside the network: over n-grams, and over mean vectors."""

    ngrams: bool = True
    vectors: bool = True
    texts: int = Field(50_000, ge=1, description="of the training texts, at most")


class TreeRecipe(Section):
    """Everything that a run depends on."""

    task: Literal["tree"] = "tree"
    data: DataSettings = DataSettings()
    text: TextSettings = TextSettings()
    model: ModelSettings = ModelSettings()
    loss: LossSettings = LossSettings()
    batch: SizeSection = SizeSection()
    train: TrainSettings = TrainSettings()
    baseline: BaselineSettings = BaselineSettings()


# The model


class TreeConfig(Config):
    """What the model's config.json holds."""

    model: ModelSettings
    text: TextSettings
    labels: tuple[str, ...] = Field(min_length=1)
    dependency: bool = False
    """Whether its trees have words above words."""


@dataclass(frozen=True)
class TreePrediction:
    """The label of a tree, and the probability of every class at each of its nodes."""

    tree: LabelledTree
    """As the network read it."""
    labels: tuple[str, ...]
    """The classes."""
    nodes: np.ndarray
    """N x C, children before their parents: the last row is that of the root."""

    @property
    def label(self) -> str:
        """The most probable class of the root."""
        return self.labels[int(self.nodes[-1].argmax())]

    @property
    def probabilities(self) -> dict[str, float]:
        """Of every class, at the root."""
        return dict(zip(self.labels, self.nodes[-1].tolist(), strict=True))

    @property
    def bracketed(self) -> str:
        """The tree in brackets, with the most probable label at each node."""
        return self.tree.written(self._best())

    @property
    def words(self) -> list[tuple[str, str]]:
        """Each word in the order of the text, with the most probable label of the node that it stands at."""
        found = dict(zip(self.tree.words, self._best(), strict=True))
        return [(token, found[place]) for place, token in enumerate(self.tree.tokens)]

    def described(self) -> list[dict[str, Any]]:
        """Of each node, the number of its parent, of its word (-1 for none), and the probability of every class."""
        probabilities = [_likeliest_first(dict(zip(self.labels, row, strict=True))) for row in self.nodes.tolist()]
        each = zip(self.tree.parents, self.tree.words, probabilities, strict=True)
        return [dict(zip(("parent", "word", "probabilities"), node, strict=True)) for node in each]

    def _best(self) -> list[str]:
        return [self.labels[best] for best in self.nodes.argmax(axis=1).tolist()]


def _likeliest_first(probabilities: dict[str, float]) -> dict[str, float]:
    ordered = sorted(probabilities.items(), key=lambda pair: -pair[1])
    return {label: round(probability, 6) for label, probability in ordered}


class TreeModel(Model[TreeConfig, Vocabulary, Any, "CompiledTrees | CompiledPhrases"]):
    """p(class | tree), at the root and at every node below it."""

    task = "tree"
    Config, Recipe = TreeConfig, TreeRecipe

    @property
    def labels(self) -> list[str]:
        """The classes."""
        return list(self.config.labels)

    @cached_property
    def labels_words(self) -> bool:
        """Whether it learned a label for each word of dependency trees, and not for the whole trees."""
        data = self._data()
        return self.config.dependency and data.learned == "all" and is_of_words(str(data.label_column))

    def predict(self, texts: str | Iterable[str]) -> Any:
        """The prediction for a text or a bracketed tree, or for each of several."""
        return self.predict_each(texts)

    def answers(self, records: Sequence[LabelledTree | str]) -> list[TreePrediction]:
        reader = self._reader()
        read = [
            reader.question(Place("the texts", number), record.strip(), {}) if isinstance(record, str) else record
            for number, record in enumerate(records, 1)
        ]
        trees = self.prepared(read)
        rows = self.scores(trees, self._runtime())
        return [TreePrediction(tree, self.config.labels, each) for tree, each in zip(trees, rows, strict=True)]

    def prepared(self, records: Sequence[LabelledTree], parser: Parser | None = None) -> list[LabelledTree]:
        """Trees as the network reads them; plain texts are given one, all records are where a `parser` is named."""
        bare = [place for place, record in enumerate(records) if parser is not None or not record.parents]
        found, longest = list(records), self.config.model.longest
        texts = [replace(records[place], tokens=records[place].tokens[:longest]) for place in bare]
        for place, text, shape in zip(bare, texts, self.parse(texts, parser), strict=True):
            found[place] = text.with_shape(*shape)
        found = [self._of_its_kind(record) for record in found]
        return found if self.config.model.network == "child-sum" else [record.binary() for record in found]

    def _of_its_kind(self, record: LabelledTree) -> LabelledTree:
        """A record that is refused where its tree is of the kind that the model does not read."""
        if len(record.parents) > 1 and record.is_dependency != self.config.dependency:
            has, reads, such = "bracketed", "dependency", "CoNLL-U"
            if record.is_dependency:
                has, reads, such = "dependency", "bracketed", "(label (label word) (label word))"
            problem = f"is a {has} tree, and this model reads {reads} trees: give {such}, or plain text"
            raise RecordError(record.where or Place("the data", 1), problem)
        return record

    def parse(self, records: Sequence[LabelledTree], parser: Parser | None = None) -> list[Shape]:
        """The trees that a parser gives to texts; the model's own unless another is named."""
        parser = parser or self.config.model.parser
        if parser == "shift-reduce" and records:
            return ShiftReduce(self.weights(), self.vocabulary.size)([self.ids(record) for record in records])
        return [SHAPES[parser][self.config.dependency](len(record.tokens)) for record in records]

    def ids(self, record: LabelledTree) -> Ints:
        """Of the words."""
        return self.vocabulary.encode(self.config.text.spelled(record))

    def encode(self, records: Sequence[LabelledTree]) -> Trees:
        """Prepared trees as the network reads them."""
        return trees_of(records, map(self.ids, records))

    def scores(
        self, records: Sequence[LabelledTree], runtime: "CompiledTrees | CompiledPhrases | None" = None
    ) -> list[np.ndarray]:
        """The probability of each class at each node of some prepared trees (N x C each).

        For reports: by PyTorch, as the network is now; of int8 weights, by the numbers that they stand for.
        """
        work = self._by_torch if runtime is None else runtime.scores
        found: list[np.ndarray] = [np.empty(0)] * len(records)
        if not records:
            return found
        encoded = self.encode(records)
        for rows in by_length(encoded.lengths, BATCH, tokens=NODES):
            some = encoded.take(rows)
            logits = work(some, np.arange(len(some.heights)))
            parts = np.split(chances(logits, several=False), np.cumsum(some.lengths)[:-1])
            for row, part in zip(rows.tolist(), parts, strict=True):
                found[row] = part
        return found

    def _by_torch(self, trees: Trees, nodes: Ints) -> np.ndarray:
        import torch

        with torch.inference_mode(), self.evaluating() as network:
            return network(trees, nodes).numpy()  # type: ignore[no-any-return]

    # Reading and writing

    def _reader(self) -> TreeReader:
        return TreeTask().reader(self._data(), self.config.labels)

    def read(self, lines: Iterable[str], options: PredictOptions) -> Iterator[LabelledTree]:
        records = read_texts(self._reader(), lines, options)
        return made((partial(self._of_its_kind, record) for record in records), options.bad)

    def written(self, record: LabelledTree, answer: TreePrediction, options: PredictOptions) -> Iterator[str]:
        if options.as_json:
            shown: dict[str, Any] = {"label": answer.label, "probabilities": _likeliest_first(answer.probabilities)}
            shown |= {"tree": answer.bracketed, "tokens": answer.tree.tokens, "nodes": answer.described()}
            yield options.to_json(record.where, record.fields, {"text": record.text, **shown})
        elif self.labels_words:
            yield " ".join(f"{word}/{label}" for word, label in answer.words)
        else:
            yield f"{answer.label}\t{max(answer.probabilities.values()):.4f}"

    def about(self) -> str:
        return f"{len(self.config.labels)} classes, {self.config.model.words()}"

    # The network

    @classmethod
    def load_vocabulary(cls, folder: Path, config: Any) -> Vocabulary:
        return Vocabulary.load(folder / "tokenizer.json")

    @classmethod
    def build(cls, config: TreeConfig, vocabulary: Vocabulary) -> Any:
        from torch import nn

        from elman.nn.embedding import clear_padding
        from elman.nn.parser import ActionScorer
        from elman.nn.pooling import LastPooling
        from elman.nn.recurrent import Recurrent
        from elman.nn.trees import TREE_CELLS, SpanNetwork, TreeNetwork

        settings = config.model
        embedding = settings.fresh_embedding(vocabulary.size)
        if isinstance(embedding, nn.Embedding):
            nn.init.normal_(embedding.weight, std=settings.embedding_scale)
            clear_padding(embedding)
        shares = {key: getattr(settings, key) for key in ("token_dropout", "input_dropout", "output_dropout")}
        width, classes = embedding.embedding_dim, len(config.labels)
        network: nn.Module
        if settings.network == "sequence":
            body = Recurrent("lstm", width, settings.hidden, bidirectional=True)
            network = SpanNetwork(embedding, body, LastPooling(body), nn.Linear(2 * settings.hidden, classes), **shares)
        else:
            cell = TREE_CELLS[settings.network](width, settings.hidden)
            output = nn.Linear(settings.hidden, classes)
            network = TreeNetwork(embedding, cell, output, dropout=settings.dropout, **shares)
        if settings.parser == "shift-reduce":
            rows = vocabulary.size + 1 + LENGTHS * LONG
            network.parser = ActionScorer(
                rows, WORDS + LENGTHS, PARSER_EMBEDDING, PARSER_HIDDEN, settings.input_dropout
            )
        return network

    def layers(self) -> list[Layers]:
        settings = self.config.model
        width = settings.embedding or self.vocabulary.size
        return [Layers("body", "lstm", width, settings.hidden, bidirectional=True)] * (settings.network == "sequence")

    def shapes(self) -> Shapes:
        settings, size = self.config.model, self.vocabulary.size
        shapes: Shapes = {"embedding.weight": (size, settings.embedding)} if settings.embedding else {}
        width = 2 * settings.hidden if settings.network == "sequence" else settings.hidden
        shapes |= {"output.weight": (len(self.labels), width), "output.bias": (len(self.labels),)}
        if settings.parser == "shift-reduce":
            shapes |= ShiftReduce.shapes(size, PARSER_EMBEDDING, PARSER_HIDDEN)
        if settings.network == "sequence":
            return shapes | self.layers()[0].shapes()
        return shapes | CompiledTrees.shapes(settings.network, settings.embedding or size, settings.hidden)

    def compile(self, weights: Arrays) -> "CompiledTrees | CompiledPhrases":
        settings = self.config.model
        weights = settings.shortened(weights, "embedding.weight")
        if settings.network != "sequence":
            return CompiledTrees(settings.network, weights)
        return CompiledPhrases(self.layers()[0], weights, one_hot=not settings.embedding)


class CompiledPhrases:
    """The sequence model, compiled: the words below each node, read as one sequence."""

    def __init__(self, layers: Layers, weights: Arrays, *, one_hot: bool) -> None:
        reads: dict[str, Any] = {"one_hot": True} if one_hot else {"embedding": "embedding"}
        own = {name: array for name, array in weights.items() if not name.startswith("parser.")}
        self.encoder = CompiledLayers(layers, own, pooling="last", output="output", **reads)

    def scores(self, trees: Trees, nodes: Ints) -> np.ndarray:
        """The scores of some nodes (K x C)."""
        phrases = trees.phrases(nodes)
        return self.encoder(phrases.data, phrases.lengths)


# The task


class TreeTask(Task[LabelledTree, TreeModel]):
    """A label for a tree, and for every phrase in it."""

    name = "tree"
    about = "Train a network over trees: a label for a sentence, and for every phrase in it."
    records, unit, counted = "trees", "nodes", "trees"
    Recipe, Model = TreeRecipe, TreeModel
    metrics = (
        Metric("accuracy", "root", percent=True),
        Metric("nodes.accuracy", "all nodes", percent=True),
        Metric("binary.root", "root, binary", percent=True),
        Metric("binary.nodes", "all nodes, binary", percent=True),
        Metric("parsed.accuracy", "root of plain texts", percent=True),
        Metric("parsed.f1", "F1 of their brackets", percent=True),
        Metric("parsed.heads", "their right heads", percent=True),
    )
    headlines = metrics[:1]
    example = 'model.predict("a text").label'
    inherited = ("learned", "classes")

    # Records

    def reader(self, data: DataSettings, known: Iterable[str] = ()) -> TreeReader:
        return TreeReader(
            format=data.format,
            tree=column(data.tree_column),
            label=column(data.label_column),
            labels=data.learned,
            classes=data.classes,
            known=known,
            encoding=data.encoding,
        )

    def key(self, record: LabelledTree) -> Any:
        return record.key

    def settle(self, parts: dict[str, list[LabelledTree]], recipe: TreeRecipe, say: Say) -> Data[LabelledTree]:
        train = parts["train"]
        counts = Counter(label for record in train for label in record.labels if label is not None)
        source, column = source_of(train[0].where), str(recipe.data.label_column)
        if set(counts) == {UNLABELLED} and is_of_words(column):
            raise UserError(f"no word of {source} has {column}: name another with -s data.label_column=NAME")
        check_classes(counts, counts.total(), source)
        dependency = _one_kind([record for records in parts.values() for record in records])
        if dependency and recipe.model.network != "child-sum":
            raise UserError(
                f"model.network = {recipe.model.network} reads trees in brackets, and {source} has "
                "dependency trees: say -s model.network=child-sum"
            )
        if dependency and recipe.model.parser == "shift-reduce":
            raise UserError("model.parser = shift-reduce learns brackets, not dependencies: choose right or balanced")
        for split in ("dev", "test"):
            _check_labels(parts.get(split, []), counts)
        held = super().settle(parts, recipe, say)
        return replace(held, facts={"labels": tuple(sorted(counts)), "dependency": dependency})

    def read_set(self, model: TreeModel, recipe: TreeRecipe, source: Source, name: str, say: Say) -> list[LabelledTree]:
        records: list[LabelledTree] = super().read_set(model, recipe, source, name, say)
        _check_labels(records, model.labels)
        return records

    # The network

    def fit_vocabulary(self, recipe: TreeRecipe, data: Data[LabelledTree]) -> Vocabulary:
        text = recipe.text
        words = [word for record in data.train for word in text.spelled(record)]
        vectors = known_vectors(recipe, data, words)
        extra = () if vectors is None else vectors.words
        return Vocabulary.fit(words, min_count=text.min_count, size=text.size, extra=extra, setting="text.min_count")

    def vocabulary_counts(self, vocabulary: Vocabulary) -> Iterator[tuple[np.ndarray, str]]:
        yield vocabulary.counts, "training words"

    def embedded(self, vocabulary: Vocabulary) -> dict[str, Embedded]:
        return {"vectors": Embedded("embedding", vocabulary.tokens, vocabulary.counts)}

    def config_parts(self, recipe: TreeRecipe, data: Data[LabelledTree], examples: Any) -> dict[str, Any]:
        found = {key: data.facts[key] for key in ("labels", "dependency")}  # `vectors` are no part of a config
        return {"text": recipe.text, **found}

    def check_start(self, start: TreeModel, data: Data[LabelledTree]) -> None:
        why = "which the model to start from does not know"
        _check_labels([*data.train, *data.dev, *data.test], start.labels, why)
        data.facts["labels"] = start.config.labels

    def examples(self, recipe: TreeRecipe, data: Data[LabelledTree], vocabulary: Vocabulary) -> "Examples":
        config = TreeConfig.new(self.name, recipe, model=recipe.model, **self.config_parts(recipe, data, None))
        return Examples.of(TreeModel(config, vocabulary, {}), data.train)

    def lengths(self, examples: "Examples") -> np.ndarray:
        """Trees of like height together: a batch is computed height by height."""
        trees = examples.trees
        return np.stack([trees.heights[trees.roots] + 1, trees.lengths], axis=1)

    def batch(self, run: Run, rows: np.ndarray) -> "Examples":
        return run.examples.take(rows)  # type: ignore[no-any-return]

    def loss(self, run: Run, batch: "Examples", state: Any) -> "Loss":
        """Cross-entropy at every node that has a label; beside it that of the parser's actions, where one learns."""
        import torch
        from torch.nn import functional

        from elman.train.task import Loss

        nodes = np.flatnonzero(batch.labels.data >= 0)
        targets = torch.from_numpy(batch.labels.data[nodes])
        logits = run.network(batch.trees, nodes)
        mean = functional.cross_entropy(logits, targets, label_smoothing=run.recipe.loss.smoothing)
        if batch.actions is not None:
            assert batch.views is not None
            scores = run.network.parser(torch.from_numpy(batch.views.data))
            right = torch.from_numpy(batch.actions.data.astype(np.float32))
            mean = mean + functional.binary_cross_entropy_with_logits(scores, right)
        return Loss(mean, len(nodes))

    # Scores

    def watch(self, run: Run) -> dict[str, float]:
        """Loss and accuracy on the held-out trees: at the root, or where words have labels, at all nodes."""
        trees = run.once("watched", lambda: run.model.prepared(run.data.dev))
        found = _accuracies(trees, run.model.scores(trees), run.model.labels)
        accuracy = found["nodes"]["accuracy"] if _of_words(run.model, found) else found["accuracy"]
        return {"loss": found["loss"], "accuracy": accuracy, "error": 1 - accuracy}

    def score(
        self, model: TreeModel, records: Sequence[LabelledTree], recipe: TreeRecipe, train: Sequence[LabelledTree]
    ) -> dict[str, Any]:
        trees = model.prepared(records)
        rows = model.scores(trees)
        found = _accuracies(trees, rows, model.labels)
        guessed = [model.labels[int(row[-1].argmax())] for row in rows]
        gold, said = [_root(record) for record in records], guessed
        if _of_words(model, found):
            gold, said = _at_nodes(trees, rows, model.labels)
        found |= {**classification.single_scores(gold, said, model.labels), "accuracy": found["accuracy"]}
        right = np.array([guess == record.label for guess, record in zip(guessed, records, strict=True)])
        found["depth"] = _by_depth(records, right)
        negated = np.array([not NEGATIONS.isdisjoint(map(str.lower, record.tokens)) for record in records])
        if negated.any() and not negated.all():
            found["negation"] = {"with": _share(right[negated]), "without": _share(right[~negated])}
        found["parsers"] = self._parsers(model, records, of_words=_of_words(model, found))
        return {**found, "parsed": found["parsers"][model.config.model.parser]}

    def _parsers(
        self, model: TreeModel, records: Sequence[LabelledTree], *, of_words: bool
    ) -> dict[str, dict[str, float]]:
        """What it costs that a plain text has no tree: the accuracy at the root with each parser that there is.

        Where words have labels, also that at all of them; brackets have an F1 where there are some.
        """
        found: dict[str, dict[str, float]] = {}
        parsers: list[Parser] = ["right", "balanced", model.config.model.parser]
        for parser in dict.fromkeys(parsers):
            trees = model.prepared(records, parser)
            scores = model.scores(trees)
            hits = [model.labels[int(rows[-1].argmax())] == r.label for rows, r in zip(scores, records, strict=True)]
            found[parser] = {"accuracy": float(np.mean(hits))}
            if of_words:
                found[parser]["words"] = _right_words(records, trees, scores, model.labels)
            if model.config.dependency:
                found[parser]["heads"] = _right_heads(records, trees)
            elif any(len(record.parents) > 1 for record in records):
                found[parser]["f1"] = _bracket_f1(records, trees)
        return found

    def baselines(
        self, model: TreeModel, train: Sequence[LabelledTree], recipe: TreeRecipe, say: Say
    ) -> dict[str, Score]:
        """The most frequent class, and linear models over n-grams and over the mean of the model's word vectors.

        Where words have labels, also the most frequent one of each; linear models only where the roots' labels differ.
        """
        if not train:
            return {}
        some = train[: recipe.baseline.texts]
        labels, texts = [_root(record) for record in some], [record.text for record in some]
        every = [label for record in train for label in record.labels if label is not None]
        usual = MostFrequentClass.fit(every, every).label
        rivals: dict[str, Callable[[Sequence[LabelledTree]], list[str]]] = {}
        frequent = MostFrequentClass.fit(texts, labels)
        rivals["most frequent class"] = lambda records: frequent.predict([record.text for record in records])
        differ = len(set(labels)) > 1
        if not differ and (recipe.baseline.ngrams or recipe.baseline.vectors):
            say(
                f"no baselines of the root's label but the most frequent one: it is {labels[0]!r} in all training trees"
            )
        try:
            if differ and recipe.baseline.ngrams:
                ngrams = CharacterNgrams.fit(texts, labels)
                rivals["character n-grams"] = lambda records: ngrams.predict([record.text for record in records])
            if differ and recipe.baseline.vectors and recipe.model.embedding:
                bag = BagOfVectors.fit(_means(model, some), labels)
                rivals["bag of its vectors"] = lambda records: bag.predict(_means(model, records))
        except UserError as error:
            say(f"not all baselines: {error}")

        def score(who: str, records: Sequence[LabelledTree]) -> dict[str, Any]:
            guessed = rivals[who](records)
            found = classification.single_scores([_root(record) for record in records], guessed, model.labels)
            if who == "most frequent class":
                gold = [label for record in records for label in record.labels if label is not None]
                found["nodes"] = {"accuracy": float(np.mean([label == usual for label in gold]))}
            return found

        scores: dict[str, Score] = {who: partial(score, who) for who in rivals}
        if model.config.dependency and len(every) > len(train):
            words, tags = zip(*(_labelled_words(model, record) for record in train), strict=True)
            scores["most frequent label of each word"] = partial(_score_words, MostFrequentTag.fit(words, tags), model)
        return scores

    # Words

    def sentence(self, recipe: TreeRecipe, report: "Report") -> str:
        model = recipe.model
        kind = {
            "rntn": "recursive neural tensor network",
            "tree-lstm": "binary Tree-LSTM",
            "child-sum": "child-sum Tree-LSTM",
        }
        what = kind.get(model.network, f"{model.network} network")
        return f"A {what} of {model.hidden}: labels of trees, and of every phrase in them ({report['about']})"

    def describe(self, run: Run) -> str:
        nodes = int((run.examples.labels.data >= 0).sum())
        return f"{super().describe(run)}; {nodes:,} nodes with a label; {run.model.vocabulary.size:,} words"

    def details(self, scores: Mapping[str, Any]) -> str:
        """By depth, by negation, by parser, then class by class and what was taken for what."""
        rows = [(f"depth {name}", part["trees"], part["accuracy"]) for name, part in scores["depth"].items()]
        rows += [
            (f"{name} negation", part["trees"], part["accuracy"]) for name, part in scores.get("negation", {}).items()
        ]
        lines = [f"{'':<16}{'trees':>8}{'root':>10}"]
        lines += [f"{name:<16}{count:>8}{100 * accuracy:>8.2f} %" for name, count, accuracy in rows]
        usual = next(iter(scores["parsers"].values()))
        shape = next((name for name in ("heads", "f1") if name in usual), None)
        of_words = "words" in usual
        accuracy = scores["nodes"]["accuracy"] if of_words else scores["accuracy"]
        lines += [
            "",
            f"{'trees by':<16}{'F1' if shape == 'f1' else shape or '':>8}{'words' if of_words else 'root':>10}",
            f"{'the treebank':<16}{'':>8}{100 * accuracy:>8.2f} %",
        ]
        for name, part in scores["parsers"].items():
            right = f"{100 * part[shape]:.2f}" if shape else ""
            lines.append(f"{name:<16}{right:>8}{100 * part['words' if of_words else 'accuracy']:>8.2f} %")
        confusion = classification.Confusion(tuple(scores["classes"]), np.asarray(scores["confusion"], np.int64))
        table = classification.score_table(classification.scores_from(scores["classes"]))
        return "\n\n".join(["\n".join(lines), table, classification.confusion_table(confusion, width=100)])


@dataclass(frozen=True, eq=False)
class Examples:
    """Trees as the network learns them: their nodes, a class for each (-1 where it has none), a parser's actions."""

    trees: Trees
    labels: Ragged
    views: Ragged | None
    actions: Ragged | None
    places: Sequence[Place | None]

    @classmethod
    def of(cls, model: TreeModel, records: Sequence[LabelledTree]) -> "Examples":
        """Those of some records, as a model reads them."""
        prepared = model.prepared(records)
        number = {label: place for place, label in enumerate(model.labels)}
        labels = [[-1 if label is None else number[label] for label in tree.labels] for tree in prepared]
        views, actions = None, None
        if model.config.model.parser == "shift-reduce":
            binary = [record.binary() for record in records]
            shown = [oracle(tree.words) for tree in binary]
            rows = [
                features(np.array(seen), model.ids(tree), model.vocabulary.size)
                for tree, (seen, _) in zip(binary, shown, strict=True)
            ]
            views, actions = Ragged.of(rows), Ragged.of([right for _, right in shown])
        return cls(model.encode(prepared), Ragged.of(labels), views, actions, [tree.where for tree in prepared])

    def __len__(self) -> int:
        return len(self.trees)

    def take(self, rows: np.ndarray) -> "Examples":
        """Some of them."""
        views, actions = (None if part is None else part.take(rows) for part in (self.views, self.actions))
        return Examples(
            self.trees.take(rows), self.labels.take(rows), views, actions, [self.places[row] for row in rows.tolist()]
        )

    def __repr__(self) -> str:
        return f"of the trees {', '.join(map(str, self.places[:3]))} ..."


def _root(record: LabelledTree) -> str:
    assert record.label is not None  # which readers see to
    return record.label


def _one_kind(records: Sequence[LabelledTree]) -> bool:
    """Whether trees are those of dependencies; all have to be, or none."""
    large = [record for record in records if len(record.parents) > 1]
    for record in large:
        if record.is_dependency != large[0].is_dependency:
            raise UserError(
                f"{record.where} and {large[0].where} are trees of brackets and of dependencies: give one kind"
            )
    return bool(large) and large[0].is_dependency


def _check_labels(
    records: Sequence[LabelledTree], known: Iterable[str], why: str = "which no training tree has"
) -> None:
    names = set(known)
    strange = ((record, label) for record in records for label in record.labels if label and label not in names)
    check_known([LabelledText("", (label,), record.where) for record, label in strange], names, why)


def _accuracies(trees: Sequence[LabelledTree], rows: Sequence[np.ndarray], labels: Sequence[str]) -> dict[str, Any]:
    """At the roots and at all nodes with a label; of sentiment, of the two poles as well."""
    number = {label: place for place, label in enumerate(labels)}
    flags = np.concatenate([[-1 if label is None else number[label] for label in tree.labels] for tree in trees])
    roots = np.cumsum([len(tree.labels) for tree in trees]) - 1
    table = np.concatenate(rows)  # N x C
    has = flags >= 0
    right = table.argmax(axis=1) == flags
    chosen = table[np.arange(len(flags)), np.maximum(flags, 0)].astype(np.float64)[has]
    diverged = (chosen == 0).mean() > 0.5  # most of what is right has no probability at all
    found: dict[str, Any] = {
        "loss": math.inf if diverged else float(-np.log(np.maximum(chosen, 1e-12)).mean()),
        "trees": len(trees),
        "accuracy": float(right[roots].mean()),
        "nodes": {"nodes": int(has.sum()), "accuracy": float(right[has].mean())},
    }
    if tuple(labels) == SENTIMENT:
        poles = has & (flags != 2)
        hits = (table[:, 3:].sum(axis=1) > table[:, :2].sum(axis=1)) == (flags > 2)
        sides = {"root": hits[roots][poles[roots]], "nodes": hits[poles]}
        found["binary"] = {name: float(part.mean()) for name, part in sides.items() if len(part)}
    return found


def _of_words(model: TreeModel, found: Mapping[str, Any]) -> bool:
    """Whether more than the roots of dependency trees have labels: that of the root alone would tell little."""
    return model.config.dependency and found["nodes"]["nodes"] > found["trees"]


def _at_nodes(
    trees: Sequence[LabelledTree], rows: Sequence[np.ndarray], labels: Sequence[str]
) -> tuple[list[str], list[str]]:
    """What is right at all nodes with a label, and what was said there."""
    pairs = [
        (label, labels[best])
        for tree, row in zip(trees, rows, strict=True)
        for label, best in zip(tree.labels, row.argmax(axis=1).tolist(), strict=True)
        if label is not None
    ]
    return [right for right, _ in pairs], [said for _, said in pairs]


def _labelled_words(model: TreeModel, record: LabelledTree) -> tuple[list[str], list[str]]:
    """The words of a dependency tree that have a label, and their labels; those of the root last."""
    words = model.config.text.spelled(record)
    at = [(words[word], label) for word, label in zip(record.words, record.labels, strict=True) if label is not None]
    return [word for word, _ in at], [label for _, label in at]


def _score_words(baseline: MostFrequentTag, model: TreeModel, records: Sequence[LabelledTree]) -> dict[str, Any]:
    """What a baseline scores that looks at each word alone: at the roots, and at all words with a label."""
    words, gold = zip(*(_labelled_words(model, record) for record in records), strict=True)
    said = baseline.predict(words)
    found = classification.single_scores([*chain(*gold)], [*chain(*said)], model.labels)
    roots = [right[-1] == guess[-1] for right, guess in zip(gold, said, strict=True)]
    return found | {"accuracy": float(np.mean(roots)), "nodes": {"accuracy": found["accuracy"]}}


def _by_depth(records: Sequence[LabelledTree], right: np.ndarray) -> dict[str, Any]:
    depths = np.array([record.depth for record in records])
    step = 1 if depths.max() <= EACH else 5
    groups = depths // step
    names = {
        group: str(group) if step == 1 else f"{group * step}-{group * step + step - 1}" for group in groups.tolist()
    }
    return {names[group]: _share(right[groups == group]) for group in sorted(names)}


def _share(right: np.ndarray) -> dict[str, Any]:
    return {"trees": len(right), "accuracy": float(right.mean())}


def _bracket_f1(gold: Sequence[LabelledTree], found: Sequence[LabelledTree]) -> float:
    return bracket_scores([r.nested() for r in gold], [r.nested() for r in found], labelled=False).f1


def _right_heads(gold: Sequence[LabelledTree], found: Sequence[LabelledTree]) -> float:
    """The share of words with the right head."""
    pairs = (zip_longest(one.heads(), other.heads()) for one, other in zip(gold, found, strict=True))
    return float(np.mean([head == guess for pair in pairs for head, guess in pair]))  # None behind `model.longest`


def _right_words(
    gold: Sequence[LabelledTree], found: Sequence[LabelledTree], rows: Sequence[np.ndarray], labels: Sequence[str]
) -> float:
    """The share of words with a label that have the right one; those behind `model.longest` have none."""
    hits = []
    for right, tree, row in zip(gold, found, rows, strict=True):
        said = dict(zip(tree.words, (labels[best] for best in row.argmax(axis=1).tolist()), strict=True))
        pairs = zip(right.words, right.labels, strict=True)
        hits += [said.get(word) == label for word, label in pairs if label is not None]
    return float(np.mean(hits))


def _means(model: TreeModel, records: Sequence[LabelledTree]) -> np.ndarray:
    """The mean vector of the words of each record (N x E)."""
    vectors = dequantised(model.weights(), "embedding.weight")
    return np.stack([vectors[model.ids(record)].mean(axis=0) for record in records])
