"""Rows on where the shown run's records come from, and what of it could not be read."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.rendering.text.printable import cut, size_text
from verl_tui.rendering.text.table import FittedTable, TextColumn
from verl_tui.rendering.text.wrap import ELLIPSIS, fit, fit_left, wrap
from verl_tui.runs.views.provenance import leading
from verl_tui.text import one_line
from verl_tui.times import age

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.records import SourceStatus
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Piece, Pieces
    from verl_tui.runs.run import Run
    from verl_tui.runs.source_state import SourceState
    from verl_tui.sources.discovery.passed_over import PassedOver

_SHOWN_LINES = 200
"""Unreadable lines shown of one source, the newest, and paths shown that are passed over."""
_GROUPED = 4
"""More files than this of one directory and format share a row, unless something is wrong with
them.
"""


class _SourceRow(NamedTuple):
    """One source, and of how many metrics the values in force come from it, see
    `verl_tui.runs.views.provenance.leading`.
    """

    status: SourceStatus
    leads: int


def source_rows(view: View, width: int) -> list[Pieces]:
    """Return all rows, each at most `width` cells wide, with an empty one between parts."""
    monitor = view.monitor
    parts = [
        _sentences("problems", monitor.problems, "down", width),
        list(_unreached(view, width)),
        _sentences("waiting for", monitor.waiting, "warning", width),
        list(_passed_over(monitor.passed, width)),
    ]
    if view.run is None:
        words = wrap("No run yet, so nothing is being read.", width)
        parts.append([[(line, "dim")] for line in words])
    else:
        parts.append([_heading("sources", width), *_sources(view.run, view, width)])
        parts.append(list(_unreadable(view.run, width)))
    rows: list[Pieces] = []
    for part in filter(None, parts):
        rows += [[], *part] if rows else part
    return rows


def _heading(words: str, width: int) -> Pieces:
    return [(fit(words, width), "heading")]


def _path(path: str, width: int) -> str:
    """Return the last part of a path."""
    return fit_left(one_line(path, 4096), width, ELLIPSIS)


def _sentences(
    heading: str, sentences: Sequence[str], role: str, width: int
) -> list[Pieces]:
    if not sentences:
        return []
    rows = [_heading(heading, width)]
    for sentence in sentences:
        rows += _wrapped(sentence, role, width)
    return rows


def _wrapped(sentence: str, role: str, width: int) -> Iterator[Pieces]:
    """Yield the rows of a sentence."""
    for line in wrap(one_line(sentence, 1000), width):
        yield [(line, role)]


def _unreached(view: View, width: int) -> Iterator[Pieces]:
    """Yield the addresses that do not answer, each with the reason and for how long."""
    unreached = view.monitor.unreached
    if not unreached:
        return
    yield _heading(f"not reached: {len(unreached):,}", width)
    for server in unreached:
        quiet = age(view.now - server.since) if server.since is not None else ""
        since = f", for {quiet}; it is asked again" if quiet not in ("", "now") else ""
        words = f"{server.address}: {server.reason}{since}"
        yield from _wrapped(words, "warning", width)


def _passed_over(passed: Sequence[PassedOver], width: int) -> Iterator[Pieces]:
    """Yield the paths that are not read, each with the reason."""
    if not passed:
        return
    yield _heading(f"not shown: {len(passed):,}", width)
    for file in passed[:_SHOWN_LINES]:
        reason = one_line(file.reason, max(8, width // 2))
        room = max(8, width - cell_len(reason) - 2)
        room = min(room, cell_len(file.path))
        path = fit_left(file.path, room, ELLIPSIS)
        yield cut([(path, "path"), (f"  {reason}", "warning")], width, "…")
    hidden = len(passed) - _SHOWN_LINES
    if hidden > 0:
        yield [(fit(f"  {hidden:,} more, not listed", width), "dim")]


# -- sources ---------------------------------------------------------------------------------------


def _sources(run: Run, view: View, width: int) -> Iterator[Pieces]:
    statuses = _grouped(run.sources.values())
    if not statuses:
        yield [(fit("none", width), "dim")]
        return
    leads = leading(run)
    table = _table(statuses, view.now, width)
    yield table.heading("dim")
    for status in statuses:
        yield table.row(_SourceRow(status, leads.get(status.path, 0)))
        yield from _problem_and_note(status, width)


def _grouped(states: Iterable[SourceState]) -> list[SourceStatus]:
    """Return the statuses to show: many sound files of a directory and format as one."""
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
    """Return one status for many files, with their sums and the newest time of change."""
    first = PurePath(members[0].path)
    times = [status.modified for status in members if status.modified is not None]
    return members[0]._replace(
        path=str(first.parent / f"*{first.suffix} ({len(members):,} files)"),
        records=sum(status.records for status in members),
        bytes_read=sum(status.bytes_read for status in members),
        size=sum(status.size for status in members),
        modified=max(times, default=None),
    )


def _table(
    statuses: Sequence[SourceStatus], now: float, width: int
) -> FittedTable[_SourceRow]:
    def dim(text: str) -> Pieces:
        return [(text, "dim")]

    longest = max(cell_len(status.path) for status in statuses)
    titles = max(cell_len(status.title) for status in statuses)
    columns: list[TextColumn[_SourceRow]] = [
        TextColumn("path", lambda one, n: [(_path(one.status.path, n), "path")], 12, 9, longest),
        TextColumn("format", lambda one, _: dim(one.status.title), titles, 5),
        TextColumn("state", lambda one, _: [_state(one.status)], 6, 8),
        TextColumn("records", lambda one, _: dim(f"{one.status.records:,}"), 9, 6, right=True),
        TextColumn("metrics", lambda one, _: dim(f"{one.leads or '-'}"), 7, 1, right=True),
        TextColumn("unreadable", lambda one, _: [_unread(one.status)], 10, 7, right=True),
        TextColumn("read", lambda one, _: dim(_read(one.status)), 15, 2, right=True),
        TextColumn("changed", lambda one, _: dim(_changed(one.status, now)), 7, 4, right=True),
    ]  # fmt: skip
    return FittedTable(columns, width)


def _state(status: SourceStatus) -> Piece:
    return ("● up", "up") if status.problem is None else ("✗ down", "down")


def _unread(status: SourceStatus) -> Piece:
    return f"{status.unreadable:,}", "warning" if status.unreadable else "dim"


def _read(status: SourceStatus) -> str:
    size = size_text(status.size)
    whole = status.bytes_read >= status.size
    return size if whole else f"{size_text(status.bytes_read)} / {size}"


def _changed(status: SourceStatus, now: float) -> str:
    return "-" if status.modified is None else age(max(0.0, now - status.modified))


def _problem_and_note(status: SourceStatus, width: int) -> Iterator[Pieces]:
    for sentence, role in ((status.problem, "down"), (status.note, "dim")):
        if sentence is None:
            continue
        for line in wrap(one_line(sentence, 500), width - 2):
            yield [("  " + line, role)]


# -- unreadable lines ------------------------------------------------------------------------------


def _unreadable(run: Run, width: int) -> Iterator[Pieces]:
    """Yield the newest lines of each source that were not understood, with the reason."""
    states = [
        state
        for state in run.sources.values()
        if state.status.unreadable or state.unreadable
    ]
    if not states:
        yield [(fit("No line was unreadable.", width), "dim")]
        return
    yield _heading(f"unreadable lines: {run.unreadable:,}", width)
    for state in states:
        yield [(_path(state.status.path, width), "path")]
        yield from _unreadable_lines(state, width)


def _unreadable_lines(state: SourceState, width: int) -> Iterator[Pieces]:
    kept = len(state.unreadable)
    hidden = max(state.status.unreadable, kept) - min(kept, _SHOWN_LINES)
    if hidden:
        yield [(fit(f"  {hidden:,} more, not listed", width), "dim")]
    for line in islice(state.unreadable, max(0, kept - _SHOWN_LINES), None):
        row: Pieces = [
            (f"  line {line.line:,}  ", "dim"),
            (one_line(line.reason, 200), "warning"),
        ]
        if line.excerpt:
            row.append((f"  {one_line(line.excerpt)}", ""))
        yield cut(row, width, "…")
