"""The list of runs as rows for the room of its panel: a table of as many columns as fit, or all
runs side by side in one row.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.patterns import pattern
from verl_tui.rendering.charts.sparkline import gauge
from verl_tui.rendering.run_list.run_cells import (
    LABELLED_ETA,
    PERCENT,
    ListedRun,
    badge_of,
    done,
    head,
    indent,
    last_activity,
    last_value,
    listed_run,
    reward_trend,
    state_cells,
    state_word,
    steps_text,
    time_left,
    wordless,
    worst_finding,
)
from verl_tui.rendering.session.run_order import ORDERS, named_like
from verl_tui.rendering.session.source_status import not_reached, passed_over
from verl_tui.rendering.text.piece import cells_of, text_of
from verl_tui.rendering.text.printable import cut, wrapped
from verl_tui.rendering.text.table import GAP, FittedTable, TextColumn
from verl_tui.rendering.text.wrap import ELLIPSIS
from verl_tui.runs.views.provenance import shown_kl
from verl_tui.runs.views.state import State
from verl_tui.sources.discovery.passed_over import sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.run import Run

_NAME = 18
"""Cells of a name that columns cannot take; the most of one in a single row."""
_TITLE_AT = 2
"""Cells between a frame's left edge and its title."""
_NAMES = pattern(r"(?<! )( *)(\S+)")
_PLAIN = frozenset({"", "state", "step", "done", "ETA"})
"""Columns that say what they are without a heading."""
_SORTED_BY = {"reward": "reward", "activity": "last"}
"""Orders by a value that neither name nor state shows, and the column that shows it."""
_MORE = 6
"""Cells kept for the number of runs without room, at either end."""


class RunRows(NamedTuple):
    """All rows of the list."""

    heading: Pieces
    """Names of the columns."""
    above: list[Pieces]
    """Rows above the first run."""
    runs: int
    """Number of listed runs."""
    run_row: Callable[[int], Pieces]
    """Returns the row of the run at an index of the list; called for rows in sight only."""

    @property
    def starts(self) -> range:
        """The rows of the runs."""
        return range(len(self.above), len(self.above) + self.runs)

    def row(self, at: int) -> Pieces:
        """Return a row."""
        above = len(self.above)
        return self.above[at] if at < above else self.run_row(at - above)


def lay_out(
    view: View, runs: Sequence[Run], width: int, height: int, *, titled: bool
) -> RunRows:
    """Return the rows of these runs.

    Args:
        view: The state to show.
        runs: The runs that are listed, in this order.
        width: Cells of a row.
        height: Rows there is room for.
        titled: Whether the headings of the columns are in sight; else only columns that need none
            are shown.
    """
    above = [_loading(view, width)] if view.loading else []
    if not runs:
        above += _no_runs(view, width - (len(above) > height))
        return RunRows([], above, 0, lambda _: [])
    width -= len(above) + len(runs) > height
    table = FittedTable(_columns(view, runs, width, titled=titled), width)
    return RunRows(
        table.heading(),
        above,
        len(runs),
        lambda at: table.row(listed_run(view, runs, at)),
    )


def _columns(
    view: View, runs: Sequence[Run], width: int, *, titled: bool
) -> list[TextColumn[ListedRun]]:
    states = state_cells(runs, view.now)
    steps = max(4, *(len(steps_text(run)) for run in runs))
    longest, before = max(cell_len(run.name) for run in runs), indent(view)
    name = max(3, min(longest, _NAME, width - before - 1 - GAP))
    # its sign takes one cell where names need the room
    worded = width - before - name >= states + steps + 2 * GAP
    state, eta = states if worded else 1, 7 if titled else LABELLED_ETA
    columns: tuple[TextColumn[ListedRun], ...] = (
        TextColumn("", head, before + name, 99, before + longest),
        TextColumn("state", lambda one, n: [state_word(one, n)], state, 11),
        TextColumn("step", lambda one, _: [(steps_text(one.run), "name")], steps, 10, right=True),
        TextColumn("done", done, 13 if titled else PERCENT, 2),
        TextColumn("reward", lambda one, _: [last_value(one, "reward")], 7, 9, right=True),
        TextColumn("trend", reward_trend, 8, 1, most=24),
        TextColumn("KL", lambda one, _: [last_value(one, shown_kl(one.run))], 7, 8, right=True),
        TextColumn("throughput", lambda one, _: [last_value(one, "throughput")], 10, 5, right=True),
        TextColumn("ETA", lambda one, n: [time_left(one, n)], eta, 3, right=True),
        TextColumn("last", lambda one, _: [last_activity(one)], 7, 7, right=True),
        TextColumn("findings", worst_finding, 14, 4, most=32),
    )  # fmt: skip
    unnamed = set() if titled else {one.title for one in columns} - _PLAIN
    ranked = _SORTED_BY.get(view.listing.order, "")
    return _shown(columns, ranked, unnamed | wordless(runs))


def _shown(
    columns: Sequence[TextColumn[ListedRun]], ranked: str, hidden: AbstractSet[str]
) -> list[TextColumn[ListedRun]]:
    """Return the columns that are not hidden, and that which the list is sorted by."""
    return [
        replace(one, stays=98) if one.title == ranked else one
        for one in columns
        if one.title == ranked or one.title not in hidden
    ]


def on_edge(title: str, heading: Pieces, line: str) -> Pieces:
    """Return what stands in the upper edge of a frame: its title, and the columns' names in their
    places.

    Args:
        title: Of the frame.
        heading: The names over a row, which begins right behind the frame's left edge.
        line: The character that the edge is made of.
    """
    pieces: Pieces = [(title, "title")]
    for blank, name in _NAMES.findall(text_of(heading)[_TITLE_AT + len(title) :]):
        ruled = f" {line * (len(blank) - 2)} " if len(blank) > GAP else blank
        pieces += [(ruled, "rule"), (name, "name")]
    return pieces


def caption(view: View, listed: int, width: int) -> str:
    """Return how many runs are listed, in which order, and how many are selected; the last of it
    alone where there is no room for all.
    """
    total, wanted = len(view.monitor.runs), view.listing.filter
    words = [str(total)] if total > 1 else []
    if listed < total:
        words = [f"filter: {listed} of {total}"]
    elif wanted and not named_like(view.monitor.runs.values(), wanted):
        words = [f"no run matches, all {total} listed"]
    if view.listing.order != ORDERS[0]:
        words.append(f"by {view.listing.order}")
    if count := len(view.selected):
        words.append(f"{count} selected")
    words += filter(None, (passed_over(view), not_reached(view)))
    text = " · ".join(words)
    return next((form for form in (text, *words[-1:]) if len(form) <= width), "")


def _no_runs(view: View, width: int) -> list[Pieces]:
    """Return the reasons why no run is listed."""
    monitor = view.monitor
    quiet = [] if view.loading else ["no run yet"]
    quiet += [*(address.sentence for address in monitor.unreached), *monitor.waiting]
    problems = [f"▲ {one}" for one in (*monitor.problems, *sentences(monitor.passed))]
    lines = [(line, "dim") for line in quiet] + [(line, "warning") for line in problems]
    return [[(part, role)] for line, role in lines for part in wrapped(line, width)]


def _loading(view: View, width: int) -> Pieces:
    share = view.monitor.loaded()
    words = f"reading {int(share * 100)}%"
    room = width - len(words) - 1
    if room < 4:
        return [(words[:width], "dim")]
    return [(f"{words} ", "dim"), (gauge(share, room), "bar")]


# -- side by side ----------------------------------------------------------------------------------


def run_strip(view: View, runs: Sequence[Run], width: int) -> Pieces:
    """Return the runs side by side in one row, the shown one always among them."""
    shown = runs.index(view.run) if view.run in runs else 0
    parts = {shown: _in_strip(view, runs, shown)}
    used = cells_of(parts[shown])
    # Those behind the shown run first: where all have room they are in their order anyway.
    for at in (*range(shown + 1, len(runs)), *range(shown - 1, -1, -1)):
        if at - 1 not in parts and at + 1 not in parts:
            continue  # there was no room for one between
        part = _in_strip(view, runs, at)
        if used + GAP + cells_of(part) <= width - 2 * _MORE:
            parts[at], used = part, used + GAP + cells_of(part)
    first, after = min(parts), len(runs) - 1 - max(parts)
    row: Pieces = [(f"+{first}" + " " * GAP, "dim")] if first else []
    for at in sorted(parts):
        row += [*[(" " * GAP, "")] * (at > first), *parts[at]]
    row += [(" " * GAP + f"+{after}", "dim")] if after else []
    return cut(row, width, ELLIPSIS)


def _in_strip(view: View, runs: Sequence[Run], at: int) -> Pieces:
    one = listed_run(view, runs, at)
    steps = steps_text(one.run)
    going = one.state is State.RUNNING and steps
    mark, role = ("▸", "shown") if one.view.run is one.run else (" ", "name")
    return [
        (mark, "shown"),
        badge_of(one, padded=False),
        (f"{one.name(min(_NAME, cell_len(one.run.name)))} ", role),
        (f"step {steps}", "dim") if going else state_word(one, 0),
    ]
