"""What comes next: probabilities are those of `score`, compiled as by PyTorch; words are found in their order."""

import math
from copy import copy

import numpy as np
import pytest

from elman.errors import UserError
from elman.tasks.language import LanguageModel
from elman.tasks.next_tokens import next_log_probs
from elman.tasks.predict import PredictOptions
from tests.tasks.language_models import untrained
from tests.tasks.runs import prose, run

TEXTS = ["the", "", "a dog", "cat", "the cat saw a"]


def by_torch(model: LanguageModel) -> LanguageModel:
    twin = copy(model)
    twin.backend = "torch"
    return twin


@pytest.mark.parametrize(
    "options", [{}, {"cell": "lstm", "unit": "stream"}, {"direction": "backward"}, {"softmax": "adaptive", "size": 12}]
)
def test_probabilities_are_those_of_scoring_and_of_both_backends(options: dict[str, object]) -> None:
    model = untrained(**options)  # type: ignore[arg-type]
    found = model.predict(TEXTS, top=1000)
    assert [len(several) for several in found] == [model.tokenizer.size] * len(TEXTS)
    for one, other in zip(found, by_torch(model).predict(TEXTS, top=1000), strict=True):
        assert sum(token.probability for token in one) == pytest.approx(1.0, abs=1e-6)
        chances = [token.probability for token in one]
        assert chances == sorted(chances, reverse=True)
        assert {t.token: t.probability for t in one} == pytest.approx({t.token: t.probability for t in other}, abs=1e-6)
    if "direction" not in options:
        likeliest = next(token for token in found[0] if len(token.token) == 1)
        scored = model.score("the" + likeliest.token)[3]
        assert (scored.token, math.exp(scored.log_prob)) == (likeliest.token, pytest.approx(likeliest.probability))


def test_one_text_gets_what_it_gets_among_others_and_labels_matter() -> None:
    model = untrained(labels=("x", "y"))
    together = model.predict(TEXTS, top=3, label="x")
    alone = [model.predict(text, top=3, label="x") for text in TEXTS]
    assert [[t.token for t in one] for one in together] == [[t.token for t in one] for one in alone]
    assert model.predict("the", label="x") != model.predict("the", label="y")
    with pytest.raises(UserError, match="give one of x, y"):
        model.predict("the")
    with pytest.raises(UserError, match="did you mean 'top'"):
        model.predict("the", tp=3)
    with pytest.raises(UserError, match="give it as a str"):
        model.predict([3])


def test_n_grams_say_what_comes_next(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("ngram")
    (folder / "text.txt").write_text(prose())
    model = run(folder / "text.txt", folder / "run", "model.kind=ngram", "model.order=4")
    found = model.predict("the ca", top=1000)
    assert sum(token.probability for token in found) == pytest.approx(1.0)
    assert found[0].token == "t" and found[0].probability > 0.5
    assert math.log(found[0].probability) == pytest.approx(model.score("the cat")[-1].log_prob)


@pytest.mark.parametrize("kind", ["characters", "bpe"])
def test_words_come_in_the_order_of_their_probability_and_none_is_missed(kind: str) -> None:
    model = untrained(kind, size=None if kind == "characters" else 290)
    tokenizer = model.tokenizer
    found = model.predict("the cat", top=6, words=True)
    chances = [word.probability for word in found]
    assert chances == sorted(chances, reverse=True) and len({word.token for word in found}) == 6
    assert all(word.token == word.token.strip() != "" for word in found)
    # The first word's probability by hand: a blank, its tokens, and whatever ends it, given that a blank comes.
    pieces = [tokenizer.decode([id]) for id in range(tokenizer.size)]
    blanks = [id for id, piece in enumerate(pieces) if piece[:1].isspace()]
    prompt = model.read_ids("the cat")
    first = next_log_probs(model, [prompt], None)[0]
    ids = [int(id) for id in tokenizer.encode(" " + found[0].token)]
    total = float(first[ids[0]] - np.logaddexp.reduce(first[blanks]))
    for place in range(1, len(ids)):
        total += float(next_log_probs(model, [[*prompt, *ids[:place]]], None)[0][ids[place]])
    after = next_log_probs(model, [[*prompt, *ids]], None)[0]
    total += float(np.logaddexp.reduce(after[[*blanks, tokenizer.eos_id]]))
    if kind == "characters":  # of sub-words, another way to spell it may be likelier
        assert math.log(chances[0]) == pytest.approx(total, abs=1e-5)
    assert chances[0] >= math.exp(total) - 1e-6
    with pytest.raises(UserError, match="words already"):
        untrained("words").predict("the", words=True)
    with pytest.raises(UserError, match="read forwards"):
        untrained(direction="backward").predict("the", words=True)


def test_lines_keep_their_blanks() -> None:
    model = untrained()
    lines = list(model.predict_lines(["a ", "a"], PredictOptions(asked={"top": 1})))
    expected = [model.predict(text, top=1)[0] for text in ("a ", "a")]
    assert lines == [f"{one.token}\t{one.probability:.4f}" for one in expected]
