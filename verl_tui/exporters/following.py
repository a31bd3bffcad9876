"""Follows runs for an export that goes on: what is new is read as it comes, and written at
intervals.
"""

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
_SOONEST = 1.0
"""Seconds between two writings of the newest values, however soon they follow each other: no scrape
comes as often.
"""
_SHARE = 0.1
"""The part of the time that such writings take at most."""


def follow(
    specs: Sequence[str],
    config: Config,
    write: Callable[[Monitor], None],
    *,
    interval: float,
    clock: Callable[[], float],
    stop: threading.Event,
    newest: bool = False,
) -> None:
    """Write all there is once it has been read, then what is new at intervals, and once more at the
    end.

    Args:
        specs: Paths, directories and globs; runs that appear later are written, too.
        config: The user's configuration.
        write: Writes what is new.
        interval: Seconds from one writing to the next.
        clock: Seconds since the epoch.
        stop: Ends it.
        newest: Whether only the newest values are written. What is not written before the next step
            is lost then, so it is written soon after it was read; and at each interval in any case,
            since it depends on the time.
    """
    monitor = Monitor(config)
    due = soon = monotonic()
    written, told = 0, -1
    for _ in looks(specs, monitor, between=_BETWEEN, clock=clock, stop=stop):
        began, said = monotonic(), sum(run.revision for run in monitor.runs.values())
        if began < due and not (newest and began >= soon and said != told):
            continue
        if newest or monitor.revision != written:
            write(monitor)
            due, written, told = monotonic() + interval, monitor.revision, said
            soon = monotonic() + max(_SOONEST, (monotonic() - began) / _SHARE)
    if monitor.revision != written:
        write(monitor)
