"""Rows on where the shown run's records come from, and what of it could not be read."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice
from pathlib import PurePath
from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.rendering.text.piece import cells_of
from verl_tui.rendering.text.printable import cut, size_text
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

_TABLE = 110
"""Least width of a table; in less each source takes two rows or more."""
_SHOWN_LINES = 200
"""Unreadable lines shown of one source, the newest, and paths shown that are passed over."""
_GROUPED = 4
"""More files than this of one directory and format share a row, unless something is wrong with
them.
"""
_COLUMNS = ("format", "state", "records", "metrics", "unreadable", "read", "changed")
"""`metrics`: of how many metrics the values in force come from the source, see
`verl_tui.runs.views.provenance.leading`.
"""
_NUMBERS_FROM = 2
"""The columns from this one on are aligned to the right."""


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
    facts = [_facts(status, leads.get(status.path, 0), view) for status in statuses]
    if width >= _TABLE:
        yield from _table(statuses, facts, width)
        return
    for status, fact in zip(statuses, facts, strict=True):
        yield [(_path(status.path, width), "path")]
        yield from _stacked(fact, width)
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


def _facts(status: SourceStatus, leads: int, view: View) -> tuple[str, ...]:
    """Return the words of one source for each of `_COLUMNS`."""
    up, down = "● up", "✗ down"
    read = size = size_text(status.size)
    if status.bytes_read < status.size:
        read = f"{size_text(status.bytes_read)} / {size}"
    changed = "-"
    if status.modified is not None:
        changed = age(max(0.0, view.now - status.modified))
    return (
        status.title,
        up if status.problem is None else down,
        f"{status.records:,}",
        f"{leads:,}" if leads else "-",
        f"{status.unreadable:,}",
        read,
        changed,
    )


def _table(
    statuses: Sequence[SourceStatus], facts: Sequence[Sequence[str]], width: int
) -> Iterator[Pieces]:
    """Yield one row a source below a heading; the path takes what the columns leave."""
    columns = zip(_COLUMNS, *facts, strict=True)
    widths = [max(map(cell_len, column)) for column in columns]
    room = max(8, width - sum(widths) - 2 * len(widths))
    paths = [_path(status.path, room) for status in statuses]
    room = min(room, max(map(cell_len, paths)))
    plain = ["dim"] * len(_COLUMNS)
    yield [("path".ljust(room), "dim"), *_aligned(_COLUMNS, widths, plain)]
    for status, path, fact in zip(statuses, paths, facts, strict=True):
        roles = plain.copy()
        roles[_COLUMNS.index("state")] = "up" if status.problem is None else "down"
        roles[_COLUMNS.index("unreadable")] = "warning" if status.unreadable else "dim"
        padded = path + " " * (room - cell_len(path))
        yield [(padded, "path"), *_aligned(fact, widths, roles)]
        yield from _problem_and_note(status, width)


def _aligned(
    facts: Sequence[str], widths: Sequence[int], roles: Sequence[str]
) -> Iterator[Piece]:
    """Yield a cell of the table for each column: words to the left, numbers to the right."""
    cells = zip(facts, widths, roles, strict=True)
    for at, (fact, size, role) in enumerate(cells):
        aligned = fact.ljust(size) if at < _NUMBERS_FROM else fact.rjust(size)
        yield "  " + aligned, role


def _stacked(facts: Sequence[str], width: int) -> Iterator[Pieces]:
    """Yield the facts of one source in as many rows as they take."""
    kind, state, records, leads, unreadable, read, changed = facts
    words = [(kind, "dim"), (_several(records, "record"), "dim")]
    if leads != "-":
        words.append((f"gives {_several(leads, 'metric')}", "dim"))
    role = "dim" if unreadable == "0" else "warning"
    words.append((f"{unreadable} unreadable", role))
    words.append((read, "dim"))
    if changed != "-":
        ago = "" if changed == "now" else " ago"
        words.append((f"changed {changed}{ago}", "dim"))
    row: Pieces = [("  " + state, "up" if state.endswith("up") else "down")]
    for word, role in words:
        if cells_of(row) + 2 + len(word) > width:
            yield cut(row, width, "…")
            row = []
        row.append(("  " + word, role))
    yield cut(row, width, "…")


def _several(number: str, noun: str) -> str:
    """Return a number that is already written, with its noun."""
    return f"{number} {noun}" if number == "1" else f"{number} {noun}s"


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
