"""Finds numbers among the fields of a record, and those that were written as texts. A field may
hold a number that names something.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from verl_tui.patterns import NamePattern, pattern
from verl_tui.sources.fields.jsonl import number
from verl_tui.sources.fields.spellings import ending

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

_NAME = NamePattern(
    r"(?:.*[/.])?(?:(?:.+_)?(?:id|idx|index|pid|ppid|port|seed|uuid)|rank|device|node|host"
    r"|hostname|worker"
    r"|(?:local|global|world|node|group|worker|replica|[dtpsec]p)_rank)",
    re.IGNORECASE,
)
"""Fields whose numbers are names. `effective_rank` and `mean_rank` are measurements."""
_QUOTED = pattern(
    r"[-+]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:e[-+]?\d{1,4})?|nan|[-+]?inf(?:inity)?",
    re.IGNORECASE,
)
_WORDS = ending("text")
"""Fields whose texts stay texts though they may be digits."""


def numbers_in(
    fields: Mapping[str, Any], without: Container[str] = ()
) -> dict[str, float]:
    """Return the numbers among fields, but for some of these."""
    numbers = {}
    for key, raw in fields.items():
        value = raw if type(raw) is float else number(raw)
        if value is not None and key not in without:
            numbers[key] = value
    return numbers


@lru_cache(10_000)
def is_name(field: str) -> bool:
    """Return True if a field's number is a name and not a measurement."""
    return _NAME.fullmatch(field) is not None


def unquoted(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields with numbers that were written as texts, unless these name something."""
    if str not in map(type, fields.values()):
        return fields
    return {name: _unquoted(name, value) for name, value in fields.items()}


def _unquoted(name: str, value: object) -> object:
    if not isinstance(value, str) or not _QUOTED.fullmatch(value):
        return value
    return value if is_name(name) or _WORDS.fullmatch(name) else float(value)
