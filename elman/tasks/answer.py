"""Answers to questions about images: p(answer | image, question), the answer one of those that training had.

model = elman.fit("answer", train="questions.tsv", out="runs/answers")
model.predict("photo.jpg", "is there a dog ?").label
model.predict([("one.jpg", "is there a dog ?"), ("two.jpg", "is it raining ?")])
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from pydantic import Field

from elman.baselines.images import ImageRegression
from elman.baselines.lexicon import CharacterNgrams, MostFrequentClass
from elman.batches.features import FeatureSet, find_features
from elman.errors import UserError
from elman.metrics import classification
from elman.metrics.metric import Metric
from elman.ragged import Ragged
from elman.records.classes import check_classes, check_known
from elman.records.images import ONE_IMAGE
from elman.records.images import Source as Image
from elman.records.places import Place, RecordError, source_of
from elman.records.questions import ImageQuestion, QuestionReader
from elman.records.tables import table_format
from elman.tasks.classify import Prediction, TextSettings, chances
from elman.tasks.folder import Config
from elman.tasks.model import Model, check_texts
from elman.tasks.predict import PredictOptions, read_texts
from elman.tasks.sections import (
    Cell,
    DataSection,
    EmbeddingSection,
    FeaturesSection,
    Folder,
    Name,
    SizeSection,
    TwoWaySection,
    column,
)
from elman.tasks.task import Data, Say, Score, Source, Task, Training, hold_out
from elman.tasks.vectors import Embedded, VectorsSection, fit_with_vectors
from elman.text import Tokenizer
from elman.text.encoder import TokenEncoder
from elman.text.settings import Kind
from elman.train.recipe import Section, TrainSettings, parse

if TYPE_CHECKING:
    from elman.nn.questions import QuestionNetwork
    from elman.tasks.report import Report
    from elman.train.task import Loss

BATCH = 128  # questions computed on at a time, at most
WINDOW = 64  # questions whose images are held in memory at a time
COMMAND_LINE = (Path("images"), Path("the text"))  # as `inputs` calls what is named there
FORM = "give an image and a question, or a list of pairs (image, question)"
BLOCKS = 8  # on a side: what of the pixels of an image the baseline that sees the image alone is shown

Run = Training[ImageQuestion, "ImageAnswerer"]


# The recipe


class DataSettings(DataSection):
    """Where the questions come from: a corpus of the catalogue, or tables of the user's own."""

    images: Folder | None = Field(None, description="the folder of the images; that of the table if not given")
    image: Name | None = Field(None, description="the column of the images' names; found by its own")
    question: Name | None = Field(None, description="the column of the questions or statements; found by its name")
    answer: Name | None = Field(None, description="the column of the answers; found by its name")


class QuestionText(TextSettings):
    """What a token of a question is."""

    kind: Kind = "words"


class ModelSettings(FeaturesSection, VectorsSection, EmbeddingSection, TwoWaySection):
    """The network: recurrent layers over the question, joined with the places of the image."""

    cell: Cell = "gru"
    bidirectional: bool = True
    pooling: Literal["last", "mean", "max", "attention", "last-max-mean"] = Field(
        "last", description="how the steps of a question become one vector"
    )
    join: Literal["product", "concatenation", "attention", "phrases"] = Field(
        "attention",
        description="how question and image meet: entry by entry, side by side, by attention to places, or phrase by "
        "phrase",
    )
    glimpses: int = Field(
        2, ge=1, le=16, description="looks of model.join = attention, or phrases of phrases, each by itself"
    )
    join_hidden: int = Field(256, ge=2, description="size of what question and image give together")
    edges: bool = Field(True, description="an end token stands before and behind each question")
    longest: int = Field(200, ge=1, description="tokens of a question that are read; what comes after is left out")
    token_dropout: float = Field(0.0, ge=0, lt=1, description="share of tokens that are made unknown")
    input_dropout: float = Field(0.2, ge=0, lt=1, description="of embedded tokens")
    output_dropout: float = Field(0.2, ge=0, lt=1, description="of the question's vector, and before the output layer")


class LossSettings(Section):
    """What the network is trained to do."""

    smoothing: float = Field(0.0, ge=0, lt=1, description="share of the probability that is spread over all answers")


class ImagesSection(SizeSection):
    """How many images, each with all its questions, make a batch."""

    size: int | None = Field(
        None, ge=1, description="images in an update, with all their questions; 32, or down to 8 for small data"
    )


class AnswerRecipe(Section):
    """Everything that a run of this task depends on."""

    task: Literal["answer"] = "answer"
    data: DataSettings = DataSettings()
    text: QuestionText = QuestionText()
    model: ModelSettings = ModelSettings()
    loss: LossSettings = LossSettings()
    batch: ImagesSection = ImagesSection()
    train: TrainSettings = TrainSettings()


class PredictSettings(Section):
    """What may be asked of a prediction."""

    image: str | None = Field(None, description="the image of a question that is given as a text")
    images: str | None = Field(None, description="the folder of the images that a table names")
    features: str | None = Field(None, description="a file of features, for a model that was trained on such")


# The model


class AnswerConfig(Config):
    """What the config.json of such a model holds."""

    model: ModelSettings
    text: QuestionText
    labels: tuple[str, ...] = Field(min_length=1)
    places: int = Field(ge=1)
    channels: int = Field(ge=1)
    """The shape of the features that it was trained on."""


@dataclass(frozen=True)
class Asked:
    """A question to be answered, its image as it was opened, and what is to be seen of that."""

    record: ImageQuestion
    image: np.ndarray
    features: FeatureSet

    @property
    def text(self) -> str:
        """The question."""
        return self.record.text


class ImageAnswerer(Model[AnswerConfig, TokenEncoder, "QuestionNetwork", None]):
    """p(answer | image, question)."""

    task = "answer"
    Config, Recipe = AnswerConfig, AnswerRecipe
    several = False

    @property
    def labels(self) -> list[str]:
        """The answers that it has."""
        return list(self.config.labels)

    def features(self, named: str | None = None) -> FeatureSet:
        """What it sees of images; `named` is another file of features, for a model that was trained on such."""
        return self.config.model.trained_on(self.config.places, self.config.channels, named)

    def predict(self, image: Any, question: str | None = None) -> Any:
        """The answer to a question about an image, a path or the content of its file, and all probabilities.

        Several are given as a list of pairs (image, question), without `question`, and answered as a list.
        """
        pairs, features = pairs_of(image, question), self.features()
        found: list[Prediction] = []
        for start in range(0, len(pairs), WINDOW):
            some = pairs[start : start + WINDOW]
            opened = {source: features.opened(source) for source in dict.fromkeys(source for source, _ in some)}
            found += self.answers([Asked(ImageQuestion(Path(), ask, ()), opened[at], features) for at, ask in some])
        return found[0] if isinstance(image, ONE_IMAGE) else found

    def answers(self, records: Sequence[Asked]) -> list[Prediction]:
        images = {id(asked.image): asked.image for asked in records}  # one image may have many questions
        numbers = {key: number for number, key in enumerate(images)}
        owner = np.array([numbers[id(asked.image)] for asked in records])
        seen = records[0].features.see(list(images.values())) if records else np.empty(0)
        encoded = self.vocabulary.encode([asked.text for asked in records])
        rows = chances(self.scores(encoded, owner, lambda chosen: seen[chosen]), several=False)
        return [self._prediction(row) for row in rows.tolist()]

    def _prediction(self, row: list[float]) -> Prediction:
        probabilities = dict(zip(self.config.labels, row, strict=True))
        return Prediction((max(probabilities, key=probabilities.__getitem__),), probabilities)

    def scores(self, encoded: Ragged, owner: np.ndarray, take: Any) -> np.ndarray:
        """What the network says to questions (N x C); `take` gives the features of images by their numbers."""
        import torch

        from elman.nn.inputs import Inputs

        found = np.zeros((len(encoded), len(self.config.labels)), np.float32)
        order = np.argsort(owner, kind="stable")  # questions about one image stand together
        with torch.inference_mode(), self.evaluating() as network:
            for start in range(0, len(order), BATCH):
                rows = order[start : start + BATCH]
                images, own = np.unique(owner[rows], return_inverse=True)
                features = torch.from_numpy(take(images))
                found[rows] = network(Inputs.of(encoded.take(rows)), features, torch.from_numpy(own)).numpy()
        return found

    def read(self, lines: Iterable[str], options: PredictOptions) -> Iterator[Asked]:
        asked = parse(PredictSettings, options.asked, where="the options")
        features = self.features(asked.features)
        path, opened = Path(), None
        data = self._data()
        if asked.images is not None:
            data = data.model_copy(update={"images": checked_folder(asked.images)})
        for record in read_texts(Answer().reader(data), lines, options):
            if record.image == Path() and asked.image is not None:
                record = replace(record, image=Path(asked.image))
            if record.image == Path():
                options.bad(
                    RecordError(record.where, "names no image: give --image FILE, or a table with a column of them")
                )
                continue
            try:
                if record.image != path or opened is None:
                    path, opened = record.image, features.opened(record.image)
            except UserError as error:
                path, opened = Path(), None
                options.bad(unseen(record.where, record.image, "has no image that can be seen", error))
                continue
            yield Asked(record, opened, features)

    def uploaded(self, number: int, content: bytes, fields: Mapping[str, Any], asked: Mapping[str, Any]) -> Asked:
        """A question about an image that came with a request, as `read` gives those of lines."""
        features = self.features(parse(PredictSettings, asked, where="the options").features)
        where, others = Place("the request", number), {name: fields[name] for name in fields if name != "question"}
        record = ImageQuestion(Path(f"image {number}"), fields["question"], (), None, where, others)
        try:
            return Asked(record, features.opened(content), features)
        except UserError as error:
            raise unseen(where, record.image, "has no image that can be seen", error) from None

    def predict_lines(self, lines: Iterable[str], options: PredictOptions, answers: Any = None) -> Iterator[str]:
        return super().predict_lines(lines, replace(options, window=min(options.window, WINDOW)), answers)

    def length(self, record: Asked) -> int:
        return len(record.text)

    def written(self, record: Asked, answer: Prediction, options: PredictOptions) -> Iterator[str]:
        if options.as_json:
            ordered = sorted(answer.probabilities.items(), key=lambda pair: -pair[1])
            found = {"answer": answer.label, "probabilities": {label: round(p, 6) for label, p in ordered}}
            given = {"question": record.text, "image": str(record.record.image)} | record.record.fields
            yield options.to_json(record.record.where, given, found)
        else:
            yield f"{answer.label}\t{answer.probability:.4f}"

    def about(self) -> str:
        model = self.config.model
        return f"{len(self.config.labels)} answers, {model.words()}, {model.seen}, {model.join}"

    def why_not_compiled(self) -> str:
        return "images are seen by PyTorch"

    # The folder and the network

    @classmethod
    def load_vocabulary(cls, folder: Path, config: Any) -> TokenEncoder:
        tokenizer = Tokenizer.load(folder / "tokenizer.json")
        return TokenEncoder(tokenizer, edges=config.model.edges, longest=config.model.longest)

    @classmethod
    def build(cls, config: AnswerConfig, vocabulary: TokenEncoder) -> "QuestionNetwork":
        from elman.nn.images import image_encoder
        from elman.nn.pooling import POOLINGS
        from elman.nn.questions import JOINS, QuestionNetwork

        settings = config.model
        embedding = settings.fresh_embedding(vocabulary.size)
        body = settings.body(embedding.embedding_dim, bidirectional=settings.bidirectional)
        pooling = POOLINGS[settings.pooling](body)
        pixels = settings.features == "pixels"
        width, dropout = settings.image_hidden, settings.image_dropout
        image = image_encoder(config.places, config.channels, width, pixels=pixels, dropout=dropout)
        more: dict[str, dict[str, int]] = {
            "attention": {"glimpses": settings.glimpses},
            "phrases": {
                "word_size": embedding.embedding_dim,
                "state_size": body.output_size,
                "phrases": settings.glimpses,
            },
        }
        sizes = (pooling.output_size, image.output_size, settings.join_hidden)
        join = JOINS[settings.join](*sizes, **more.get(settings.join, {}))
        dropouts = {name: getattr(settings, name) for name in ("token_dropout", "input_dropout", "output_dropout")}
        network = QuestionNetwork(embedding, body, pooling, image, join, len(config.labels), **dropouts)
        return settings.initialised(network, body)


def pairs_of(given: Any, question: Any = None) -> list[tuple[Image, str]]:
    """Images, each with what is asked about it, from what `predict` is called with.

    >>> pairs_of([(b"one", "is it red ?"), (b"two", "is it round ?")])
    [(b'one', 'is it red ?'), (b'two', 'is it round ?')]
    >>> pairs_of([b"one", b"two"], ["is it red ?", "is it round ?"])
    Traceback (most recent call last):
    elman.errors.UserError: question 1 of 2 is a list: give an image and a question, or a list of pairs ...
    """
    one = isinstance(given, ONE_IMAGE)
    if isinstance(given, Mapping) or not (one or isinstance(given, Iterable)):
        raise UserError(f"a {type(given).__name__} is no image: {FORM}")
    if one and question is None:
        raise UserError(f"there is an image and no question: {FORM}")
    pairs = list(given) if question is None else [(image, question) for image in ([given] if one else given)]
    for number, pair in enumerate(pairs, 1):
        which = f"{number} of {len(pairs)}"
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise UserError(f"record {which} is no pair of an image and a question: {FORM}")
        for what, part, kinds in (("image", pair[0], ONE_IMAGE), ("question", pair[1], (str,))):
            if not isinstance(part, kinds):
                raise UserError(f"{what} {which} is a {type(part).__name__}: {FORM}")
    check_texts([ask for _, ask in pairs])
    return [(Path(image) if isinstance(image, str) else image, ask) for image, ask in pairs]


def checked_folder(folder: str) -> str:
    """A folder of images that a user names, which has to be there.

    >>> checked_folder("")
    Traceback (most recent call last):
    elman.errors.UserError: there is no folder of images '': name another with --images
    """
    if not folder or not Path(folder).is_dir():
        raise UserError(f"there is no folder of images '{folder}': name another with --images")
    return folder


def unseen(where: Place, image: Path, problem: str, error: UserError) -> UserError:
    """What is wrong with a record whose image cannot be used; one named on the command line stands in no line.

    An image of a file is called as it is there, without the file's folder.

    >>> place, image = Place(Path("data/a.tsv"), 7), Path("data/b/a.png")
    >>> str(unseen(place, image, "has no caption", UserError(f"no such file: {image}")))
    'data/a.tsv:7 has no caption: no such file: b/a.png'
    >>> str(unseen(Place(Path("images"), 1), Path("a.png"), "has no caption", UserError("no such file: a.png")))
    'no such file: a.png'
    """
    if where.path in COMMAND_LINE:
        return error
    beside = str(image).removeprefix(f"{Path(where.path).parent}/")
    gone = isinstance(error.__cause__, FileNotFoundError) and table_format(Path(where.path)) is not None
    advice = "; say where images are with --images FOLDER" if gone else ""
    return RecordError(where, f"{problem}: {str(error).replace(str(image), beside, 1)}{advice}")


# The task


class Seen:
    """Questions with the features of their images: what is learned from, image by image."""

    def __init__(self, records: Sequence[ImageQuestion], encoded: Ragged, features: FeatureSet) -> None:
        self.images = list(dict.fromkeys(record.image for record in records))
        numbers = {image: number for number, image in enumerate(self.images)}
        self.owner = np.array([numbers[record.image] for record in records])
        self.encoded, self.stored = encoded, features.stored(self.images)
        order = np.argsort(self.owner, kind="stable")
        self.questions = np.split(order, np.cumsum(np.bincount(self.owner))[:-1])
        """The numbers of the questions about each image."""

    def __len__(self) -> int:
        return len(self.images)

    @property
    def lengths(self) -> np.ndarray:
        return np.ones(len(self.images), np.int64)  # packed questions need not be alike in length


class Answer(Task[ImageQuestion, ImageAnswerer]):
    """An answer to a question about an image."""

    name = "answer"
    about = "Train a network that answers questions about images, or judges statements about them."
    records, unit, counted, tried = "questions", "questions", "questions", "FILE"
    Recipe, Model, Options = AnswerRecipe, ImageAnswerer, PredictSettings
    metrics = (Metric("accuracy", percent=True), Metric("macro_f1", "macro F1", percent=True))
    headlines = metrics[:1]
    example = 'model.predict("photo.jpg", "a question").label'
    record_has_image = True

    # Records

    def reader(self, data: DataSettings) -> QuestionReader:
        told = {name: column(getattr(data, name)) for name in ("question", "answer")}
        return QuestionReader(image=data.image, folder=data.images, encoding=data.encoding, **told)

    def key(self, record: ImageQuestion) -> tuple[str, str, tuple[str, ...]]:
        return record.image.name, record.text, record.labels

    def settle(self, parts: dict[str, list[ImageQuestion]], recipe: AnswerRecipe, say: Say) -> Data[ImageQuestion]:
        """Hold out whole images, so that nothing is asked about one that was trained on."""
        train, dev, test = parts["train"], parts.get("dev", []), parts.get("test", [])
        counts = Counter(record.labels[0] for record in train)
        check_classes(counts, len(train), source_of(train[0].where))
        for records in (train, dev, test):
            self._check(records, counts, recipe.model)
        if not dev:
            images = list(dict.fromkeys(record.image for record in train))
            kept = set(hold_out(images, recipe.data.dev_fraction, recipe.train.seed, "images")[0])
            dev = [record for record in train if record.image not in kept]
            train = [record for record in train if record.image in kept]
        both = {record.image for record in train} & {record.image for record in (*dev, *test)}
        if both:
            say(f"{len(both):,} images are both trained on and scored on, such as {next(iter(both))}")
        return Data(train, dev, test, {"labels": sorted(counts)})

    def _check(self, records: Sequence[ImageQuestion], known: Iterable[str], model: ModelSettings) -> None:
        check_known(cast(Any, records), set(known), "an answer that no training question has")
        model.check_images(records)

    def read_set(self, model: ImageAnswerer, recipe: AnswerRecipe, source: Source, name: str, say: Say) -> Any:
        records: list[ImageQuestion] = super().read_set(model, recipe, source, name, say)
        self._check(records, model.labels, model.config.model)
        return records

    # The network

    def fit_vocabulary(self, recipe: AnswerRecipe, data: Data[ImageQuestion]) -> TokenEncoder:
        tokenizer = fit_with_vectors(recipe, data, [record.text for record in data.train])
        return TokenEncoder(tokenizer, edges=recipe.model.edges, longest=recipe.model.longest)

    def embedded(self, vocabulary: TokenEncoder) -> dict[str, Embedded]:
        return {"vectors": Embedded("embedding", vocabulary.tokenizer.tokens, vocabulary.counts)}

    def vocabulary_counts(self, vocabulary: TokenEncoder) -> Iterator[tuple[np.ndarray, str]]:
        yield vocabulary.counts, "training tokens"

    def prepare(self, recipe: AnswerRecipe, data: Data[ImageQuestion], say: Say) -> None:
        every = dict.fromkeys(record.image for record in (*data.train, *data.dev, *data.test))
        find_features(recipe.model.features, recipe.model.image_size).stored(list(every), say)

    def examples(self, recipe: AnswerRecipe, data: Data[ImageQuestion], vocabulary: TokenEncoder) -> Seen:
        features = find_features(recipe.model.features, recipe.model.image_size)
        return Seen(data.train, vocabulary.encode([record.text for record in data.train]), features)

    def config_parts(self, recipe: AnswerRecipe, data: Data[ImageQuestion], examples: Any) -> dict[str, Any]:
        features = find_features(recipe.model.features, recipe.model.image_size)
        return {"text": recipe.text, **data.facts, "places": features.places, "channels": features.channels}

    def check_start(self, start: ImageAnswerer, data: Data[ImageQuestion]) -> None:
        why = "which the model to start from does not know"
        check_known(cast(Any, [*data.train, *data.dev, *data.test]), start.labels, why)
        data.facts["labels"] = start.labels

    def go_on_from(self, start: ImageAnswerer, recipe: AnswerRecipe) -> ImageAnswerer:
        recipe.model.trained_on(start.config.places, start.config.channels)  # features of another shape are refused
        return super().go_on_from(start, recipe)

    def batch(self, run: Run, rows: np.ndarray) -> "QuestionBatch":
        from elman.nn.inputs import Inputs

        seen: Seen = run.examples
        targets = run.once("targets", lambda: targets_of(run.data.train, run.model))
        questions = np.concatenate([seen.questions[row] for row in rows])
        owner = np.repeat(np.arange(len(rows)), [len(seen.questions[row]) for row in rows])
        places = ", ".join(str(run.data.train[index].where) for index in questions[:3])
        inputs = Inputs.of(seen.encoded.take(questions))
        return QuestionBatch(
            inputs, seen.stored.take(rows), owner, targets[questions], f"of the questions {places} ..."
        )

    def loss(self, run: Run, batch: "QuestionBatch", state: Any) -> "Loss":
        import torch
        from torch.nn.functional import cross_entropy

        from elman.train.task import Loss

        logits = run.network(batch.inputs, torch.from_numpy(batch.features), torch.from_numpy(batch.owner))
        targets = torch.from_numpy(batch.targets)
        return Loss(cross_entropy(logits, targets, label_smoothing=run.recipe.loss.smoothing), len(targets))

    def watch(self, run: Run) -> dict[str, float]:
        seen, targets = run.once(
            "watched", lambda: (self._seen(run.model, run.data.dev), targets_of(run.data.dev, run.model))
        )
        logits = run.model.scores(seen.encoded, seen.owner, seen.stored.take)
        accuracy = float((logits.argmax(axis=1) == targets).mean())
        return {"loss": classification.mean_loss(logits, targets), "accuracy": accuracy, "error": 1 - accuracy}

    def _seen(self, model: ImageAnswerer, records: Sequence[ImageQuestion]) -> Seen:
        return Seen(records, model.vocabulary.encode([record.text for record in records]), model.features())

    # Scores

    def facts(self, model: ImageAnswerer) -> dict[str, Any]:
        return {**super().facts(model), "answers": len(model.labels)}

    def score(
        self, model: ImageAnswerer, records: Sequence[ImageQuestion], recipe: AnswerRecipe, train: Any
    ) -> dict[str, Any]:
        seen = self._seen(model, records)
        logits = model.scores(seen.encoded, seen.owner, seen.stored.take)
        guessed = [model.config.labels[place] for place in logits.argmax(axis=1)]
        return {
            "loss": classification.mean_loss(logits, targets_of(records, model)),
            **_scores(records, guessed, model),
        }

    def baselines(
        self, model: ImageAnswerer, train: Sequence[ImageQuestion], recipe: AnswerRecipe, say: Say
    ) -> dict[str, Score]:
        """The most frequent answer, the question alone, the image alone."""
        if not train:
            return {}
        texts, answers = [record.text for record in train], [record.labels[0] for record in train]
        features = model.features()
        frequent = MostFrequentClass.fit(texts, answers)
        looks = ImageRegression.fit(whole_images(train, features), answers)
        rivals: dict[str, Any] = {
            "most frequent answer": lambda records: frequent.predict([record.text for record in records]),
            "image alone": lambda records: looks.predict(whole_images(records, features)),
        }
        try:
            reads = CharacterNgrams.fit(texts, answers)
            rivals["question alone"] = lambda records: reads.predict([record.text for record in records])
        except UserError as error:
            say(f"no baseline of the question alone: {error}")

        def scored(answered: Any) -> Score:
            return lambda records: _scores(records, answered(records), model)

        return {who: scored(rival) for who, rival in rivals.items()}

    # Words

    def sentence(self, recipe: AnswerRecipe, report: "Report") -> str:
        model = recipe.model
        return (
            f"It answers questions about images with one of {report['answers']} answers: {model.layers} x "
            f"{'bidirectional ' * model.bidirectional}{model.cell} of {model.hidden} over {recipe.text.kind}, "
            f"{model.seen} of the image, joined by {model.join}"
        )

    def details(self, scores: Mapping[str, Any]) -> str:
        """Type by type, where questions have such, and answer by answer."""
        types = scores.get("types", {})
        width = max(map(len, types), default=0)
        lines = [
            f"{name:{width}}  {100 * of['accuracy']:6.2f}  {of['questions']:,} questions" for name, of in types.items()
        ]
        table = classification.score_table(classification.scores_from(scores["classes"]))
        return "\n\n".join([*(["accuracy by type\n" + "\n".join(lines)] if lines else []), table])

    def use(self, recipe: Any, report: "Report") -> tuple[Sequence[str], str]:
        asks = 'elman predict {model} "a question" --image photo.jpg'
        return ("elman predict {model} FILE", asks, "elman evaluate {model} FILE"), self.example


@dataclass(repr=False)
class QuestionBatch:
    """Some images with all questions about them; shown in messages as the place they come from."""

    inputs: Any
    features: np.ndarray  # N x P x C
    owner: np.ndarray  # B: the image of each question
    targets: np.ndarray  # B
    place: str

    def __repr__(self) -> str:
        return self.place


def targets_of(records: Sequence[ImageQuestion], model: ImageAnswerer) -> np.ndarray:
    """The number of the answer to each question (N)."""
    place = {label: index for index, label in enumerate(model.config.labels)}
    return np.array([place[record.labels[0]] for record in records], np.int64)


def whole_images(records: Sequence[ImageQuestion], features: FeatureSet) -> np.ndarray:
    """One vector for the image of each question: the mean of its places; of pixels, those of 8 x 8 blocks (N x D)."""
    images = list(dict.fromkeys(record.image for record in records))
    stored, rows = features.stored(images), []
    for number in range(len(images)):
        places = stored.take([number])[0]  # P x C
        if features.pixels:
            side = features.size // min(BLOCKS, features.size) * min(BLOCKS, features.size)
            cut = places.reshape(features.size, features.size, 3)[:side, :side]
            places = cut.reshape(BLOCKS, side // BLOCKS, BLOCKS, side // BLOCKS, 3).mean((1, 3)).reshape(1, -1)
        rows.append(places.mean(axis=0))
    numbers = {image: number for number, image in enumerate(images)}
    return np.stack(rows)[[numbers[record.image] for record in records]]


def _scores(records: Sequence[ImageQuestion], guessed: Sequence[str], model: ImageAnswerer) -> dict[str, Any]:
    """What answers scored, whoever gave them, and on the questions of each type."""
    gold = [record.labels[0] for record in records]
    right = np.array([one == other for one, other in zip(gold, guessed, strict=True)])
    kinds = np.array([record.type or "" for record in records])
    types = {
        str(kind): {"accuracy": float(right[kinds == kind].mean()), "questions": int((kinds == kind).sum())}
        for kind in sorted({*kinds.tolist()} - {""})
    }
    found = classification.single_scores(gold, guessed, model.labels)
    return {"questions": len(records), **found, **({"types": types} if types else {})}
