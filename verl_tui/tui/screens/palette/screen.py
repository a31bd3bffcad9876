"""The command palette: Textual's, for keys that come faster than it opens, searches and closes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.await_complete import AwaitComplete
from textual.command import CommandList, CommandPalette
from textual.widgets import Input, OptionList

from verl_tui.tui.screens.palette.search import WIDEST
from verl_tui.tui.terminal.net import ContainedWidget

if TYPE_CHECKING:
    from textual.command import Provider
    from textual.events import Resize
    from textual.message import Message

_PAGES = ("page_up", "page_down")
_LEAST = 8
"""Columns of the list of actions at least; four of them are blank."""
ROWS = 5
"""Rows of a terminal without which it has none for what it offers."""


class Palette(ContainedWidget, CommandPalette):
    """Asks what to do. The remarks on Textual hold for 8.2."""

    DEFAULT_CSS = f"""
    Palette > Vertical {{ width: {WIDEST}; max-width: 100%; margin-top: 1; }}
    /* Textual cannot wrap words where there is no column for them. */
    Palette CommandList {{ min-width: {_LEAST}; }}
    """

    def __init__(
        self, prompt: str, providers: list[type[Provider]] | None = None
    ) -> None:
        """Make a palette.

        Args:
            prompt: What may be typed, in words that fit a narrow terminal.
            providers: What offers something to choose, by default what the app and the screen name.
        """
        super().__init__(providers, placeholder=prompt)
        self._width = 0

    def on_resize(self, event: Resize) -> None:
        """Write the rows for another width; close where there is no room, once the palette is on
        the screen: before, Textual still looks at the screen below.
        """
        typed = self.query_one(Input)
        if self._width not in (0, event.size.width):
            typed.post_message(Input.Changed(typed, typed.value))
        self._width = event.size.width
        if event.size.height < ROWS:
            self.dismiss()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Turn no page of a list that has no room yet: Textual would look for a line there that was
        never laid out.
        """
        if action == "command_list" and parameters[0] in _PAGES:
            return any(
                found.scrollable_content_region for found in self.query(CommandList)
            )
        return super().check_action(action, parameters)

    @on(Input.Submitted)
    @on(OptionList.OptionSelected)
    def _once(self, event: Message) -> None:
        """Carry out one command only: keys while the palette closes are not meant for it."""
        if not self.is_active:
            event.stop()
            event.prevent_default()

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Close, unless that has been done, and stop searching: there is no list for results."""
        if not self.is_active:
            return AwaitComplete()
        self.workers.cancel_node(self)
        return super().dismiss(result)
