"""Stacked recurrent layers over whole texts, compiled: for classifiers and taggers, with no PyTorch call inside.

encoder = Encoder(Layers("body", "lstm", 64, 128), arrays, embedding="embedding", pooling="max", output="output")
scores = encoder(ids, lengths)
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elman import kernels
from elman.errors import UserError
from elman.ragged import NGRAM_SCALE, Ragged
from elman.runtime.arguments import Threaded, whole_numbers
from elman.runtime.layers import Layers
from elman.runtime.quantise import Arrays
from elman.runtime.stacked import Head, StackedEncoder
from elman.runtime.weights import Float, Shapes, Weights, arrays_of, type_refusal
from elman.runtime.words import KnownWords

if TYPE_CHECKING:
    from torch import nn

    from elman.nn.pooling import Pooling
    from elman.nn.recurrent import Recurrent
    from elman.nn.towers import Towers

TABLE_BYTES = 16 * 2**20
"""How large the tables may be that stand in for the product of the first layer with every vector of an embedding."""
Answers = tuple[Float, tuple[Float, ...]]
"""What is made of texts, and their states after the last step: none where these were not asked for."""
POOLING = "pooling"
"""The name that the weights of attention pooling begin with, unless another is given."""


def encoder_refusal(layers: "Layers | Recurrent | Towers", arrays: Arrays | None = None) -> str | None:
    """Why the encoder cannot run these layers, in one sentence; None if it can.

    >>> encoder_refusal(Layers("body", "gru-cho", 3, 5)) or "it can"
    "the engine runs rnn, lstm and gru, and this network's cell is gru-cho"
    """
    if not isinstance(layers, Layers):
        arrays, layers = arrays_of(layers), Layers.of(layers, "")
    if (reason := layers.refusal()) is not None:
        return reason
    return type_refusal(arrays or {})


def is_packed(layers: Layers) -> bool:
    """Whether the weights of these layers are packed once for the encoder's own kernels, which know less than others.

    >>> is_packed(Layers("body", "lstm", 3, 5)), is_packed(Layers("body", "lstm", 3, 5, proj_size=2))
    (True, False)
    """
    mean = layers.bidirectional and layers.merge == "mean"
    return not (layers.proj_size or mean or layers.learned_state)


class Encoder(Threaded):
    """Layers whose weights were packed once and never change; several threads of a program may use them at once.

    It reads vectors, or the ids of the `embedding` of that name, or with `one_hot` ids in the place of one-hot vectors,
    or words, whose vectors `words` makes (W words to W x I). What the first layer makes of an id or a word by itself is
    kept for the next time. It answers for every step; with a `pooling` (last, mean, max, last-max-mean or attention,
    whose weights have `pooling_name`) for every text. With the `output` layer of that name the answers are what it
    makes of them, else they are the states themselves. `threads` is how many it uses at most (None: as many as
    `kernels.threads()` says); a short text is quickest on one.

    >>> layers = Layers("body", "gru", 3, 5, bidirectional=True)
    >>> shapes = {**layers.shapes(), "output.weight": (4, 10), "output.bias": (4,)}
    >>> arrays = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    >>> encoder = Encoder(layers, arrays, output="output")
    >>> encoder(np.zeros((7, 3), np.float32), [5, 2]).shape
    (7, 4)
    """

    def __init__(
        self,
        layers: Layers,
        arrays: Arrays,
        *,
        embedding: str | None = None,
        one_hot: bool = False,
        words: Callable[[list[str]], Float] | None = None,
        pooling: str | None = None,
        pooling_name: str = POOLING,
        output: str | None = None,
        threads: int | None = None,
    ) -> None:
        if (reason := encoder_refusal(layers)) is not None:
            raise UserError(reason)
        super().__init__(threads)
        tops = {"attention": pooling_name if pooling == "attention" else None, "output": output}
        weights = Weights(arrays, {**layers.shapes(), **_shapes(layers, arrays, embedding, tops, pooling)})
        self._backward, self._pooled = layers.direction == "backward", pooling is not None
        ids = layers.input_size if one_hot else 0
        vectors = None if embedding is None else weights.numbers(f"{embedding}.weight")
        if vectors is not None:
            ids = len(vectors)
        folded = ids > 0 and is_packed(layers) and _folds(layers, ids, one_hot)
        self._words, self._known = words is not None, None if words is None else KnownWords(words)
        self._vectors: Callable[[Any], Float] | None = None  # of ids
        if ids and not folded:
            self._vectors = partial(one_hots, ids) if vectors is None else partial(looked_up, vectors)
        self._stacked: StackedEncoder | None = None
        self._has_gates = False
        if not is_packed(layers):
            self._stacked = StackedEncoder(layers, weights, Head(pooling, **tops))
            return
        description = {
            **_layers(layers, weights, vectors, ids if folded else 0),
            **_pooling(weights, pooling, tops["attention"]),
            **_output(weights, output),
        }
        try:
            self._native = kernels.native.make_encoder(description)
        except ValueError as error:
            raise UserError(f"the network cannot be packed: {error}") from None
        made = words or self._vectors
        if made is not None and self._native.has_gates:
            native, most = self._native, self._threads  # not itself: what refers to itself is freed late
            self._known = KnownWords(lambda new: native.gates(made(new), most or kernels.threads()))
            self._has_gates = True

    @classmethod
    def of(
        cls,
        network: "nn.Module",
        body: "Recurrent | Towers",
        *,
        arrays: Arrays | None = None,
        embedding: "nn.Embedding | None" = None,
        pooling: "Pooling | None" = None,
        output: "nn.Linear | None" = None,
        threads: int | None = None,
    ) -> "Encoder":
        """An encoder of some parts of a network of PyTorch's, with its weights as they are now, or with `arrays`."""
        from elman.nn.pooling import POOLINGS

        names = {id(module): name for name, module in network.named_modules()}
        kinds = {kind: name for name, kind in POOLINGS.items()}
        return cls(
            Layers.of(body, names[id(body)]),
            arrays_of(network) if arrays is None else arrays,
            embedding=None if embedding is None else names[id(embedding)],
            pooling=None if pooling is None else kinds[type(pooling)],
            pooling_name=names.get(id(pooling), POOLING),
            output=None if output is None else names[id(output)],
            threads=threads,
        )

    def __call__(self, inputs: NDArray[Any], lengths: Any) -> Float:
        """What it makes of texts, one after the other: vectors (N x I), ids or words (N), `lengths` steps each (B).

        N x C, an answer for each step; with a pooling B x C, one for each text.
        """
        return self._read_from(inputs, lengths, final=False)[0]

    def with_final(self, inputs: NDArray[Any], lengths: Any) -> Answers:
        """What a call gives, and the states after the last step of each text: h, c of an LSTM (each L*D x B x H)."""
        return self._read_from(inputs, lengths, final=True)

    def _read_from(self, inputs: NDArray[Any], lengths: Any, final: bool) -> Answers:
        """The answers and, where `final`, the states; of one tower that reads backward, from the end."""
        many = whole_numbers(lengths, "the lengths")
        if self._backward or self._stacked is not None:  # else the kernels do
            _check_lengths(many, np.shape(inputs)[:1])
        if not self._backward:
            return self._read(inputs, many, final)
        order = turned(many)
        found, states = self._read(np.asarray(inputs)[order], many, final)
        return found if self._pooled else found[order], states

    def _read(self, inputs: NDArray[Any], many: NDArray[Any], final: bool) -> Answers:
        try:
            if self._stacked is None and self._native.ids:
                ids = whole_numbers(inputs, "the ids")
                return cast(Answers, self._native.read_ids(ids, many, self.threads, final))
            if self._known is not None:
                met = np.asarray(inputs) if self._words else whole_numbers(inputs, "the ids")
                table, rows = self._known.find(met.tolist())
                if self._has_gates:
                    return cast(Answers, self._native.read_gates(table, rows, many, self.threads, final))
                inputs = table.take(rows, axis=0)
            elif self._vectors is not None:
                inputs = self._vectors(inputs)
            read = np.ascontiguousarray(inputs, np.float32)
            if self._stacked is not None:
                found, states = self._stacked(read, many, self.threads)
                return found, states if final else ()
            return cast(Answers, self._native.read_vectors(read, many, self.threads, final))
        except (ValueError, TypeError) as error:
            raise UserError(str(error)) from None


class CompiledCharacters:
    """An `elman.nn.features.CharacterEncoder`, compiled: words to the vectors of their characters, all side by side.

    >>> layers = Layers("body", "lstm", 4, 5, bidirectional=True)
    >>> shapes = {**layers.shapes(), "embedding.weight": (30, 4)}
    >>> compiled = CompiledCharacters("", {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}, layers)
    >>> compiled(np.array([[7, 3, 0], [1, 2, 9]]), np.array([2, 3])).shape
    (2, 10)
    """

    def __init__(self, name: str, arrays: Arrays, layers: Layers) -> None:
        """The character encoder of that name in its network; the name of its `layers` begins with it too."""
        self.encoder = Encoder(layers, arrays, embedding=f"{name}.embedding" if name else "embedding", pooling="last")

    def __call__(self, spelled: NDArray[Any], lengths: NDArray[Any]) -> Float:
        """W x C ids of characters, of which each word has `lengths`, to W x 2H."""
        inside = np.arange(spelled.shape[1]) < lengths[:, None]  # W x C
        return self.encoder(spelled[inside], lengths)


def ngram_scores(table: Float, texts: Ragged, order: int) -> Float:
    """What the n-grams of texts say of their classes (B x C), as `elman.nn.ngrams.NGramScores` has it.

    >>> ngram_scores(np.ones((10, 2), np.float32), Ragged.of([[7], [7, 8, 9]]), 2).round(3)
    array([[10.   , 10.   ],
           [22.361, 22.361]], dtype=float32)
    """
    rows, shares = texts.ngrams(order, len(table))  # N x order
    scores = (table[rows] * shares[:, :, None]).sum(axis=1)  # N x C
    return cast(Float, NGRAM_SCALE * np.add.reduceat(scores, texts.starts))


def looked_up(vectors: NDArray[Any], ids: ArrayLike) -> NDArray[Any]:
    """The vectors of ids; UserError where one has none.

    >>> looked_up(np.eye(2, dtype=np.float32), np.array([1])).tolist()
    [[0.0, 1.0]]
    """
    ids = whole_numbers(ids, "the ids")
    if ids.size and not (ids.min() >= 0 and ids.max() < len(vectors)):
        raise UserError(f"the ids must lie in 0 to {len(vectors) - 1}, and go from {ids.min()} to {ids.max()}")
    return vectors.take(ids, axis=0)


def one_hots(size: int, ids: ArrayLike) -> Float:
    """A vector with a single one for each id; UserError where an id is beyond `size`.

    >>> one_hots(3, np.array([2, 0])).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    places = looked_up(np.arange(size), ids)  # which are the ids themselves, checked
    vectors = np.zeros((len(places), size), np.float32)
    vectors[np.arange(len(places)), places] = 1
    return vectors


def turned(lengths: NDArray[Any]) -> NDArray[np.int64]:
    """For rows of texts one after the other, the row of the same text as far from its other end.

    >>> turned(np.array([2, 3])).tolist()
    [1, 0, 4, 3, 2]
    """
    ends = np.cumsum(lengths)
    return np.repeat(2 * ends - lengths - 1, lengths) - np.arange(ends[-1] if len(ends) else 0)


def _check_lengths(lengths: NDArray[Any], rows: tuple[int, ...]) -> None:
    """Refuse texts without steps, and more or fewer steps than there are rows."""
    if lengths.ndim != 1 or not lengths.size or lengths.min() < 1:
        raise UserError("every text should have at least one step, and there should be at least one text")
    if (steps := sum(lengths.tolist())) != sum(rows):
        raise UserError(f"the texts have {steps:,} steps: give a row for each, not {sum(rows):,}")


def _shapes(
    layers: Layers, arrays: Arrays, embedding: str | None, tops: dict[str, str | None], pooling: str | None
) -> Shapes:
    """The shapes of what stands below and on top of the layers; how many ids and classes there are the arrays tell."""
    width, found = layers.output_size, Shapes()
    if embedding is not None:
        found[f"{embedding}.weight"] = (_rows(arrays, f"{embedding}.weight"), layers.input_size)
    if (name := tops["attention"]) is not None:
        found |= {f"{name}.W.weight": (width, width), f"{name}.W.bias": (width,), f"{name}.v.weight": (1, width)}
    if (name := tops["output"]) is not None:
        rows = _rows(arrays, f"{name}.weight")
        found[f"{name}.weight"] = (rows, pooled_size(pooling, width))
        found |= {f"{name}.bias": (rows,)} if f"{name}.bias" in arrays else {}
    return found


def pooled_size(pooling: str | None, width: int) -> int:
    """The size of what a pooling makes of vectors of a size."""
    return 3 * width if pooling == "last-max-mean" else width


def _rows(arrays: Arrays, name: str) -> int:
    return len(arrays[name]) if name in arrays and arrays[name].ndim else 0


def _folds(layers: Layers, ids: int, one_hot: bool) -> bool:
    """Whether ids are looked up in a table of the first layer's products: it is small, and all that is seen.

    The table of one-hot vectors is the matrix itself, transposed.
    """
    added = layers.connections == "residual" and layers.input_size == layers.output_size
    bytes_ = 4 * layers.gates * layers.directions * ids
    return not added and layers.connections != "dense" and (one_hot or bytes_ <= TABLE_BYTES)


def _layers(layers: Layers, weights: Weights, vectors: Float | None, ids: int) -> dict[str, Any]:
    """Sizes, and both directions of each layer; the first with a table of so many `ids`, with vectors or one-hot."""
    parts = []
    for depth in range(layers.num_layers):
        for side in range(layers.directions):
            part = layers.packed(weights, depth, side == 1)
            if depth == 0 and ids:
                weight = layers.numbers(weights, "weight_ih", depth, side == 1)
                table = (weight.T if vectors is None else vectors @ weight.T) + part["bias"]  # V x G*H
                part |= {"input": None, "table": np.ascontiguousarray(table)}
            parts.append(part)
    return {
        **layers.description(),
        "directions": layers.directions,
        "inputs": 0 if ids else layers.input_size,
        "ids": ids,
        "parts": parts,
    }


def _pooling(weights: Weights, pooling: str | None, name: str | None) -> dict[str, Any]:
    """The kind of pooling, and the weights of attention."""
    if name is None:
        return {"pooling": pooling or "steps", "query": None, "query_bias": None, "query_vector": None}
    return {
        "pooling": pooling,
        "query": weights.matrix(f"{name}.W.weight"),
        "query_bias": weights.numbers(f"{name}.W.bias"),
        "query_vector": weights.numbers(f"{name}.v.weight")[0],
    }


def _output(weights: Weights, name: str | None) -> dict[str, Any]:
    """The matrix and the bias of a layer on top."""
    if name is None:
        return {"head": None, "head_bias": None}
    matrix = weights.matrix(f"{name}.weight")
    rows = len(matrix[0] if isinstance(matrix, tuple) else matrix)
    return {"head": matrix, "head_bias": weights.bias(f"{name}.bias", rows)}
