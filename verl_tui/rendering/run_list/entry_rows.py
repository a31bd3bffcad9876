"""What a run's row says, and the parts of its row. Widths are terminal cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.rendering.text.numbers import percent_done
from verl_tui.rendering.text.short_names import short_names
from verl_tui.runs.views.state import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.rendering.charts.chart_data import Points
    from verl_tui.rendering.session.shown_state import Unread
    from verl_tui.rendering.text.piece import Pieces

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


class RunFigures(NamedTuple):
    """The last values of a run, each with its role, and its worst finding."""

    reward: tuple[str, str] = ("", "")
    kl: tuple[str, str] = ("", "")
    throughput: tuple[str, str] = ("", "")
    finding: str = ""
    """Rule of the worst finding."""
    more: int = 0
    """Number of further findings."""


@dataclass(frozen=True, slots=True)
class RunEntry:
    """The content of one run's row."""

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
    figures: RunFigures
    number: str = " "
    shown: bool = False
    mark: tuple[str, str] = ("", "")
    """Letter of a selected run with its role, padded to the same width in all entries."""

    @property
    def indent(self) -> int:
        """Cells before the name."""
        return _INDENT + len(self.count) + len(self.mark[0])

    @property
    def percent(self) -> str:
        """Percentage that is done, never 100% before the end."""
        return "" if self.share is None else percent_done(self.share)


def glyph(badge: str) -> str:
    """Return the mark of a badge; marks differ by shape as well as by colour."""
    return _BADGES[badge]


def signs() -> str:
    """Explain the signs of states."""
    return ", ".join(f"{sign} {state.value}" for state, sign in _SIGNS.items())


def badges() -> str:
    """Explain the marks of badges."""
    return ", ".join(f"{glyph(badge)} {means}" for badge, means in _HEALTH.items())


NameWriter = Callable[["RunEntry", int], str]
"""Writes the name of a run in at most so many cells, different from other names."""


def naming(names: Sequence[str]) -> NameWriter:
    """Return a function that writes the names of runs."""
    every = tuple(names)
    return lambda entry, cells: short_names(every, cells)[entry.name]


def head_of(entry: RunEntry, cells: int, named: NameWriter) -> Pieces:
    """Write the start of a row in so many cells: number, badge, letter and name."""
    name = named(entry, max(0, cells - entry.indent))
    return [
        (f"{entry.number} ", "dim"),
        (f"{glyph(entry.badge)}{entry.count} ", entry.badge),
        entry.mark,
        (name, "shown" if entry.shown else "name"),
        (" " * max(0, cells - entry.indent - cell_len(name)), ""),
    ]


def state_word(entry: RunEntry, cells: int) -> tuple[str, str]:
    """Write the state, as a sign in one cell."""
    word = _SIGNS.get(entry.state, " ") if cells == 1 else entry.state.value
    return word, _STATE_ROLES.get(entry.state, "dim")
