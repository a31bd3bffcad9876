"""Signals that end a program: the command cleans up, and its exit code says which signal came.

A signal that the parent process had ignored (`nohup`, `&` in a script) stays ignored.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_BY_OTHERS = (signal.SIGTERM, signal.SIGHUP)
"""The signals besides ctrl+c, which has an exception of its own in Python."""


class EndedError(BaseException):
    """A signal ends the command, as a `KeyboardInterrupt` does: nothing else may stop it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number
        """The exit code that a shell reports for such an end."""


def end_tidily() -> None:
    """Have signals end a command by an exception, so that nothing is left half done."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in _BY_OTHERS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)


def at_end(call: Callable[[int, FrameType | None], object]) -> None:
    """Make the signals that end a program call this function instead."""
    for number in (signal.SIGINT, *_BY_OTHERS):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, call)


def _end(number: int, _: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)  # a second one does not wait
    raise EndedError(number)
