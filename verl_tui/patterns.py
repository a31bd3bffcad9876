"""Regular expressions that are compiled when they are first used.

Formats, rules and screens have 400 of them, and compiling all takes 0.1 s: a command uses a few
dozen. The work of each grows with the text that it looks at, and no faster; names, which are short,
may be tried in more ways.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, AnyStr, Generic, cast

LONGEST_NAME = 400
"""Characters of a name; longer text is foreign: no real key comes near."""


def pattern(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a stand-in for the pattern of `re.compile`; its first use raises the errors."""
    return cast("re.Pattern[AnyStr]", _Pattern(source, flags))


class NamePattern:
    """An expression for whole names of metrics, settings and fields; none for longer text."""

    def __init__(self, source: str, flags: int = 0) -> None:
        self._form = pattern(source, flags)

    def fullmatch(self, name: str) -> re.Match[str] | None:
        """Return the match of a name, None for one that is none or too long."""
        return self._form.fullmatch(name) if len(name) <= LONGEST_NAME else None


class _Pattern(Generic[AnyStr]):
    """Has the attributes of a compiled pattern, each from when it is first asked for."""

    def __init__(self, source: AnyStr, flags: int) -> None:
        self.pattern: AnyStr = source
        self._flags = flags

    @cached_property
    def _compiled(self) -> re.Pattern[AnyStr]:
        return re.compile(self.pattern, self._flags)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._compiled, name)
        setattr(self, name, value)  # found without this function from now on
        return value
