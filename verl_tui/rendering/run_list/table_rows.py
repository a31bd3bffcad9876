"""The columns of the run list, as many as fit, and their names in the upper edge of its frame."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.patterns import pattern
from verl_tui.rendering.charts.sparkline import gauge, spark_pieces, sparkline
from verl_tui.rendering.run_list.run_entries import head_of, naming, state_word
from verl_tui.rendering.text.piece import text_of
from verl_tui.rendering.text.printable import middle
from verl_tui.rendering.text.table import GAP, FittedTable, TextColumn

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from verl_tui.rendering.run_list.run_entries import RunEntry
    from verl_tui.rendering.text.piece import Pieces

_NAME = 18
"""Cells of a name that columns cannot take."""
_PERCENT, _LABELLED_ETA = 4, 11
"""Cells of `100%`, and of `ETA 23h 59m`."""
_TITLE_AT = 2
"""Cells between a frame's left edge and its title."""
_NAMES = pattern(r"(?<! )( *)(\S+)")
_PLAIN = frozenset({"", "state", "step", "done", "ETA"})
"""Columns that say what they are without a heading."""
_SORTED_BY = {"reward": "reward", "activity": "last"}
"""Orders by a value that neither name nor state shows, and the column that shows it."""


def run_table(
    names: Sequence[str],
    width: int,
    *,
    indent: int,
    states: int,
    steps: int,
    titled: bool,
    order: str = "",
    without: Collection[str] = (),
) -> FittedTable[RunEntry]:
    """Choose the columns.

    Args:
        names: Names of all runs.
        width: Cells of a row.
        indent: Cells before a name.
        states: Cells of the longest state; its sign takes one where names need the room.
        steps: Cells of the longest step.
        titled: Whether headings are in sight; else only columns that need none are shown.
        order: What the list is sorted by.
        without: Columns that are empty for all runs.
    """
    named = naming(names)
    longest = max(map(cell_len, names))
    name = max(3, min(longest, _NAME, width - indent - 1 - GAP))
    worded = width - indent - name >= states + steps + 2 * GAP
    state = states if worded else 1
    columns: tuple[TextColumn[RunEntry], ...] = (
        TextColumn("", lambda e, n: head_of(e, n, named), indent + name, 99, indent + longest),
        TextColumn("state", lambda e, n: [state_word(e, n)], state, 11),
        TextColumn("step", lambda e, _: [(e.steps, "name")], steps, 10, right=True),
        TextColumn("done", _done, 13 if titled else _PERCENT, 2),
        TextColumn("reward", lambda e, _: [e.figures.reward], 7, 9, right=True),
        TextColumn("trend", _trend, 8, 1, most=24),
        TextColumn("KL", lambda e, _: [e.figures.kl], 7, 8, right=True),
        TextColumn("throughput", lambda e, _: [e.figures.throughput], 10, 5, right=True),
        TextColumn("ETA", _eta, 7 if titled else _LABELLED_ETA, 3, right=True),
        TextColumn("last", lambda e, _: [(e.age, "dim")], 7, 7, right=True),
        TextColumn("findings", _findings, 14, 4, most=32),
    )  # fmt: skip
    ranked = _SORTED_BY.get(order, "")
    return FittedTable([*_shown(columns, ranked, without, titled=titled)], width)


def _shown(
    columns: Sequence[TextColumn[RunEntry]],
    ranked: str,
    without: Collection[str],
    *,
    titled: bool,
) -> Iterator[TextColumn[RunEntry]]:
    for column in columns:
        if column.title == ranked:
            yield replace(column, stays=98)
        elif column.title not in without and (titled or column.title in _PLAIN):
            yield column


def _done(entry: RunEntry, cells: int) -> Pieces:
    percent = (f"{entry.percent:>{_PERCENT}}", "dim")
    bar = cells - _PERCENT - 1
    if bar < _PERCENT:
        return [percent]
    full = (" " * bar, "") if entry.share is None else (gauge(entry.share, bar), "bar")
    return [full, (" ", ""), percent]


def _eta(entry: RunEntry, cells: int) -> Pieces:
    label = "ETA " if entry.eta and cells >= _LABELLED_ETA else ""
    return [(label + entry.eta, "dim")]


def _trend(entry: RunEntry, cells: int) -> Pieces:
    if entry.reward is None:
        return []
    return spark_pieces(sparkline(entry.reward, cells), "reward")


def _findings(entry: RunEntry, cells: int) -> Pieces:
    figures = entry.figures
    more = f" +{figures.more}" if figures.more else ""
    return [(middle(figures.finding, cells - len(more)), entry.badge), (more, "dim")]


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
        ruled = len(blank) > GAP
        pieces += [
            (f" {line * (len(blank) - 2)} " if ruled else blank, "rule"),
            (name, "name"),
        ]
    return pieces
