"""The sampler's random numbers: a pure function of (seed, stream, step), with no state to carry or to save.

Sample i of a batch has stream i, its n-th new id step n, so that a sample is the same whether it
is made alone or beside a hundred others, and a runtime in another language gives the same bits.
`docs/sampling.md` is the specification.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def splitmix64(seed: ArrayLike, n: ArrayLike) -> NDArray[np.uint64]:
    """Output number `n` (from 0) of a SplitMix64 generator started at `seed` (Steele, Lea, Flood 2014).

    Its state only ever grows by a constant, so any output can be had without those before it.

    >>> int(splitmix64(1234567, 0))
    6457827717110365317
    """
    seeds, places = np.asarray(seed, dtype=np.uint64), np.asarray(n, dtype=np.uint64)
    with np.errstate(over="ignore"):  # arithmetic is modulo 2**64; NumPy warns of that for single numbers only
        z = seeds + (places + np.uint64(1)) * _GAMMA
        z = (z ^ (z >> np.uint64(30))) * _MIX_1
        z = (z ^ (z >> np.uint64(27))) * _MIX_2
        return np.asarray(z ^ (z >> np.uint64(31)), dtype=np.uint64)


def uniform(seed: int, stream: ArrayLike, step: ArrayLike) -> NDArray[np.float64]:
    """The number in [0, 1), with 53 random bits, that belongs to each (seed, stream, step).

    `stream` and `step` are integers from 0, or arrays of them that broadcast.

    >>> uniform(0, [0, 1], 0).tolist()
    [0.13870941014555427, 0.18383979100743952]
    >>> float(uniform(0, 1, 0))
    0.18383979100743952
    """
    # The seed is mixed by itself first, or else seeds a multiple of _GAMMA apart would share streams.
    bits = splitmix64(splitmix64(splitmix64(seed, 0), stream), step)
    return np.asarray((bits >> np.uint64(11)).astype(np.float64) * 2.0**-53, dtype=np.float64)
