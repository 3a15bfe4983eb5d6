"""What a trained language model does: it scores, it writes, and a folder keeps it to the last digit."""

import json
import math
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

import elman
from elman.decode import Sampling
from elman.errors import UserError
from elman.tasks import TASKS, scoring
from elman.tasks.language import LanguageModel
from elman.tasks.training import score_sets
from tests.end_to_end.processes import environment
from tests.tasks.runs import ids_of, prose, recipe, run, write_names

GREEDY = Sampling(temperature=0)
RHYME = "one two buckle my shoe three four open the door\n"


def text_file(folder: Path, text: str = "", name: str = "text.txt") -> Path:
    path = folder / name
    path.write_text(text or prose())
    return path


@pytest.fixture(scope="module")
def rhyme(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    """A model that knows one line by heart."""
    folder = tmp_path_factory.mktemp("rhyme")
    text = text_file(folder, RHYME * 60)
    return run(text, folder / "run", "model.hidden=48", "train.lr=0.02", "train.steps=150", "train.evaluate_every=150")


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    """A model of labelled lines."""
    folder = tmp_path_factory.mktemp("names")
    table = write_names(folder / "names.csv")
    settings = ("data.unit=line", "data.label_column=label", "train.lr=0.02", "train.epochs=15")
    return run(table, folder / "run", *settings, "train.evaluate_every=1000")


def total(model: LanguageModel, text: str, label: str | None = None) -> float:
    return sum(token.log_prob for token in model.score(text, label))


# Learning and scoring


def test_a_text_learnt_by_heart_is_certain_and_greedy_writing_recites_it(rhyme: LanguageModel) -> None:
    scores = rhyme.score(RHYME * 3)
    assert "".join(token.token for token in scores) == RHYME * 3
    assert -np.mean([token.log_prob for token in scores[len(RHYME) :]]) < 0.05
    assert rhyme.generate("one two ", length=80, sampling=GREEDY) == [(RHYME * 3)[8:88]]


def test_scores_sum_to_the_loss_of_an_evaluation(rhyme: LanguageModel, tmp_path: Path) -> None:
    text = text_file(tmp_path, "four open my door\ntwo shoe\n" * 7)
    report = score_sets(TASKS["lm"], rhyme, {"it": ids_of(rhyme, text)}, recipe(text), (), print)["it"]
    found = rhyme.score(text.read_text())
    assert len(found) == report["tokens"]
    assert -sum(token.log_prob for token in found) == pytest.approx(report["loss"] * report["tokens"], rel=1e-9)
    assert report["perplexity"] == pytest.approx(math.exp(report["loss"]))


def test_scores_are_the_probabilities_that_the_text_is_written_by(rhyme: LanguageModel) -> None:
    stepper = rhyme.stepper()
    ids = [rhyme.reading.start_id, *rhyme.tokenizer.encode("open the shoe").tolist()]
    state, expected = stepper.start(1), []
    for before, after in pairwise(ids):
        log_probs, state = stepper.step(np.array([before]), state)
        expected.append(float(log_probs[0, after]))
    assert [token.log_prob for token in rhyme.score("open the shoe")] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_many_streams_score_as_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, direction: str) -> None:
    text = text_file(tmp_path, prose(100))
    model = run(text, tmp_path / "run", "train.steps=60", "train.lr=0.01", f"model.direction={direction}")
    ids = ids_of(model, text)
    monkeypatch.setattr(scoring, "PART", 512)
    assert len(ids) >= 4 * 512
    many = model.log_probs(ids)
    monkeypatch.setattr(scoring, "PART", 10**9)
    one = model.log_probs(ids)
    assert many.shape == one.shape
    assert abs(many.mean() - one.mean()) < 1e-3
    assert np.abs(many - one).max() < 0.05


@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
@pytest.mark.parametrize("extra", ["model.learned_state=true", "model.kind=window"])
def test_a_document_does_not_depend_on_those_around_it(tmp_path: Path, direction: str, extra: str) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    for number in range(3):
        text_file(folder, prose(20 + number), f"{number}.txt")
    model = run(folder, tmp_path / "run", "train.steps=20", "train.lr=0.03", f"model.direction={direction}", extra)
    found = []
    for neighbour in ("a mat\n", "rain " * 50):
        around = tmp_path / f"around {len(neighbour)}"
        around.mkdir()
        text_file(around, neighbour, "1.txt")
        text_file(around, "the dog saw a bird", "2.txt")
        text_file(around, neighbour[::-1], "3.txt")
        ids = ids_of(model, around)
        start, end = ids.documents[1], ids.documents[2]
        found.append(model.log_probs(ids)[start:end])
    assert len(found[0]) == len("the dog saw a bird") + 1
    assert found[0] == pytest.approx(found[1], abs=1e-5)


def test_without_resets_the_text_runs_on(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    for number in range(3):
        text_file(folder, prose(20 + number), f"{number}.txt")
    model = run(folder, tmp_path / "run", "train.steps=20", "train.lr=0.03", "batch.reset_documents=false")
    ids = ids_of(model, folder)
    alone = ids.view(int(ids.documents[1]), int(ids.documents[2]))
    there = model.log_probs(ids)[ids.documents[1] : ids.documents[2]]
    assert np.abs(there - model.log_probs(alone)).max() > 1e-4


# Labels


def test_labels_say_what_is_written(names: LanguageModel) -> None:
    assert names.labels == ["north", "south"]
    for label, letters in (("north", "ab"), ("south", "xy")):
        written = names.generate(label=label, length=20, samples=10, sampling=Sampling(seed=1))
        pure = [text for text in written if text and set(text) <= set(letters)]
        assert len(pure) >= 9
    assert total(names, "abab", "north") > total(names, "abab", "south") + 3


def test_a_line_is_scored_with_its_end(names: LanguageModel) -> None:
    scores = names.score("abab", "north")
    assert [token.token for token in scores] == ["a", "b", "a", "b", "<eos>"]
    assert max(len(text) for text in names.generate(label="north", length=50, samples=20)) <= 10


def test_labels_are_checked(names: LanguageModel, rhyme: LanguageModel) -> None:
    with pytest.raises(UserError, match="north, south"):
        names.generate()
    with pytest.raises(UserError, match="did you mean 'south'"):
        names.generate(label="soth")
    with pytest.raises(UserError, match="knows no labels"):
        rhyme.generate(label="north")


def test_a_label_that_only_the_held_out_part_has_is_known(tmp_path: Path) -> None:
    table = write_names(tmp_path / "names.csv")
    with table.open("a") as file:
        file.write("".join(f"ab,rare{i}\n" for i in range(9)))
    model = run(table, tmp_path / "run", "data.unit=line", "data.label_column=label", "train.steps=2")
    assert len(model.labels) == 11


# Directions


def test_backward_writes_what_stands_before(tmp_path: Path) -> None:
    text = text_file(tmp_path, RHYME * 60)
    settings = ("model.direction=backward", "model.hidden=48", "train.lr=0.02", "train.steps=150")
    model = run(text, tmp_path / "run", *settings, "train.evaluate_every=150")
    assert model.generate("door\n", length=60, sampling=GREEDY) == [(RHYME * 3)[: 3 * len(RHYME) - 5][-60:]]
    scores = model.score(RHYME * 3)
    assert "".join(token.token for token in scores) == RHYME * 3
    assert -np.mean([token.log_prob for token in scores[: 2 * len(RHYME)]]) < 0.05
    before_shoe = model.generate("door\n", length=100, sampling=GREEDY, stop=["shoe"])
    assert before_shoe == [" three four open the "]
    best = model.exhaustive("door\n", length=2)[0]
    assert (best.text, best.tokens, best.finished) == ("e ", ["e", " "], False)
    assert best.log_prob > -0.5
    assert model.predict("door\n", top=1)[0].token == " "


def test_backward_lines_are_scored_token_for_token(tmp_path: Path) -> None:
    lines = text_file(tmp_path, "abc\nabcd\nabcde\n" * 30)
    settings = ("data.unit=line", "model.direction=backward", "train.lr=0.02", "train.epochs=12")
    model = run(lines, tmp_path / "run", *settings, "train.evaluate_every=1000")
    scores = model.score("abcde")
    assert [token.token for token in scores] == ["a", "b", "c", "d", "e", "<eos>"]
    # Read from its end the only thing that is not certain is the letter that comes first: the last one.
    assert scores[4].log_prob < -0.7
    assert all(token.log_prob > -0.3 for place, token in enumerate(scores) if place != 4)


def test_both_directions_are_trained_and_reported(tmp_path: Path) -> None:
    text = text_file(tmp_path)
    out = tmp_path / "run"
    model = run(text, out, "model.direction=both", "train.steps=60", "train.lr=0.01", "train.evaluate_every=20")
    records = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    dev = [record for record in records if record["kind"] == "dev"]
    assert dev[-1]["forward_perplexity"] < dev[0]["forward_perplexity"]
    assert dev[-1]["backward_perplexity"] < dev[0]["backward_perplexity"]
    assert len(model.generate("the ", length=10, sampling=GREEDY)[0]) == 10
    assert len(model.score("the cat")) == 7


# Every kind of network


@pytest.mark.parametrize("cell", ["rnn", "elman", "lstm", "gru", "gru-cho", "mut1", "mut2", "mut3"])
def test_every_cell_trains_and_writes(tmp_path: Path, cell: str) -> None:
    model = run(text_file(tmp_path), tmp_path / "run", f"model.cell={cell}", "model.layers=2", "train.steps=2")
    assert len(model.generate("the", length=5)[0]) == 5


OPTIONS = {
    "window": ("model.kind=window", "model.window=3"),
    "ngram": ("model.kind=ngram", "model.order=3"),
    "one-hot": ("model.embedding=0",),
    "tied": ("model.tied=true",),
    "tied, same size": ("model.tied=true", "model.embedding=24"),
    "sampled": ("text.kind=words", "model.softmax=sampled", "model.samples=6"),
    "sampled and tied": ("text.kind=words", "model.softmax=sampled", "model.samples=6", "model.tied=true"),
    "adaptive": ("text.kind=words", "model.softmax=adaptive"),
    "projected": ("model.cell=lstm", "model.projection=8", "model.initialise=orthogonal", "model.forget_bias=1.0"),
    "dense": ("model.layers=3", "model.connections=dense", "model.learned_state=true"),
    "relu, identity": ("model.cell=rnn", "model.nonlinearity=relu", "model.initialise=identity"),
    "bytes": ("text.kind=bytes",),
    "sub-words": ("text.kind=bpe", "text.size=270"),
}


@pytest.fixture(scope="module")
def kept_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("kinds")
    text = text_file(folder)
    for name, settings in OPTIONS.items():
        run(text, folder / name, *settings, "train.steps=4", "train.evaluate_every=2")
    return {name: folder / name for name in OPTIONS}


def exact(model: LanguageModel) -> list[str]:
    return [token.log_prob.hex() for token in model.score("the cat saw a bird\nthe sea\n")]


def test_a_kept_model_gives_the_same_scores_to_the_last_digit_in_a_new_process(kept_models: dict[str, Path]) -> None:
    code = (
        "import sys, json, torch, elman\n"
        "torch.set_num_threads(1)\n"
        "score = lambda m: [t.log_prob.hex() for t in m.score('the cat saw a bird\\nthe sea\\n')]\n"
        "print(json.dumps([score(elman.load(path)) for path in sys.argv[1:]]))"
    )
    command = [sys.executable, "-c", code, *map(str, kept_models.values())]
    found = json.loads(subprocess.run(command, env=environment(), capture_output=True, check=True, text=True).stdout)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    expected = [exact(elman.load(path)) for path in kept_models.values()]
    torch.set_num_threads(threads)
    assert found == expected


@pytest.mark.parametrize("name", OPTIONS)
def test_every_kind_writes_by_its_seed(kept_models: dict[str, Path], name: str) -> None:
    model = elman.load(kept_models[name])
    first, again = (model.generate("the", length=12, sampling=Sampling(seed=4)) for _ in range(2))
    assert first == again
    assert first[0]
    assert first != model.generate("the", length=12, sampling=Sampling(seed=5))


def test_saving_a_loaded_model_changes_nothing(kept_models: dict[str, Path], tmp_path: Path) -> None:
    for name, folder in kept_models.items():
        elman.load(folder).save(tmp_path / name)
        for file in ("model.safetensors", "config.json", "tokenizer.json"):
            assert (tmp_path / name / file).read_bytes() == (folder / file).read_bytes()


def test_window_models_learn_lines(tmp_path: Path) -> None:
    lines = text_file(tmp_path, "abc\nbcd\n" * 40)
    model = run(lines, tmp_path / "run", "data.unit=line", "model.kind=window", "train.lr=0.03", "train.epochs=10")
    assert set(model.generate(length=9, samples=12)) == {"abc", "bcd"}


# Writing


def test_samples_as_one_batch_equal_one_by_one(rhyme: LanguageModel) -> None:
    together = rhyme.generate("one", length=40, samples=5, sampling=Sampling(1.5, seed=3))
    assert len(set(together)) > 1
    assert rhyme.generate("one", length=40, samples=1, sampling=Sampling(1.5, seed=3))[0] == together[0]
    assert rhyme.generate("one", length=40, samples=3, sampling=Sampling(1.5, seed=3)) == together[:3]


def test_pieces_joined_are_the_whole(rhyme: LanguageModel) -> None:
    pieces = list(rhyme.stream("one", length=30, samples=2, sampling=Sampling(seed=3)))
    joined = ["".join(piece for row, piece in pieces if row == number) for number in range(2)]
    assert joined == rhyme.generate("one", length=30, samples=2, sampling=Sampling(seed=3))


def test_stop_strings_end_before_themselves(rhyme: LanguageModel) -> None:
    assert rhyme.generate("one two", length=60, sampling=GREEDY, stop=["shoe", "door"]) == [" buckle my "]
    with pytest.raises(UserError, match="stop string"):
        rhyme.generate(stop=[""])


def test_a_continued_prompt_is_a_longer_text(rhyme: LanguageModel) -> None:
    whole = rhyme.generate("one", length=40, sampling=GREEDY)[0]
    assert rhyme.generate("one" + whole[:17], length=23, sampling=GREEDY)[0] == whole[17:]
    assert rhyme.generate("one", length=0) == [""]


def test_wrong_requests(rhyme: LanguageModel) -> None:
    with pytest.raises(UserError, match="'Q', '7'"):
        rhyme.generate("Q7")
    with pytest.raises(UserError, match="samples"):
        rhyme.generate(samples=0)
    with pytest.raises(UserError, match="length"):
        rhyme.generate(length=-1)


def test_exhaustive_finds_probabilities_that_sum_to_one(tmp_path: Path) -> None:
    lines = text_file(tmp_path, "ab\nba\nabb\n" * 20)
    model = run(lines, tmp_path / "run", "data.unit=line", "train.steps=30", "train.lr=0.02")
    found = model.exhaustive("a", length=4)
    assert sum(math.exp(one.log_prob) for one in found) == pytest.approx(1.0, abs=1e-5)
    assert len({(*one.tokens, one.finished) for one in found}) == len(found) > 100
    scored = {one.text: one.log_prob for one in found if one.finished}
    assert scored["b"] == pytest.approx(total(model, "ab") - model.score("ab")[0].log_prob, abs=1e-4)


# Runs


def test_samples_while_training_leave_the_weights_as_they_are(tmp_path: Path) -> None:
    text, settings = text_file(tmp_path), ("train.steps=20", "train.evaluate_every=10", "train.lr=0.03")
    kept = {}
    for name, more in {"on": ("sample.prompt=the", "sample.length=7"), "off": ("sample.length=0",)}.items():
        run(text, tmp_path / name, *settings, *more)
        kept[name] = (tmp_path / name / "model.safetensors").read_bytes()
    assert kept["on"] == kept["off"]
    records = [json.loads(line) for line in (tmp_path / "on" / "log.jsonl").read_text().splitlines()]
    samples = [record for record in records if record["kind"] == "sample"]
    assert [record["step"] for record in samples] == [10, 20]
    assert all(record["text"].startswith("the") and len(record["text"]) == 10 for record in samples)
    assert samples[0]["text"] != samples[1]["text"]
    assert '"sample"' not in (tmp_path / "off" / "log.jsonl").read_text()
    with pytest.raises(UserError, match="never saw in training"):
        run(text, tmp_path / "odd", "sample.prompt=Q7")


def test_the_library_trains_as_the_command_line_does(tmp_path: Path) -> None:
    text = text_file(tmp_path)
    settings = [f'data.train=["{text}"]', "model.hidden=8", "train.steps=2", "train.threads=1", "baseline.order=2"]
    report = elman.fit("lm", out=tmp_path / "run", settings=settings).report
    assert report == json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert set(report["baselines"]) == {"unigram", "Kneser-Ney 2-gram"}
    assert (tmp_path / "run" / "README.md").read_text().startswith("# run\n")
    with pytest.raises(UserError, match="no task 'ml': known are: lm"):
        elman.fit("ml", out=tmp_path / "other")


def test_columns_by_number(tmp_path: Path) -> None:
    table = tmp_path / "names.csv"
    table.write_text("".join(f"north,{'ab' * (1 + i % 3)},x\n" for i in range(20)))
    model = run(table, tmp_path / "run", "data.unit=line", "data.text_column=2", "data.label_column=1", "train.steps=2")
    assert model.labels == ["north"]
    assert set(model.tokenizer.tokens) == {"<unk>", "<eos>", "a", "b"}


def test_ngrams_write_with_the_probabilities_they_score_with(tmp_path: Path) -> None:
    text = text_file(tmp_path)
    model = run(text, tmp_path / "run", "model.kind=ngram", "model.order=3")
    stepper, found = model.stepper(), []
    state = stepper.start(1)
    ids = [model.reading.start_id, *model.tokenizer.encode("the cat sat").tolist()]
    for before, after in pairwise(ids):
        log_probs, state = stepper.step(np.array([before]), state)
        found.append(float(log_probs[0, after]))
    assert found == pytest.approx([token.log_prob for token in model.score("the cat sat")])
