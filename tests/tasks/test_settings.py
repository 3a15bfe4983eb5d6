"""Settings from Python are values; from the command line they are texts. What says two things is refused."""

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import elman
from elman.errors import UserError
from elman.nn.recurrent import CELLS
from elman.tasks import TASKS
from elman.tasks.memory import built, machine_bytes
from elman.tasks.recipes import load_recipe
from elman.tasks.search import Search, SearchSettings
from elman.text import TokenizerSettings, fit_tokenizer
from elman.text.kinds import KINDS
from elman.text.settings import Kind
from elman.train.recipe import Section, parse
from tests.cli.invoke import invoke
from tests.tasks.runs import SMALL, prose, run
from tests.train.toy import quiet

TOO_LARGE = ["-s", "model.hidden=10000000"]


def read(task: str, recipe: Path | str | None, settings: Any = ()) -> Any:
    return load_recipe(TASKS[task].Recipe, recipe, settings)


def stays(recipe: Section, key: str) -> Any:
    section, _, name = key.partition(".")
    return getattr(getattr(recipe, section), name)


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_every_cell_and_every_kind_of_token(task: str) -> None:
    recipe = TASKS[task].Recipe()
    if task not in ("embed", "tree"):  # which have no recurrent layers
        assert set(get_args(type(recipe.model).model_fields["cell"].annotation)) == set(CELLS)
    assert set(get_args(Kind)) == set(KINDS)
    if isinstance(getattr(recipe, "text", None), TokenizerSettings):
        assert type(recipe.text).model_fields["kind"].annotation == Kind


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("text.prefixes", (2, 3), (2, 3)),
        ("text.prefixes", [2], (2,)),
        ("text.suffixes", np.array([1, 4]), (1, 4)),
        ("text.suffixes", range(1, 3), (1, 2)),
        ("model.hidden", np.int64(32), 32),
        ("train.lr", np.float32(0.5), 0.5),
        ("model.crf", np.bool_(True), True),
        ("model.crf", True, True),
        ("data.train", Path("a b.conll"), ("a b.conll",)),
        ("data.train", [Path("a.conll"), "b.conll"], ("a.conll", "b.conll")),
        ("model.vectors", Path("vectors.txt"), str(Path("vectors.txt").absolute())),
        ("train.steps", None, None),
        ("data.encoding", "true", "true"),
        ("data.token_column", "1", "1"),
    ],
)
def test_values_arrive_as_they_are(key: str, value: Any, expected: Any) -> None:
    section, _, name = key.partition(".")
    for settings in ({key: value}, {section: {name: value}}):
        assert stays(read("tag", None, settings), key) == expected


@pytest.mark.parametrize("settings", [{"model": {}}, ["model={layers=4}"], {"model": {"layers": 4}}])
def test_a_section_lies_over_what_the_recipe_has(settings: Any) -> None:
    assert read("lm", "tinyshakespeare", settings).model.hidden == 512


def test_a_run_takes_tuples_numbers_of_numpy_and_paths(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(prose())
    settings = {"model": {"hidden": np.int64(8), "layers": 1}, "train.steps": np.int32(2), "data.train": text}
    settings |= {"train.betas": (0.8, 0.9), "batch.size": 4, "baseline.order": 0}
    elman.fit("lm", out=tmp_path / "run", settings=settings, reporter=quiet())
    recipe = elman.load(tmp_path / "run").recipe
    assert (recipe["model"]["hidden"], recipe["train"]["betas"]) == (8, [0.8, 0.9])
    with pytest.raises(UserError, match=r"another recipe \(model\.hidden: 8 -> 9\)"):
        elman.fit("lm", out=tmp_path / "run", settings={"model.hidden": 9}, resume=True, reporter=quiet())


@pytest.mark.parametrize(
    "settings", [[3], {3: 4}, {"": 1}, {"model": {None: 1}}, ["model.hidden"], {"model.hidden": object()}]
)
def test_what_is_no_setting_is_told(settings: Any, tmp_path: Path) -> None:
    with pytest.raises(UserError):
        elman.fit("lm", out=tmp_path / "run", train="x.txt", settings=settings)


# One text where several may stand


def test_one_stop_string_is_one(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(prose())
    model = run(tmp_path / "text.txt", tmp_path / "run", "train.steps=2")
    plain = model.generate("the ", length=200)[0]
    assert "a" in plain
    assert "t" in plain
    assert model.generate("the ", length=200, stop="at") == model.generate("the ", length=200, stop=["at"])
    assert model.generate("the ", length=200, stop="qzq") == [plain]
    assert model.line_log_probs("the cat") == model.line_log_probs(["the cat"])  # type: ignore[arg-type]


def test_one_text_for_a_vocabulary_is_one() -> None:
    settings = TokenizerSettings(kind="words")
    assert fit_tokenizer(settings, "to be").tokens == fit_tokenizer(settings, ["to be"]).tokens


def test_one_required_word_is_asked_for_as_a_list() -> None:
    with pytest.raises(UserError, match=r"'require' = 'dog': should be a list, such as \['dog'\]"):
        Search.of({"require": "dog"})


@pytest.mark.parametrize("kind", [Search, SearchSettings])
def test_a_weight_of_coverage_that_outweighs_everything_is_refused(kind: Any) -> None:
    with pytest.raises(UserError, match=r"'coverage' = 1e\+308: should be less than or equal to 100"):
        parse(kind, {"coverage": 1e308})


# A corpus, and files beside it


def test_files_take_the_place_of_a_recipes_corpus_and_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(prose())
    small = [part for setting in (*SMALL, "train.steps=2") for part in ("-s", setting)]
    files = ("--train", str(tmp_path / "text.txt"), "-o", str(tmp_path / "run"))
    code, out, error = invoke("train", "lm", "tinyshakespeare", *files, *small)
    assert code == 0, error
    assert "your data take the place of the corpus 'tinyshakespeare'" in out + error
    assert elman.load(tmp_path / "run").recipe["data"]["corpus"] is None


@pytest.mark.parametrize("task", ["lm", "classify", "tag", "translate"])
def test_a_corpus_and_files_both_from_the_user_are_refused(task: str, tmp_path: Path) -> None:
    code, _, error = invoke("train", task, "--train", "x.txt", "-s", "data.corpus=names", "-o", str(tmp_path / "run"))
    assert code == 2
    assert "both data.corpus and --train are given" in error


def test_a_recipe_with_both_is_refused_and_a_corpus_takes_the_place_of_its_files(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[data]\ncorpus = "names"\ntrain = ["a.txt"]\n')
    with pytest.raises(UserError, match=r"mine\.toml has both data\.corpus and data\.train"):
        read("lm", path)
    path.write_text('[data]\ntrain = ["a.txt"]\ndev = ["b.txt"]\nunit = "line"\n')
    data = read("lm", path, ["data.corpus=names"]).data
    assert (data.corpus, data.train, data.dev, data.unit) == ("names", (), (), "line")


# What is too large for memory


@pytest.mark.parametrize("task", ["lm", "classify", "tag", "translate"])
@pytest.mark.parametrize("size", [10**7, 10**12, 10**25])
def test_a_network_too_large_for_the_machine_is_a_sentence(task: str, size: int, tmp_path: Path) -> None:
    from tests.tasks import classify_runs as classifiers
    from tests.tasks import tag_runs as taggers
    from tests.tasks import translate_runs as translators

    (tmp_path / "t.txt").write_text(prose())
    file = {
        "lm": tmp_path / "t.txt",
        "classify": classifiers.write_table(tmp_path / "t.csv"),
        "tag": taggers.write(tmp_path / "t.conll"),
        "translate": translators.write(tmp_path / "t.tsv"),
    }[task]
    with pytest.raises(UserError, match=f"take a smaller model.hidden, which is {size}"):
        elman.fit(task, out=tmp_path / "run", train=file, settings={"model.hidden": size}, reporter=quiet())
    assert not (tmp_path / "run" / "config.json").exists()


def test_the_sketch_draws_no_random_numbers() -> None:
    import torch
    from torch import nn

    class Sizes(Section):
        hidden: int = 3

    torch.manual_seed(1)
    wanted = nn.LSTM(3, 4).state_dict()
    torch.manual_seed(1)
    found = built(lambda: nn.LSTM(3, 4), Sizes()).state_dict()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    assert machine_bytes() is None or machine_bytes() > 2**25  # type: ignore[operator]


@pytest.mark.parametrize(
    ("task", "setting", "words"),
    [
        (
            "classify",
            "foo=1",
            ["unknown key 'foo'", "one of data, text, model, loss, batch, train"],
        ),
        (
            "tag",
            "model.foo=1",
            ["unknown key 'model.foo'", "the keys of 'model' are cell, nonlinearity, layers, hidden"],
        ),
        ("tag", "model.hiden=1", ["did you mean 'model.hidden'?"]),
        ("tag", "model.lr=1", ["did you mean 'train.lr'?"]),
        ("translate", "hidden=3", ["did you mean 'model.hidden'?"]),
        ("translate", "trian.lr=3", ["unknown key 'trian'", "did you mean 'train'?"]),
        ("lm", "size=3", ["did you mean 'text.size' or 'batch.size'?"]),
        ("tag", "text.prefixes=2", ["'text.prefixes' = 2", "should be a list, such as [2]"]),
        ("tag", "model.crf=perhaps", ["'model.crf' = 'perhaps'", "should be true or false"]),
        ("tag", "model=3", ["'model' = 3", "is a section: give its keys"]),
        ("tag", "text.prefixes=[2,2]", ["text.prefixes"]),
        ("tag", "train.betas=[2,2]", ["train.betas should be at least 0"]),
        ("lm", 'text={kind="bytes", size=20}', ["text.size should be at least 258 for bytes"]),
        ("lm", 'text.specials=["a b"]', ["'text.specials': special tokens should not hold blanks"]),
    ],
)
def test_wrong_settings_are_answered_with_what_to_type(task: str, setting: str, words: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        read(task, None, [setting])
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    for word in words:
        assert word in str(caught.value)


def test_training_needs_more_room_than_loading_and_containers_have_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch import nn

    class Sizes(Section):
        hidden: int = 1000

    def make() -> nn.Linear:
        return nn.Linear(1000, 1000)  # 4 MB

    limit = tmp_path / "memory.max"
    monkeypatch.setattr("elman.tasks.memory.LIMITS", (limit, tmp_path / "none"))
    limit.write_text("6000000\n")
    assert built(make, Sizes(), trained=False).weight.shape == (1000, 1000)
    with pytest.raises(UserError, match="training the network would take 8 MB, and there is memory for 6 MB"):
        built(make, Sizes())
    limit.write_text("3000000\n")
    with pytest.raises(UserError, match="the network would take 4 MB, and there is memory for 3 MB"):
        built(make, Sizes(), trained=False)
    limit.write_text("max\n")
    assert built(make, Sizes()).weight.shape == (1000, 1000)


@pytest.mark.parametrize("threads", [1025, 10**25])
def test_more_threads_than_any_machine_has_are_refused(threads: int, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text(prose())
    with pytest.raises(UserError, match=f"'train.threads' = {threads}: should be less than or equal to 1024"):
        elman.fit("lm", out=tmp_path / "run", train=tmp_path / "t.txt", settings={"train.threads": threads})


def test_numbers_of_a_search_that_would_overflow_are_refused() -> None:
    with pytest.raises(UserError, match=r"'search\.length_extra' = 1\d+: should be less than or equal to 100000"):
        read("translate", None, {"data.train": ["a"], "search.length_extra": 10**25})
    for name in ("beam", "n_best", "min_length", "max_length", "block_ngrams", "top_k"):
        with pytest.raises(ValueError, match=name):
            Search(**{name: 10**25})
    for name in ("min_length", "max_length"):  # a search for so many tokens would hardly end
        with pytest.raises(ValueError, match="100000"):
            Search(**{name: 10**6})


@pytest.mark.parametrize("setting", ["train.average=none", "text.normalise=none"])
def test_none_is_a_word_where_a_choice_is_called_so(setting: str) -> None:
    from elman.tasks.classify import ClassifyRecipe

    recipe = load_recipe(ClassifyRecipe, None, ["train.average=ema", setting])
    section, key = setting.partition("=")[0].split(".")
    assert getattr(getattr(recipe, section), key) == "none"
