"""How programs spell what is looked for in their records: `spellings.toml`."""

from __future__ import annotations

import re

from verl_tui.patterns import NamePattern
from verl_tui.toml_tables import toml_table

_TABLE = toml_table(__file__, "spellings.toml")


def names(role: str) -> tuple[str, ...]:
    """Return the names of a role, the surest first."""
    return tuple(_TABLE["names"][role].split())


def words(role: str) -> str:
    """Return an expression of the words of a role."""
    return "|".join(_TABLE["ends"][role].split())


def ending(role: str) -> NamePattern:
    """Return an expression of names whose last part is one of the words of a role."""
    return NamePattern(rf"(?:.*[/_. ])?(?:{words(role)})", re.IGNORECASE)
