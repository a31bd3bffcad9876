"""A net below the screen: an error in our own code costs the part of the screen it happened in.

Textual ends the app at the first error in a handler, a callback or a drawing. Here the panel it
happened in, or the screen over the dashboard, shows a sentence in place of its contents; an error
outside of any is said over the screen.

Errors are not caught before there is a screen, where `VERL_TUI_STRICT` is set, as in tests, and
where they come from outside of all parts again and again.
"""

from __future__ import annotations

import asyncio
import os
from abc import abstractmethod
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

from textual._context import active_message_pump
from textual.app import ReturnType
from textual.content import Content
from textual.dom import DOMNode
from textual.events import Event, Key, Paste
from textual.geometry import Region, Size
from textual.message_pump import MessagePump
from textual.reactive import Reactive
from textual.strip import Strip

from verl_tui import debug_log
from verl_tui.failures import Failure, Failures
from verl_tui.text import safe
from verl_tui.tui.terminal.output import TerminalOutput

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.message import Message
    from textual.widget import Widget

    _Widget = Widget
else:
    # no widget: Textual takes the stylesheet's rules of the first base
    _Widget = MessagePump

_MANY = 100
"""Errors outside of all parts at which the app ends after all."""
_MOST_PASTED = 10_000
"""Characters of a pasted text that are taken: the lines to type in are made for a few words."""
_LONG = 1.0
"""Seconds after which to stop waiting for a key whose screen is still busy, or is gone."""
_SYSTEM = "#textual-toastrack"
"""Textual's own child of each screen, which shows notifications."""


class Contained(MessagePump):
    """A base for widgets, screens and apps whose errors do not end the app."""

    def attempt(
        self, call: Callable[..., Any], *given: Any, otherwise: Any = None
    ) -> Any:
        """Return what a call returns, or something else where it fails."""
        try:
            return call(*given)
        except Exception as error:
            if not self._is_contained(error):
                raise
            return otherwise

    async def _dispatch_message(self, message: Message) -> None:
        try:
            await super()._dispatch_message(message)
        except Exception as error:
            if not self._is_contained(error):
                raise

    def _is_contained(self, error: Exception) -> bool:
        app = self.app
        return isinstance(app, ContainedApp) and app.contain(error, self)


class ContainedWidget(Contained, _Widget):
    """A widget that leaves its place blank where drawing it fails."""

    virtual_size: Reactive[Size] = Reactive(Size(0, 0), repaint=False)
    """The size of its contents, as in `Widget`; a change lays out nothing, as no widget of ours has
    its own size from them.
    """

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return rows of the widget, blank ones where they cannot be drawn."""
        blank = [Strip.blank(crop.width)] * crop.height
        # Also of a part that has failed: it draws its sentence.
        lines: list[Strip] = Contained.attempt(
            self, super().render_lines, crop, otherwise=blank
        )
        return lines


class ContainedPart(ContainedWidget):
    """A part of the screen that shows a sentence in place of its contents once it has failed."""

    MAY_FAIL: ClassVar[bool] = True
    """False for a screen that can be neither left nor done without."""
    failed = ""
    """The sentence, empty while all is well."""

    def attempt(
        self, call: Callable[..., Any], *given: Any, otherwise: Any = None
    ) -> Any:
        """Return what a call returns, or something else where it fails or the part has failed."""
        if self.failed:
            return otherwise
        return super().attempt(call, *given, otherwise=otherwise)

    def render(self) -> Any:  # screens return other things than widgets
        """Return the ground, or the sentence."""
        if self.failed:
            return Content(self.failed)
        return super().render()

    def fail(self, sentence: str) -> None:
        """Show a sentence in place of all that is in this part, or with none its contents again."""
        self.failed = sentence
        for one in self.query_children("*").exclude(_SYSTEM):
            one.visible = not sentence
        self.refresh(layout=True)
        # a frame that was begun has lost what waited for it
        self.screen.refresh()
        if isinstance(self.app, ContainedApp):
            self.app.show_troubles()


class ContainedApp(Contained, TerminalOutput[ReturnType]):
    """An app that goes on after errors in its parts, and handles keys and pasted texts one by one.

    Keys arrive together by a slow link or a paste. Textual (8.2, `App.on_event`) hands each to what
    has the focus when it comes. What the key does comes later, when it has gone from there up to
    the app. Of `/kl` in one piece the letters would be keys of the screen, not of the box that `/`
    opens.
    """

    handles_key = False
    """True while a key does its work."""
    has_screen = False
    """True once there is a screen, which can do without some of its parts."""
    _outside = 0
    """Errors outside of all parts."""
    _hearing: asyncio.Task[None] | None = None
    """Handles keys."""

    def __init__(self) -> None:
        super().__init__()
        self.failures = Failures()
        self.strict = bool(os.environ.get("VERL_TUI_STRICT"))
        """True if the app ends at the first error all the same."""
        self._typed: asyncio.Queue[Event] = asyncio.Queue()
        """Keys that wait for the one before."""

    def on_ready(self) -> None:
        """Note that there is a screen."""
        self.has_screen = True

    @abstractmethod
    def tell(self, failure: Failure, part: ContainedPart | None) -> None:
        """Say that a part of the screen has failed, or something outside of all parts."""

    def show_troubles(self) -> None:
        """Draw what does not work, and what works again."""

    def contain(self, error: Exception, at: MessagePump | None = None) -> bool:
        """Let an error cost the part of the screen that it happened in.

        Args:
            error: The error.
            at: Where it was caught, by default in what handles a message now.

        Returns:
            False if the app is to end of it.
        """
        part = _part(at or active_message_pump.get(self))
        if self.strict or (not part and not self.has_screen):
            return False
        debug_log.note_error("caught", error)
        failure = self.failures.add(error)
        if not part or not part.failed:
            # Not at once: it may be in the middle of a layout.
            self.call_later(self.tell, failure, part)
        return True

    def _handle_exception(self, error: Exception) -> None:
        """Contain what comes here: of callbacks, layouts and what works beside the screen."""
        error = getattr(error, "error", error)  # a worker's
        self._outside += _part(active_message_pump.get(self)) is None
        if self._outside >= _MANY or not self.contain(error):
            debug_log.note_error("app", error)
            super()._handle_exception(error)

    # -- keys --------------------------------------------------------------------------------------

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
                    task = asyncio.create_task(passed.wait())
                    await asyncio.wait((task,), timeout=max(0.0, until - monotonic()))
            if at is before and not self._at_work():
                return
            before = at
            at = (self.focused or self.screen) if self.screen_stack else at

    def _at_work(self) -> bool:
        """Return True if the screen in front has messages to handle."""
        return any(
            node.message_queue_size
            for screen in self.screen_stack[-1:]
            for node in screen.walk_children(with_self=True)
        )


def _part(origin: MessagePump) -> ContainedPart | None:
    """Return the part of the screen that a widget belongs to."""
    for node in origin.ancestors_with_self if isinstance(origin, DOMNode) else ():
        if isinstance(node, ContainedPart) and node.MAY_FAIL:
            return node
    return None
