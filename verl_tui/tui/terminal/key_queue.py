"""Keys that come together, from a slow link or a paste: each is heard when the one before has done
its work.

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

from verl_tui.tui.terminal.output import TerminalOutput

if TYPE_CHECKING:
    from textual.dom import DOMNode
    from textual.events import Event
    from textual.timer import Timer

_LOOK = 0.1
"""Seconds between two looks whether a key is lost."""
_LONG = 1.0
"""Seconds after which a key is not waited for any more where its screen is still at work; it may
never rest.
"""


class KeyQueue(TerminalOutput[ReturnType]):
    """An app that hears keys and pasted texts one by one."""

    class Heard(Message):
        """Goes behind a key, from what had the focus up to the app."""

        def __init__(self, event: Event, at: DOMNode, since: float) -> None:
            """Make it for a key that was heard there, at that time of a clock that never goes
            back.
            """
            super().__init__()
            self.event, self.at, self.since = event, at, since

    def __init__(self, *, ascii_only: bool = False) -> None:
        super().__init__(ascii_only=ascii_only)
        self._heard: KeyQueue.Heard | None = None
        """What goes behind the key that has not done its work yet."""
        self._typed: deque[Event] = deque()
        """The keys behind it."""
        self._typed_watch: Timer | None = None
        """Looks, while there are some, whether the key is lost."""

    async def on_event(self, event: Event) -> None:
        """Hear a key, or keep it until the one before has done its work; forwarded ones are on
        their way already.
        """
        if not isinstance(event, (Key, Paste)) or event.is_forwarded:
            await super().on_event(event)
        elif self._heard is None:
            await self._hear(event)
        else:
            self._typed.append(event)
            if self._typed_watch is None:
                self._typed_watch = self.set_interval(_LOOK, self._look_at_heard)

    async def _hear(self, event: Event) -> None:
        at = self.focused or self.screen
        await super().on_event(event)
        self._follow(event, at, monotonic())

    def _follow(self, event: Event, at: DOMNode, since: float) -> None:
        self._heard = self.Heard(event, at, since)
        if not at.post_message(self._heard):
            self.call_later(self._hear_next)

    @on(Heard)
    def _come_back(self, heard: Heard) -> None:
        self.call_later(
            self._hear_out, heard
        )  # the key may have left something for later, as to move the focus

    async def _hear_out(self, heard: Heard) -> None:
        """Go on once the focus stays where it is and the screen rests.

        A screen that was opened gives the focus away when it is there; of a key comes a message,
        and of that another.
        """
        if heard is not self._heard:
            return
        at = self.focused or self.screen
        if at is heard.at and (not self._at_work() or monotonic() - heard.since > _LONG):
            await self._hear_next()
        else:
            self._follow(heard.event, at, heard.since)

    def _at_work(self) -> bool:
        """Tell whether the screen in front has messages to take, or searches for what was typed."""
        screen = self.screen
        searches = any(worker.node is screen and not worker.is_finished for worker in self.workers)
        return searches or any(
            node.message_queue_size for node in screen.walk_children(with_self=True)
        )

    async def _look_at_heard(self) -> None:
        """Go on where a key is lost: what had the focus is gone, with what was to come from
        there.
        """
        if self._heard is not None and not self._heard.at.is_attached:
            await self._hear_next()

    async def _hear_next(self) -> None:
        self._heard = None
        if self._typed:
            await self._hear(self._typed.popleft())
        elif self._typed_watch is not None:
            self._typed_watch.stop()
            self._typed_watch = None
