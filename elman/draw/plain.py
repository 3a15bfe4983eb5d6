"""Data as JSON has them."""

from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Data as JSON has them: dataclasses as objects, arrays as lists, numbers to 6 significant digits.

    >>> plain({"p": np.float32(1 / 3), "ids": np.array([1, 2])})
    {'p': 0.333333, 'ids': [1, 2]}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float | np.floating):
        return float(f"{value:.6g}") if np.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value
