"""Rows on where the shown run's records come from, and what of it could not be read."""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePath
from typing import TYPE_CHECKING

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
    from verl_tui.sources.http.addresses import Unreached

_SHOWN_LINES = 200
"""Unreadable lines shown of one source, the newest, and paths shown that are passed over."""
_GROUPED = 4
"""More files than this of one directory and format share a row, unless something is wrong with
them.
"""


_SourceRow = tuple["SourceStatus", int]
"""One source, and of how many metrics the values in force come from it, see
`verl_tui.runs.views.provenance.leading`.
"""


def source_rows(view: View, width: int) -> list[Pieces]:
    """Return all rows, each at most `width` cells wide, with an empty one between parts."""
    monitor, run = view.monitor, view.run
    passed = [f"{file.path}: {file.reason}" for file in monitor.passed]
    unreached = [_unreached(server, view.now) for server in monitor.unreached]
    parts = [
        _sentences("problems", monitor.problems, "down", width),
        _sentences(f"not reached: {len(unreached):,}", unreached, "warning", width),
        _sentences("waiting for", monitor.waiting, "warning", width),
        _sentences(f"not shown: {len(passed):,}", passed, "warning", width),
    ]
    if run is None:
        words = "No run yet, so nothing is being read."
        parts.append(list(_wrapped(words, "dim", width)))
    else:
        parts.append([_heading("sources", width), *_sources(run, view, width)])
        parts.append(list(_unreadable(run, width)))
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
    """Return the rows of sentences, nothing without any."""
    rows = [_heading(heading, width)] if sentences else []
    for sentence in sentences[:_SHOWN_LINES]:
        rows += _wrapped(sentence, role, width)
    hidden = len(sentences) - _SHOWN_LINES
    return rows + [_more(hidden, width)] * (hidden > 0)


def _more(hidden: int, width: int) -> Pieces:
    return [(fit(f"  {hidden:,} more, not listed", width), "dim")]


def _wrapped(
    sentence: str, role: str, width: int, before: str = ""
) -> Iterator[Pieces]:
    """Yield the rows of a sentence."""
    for line in wrap(one_line(sentence, 1000), width - len(before)):
        yield [(before + line, role)]


def _unreached(server: Unreached, now: float) -> str:
    """Say which address does not answer, why, and for how long."""
    quiet = age(now - server.since) if server.since is not None else ""
    since = f", for {quiet}; it is asked again" if quiet not in ("", "now") else ""
    return f"{server.address}: {server.reason}{since}"


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
        yield table.row((status, leads.get(status.path, 0)))
        for sentence, role in ((status.problem, "down"), (status.note, "dim")):
            if sentence is not None:
                yield from _wrapped(sentence, role, width, "  ")


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
    times = (status.modified for status in members if status.modified is not None)
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
        TextColumn("path", lambda one, n: [(_path(one[0].path, n), "path")], 12, 9, longest),
        TextColumn("format", lambda one, _: dim(one[0].title), titles, 5),
        TextColumn("state", lambda one, _: [_state(one[0])], 6, 8),
        TextColumn("records", lambda one, _: dim(f"{one[0].records:,}"), 9, 6, right=True),
        TextColumn("metrics", lambda one, _: dim(f"{one[1] or '-'}"), 7, 1, right=True),
        TextColumn("unreadable", lambda one, _: [_unread(one[0])], 10, 7, right=True),
        TextColumn("read", lambda one, _: dim(_read(one[0])), 15, 2, right=True),
        TextColumn("changed", lambda one, _: dim(_changed(one[0], now)), 7, 4, right=True),
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
    shown = [*state.unreadable][-_SHOWN_LINES:]
    hidden = max(state.status.unreadable, len(state.unreadable)) - len(shown)
    if hidden:
        yield _more(hidden, width)
    for line in shown:
        yield cut(
            [
                (f"  line {line.line:,}  ", "dim"),
                (one_line(line.reason, 200), "warning"),
                (f"  {one_line(line.excerpt)}" if line.excerpt else "", ""),
            ],
            width,
            ELLIPSIS,
        )
