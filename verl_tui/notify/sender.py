"""Sends messages in a thread of its own, so that nothing waits for a server."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from queue import Full, Queue
from typing import TYPE_CHECKING

from verl_tui.notify.delivery import NotSentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.notify.message import Message

PAUSES = (2.0, 10.0, 30.0)
"""Seconds between attempts; after the last one a message is given up."""
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
        self._waiting: Queue[Message | None] = Queue(most)
        """Ends with None."""
        self._lock = threading.Lock()
        self._open: dict[str, Message] = {}
        """Those that are neither sent nor given up, by their ids."""
        self._thread = threading.Thread(target=self._run, name="notify", daemon=True)
        self._trouble = ""
        """Why the latest attempt failed; empty once a message was sent."""
        self.unsent: list[Message] = []
        """Messages that were given up."""
        self.problem = ""
        """Why the last of them was given up; empty if none was."""

    def send(self, message: Message) -> None:
        """Have a message sent; never waits. With a full queue it is given up."""
        self._open[message.id] = message
        try:
            self._waiting.put_nowait(message)
        except Full:
            self._settle(message, f"{self._waiting.maxsize} messages wait already")
        if self._thread.ident is None:
            self._thread.start()

    def close(self, patience: float) -> None:
        """Send what waits and end; after so many seconds the rest is given up."""
        if self._thread.ident is not None:
            end = time.monotonic() + patience
            with suppress(Full):
                self._waiting.put(None, timeout=patience)
            self._thread.join(max(0.0, end - time.monotonic()))
        self._stop.set()
        for one in tuple(self._open.values()):
            self._settle(one, self._trouble or f"not sent within {patience:g} s")

    def _run(self) -> None:
        while (message := self._waiting.get()) is not None:
            for pause in (0.0, *PAUSES):
                if pause:
                    self._pause(pause)
                if self._stop.is_set():
                    return
                if not self._attempted(message):
                    break
            self._settle(message, self._trouble)

    def _attempted(self, message: Message) -> bool:
        """Try once; return whether another attempt may succeed."""
        trouble, passing = "", False
        try:
            self._deliver(message)
        except NotSentError as error:
            trouble, passing = str(error), error.passing
        except Exception as error:  # noqa: BLE001 - whatever fails here must not end the thread
            trouble = f"failed: {type(error).__name__}"
        self._trouble = trouble
        return passing

    def _settle(self, message: Message, trouble: str) -> None:
        """Count a message as sent, or as given up; it is the first call that counts."""
        with self._lock:
            if self._open.pop(message.id, None) and trouble:
                self.unsent.append(message)
                self.problem = trouble
