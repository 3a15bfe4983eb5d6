from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elman.decode.generate import generate
from elman.decode.stop_strings import StopStrings
from elman.errors import UserError
from elman.sampling import Sampling
from tests.decode.models import Bigram, Recurrent, Translator

SIZE = 11
MODEL = Recurrent(SIZE)
GREEDY = Sampling(temperature=0)


def texts(prompts: Sequence[Sequence[int]], model: Any = MODEL, **options: Any) -> list[list[int]]:
    """The new ids of each row, gathered from the stream."""
    rows: list[list[int]] = [[] for _ in prompts]
    for new in generate(model, prompts, **{"length": 12, "sampling": Sampling(), **options}):
        for row, id_ in new.items():
            rows[row].append(id_)
    return rows


def ring(size: int = 6) -> Bigram:
    """After n comes n + 1, for certain."""
    return Bigram(np.roll(np.eye(size), 1, axis=1).tolist())


def test_greedy_takes_the_likeliest_at_every_step() -> None:
    (row,) = texts([[3, 1, 4]], sampling=GREEDY)
    state = MODEL.start(1)
    expected: list[int] = []
    for id_ in [3, 1]:
        _, state = MODEL.step(np.array([id_]), state)
    id_ = 4
    for _ in range(12):
        logits, state = MODEL.step(np.array([id_]), state)
        id_ = int(logits.argmax())
        expected.append(id_)
    assert row == expected


prompt_lists = st.lists(st.lists(st.integers(0, SIZE - 1), max_size=6), min_size=1, max_size=5)
how = st.builds(
    Sampling,
    temperature=st.sampled_from([0.0, 0.8, 1.5]),
    top_k=st.sampled_from([0, 4]),
    top_p=st.sampled_from([1.0, 0.9]),
    repetition_penalty=st.sampled_from([1.0, 1.4]),
    seed=st.integers(0, 99),
)


@settings(max_examples=60, deadline=None)
@given(prompt_lists, how)
def test_a_batch_gives_each_row_what_it_gets_alone(prompts: list[list[int]], sampling: Sampling) -> None:
    options: dict[str, Any] = {"sampling": sampling, "stop_ids": {2, 5}, "start_id": 0, "suppress": [7]}
    alone = [texts([prompt], first_stream=i, **options)[0] for i, prompt in enumerate(prompts)]
    assert texts(prompts, **options) == alone
    assert not {2, 5, 7} & {id_ for row in alone for id_ in row}


def test_sample_i_is_the_same_however_many_are_drawn() -> None:
    assert texts([[1, 2]] * 3) == texts([[1, 2]] * 8)[:3] != texts([[1, 2]] * 3, first_stream=3)
    assert texts([[1, 2]] * 3, first_stream=3) == texts([[1, 2]] * 8)[3:6]


def test_samples_of_one_prompt_differ() -> None:
    assert len({tuple(row) for row in texts([[1]] * 6)}) == 6


def test_seeds() -> None:
    assert texts([[1]], sampling=Sampling(seed=8)) == texts([[1]], sampling=Sampling(seed=8))
    assert texts([[1]], sampling=Sampling(seed=8)) != texts([[1]], sampling=Sampling(seed=9))
    without = [texts([[1]], sampling=Sampling(seed=None), length=40) for _ in range(2)]
    assert without[0] != without[1]


def test_a_shorter_text_is_the_beginning_of_a_longer_one() -> None:
    assert texts([[1]], length=5)[0] == texts([[1]], length=20)[0][:5]


def test_ids_come_as_they_are_made() -> None:
    stream = generate(MODEL, [[1], [2]], length=10**9, sampling=Sampling())
    assert [sorted(next(stream)) for _ in range(3)] == [[0, 1]] * 3


def test_rows_end_at_a_stop_id_which_is_not_handed_out() -> None:
    assert texts([[0], [3], [4]], model=ring(), sampling=GREEDY, stop_ids={5}) == [[1, 2, 3, 4], [4], []]


def test_rows_that_have_ended_are_not_computed() -> None:
    model = ring()
    texts([[0], [3], [4]], model=model, sampling=GREEDY, stop_ids={5})
    assert model.stepped == 5 + 2 + 1


def test_what_all_prompts_share_is_read_once() -> None:
    model = ring()
    assert texts([[1, 2, 3]] * 7, model=model, sampling=GREEDY, length=1) == [[4]] * 7
    assert model.stepped == 2 + 7


@pytest.mark.parametrize("prompts", [[[], [], []], [[3, 4, 5]] * 3, [[3, 4], [3, 4, 6], [3]]])
def test_rows_that_are_different_sentences_go_on_from_their_own(prompts: list[list[int]]) -> None:
    model = Translator(SIZE)
    options: dict[str, Any] = {"start_id": 1, "stop_ids": {0}, "same_start": False}
    alone = [texts([each], model.only([i]), first_stream=i, **options)[0] for i, each in enumerate(prompts)]
    assert texts(prompts, model, **options) == alone
    assert len(set(map(tuple, alone))) == 3


def test_a_row_ends_when_the_caller_says_so() -> None:
    rows: list[list[int]] = [[], []]
    for new in generate(
        ring(), [[0], [2]], length=50, sampling=GREEDY, stop_when=lambda row: len(rows[row]) == 2 + row
    ):
        for row, id_ in new.items():
            rows[row].append(id_)
    assert rows == [[1, 2], [3, 4, 5]]


def test_stop_strings_end_each_row_of_a_stream() -> None:
    stops = [StopStrings(["de"]) for _ in range(2)]
    shown = ["", ""]
    for new in generate(ring(), [[0], [3]], length=9, sampling=GREEDY, stop_when=lambda row: stops[row].stopped):
        for row, id_ in new.items():
            shown[row] += stops[row].push("abcdef"[id_])
    assert shown == ["bc", "efabc"]


def test_an_empty_prompt_begins_with_the_start_id() -> None:
    assert texts([[], [4]], start_id=4, sampling=GREEDY) == texts([[4], [4]], sampling=GREEDY)


def test_an_empty_prompt_without_a_start_id_is_refused_at_once() -> None:
    with pytest.raises(UserError, match="prompt 2 is empty"):
        generate(MODEL, [[1], []], length=3, sampling=GREEDY)


def test_penalty_counts_the_prompt_and_what_was_written() -> None:
    sticky = Bigram([[0.6, 0.3, 0.1]] * 3)
    penalty = Sampling(temperature=0, repetition_penalty=10)
    assert texts([[0]], model=sticky, sampling=GREEDY, length=3) == [[0, 0, 0]]
    assert texts([[0]], model=sticky, sampling=penalty, length=2) == [[1, 2]]


def test_nothing_to_do() -> None:
    assert texts([]) == []
    assert texts([[1], [2]], length=0) == [[], []]


@pytest.mark.parametrize("option", [{"length": -1}, {"first_stream": -1}])
def test_a_negative_number_is_refused(option: dict[str, int]) -> None:
    with pytest.raises(UserError, match=next(iter(option))):
        texts([[1]], **option)


def test_no_gradient_is_kept_and_the_callers_mode_is_untouched() -> None:
    stream = generate(MODEL, [[1]], length=3, sampling=Sampling())
    next(stream)
    assert torch.is_grad_enabled()
