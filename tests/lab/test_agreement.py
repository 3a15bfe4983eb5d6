"""The writer of the books is: what is counted, and any language model scored."""

import json
from pathlib import Path

import pytest
import torch

import elman
import elman.lab
from elman.errors import UserError
from elman.generated.agreement import agreement_pairs
from elman.lab.agreement import AgreementOptions, OneHotReader, accuracies, score_model
from elman.lab.networks import LabNetwork
from tests.cli.invoke import invoke

QUICK = {"data.unit": "line", "text.kind": "words", "baseline.order": 0, "train.threads": 1}
SENTENCES = [pair.right for pair in agreement_pairs(each=20, most=2, seed=5)]


def nearest(texts: list[str]) -> list[float]:
    """Whoever goes by the nearest noun: the last noun's number, and the verb's."""
    from tests.generated.test_agreement import NUMBER, VERB

    found = []
    for text in texts:
        words = text.split()
        nouns = [NUMBER[word] for word in words if word in NUMBER]
        found.append(float(VERB[words[-3]] == nouns[-1]))
    return found


def test_the_nearest_noun_is_right_without_attractors_and_wrong_with_them() -> None:
    attracted, together = accuracies(nearest, agreement_pairs(each=10))  # type: ignore[arg-type]
    assert attracted == {0: 1.0, 1: 0.0, 2: 0.0, 3: 0.0, 4: 0.0}
    assert together == dict.fromkeys(range(5), 1.0)


def test_a_network_is_scored_by_the_sum_of_its_log_probabilities() -> None:
    torch.manual_seed(0)
    reader = OneHotReader(SENTENCES)
    network = LabNetwork("gru", len(reader.words), 6, len(reader.words))
    found = reader.scorer(network)(SENTENCES[:3])
    for text, log_prob in zip(SENTENCES, found, strict=False):
        ids = [0, *(reader.ids[word] for word in text.split()), 0]
        x = torch.eye(len(reader.words))[ids[:-1]][None]
        each = network(x)[0].log_softmax(1)[range(len(ids) - 1), ids[1:]]
        assert log_prob == pytest.approx(each.sum().item(), abs=1e-4)


@pytest.mark.parametrize("kind", ["recurrent", "ngram"])
def test_any_language_model_is_scored(kind: str, tmp_path: Path) -> None:
    out = tmp_path / "model"
    settings = {**QUICK, "model.kind": kind, "model.hidden": 8, "model.layers": 1, "train.steps": 2}
    elman.fit("lm", train=SENTENCES, out=out, settings=settings, verbose=False)
    code, told, error = invoke("lab", "agreement", "--model", str(out), "--pairs", "4", "--attractors", "2", "--json")
    assert code == 0, error
    data = json.loads(told)
    (one,) = data["results"]
    assert one["name"] == str(out) and list(one["attracted"]) == ["0", "1", "2"] and data["pairs"] == 4
    model = elman.load(out)
    pairs = [pair for pair in agreement_pairs(4, 2) if pair.attractors == 2]
    right, wrong = ([getattr(pair, side) for pair in pairs] for side in ("right", "wrong"))
    better = zip(model.line_log_probs(right), model.line_log_probs(wrong), strict=True)
    assert one["attracted"]["2"] == [sum(a > b for a, b in better) / 4]


def test_verbs_that_a_model_does_not_know(tmp_path: Path) -> None:
    options = AgreementOptions(pairs=20, attractors=1)
    settings = {**QUICK, "model.hidden": 4, "model.layers": 1, "train.steps": 1}
    stranger = elman.fit("lm", train=["a b c"] * 30, settings=settings, verbose=False)
    with pytest.raises(UserError, match="knows none of the verbs"):
        score_model(stranger, options)
    halfway = elman.fit("lm", train=["the child is old ."] * 30, settings=settings, verbose=False)
    pairs = agreement_pairs(20, 1)
    assert score_model(halfway, options).unknown == sum(" is " not in pair.right + pair.wrong for pair in pairs)


def test_what_is_no_language_model_is_refused(tmp_path: Path) -> None:
    quick = {"train.steps": 1, "train.threads": 1, "model.hidden": 4}
    elman.fit("classify", train=[("a", "x"), ("b", "y")] * 20, out=tmp_path / "m", settings=quick, verbose=False)
    code, _, error = invoke("lab", "agreement", "--model", str(tmp_path / "m"))
    assert code == 2 and "is no language model" in error
    code, _, error = invoke("lab", "agreement", "--model", str(tmp_path / "none"))
    assert code == 2 and "none" in error


@pytest.mark.slow
def test_a_small_plain_network_is_attracted_and_an_lstm_is_not() -> None:
    outcome = elman.lab.run("agreement", cells=("rnn", "lstm"), seeds=1)
    rnn, lstm = outcome.data.results
    assert outcome.holds and lstm.attracted[4][0] > 0.9 > rnn.attracted[4][0]
