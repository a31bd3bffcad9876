"""Rows on where the shown run's records come from, and what of it could not be read."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING

from verl_tui.rendering.text.piece import (
    Pieces,
    TextRows,
    cut,
    fit_left,
    paragraph,
    size_text,
)
from verl_tui.rendering.text.table import WIDEST, FittedTable, TextColumn, stacked
from verl_tui.runs.views.provenance import leading
from verl_tui.runs.views.signs_of_life import two_jobs
from verl_tui.text import one_line
from verl_tui.times import age

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.records import SourceStatus
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run
    from verl_tui.runs.source_state import SourceState
    from verl_tui.sources.http.addresses import Unreached

_SHOWN_LINES = 200
"""Unreadable lines shown of one source, the newest, and paths shown that are passed over."""
_GROUPED = 4
"""More files than this of one directory and format share a row, unless something is wrong with
them.
"""


def source_rows(view: View, width: int) -> TextRows:
    """Return all rows, each at most `width` cells wide, with an empty one between parts."""
    monitor, run = view.monitor, view.run
    passed = [f"{file.path}: {file.reason}" for file in monitor.passed]
    unreached = [_unreached(server, view.now) for server in monitor.unreached]
    parts: list[Iterable[Pieces]] = [
        _sentences("problems", monitor.problems, "down", width),
        _sentences(f"not reached: {len(unreached):,}", unreached, "warning", width),
        _sentences("waiting for", monitor.waiting, "warning", width),
        _sentences(f"not shown: {len(passed):,}", passed, "warning", width),
    ]
    if not run:
        parts.append(paragraph("No run yet, so nothing is being read.", "dim", width))
    else:
        parts += _sources(run, view, width), _unreadable(run, width)
    return [cut(row, width) for row in stacked(parts, apart=True)[0]]


def _path(path: str, width: int) -> str:
    """Return the last part of a path."""
    return fit_left(one_line(path, 4096), width)


def _sentences(
    heading: str, sentences: Sequence[str], role: str, width: int
) -> TextRows:
    """Return the rows of sentences, nothing without any."""
    rows: TextRows = [[(heading, "heading")]] if sentences else []
    for sentence in sentences[:_SHOWN_LINES]:
        rows += paragraph(one_line(sentence, 1000), role, width)
    return rows + _more(len(sentences) - _SHOWN_LINES)


def _more(hidden: int) -> TextRows:
    return [[(f"  {hidden:,} more, not listed", "dim")]] if hidden > 0 else []


def _unreached(server: Unreached, now: float) -> str:
    """Say which address does not answer, why, and for how long."""
    quiet = age(now - server.since) if server.since is not None else ""
    since = f", for {quiet}; it is asked again" if quiet not in ("", "now") else ""
    return f"{server.address}: {server.reason}{since}"


# -- sources ---------------------------------------------------------------------------------------


def _sources(run: Run, view: View, width: int) -> Iterator[Pieces]:
    leads, items = leading(run), _grouped(run.sources.values())
    yield [("sources", "heading")]
    yield from paragraph(two_jobs(run), "warning", width)
    if not items:
        yield [("none", "dim")]
        return

    def metrics(one: SourceStatus, _: int) -> Pieces:
        """Write of how many metrics the values in force come from a source."""
        return [(f"{leads.get(one.path, '-')}", "dim")]

    columns = [
        TextColumn("path", lambda one, n: [(_path(one.path, n), "path")], 12, 9, WIDEST),
        TextColumn("format", lambda one, _: [(one.title, "dim")], WIDEST, 5),
        TextColumn("state", _state, 6, 8),
        TextColumn("records", lambda one, _: [(f"{one.records:,}", "dim")], 9, 6, right=True),
        TextColumn("metrics", metrics, 7, 1, right=True),
        TextColumn("unreadable", _unread, 10, 7, right=True),
        TextColumn("read", _read, 15, 2, right=True),
        TextColumn("changed", partial(_changed, view.now), 7, 4, right=True),
    ]  # fmt: skip
    table = FittedTable(columns, width, items)
    yield table.heading("dim")
    for item in items:
        yield table.row(item)
        for sentence, role in ((item.problem, "down"), (item.note, "dim")):
            words = one_line(sentence or "", 1000)
            yield from paragraph(words, role, width, ("  ", ""))


def _grouped(states: Iterable[SourceState]) -> list[SourceStatus]:
    """Return the statuses to show: many sound files of a directory and format as one, with their
    sums and the newest time of change.
    """
    groups: dict[tuple[str, str], list[SourceStatus]] = defaultdict(list)
    for state in states:
        status = state.status
        faulty = status.problem is not None or status.unreadable
        place = status.path if faulty else str(PurePath(status.path).parent)
        groups[place, status.format].append(status)
    shown: list[SourceStatus] = []
    for members in groups.values():
        shown += [_summed(members)] if len(members) > _GROUPED else members
    return shown


def _summed(members: Sequence[SourceStatus]) -> SourceStatus:
    first = PurePath(members[0].path)
    times = (one.modified for one in members if one.modified is not None)
    return members[0]._replace(
        path=str(first.parent / f"*{first.suffix} ({len(members):,} files)"),
        records=sum(one.records for one in members),
        bytes_read=sum(one.bytes_read for one in members),
        size=sum(one.size for one in members),
        modified=max(times, default=None),
    )


def _state(one: SourceStatus, _: int) -> Pieces:
    return [("● up", "up") if one.problem is None else ("✗ down", "down")]


def _unread(one: SourceStatus, _: int) -> Pieces:
    return [(f"{one.unreadable:,}", "warning" if one.unreadable else "dim")]


def _read(one: SourceStatus, _: int) -> Pieces:
    done, size = one.bytes_read, size_text(one.size)
    part = "" if done >= one.size else f"{size_text(done)} / "
    return [(part + size, "dim")]


def _changed(now: float, one: SourceStatus, _: int) -> Pieces:
    at = one.modified
    return [("-" if at is None else age(max(0.0, now - at)), "dim")]


def _unreadable(run: Run, width: int) -> Iterator[Pieces]:
    """Yield the newest lines of each source that were not understood, with the reason."""
    states = [
        one for one in run.sources.values() if one.status.unreadable or one.unreadable
    ]
    words = f"unreadable lines: {run.unreadable:,}"
    yield [(words, "heading") if states else ("No line was unreadable.", "dim")]
    for state in states:
        yield [(_path(state.status.path, width), "path")]
        shown = [*state.unreadable][-_SHOWN_LINES:]
        count = max(state.status.unreadable, len(state.unreadable))
        yield from _more(count - len(shown))
        for line in shown:
            excerpt = f"  {one_line(line.excerpt)}" if line.excerpt else ""
            reason = (one_line(line.reason, 200), "warning")
            yield [(f"  line {line.line:,}  ", "dim"), reason, (excerpt, "")]
