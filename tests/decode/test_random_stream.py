from pathlib import Path

import numpy as np
import pytest

from elman.decode.sampling import splitmix64, uniform
from elman.sampling import fresh_seed

# A runtime in another language has to give these too; docs/sampling.md shows them.
KNOWN = [
    ((0, 0, 0), 0x238275BC38FCBE91, 0.13870941014555427),
    ((0, 0, 1), 0xF89A2566B5822C54, 0.9711020828012883),
    ((0, 1, 0), 0x2F101FE21496EA20, 0.18383979100743952),
    ((1, 0, 0), 0xB18A02F46D8D86C3, 0.6935121390102292),
    ((42, 7, 1000), 0x93DE056177735858, 0.577606521888311),
    ((2**64 - 1, 2**32, 2**40), 0x3D975C7AD04F7E89, 0.2405908393705526),
]


def test_splitmix64_gives_the_published_sequence() -> None:
    assert splitmix64(1234567, range(5)).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@pytest.mark.parametrize(("place", "bits", "value"), KNOWN)
def test_known_values(place: tuple[int, int, int], bits: int, value: float) -> None:
    assert float(uniform(*place)) == value == (bits >> 11) * 2.0**-53


def test_the_documentation_shows_the_known_values() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sampling.md").read_text(encoding="utf-8")
    for (seed, stream, step), bits, value in KNOWN:
        assert f"| {seed} | {stream} | {step} | 0x{bits:016X} | {value!r} |" in page


def test_arrays_give_what_single_numbers_give() -> None:
    table = uniform(5, np.arange(3)[:, None], np.arange(4))
    assert table.tolist() == [[float(uniform(5, i, t)) for t in range(4)] for i in range(3)]


@pytest.mark.parametrize("axis", ["seed", "stream", "step"])
def test_uniform_along_each_of_the_three_integers(axis: str) -> None:
    n, bins = 64_000, 64
    if axis == "seed":
        values = np.array([float(uniform(seed, 0, 0)) for seed in range(n // 8)])
    else:
        values = uniform(0, np.arange(n), 0) if axis == "stream" else uniform(0, 0, np.arange(n))
    assert values.min() >= 0
    assert values.max() < 1
    counts, _ = np.histogram(values, bins=bins, range=(0, 1))
    expected = len(values) / bins
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert 30 < chi_square < 110  # 63 degrees of freedom: mean 63, standard deviation 11
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 4 / np.sqrt(len(values))


def test_streams_do_not_follow_one_another() -> None:
    a, b = uniform(0, 0, np.arange(20_000)), uniform(0, 1, np.arange(20_000))
    assert abs(np.corrcoef(a, b)[0, 1]) < 4 / np.sqrt(20_000)
    assert len(np.intersect1d(a, b)) == 0


def test_fresh_seeds_differ() -> None:
    assert len({fresh_seed() for _ in range(5)}) > 1
