"""Noisy-channel reranking: the sum is what it says, tuning helps, and the command line does the same."""

import json
from pathlib import Path

import pytest

from elman.errors import UserError
from elman.metrics.bleu import BleuCounts, corpus_scores
from elman.tasks.channel import ChannelWeights, NoisyChannel
from elman.tasks.language import LanguageModel
from elman.tasks.search import Search
from tests.cli.invoke import invoke
from tests.tasks.runs import run as run_language
from tests.tasks.translate_runs import sentences, untrained, write

PAIRS = [(pair.source, pair.target) for pair in sentences(12, seed=4)]
HELP = ("--channel", "{f}/reverse", "--lm", "{f}/line")
TEXTS = [source for source, _ in PAIRS]
TURNED = [type(pair)(pair.target, pair.source) for pair in sentences()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The three models, and pairs."""
    folder = tmp_path_factory.mktemp("channel")
    untrained(sentences(), kind="words").save(folder / "forward")
    untrained(TURNED, kind="words", seed=3).save(folder / "reverse")
    (folder / "en.txt").write_text("".join(f"{pair.target}\n" for pair in sentences()))
    for unit in ("line", "stream"):
        run_language(folder / "en.txt", folder / unit, "text.kind=words", f"data.unit={unit}", "train.steps=30")
    write(folder / "dev.tsv", sentences(12, seed=4))
    return folder


@pytest.fixture
def channel(folder: Path) -> NoisyChannel:
    models = untrained(sentences(), kind="words"), untrained(TURNED, kind="words", seed=3)
    return NoisyChannel(*models, LanguageModel.load(folder / "line"), n_best=6)


def test_the_sum_is_that_of_the_three_models(channel: NoisyChannel) -> None:
    channel.weights = ChannelWeights(channel=0.7, language=0.3, length=0.1)
    found = channel.predict(TEXTS[0], n_best=6)
    assert [one.score for one in found.n_best] == sorted((one.score for one in found.n_best), reverse=True)
    plain = channel.model.predict(TEXTS[0], n_best=6)
    assert sorted(one.text for one in found.n_best) == sorted(one.text for one in plain.n_best if one.text)
    for one in found.n_best:
        (back,) = channel.reverse.log_probs([(one.text, TEXTS[0])])
        language = sum(token.log_prob for token in channel.language.score(one.text))
        expected = one.log_prob + 0.7 * back + 0.3 * language + 0.1 * (len(one.ids) + 1)
        assert one.score == pytest.approx(expected, abs=1e-5)


def test_the_forward_model_alone_is_plain_log_probability(channel: NoisyChannel) -> None:
    channel.weights = ChannelWeights(channel=0, language=0, length=0)
    for one in channel.predict(TEXTS, n_best=6):
        log_probs = [other.log_prob for other in one.n_best]
        assert log_probs == sorted(log_probs, reverse=True)


@pytest.mark.parametrize("unit", ["line", "stream"])
def test_a_language_model_knows_where_a_line_ends(folder: Path, unit: str) -> None:
    model = LanguageModel.load(folder / unit)
    texts = ["the dog sees a bird", "a", "a bird"]
    expected = [
        sum(token.log_prob for token in model.score(text + ("\n" if unit == "stream" else ""))) for text in texts
    ]
    assert model.line_log_probs(texts) == pytest.approx(expected, abs=1e-5)
    assert model.line_log_probs([]) == []


def test_tuning_takes_weights_that_are_no_worse(channel: NoisyChannel) -> None:
    def bleu() -> float:
        said = [one.text for one in channel.predict(TEXTS)]
        return corpus_scores(said, [[target] for _, target in PAIRS]).bleu

    before = bleu()
    tuned = channel.tune(PAIRS)
    assert tuned.quality >= before
    assert bleu() == pytest.approx(tuned.quality)
    assert channel.weights.model_dump() == tuned.weights
    channel.weights = ChannelWeights()
    assert channel.tune(PAIRS) == tuned  # the same again


def test_what_is_asked_of_the_search_still_holds(channel: NoisyChannel) -> None:
    assert channel.predict(TEXTS[0], prefix="the bird").text.startswith("the bird")
    found = channel.translate(TEXTS[:2], [Search(require=("hears",)), Search(alignments=True)])
    assert "hears" in found[0].text
    assert found[1].weights is not None and found[1].weights.shape[0] == len(found[1].target_tokens)
    assert len(channel.predict(TEXTS[0]).n_best) == 1
    with pytest.raises(UserError, match="leave temperature out"):
        channel.predict(TEXTS[0], temperature=1.0)
    with pytest.raises(UserError, match="text 2 of 2 is a int"):
        channel.predict([TEXTS[0], 3])  # type: ignore[list-item]
    with pytest.raises(UserError, match="at least 2 translations"):
        NoisyChannel(channel.model, channel.reverse, channel.language, n_best=1)
    with pytest.raises(UserError, match="should not be 0"):
        ChannelWeights.read("forward=0,channel=0,language=0,length=0")


def test_counted_bleu_is_sacrebleus() -> None:
    lists = [["The cat, sat.", "the dog sat on a mat."], ["A bird sings 3.5 songs!", "Birds sing"], ["x", "y z"]]
    right = [["the cat sat on the mat."], ["A bird sings 3.5 songs here!", "Birds sing."], ["y z"]]
    for lowercase in (False, True):
        counts = BleuCounts(lists, right, lowercase=lowercase)
        for chosen in ([0, 0, 0], [1, 0, 1], [0, 1, 1], [1, 1, 0]):
            said = [several[place] for several, place in zip(lists, chosen, strict=True)]
            assert counts.bleu(chosen) == pytest.approx(corpus_scores(said, right, lowercase=lowercase).bleu)


def test_on_the_command_line(folder: Path) -> None:
    models = (str(folder / "forward"), "--channel", str(folder / "reverse"), "--lm", str(folder / "line"))
    dev = str(folder / "dev.tsv")
    code, out, error = invoke("rerank", *models, "--dev", dev, "--test", dev, "--n-best", "6", "--json")
    assert code == 0, error
    report = json.loads(out)
    assert report["dev"] == report["test"] and report["dev"]["lines"] == len(PAIRS)
    code, out, error = invoke("rerank", *models, "--test", dev, "--weights", report["weights"], "--n-best", "6")
    assert code == 0, error
    assert f"{report['dev']['before']:.2f} -> {report['dev']['after']:.2f}" in out
    assert f"--channel-weights {report['weights']}" in out

    (folder / "new.txt").write_text("\n".join(TEXTS))
    options = ("--channel-weights", report["weights"], "--beam", "6")
    code, out, error = invoke("predict", models[0], str(folder / "new.txt"), *models[1:], *options)
    assert code == 0, error
    said = out.splitlines()
    assert corpus_scores(said, [[target] for _, target in PAIRS]).bleu == pytest.approx(report["dev"]["after"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("predict", "{f}/forward", "{f}/new.txt", "--channel", "{f}/reverse"), "give both --channel and --lm"),
        (("predict", "{f}/forward", "{f}/new.txt", "--channel", "{f}/line", "--lm", "{f}/line"), "for the task 'lm'"),
        (("rerank", "{f}/forward", *HELP), "there is nothing to score"),
        (("rerank", "{f}/forward", *HELP, "--weights", "chanel=1", "--dev", "{f}/dev.tsv"), "did you mean 'channel'"),
        (("predict", "{f}/line", "{f}/new.txt", "--channel", "{f}/reverse"), "an option of the task 'translate'"),
    ],
)
def test_mistakes_are_one_sentence(folder: Path, arguments: tuple[str, ...], sentence: str) -> None:
    (folder / "new.txt").write_text("\n".join(TEXTS))
    code, out, error = invoke(*(part.format(f=folder) for part in arguments))
    assert (code, out) == (2, "")
    assert sentence in error
    assert len(error.strip().splitlines()) == 1
