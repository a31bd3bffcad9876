"""A queue for keys that arrive together, by a slow link or a paste: one is handled at a time.

Textual (8.2, `App.on_event`) hands each key to what has the focus when it comes. What the key does
comes later, when it has gone from there up to the app. Of `/kl` in one piece the letters would be
keys of the screen, not of the box that `/` opens.
"""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import TYPE_CHECKING

from textual import on
from textual.app import ReturnType
from textual.events import Key, Paste
from textual.message import Message

from verl_tui.text import safe
from verl_tui.tui.terminal.net import ContainedApp

if TYPE_CHECKING:
    from textual.dom import DOMNode
    from textual.events import Event
    from textual.timer import Timer

LOOK = 0.1
"""Seconds between two checks whether a key is lost."""
_MOST_PASTED = 10_000
"""Characters of a pasted text that are taken: the lines to type in are made for a few words."""
_LONG = 1.0
"""Seconds after which to stop waiting for a key whose screen is still busy."""


class KeyQueue(ContainedApp[ReturnType]):
    """An app that handles keys and pasted texts one by one."""

    class Heard(Message):
        """A marker that follows a key from the focused widget up to the app."""

        def __init__(self, event: Event, at: DOMNode, since: float) -> None:
            """Make the marker of a key for a screen, at a time of a monotonic clock."""
            super().__init__()
            self.event = event
            self.at = at
            self.since = since

    def __init__(self, *, ascii_only: bool = False) -> None:
        super().__init__(ascii_only=ascii_only)
        self._heard: KeyQueue.Heard | None = None
        """The marker behind the key that is being handled."""
        self._typed: deque[Event] = deque()
        """Keys that wait for it."""
        self._typed_watch: Timer | None = None
        """Checks, while keys wait, whether the one before is lost."""

    @property
    def handles_key(self) -> bool:
        """True while a key does its work."""
        return self._heard is not None

    async def on_event(self, event: Event) -> None:
        """Handle a key, or keep it until the one before is done; forwarded keys pass."""
        if isinstance(event, Paste):
            # A clipboard may hold text of any origin: Textual would write its escape sequences.
            event.text = safe(event.text[:_MOST_PASTED])
        if not isinstance(event, (Key, Paste)) or event.is_forwarded:
            await super().on_event(event)
        elif self._heard is None:
            await self._hear(event)
        else:
            self._typed.append(event)
            if self._typed_watch is None:
                self._typed_watch = self.set_interval(LOOK, self._look_at_heard)

    async def _hear(self, event: Event) -> None:
        at = self.focused or self.screen
        try:
            await super().on_event(event)
        finally:  # the keys behind one that failed are handled all the same
            self._follow(event, at, monotonic())

    def _follow(self, event: Event, at: DOMNode, since: float) -> None:
        self._heard = self.Heard(event, at, since)
        if not at.post_message(self._heard):
            self.call_later(self._hear_next)

    @on(Heard)
    def _come_back(self, heard: Heard) -> None:
        # the key may have left something for later, as to move the focus
        self.call_later(self._hear_out, heard)

    async def _hear_out(self, heard: Heard) -> None:
        """Handle the next key once the focus stays where it is and the screen is idle.

        A screen that was opened gives the focus away when it is there; of a key comes a message,
        and of that another.
        """
        if heard is not self._heard or not self.screen_stack:
            return  # the app may be ending
        at = self.focused or self.screen
        if at is heard.at and (
            not self._at_work() or monotonic() - heard.since > _LONG
        ):
            await self._hear_next()
        else:
            self._follow(heard.event, at, heard.since)

    def _at_work(self) -> bool:
        """Return True if the screen in front has messages to handle, or searches for typed text."""
        screen = self.screen
        searches = any(
            worker.node is screen and not worker.is_finished for worker in self.workers
        )
        return searches or any(
            node.message_queue_size for node in screen.walk_children(with_self=True)
        )

    async def _look_at_heard(self) -> None:
        """Follow a key anew that is lost, since the widget that had the focus is gone: what it has
        set off may still wait for its turn.
        """
        heard = self._heard
        if heard is not None and self.screen_stack and not heard.at.is_attached:
            self._follow(heard.event, self.focused or self.screen, heard.since)

    async def _hear_next(self) -> None:
        self._heard = None
        if self._typed:
            await self._hear(self._typed.popleft())
        elif self._typed_watch is not None:
            self._typed_watch.stop()
            self._typed_watch = None
