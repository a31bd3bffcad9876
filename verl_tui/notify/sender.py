"""Sends messages in a thread of its own, so that nothing waits for a server."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from verl_tui.notify.posting import NotSentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.notify.message import Message

PAUSES = (2.0, 10.0, 30.0)
"""Seconds between attempts, where the server names none; after the last one a message is given
up.
"""
_MOST = 100
"""Messages that may wait: five hours' worth at the usual limit."""


class Sender:
    """A bounded queue and its thread, which begins with the first message."""

    def __init__(
        self,
        deliver: Callable[[Message], object],
        *,
        pause: Callable[[float], object] | None = None,
        most: int = _MOST,
    ) -> None:
        """Send nothing yet.

        Args:
            deliver: Sends one message or raises NotSentError, whose text may be shown.
            pause: Waits for seconds; by default until the sender is closed at the latest.
            most: Messages that may wait.
        """
        self._deliver = deliver
        self._stop = threading.Event()
        self._pause = pause if pause is not None else self._stop.wait
        self._most = most
        self._waiting: deque[Message] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None
        self._current: Message | None = None
        self._trouble = ""
        """Why the latest attempt failed; empty once a message was sent."""
        self.sent = 0
        self.unsent: list[Message] = []
        """Messages that were given up."""
        self.problem = ""
        """Why the last of them was given up; empty if none was."""

    def send(self, message: Message) -> None:
        """Have a message sent; never waits. With a full queue it is given up."""
        with self._changed:
            if len(self._waiting) >= self._most:
                self._give_up(message, f"{self._most} messages wait already")
                return
            self._waiting.append(message)
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="notify", daemon=True
                )
                self._thread.start()

    def close(self, patience: float) -> None:
        """Send what waits and end; after so many seconds the rest is given up."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(patience)
        self._stop.set()
        with self._changed:
            left = [one for one in (self._current, *self._waiting) if one is not None]
            self._current = None
            self._waiting.clear()
            for one in left:
                self._give_up(one, self._trouble or f"not sent within {patience:g} s")

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closing:
                    self._changed.wait()
                if not self._waiting or self._stop.is_set():
                    return
                self._current = self._waiting.popleft()
            self._send(self._current)

    def _send(self, message: Message) -> None:
        """Try until it is sent, or there is no point in trying any more."""
        trouble = ""
        for pause in (*PAUSES, None):
            try:
                self._deliver(message)
            except NotSentError as error:
                self._trouble = trouble = str(error)
                if not error.passing or pause is None:
                    break
                self._pause(pause if error.wait is None else error.wait)
            except Exception as error:  # noqa: BLE001 - whatever fails here must not end the thread
                trouble = f"failed: {type(error).__name__}"
                break
            else:
                self._trouble = trouble = ""
                break
            if self._stop.is_set():
                return
        self._done(message, trouble)

    def _done(self, message: Message, trouble: str) -> None:
        with self._changed:
            if self._current is not message:
                return  # it was given up meanwhile
            self._current = None
            if trouble:
                self._give_up(message, trouble)
            else:
                self.sent += 1

    def _give_up(self, message: Message, why: str) -> None:
        self.unsent.append(message)
        self.problem = why
