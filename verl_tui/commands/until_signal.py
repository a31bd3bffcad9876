"""Runs an export until a signal ends it."""

from __future__ import annotations

import signal
import threading
import time
from typing import TYPE_CHECKING

from verl_tui.commands.output import EXIT_NOTHING, print_messages

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
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    follow(paths, config, write, interval=interval, clock=time.time, stop=stop, newest=newest)
    return 0
