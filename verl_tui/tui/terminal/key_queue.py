"""A queue for keys that arrive together, by a slow link or a paste: one is handled at a time.

Textual (8.2, `App.on_event`) hands each key to what has the focus when it comes. What the key does
comes later, when it has gone from there up to the app. Of `/kl` in one piece the letters would be
keys of the screen, not of the box that `/` opens.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING

from textual.app import ReturnType
from textual.events import Key, Paste

from verl_tui.text import safe
from verl_tui.tui.terminal.net import ContainedApp

if TYPE_CHECKING:
    from textual.dom import DOMNode
    from textual.events import Event

_MOST_PASTED = 10_000
"""Characters of a pasted text that are taken: the lines to type in are made for a few words."""
_LONG = 1.0
"""Seconds after which to stop waiting for a key whose screen is still busy, or is gone."""


class KeyQueue(ContainedApp[ReturnType]):
    """An app that handles keys and pasted texts one by one."""

    handles_key = False
    """True while a key does its work."""

    def __init__(self, *, ascii_only: bool = False) -> None:
        super().__init__(ascii_only=ascii_only)
        self._typed: asyncio.Queue[Event] = asyncio.Queue()
        """Keys that wait for the one before."""
        self._hearing: asyncio.Task[None] | None = None
        """Handles them."""

    def on_mount(self) -> None:
        """Begin to handle keys, also those that came before."""
        self._hearing = asyncio.create_task(self._hear())

    def on_unmount(self) -> None:
        """End with the app."""
        if self._hearing is not None:
            self._hearing.cancel()

    async def on_event(self, event: Event) -> None:
        """Take a key, to be handled when the one before is done; forwarded keys pass."""
        if isinstance(event, Paste):
            # A clipboard may hold text of any origin: Textual would write its escape sequences.
            event.text = safe(event.text[:_MOST_PASTED])
        if isinstance(event, Key | Paste) and not event.is_forwarded:
            self.handles_key = True
            self._typed.put_nowait(event)
        else:
            await super().on_event(event)

    async def _hear(self) -> None:
        """Handle the keys that wait; one that fails does not keep back those behind it."""
        while True:
            self.handles_key = not self._typed.empty()
            event = await self._typed.get()
            if not self.screen_stack:
                continue
            at = self.focused or self.screen
            try:
                await super().on_event(event)
            except Exception as error:  # noqa: BLE001 - what may fail is any action
                self._handle_exception(error)
            await self._done(at, monotonic() + _LONG)

    async def _done(self, at: DOMNode, until: float) -> None:
        """Wait until a key has gone from the widget that had the focus up to the app, the focus
        stays where it is and the screen is idle.

        A screen that was opened gives the focus away when it is there; of a key comes a message,
        and of that another.
        """
        before: DOMNode | None = None
        while self.screen_stack and monotonic() < until:
            for node in at.ancestors_with_self:
                passed = asyncio.Event()
                if node.call_later(passed.set):
                    left = max(0.0, until - monotonic())
                    await asyncio.wait(
                        (asyncio.create_task(passed.wait()),), timeout=left
                    )
            if at is before and not self._at_work():
                return
            before = at
            at = (self.focused or self.screen) if self.screen_stack else at

    def _at_work(self) -> bool:
        """Return True if the screen in front has messages to handle, or searches for typed text."""
        screens = self.screen_stack[-1:]
        return any(
            one.node in screens and not one.is_finished for one in self.workers
        ) or any(
            node.message_queue_size
            for screen in screens
            for node in screen.walk_children(with_self=True)
        )
