"""Why a screen shows what it shows: how the sources behind it are doing, in as few words as there
is room for.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from verl_tui.rendering.text.printable import size_text
from verl_tui.text import one_line
from verl_tui.times import age

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.records import SourceStatus
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run

_MOST_SOURCES = 4
"""Sources told of where there is nothing else to show."""


def nothing_yet(view: View) -> str:
    """Return why there is no chart, a sentence a line."""
    monitor, run = view.monitor, view.run
    if run is None:
        told = [one_line(sentence, 400) for sentence in monitor.sentences]
        return "\n".join(["looking for logs …" if view.loading else "no run yet", *told])
    statuses = _told(run)
    first = "no step yet" if run.step is None else "no metrics: the log only counts steps"
    lines = [first, *(_so_far(status, view.now) for status in statuses[:_MOST_SOURCES])]
    if len(statuses) > _MOST_SOURCES:
        lines.append(f"and {len(statuses) - _MOST_SOURCES} more sources (i)")
    return "\n".join(lines)


def passed_over(view: View) -> str:
    """Return how many paths are named or lie below those named and are not shown, empty where there
    are none.
    """
    monitor = view.monitor
    count = len(monitor.passed) + len(monitor.problems) + len(monitor.waiting)
    return f"{count:,} passed over (i)" if count else ""


def not_reached(view: View) -> str:
    """Return how many addresses do not answer, empty where all do or are still being asked for the
    first time.
    """
    count = sum(one.since is not None for one in view.monitor.unreached)
    return f"{count:,} not reached (i)" if count else ""


def _told(run: Run) -> list[SourceStatus]:
    """Return the sources that hold something or ought to: not the directory where checkpoints may
    appear.
    """
    statuses = (state.status for state in run.sources.values())
    return [status for status in statuses if status.size or status.problem is not None]


def _so_far(status: SourceStatus, now: float) -> str:
    """Return what has come of a source that has told no step."""
    name = one_line(PurePath(status.path).name, 80)
    if status.problem is not None:
        return f"{name}: {one_line(status.problem, 200)}"
    words = [f"{name}: {status.format}, {size_text(status.bytes_read)} read"]
    if status.bytes_read < status.size:
        words.append(f"of {size_text(status.size)}")
    if status.unreadable:
        words.append(f"· {status.unreadable:,} lines not understood (i)")
    if status.modified is not None:
        quiet = age(now - status.modified)
        words.append("· written just now" if quiet == "now" else f"· last written {quiet} ago")
    return " ".join(words)


def source_pieces(run: Run) -> Iterator[tuple[str, str]]:
    """Yield how the sources of a run are doing as pieces of text with their roles, the worst first.

    All that is well takes three words; whatever is not says what it is.
    """
    statuses = _told(run)
    down = [status for status in statuses if status.problem is not None]
    if down:
        first = down[0]
        name = one_line(PurePath(first.path).name, 24)
        more = f", {len(down) - 1} more" if len(down) > 1 else ""
        yield f" {name}: {one_line(first.problem or '', 40)}{more} (i)", "critical"
    if run.unreadable:
        lines = "line" if run.unreadable == 1 else "lines"
        yield f" {run.unreadable:,} unreadable {lines} (i)", "warning"
    if not down and not run.unreadable and statuses:
        yield f" {len(statuses)} source{'s' if len(statuses) > 1 else ''} ok", "dim"
