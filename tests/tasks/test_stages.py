"""Half-labelled data: a language model, the task on top of it and the task without, each resumable."""

import json
from pathlib import Path
from typing import Any

import pytest

import elman
from elman.errors import UserError
from elman.train.loop import Trainer
from tests.cli.invoke import invoke
from tests.tasks import tag_runs
from tests.tasks.conftest import LanguageModels
from tests.tasks.resuming import Killed, disturb, losses
from tests.tasks.runs import prose
from tests.train.toy import quiet

LINES = prose(40).splitlines()
SMALL: dict[str, Any] = {
    "model.hidden": 8,
    "model.embedding": 6,
    "text.kind": "words",
    "train.steps": 6,
    "train.evaluate_every": 3,
    "train.checkpoint_seconds": 0,
    "train.log_every": 1,
    "train.threads": 1,
    "batch.size": 8,
    "baseline.ngrams": False,
    "transfer.lm": ["train.steps=5", "train.evaluate_every=2", "batch.size=4"],
}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    rows = [f"{line},{'even' if number % 2 else 'odd'}\n" for number, line in enumerate(LINES)]
    for name, part in (("train", rows[:20]), ("test", rows[20:26])):
        (tmp_path / f"{name}.csv").write_text("text,label\n" + "".join(part), encoding="utf-8")
    (tmp_path / "more.txt").write_text("\n\n".join(LINES[26:]) + "\nokapi\n", encoding="utf-8")
    return {"train": tmp_path / "train.csv", "test": tmp_path / "test.csv", "unlabelled": tmp_path / "more.txt"}


def test_a_report_says_what_each_stage_gained(
    tmp_path: Path, files: dict[str, Path], language_models: LanguageModels
) -> None:
    sizes = {key: value for key, value in SMALL.items() if key not in ("model.hidden", "model.embedding")}
    out, start = tmp_path / "run", language_models("words", "both")
    model = elman.fit("classify", **files, start=start, out=out, settings=sizes, verbose=False)
    _, rows = model.report.table("test")
    assert {row[0] for row in rows} == {
        "this model",
        "without the language model",
        "language model as it was",
        "most frequent class",
    }
    scores = {who: scores["test"]["accuracy"] for who, scores in model.report["baselines"].items()}
    gains = json.loads((out / "metrics.json").read_text())["gains"]
    assert gains["without the language model"] == scores["without the language model"]
    assert gains["model"] == model.report["test"]["accuracy"]
    assert "without the language model" in (out / "README.md").read_text()
    tuned = elman.load(out / "stages" / "language-model", "lm")
    assert tuned.tokenizer.tokens == elman.load(start).tokenizer.tokens
    assert "okapi" not in model.vocabulary.tokenizer.tokens  # the vocabulary is that of the start
    assert elman.load(out / "stages" / "without").config.model.direction is None


def test_a_language_model_is_made_to_go_under_the_network(tmp_path: Path, files: dict[str, Path]) -> None:
    settings = {**SMALL, "transfer.baseline": False}
    model = elman.fit("classify", **files, out=tmp_path / "run", settings=settings, verbose=False)
    language = elman.load(tmp_path / "run" / "stages" / "language-model", "lm")
    assert (language.settings.hidden, language.settings.embedding, language.settings.direction) == (8, 6, "both")
    assert model.vocabulary.tokenizer.tokens == language.tokenizer.tokens
    assert "okapi" in language.tokenizer.tokens
    assert "gains" not in model.report
    assert not (tmp_path / "run" / "stages" / "without").exists()
    plain = {key: value for key, value in settings.items() if not key.startswith("transfer.")}
    options: dict[str, Any] = {"train": files["train"], "out": tmp_path / "run", "verbose": False}
    elman.fit("classify", settings=plain, force=True, **options)
    assert not (tmp_path / "run" / "stages").exists()


def test_every_stage_is_resumed_exactly(
    tmp_path: Path, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    elman.fit("classify", **files, out=tmp_path / "whole", settings=SMALL, reporter=quiet())
    update, count = Trainer._update, 0
    stages = ("stages/language-model", "stages/without", ".")

    def killed(self: Trainer) -> Any:
        nonlocal count
        count += 1
        if count in (3, 8, 14):  # in each of the stages
            disturb()
            raise Killed
        return update(self)

    monkeypatch.setattr(Trainer, "_update", killed)
    with pytest.raises(Killed):
        elman.fit("classify", **files, out=tmp_path / "cut", settings=SMALL, reporter=quiet())
    for _ in range(2):
        with pytest.raises(Killed):
            elman.fit("classify", out=tmp_path / "cut", resume=True, reporter=quiet())
    elman.fit("classify", out=tmp_path / "cut", resume=True, reporter=quiet())
    for stage in stages:
        whole, cut = tmp_path / "whole" / stage, tmp_path / "cut" / stage
        assert losses(cut) == losses(whole)
        assert (cut / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def test_a_tagger_gets_strings_and_the_command_line_says_so(tmp_path: Path) -> None:
    train = tag_runs.write(tmp_path / "train.conll")
    more = tmp_path / "more.txt"
    more.write_text("Ada went to Oslo.\n\n" + prose(10), encoding="utf-8")
    told = [f"-s{one}" for one in ("model.hidden=8", "train.steps=2", "train.threads=1")]
    told.append('-stransfer.lm=["train.steps=2", "model.hidden=8"]')
    named = ("--train", str(train), "--unlabelled", str(more), "--out", str(tmp_path / "run"))
    code, out, error = invoke("train", "tag", *named, *told)
    assert code == 0, error
    assert "without the language model" in out
    model = elman.load(tmp_path / "run", "tag")
    assert [one.backward for one in model.config.strings] == [False, True]


def test_test_texts_among_the_unlabelled_are_warned_of(
    tmp_path: Path, files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    given = {**files, "unlabelled": files["test"]}
    settings = {**SMALL, "transfer.baseline": False, "train.steps": 1, "transfer.lm": ["train.steps=1"]}
    elman.fit("classify", **given, out=tmp_path / "run", settings=settings)
    assert "warning: 6 of the 6 test texts stand in the unlabelled texts" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("task", "settings", "sentence"),
    [
        ("classify", {"data.folds": 3, "data.test": []}, "data.unlabelled does not go with data.folds"),
        ("classify", {"model.characters": 4}, "model.characters = 4 was asked for"),
        ("classify", {"transfer.lm": ["model.hiden=3"]}, "transfer.lm: unknown key 'model.hiden'"),
        ("lm", {}, "are for classify and tag, not for lm: leave --unlabelled out"),
    ],
)
def test_what_does_not_go_together_is_refused(
    tmp_path: Path, files: dict[str, Path], task: str, settings: dict[str, Any], sentence: str
) -> None:
    given = {"train": files["train"], "unlabelled": files["unlabelled"]}
    with pytest.raises(UserError, match=sentence):
        elman.fit(task, **given, out=tmp_path / "run", settings={"train.steps": 1, **settings}, verbose=False)


@pytest.mark.parametrize("setting", [{"transfer.lm": ["train.steps=1"]}, {"transfer.baseline": False}])
def test_settings_of_transfer_need_unlabelled_texts(
    tmp_path: Path, files: dict[str, Path], setting: dict[str, Any]
) -> None:
    with pytest.raises(UserError, match="the settings of transfer are for unlabelled texts: give"):
        elman.fit("classify", train=files["train"], out=tmp_path / "run", settings=setting, verbose=False)


def test_a_file_that_is_not_there_is_told_of(tmp_path: Path, files: dict[str, Path]) -> None:
    given = {"train": files["train"], "unlabelled": tmp_path / "nowhere.txt"}
    with pytest.raises(UserError, match=r"no such file: .*nowhere\.txt"):
        elman.fit("classify", **given, out=tmp_path / "run", settings=SMALL, verbose=False)


def test_lines_that_cannot_be_read_are_told_of(tmp_path: Path, files: dict[str, Path]) -> None:
    """And not left out, with half of the texts."""
    mixed = tmp_path / "mixed.txt"
    mixed.write_bytes(b"a fine film\n\nZo\xeb sang in Paris\n")
    given = {"train": files["train"], "unlabelled": mixed}
    with pytest.raises(UserError, match=r"mixed\.txt:3 is not utf-8 .* -s data\.encoding=latin-1"):
        elman.fit("classify", **given, out=tmp_path / "run", settings=SMALL, verbose=False)


@pytest.mark.parametrize(
    "setting", ["model.hidden=9", "model.embedding=5", "model.layers=2", "model.direction=forward", "text.kind=bytes"]
)
def test_a_language_model_that_would_not_fit_is_refused_before_it_is_trained(
    tmp_path: Path, files: dict[str, Path], setting: str
) -> None:
    with pytest.raises(UserError, match=f"transfer.lm: {setting.replace('=', ' = ')}, and the language model"):
        elman.fit("classify", **files, out=tmp_path / "run", settings=SMALL | {"transfer.lm": [setting]}, verbose=False)
    assert not (tmp_path / "run" / "stages").exists()


def test_unlabelled_texts_do_not_go_with_vectors(tmp_path: Path, files: dict[str, Path]) -> None:
    with pytest.raises(UserError, match=r"leave model\.vectors out"):
        elman.fit("classify", **files, out=tmp_path / "run", settings=SMALL | {"model.vectors": "any"}, verbose=False)
