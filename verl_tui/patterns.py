"""Regular expressions that are compiled when they are first used.

Formats, rules and screens have 400 of them, and compiling all takes 0.1 s: a command uses a few
dozen.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, AnyStr, Generic, cast


def pattern(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what does all that a pattern of `re.compile` does; its first use raises the errors."""
    return cast("re.Pattern[AnyStr]", _Pattern(source, flags))


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
