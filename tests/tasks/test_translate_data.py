"""From files and a recipe to a model: what is counted, left out, refused; what a setting changes."""

from pathlib import Path

import pytest
import torch

from elman.errors import UserError
from elman.records.pairs import Pair
from elman.tasks import TASKS, evaluate, training
from elman.tasks.recipes import find_recipe, load_recipe
from elman.tasks.task import Data, Training
from elman.tasks.translate import TranslateRecipe, Translator
from elman.tasks.writer import teacher_forcing
from elman.train.recipe import read_toml
from tests.tasks.runs import open_task
from tests.tasks.translate_runs import recipe, run, sentences, strings, trainer, write

RECIPES = [path.stem for path in sorted(find_recipe("dates").parent.glob("*.toml"))]


def task(train: Path, *settings: str) -> Training[Pair, Translator]:
    chosen = recipe(train, *settings)
    return training.begin(TASKS["translate"], chosen, open_task("translate", chosen))


@pytest.mark.parametrize("name", [name for name in RECIPES if read_toml(find_recipe(name)).get("task") == "translate"])
def test_recipes_parse(name: str) -> None:
    assert load_recipe(TranslateRecipe, name).data.corpus
    assert {"dates", "cmudict", "multi30k-de-en", "tatoeba-fra-eng"} <= set(RECIPES)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (("model.attention=dot", "model.encoder_hidden=10"), "compares the decoder's 24 entries with the encoder's 20"),
        (("model.bridge=copy", "model.encoder_hidden=10"), "cannot put 20 entries into 24"),
        (("model.attention=fixed-length",), "goes with the bahdanau decoder"),
        (("model.tied=all",), "needs text.joint = true"),
        (("text.joint=true", "text.target_kind=words"), "leave text.target_kind and text.target_size out"),
        (("model.hidden=25",), "should be even"),
        (("loss.teacher_forcing=1.5",), "loss.teacher_forcing"),
        (("search.beam=0",), "search.beam"),
        (("model.atention=dot",), "did you mean 'model.attention'"),
        (("data.dev_fraction=0.6", "data.test_fraction=0.5"), "leave nothing to train on"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        load_recipe(TranslateRecipe, None, ["model.hidden=24", *settings])


def test_parallel_files_of_different_length(tmp_path: Path) -> None:
    (tmp_path / "a.de").write_text("eins\nzwei\ndrei\n")
    (tmp_path / "a.en").write_text("one\ntwo\n")
    names = f'data.train=["{tmp_path}/a.de", "{tmp_path}/a.en"]'
    with pytest.raises(UserError, match=r"a\.de is longer than .*a\.en by 1 line \(3 and 2\)"):
        open_task("translate", load_recipe(TranslateRecipe, None, [names]))


def test_empty_sides_and_duplicates_are_counted_and_said(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(
        "source\ttarget\n" + "".join(f"{p.source}\t{p.target}\n" for p in strings(40)) + "x\t\nab\tba\n" * 2
    )
    said: list[str] = []
    data: Data[Pair] = open_task("translate", recipe(path, "data.drop_duplicates=true"), said)
    assert "a.tsv: 2 pairs with an empty side are left out" in said
    assert any("repeat" in line and "left out" in line for line in said)
    assert len(data.train) + len(data.dev) == len({(p.source, p.target) for p in [*strings(40), Pair("ab", "ba")]})


def test_long_pairs_are_left_out_and_said(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", [*strings(40), Pair("abcdefgh", "hg"), Pair("ab", "hgfedcba")])
    made = task(path, "data.longest=6", "data.dev_size=1")
    assert made.data.facts["left_out"].startswith("; 2 pairs are longer than ") and made.model.longest == 6
    with pytest.raises(UserError, match=r"more than data\.longest=1 tokens"):
        task(path, "data.longest=1")


@pytest.mark.parametrize(
    ("attention", "decoder"),
    [("location", "luong"), ("fixed-length", "bahdanau"), ("fixed-length", "tutorial-attention")],
)
def test_an_attention_of_fixed_length_learns_only_what_it_can_see(tmp_path: Path, attention: str, decoder: str) -> None:
    path = write(tmp_path / "a.tsv", strings(60))
    made = task(path, f"model.attention={attention}", f"model.decoder={decoder}", "model.longest=4", "model.tied=none")
    assert made.model.longest == 4 and max(len(source) for source, _ in made.examples) == 4
    long = sum(len(pair.source) > 4 for pair in made.data.train)
    left_out = made.data.facts["left_out"]
    assert left_out == f"; {long} pairs are longer than data.longest=100 or model.longest=4 and left out"
    assert left_out in TASKS["translate"].describe(made)


def test_a_seed_gives_the_same_network(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", strings(40))
    first, second = (task(path, "model.tied=none").network.state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_sources_are_read_from_the_end_where_asked(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", strings(40))
    plain, turned = task(path), task(path, "model.reverse_source=true")
    assert [s[::-1].tolist() for s, _ in plain.examples] == [s.tolist() for s, _ in turned.examples]
    assert [t.tolist() for _, t in plain.examples] == [t.tolist() for _, t in turned.examples]


def test_teacher_forcing_changes_evenly(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv")
    assert teacher_forcing(task(path)) == 1.0
    assert teacher_forcing(task(path, "loss.teacher_forcing=0.3")) == 0.3
    for length in ("train.epochs=2", "train.steps={steps}"):
        made = task(path, "batch.tokens=64", "loss.teacher_forcing=1.0", "loss.teacher_forcing_end=0.0")
        steps = 2 * len(made.batches())
        made = task(path, *(length.format(steps=steps), "batch.tokens=64", "loss.teacher_forcing_end=0.0"))
        batches, seen = made.batches(), [teacher_forcing(made)]
        for _ in range(steps):
            next(batches)
            seen.append(teacher_forcing(made))
        assert seen[0] == 1.0 and seen[-1] == pytest.approx(0.0, abs=0.1)
        assert seen[len(seen) // 2] == pytest.approx(0.5, abs=0.1)
        assert seen == sorted(seen, reverse=True)


@pytest.mark.parametrize(
    "settings",
    [
        ("loss.teacher_forcing=0",),
        ("model.bridge=copy", "model.layers=2", "model.connections=residual"),
        ("model.bridge=zero", "model.decoder=bahdanau", "model.attention=additive"),
        ("model.decoder=plain", "model.reverse_source=true", "model.bidirectional=false", "model.cell=lstm"),
        ("text.joint=true", "model.tied=all", "model.weight_dropout=0.2", "model.decoder_layers=2"),
    ],
)
def test_every_way_to_train_lowers_the_loss(tmp_path: Path, settings: tuple[str, ...]) -> None:
    run_ = trainer(write(tmp_path / "a.tsv", strings(60)), tmp_path / "run", *settings, "train.steps=25")
    before = run_.task.evaluate()["loss"]
    for _ in range(25):
        run_._update()
    assert run_.task.evaluate()["loss"] < 0.95 * before


def test_vocabularies_of_another_model(tmp_path: Path) -> None:
    first = run(write(tmp_path / "a.tsv", sentences()), tmp_path / "first", "text.kind=words", "train.steps=2")
    other = write(tmp_path / "b.tsv", sentences(seed=7)[:20])
    same = f"text.same_as={tmp_path / 'first'}"
    second = run(other, tmp_path / "second", "text.kind=words", "train.steps=2", "train.seed=9", same)
    assert second.sides.to_json() == first.sides.to_json()
    assert first.ensemble_with(second).predict("der hund").text
    with pytest.raises(UserError, match="made with other settings of text"):
        run(other, tmp_path / "third", "text.kind=characters", same)
    with pytest.raises(UserError, match=r"needs text\.joint = false"):
        run(other, tmp_path / "third", "text.kind=words", "text.joint=true", same)


def test_empty_pairs_are_said_at_evaluation_too(tmp_path: Path) -> None:
    model = run(write(tmp_path / "a.tsv", sentences()), tmp_path / "run", "text.kind=words", "train.steps=2")
    (tmp_path / "test.tsv").write_text("source\ttarget\nder hund\tthe dog\nder hund\t\n")
    report = evaluate(model, [tmp_path / "test.tsv"])
    assert "1 pair with an empty side is left out" in report["note"]
    assert report[str(tmp_path / "test.tsv")]["lines"] == 1 and "copied source" in report["baselines"]
