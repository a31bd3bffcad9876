"""Follows runs for an export that goes on: what is new is read as it comes, and written at intervals."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from verl_tui.monitor import Monitor
from verl_tui.reading import looks

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from verl_tui.config import Config

_BETWEEN = 0.5
"""Seconds between two looks at what was read: a signal is heeded within them."""


def follow(
    specs: Sequence[str],
    config: Config,
    write: Callable[[Monitor], None],
    *,
    interval: float,
    clock: Callable[[], float],
    stop: threading.Event,
    always: bool = False,
) -> None:
    """Write all there is once it has been read, then what is new at intervals, and once more at the end.

    Args:
        specs: Paths, directories and globs; runs that appear later are written, too.
        config: The user's configuration.
        write: Writes what is new.
        interval: Seconds from one writing to the next.
        clock: Seconds since the epoch.
        stop: Ends it.
        always: Write at each interval, news or none: what is written depends on the time as well.
    """
    monitor = Monitor(config)
    due, written = monotonic(), 0
    for _ in looks(specs, monitor, between=_BETWEEN, clock=clock, stop=stop):
        if monotonic() >= due and (always or monitor.revision != written):
            write(monitor)
            due, written = monotonic() + interval, monitor.revision
    if monitor.revision != written:
        write(monitor)
