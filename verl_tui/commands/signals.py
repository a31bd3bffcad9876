"""Signals that end a program: the command cleans up, and its exit code says which signal came; an
export that follows ends well.

A signal that the parent process had ignored (`nohup`, `&` in a script) stays ignored.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from verl_tui.commands.shared import (
    Options,
    need_runs,
    print_message,
    unread,
    unwritten,
)
from verl_tui.given_files import NothingError, OutputError, UsageError

if TYPE_CHECKING:
    from types import FrameType

    from verl_tui.monitor import Monitor

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


def at_end(call: Callable[[int, FrameType | None], object] | signal.Handlers) -> None:
    """Make the signals that end a program call this function instead, or end it at once."""
    for number in (signal.SIGINT, *_BY_OTHERS):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, call)


def heeded(*, reader: bool = True) -> Callable[[], bool]:
    """Catch the signals that end a program, and return a function to call again and again: it
    raises an error once one has come, or the reader of the output has gone. An exception at any
    moment may get lost in what Python calls by itself.
    """
    caught: list[int] = []
    at_end(lambda number, _: caught.append(number))

    def heed() -> bool:
        if caught:
            raise EndedError(caught[0])
        return reader and unread()

    return heed


def _end(number: int, _: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)  # a second one does not wait
    raise EndedError(number)


def write_runs(
    options: Options,
    write: Callable[[Monitor], None],
    *,
    follow: bool,
    newest: bool = False,
) -> int:
    """Write the runs that were named, once, or what is new until a signal comes; return the exit
    code.

    Args:
        options: Name the runs.
        write: Writes them as they are now.
        follow: Whether what is new is written, too, at the interval of the options.
        newest: Whether only the newest values are written, see
            `verl_tui.exporters.following.follow`.
    """
    if follow:
        return _write_on(options, write, newest=newest)
    monitor = options.load()
    if _is_empty(monitor):
        raise NothingError("nothing to export")
    write(monitor)
    return 0


def _is_empty(monitor: Monitor) -> bool:
    return not any(run.keys or run.samples.places for run in monitor.runs.values())


def _write_on(
    options: Options, write: Callable[[Monitor], None], *, newest: bool
) -> int:
    """Follow runs and write what is new; return the exit code.

    Once it has worked, neither a target that cannot be written for a while, such as a full disk,
    nor an error of our own ends the export: it is reported, and the next interval tries again.
    """
    from verl_tui.exporters.following import follow

    paths, config = options.paths, options.settings
    need_runs(paths)
    caught: list[int] = []
    at_end(lambda number, _: caught.append(number))
    has_worked, problem, say = False, "", cache(print_message)
    for monitor in follow(
        paths,
        config,
        interval=options.interval,
        clock=time.time,
        stop=lambda: caught,
        newest=newest,
    ):
        before, problem = problem, ""
        if _is_empty(monitor):
            say("nothing to export so far")
        try:
            write(monitor)
        except Exception as error:
            if not has_worked:
                raise
            problem = _problem(error)
            if problem != before:
                print_message(f"{problem}; tried again at the next writing")
        else:
            if before:
                print_message("written again")
            has_worked = True
    return OutputError.code if problem else 0


def _problem(error: Exception) -> str:
    """Return in words why something was not written."""
    if isinstance(error, UsageError):
        return str(error)
    if isinstance(error, OSError):
        return unwritten(error, "-o")
    from verl_tui.failures import note_failure

    return f"nothing was exported: {note_failure('exporting', error)}"
