"""The first keys to know, in place of the footer, until some have been pressed at the first
start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.tui.widgets.line import Line

if TYPE_CHECKING:
    from collections.abc import Iterable

_ENOUGH = 3
"""Keys after which the hint goes."""


class Hint(Line):
    """Says what some keys do, until enough keys have been pressed."""

    DEFAULT_CSS = """
    Hint { background: $footer-background; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._left_keys = 0

    def say(self, keys: Iterable[tuple[str, str]]) -> None:
        """Show keys and what they do, as many as fit; the first matter most."""
        self._left_keys = _ENOUGH
        self.show(
            (f"{' · ' if place else ''}{key} {does}", "strong")
            for place, (key, does) in enumerate(keys)
        )

    def pressed(self) -> bool:
        """Count a key; return True if the hint is to go after it."""
        self._left_keys -= 1
        return self._left_keys == 0
