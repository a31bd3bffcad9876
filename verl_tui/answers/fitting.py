"""Answers that fit into the context of a model: long lists and texts are cut, and what is left out
is counted.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

_ITEMS, _SHORT = 1024, 100
"""Items of a list and characters of a text that are given at least: the items are halved until all
fits, and the characters of longer texts with them.
"""
_NEWEST_LAST = ("lines", "points")
"""Lists whose beginning is left out, and not their end."""


def as_json(value: Any) -> str:
    """Return data as JSON on one line without blanks."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def fitted(answer: dict[str, Any], room: int) -> dict[str, Any]:
    """Return an answer cut to so many characters of JSON, where its shape allows that; in `cut` how
    many items of which lists, and characters of which texts, were left out.

    Args:
        answer: Mappings, lists, texts, numbers.
        room: Most characters.
    """
    items, most = _ITEMS, room
    while True:
        cut = Counter[str]()
        found = _cut(answer, items, most, "", cut)
        if len(as_json(found)) <= room or items == 1:
            left_out = {place[1:]: count for place, count in cut.items() if count}
            return {**found, "cut": left_out}
        items, most = items // 2, max(_SHORT, most // 2)


def _cut(value: Any, items: int, most: int, place: str, cut: Counter[str]) -> Any:
    if isinstance(value, dict):
        return {
            name: _cut(one, items, most, f"{place}.{name}", cut)
            for name, one in value.items()
        }
    if not isinstance(value, str | list):
        return value
    limit = most if isinstance(value, str) else items
    left = max(0, len(value) - limit)
    cut[place] += left
    if isinstance(value, str):
        return value[:limit] + "…" * (left > 0)
    shown = value[left:] if place.endswith(_NEWEST_LAST) else value[:limit]
    return [_cut(one, items, most, f"{place}[]", cut) for one in shown]
