"""The same options of layers, embeddings and teacher forcing in every task: compiled and in int8 what PyTorch says,
resumed exactly, and refused in a sentence where they do not go together."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from elman import kernels
from elman.decode import Sampling
from elman.errors import UserError
from elman.nn.recurrent import Recurrent
from elman.tasks import TASKS, fit
from elman.tasks.language import LanguageModel
from elman.tasks.recipes import load_recipe
from elman.train.loop import Trainer
from tests.tasks import classify_runs as classifiers
from tests.tasks import forecasts
from tests.tasks import runs as language
from tests.tasks import tag_runs as taggers
from tests.tasks import translate_runs as translators
from tests.tasks.resuming import assert_resumes_exactly

needs_kernels = pytest.mark.skipif(not kernels.available(), reason="the kernels were not built")

LAYERS = [
    ("model.cell=rnn", "model.nonlinearity=identity"),
    ("model.cell=rnn", "model.nonlinearity=logistic", "model.layers=2"),
    ("model.learned_state=true",),
    ("model.cell=lstm", "model.projection=6", "model.layers=2", "model.connections=residual"),
]
BOTH_WAYS = [
    ("model.merge=mean",),
    ("model.cell=lstm", "model.projection=6", "model.merge=mean", "model.learned_state=true", "model.layers=2"),
]
EMBEDDINGS = [
    ("model.max_norm=0.4", "model.padding_index=2"),
    ("model.max_norm=0.6", "model.norm_type=1", "model.sparse=true", "train.optimizer=sgd"),
    ("model.scale_by_frequency=true",),
]
TEXTS = [name for name, _ in classifiers.names(30)]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for each task."""
    folder = tmp_path_factory.mktemp("data")
    classifiers.write_table(folder / "names.csv")
    taggers.write(folder / "tags.conll")
    translators.write(folder / "pairs.tsv")
    forecasts.write(folder / "wave.csv")
    (folder / "prose.txt").write_text(language.prose())
    return folder


# Compiled and in int8


def trainer_of(task: str, data: Path, *settings: str) -> Any:
    """A trainer before its first update."""
    made: dict[str, tuple[Callable[..., Trainer], str]] = {
        "classify": (classifiers.trainer, "names.csv"),
        "tag": (taggers.trainer, "tags.conll"),
        "translate": (translators.trainer, "pairs.tsv"),
        "lm": (language.trainer, "prose.txt"),
    }
    trainer, name = made[task]
    return trainer(data / name, data / "unused", *settings)


def network_of(task: str, data: Path, *settings: str) -> nn.Module:
    """The network that a run begins with."""
    return trainer_of(task, data, *settings).task.network  # type: ignore[no-any-return]


def untrained(task: str, data: Path, *settings: str) -> Any:
    """A model before its first update, every weight of it drawn anew, the first state too."""
    model = trainer_of(task, data, *settings).task.model
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.network.eval().parameters():
            parameter.normal_(std=0.2)
    return model


@needs_kernels
@pytest.mark.parametrize("pooling", ["max", "last"])
@pytest.mark.parametrize("settings", [*LAYERS, *BOTH_WAYS, ("model.embedding=0",), *EMBEDDINGS[:2]])
def test_classifiers(data: Path, settings: tuple[str, ...], pooling: str) -> None:
    made = untrained("classify", data, f"model.pooling={pooling}", *settings)
    assert made.refusal() is None
    found, alone = made.probabilities(TEXTS), made.probabilities(TEXTS[:1])
    rounded = made.to_int8().probabilities(TEXTS)
    made.backend = "torch"
    expected = made.probabilities(TEXTS)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(alone, expected[:1], atol=1e-5)
    np.testing.assert_allclose(rounded, expected, atol=0.05)


@needs_kernels
@pytest.mark.parametrize("pooling", ["mean", "attention"])
def test_classifiers_that_pool_a_mean_of_directions(data: Path, pooling: str) -> None:
    settings = ("model.merge=mean", "text.kind=words", "model.characters=4", "model.embedding=0")
    made = untrained("classify", data, f"model.pooling={pooling}", *settings)
    assert made.refusal() is None
    found = made.probabilities(TEXTS)
    made.backend = "torch"
    np.testing.assert_allclose(found, made.probabilities(TEXTS), atol=1e-5)


@needs_kernels
@pytest.mark.parametrize(
    "settings", [*LAYERS, *BOTH_WAYS, ("model.embedding=0", "model.one_hot=true"), *EMBEDDINGS[:2]]
)
def test_taggers(data: Path, settings: tuple[str, ...]) -> None:
    made = untrained("tag", data, *settings)
    assert made.refusal() is None
    tagged = taggers.sentences(20, seed=3)
    sentences = [list(sentence.tokens) for sentence in tagged]
    found, rounded = made.tag_tokens(sentences), made.to_int8().measure(tagged)[1]
    made.backend = "torch"
    assert found == made.tag_tokens(sentences)
    assert rounded == pytest.approx(made.measure(tagged)[1], rel=0.05)


@needs_kernels
@pytest.mark.parametrize("settings", [*LAYERS, ("model.initialise=gaussian",)])
def test_forecasters(data: Path, settings: tuple[str, ...]) -> None:
    asked = dict(setting.split("=") for setting in (*forecasts.SMALL, "train.steps=3", *settings))
    made = fit("series", train=data / "wave.csv", settings=asked, verbose=False)
    assert made.refusal() is None
    series = np.asarray(forecasts.wave())
    compiled, rounded = made.predict(series).mean, made.to_int8().predict(series).mean
    made.backend = "torch"
    expected = made.predict(series).mean
    np.testing.assert_allclose(compiled, expected, rtol=1e-4)
    np.testing.assert_allclose(rounded, expected, rtol=0.05)


@needs_kernels
@pytest.mark.parametrize("settings", [*LAYERS[:3], ("model.cell=lstm", "model.projection=6"), *EMBEDDINGS[:2]])
def test_language_models(data: Path, settings: tuple[str, ...]) -> None:
    made = untrained("lm", data, *settings)
    assert made.refusal() is None
    text = "the cat sat on a mat"
    ids = np.append(made.reading.start_id, made.tokenizer.encode(text))
    found = made.engine().log_probs(ids[None, :-1], ids[None, 1:], None)[0][0]
    rounded = [one.log_prob for one in made.to_int8().score(text)]
    expected = [one.log_prob for one in made.score(text)]  # by PyTorch
    np.testing.assert_allclose(found, expected, atol=1e-4)
    np.testing.assert_allclose(rounded, expected, atol=0.3)


TRANSLATORS: list[dict[str, Any]] = [
    {"merge": "mean", "attention": "dot", "bridge": "copy"},
    {"merge": "mean", "cell": "lstm", "projection": 4, "decoder": "bahdanau", "attention": "additive"},
    {"cell": "lstm", "projection": 6, "attention": "dot", "bridge": "copy", "learned_state": True},
    {"cell": "lstm", "projection": 6, "attention": "reduced-rank", "decoder": "luong-feeding", "layers": 2},
    {"cell": "rnn", "nonlinearity": "identity", "hidden": 6},
    {"cell": "rnn", "nonlinearity": "logistic", "decoder": "luong-feeding"},
    {"learned_state": True, "bridge": "zero", "layers": 2},
    {"embedding": 0, "tied": "none", "decoder": "luong-feeding"},
    {"embedding": 0, "tied": "none", "decoder": "bahdanau", "attention": "fixed-length"},
    {"embedding": 0, "tied": "none", "connections": "dense", "layers": 2},
    {"max_norm": 0.7, "padding_index": 2, "tied": "none"},
]


@needs_kernels
@pytest.mark.parametrize("model", TRANSLATORS)
def test_translators(model: dict[str, Any]) -> None:
    made, other = (translators.untrained(**model) for _ in range(2))
    for one in (made, other):
        one.network.float()
    other.backend = "torch"
    assert made.refusal() is None
    expected = made.shapes()
    assert expected == {name: array.shape for name, array in made.weights().items()}
    texts = ["abc", "hgfe", "d", "aabbcc"]
    for found, right in zip(made.predict(texts, beam=3), other.predict(texts, beam=3), strict=True):
        assert found.n_best[0].ids == right.n_best[0].ids
        assert found.score == pytest.approx(right.score, rel=1e-4)
    assert [one.source for one in made.to_int8().predict(texts)] == texts


# What the options are


def test_a_stack_of_identity_layers_is_one_linear_map() -> None:
    """f(a x + b y) = a f(x) + b f(y) for whole sequences, however deep: without a nonlinearity depth adds nothing."""
    torch.manual_seed(0)
    body = Recurrent("rnn", 3, 4, num_layers=3, nonlinearity="identity", bias=False, bidirectional=True).double()
    x, y = torch.randn(2, 6, 1, 3, dtype=torch.double)

    def f(sequence: torch.Tensor) -> torch.Tensor:
        return body(sequence)[0].flatten()

    torch.testing.assert_close(f(2 * x - 3 * y), 2 * f(x) - 3 * f(y))
    basis = torch.eye(18, dtype=torch.double).view(18, 6, 1, 3)
    matrix = torch.stack([f(unit) for unit in basis], dim=1)  # one matrix from all inputs to all outputs
    torch.testing.assert_close(matrix @ x.flatten(), f(x))
    curved = Recurrent("rnn", 3, 4, num_layers=3, nonlinearity="tanh", bias=False).double()
    assert not torch.allclose(curved(2 * x)[0], 2 * curved(x)[0])


@pytest.mark.parametrize("task", ["classify", "tag", "translate", "lm"])
def test_initialisations_of_every_weight(data: Path, task: str) -> None:
    own = network_of(
        task, data, "model.cell=lstm", "model.initialise=gaussian", "model.forget_bias=1", "model.learned_state=true"
    )
    for name, weight in own.named_parameters():
        if "initial" in name.split("."):
            assert not weight.any(), name
        elif weight.dim() > 1:
            assert 0 < float(weight.detach().abs().max()) < 0.06, name
        elif "bias_ih" in name and not name.startswith(("spelling", "characters")):
            assert weight.unique().tolist() == [0.0, 1.0], name  # the forget gate's
        else:
            assert not weight.any(), name
    own = network_of(task, data, "model.cell=lstm", "model.initialise=uniform-0.1")
    assert all(float(weight.detach().abs().max()) <= 0.1 for weight in own.parameters())
    usual = network_of(task, data, "model.cell=lstm")
    assert any(float(weight.detach().abs().max()) > 0.11 for weight in usual.parameters())


@pytest.mark.parametrize("task", ["classify", "tag", "translate", "lm"])
def test_the_vector_of_the_padding_index_is_zero_and_stays_so(data: Path, task: str) -> None:
    settings = ("model.padding_index=3", *(["model.tied=none"] if task == "translate" else []))
    trainer = trainer_of(task, data, *settings)
    for _ in range(2):
        trainer._update()
    tables = [m for m in trainer.task.network.modules() if isinstance(m, nn.Embedding) and m.padding_idx is not None]
    assert len(tables) == (2 if task == "translate" else 1)
    for table in tables:
        assert not table.weight[3].any() and table.weight[4].any()


@pytest.mark.parametrize("settings", [("train.optimizer=adagrad",), ("train.optimizer=sgd", "train.accumulate=2")])
def test_sparse_gradients_change_the_same_rows(data: Path, settings: tuple[str, ...]) -> None:
    """The first update is that of dense gradients, the clipped norm too."""
    short = ("model.hidden=12", "train.clip_norm=0.1", "train.lr=0.1", *settings)
    dense, sparse = (
        classifiers.trainer(data / "names.csv", data / "unused", *short, f"model.sparse={flag}")
        for flag in ("false", "true")
    )
    norms = []
    for trainer in (dense, sparse):
        torch.manual_seed(0)
        norms.append(trainer._update()[1])
    assert norms[0] == pytest.approx(norms[1], rel=1e-5) and norms[0] > 0.1
    for (name, right), found in zip(
        dense.task.network.named_parameters(), sparse.task.network.parameters(), strict=True
    ):
        torch.testing.assert_close(found, right, atol=2e-4, rtol=0, msg=name)


# Exact resume


@pytest.mark.parametrize("optimizer", ["adam", "adagrad"])
def test_sparse_embeddings_resume_exactly(data: Path, tmp_path: Path, optimizer: str) -> None:
    settings = ("model.sparse=true", "model.max_norm=1", f"train.optimizer={optimizer}", "train.steps=5")

    def trainer(folder: Path) -> Trainer:
        return classifiers.trainer(data / "names.csv", folder, *settings, "train.checkpoint_seconds=0")

    assert_resumes_exactly(tmp_path, trainer, stops=(3,))


@pytest.mark.parametrize("unit", ["stream", "line"])
def test_language_models_that_feed_themselves_resume_exactly(data: Path, tmp_path: Path, unit: str) -> None:
    settings = (f"data.unit={unit}", "loss.teacher_forcing=0.5", "train.steps=5", "train.checkpoint_seconds=0")
    dropped = ("model.embedding_dropout=0.1", "model.input_dropout=0.1", "model.layers=2", "model.learned_state=true")

    def trainer(folder: Path) -> Trainer:
        return language.trainer(data / "prose.txt", folder, *settings, *dropped)

    assert_resumes_exactly(tmp_path, trainer, stops=(3,))


def test_translators_forced_by_sequence_resume_exactly(data: Path, tmp_path: Path) -> None:
    settings = ("loss.teacher_forcing=0.5", "loss.teacher_forcing_by=sequence", "train.steps=5")

    def trainer(folder: Path) -> Trainer:
        return translators.trainer(data / "pairs.tsv", folder, *settings, "train.checkpoint_seconds=0")

    assert_resumes_exactly(tmp_path, trainer, stops=(3,))


# Teacher forcing


def first_loss(trainer: Trainer, forced: float) -> float:
    """The loss of the first batch, without dropout."""
    trainer.task.network.eval()
    task: Any = trainer.task
    task.recipe = task.recipe.model_copy(
        update={"loss": task.recipe.loss.model_copy(update={"teacher_forcing": forced})}
    )
    return float(task.loss(next(trainer.batches), None).mean.detach())


@pytest.mark.parametrize("kind", ["recurrent", "window"])
@pytest.mark.parametrize("unit", ["stream", "line"])
def test_step_by_step_is_what_all_steps_at_once_are(data: Path, unit: str, kind: str) -> None:
    settings = (f"data.unit={unit}", f"model.kind={kind}", "model.layers=2", "model.direction=both", "batch.forget=0.5")
    found = [
        first_loss(language.trainer(data / "prose.txt", data / "unused", *settings), share) for share in (1.0, 1 - 1e-9)
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-5)


def test_a_line_is_not_trained_after_the_models_own_end(data: Path) -> None:
    trainer = language.trainer(data / "prose.txt", data / "unused", "data.unit=line", "loss.teacher_forcing=0")
    task: Any = trainer.task
    bias = task.network.softmax.bias
    batch = next(trainer.batches)
    lines = len(batch[0].targets)
    with torch.no_grad():
        bias[task.model.tokenizer.eos_id] = 1e4  # it ends at once
    assert task.loss(batch, None).tokens == lines
    with torch.no_grad():
        bias[task.model.tokenizer.eos_id] = -1e4  # it never ends
    assert task.loss(batch, None).tokens == len(batch[0].targets.data)


def test_a_model_that_is_never_told_still_learns_the_first_letters(data: Path, tmp_path: Path) -> None:
    path = language.write_names(tmp_path / "names.csv")
    settings = ("data.unit=line", "data.text_column=text", "data.label_column=label", "train.steps=60", "train.lr=0.02")
    made = language.run(path, tmp_path / "run", *settings, "loss.teacher_forcing=0", "loss.teacher_forcing_by=sequence")
    assert isinstance(made, LanguageModel)
    assert made.generate(label="north", sampling=Sampling(temperature=0), length=2) == ["ab"]
    assert made.generate(label="south", sampling=Sampling(temperature=0), length=2) == ["xy"]


def test_the_share_of_told_tokens_changes_over_a_run(data: Path) -> None:
    trainer = language.trainer(
        data / "prose.txt", data / "unused", "loss.teacher_forcing_end=0", "train.steps=4", "batch.bptt=regular"
    )
    task: Any = trainer.task
    shares = []
    for _ in range(3):
        shares.append(task.recipe.loss.forcing(task.recipe.train, trainer.batches))
        trainer._update()
    assert shares[0] == 1.0 and shares[0] > shares[1] > shares[2] > 0


# Wrong combinations


@pytest.mark.parametrize(
    ("task", "settings", "sentence"),
    [
        ("classify", ["model.merge=mean", "model.bidirectional=false"], "needs model.bidirectional = true"),
        ("classify", ["model.projection=8"], "model.projection goes with the lstm cell only"),
        ("classify", ["model.embedding=0", "model.max_norm=1"], "it needs model.embedding above 0"),
        ("classify", ["model.norm_type=1"], "give both"),
        ("classify", ["model.sparse=true", "model.scale_by_frequency=true"], "does not go with model.sparse"),
        ("classify", ["model.nonlinearity=identity"], "goes with the rnn cell only"),
        ("lm", ["model.tied=true", "model.sparse=true"], "model.tied makes it the softmax's"),
        ("lm", ["model.kind=ngram", "loss.teacher_forcing=0.5"], "leave loss.teacher_forcing out"),
        ("lm", ["model.kind=window", "model.learned_state=true"], "has none"),
        ("tag", ["model.one_hot=true"], "give model.embedding = 0"),
        ("translate", ["model.embedding=0"], "give model.tied = none"),
        ("translate", ["model.merge=mean", "model.bidirectional=false"], "needs model.bidirectional = true"),
        ("translate", ["model.cell=lstm", "model.projection=5"], "model.projection should be even"),
        ("translate", ["model.cell=lstm", "model.projection=80", "model.encoder_hidden=30"], "should be smaller"),
    ],
)
def test_what_does_not_go_together_is_told_in_a_sentence(task: str, settings: list[str], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        load_recipe(TASKS[task].Recipe, None, settings)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (("model.padding_index=999",), "the vocabulary has ids from 0 to"),
        (("model.sparse=true", "train.weight_decay=0.1"), "train.weight_decay changes every row"),
        (("model.sparse=true", "train.optimizer=sgd", "train.momentum=0.9"), "train.momentum changes every row"),
    ],
)
def test_what_only_shows_with_the_data_is_told_too(data: Path, settings: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        classifiers.trainer(data / "names.csv", data / "unused", *settings)
