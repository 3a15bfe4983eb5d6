"""Hidden states and gates of every layer while a model reads a text, as arrays: what `Model.states` gives.

found = elman.load("runs/shakespeare").states("To be, or not to be")
found.tokens, found.parts["1.c"]             # T tokens; the cell states of the first layer, T x H
found.final                                  # the state after the whole text: `generate(state=...)` goes on from it
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from elman.errors import UserError, nearest
from elman.files import write_aside
from elman.ragged import Ragged
from elman.records.labelled import LabelledReader
from elman.records.reader import TwoPartReader
from elman.tasks.classify import TextClassifier
from elman.tasks.language import LanguageModel
from elman.tasks.model import Model
from elman.tasks.next_tokens import PromptReader
from elman.tasks.sections import column
from elman.tasks.tag import TagModel
from elman.tasks.translate import Translator
from elman.text.encoder import WordEncoder, words
from elman.text.tagging import cut

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn.utils.rnn import PackedSequence

    from elman.nn.fast.backends import LayerTrace
    from elman.nn.recurrent import Recurrent

AnyModel = Model[Any, Any, Any, Any]
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

STATES = ("h", "c")
"""Letters of what a layer carries from step to step."""


def text_reader(model: AnyModel) -> TwoPartReader[Any]:
    """What reads files of texts for `elman states`: in tables, the column of the text that the model learned from."""
    data = model._data()
    told = column(getattr(data, "text_column", None) or getattr(data, "source", None))
    return LabelledReader(text=told) if isinstance(model, TextClassifier) else PromptReader(text=told)


@dataclass(frozen=True)
class Trace:
    """What the units of every layer did while a text was read.

    `parts` are named by layer, from 1, and letter of the cell's equation: "1.h", "2.f", each T x H; row t is after
    token t was read. Of layers that read both ways, the units that read backwards stand behind the others (T x 2H).
    """

    tokens: list[str]
    parts: dict[str, Floats]
    output: Floats = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    """T x O: what the layers give for each token, to a softmax, to the classes or to a decoder's attention."""
    final: dict[str, Floats] = field(default_factory=dict)
    """The state after the whole text was read, "1.h" and, of an LSTM, "1.c" (H): of layers that read both ways, after
    the last token and, behind it, after the first."""
    attention: Floats | None = None
    """Of a translator T' x S, where each token that it writes attends; of a classifier that pools by attention, how
    much each of its T tokens counts; else None."""
    target_tokens: list[str] = field(default_factory=list)
    """The T' tokens that a translator writes, or was given."""
    decoder: dict[str, Floats] = field(default_factory=dict)
    """T' x H: h, and c, of a translator's decoder, named as its encoder's; row t is after token t was written."""

    def shortened(self, most: int) -> "Trace":
        """The first tokens, so many at most."""
        return Trace(self.tokens[:most], {name: part[:most] for name, part in self.parts.items()})

    def part(self, layer: int | None, letter: str) -> tuple[str, Floats]:
        """The name and the numbers of one letter of one layer, counted from 1; None is the last layer."""
        name = f"{self.check_layer(layer)}.{letter}"
        if name not in self.parts:
            letters = [known.split(".")[1] for known in self.parts if known.startswith(f"{name.split('.')[0]}.")]
            raise UserError(f"the layers have no part '{letter}': {nearest(letter, letters)}")
        return name, self.parts[name]

    def check_layer(self, layer: int | None) -> int:
        """A layer's number, from 1; None is the last; one that is not there is refused."""
        layers = max(int(name.split(".")[0]) for name in self.parts)
        if layer is not None and not (isinstance(layer, int) and 1 <= layer <= layers):
            raise UserError(f"the model has no layer {layer}: give one from 1 to {layers}")
        return layer or layers

    def of_layer(self, layer: int) -> "Trace":
        """This trace with the parts of one layer alone, counted from 1."""
        self.check_layer(layer)

        def kept(parts: dict[str, Floats]) -> dict[str, Floats]:
            return {name: part for name, part in parts.items() if name.startswith(f"{layer}.")}

        return replace(self, parts=kept(self.parts), final=kept(self.final), decoder=kept(self.decoder))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it by name, as a file of arrays has it: the decoder's parts as "decoder.1.h", the final state's as
        "final.1.h"."""
        found: dict[str, NDArray[Any]] = {"tokens": np.array(self.tokens, dtype=np.str_), **self.parts}
        found |= {"output": self.output, **{f"final.{name}": part for name, part in self.final.items()}}
        if self.attention is not None:
            found["attention"] = self.attention
        if self.decoder:
            found["target_tokens"] = np.array(self.target_tokens, dtype=np.str_)
        return found | {f"decoder.{name}": part for name, part in self.decoder.items()}


def refusal(model: AnyModel) -> str | None:
    """Why a model has no hidden states; None where it has some."""
    if isinstance(model, LanguageModel) and model.settings.kind != "recurrent":
        kind = {"ngram": "an n-gram model", "window": "a window model"}[model.settings.kind]
        return f"it is {kind}, which has no hidden states"
    return None


def trace_text(
    model: AnyModel, text: str, label: str | None = None, target: str | Sequence[int] | None = None
) -> Trace:
    """States and gates of every layer for one text; of a translator, of its encoder, and where `target` is given, a
    text or its ids, of its decoder as if it had written that.

    A language model may need a `label`; one that reads both ways is traced forwards, as it scores.
    """
    import torch

    model.refuse_ensemble("looked into")
    if (reason := refusal(model)) is not None:
        raise UserError(f"there are no states to look at: {reason}")
    if label is not None and not isinstance(model, LanguageModel):
        raise UserError("only language models are told a label: leave it out")
    if target is not None and not isinstance(model, Translator):
        raise UserError("only translators have a target: leave it out")
    with torch.inference_mode(), model.evaluating() as network:
        if isinstance(model, LanguageModel):
            return _language_trace(model, network, text, label)
        if isinstance(model, TextClassifier):
            return _classifier_trace(model, network, text)
        if isinstance(model, TagModel):
            tokens = list(cut(text).tokens)
            embedded = network.embed(model.inputs(words([tokens])))
            return _traced(tokens, network.body, network.body.trace(embedded))
        if isinstance(model, Translator):
            return _translator_trace(model, network, text, target)
        raise UserError(f"states of a model for the task '{model.task}' cannot be shown")


def states(
    model: AnyModel, given: Any, *, layer: int | None = None, label: str | None = None, target: str | None = None
) -> Trace | list[Trace]:
    """What `Model.states` gives: the trace of a text, or of each of several."""
    from elman.tasks.model import check_texts, listed

    texts = listed(given)
    check_texts(texts)
    found = []
    for text in texts:
        wanted: str | Sequence[int] | None = target
        if target is None and isinstance(model, Translator):
            wanted = model.predict(text).n_best[0].ids
        trace = trace_text(model, text, label, wanted)
        found.append(trace if layer is None else trace.of_layer(layer))
    return found[0] if isinstance(given, str) else found


def write_states(path: Path, traces: Sequence[Trace], *, last: bool = False) -> None:
    """Write the traces of some texts as arrays (.npz), the rows of one text behind those of another.

    `lengths` has the number of each text's tokens. With `last`, only the final states are written, a row for each text.
    """
    check_arrays(path)
    with write_aside(path) as aside, aside.open("wb") as file:
        np.savez(file, **together(traces, last=last))  # type: ignore[arg-type]


def check_arrays(path: Path) -> None:
    """Refuse a file that is not one of arrays by its name.

    >>> check_arrays(Path("states.csv"))
    Traceback (most recent call last):
    elman.errors.UserError: states.csv is no file of arrays: give it a name that ends in .npz
    """
    if path.suffix.lower() != ".npz":
        raise UserError(f"{path} is no file of arrays: give it a name that ends in .npz")


def together(traces: Sequence[Trace], *, last: bool = False) -> dict[str, NDArray[Any]]:
    """The arrays of some traces, the rows of one text behind those of another.

    >>> one = Trace(["a"], {"1.h": np.ones((1, 3), np.float32)}, final={"1.h": np.ones(3, np.float32)})
    >>> {name: array.shape for name, array in together([one, one]).items()}["1.h"]
    (2, 3)
    >>> together([one, one], last=True)["1.h"].shape
    (2, 3)
    """
    if last:
        return {name: np.stack([trace.final[name] for trace in traces]) for name in traces[0].final}
    each = [trace.arrays() for trace in traces]
    found: dict[str, NDArray[Any]] = {"lengths": np.array([len(trace.tokens) for trace in traces])}
    for name in each[0]:
        parts = [arrays[name] for arrays in each if name in arrays]
        if name.startswith("final."):
            found[name] = np.stack(parts)
        elif name == "attention" and parts[0].ndim == 2 and len(parts) > 1:  # tables of different widths, one by one
            found |= {f"attention.{number}": part for number, part in enumerate(parts, 1)}
        else:
            found[name] = np.concatenate(parts)
    if traces[0].decoder:
        found["target_lengths"] = np.array([len(trace.target_tokens) for trace in traces])
    return found


# Tasks


def _language_trace(model: LanguageModel, network: Any, text: str, label: str | None) -> Trace:
    import torch

    place = model._label_place(label)
    ids = model.read_ids(text)
    if len(ids) == 1:
        raise UserError(f"the text {text[:30]!r} has no tokens that the model knows: give it some words")
    labels = None if place is None else torch.tensor([place])
    body, step = network.bodies[0], -1 if model.settings.direction == "backward" else 1
    trace = body.trace(network.embed(torch.tensor([ids]), labels))
    found = _traced([model.tokenizer.tokens[id] for id in ids[1:]], body, trace, skipped=1)
    return found if step == 1 else _turned(found)


def _turned(trace: Trace) -> Trace:
    """What was read from the end, in the order of the text; its final state stays what it is."""
    parts = {name: part[::-1] for name, part in trace.parts.items()}
    return replace(trace, tokens=trace.tokens[::-1], parts=parts, output=trace.output[::-1])


def _classifier_trace(model: TextClassifier, network: Any, text: str) -> Trace:
    from elman.nn.pooling import AttentionPooling

    read = model.vocabulary.encode([text])
    known = None if isinstance(model.vocabulary, WordEncoder) else model.vocabulary.tokenizer.tokens
    tokens = [str(one) if known is None else known[one] for one in read.data.tolist()]
    trace = network.body.trace(network.parts(network.embed(_inputs(*model.vocabulary.spelled(read))))[0])
    found = _traced(tokens, network.body, trace)
    if not isinstance(network.pooling, AttentionPooling):
        return found
    return replace(found, attention=network.pooling.weights(trace.output).data.numpy())


def _translator_trace(model: Translator, network: Any, text: str, target: str | Sequence[int] | None) -> Trace:
    from elman.nn.inputs import packed_sequence

    ids = model.source_ids(text)
    packed = packed_sequence(Ragged.of([ids]))
    trace = network.encoder.trace(packed._replace(data=network.source(packed.data)))
    found = _traced([model.sides.source.tokens[id] for id in ids.tolist()], network.encoder, trace)
    if target is not None:
        wanted = model.sides.say(target).tolist() if isinstance(target, str) else list(target)
        found = _with_decoder(model, network, found, ids, wanted)
    return _turned(found) if model.settings.reverse_source else found


def _with_decoder(model: Translator, network: Any, found: Trace, source: Ints, target: list[int]) -> Trace:
    """A translator's trace with the states of its decoder, which writes a target after the source that was read."""
    import torch

    memory, hidden = network.encode(torch.from_numpy(source).unsqueeze(0), torch.tensor([len(source)]))
    state, parts, weights = network.decoder.begin(hidden), list[dict[str, Floats]](), []
    for id in [model.start, *target][: len(target)]:
        _, state = network.decoder.step(network.target(torch.tensor([id])), state, memory)
        parts.append(_carried(state.hidden, len(state.hidden[0])))
        if state.weights is not None:
            weights.append(state.weights[0].float().numpy())  # S
    step, sizes = -1 if model.settings.reverse_source else 1, _carried(hidden, len(hidden[0]))
    table = np.array(weights, np.float32).reshape(len(weights), len(source))  # T' x S
    return replace(
        found,
        attention=None if network.decoder.attention is None else table[:, ::step],
        target_tokens=[model.sides.target.tokens[id] for id in target],
        decoder={
            name: np.array([each[name] for each in parts], np.float32).reshape(len(target), len(size))
            for name, size in sizes.items()
        },
    )


def _inputs(tokens: Any, spelling: Any) -> Any:
    from elman.nn.inputs import Inputs

    return Inputs.of(tokens, spelling)


# Arrays of a trace


def _traced(tokens: list[str], body: "Recurrent", trace: "LayerTrace", skipped: int = 0) -> Trace:
    """The trace of one sequence, without its first steps."""
    parts = {name: part[skipped:] for name, part in named_parts(body, trace, None).items()}
    return Trace(tokens, parts, rows_of(trace.output)[skipped:], _carried(trace.state, body.num_layers, body.letters))


def _carried(state: Any, layers: int, letters: Sequence[str] = STATES) -> dict[str, Floats]:
    """A state of one sequence by layer and letter, the directions of a layer side by side."""
    from elman.nn.steps import as_state

    found: dict[str, Floats] = {}
    for letter, part in zip(letters, as_state(state), strict=False):
        rows = part.float().numpy().reshape(layers, -1)  # L x D*H; of L*D x 1 x H
        found |= {f"{depth}.{letter}": row for depth, row in enumerate(rows, 1)}
    return dict(sorted(found.items(), key=lambda pair: int(pair[0].split(".")[0])))


def named_parts(body: "Recurrent", trace: "LayerTrace", names: Sequence[str] | None) -> dict[str, Floats]:
    """Parts of a trace by layer and letter, each N x H, the directions of a layer side by side.

    `names` are the parts that are wanted ("2.c"), or their letters ("c"); all, if not given.
    """
    layers = [trace.inside[first : first + body.directions] for first in range(0, len(trace.inside), body.directions)]
    found = {
        f"{depth}.{letter}": [one[letter] for one in layer]
        for depth, layer in enumerate(layers, 1)
        for letter in layer[0]
    }
    chosen = {name: both for name, both in found.items() if names is None or name in names or name[-1] in names}
    return {name: np.concatenate([rows_of(one) for one in both], axis=-1) for name, both in chosen.items()}


def rows_of(part: "Tensor | PackedSequence") -> Floats:
    """Numbers of packed sequences, or of a single one (1 x T x H), as N x H."""
    tensor = part if not isinstance(part, tuple) else part.data
    return cast(Floats, tensor.reshape(-1, tensor.shape[-1]).float().numpy())
