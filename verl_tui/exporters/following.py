"""Follows runs for a continuous export: reads new records as they come, writes at intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from verl_tui.monitor import Monitor
from verl_tui.reading import refreshes

if TYPE_CHECKING:
    from verl_tui.config import Config

_SOONEST = 1.0
"""Minimum seconds between two writings of the newest values: no scrape comes more often."""
_SHARE = 0.1
"""Largest share of the time spent on such writings."""


def follow(
    specs: Sequence[str],
    config: Config,
    *,
    interval: float,
    clock: Callable[[], float],
    stop: Callable[[], object],
    newest: bool = False,
) -> Iterator[Monitor]:
    """Yield the runs whenever it is time to write them: once everything has been read, then at
    intervals, and once more at the end.

    Args:
        specs: Paths, directories and globs; runs that appear later are written, too.
        config: The user's configuration.
        interval: Seconds from one writing to the next.
        clock: Seconds since the epoch.
        stop: Says whether to end.
        newest: Whether only the newest values are exported. A value not written before the next
            step would be lost, so it is written soon after it was read; and at each interval in any
            case, since some metrics depend on the time.
    """
    monitor = Monitor(config)
    due = soon = monotonic()
    written = 0
    exported = -1
    for _ in refreshes(specs, monitor, clock=clock, stop=stop):
        began = monotonic()
        known = sum(run.revision for run in monitor.runs.values())
        if began < due and not (newest and began >= soon and known != exported):
            continue
        if newest or monitor.revision != written:
            yield monitor
            due = monotonic() + interval
            written = monitor.revision
            exported = known
            soon = monotonic() + max(_SOONEST, (monotonic() - began) / _SHARE)
    if monitor.revision != written:
        yield monitor
