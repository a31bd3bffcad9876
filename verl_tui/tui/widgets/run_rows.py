"""Lays runs out as rows of text: columns, pairs of rows or short rows, whatever the width allows.

Pure functions of what is said of each run; they know no screen. Widths are terminal cells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.runs.state import State
from verl_tui.tui.widgets.palette import RUNS
from verl_tui.tui.widgets.spark import BROKEN, gauge, sparkline
from verl_tui.tui.widgets.words import Pieces, cut, middle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.tui.widgets.chart_data import Points

ROLES = ("ok", "warning", "critical", "nothing", "name", "shown", "dim", "bar", "spark", "odd", *RUNS)
"""What a piece of a row is."""
_BADGES = {"ok": "●", "warning": "▲", "critical": "✖", "nothing": "○"}
_ASCII_BADGES = {"ok": "o", "warning": "!", "critical": "X", "nothing": "-"}
_STATE_ROLES = {State.RUNNING: "name", State.STALLED: "warning", State.CRASHED: "critical"}
"""Only trouble has a colour."""
_USUAL = (State.RUNNING, State.FINISHED)
"""States that may go unsaid: the bar tells."""
_LEAST_NAME = 8
_WHOLE_NAME = 18
"""Names up to here are shown whole at the cost of other words: names that differ at the end look alike when cut."""
_INDENT = 4
"""Cells of number and badge, with the spaces after them; what was found is counted beside the badge."""


@dataclass(frozen=True, slots=True)
class RunEntry:
    """What is said of one run."""

    name: str
    badge: str
    """Role of the badge."""
    count: str
    """How much was found that the user does not know of yet, as wide in all entries; blank where nothing was."""
    state: State
    steps: str
    share: float | None
    """How much of the run is done, 0..1."""
    eta: str
    age: str
    reward: Points | None
    number: str = " "
    shown: bool = False
    mark: tuple[str, str] = ("", "")
    """What a selected run is known by, and its role; as wide in all entries, blank where a run is not selected."""

    @property
    def indent(self) -> int:
        """Cells before the name, and before what stands below it."""
        return _INDENT + len(self.count) + len(self.mark[0])

    @property
    def percent(self) -> str:
        """How much is done, never 100 % before the end."""
        return "" if self.share is None else f"{int(self.share * 100)}%"


def glyph(badge: str, *, ascii_only: bool) -> str:
    """Return the mark of a badge; marks differ by shape as well as by colour."""
    return (_ASCII_BADGES if ascii_only else _BADGES)[badge]


Layout = Callable[["RunEntry"], list[Pieces]]
"""Writes the rows of one run; of two hundred runs only those in sight are written."""


def columns(entries: Sequence[RunEntry], width: int, *, ascii_only: bool) -> Layout:
    """One row a run: number, badge, name, state, steps, bar, share, end, age, reward."""
    words = max(len(entry.state.value) for entry in entries)
    steps = max(len(entry.steps) for entry in entries)
    eta = max([6, *(len(entry.eta) for entry in entries)])
    ages = max([4, *(len(entry.age) for entry in entries)])
    used = entries[0].indent + 2 + words + 2 + steps + 1 + 8 + 5 + 2 + 4 + eta + 2 + ages
    spark = min(24, (width - used) // 3)
    name = width - used - (spark + 2 if spark >= 6 else 0)

    def rows(entry: RunEntry) -> list[Pieces]:
        row = _head(entry, name, ascii_only=ascii_only)
        row += [("  ", ""), _state_word(entry, words), (f"  {entry.steps:>{steps}} ", "name")]
        row += [_bar(entry, 8, ascii_only=ascii_only), (f" {entry.percent:>4}  ", "dim")]
        row += [(_labelled(entry.eta).ljust(4 + eta) + f"  {entry.age:>{ages}}", "dim")]
        return [row + ([("  ", ""), *_spark(entry, spark, ascii_only=ascii_only)] if spark >= 6 else [])]

    return rows


def pairs(entries: Sequence[RunEntry], width: int, *, ascii_only: bool) -> Layout:
    """Two rows a run: what it is and how it does, then how far it is."""
    steps = max(len(entry.steps) for entry in entries)
    eta = max([6, *(len(entry.eta) for entry in entries)])
    indent = entries[0].indent
    plan = _plan(width - indent, steps, eta)
    dot = " - " if ascii_only else " · "

    def rows(entry: RunEntry) -> list[Pieces]:
        state = _state_word(entry, 0)
        since = dot + entry.age if entry.age else ""
        if width - indent - 2 - len(state[0]) - len(since) < min(cell_len(entry.name), _WHOLE_NAME):
            since = ""
        name = width - indent - 2 - len(state[0]) - len(since)
        if name < min(cell_len(entry.name), _WHOLE_NAME) and entry.state in _USUAL:
            head = _head(entry, width - indent, ascii_only=ascii_only)
        else:
            head = [*_head(entry, name, ascii_only=ascii_only), ("  ", ""), state, (since, "dim")]
        return [head, _progress(entry, width, steps, plan, indent=indent, ascii_only=ascii_only)]

    return rows


def triples(entries: Sequence[RunEntry], width: int, *, ascii_only: bool) -> Layout:
    """Three rows a run: its name, how it does and its reward, how far it is."""
    steps = max(len(entry.steps) for entry in entries)
    eta = max([6, *(len(entry.eta) for entry in entries)])
    room = width - _INDENT
    plan = _plan(room, steps, eta) | {"spark": 0}
    words = max(len(_doing(entry, ascii_only=ascii_only)) for entry in entries)
    spark = room - words - 2

    def rows(entry: RunEntry) -> list[Pieces]:
        state, age = _state_word(entry, 0), _doing(entry, ascii_only=ascii_only)[len(entry.state.value) :]
        # The reward's line is worth more than standing right below the name.
        row: Pieces = [(" " * _INDENT, ""), state, (age.ljust(words - len(state[0])), "dim")]
        row += [("  ", ""), *_spark(entry, min(spark, 18), ascii_only=ascii_only)] if spark >= 5 else []
        head = _head(entry, width - entry.indent, ascii_only=ascii_only)
        return [head, row, _progress(entry, width, steps, plan, indent=_INDENT, ascii_only=ascii_only)]

    return rows


def singles(width: int, *, ascii_only: bool) -> Layout:
    """One short row a run."""
    return lambda entry: [short(entry, width, ascii_only=ascii_only)]


def _doing(entry: RunEntry, *, ascii_only: bool) -> str:
    """Return the state, and the age of the last record behind it."""
    return entry.state.value + ((" - " if ascii_only else " · ") + entry.age if entry.age else "")


def _progress(
    entry: RunEntry, width: int, steps: int, plan: dict[str, int], *, indent: int, ascii_only: bool
) -> Pieces:
    """Write the second row: bar, steps, share, end, reward, as far as the plan has room for them."""
    row: Pieces = [(" " * indent, "")]
    if plan["bar"]:
        row += [_bar(entry, plan["bar"], ascii_only=ascii_only), (" ", "")]
    row.append((f"{entry.steps:>{steps}}"[: width - indent], "name"))
    if plan["percent"]:
        row.append((f" {entry.percent:>4}", "dim"))
    if plan["eta"]:
        row.append(("  " + (_labelled(entry.eta) if plan["label"] else entry.eta).ljust(plan["eta"]), "dim"))
    if plan["spark"]:
        row += [("  ", ""), *_spark(entry, plan["spark"], ascii_only=ascii_only)]
    return row


def _plan(width: int, steps: int, eta: int) -> dict[str, int]:
    """Share the second row out: steps first, then the end, bar, reward, the word `eta`, the percentage; then grow."""
    plan = dict.fromkeys(("eta", "bar", "spark", "label", "percent"), 0)
    spare = width - steps
    for part, cells, size in (
        ("eta", eta + 2, eta), ("bar", 5, 4), ("spark", 8, 6), ("label", 4, 4), ("percent", 5, 5),
    ):  # fmt: skip
        if spare < cells:
            break
        spare -= cells
        plan[part] = size
    plan["eta"] += plan["label"]
    if plan["bar"]:
        grown = min(8, spare // 2 if plan["spark"] else spare)
        plan["bar"] += grown
        plan["spark"] += min(18, spare - grown) if plan["spark"] else 0
    return plan


def short(entry: RunEntry, width: int, *, ascii_only: bool) -> Pieces:
    """One row without columns, `1 ● run  step 120/500 24% ETA 1h`; the least needed words go first."""
    end = f"ETA {entry.eta}" if entry.eta else "" if entry.state is State.RUNNING else entry.state.value
    steps = f"step {entry.steps}" if entry.steps else ""
    room = width - entry.indent - 2 - min(cell_len(entry.name), _WHOLE_NAME)
    choices = (
        (steps, entry.percent, end),
        (steps, end),
        (entry.steps, end),
        (entry.percent, end),
        (end or entry.steps,),
    )
    rests = [" ".join(word for word in words if word) for words in choices]
    rest = next((rest for rest in rests if len(rest) <= room), rests[-1])
    start = rest.removesuffix(end)
    name = middle(entry.name, max(_LEAST_NAME, width - entry.indent - 2 - len(rest)), ascii_only=ascii_only)
    row = [*_head(entry, cell_len(name), ascii_only=ascii_only), ("  ", ""), (start, "dim")]
    row.append((rest[len(start) :], "dim" if entry.eta else _state_word(entry, 0)[1]))
    return cut(row, width, "~" if ascii_only else "…")


def _head(entry: RunEntry, cells: int, *, ascii_only: bool) -> Pieces:
    name = middle(entry.name, cells, ascii_only=ascii_only)
    return [
        (f"{entry.number} ", "dim"),
        (f"{glyph(entry.badge, ascii_only=ascii_only)}{entry.count} ", entry.badge),
        entry.mark,
        (name, "shown" if entry.shown else "name"),
        (" " * (cells - cell_len(name)), ""),
    ]


def _state_word(entry: RunEntry, cells: int) -> tuple[str, str]:
    return entry.state.value.ljust(cells), _STATE_ROLES.get(entry.state, "dim")


def _labelled(eta: str) -> str:
    return f"eta {eta}" if eta else ""


def _bar(entry: RunEntry, cells: int, *, ascii_only: bool) -> tuple[str, str]:
    return (" " * cells, "") if entry.share is None else (gauge(entry.share, cells, ascii_only=ascii_only), "bar")


def _spark(entry: RunEntry, cells: int, *, ascii_only: bool) -> Pieces:
    text = sparkline(entry.reward, cells, ascii_only=ascii_only) if entry.reward is not None else ""
    return [(c, "odd" if c == BROKEN else "spark") for c in text]
