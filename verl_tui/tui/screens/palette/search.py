"""Search for the command palette: by the names of actions, and by synonyms."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.command import DiscoveryHit, Hit, Provider
from textual.content import Content

from verl_tui.rendering.text.printable import printable
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from textual.command import Hits

    from verl_tui.rendering.charts.plan import PlannedChart

ALSO: dict[str, list[str]] = toml_table(__file__, "synonyms.toml")
"""Synonym -> words in the names of actions."""
_LEAST = 3
"""Letters from which on the beginning of a synonym is enough."""
WIDEST = 84
"""Cells that the palette takes at most."""
_AROUND = 6
"""Cells beside a row: its padding, and the scroll bar."""
_APART = 2
"""Least cells between a command and its key."""


class ActionSearch(Provider):
    """Offers the app's actions, by their names and by synonyms."""

    async def discover(self) -> Hits:
        """Offer everything while nothing is typed."""
        for title, words, callback, _ in sorted(
            self.app.get_system_commands(self.screen), key=lambda one: one[0]
        ):
            yield DiscoveryHit(self._row(Content(title), words), callback, text=title)

    async def search(self, query: str) -> Hits:
        """Offer the actions whose names, or whose synonyms, match."""
        own = self.matcher(query)
        others = [self.matcher(word) for word in meant(query)]
        for title, words, callback, _ in self.app.get_system_commands(self.screen):
            matching = [other for other in others if other.query in title.lower()]
            found = [(matcher.match(title), matcher) for matcher in (own, *matching)]
            score, matcher = max(found, key=lambda pair: pair[0])
            if score > 0:
                row = self._row(matcher.highlight(title), words)
                yield Hit(score, row, callback, text=title)

    def _row(self, title: Content, words: str) -> Content:
        """Return a command in one row, its key at the right where there is room for it."""
        width = max(8, min(WIDEST, self.app.size.width) - _AROUND)
        if len(words) > width // 2:
            return title.truncate(width, ellipsis=True)
        title = title.truncate(width - len(words) - _APART, ellipsis=True)
        gap = width - title.cell_length - len(words)
        # Of sixteen colours the chosen row's ground is one.
        colour = "" if self.app.current_theme.ansi else " $text-muted"
        return Content.assemble(title, " " * gap, (words, f"not bold{colour}"))


def meant(query: str) -> Iterator[str]:
    """Yield the words in the names of actions that a synonym stands for."""
    typed = query.strip().casefold()
    if len(typed) >= _LEAST:
        found: list[str] = []
        for synonym, words in ALSO.items():
            if synonym.startswith(typed):
                found += words
        yield from dict.fromkeys(found)


def metric_search(
    plans: Sequence[PlannedChart], take: Callable[[PlannedChart], None]
) -> type[Provider]:
    """Return what the palette searches metrics with.

    Args:
        plans: The charts to choose from.
        take: Called with the chosen one.
    """

    class MetricSearch(Provider):
        """Offers the metrics whose key or label holds every word, in any case."""

        async def discover(self) -> Hits:
            """Offer all while nothing is typed."""
            for plan in plans:
                words = _words(plan)
                yield DiscoveryHit(Content(words), partial(take, plan), text=words)

        async def search(self, query: str) -> Hits:
            """Offer those that match."""
            typed = query.lower().split()
            for at, plan in enumerate(plans):
                words = _words(plan)
                if all(word in words.lower() for word in typed):
                    score = 1 / (1 + at)
                    yield Hit(score, Content(words), partial(take, plan), text=words)

    return MetricSearch


def _words(found: PlannedChart) -> str:
    label = "" if found.label == found.key else f"{found.label}  "
    return printable(f"{label}{found.key}")
