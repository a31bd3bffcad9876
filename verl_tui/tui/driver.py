"""Textual's driver, for terminals that go away in the middle of a word and keyboards that send anything."""

from __future__ import annotations

import codecs
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO, cast

from textual.drivers import linux_driver

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import App


class _Outlet:
    """A file that takes everything, also when nobody reads it any more.

    Textual's writer ends with the first error; whoever writes then waits for ever, and the process outlives its
    terminal.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._file.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._file.flush()

    def fileno(self) -> int:
        return self._file.fileno()

    def isatty(self) -> bool:
        return self._file.isatty()


class SteadyDriver(linux_driver.LinuxDriver):
    """Writes as long as there is a terminal, and takes bytes that are no text for unknown characters."""

    def __init__(
        self, app: App[object], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        if self._file is not None:
            self._file = cast("Any", _Outlet(self._file))
        # The thread that reads keys makes its decoder by this name, a strict one: one stray byte would end the app.
        vars(linux_driver)["getincrementaldecoder"] = _forgiving


def _forgiving(encoding: str) -> Callable[[], codecs.IncrementalDecoder]:
    return partial(codecs.getincrementaldecoder(encoding), errors="replace")
