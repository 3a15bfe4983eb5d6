"""Where a decoder begins: vectors that the caller gives, in the place of what a text or a source would have left.

found = translator.states("Zwei Hunde.")
translator.decode(found.output, state=found.final).text          # as translator.predict("Zwei Hunde.").text
model.generate("The", state={"1.h": vector})                     # a language model, told something by its first state
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elman.decode import StepModel
from elman.errors import UserError, nearest
from elman.ragged import Ragged
from elman.runtime import Layers, State

if TYPE_CHECKING:
    from elman.tasks.language import LanguageModel
    from elman.tasks.translate import Translator

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


def state_sizes(layers: Layers) -> dict[str, int]:
    """What layers carry from step to step, by layer and letter, and how large it is: both directions together.

    >>> state_sizes(Layers("body", "lstm", 3, 5, num_layers=2))
    {'1.h': 5, '1.c': 5, '2.h': 5, '2.c': 5}
    """
    parts = tuple(zip("hc", layers.state_sizes, strict=False))
    return {
        f"{depth}.{letter}": layers.directions * size
        for depth in range(1, layers.num_layers + 1)
        for letter, size in parts
    }


def whole_state(layers: Layers, state: Any, start: Mapping[str, Floats] | None = None) -> dict[str, Floats]:
    """A state that the caller gives, checked; what it lacks is as in `start`, or zeros.

    >>> whole_state(Layers("body", "gru", 3, 2, num_layers=2), {"2.h": [1, 2]})["2.h"].tolist()
    [1.0, 2.0]
    >>> whole_state(Layers("body", "gru", 3, 2), {"1.c": [1, 2]})
    Traceback (most recent call last):
    elman.errors.UserError: the model's state has no part '1.c': did you mean '1.h'?
    """
    if not isinstance(state, Mapping):
        raise UserError(
            f'a state is a mapping from parts to vectors, such as {{"1.h": [...]}}, not a {type(state).__name__}'
        )
    sizes = state_sizes(layers)
    for name in state:
        if name not in sizes:
            raise UserError(f"the model's state has no part {name!r}: {nearest(str(name), sizes)}")
    found = {name: np.zeros(size, np.float32) for name, size in sizes.items()} | dict(start or {})
    return found | {name: _vector(part, name, sizes[name]) for name, part in state.items()}


def _vector(given: ArrayLike, name: str, size: int) -> Floats:
    vector = _numbers(given, f"the state's part {name!r}")
    if vector.shape != (size,):
        raise UserError(f"the state's part {name!r} should be {size} numbers, not of shape {vector.shape}")
    return vector


def _numbers(given: ArrayLike, what: str) -> Floats:
    try:
        numbers = np.ascontiguousarray(given, dtype=np.float32)
    except (TypeError, ValueError):
        raise UserError(f"{what} should be an array of numbers, not a {type(given).__name__}") from None
    if not np.isfinite(numbers).all():
        raise UserError(f"{what} must have finite numbers only")
    return numbers


# Language models


class Begun:
    """A step model all of whose rows begin with one state."""

    def __init__(self, model: StepModel[Any], state: Any) -> None:
        self.state, self.step, self.select = state, model.step, model.select

    def start(self, batch_size: int) -> Any:
        """That state, for every row."""
        return self.select(self.state, np.zeros(batch_size, np.int64))


def language_state(model: "LanguageModel", state: Any) -> Any:
    """A state that the caller gives, as what answers for the model has it: the engine, or the network."""
    if model.settings.kind != "recurrent":
        raise UserError("only recurrent language models begin with a state: leave it out")
    if model.settings.output == "combined":
        raise UserError("a network with model.output = combined begins with its own state only: leave the state out")
    if model.adapts:
        raise UserError("a model that adapts begins with what it has read: leave the state out")
    layers = model.described()[0].layers
    if model.compiled:
        begin = model.engine().start(1)
        cuts = np.cumsum([*state_sizes(layers).values()])[:-1]
        start = dict(zip(state_sizes(layers), np.split(begin.numbers[0], cuts), strict=True))
        parts = whole_state(layers, state, start)
        return State(np.concatenate([*parts.values()])[None], begin.engine)
    import torch

    learned = [part[:, 0].detach().numpy() for part in getattr(model.network.bodies[0], "initial", ())]  # each L x H
    start = {
        f"{depth}.{letter}": row for letter, part in zip("hc", learned, strict=False) for depth, row in _rows(part)
    }
    parts = whole_state(layers, state, start)
    dtype = next(model.network.parameters()).dtype
    hidden = [
        torch.tensor(np.stack([part for name, part in parts.items() if name.endswith(letter)]), dtype=dtype)[:, None]
        for letter, _ in zip("hc", layers.state_sizes, strict=False)
    ]  # each L x 1 x H
    return hidden[0] if len(hidden) == 1 else tuple(hidden)


def _rows(part: Floats) -> list[tuple[int, Floats]]:
    return list(enumerate(part, 1))


def language_steps(model: "LanguageModel", state: Any, label: str | None) -> Begun:
    """The model as something that reads one id at a time, beginning with a state that the caller gives."""
    from elman.tasks.steps import EngineSteps, NetworkSteps

    place, begin = model._label_place(label), language_state(model, state)
    return Begun(EngineSteps(model.engine(), place) if model.compiled else NetworkSteps(model.network, place), begin)


def language_log_probs(model: "LanguageModel", ids: Ints, state: Any, label: str | None) -> NDArray[np.float64]:
    """The log-probability of each of some ids (T, in the order of reading), beginning with a state."""
    inputs, place = np.append(model.reading.start_id, ids[:-1])[None], model._label_place(label)  # 1 x T
    begin = language_state(model, state)
    if model.compiled:
        found = model.engine().log_probs(inputs, ids[None], begin, None if place is None else [place])[0]  # 1 x T
        return found[0]  # type: ignore[no-any-return]
    import torch

    with torch.no_grad(), model.evaluating() as network:
        labels = None if place is None else torch.tensor([place])
        hidden, _ = network.hidden(torch.from_numpy(inputs), begin, labels=labels)  # 1 x T x H
        scored = network.softmax.target_log_probs(hidden[0], torch.from_numpy(ids))  # T
    return scored.double().numpy()


# Translators


def memories_of(model: "Translator", given: Any) -> tuple[list[Floats], bool]:
    """What a decoder is to attend to, a memory (S x M) or several, each in the order of reading; whether it is one."""
    single = isinstance(given, np.ndarray) or hasattr(given, "detach")
    size = model.described().encoder.output_size
    found = []
    for number, one in enumerate([given] if single else list(given), 1):
        memory = _numbers(one.detach() if hasattr(one, "detach") else one, f"memory {number}")
        if memory.ndim != 2 or memory.shape[1] != size or not len(memory):
            raise UserError(
                f"memory {number} should be a row of {size} numbers for each place of a source, not of shape "
                f"{memory.shape}"
            )
        found.append(np.ascontiguousarray(memory[::-1]) if model.settings.reverse_source else memory)
    return found, single


def memory_steps(model: "Translator", memories: Sequence[Floats], states: Sequence[Any]) -> StepModel[Any]:
    """What a search goes through to write what memories are attended to for, beginning with states of the encoder."""
    encoder = model.described().encoder
    wholes = [whole_state(encoder, state or {}) for state in states]
    final = tuple(
        np.stack([np.stack([whole[f"{depth}.{letter}"] for whole in wholes]) for depth in _depths(encoder)])
        .reshape(encoder.num_layers, len(memories), encoder.directions, size)
        .swapaxes(1, 2)
        .reshape(-1, len(memories), size)
        for letter, size in zip("hc", encoder.state_sizes, strict=False)
    )  # each L*D x B x H
    outputs = Ragged.of(memories)
    if (compiled := model._runtime()) is not None:
        return compiled.memory_steps(outputs, final)
    from elman.tasks.steps import MemorySteps

    return MemorySteps(model.network.eval() if model.network.training else model.network, outputs, final)


def _depths(layers: Layers) -> range:
    return range(1, layers.num_layers + 1)


def attended(steps: Any, ids: Sequence[int], start: int, row: int, rows: int) -> Floats:
    """Where each of some ids, at least one, attends (T x S) as row `row` of a step model writes them."""
    state, found = steps.select(steps.start(rows), np.array([row])), []
    for before in [start, *ids[:-1]]:
        _, state = steps.step(np.array([before]), state)
        found.append(np.array(steps.attention(state)[0]))  # S
    return np.stack(found)
