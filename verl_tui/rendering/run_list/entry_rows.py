"""Runs as three or two rows each, and the parts of all rows. Widths are terminal cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.rendering.charts.sparkline import gauge, spark_pieces, sparkline
from verl_tui.rendering.text.numbers import percent_done
from verl_tui.rendering.text.piece import Pieces
from verl_tui.rendering.text.short_names import short_names
from verl_tui.runs.views.state import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.rendering.charts.chart_data import Points
    from verl_tui.rendering.session.shown_state import Unread

_BADGES = {"ok": "●", "dim": "●", "warning": "▲", "critical": "✖", "nothing": "○"}
_HEALTH = {
    "ok": "nothing found",
    "warning": "warning",
    "critical": "critical",
    "dim": "nothing found, not all judged",
    "nothing": "no verdict yet",
}
"""Meanings of the badges, which are named by their roles."""
_STATE_ROLES: dict[State | Unread, str] = {
    State.RUNNING: "ok",
    State.FINISHED: "ok",
    State.STALLED: "warning",
    State.CRASHED: "critical",
}
"""Roles of states; others are dim."""
_SIGNS: dict[State | Unread, str] = {
    State.FINISHED: "✓",
    State.CRASHED: "†",
    State.STALLED: "‖",
    State.ENDED: "?",
}
"""Signs of states if a name needs the room; a running run has its badge only."""
_INDENT = 4
"""Cells of number and badge with the spaces after them, without the count of findings."""


@dataclass(frozen=True, slots=True)
class RunEntry:
    """The content of one run's rows."""

    name: str
    badge: str
    """Role of the badge."""
    count: str
    """Number of findings not acknowledged, in one cell."""
    state: State | Unread
    steps: str
    share: float | None
    """Share of the run that is done, 0..1."""
    eta: str
    age: str
    reward: Points | None
    number: str = " "
    shown: bool = False
    ranked: str = ""
    """Value that the list is sorted by, which a short row shows."""
    mark: tuple[str, str] = ("", "")
    """Letter of a selected run with its role, padded to the same width in all entries."""

    @property
    def indent(self) -> int:
        """Cells before the name and the rows below it."""
        return _INDENT + len(self.count) + len(self.mark[0])

    @property
    def percent(self) -> str:
        """Percentage that is done, never 100% before the end."""
        return "" if self.share is None else percent_done(self.share)


def glyph(badge: str) -> str:
    """Return the mark of a badge; marks differ by shape as well as by colour."""
    return _BADGES[badge]


def sign(state: State | Unread) -> str:
    """Return the sign of a state, a space for others."""
    return _SIGNS.get(state, " ")


def signs() -> str:
    """Explain the signs of states."""
    return ", ".join(f"{sign(state)} {state.value}" for state in _SIGNS)


def badges() -> str:
    """Explain the marks of badges."""
    return ", ".join(f"{glyph(badge)} {means}" for badge, means in _HEALTH.items())


EntryWriter = Callable[["RunEntry"], list[Pieces]]
"""Writes the rows of one run, called for runs in sight."""
NameWriter = Callable[["RunEntry", int], str]
"""Writes the name of a run in at most so many cells, different from other names."""


def naming(names: Sequence[str]) -> NameWriter:
    """Return a function that writes the names of runs."""
    every = tuple(names)
    return lambda entry, cells: short_names(every, cells)[entry.name]


def pairs(entries: Sequence[RunEntry], width: int) -> EntryWriter:
    """Write two rows a run: name and state, then progress; states stand in one column, as signs
    where the names leave no room for words.
    """
    steps = max(len(entry.steps) for entry in entries)
    eta = max([6, *(len(entry.eta) for entry in entries)])
    indent = entries[0].indent
    plan = _plan(width - indent, steps, eta)
    named = naming([entry.name for entry in entries])

    longest = max(cell_len(entry.name) for entry in entries)
    words = (_doing(entry) for entry in entries)
    forms = (max(map(len, words)), max(len(entry.state.value) for entry in entries))
    cells = next((form for form in forms if longest + 2 + form <= width - indent), 1)

    def rows(entry: RunEntry) -> list[Pieces]:
        head = head_of(entry, width - indent - 2 - cells, named)
        word, role = state_word(entry, 1 if cells == 1 else 0)
        age = _doing(entry)[len(word) :] if cells == forms[0] else ""
        head += [("  ", ""), (word, role), (age.ljust(cells - len(word)), "dim")]
        return [head, _progress(entry, width, steps, plan, indent=indent)]

    return rows


def triples(entries: Sequence[RunEntry], width: int) -> EntryWriter:
    """Write three rows a run: name, then state and reward, then progress."""
    steps = max(len(entry.steps) for entry in entries)
    eta = max([6, *(len(entry.eta) for entry in entries)])
    room = width - _INDENT
    plan = _plan(room, steps, eta) | {"spark": 0}
    words = max(len(_doing(entry)) for entry in entries)
    spark = room - words - 2
    named = naming([entry.name for entry in entries])

    def rows(entry: RunEntry) -> list[Pieces]:
        state = state_word(entry, 0)
        age = _doing(entry)[len(entry.state.value) :]
        # The room for the sparkline matters more than alignment with the name.
        row: Pieces = [
            (" " * _INDENT, ""),
            state,
            (age.ljust(words - len(state[0])), "dim"),
        ]
        if spark >= 5:
            row += [("  ", ""), *spark_of(entry, min(spark, 18))]
        head = head_of(entry, width - entry.indent, named)
        end = _progress(entry, width, steps, plan, indent=_INDENT)
        return [head, row, end]

    return rows


def _doing(entry: RunEntry) -> str:
    """Return the state, followed by the age of the last record."""
    age = f"{' · '}{entry.age}" if entry.age else ""
    return f"{entry.state.value}{age}"


def _progress(
    entry: RunEntry, width: int, steps: int, plan: dict[str, int], *, indent: int
) -> Pieces:
    """Write progress: bar, steps, percentage, ETA, reward, as far as the plan has room."""
    row: Pieces = [(" " * indent, "")]
    if plan["bar"]:
        row += [bar_of(entry, plan["bar"]), (" ", "")]
    row.append((f"{entry.steps:>{steps}}"[: width - indent], "name"))
    if plan["percent"]:
        row.append((f" {entry.percent:>4}", "dim"))
    if plan["eta"]:
        eta = f"eta {entry.eta}" if plan["label"] and entry.eta else entry.eta
        row.append((f"  {eta.ljust(plan['eta'])}", "dim"))
    if plan["spark"]:
        row += [("  ", ""), *spark_of(entry, plan["spark"])]
    return row


def _plan(width: int, steps: int, eta: int) -> dict[str, int]:
    """Divide a row: steps first, then ETA, bar, reward, the word `eta`, percentage; then grow."""
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


def head_of(entry: RunEntry, cells: int, named: NameWriter) -> Pieces:
    """Write the start of a row: number, badge, letter, and the name in `cells` cells."""
    name = named(entry, cells)
    return [
        (f"{entry.number} ", "dim"),
        (f"{glyph(entry.badge)}{entry.count} ", entry.badge),
        entry.mark,
        (name, "shown" if entry.shown else "name"),
        (" " * (cells - cell_len(name)), ""),
    ]


def state_word(entry: RunEntry, cells: int) -> tuple[str, str]:
    """Write the state in `cells` cells, as a sign in one."""
    word = sign(entry.state) if cells == 1 else entry.state.value.ljust(cells)
    return word, _STATE_ROLES.get(entry.state, "dim")


def bar_of(entry: RunEntry, cells: int) -> tuple[str, str]:
    """Draw the progress bar."""
    if entry.share is None:
        return " " * cells, ""
    return gauge(entry.share, cells), "bar"


def spark_of(entry: RunEntry, cells: int) -> Pieces:
    """Draw the sparkline of the reward."""
    if entry.reward is None:
        return []
    return spark_pieces(sparkline(entry.reward, cells), "reward")
