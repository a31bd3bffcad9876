"""Textual's driver, for any bytes as keys, and for terminals that go away.

Remarks on Textual hold for 8.2: `drivers/linux_driver.py`, `_xterm_parser.py`.
"""

from __future__ import annotations

import codecs
import os
import select
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO, cast

from textual._xterm_parser import XTermParser
from textual.constants import ESCAPE_DELAY
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Resize
from textual.messages import InBandWindowResize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from textual.message import Message

_ENDS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
"""Signals that end the app."""
_AT_ONCE = 4096
"""Bytes read together."""
_GLANCE = 0.1
"""Seconds without a key after which to check whether the app is ending."""
_A_BIT = 0.001
"""Seconds after which an end that was given its time is surely over."""


class LenientStream:
    """Writes to a terminal; to one that is gone nothing is written, and the thread that writes goes
    on, else the app would wait for it for ever.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        """Write text."""
        with suppress(OSError):
            self._stream.write(text)

    def flush(self) -> None:
        """Write what is kept back."""
        with suppress(OSError):
            self._stream.flush()


class RobustDriver(LinuxDriver):
    """A driver that ends with its terminal or at a signal, and survives any bytes."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        # Textual draws on standard error, which may go into a file.
        streams = cast("tuple[TextIO, TextIO]", (sys.__stderr__, sys.__stdout__))
        terminals = (stream for stream in streams if stream.isatty())
        self._file = cast("Any", LenientStream(next(terminals, streams[0])))

    def start_application_mode(self) -> None:
        """Take the terminal; catch signals, else it stays in the alternate screen; report new sizes
        to the app one after another.

        One handler of a signal interrupts another: Textual's would report the newest size first,
        and last the one that it had read before.
        """
        super().start_application_mode()  # type: ignore[no-untyped-call]
        loop = self._loop
        for number in _ENDS:
            # In its turn, as a key would be heard: no screen may be half made.
            end = self._app.exit, 128 + number
            loop.add_signal_handler(number, self._app.call_later, *end)
        tell = cast("Callable[..., None]", signal.getsignal(signal.SIGWINCH))
        signal.signal(
            signal.SIGWINCH, lambda *which: loop.call_soon_threadsafe(tell, *which)
        )

    def _get_terminal_size(self) -> tuple[int, int]:
        """Return the size that the app has, even if the terminal reports none or another stream is
        not a terminal: two different sizes would replace each other in the layout for ever.
        """
        return self._app.console.size.width, self._app.console.size.height

    def process_message(self, message: Message) -> None:
        """Handle input from the terminal, except for its reported size: the size comes from the
        system, and the two may differ for a moment, or for ever.
        """
        if not isinstance(message, InBandWindowResize | Resize):
            super().process_message(message)

    def run_input_thread(self) -> None:
        """Read keys until the app or the terminal ends; Textual reads the end again and again."""
        ear = Ear()
        wait = _GLANCE
        while not self.exit_event.is_set():
            typed = select.select([self.fileno], [], [], wait)[0]
            data = _read(self.fileno) if typed else b""
            if data is None:
                signal.raise_signal(signal.SIGHUP)
                return
            for message in ear.hear(data):
                self.process_message(message)
            wait = ESCAPE_DELAY + _A_BIT if data.endswith(b"\x1b") else _GLANCE


class Ear:
    """Turns bytes into events; survives bytes that are no text, and sequences with meaningless
    numbers.
    """

    def __init__(self) -> None:
        self._parser = XTermParser()
        # A strict decoder, as Textual's is, ends the app at the first byte that is not text.
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def hear(self, data: bytes) -> Iterator[Message]:
        """Yield the events in bytes, and those that are certain because nothing has followed."""
        # By single characters: what fails costs itself and nothing behind it.
        for sign in self._decode(data):
            yield from self._survive(self._parser.feed(sign))
        yield from self._survive(self._parser.tick())

    def _survive(self, events: Iterable[Message]) -> Iterator[Message]:
        try:
            yield from events
        except (ArithmeticError, ValueError):
            self._parser = XTermParser()


def _read(fileno: int) -> bytes | None:
    """Return what has been typed, nothing if somebody else has been quicker, None at the end."""
    try:
        return os.read(fileno, _AT_ONCE) or None
    except BlockingIOError:
        return b""
    except OSError:  # how a terminal that is gone says so
        return None
