"""What is shown of a part of a page when it is pointed at, for all parts of all panels: each string once."""

import json
from collections.abc import Mapping, Sequence

from elman.draw.labels import clean, label


class Tips:
    """A list of tips for each panel that has some. A tip is a heading and pairs of strings, as numbers of strings."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._panels: list[list[list[int]]] = []

    def add(self, tips: Sequence[tuple[str, Mapping[str, str]]]) -> int:
        """Keep the tips of a panel: a heading and a mapping for each of its parts. The number of the panel is returned.

        >>> tips = Tips()
        >>> tips.add([("the", {"rank": "1"}), ("cat", {"rank": "1"})])
        0
        >>> tips.to_json()
        '{"strings":["the","rank","1","cat"],"panels":[[[0,1,2],[3,1,2]]]}'
        """
        self._panels.append([[self._number(label(heading)), *self._pairs(mapping)] for heading, mapping in tips])
        return len(self._panels) - 1

    def _pairs(self, mapping: Mapping[str, str]) -> list[int]:
        return [self._number(part) for key, value in mapping.items() for part in (label(key), clean(str(value)))]

    def _number(self, string: str) -> int:
        return self._numbers.setdefault(string, len(self._numbers))

    def __bool__(self) -> bool:
        return bool(self._panels)

    def to_json(self) -> str:
        """As a script element can hold it."""
        value = {"strings": list(self._numbers), "panels": self._panels}
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
