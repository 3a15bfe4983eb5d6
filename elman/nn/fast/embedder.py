"""Word vectors, learned by the compiled kernel: `elman.nn.vectors` has the equations."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from elman import kernels
from elman.errors import UserError
from elman.nn.vectors import LANES, WHOLE, VectorNetwork, alias_table, huffman_tree, keep_chances, noise_shares

Objective = Literal["negative", "hierarchical", "softmax"]


@dataclass(frozen=True)
class EmbedderSettings:
    """What an example is, and how outputs are told apart."""

    cbow: bool = False
    objective: Objective = "negative"
    negatives: int = 5
    power: float = 0.75
    window: int = 5
    dynamic: bool = True
    sample: float = 1e-3


class Seen(NamedTuple):
    """What some ids gave: the loss of a sample of the pairs, how many these are, and the words that were kept."""

    loss: float
    pairs: int
    words: int


class Embedder:
    """Trains a `VectorNetwork` on ids; those below `first` are special, and `end` among them ends a sentence.

    `counts` has a count for each id. `bags` are the rows that each word is the sum of: where each begins, and all rows.
    """

    def __init__(
        self,
        network: VectorNetwork,
        counts: NDArray[np.int64],
        settings: EmbedderSettings,
        *,
        first: int,
        end: int,
        bags: tuple[NDArray[np.int64], NDArray[np.int32]] | None = None,
    ) -> None:
        if not kernels.available():
            raise UserError("word vectors are trained by the compiled kernels: `elman doctor` says how to get them")
        self.network = network
        own, nothing = counts[first:], np.zeros(0)
        chance, alias, places, nodes, codes = cast(tuple[Any, ...], (nothing,) * 5)
        if settings.objective == "negative":
            chance, alias = alias_table(noise_shares(own, settings.power))
        elif settings.objective == "hierarchical":
            places, nodes, codes = huffman_tree(own)
            places = np.concatenate([np.zeros(first, np.int64), places])  # special tokens have no way
        keep = np.concatenate([np.ones(first), keep_chances(own, settings.sample)])
        starts, rows = cast(tuple[Any, Any], bags or (nothing, nothing))
        self._native = kernels.native.Embedder(
            {
                "size": network.vectors.shape[1],
                "words": len(counts),
                "first": first,
                "end": end,
                "window": settings.window,
                "negatives": settings.negatives,
                "cbow": settings.cbow,
                "dynamic": settings.dynamic,
                "objective": settings.objective,
                "input_rows": len(network.vectors),
                "output_rows": len(network.output),
            },
            keep=_chances(keep),
            chance=_chances(chance),
            alias=alias.astype(np.int32),
            places=places.astype(np.int64),
            nodes=nodes.astype(np.int32),
            codes=codes.astype(np.int8),
            starts=starts.astype(np.int64),
            rows=rows.astype(np.int32),
        )

    def learn(self, ids: NDArray[np.int64], rate: float, seed: int, threads: int) -> Seen:
        """One pass over some ids; by one thread the result follows from the seed, by more it does not quite."""
        inputs, outputs = (part.numpy() for part in self.network.padded)
        assert inputs.shape[1] % LANES == 0
        found = self._native.learn(inputs, outputs, np.ascontiguousarray(ids, np.int64), rate, seed % 2**64, threads)
        return Seen(*found)


def _chances(chances: NDArray[np.float64]) -> NDArray[np.uint32]:
    return np.minimum(np.rint(chances * WHOLE), WHOLE).astype(np.uint32)
