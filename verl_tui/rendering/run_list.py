"""The list of runs as rows for the room of its panel: a table of as many columns as fit, or all
runs side by side in one row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.health.finding import Finding, weighty
from verl_tui.patterns import pattern
from verl_tui.rendering.charts.sparkline import gauge, sparkline
from verl_tui.rendering.session.run_order import ORDERS
from verl_tui.rendering.session.snapshot import (
    Unread,
    View,
    not_shown,
    reading,
    shown_state,
)
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.piece import (
    Piece,
    Pieces,
    cells_of,
    cut,
    fitting,
    middle,
    paragraph,
    printable,
    short_run_names,
    text_of,
    told_apart,
)
from verl_tui.rendering.text.table import GAP, WIDEST, FittedTable, TextColumn
from verl_tui.rendering.verdict_row import (
    MARKS,
    open_findings,
    standing,
    state_piece,
)
from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.views.state import (
    State,
    ahead,
    silence,
    state,
    state_words,
    time_left,
)
from verl_tui.sources.discovery.passed_over import sentences
from verl_tui.times import age, duration
from verl_tui.words import counted, percent_done

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

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
_RANKED = 98
"""How long the column stays that runs are sorted by."""
_HEADING = 26
"""Cells of the heading of a group of runs, where there is room to spare."""
_WIDEST = 24
"""Most cells of a text in a column that the user has chosen."""
_MORE = 6
"""Cells kept for the number of runs without room, at either end."""
_MOST = 9
"""Largest count of findings shown: names stand in one column whatever is found. Also the number of
runs with a key, which is their number in the list.
"""
_LABELLED = len("ETA 23h 59m")
_STATE = 8
"""Cells of the usual states, of which `finished` is the longest."""
SIGNS = "✓ finished, † crashed, ‖ stalled, ? stopped"
"""What the signs of states mean."""
BADGES = "✖ critical, ▲ warning, ● healthy, ○ not fully checked"
"""What the marks of badges mean."""
_SIGNS: dict[State | Unread, str] = {
    State.FINISHED: "✓",
    State.CRASHED: "†",
    State.STALLED: "‖",
    State.ENDED: "?",
}
"""Signs of states where a name needs the room; a running run has its badge only."""


class RunRows(NamedTuple):
    """All rows of the list."""

    heading: Pieces
    """Names of the columns."""
    rows: Sequence[Callable[[], Pieces]]
    """Make the rows; called for those in sight only."""
    starts: Sequence[int]
    """The rows of the runs."""


def rows_of(groups: Mapping[str, Sequence[Run]]) -> int:
    """Return how many rows runs have, those of their groups among them."""
    return sum(
        len(members) + min(2, len(members)) * bool(words)
        for words, members in groups.items()
    )


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
    rows: list[Callable[[], Pieces]] = [partial(list, row) for row in above]
    if not runs:
        return RunRows([], rows, [])
    groups = view.listing.gathered(runs, view.moment)
    width -= len(rows) + rows_of(groups) > height
    # the end of a heading would lie under the corner of the frame
    width -= GAP * titled
    names, starts = tuple(run.name for run in runs), list[int]()
    listed = [_Listed(view, run, at, names) for at, run in enumerate(runs)]
    columns = _columns(view, runs, width, titled=titled)
    is_shown = partial(_is_shown, listed=listed, titled=titled)
    table = FittedTable(columns, width, listed, is_shown)
    for words, members in groups.items():
        over = partial(_group_row, view, table, words, members)
        rows += [partial(over, at) for at in range(min(2, len(members)) * bool(words))]
        first = len(starts)
        starts += range(len(rows), len(rows) + len(members))
        rows += [partial(table.row, one) for one in listed[first : len(starts)]]
    return RunRows(table.heading(), rows, starts)


def _columns(
    view: View, runs: Sequence[Run], width: int, *, titled: bool
) -> list[TextColumn[_Listed]]:
    """Return the columns, the name first."""
    first, *others = _usual(view, runs, width, titled=titled)
    usual = {one.title.casefold(): one for one in others}
    found = [first]
    for at, title in enumerate(view.listing.kept.run_columns):
        known = usual.get(title.casefold())
        found += [known] if known else _chosen(title, runs, 9 - at / 100)
    ranked = _SORTED_BY.get(view.listing.order, view.listing.order)
    return [
        replace(one, stays=_RANKED) if one.title == ranked else one for one in found
    ]


def _is_shown(
    column: TextColumn[_Listed], listed: Iterable[_Listed], *, titled: bool
) -> bool:
    """Return whether a column has something to show of any run, in sight or not, and needs no
    heading that is out of sight, or is what runs are sorted by.
    """
    if column.stays < _RANKED and (titled or column.title in _PLAIN):
        return any(column.cell(one, column.width) for one in listed)
    return column.stays >= _RANKED


def _usual(
    view: View, runs: Sequence[Run], width: int, *, titled: bool
) -> Sequence[TextColumn[_Listed]]:
    # those that take more cells are of runs without steps
    others = [
        state_words(run, state(run, view.now)) for run in runs if run.step is None
    ]
    states = max([_STATE, *map(len, others)])
    steps = max(4, *(len(_steps(run)) for run in runs))
    # number, badge, count of findings and letter, with the spaces after them
    before = 5 + 2 * bool(view.selected)
    names = told_apart(tuple(run.name for run in runs))
    longest = max(map(cell_len, names.values()))
    room = max(longest, _HEADING * bool(view.listing.kept.run_groups))
    name = max(3, min(longest, _NAME, width - before - 1 - GAP))
    # its sign takes one cell where names need the room
    worded = width - before - name >= states + steps + 2 * GAP
    eta = 7 if titled else _LABELLED
    return (
        TextColumn("", partial(_head, before), before + name, 99, before + room),
        TextColumn("state", lambda one, n: [_state(one, n)], states if worded else 1, 11),
        TextColumn("step", lambda one, _: [(_steps(one.run), "name")], steps, 10, right=True),
        TextColumn("done", _done, 4, 2, right=True),
        TextColumn("reward", partial(_figure, "reward"), 7, 9, right=True),
        TextColumn("trend", _trend, 8, 1, most=24),
        TextColumn("KL", partial(_figure, "KL"), 7, 8, right=True),
        TextColumn("throughput", partial(_figure, "throughput"), 10, 5, right=True),
        TextColumn("ETA", lambda one, _: _time_left(one, eta), eta, 3, right=True),
        TextColumn("last", _activity, 7, 7, right=True),
        TextColumn("findings", _worst, 14, 4, most=64),
    )  # fmt: skip


def _chosen(
    column: str, runs: Sequence[Run], stays: float
) -> Iterator[TextColumn[_Listed]]:
    """Yield a column that the user has chosen, which may be two, as wide as what stands in it."""
    from verl_tui.comparison.run_columns import apart

    for title in apart([column], runs):
        figure = partial(_figure, title)
        yield TextColumn(printable(title), figure, WIDEST, stays, right=True)


def _group_row(
    view: View, table: FittedTable[_Listed], words: str, runs: Sequence[Run], at: int
) -> Pieces:
    """Return a row over runs that stand together: what they share, how many they are, and the means
    of what they have reached (0), or the best of it (1).
    """
    from verl_tui.comparison.run_columns import together

    def figure(column: TextColumn[_Listed], _: int) -> Pieces:
        value = (together(column.title, runs, view.moment) or (None, None))[at]
        return [] if value is None else [(compact(value), "")]

    figures = text_of(table.cells(figure))
    room = len(figures) - len(figures.lstrip())
    head = f"{words} · {counted(len(runs), 'run')}" + ", means" * (room < len(figures))
    head = "best of them" if at else head
    return [(middle(head, room - GAP).ljust(room) + figures.lstrip(), "heading")]


def on_edge(title: str, heading: Pieces) -> Pieces:
    """Return what stands in the upper edge of a frame: its title, and the columns' names in their
    places.

    Args:
        title: Of the frame.
        heading: The names over a row, which begins right behind the frame's left edge.
    """
    pieces: Pieces = [(title, "title")]
    for blank, name in _NAMES.findall(text_of(heading)[_TITLE_AT + len(title) :]):
        ruled = f" {'─' * (len(blank) - 2)} " if len(blank) > GAP else blank
        pieces += [(ruled, "rule"), (name, "name")]
    return pieces


def caption(view: View, listed: int, width: int) -> str:
    """Return how many runs are listed, in which order, and how many are selected; the last of it
    alone where there is no room for all.
    """
    listing, total = view.listing, len(view.monitor.runs)
    found, shown, note = view.matches
    words = [counted(total, "run")] if total > 1 else []
    words += [f"{total - shown} hidden"] * (shown < total)
    if listing.filter:
        some = f"filter: {listed} of {shown}"
        words += [some if found else f"no run matches, all {shown} listed", note]
    if listing.order != ORDERS[0] or listing.reverse:
        words.append(f"by {listing.order}{' reversed' * listing.reverse}")
    if count := len(view.selected):
        words.append(f"{count} selected")
    words = [*filter(None, words), *not_shown(view)]
    forms = (" · ".join(words), note, *words[-1:])
    return fitting(filter(None, forms), width)


def _no_runs(view: View, width: int) -> list[Pieces]:
    """Return the reasons why no run is listed."""
    monitor = view.monitor
    quiet = [] if view.loading else ["no run yet"]
    quiet += [*(address.sentence for address in monitor.unreached), *monitor.waiting]
    problems = [f"▲ {one}" for one in (*monitor.problems, *sentences(monitor.passed))]
    lines = [(line, "dim") for line in quiet] + [(line, "warning") for line in problems]
    return [row for line, role in lines for row in paragraph(line, role, width)]


def _loading(view: View, width: int) -> Pieces:
    words = f"{reading(view)} "[:width]
    return [(words, "dim"), *gauge(view.monitor.loaded(), width - len(words), "bar")]


# -- side by side ----------------------------------------------------------------------------------


def run_strip(view: View, runs: Sequence[Run], width: int) -> Pieces:
    """Return the runs side by side in one row, the shown one always among them."""
    shown = runs.index(view.run) if view.run in runs else 0
    parts = {shown: _in_strip(view, runs, shown)}
    room = width - 2 * _MORE - cells_of(parts[shown])
    # those behind the shown run first: where all have room they are in their order anyway
    for side in (range(shown + 1, len(runs)), range(shown - 1, -1, -1)):
        beside = _fitting(view, runs, side, room)
        room -= sum(GAP + cells_of(part) for part in beside.values())
        parts |= beside
    first, after = min(parts), len(runs) - 1 - max(parts)
    row: Pieces = [(f"+{first}" + " " * GAP, "dim")] if first else []
    for at in sorted(parts):
        row += [*[(" " * GAP, "")] * (at > first), *parts[at]]
    row += [(" " * GAP + f"+{after}", "dim")] if after else []
    return cut(row, width)


def _fitting(
    view: View, runs: Sequence[Run], side: Iterable[int], room: int
) -> dict[int, Pieces]:
    """Return the first runs at one side of the shown one that there is room for."""
    parts: dict[int, Pieces] = {}
    for at in side:
        part = _in_strip(view, runs, at)
        room -= GAP + cells_of(part)
        if room < 0:
            break
        parts[at] = part
    return parts


def _in_strip(view: View, runs: Sequence[Run], at: int) -> Pieces:
    one = _Listed(view, runs[at], at, tuple(run.name for run in runs))
    mark, role = one.badge
    steps = _steps(one.run)
    pointer, name_role = ("▸", "shown") if view.run is one.run else (" ", "name")
    going = one.state is State.RUNNING and steps
    return [
        (pointer, "shown"),
        (f"{mark.strip()} ", role),
        (f"{short_run_names(one.names, _NAME)[one.run.name]} ", name_role),
        (f"step {steps}", "dim") if going else _state(one, 0),
    ]


# -- cells -----------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Listed:
    """One run of the list."""

    view: View
    run: Run
    at: int
    names: tuple[str, ...]

    @cached_property
    def state(self) -> State | Unread:
        """How it is."""
        return shown_state(self.view, self.run)

    @cached_property
    def trouble(self) -> Sequence[Finding]:
        """Its warnings and criticals that are not acknowledged, the worst first."""
        return weighty(open_findings(self.view, self.run))

    @property
    def badge(self) -> Piece:
        """Its mark and how many findings give it that, `+` for many, a space for none; and the
        role.
        """
        count, role = len(self.trouble), standing(self.view, self.run)
        return f"{MARKS[role]}{'+' if count > _MOST else count or ' '}", role


@cached_by_revision
def _steps(run: Run) -> str:
    """Write the steps of a run: reached, and in total."""
    if run.step is None:
        return ""
    total = f"/{run.total_steps}" if run.total_steps else ""
    return f"{run.step}{total}"


def _head(before: int, one: _Listed, cells: int) -> Pieces:
    """Write the start of a row: number, badge, letter and name."""
    letter, hue = one.view.selection.letter(one.run.name) or (" ", "")
    number = str(one.at + 1) if one.at < _MOST else " "
    mark, role = one.badge
    shown = "shown" if one.view.run is one.run else "name"
    name = short_run_names(one.names, max(0, cells - before))[one.run.name]
    return [
        (f"{number} ", "dim"),
        (f"{mark} ", role),
        (f"{letter} " * bool(one.view.selected), hue),
        (name, shown),
    ]


def _state(one: _Listed, cells: int) -> Piece:
    """Write the state, as a sign in one cell."""
    words, role = state_piece(one.view, one.run)
    return _SIGNS.get(one.state, " ") if cells == 1 else words, role or "name"


def _figure(column: str, one: _Listed, cells: int) -> Pieces:
    """Write the value of a column, as people type its name."""
    from verl_tui.comparison.run_columns import value_of

    value = value_of(column, one.run, one.view.moment)
    if not isinstance(value, float):
        return [(middle(value, min(cells, _WIDEST)), "name")] if value else []
    return [(compact(value), "name" if isfinite(value) else "odd")]


def _done(one: _Listed, _: int) -> Pieces:
    """Write the share that is done: bars of neighbouring rows would look like one picture."""
    step, total = one.run.step, one.run.total_steps
    if step is None or not total:
        return []
    return [(percent_done(step / total), "dim")]


def _time_left(one: _Listed, cells: int) -> Pieces:
    """Write the time that a run will still take."""
    left = time_left(one.run, one.view.now)
    if left is None or one.state is Unread.READING:
        return []
    return [("ETA " * (cells >= _LABELLED) + duration(left), "dim")]


def _activity(one: _Listed, _: int) -> Pieces:
    """Write the age of the newest record, or that it is dated ahead of the clock."""
    if ahead(one.run, one.view.now) is not None:
        return [("ahead", "dim")]
    quiet = silence(one.run, one.view.now)
    return [("" if quiet is None else age(quiet), "dim")]


def _trend(one: _Listed, cells: int) -> Pieces:
    """Draw the reward."""
    reward = one.run.present(one.run.indicators.get("reward"))
    return sparkline(reward, cells, "reward") if reward else []


def _worst(one: _Listed, cells: int) -> Pieces:
    """Write the worst finding, and the number of others."""
    if not one.trouble:
        return []
    more = f" +{len(one.trouble) - 1}" if one.trouble[1:] else ""
    worst = one.trouble[0]
    name = middle(worst.headline, cells - cell_len(more))
    return [(name, worst.severity.word), (more, "dim")]
