"""Finds actions by what people call them: for the command palette."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.command import DiscoveryHit, Hit, Provider

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.command import Hits

ALSO: dict[str, tuple[str, ...]] = {
    "alert": ("finding", "health"),
    "average": ("smooth",),
    "clipboard": ("copy",),
    "close": ("back", "quit"),
    "color": ("theme",),
    "colour": ("theme",),
    "crash": ("log:", "finding"),
    "dark": ("theme",),
    "diff": ("difference", "compare"),
    "error": ("finding", "log:", "sources", "error"),
    "eta": ("timing",),
    "exit": ("quit",),
    "export": ("write", "screenshot"),
    "files": ("sources",),
    "find": ("filter", "search"),
    "freeze": ("pause",),
    "fullscreen": ("full screen", "zoom panel"),
    "hyperparameters": ("configuration",),
    "image": ("screenshot",),
    "keys": ("help",),
    "light": ("theme",),
    "logarithm": ("log scale",),
    "maximize": ("full screen", "zoom panel"),
    "output": ("log:", "samples"),
    "parameters": ("configuration",),
    "picture": ("screenshot",),
    "problem": ("finding", "sources"),
    "refresh": ("redraw", "read everything again"),
    "reload": ("read everything again",),
    "response": ("samples",),
    "rollout": ("samples",),
    "save": ("write", "screenshot"),
    "search": ("filter", "search"),
    "settings": ("configuration",),
    "shortcuts": ("help",),
    "speed": ("timing",),
    "stop": ("pause", "quit"),
    "traceback": ("log:",),
    "warning": ("finding",),
    "yank": ("copy",),
}
"""What people say instead of words that stand in the names of actions."""
_LEAST = 3
"""Letters from which on the beginning of such a word is enough."""


class ActionSearch(Provider):
    """Offers what the app can do, by the names of its actions and by `ALSO`."""

    async def discover(self) -> Hits:
        """Offer everything while nothing is typed."""
        for title, told, callback, _ in sorted(
            self.app.get_system_commands(self.screen), key=lambda one: one[0]
        ):
            yield DiscoveryHit(title, callback, help=told)

    async def search(self, query: str) -> Hits:
        """Offer what is called so, or said so."""
        own, others = self.matcher(query), [self.matcher(word) for word in meant(query)]
        for title, told, callback, _ in self.app.get_system_commands(self.screen):
            found = [
                (own.match(title), own),
                *((one.match(title), one) for one in others if one.query in title.lower()),
            ]
            score, matcher = max(found, key=lambda pair: pair[0])
            if score > 0:
                yield Hit(score, matcher.highlight(title), callback, help=told)


def meant(query: str) -> Iterator[str]:
    """Yield the words of names that somebody means who types this."""
    typed = query.strip().casefold()
    if len(typed) >= _LEAST:
        found = (word for said, words in ALSO.items() if said.startswith(typed) for word in words)
        yield from dict.fromkeys(found)
