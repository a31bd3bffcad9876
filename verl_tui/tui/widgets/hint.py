"""The first keys to know, in place of the footer, until one has been pressed at the first start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.tui.widgets.line import Line

if TYPE_CHECKING:
    from collections.abc import Iterable


class Hint(Line):
    """Says what some keys do."""

    DEFAULT_CSS = """
    Hint { background: $footer-background; }
    """

    def say(self, keys: Iterable[tuple[str, str]]) -> None:
        """Show keys and what they do, as many as fit; the first matter most."""
        self.show(
            (f"{' · ' if place else ''}{key} {does}", "strong")
            for place, (key, does) in enumerate(keys)
        )
