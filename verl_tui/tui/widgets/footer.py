"""The keys of the screen in its last row, as far as whole ones fit."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip

from verl_tui.tui.keys.names import key_name
from verl_tui.tui.terminal.styles import RoleStyled

if TYPE_CHECKING:
    from textual import events
    from textual.binding import ActiveBinding
    from textual.screen import Screen

FOOTER = "FOOTER"
"""Where a panel or a screen names the keys to show first while it has the focus: pairs of the names
that one or more keys have in the configuration, and what they do in a word or two.
"""

_NEEDED = "help"


class _Key(NamedTuple):
    """A key, and what it does."""

    pressed: str
    display: str
    does: str
    enabled: bool
    needed: bool = False
    """Whether there has to be room for it: the key that names all others."""

    @property
    def width(self) -> int:
        """Cells of both, and of the blank between them."""
        return cell_len(self.display) + 1 + cell_len(self.does)


class Keys(RoleStyled, can_focus=False):
    """A row of keys that leaves one out rather than cutting its name short; all are in the help.

    Textual's own footer has a widget for each key, made anew with the layout of the whole screen
    whenever one changes: with each move of the focus to another panel.
    """

    ALLOW_SELECT = False
    PREFIX = "keys"
    STYLED_ROLES = ("key", "does", "off")
    DEFAULT_CSS = """
    Keys {
        dock: bottom;
        height: 1;
        background: $footer-background;
        & > .keys--key {
            color: $footer-key-foreground; background: $footer-key-background; text-style: bold;
        }
        & > .keys--does {
            color: $footer-description-foreground; background: $footer-description-background;
        }
        & > .keys--off { color: $footer-description-foreground; text-style: dim; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._keys: tuple[_Key, ...] = ()

    def on_mount(self) -> None:
        """Hear of other keys."""
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def _changed(self, screen: Screen[object]) -> None:
        """Show the keys that hold now; while the terminal is left alone they stay as they are."""
        if not screen.app.app_focus or screen is not self.screen:
            return
        active = screen.active_bindings
        focus = screen.focused or screen
        named = next(
            (found for node in focus.ancestors_with_self if (found := getattr(node, FOOTER, ()))),
            (),
        )
        ascii_only = getattr(screen.app, "ascii_only", False)
        shown = {
            ids: key
            for ids, does in named
            if (key := _named(ids, does, active, ascii_only)) is not None
        }
        first = {id for ids in shown for id in ids.split()}
        for _, binding, enabled, _ in active.values():
            if binding.show and binding.id not in first:
                display = self.app.get_key_display(binding)
                key = _Key(
                    binding.key, display, binding.description, enabled, needed=binding.id == _NEEDED
                )
                shown.setdefault(binding.action, key)
        keys = tuple(shown.values())
        if keys != self._keys:
            self._keys = keys
            self.refresh()

    @property
    def fitting(self) -> list[tuple[int, _Key]]:
        """The keys there is room for, each with the column it begins at."""
        keys = list(self._keys)
        while keys and sum(key.width + 1 for key in keys) - 1 > self.size.width:
            keys.remove(next((key for key in reversed(keys) if not key.needed), keys[-1]))
        begins = accumulate((key.width + 1 for key in keys), initial=0)
        return list(zip(begins, keys, strict=False))

    def render_line(self, y: int) -> Strip:
        """Return the row."""
        base = self.rich_style
        role = self.role_styles
        segments: list[Segment] = []
        for _, key in self.fitting if y == 0 else ():
            does = role["does" if key.enabled else "off"]
            segments += [
                Segment(key.display, role["key"] if key.enabled else does),
                Segment(f" {key.does}", does),
            ]
            segments.append(Segment(" ", base))
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def on_click(self, event: events.Click) -> None:
        """Press the key under the mouse."""
        for x, key in self.fitting:
            if x <= event.x < x + key.width and key.enabled:
                self.app.simulate_key(key.pressed)


def _named(ids: str, does: str, active: dict[str, ActiveBinding], ascii_only: bool) -> _Key | None:
    """Return keys by their names in the configuration as one entry; None where none of them holds
    now.
    """
    found = [
        next((one for one in active.items() if one[1].binding.id == id), None) for id in ids.split()
    ]
    keys = [one for one in found if one is not None]
    if not keys:
        return None
    display = " ".join(key_name(key, ascii_only=ascii_only) for key, _ in keys)
    return _Key(keys[0][0], display, does, all(one.enabled for _, one in keys))
