"""Runs an export until a signal ends it."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from verl_tui.commands.arguments import CommandError
from verl_tui.commands.output import (
    EXIT_NOTHING,
    EXIT_OUTPUT,
    print_message,
    print_messages,
    unwritten,
)
from verl_tui.commands.signals import at_end
from verl_tui.failures import note_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.config import Config
    from verl_tui.monitor import Monitor


def write_until_stopped(
    paths: Sequence[str],
    config: Config,
    write: Callable[[Monitor], None],
    *,
    interval: float,
    newest: bool = False,
) -> int:
    """Follow runs and write what is new; return the exit code.

    Once it has worked, neither a target that cannot be written for a while, such as a full disk,
    nor an error of our own ends the export: it is reported, and the next interval tries again.

    Args:
        paths: The paths that the user named.
        config: The user's configuration.
        write: Writes the runs as they are now.
        interval: Seconds between two writings.
        newest: Whether only the newest values are written, see
            `verl_tui.exporters.following.follow`.
    """
    from verl_tui.exporters.following import follow
    from verl_tui.sources.feed import Feed

    found = Feed(paths).scan()
    print_messages((*found.problems, *found.pending))
    if not found.runs and not found.pending:
        return EXIT_NOTHING
    stop = threading.Event()
    at_end(lambda *_: stop.set())
    writing = _Writing(write)
    follow(
        paths,
        config,
        writing,
        interval=interval,
        clock=time.time,
        stop=stop,
        newest=newest,
    )
    return EXIT_OUTPUT if writing.problem else 0


class _Writing:
    """Writes again and again, though it may fail in between."""

    def __init__(self, write: Callable[[Monitor], None]) -> None:
        self._write = write
        self._has_worked = False
        self.problem = ""
        """Why the last writing failed, empty if it has worked."""

    def __call__(self, monitor: Monitor) -> None:
        """Write the runs as they are now; raise the error if that has never worked."""
        try:
            self._write(monitor)
        except Exception as error:
            if not self._has_worked:
                raise
            problem = _problem(error)
            if problem != self.problem:
                print_message(f"{problem}; tried again at the next writing")
            self.problem = problem
            return
        if self.problem:
            print_message("written again")
        self._has_worked = True
        self.problem = ""


def _problem(error: Exception) -> str:
    """Return in words why something was not written."""
    if isinstance(error, CommandError):
        return str(error)
    if isinstance(error, OSError):
        return str(unwritten(error, "-o"))
    return f"nothing was exported: {note_failure('exporting', error)}"
