"""The run list as a table: the most important columns that fit the width, their names above."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.patterns import pattern
from verl_tui.rendering.run_list.entry_rows import (
    bar_of,
    head_of,
    naming,
    spark_of,
    state_word,
)
from verl_tui.rendering.text.piece import cells_of
from verl_tui.rendering.text.printable import middle
from verl_tui.rendering.text.wrap import fit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from verl_tui.rendering.run_list.entry_rows import RunEntry
    from verl_tui.rendering.text.piece import Pieces

_GAP = 2
_STATE_PRIORITY = 6
"""Priority of the whole word of a state, compared with those of columns."""
_BAR = 8
_NAME = 18
"""Cells of a name that columns cannot take."""
_TITLE_AT = 2
"""Cells between a frame's left edge and its title."""
_NAMES = pattern(r"(?<! )( *)(\S+)")
_MOST = {"findings": 32, "trend": 24}
"""Columns that grow into the remaining room, with their largest widths."""


class RunFigures(NamedTuple):
    """The last values of a run, each with its role, and its worst finding."""

    reward: tuple[str, str] = ("", "")
    kl: tuple[str, str] = ("", "")
    throughput: tuple[str, str] = ("", "")
    finding: str = ""
    """Rule of the worst finding."""
    more: int = 0
    """Number of further findings."""


class RunTable(NamedTuple):
    """The names of the columns, and a function that writes the row of a run."""

    heading: str
    row: Callable[[RunEntry, RunFigures], Pieces]
    look: object
    """A value that is equal for tables with equal rows."""


class _Column(NamedTuple):
    heading: str
    cells: int
    priority: int
    """The lowest goes first."""
    right: bool = False
    """True if aligned to the right, as numbers are."""


def run_table(
    names: Sequence[str],
    width: int,
    *,
    indent: int,
    states: int = 8,
    steps: int,
    without: Collection[str] = (),
) -> RunTable:
    """Lay out one row a run.

    Args:
        names: Names of all runs.
        width: Cells of a row.
        indent: Cells before a name.
        states: Cells of the longest state; its sign takes one.
        steps: Cells of the longest step.
        without: Columns to leave out.
    """
    columns = [column for column in _columns(steps) if column.heading not in without]
    cells = _widths(
        columns, max(map(cell_len, names), default=0), width - indent, states
    )
    shown = [column for column in columns if column.heading in cells]
    named = naming(names)

    def row(entry: RunEntry, figures: RunFigures) -> Pieces:
        pieces = head_of(entry, cells["run"], named)
        for column in shown:
            room = cells[column.heading]
            value = _value(column.heading, entry, figures, room)
            pieces += [(" " * _GAP, ""), *_sized(value, room, column.right)]
        return pieces

    heading = " " * (indent + cells["run"])
    for column in shown:
        words = column.heading if cells[column.heading] >= len(column.heading) else ""
        heading += " " * _GAP + _aligned(
            words, cells[column.heading], right=column.right
        )
    return RunTable(heading, row, (tuple(names), indent, tuple(cells.items())))


def on_edge(title: str, heading: str, line: str) -> Pieces:
    """Return what stands in the upper edge of a frame: its title, and the columns' names in their
    places.

    Args:
        title: Of the frame.
        heading: The names over a row, which begins right behind the frame's left edge.
        line: The character that the edge is made of.
    """
    pieces: Pieces = [(title, "title")]
    for blank, name in _NAMES.findall(heading[_TITLE_AT + len(title) :]):
        ruled = len(blank) > _GAP
        pieces += [
            (f" {line * (len(blank) - 2)} " if ruled else blank, "rule"),
            (name, "name"),
        ]
    return pieces


def _columns(steps: int) -> tuple[_Column, ...]:
    """Return all columns, in the order of showing."""
    return (
        _Column("state", 1, 11),
        _Column("step", max(4, steps), 10, right=True),
        _Column("done", _BAR + 5, 2),
        _Column("reward", 7, 9, right=True),
        _Column("trend", 8, 1),
        _Column("KL", 7, 8, right=True),
        _Column("throughput", 10, 5, right=True),
        _Column("ETA", 7, 3, right=True),
        _Column("last", 7, 7, right=True),
        _Column("findings", 14, 4),
    )


def _widths(
    columns: Sequence[_Column], longest: int, width: int, states: int
) -> dict[str, int]:
    """Return the cells of the names, `longest` at most, of each column that fits, and of the
    states, `states` or one.
    """
    cells = {"run": min(max(3, longest), _NAME)}
    room = width - cells["run"]
    wanted = [(column.priority, column.heading, column.cells) for column in columns]
    for _, name, size in sorted(
        [*wanted, (_STATE_PRIORITY, "state", states)], reverse=True
    ):
        more = size - cells[name] if name in cells else size + _GAP
        if more <= room:
            cells[name] = size
            room -= more
    for name, most in {"run": longest, **_MOST}.items():
        if name in cells:
            grown = max(0, min(most - cells[name], room))
            cells[name] += grown
            room -= grown
    return cells


def _value(heading: str, entry: RunEntry, figures: RunFigures, cells: int) -> Pieces:
    """Write the value of a run in a column."""
    if heading == "done":
        return [bar_of(entry, _BAR), (f" {entry.percent:>4}", "dim")]
    if heading == "trend":
        return spark_of(entry, cells)
    if heading == "findings":
        more = f" +{figures.more}" if figures.more else ""
        finding = middle(figures.finding, cells - len(more))
        return [(finding, entry.badge), (more, "dim")]
    words = {
        "state": state_word(entry, cells),
        "step": (entry.steps, "name"),
        "reward": figures.reward,
        "KL": figures.kl,
        "throughput": figures.throughput,
        "ETA": (entry.eta, "dim"),
        "last": (entry.age, "dim"),
    }
    text, role = words[heading]
    return [(fit(text, cells), role)]


def _sized(pieces: Pieces, cells: int, right: bool) -> Pieces:
    """Pad a value to the width of its column."""
    space = (" " * max(0, cells - cells_of(pieces)), "")
    return [space, *pieces] if right else [*pieces, space]


def _aligned(words: str, cells: int, *, right: bool = False) -> str:
    return words.rjust(cells) if right else words.ljust(cells)
