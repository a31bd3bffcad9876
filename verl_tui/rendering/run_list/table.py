"""Lays runs out as a table with a heading: as many columns as the width allows, those that tell
most first.

Pure functions of what is said of each run, as in `run_rows`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.rendering.run_list.entry_rows import bar_of, head_of, naming, spark_of, state_word
from verl_tui.rendering.text.printable import middle
from verl_tui.rendering.text.wrap import ellipsis, fit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from verl_tui.rendering.run_list.entry_rows import RunEntry
    from verl_tui.rendering.text.piece import Pieces

_GAP = 2
_STATE = 8
"""Cells of the longest word of a state; its sign takes one."""
_WORD = 6
"""What the word is worth, as columns are."""
_BAR = 8
_NAME = 18
"""Cells of a name that no column takes away."""
_MOST = {"findings": 32, "trend": 24}
"""Columns that take what is left, and how much of it."""


class RunFigures(NamedTuple):
    """The last values of a run, each with its role, and what is wrong with it."""

    reward: tuple[str, str] = ("", "")
    kl: tuple[str, str] = ("", "")
    throughput: tuple[str, str] = ("", "")
    finding: str = ""
    """Rule of the worst finding."""
    more: int = 0
    """How many more findings there are."""


class RunTable(NamedTuple):
    """The heading, and what writes the row of a run."""

    heading: Pieces
    row: Callable[[RunEntry, RunFigures], Pieces]
    look: object
    """What is equal where rows look alike."""


@dataclass(frozen=True, slots=True)
class _Column:
    heading: str
    cells: int
    worth: int
    """What it is worth: the least goes first."""
    right: bool = False
    """Whether it is set against its right edge, as numbers are."""


def table(
    names: Sequence[str],
    width: int,
    *,
    indent: int,
    steps: int,
    without: Collection[str] = (),
    ascii_only: bool,
) -> RunTable:
    """Lay out one row a run.

    Args:
        names: Names of all runs.
        width: Cells of a row.
        indent: Cells before a name.
        steps: Cells of the longest step.
        without: Columns to leave out.
        ascii_only: Write ASCII alone.
    """
    columns = [column for column in _columns(steps) if column.heading not in without]
    shown, cells = _shared(columns, names, width - indent)
    named = naming(names, ascii_only=ascii_only)

    def row(entry: RunEntry, told: RunFigures) -> Pieces:
        pieces = head_of(entry, cells["run"], named, ascii_only=ascii_only)
        for column in shown:
            room = cells[column.heading]
            said = _written(column.heading, entry, told, room, ascii_only)
            pieces += [(" " * _GAP, ""), *_sized(said, room, column.right)]
        return pieces

    heading = " " * indent + _set("run", cells["run"])
    for column in shown:
        words = column.heading if cells[column.heading] >= len(column.heading) else ""
        heading += " " * _GAP + _set(words, cells[column.heading], right=column.right)
    return RunTable(
        [(heading, "dim")], row, (tuple(names), indent, tuple(cells.items()), ascii_only)
    )


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


def _shared(
    columns: Sequence[_Column], names: Sequence[str], width: int
) -> tuple[list[_Column], dict[str, int]]:
    """Share the width out: return the columns there is room for, and the cells of each and of the
    names.
    """
    longest = max(map(cell_len, names), default=0)
    cells = {"run": min(max(3, longest), _NAME)}
    room = width - cells["run"]
    wanted = [(one.worth, one.heading, one.cells) for one in columns]
    for _, name, least in sorted([*wanted, (_WORD, "state", _STATE)], reverse=True):
        more = least - cells[name] if name in cells else least + _GAP
        if more <= room:
            cells[name] = least
            room -= more
    if room < longest - cells["run"] and "state" in cells:
        room += cells["state"] - 1  # its sign says enough where a name needs the room
        cells["state"] = 1
    for name, most in {"run": longest, **_MOST}.items():
        if name in cells:
            grown = max(0, min(most - cells[name], room))
            cells[name] += grown
            room -= grown
    return [column for column in columns if column.heading in cells], cells


def _written(
    heading: str, entry: RunEntry, told: RunFigures, cells: int, ascii_only: bool
) -> Pieces:
    """Write what a column says of a run."""
    if heading == "done":
        return [bar_of(entry, _BAR, ascii_only=ascii_only), (f" {entry.percent:>4}", "dim")]
    if heading == "trend":
        return spark_of(entry, cells, ascii_only=ascii_only)
    if heading == "findings":
        more = f" +{told.more}" if told.more else ""
        return [
            (middle(told.finding, cells - len(more), ascii_only=ascii_only), entry.badge),
            (more, "dim"),
        ]
    words = {
        "state": state_word(entry, cells, ascii_only=ascii_only),
        "step": (entry.steps, "name"),
        "reward": told.reward,
        "KL": told.kl,
        "throughput": told.throughput,
        "ETA": (entry.eta, "dim"),
        "last": (entry.age, "dim"),
    }
    text, role = words[heading]
    return [(fit(text, cells, ellipsis(ascii_only=ascii_only)), role)]


def _sized(pieces: Pieces, cells: int, right: bool) -> Pieces:
    """Fill a column up."""
    space = (" " * max(0, cells - sum(cell_len(text) for text, _ in pieces)), "")
    return [space, *pieces] if right else [*pieces, space]


def _set(words: str, cells: int, *, right: bool = False) -> str:
    return words.rjust(cells) if right else words.ljust(cells)
