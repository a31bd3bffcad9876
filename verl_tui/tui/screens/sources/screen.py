"""Where the shown run's records come from, and what could not be read: the monitor watches
itself.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import islice
from pathlib import PurePath
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.binding import Binding
from textual.content import Content

from verl_tui.rendering.text.printable import size_text
from verl_tui.rendering.text.wrap import fit, fit_left, wrap
from verl_tui.runs.views.provenance import leading
from verl_tui.text import one_line
from verl_tui.times import age
from verl_tui.tui.keys.help_section import HelpSection
from verl_tui.tui.screens.overlay import Overlay
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from textual.binding import BindingType

    from verl_tui.records import SourceStatus
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run
    from verl_tui.runs.source_state import SourceState
    from verl_tui.sources.discovery.passed_over import PassedOver

ROLES = ("heading", "dim", "path", "up", "down", "warning")
"""What a piece of text is for."""
Row = list[tuple[str, str]]

_TABLE = 110
"""Cells from which on sources stand in a table; below, each takes two rows."""
_SHOWN_LINES = 200
"""Unreadable lines shown of one source, the newest."""
_MANY = 4
"""Files of one directory and format up to which each has a row of its own, unless something is
wrong with it.
"""
_COLUMNS = ("format", "state", "records", "metrics", "unreadable", "read", "changed")
"""`metrics`: of how many metrics the source gives the values that hold, see
`verl_tui.runs.views.provenance.leading`.
"""


class SourceRows(Rows):
    """Rows in the colours of this screen."""

    STYLED_ROLES = (*Rows.STYLED_ROLES, *ROLES)
    DEFAULT_CSS = """
    SourceRows {
        border: round $accent;
        border-title-color: $accent;
        border-subtitle-color: $text-muted;
        background: $surface;
        scrollbar-gutter: stable;
        & > .rows--heading { color: $text-accent; text-style: bold; }
        & > .rows--dim { color: $text-muted; }
        & > .rows--path { color: $foreground; }
        & > .rows--up { color: $text-success; }
        & > .rows--down { color: $text-error; text-style: bold; }
        & > .rows--warning { color: $text-warning; }
    }
    """

    def show(self, rows: Sequence[Row]) -> None:
        """Show these rows in the colours of their roles."""
        self.set_strips([self.inked(row) for row in rows])


class SourcesScreen(Overlay[None]):
    """Sources of the shown run with their state, and the lines that no reader understood."""

    HELP_SECTION = HelpSection("sources", (Overlay,), rank=80)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,i", "dismiss", "Close", id="sources.close")
    ]
    EDGE = (
        ("list.down list.up", "scroll"),
        ("run.previous run.next", "run"),
        ("sources.close", "closes"),
    )
    WIDEST = 180
    DEFAULT_CSS = "SourcesScreen.-wide > SourceRows { padding: 0 0 0 1; }"

    _panel: SourceRows

    def __init__(self, view: View | None = None) -> None:
        """Make the screen.

        Args:
            view: What to show first; without it the screen is empty until `show`.
        """
        super().__init__(SourceRows(), view)

    def on_mount(self) -> None:
        """Name the keys."""
        self._panel.border_subtitle = Content(self.edge)

    def draw(self, view: View) -> None:
        """Draw the newest state."""
        if self._panel.width > 0:
            self.entitle(
                f"sources of {one_line(view.run.name, 80)}" if view.run is not None else "sources"
            )
            self._panel.show(source_rows(view, self._panel.width))


def source_rows(view: View, width: int) -> list[Row]:
    """Return everything the screen says, as rows of at most `width` cells: pieces, each a text and
    its role.
    """
    parts = [_sentences("problems", view.monitor.problems, "down", width)]
    parts.append(list(_unreached(view, width)))
    parts.append(_sentences("waiting for", view.monitor.waiting, "warning", width))
    parts.append(list(_passed(view.monitor.passed, width, ascii=view.ascii)))
    if view.run is None:
        parts.append(
            [[(line, "dim")] for line in wrap("No run yet, so nothing is being read.", width)]
        )
    else:
        states = list(view.run.sources.values())
        rows = [_heading("sources", width)]
        rows.extend(_sources(_gathered(states), width, view))
        parts.extend([rows, list(_unreadable(view.run, width, ascii=view.ascii))])
    return [
        row for at, part in enumerate(filter(None, parts)) for row in ([[], *part] if at else part)
    ]


def _heading(words: str, width: int) -> Row:
    return [(fit(words, width), "heading")]


def _sentences(heading: str, sentences: Sequence[str], role: str, width: int) -> list[Row]:
    if not sentences:
        return []
    lines = [line for sentence in sentences for line in wrap(one_line(sentence, 1000), width)]
    return [_heading(heading, width), *([(line, role)] for line in lines)]


def _unreached(view: View, width: int) -> Iterator[Row]:
    """Return the addresses that nothing has come from, each with the reason and since when."""
    if not view.monitor.unreached:
        return
    yield _heading(f"not reached: {len(view.monitor.unreached):,}", width)
    for one in view.monitor.unreached:
        quiet = age(view.now - one.since) if one.since is not None else ""
        since = f", for {quiet}; it is asked again" if quiet not in ("", "now") else ""
        for line in wrap(one_line(f"{one.address}: {one.reason}{since}", 1000), width):
            yield [(line, "warning")]


def _passed(passed: Sequence[PassedOver], width: int, *, ascii: bool) -> Iterator[Row]:
    """Return what is passed over with the reason, the longest part of a path that there is room
    for.
    """
    if not passed:
        return
    yield _heading(f"passed over: {len(passed):,}", width)
    for one in passed[:_SHOWN_LINES]:
        reason = one_line(one.reason, max(8, width // 2))
        room = max(8, width - cell_len(reason) - 2)
        path = fit_left(one.path, min(room, cell_len(one.path)), "..." if ascii else "…")
        yield _cut([(path, "path"), (f"  {reason}", "warning")], width)
    if len(passed) > _SHOWN_LINES:
        yield [(fit(f"  {len(passed) - _SHOWN_LINES:,} more, not listed", width), "dim")]


# -- sources ---------------------------------------------------------------------------------------


def _gathered(states: Iterable[SourceState]) -> list[SourceStatus]:
    """Return the states to show; where a directory holds many files of one kind, those that are
    fine share a row.
    """
    alike: dict[tuple[str, str], list[SourceStatus]] = defaultdict(list)
    for state in states:
        status = state.status
        alone = (
            status.path
            if status.problem is not None or status.unreadable
            else str(PurePath(status.path).parent)
        )
        alike[alone, status.format].append(status)
    shown: list[SourceStatus] = []
    for members in alike.values():
        shown.extend([_summed(members)] if len(members) > _MANY else members)
    return shown


def _summed(members: Sequence[SourceStatus]) -> SourceStatus:
    first = PurePath(members[0].path)
    return replace(
        members[0],
        path=str(first.parent / f"*{first.suffix} ({len(members):,} files)"),
        records=sum(status.records for status in members),
        bytes_read=sum(status.bytes_read for status in members),
        size=sum(status.size for status in members),
        modified=max(
            (status.modified for status in members if status.modified is not None), default=None
        ),
    )


def _sources(shown: Sequence[SourceStatus], width: int, view: View) -> Iterator[Row]:
    if not shown:
        yield [(fit("none", width), "dim")]
        return
    leads = leading(view.run) if view.run is not None else {}
    cells = [_facts(status, leads.get(status.path, 0), view) for status in shown]
    cut = "..." if view.ascii else "…"
    if width < _TABLE:
        for status, facts in zip(shown, cells, strict=True):
            yield [(fit_left(one_line(status.path, 4096), width, cut), "path")]
            yield from _narrow(facts, width)
            yield from _sayings(status, width)
        return
    widths = [max(map(cell_len, column)) for column in zip(_COLUMNS, *cells, strict=True)]
    room = max(8, width - sum(widths) - 2 * len(widths))
    paths = [fit_left(one_line(status.path, 4096), room, cut) for status in shown]
    room = min(room, max(map(cell_len, paths)))
    yield [("path".ljust(room), "dim"), (_aligned(_COLUMNS, widths), "dim")]
    for status, path, facts in zip(shown, paths, cells, strict=True):
        row: Row = [(path + " " * (room - cell_len(path)), "path")]
        for at, (fact, size) in enumerate(zip(facts, widths, strict=True)):
            row.append(
                ("  " + (fact.ljust(size) if at < 2 else fact.rjust(size)), _role(at, status))
            )
        yield row
        yield from _sayings(status, width)


def _aligned(facts: Sequence[str], widths: Sequence[int]) -> str:
    """Return the facts in columns: words to the left, numbers to the right."""
    sized = zip(facts, widths, strict=True)
    return "".join(
        "  " + (fact.ljust(size) if at < 2 else fact.rjust(size))
        for at, (fact, size) in enumerate(sized)
    )


def _facts(status: SourceStatus, leads: int, view: View) -> tuple[str, ...]:
    """Return the columns of one source, see `_COLUMNS`."""
    up, down = ("+ up", "! down") if view.ascii else ("● up", "✗ down")
    read = size = size_text(status.size)
    if status.bytes_read < status.size:
        read = f"{size_text(status.bytes_read)} / {size}"
    return (
        status.title,
        up if status.problem is None else down,
        f"{status.records:,}",
        f"{leads:,}" if leads else "-",
        f"{status.unreadable:,}",
        read,
        age(max(0.0, view.now - status.modified)) if status.modified is not None else "-",
    )


def _role(column: int, status: SourceStatus) -> str:
    if column == 1:
        return "up" if status.problem is None else "down"
    return "warning" if column == 4 and status.unreadable else "dim"


def _narrow(facts: Sequence[str], width: int) -> Iterator[Row]:
    kind, state, records, leads, unreadable, read, changed = facts
    state_role = "up" if state.endswith("up") else "down"
    words = [(kind, "dim"), (f"{records} record{'' if records == '1' else 's'}", "dim")]
    if leads != "-":
        words.append((f"gives {leads} metric{'' if leads == '1' else 's'}", "dim"))
    words.append((f"{unreadable} unreadable", "dim" if unreadable == "0" else "warning"))
    words.extend([(read, "dim"), (f"changed {changed}", "dim")])
    row: Row = [("  " + state, state_role)]
    for word, role in words:
        if sum(cell_len(text) for text, _ in row) + 2 + len(word) > width:
            yield _cut(row, width)
            row = []
        row.append(("  " + word, role))
    yield _cut(row, width)


def _sayings(status: SourceStatus, width: int) -> Iterator[Row]:
    """Return what is wrong with a source, and what else there is to know of it."""
    for sentence, role in ((status.problem, "down"), (status.note, "dim")):
        if sentence is not None:
            yield from ([("  " + line, role)] for line in wrap(one_line(sentence, 500), width - 2))


# -- unreadable lines ------------------------------------------------------------------------------


def _unreadable(run: Run, width: int, *, ascii: bool) -> Iterator[Row]:
    states = [
        state for state in run.sources.values() if state.status.unreadable or state.unreadable
    ]
    if not states:
        yield [(fit("Every line was understood.", width), "dim")]
        return
    yield _heading(f"unreadable lines: {run.unreadable:,}", width)
    for state in states:
        yield [
            (fit_left(one_line(state.status.path, 4096), width, "..." if ascii else "…"), "path")
        ]
        kept = len(state.unreadable)
        shown = islice(state.unreadable, max(0, kept - _SHOWN_LINES), None)
        hidden = max(state.status.unreadable, kept) - min(kept, _SHOWN_LINES)
        if hidden:
            yield [(fit(f"  {hidden:,} more, not listed", width), "dim")]
        for line in shown:
            place = f"  line {line.line:,}  "
            reason = one_line(line.reason, 200)
            row: Row = [
                (place, "dim"),
                (reason, "warning"),
                (f"  {one_line(line.excerpt)}" if line.excerpt else "", ""),
            ]
            yield _cut(row, width)


def _cut(row: Row, width: int) -> Row:
    """Return the row cut at its end to `width` cells."""
    cut: Row = []
    for text, role in row:
        cut.append((fit(text, width), role))
        width -= cell_len(cut[-1][0])
        if width <= 0:
            break
    return cut
