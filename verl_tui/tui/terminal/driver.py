"""Textual's driver, for terminals that stand still or go away in the middle of a frame, and for any
bytes as keys.

Remarks on Textual hold for 8.2: `drivers/linux_driver.py`, `drivers/_writer_thread.py`,
`_xterm_parser.py`.
"""

from __future__ import annotations

import codecs
import os
import select
import signal
import sys
import termios
import threading
from contextlib import suppress
from itertools import chain
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TextIO, cast

from textual._xterm_parser import (
    BRACKETED_PASTE_END,
    BRACKETED_PASTE_START,
    XTermParser,
)
from textual.constants import ESCAPE_DELAY
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key, Resize
from textual.keys import Keys
from textual.messages import InBandWindowResize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from textual.app import App
    from textual.message import Message

_ENDS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
"""Signals that end the app."""
_AT_ONCE = 4096
"""Bytes read together."""
_GLANCE = 0.1
"""Seconds without a key after which to check whether the app is ending."""
_A_BIT = 0.001
"""Seconds after which an end that was given its time is surely over."""
_PAUSE = 1.0
"""Seconds of silence that end a paste: people who press keys in vain wait that long between two."""
PATIENCE = 2.0
"""Most seconds of an orderly end: the terminal may have stopped reading."""


_NEEDED = ("_sigcont_application", "_disable_mouse_support", "_get_terminal_size")
if not all(hasattr(LinuxDriver, name) for name in _NEEDED):
    raise ImportError("Textual's driver is not the one that ours extends")


class RobustDriver(LinuxDriver):
    """A driver that ends with its terminal or at a signal, even while a write is blocked."""

    def __init__(
        self,
        app: App[Any],
        *,
        debug: bool = False,
        mouse: bool = True,
        size: tuple[int, int] | None = None,
    ) -> None:
        """Make the driver; catch signals, else the terminal stays in the alternate screen."""
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._file = cast("Any", SafeFile(_terminal()))
        self._ending = False
        self._newest: signal.Signals | None = None
        """The last signal to stop or to continue."""
        self._modes: list[Any] | None = None
        """The modes of the terminal as they were found."""
        for number in _ENDS:
            signal.signal(number, self._on_signal)
        # Such a handler waits for the main thread, and that may wait to write; this pipe hears of
        # signals at once.
        heard, woken = os.pipe()
        os.set_blocking(woken, False)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        threading.Thread(
            target=self._end_on_signal, args=(heard,), name="end", daemon=True
        ).start()

    def start_application_mode(self) -> None:
        """Take the terminal; report new sizes to the app one after another.

        One handler of a signal interrupts another: Textual's would report the newest size first,
        and last the one that it had read before.
        """
        super().start_application_mode()  # type: ignore[no-untyped-call]
        tell = cast("Callable[..., None]", signal.getsignal(signal.SIGWINCH))
        signal.signal(
            signal.SIGWINCH,
            lambda *which: self._loop.call_soon_threadsafe(tell, *which),
        )
        # Textual would restore them before its last words are written: a ctrl+s that is typed in
        # between makes the terminal pause, and the app waits for ctrl+q.
        if self.attrs_before is not None:
            self._modes = self.attrs_before
            self.attrs_before = None

    def close(self) -> None:
        """Wait until the last words are written; only then restore the modes of the terminal."""
        super().close()
        self._restore_modes()

    def _restore_modes(self) -> None:
        if self._modes is not None:
            with suppress(termios.error):  # the terminal is gone
                termios.tcsetattr(self.fileno, termios.TCSANOW, self._modes)

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
        parser = KeyParser(self._debug)
        # A strict decoder, as Textual's is, ends the app at the first byte that is not text.
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        text = ""
        while not self.exit_event.is_set():
            wait = ESCAPE_DELAY + _A_BIT if text.endswith("\x1b") else _GLANCE
            text = ""
            if select.select([self.fileno], [], [], wait)[0]:
                data = self._read()
                if data == b"":
                    signal.raise_signal(signal.SIGHUP)
                    return
                text = decode(data or b"")
            # An empty text would be the parser's end.
            for message in chain(parser.feed(text) if text else (), parser.tick()):
                self.process_message(message)

    def _read(self) -> bytes | None:
        """Return what has been typed, nothing at the end, None if somebody else has been
        quicker.
        """
        try:
            return os.read(self.fileno, _AT_ONCE)
        except BlockingIOError:
            return None
        except OSError:  # how a terminal that is gone says so
            return b""

    # -- signals -----------------------------------------------------------------------------------

    def _sigcont_application(self, *_: object) -> None:
        """Take the terminal back when the loop has its turn."""
        self._obey_in_turn(signal.SIGCONT)

    def _sigtstp_application(self, *_: object) -> None:
        """Hand the terminal over, and stop, when the loop has its turn; at once if it is somebody
        else's already, for whom the loop may be waiting.
        """
        if self._auto_restart:
            self._obey_in_turn(signal.SIGTSTP)
        else:
            os.kill(os.getpid(), signal.SIGSTOP)

    def _obey_in_turn(self, number: signal.Signals) -> None:
        """Note a signal, of several the last one, and have the loop obey it.

        Its handler may have interrupted the main thread as that hands text to the one that writes:
        whatever the handler wrote would wait for a lock that is never released.
        """
        self._newest = number
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._obey, number)

    def _obey(self, number: signal.Signals) -> None:
        """Go on or step back, unless another signal has come since."""
        if number is not self._newest:
            return
        if number is signal.SIGTSTP:
            self._step_back()
        elif not self._ending:  # this signal also comes with those that end a process
            self._go_on()

    def _go_on(self) -> None:
        """Take the terminal back.

        Textual starts again even if it has not stopped, as after a SIGSTOP: then two threads read
        keys, and the terminal is left in the mode that the app has put it in.
        """
        if self._auto_restart and not self._must_signal_resume:
            self.suspend_application_mode()
            self._must_signal_resume = True
        super()._sigcont_application()

    def _step_back(self) -> None:
        """Hand the terminal over and stop, unless a signal to continue has come meanwhile."""
        self.suspend_application_mode()
        self._must_signal_resume = True
        if self._newest is signal.SIGTSTP:
            os.kill(os.getpid(), signal.SIGSTOP)

    def _on_signal(self, number: int, _: object) -> None:
        """Note in the main thread that the app is to end; the next signal may continue it."""
        self._ending = True
        if self._must_signal_resume:  # suspended: the terminal is somebody else's
            os._exit(_status(number))

    def _end_on_signal(self, heard: int) -> None:
        """End because of a signal, orderly if that is possible within some seconds."""
        number = 0
        while number not in _ENDS:
            (number,) = os.read(heard, 1)
        code = _status(number)
        with suppress(RuntimeError):  # the loop has ended already
            # In its turn, as a key would be heard: nothing is drawn any more, so no screen may be
            # half made.
            self._loop.call_soon_threadsafe(self._app.call_later, self._app.exit, code)
        sleep(PATIENCE)
        with suppress(Exception):
            self._leave()
        os._exit(code)

    def _leave(self) -> None:
        """Leave the terminal as it was found, past the queue that everybody else waits for; do not
        wait, either.
        """
        terminal = os.open(
            os.ttyname(self.fileno), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK
        )
        with os.fdopen(terminal, "w") as file:
            self._writer_thread = cast("Any", file)
            self._disable_mouse_support()
            self.stop_application_mode()
            self._restore_modes()


def _terminal() -> TextIO:
    """Return the stream that is the terminal; Textual draws on standard error, which may go into a
    file.
    """
    streams = cast("tuple[TextIO, TextIO]", (sys.__stderr__, sys.__stdout__))
    return next((stream for stream in streams if stream.isatty()), streams[0])


def _status(number: int) -> int:
    """Return what a shell calls the end by a signal."""
    return 128 + number


class KeyParser(XTermParser):
    """Textual's parser, except that it survives sequences with meaningless numbers, and pastes
    without an end: what a terminal drops while it changes hands may be just that, and all keys
    would be taken for more of the paste.
    """

    def __init__(self, debug: bool = False, pause: float = _PAUSE) -> None:
        """Make a parser.

        Args:
            debug: Whether Textual's writes down what it hears.
            pause: Seconds of silence that end a paste.
        """
        super().__init__(debug)
        self._pause = pause
        self._pasted = False
        """True within a paste."""
        self._heard = 0.0
        """When something was fed last."""
        self._last = ""
        """The last characters: the mark of a beginning or an end may come in pieces."""

    def feed(self, data: str) -> Iterable[Message]:
        """Parse typed or pasted text; yield its events."""
        seen = self._last + data
        began = seen.rfind(BRACKETED_PASTE_START)
        ended = seen.rfind(BRACKETED_PASTE_END)
        if began != ended:
            self._pasted = began > ended
        self._last = seen[1 - len(BRACKETED_PASTE_END) :]
        self._heard = monotonic()
        yield from super().feed(data)

    def tick(self) -> Iterable[Message]:
        """Yield the events that are certain now that nothing has followed for a while."""
        yield from super().tick()
        if self._pasted and monotonic() - self._heard >= self._pause:
            yield from self.feed(BRACKETED_PASTE_END)

    def _sequence_to_key_events(
        self, sequence: str, alt: bool = False
    ) -> Iterator[Key]:
        try:
            yield from super()._sequence_to_key_events(sequence, alt)
        except (ValueError, OverflowError):  # of several parts, or of no character
            yield Key(Keys.Ignore, sequence)

    def parse_mouse_code(self, code: str) -> Message | None:
        """Return the event, in cells if the terminal reports that it does not know pixels."""
        try:
            return super().parse_mouse_code(code)
        except ZeroDivisionError:
            self.mouse_pixels = False
            return super().parse_mouse_code(code)


class SafeFile:
    """A file that accepts every write, even when nobody reads it any more.

    Textual's writer ends with the first error; whoever writes then waits for ever, and the process
    outlives its terminal.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> None:
        """Write; ignore a terminal that is gone."""
        with suppress(OSError):
            self._file.write(text)

    def flush(self) -> None:
        """Flush; ignore a terminal that is gone."""
        with suppress(OSError):
            self._file.flush()
