"""The keys of the screen in its last row, as far as whole ones fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.widgets import Footer
from textual.widgets._footer import FooterKey

if TYPE_CHECKING:
    from textual.binding import Binding
    from textual.screen import Screen


class Keys(Footer):
    """A footer that leaves a key out rather than cutting its name short; all are in the help."""

    def __init__(self) -> None:
        super().__init__(show_command_palette=False, compact=True)
        self._shown: list[tuple[Binding, bool]] = []

    def bindings_changed(self, screen: Screen[object]) -> None:
        """Leave the row alone while its keys stay the same: a new one takes a layout of the whole screen."""
        shown = [(binding, enabled) for _, binding, enabled, _ in screen.active_bindings.values() if binding.show]
        if shown != self._shown or not self._bindings_ready:
            super().bindings_changed(screen)
            if screen.app.app_focus and screen is self.screen:
                self._shown = shown

    async def recompose(self) -> None:
        """Show the keys that hold now."""
        await super().recompose()
        self.call_after_refresh(self._trim)

    def on_resize(self) -> None:
        """See what fits now."""
        self.call_after_refresh(self._trim)

    def _trim(self) -> None:
        for key in self.query(FooterKey):
            key.visible = key.region.right <= self.region.right
