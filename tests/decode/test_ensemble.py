import numpy as np
import pytest
import torch

from elman.decode import Beam, Ensemble, beam_search, log_softmax
from elman.errors import UserError
from tests.decode.models import Bigram, Recurrent, Translator

BEAM = Beam(size=4, length=8, n_best=4)


def test_probabilities_are_averaged_step_by_step() -> None:
    models = [Translator(7, seed=seed) for seed in range(3)]
    both = Ensemble(models)
    state, ids = both.start(2), np.array([1, 2])
    alone = [model.step(ids, model.start(2)) for model in models]
    found, state = both.step(ids, state)
    expected = np.mean([np.exp(log_softmax(logits)) for logits, _ in alone], axis=0)
    assert np.allclose(np.exp(found), expected)
    picked = both.select(state, np.array([1, 1]))
    assert torch.allclose(picked[2][0], alone[2][1][0][[1, 1]])


def test_a_model_with_itself_is_the_model() -> None:
    model = Translator(7, seed=2)
    options = {"start_id": 1, "stop_id": 0, "beam": Beam(size=4, length=8, n_best=4, coverage=0.3)}
    one, two = beam_search(model, 3, **options), beam_search(Ensemble([model, model]), 3, **options)
    assert [[each.ids for each in row] for row in one] == [[each.ids for each in row] for row in two]
    assert one[0][0].score == pytest.approx(two[0][0].score)


def test_two_models_find_what_neither_would() -> None:
    # Each is sure of a first word that the other rules out; both find the third acceptable.
    first = Bigram([[1.0, 0, 0, 0], [0, 0.6, 0, 0.4], [1.0, 0, 0, 0], [1.0, 0, 0, 0]])
    second = Bigram([[1.0, 0, 0, 0], [0, 0, 0.6, 0.4], [1.0, 0, 0, 0], [1.0, 0, 0, 0]])
    options = {"start_id": 1, "stop_id": 0, "beam": Beam(size=1, length=1)}
    best = [beam_search(model, 1, **options)[0][0].ids for model in (first, second, Ensemble([first, second]))]
    assert best == [[1], [2], [3]]


def test_members_must_agree_on_the_vocabulary_and_on_attention() -> None:
    with pytest.raises(UserError, match=r"share a vocabulary, but theirs have \[7, 8\] ids"):
        beam_search(Ensemble([Recurrent(7), Recurrent(8)]), 1, start_id=1, stop_id=0, beam=BEAM)
    with pytest.raises(UserError, match="at least one"):
        Ensemble([])
    coverage = Beam(size=2, coverage=0.2)
    with pytest.raises(UserError, match="a model of the ensemble does not have"):
        beam_search(Ensemble([Translator(7), Recurrent(7)]), 1, start_id=1, stop_id=0, beam=coverage)
    with pytest.raises(UserError, match="different lengths"):
        models = [Translator(7), Translator(7, places=5)]
        beam_search(Ensemble(models), 1, start_id=1, stop_id=0, beam=coverage)
