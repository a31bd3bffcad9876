"""The keys of the screen in its last row, as far as whole ones fit."""

from __future__ import annotations

from itertools import accumulate, chain
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip

from verl_tui.tui.keys.key_names import key_name
from verl_tui.tui.widgets.role_styled import RoleStyled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.binding import ActiveBinding
    from textual.screen import Screen

    from verl_tui.tui.widgets.role_styled import Looks

FOOTER = "FOOTER"
"""Attribute of a panel, a screen or the app: keys that the last row names, as pairs of the names
that one or more keys have in the configuration, and what they do in a word or two. Those of the
panel with the focus come first, or else those of the screen, then those of the app.
"""

_NEEDED = "help"
"""Name of the key that there always has to be room for, since it lists all others."""


class _Key(NamedTuple):
    """A key, and what it does."""

    pressed: str
    display: str
    does: str
    enabled: bool
    needed: bool = False
    """True if others are left out before it is."""

    @property
    def width(self) -> int:
        """Cells of both, and of the blank between them."""
        return cell_len(self.display) + 1 + cell_len(self.does)


class Keys(RoleStyled, can_focus=False):
    """A row of keys that leaves one out rather than cutting its name short; the help has all.

    Textual's own footer has a widget for each key, and lays out the whole screen whenever one
    changes: with each move of the focus to another panel.
    """

    ALLOW_SELECT = False
    LOOKS: ClassVar[Looks] = {
        "key": "bold $footer-key-foreground on $footer-key-background",
        "does": "$footer-description-foreground on $footer-description-background",
        "off": "$text-disabled",
    }
    DEFAULT_CSS = """
    Keys {
        dock: bottom;
        height: 1;
        background: $footer-background;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._keys: tuple[_Key, ...] = ()

    def on_mount(self) -> None:
        """Watch which keys hold."""
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def _changed(self, screen: Screen[object]) -> None:
        """Show the keys that hold now; while the terminal has no focus they stay as they are."""
        if not screen.app.app_focus or screen is not self.screen:
            return
        active = screen.active_bindings
        first = _first_keys(screen, active)
        others = self._other_keys(active, {id for ids in first for id in ids.split()})
        keys = (*first.values(), *others.values())
        if keys != self._keys:
            self._keys = keys
            self.refresh()

    def _other_keys(
        self, active: dict[str, ActiveBinding], known: set[str]
    ) -> dict[str, _Key]:
        """Return the first key of each further action that is to be shown.

        Args:
            active: What keys mean now.
            known: Names of the actions that are shown already.
        """
        found: dict[str, _Key] = {}
        for _, binding, enabled, _ in active.values():
            if binding.show and binding.id not in known and binding.action not in found:
                display = binding.key_display or key_name(binding.key)
                needed = binding.id == _NEEDED
                found[binding.action] = _Key(
                    binding.key, display, binding.description, enabled, needed=needed
                )
        return found

    @property
    def fitting(self) -> list[tuple[int, _Key]]:
        """The keys there is room for, each with the column it begins at."""
        keys = list(self._keys)
        while keys and sum(key.width + 1 for key in keys) - 1 > self.size.width:
            others = (key for key in reversed(keys) if not key.needed)
            keys.remove(next(others, keys[-1]))
        begins = accumulate((key.width + 1 for key in keys), initial=0)
        return list(zip(begins, keys, strict=False))

    def render_line(self, y: int) -> Strip:
        """Return the row."""
        base = self.rich_style
        role = self.role_styles
        segments: list[Segment] = []
        for _, key in self.fitting if y == 0 else ():
            pressed = role["key" if key.enabled else "off"]
            does = role["does" if key.enabled else "off"]
            segments.append(Segment(key.display, pressed))
            segments.append(Segment(f" {key.does}", does))
            segments.append(Segment(" ", base))
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def on_click(self, event: events.Click) -> None:
        """Press the key under the mouse."""
        for x, key in self.fitting:
            if x <= event.x < x + key.width and key.enabled:
                self.app.simulate_key(key.pressed)


def _first_keys(
    screen: Screen[object], active: dict[str, ActiveBinding]
) -> dict[str, _Key]:
    """Return the keys that the focused panel, or else its screen, has first, those of the app, and
    then those of the screen around the panel, by their names.
    """
    focus = screen.focused or screen
    around: list[Sequence[tuple[str, str]]] = [
        getattr(node, FOOTER, ())
        for node in focus.ancestors_with_self
        if node is not screen.app
    ]
    own = [keys for keys in around if keys]
    of_app = getattr(screen.app, FOOTER, ())
    declared = chain(*own[:1], of_app, *own[1:])
    known: set[str] = set()
    found: dict[str, _Key] = {}
    for ids, does in declared:
        names = set(ids.split())
        if known & names:
            continue
        key = _named(ids, does, active)
        if key is not None:
            known |= names
            found[ids] = key
    return found


def _named(ids: str, does: str, active: dict[str, ActiveBinding]) -> _Key | None:
    """Return keys by their names in the configuration as one entry; None where none of them holds
    now.
    """
    first_keys: dict[str | None, tuple[str, ActiveBinding]] = {}
    for key, holding in active.items():
        first_keys.setdefault(holding.binding.id, (key, holding))
    keys = [first_keys[id] for id in ids.split() if id in first_keys]
    if not keys:
        return None
    first, _ = keys[0]
    display = " ".join(key_name(key) for key, _ in keys)
    return _Key(first, display, does, all(holding.enabled for _, holding in keys))
