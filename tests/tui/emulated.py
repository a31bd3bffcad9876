"""A terminal emulator below the app, in the same process: what the app writes is seen as a terminal
would show it.
"""

from __future__ import annotations

import re
import unicodedata
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pyte
from inside_textual import driver_of
from textual.drivers.headless_driver import HeadlessDriver
from textual.geometry import Size
from watching import lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from textual.app import App
    from textual.pilot import Pilot


_STYLE = re.compile(r"\x1b\[[0-9;]*m")


class Emulator(HeadlessDriver):
    """A driver whose terminal is an emulator, and that needs no answers and no keyboard."""

    def __init__(self, app: App[Any], *, size: tuple[int, int], **options: Any) -> None:
        super().__init__(app, size=size, **options)
        self.screen = pyte.Screen(*size)
        self._stream = pyte.Stream(self.screen)
        self.written: list[str] = []
        """All that came since somebody looked."""

    @property
    def is_headless(self) -> bool:
        """Else the app would write nothing."""
        return False

    def write(self, data: str) -> None:
        """Take what the app writes."""
        self.written.append(data)
        self._stream.feed(_STYLE.sub("", data))

    def resize(self, width: int, height: int) -> None:
        """Have another size; what stood there stays, as far as it fits."""
        self.screen.resize(height, width)


@asynccontextmanager
async def emulated(app: App[Any], size: tuple[int, int]) -> AsyncIterator[Pilot[Any]]:
    """Run an app on an emulator."""
    app.driver_class = Emulator
    async with app.run_test(headless=False, size=size, notifications=True) as pilot:
        yield pilot


def emulator(app: App[Any]) -> Emulator:
    """Return the emulator that an app runs on."""
    driver = driver_of(app)
    assert isinstance(driver, Emulator)
    return driver


async def resize(pilot: Pilot[Any], size: tuple[int, int]) -> None:
    """Change the size of the terminal, and wait until the app knows of it."""
    if pilot.app.size == Size(*size):
        return
    emulator(pilot.app).resize(*size)
    await pilot.resize_terminal(*size)
    assert pilot.app.size == Size(*size)


def check_cells(app: App[Any]) -> None:
    """What stands in the terminal is what the app means to show: nothing stale, nothing raw, no
    cell off by one.
    """
    screen = emulator(app).screen
    assert (screen.columns, screen.lines) == tuple(app.size)
    for y, (shown, meant) in enumerate(zip(screen.display, lines(app), strict=True)):
        assert shown == unicodedata.normalize("NFC", meant), (
            f"row {y} of {app.size} shows\n{shown}\nand not\n{meant}"
        )
