"""Fields of a record that name something, and numbers that were written as texts."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from verl_tui.patterns import NamePattern, pattern
from verl_tui.sources.fields.spellings import ending

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
