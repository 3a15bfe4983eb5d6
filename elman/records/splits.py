"""Cutting a set into parts so that what belongs together stays together, the same in every process."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Literal

from elman.errors import UserError
from elman.records.pairs import Pair

Key = Literal["source", "target", "pair"]


def split_pairs(
    pairs: Sequence[Pair], shares: Mapping[str, float], *, by: Key = "source", seed: int = 0
) -> dict[str, list[Pair]]:
    """The pairs of each part, in their order; all pairs with the same key (`by`) are in the same part.

    `shares` says which share of the different keys each part gets; "train" is what they leave. By "source" a test
    set has no source that training has met, whatever its targets; by "target" the other way round.

    >>> pairs = [Pair("Go.", "Va !"), Pair("Run!", "Cours !"), Pair("Run!", "Courez !"), Pair("Wow!", "Ça alors !")]
    >>> {part: [pair.source for pair in held] for part, held in split_pairs(pairs, {"test": 0.3}, seed=1).items()}
    {'train': ['Go.', 'Wow!'], 'test': ['Run!', 'Run!']}
    """
    if by not in ("source", "target", "pair"):
        raise UserError(f"pairs are split by 'source', 'target' or 'pair', not by {by!r}")
    keys = [f"{pair.source}\t{pair.target}" if by == "pair" else str(getattr(pair, by)) for pair in pairs]
    return {part: [pairs[row] for row in rows] for part, rows in split_by_key(keys, shares, seed=seed).items()}


def split_by_key(keys: Sequence[str], shares: Mapping[str, float], *, seed: int = 0) -> dict[str, list[int]]:
    """The rows of each part, sorted; rows with the same key are in the same part, and "train" is what is left.

    Which keys a part gets follows from the keys and the seed, not from their order.

    >>> split_by_key(["a", "b", "a", "c"], {"dev": 0.34}, seed=2)
    {'train': [0, 1, 2], 'dev': [3]}
    """
    if any(share <= 0 for share in shares.values()) or sum(shares.values()) >= 1 or "train" in shares:
        shown = ", ".join(f"{part} {share}" for part, share in shares.items())
        raise UserError(f"the parts to hold out are fractions above 0 that leave some for training, not {shown}")
    order = sorted(set(keys), key=lambda key: (draw(key, seed), key))
    sizes = {part: max(1, round(share * len(order))) for part, share in shares.items()}
    if sum(sizes.values()) >= len(order):
        entries = "entry is" if len(order) == 1 else "entries are"
        own = " and ".join(f"--{part} FILE" for part in shares)
        raise UserError(
            f"{len(order)} distinct {entries} too few to hold out {' and '.join(shares)}: give more data, or {own}"
        )
    part_of: dict[str, str] = {}
    for part, size in sizes.items():
        first = len(part_of)
        part_of.update(dict.fromkeys(order[first : first + size], part))
    rows: dict[str, list[int]] = {part: [] for part in ("train", *shares)}
    for row, key in enumerate(keys):
        rows[part_of.get(key, "train")].append(row)
    return rows


def draw(key: str, seed: int) -> float:
    """A number from 0 to 1 that depends on the key and the seed alone.

    >>> draw("Abel", 0) == draw("Abel", 0) != draw("Abel", 1)
    True
    """
    return int.from_bytes(blake2b(f"{seed} {key}".encode("utf-8", "surrogatepass"), digest_size=8).digest()) / 2**64
