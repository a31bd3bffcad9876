"""Which runs are listed and in which order, which all screens follow, and which are selected."""

from __future__ import annotations

from dataclasses import replace
from os.path import commonprefix
from typing import TYPE_CHECKING, Any

from verl_tui.health.finding import Moment, Severity, Verdict
from verl_tui.means import next_of
from verl_tui.patterns import pattern
from verl_tui.rendering.session.preferences import (
    DRAWN,
    USUAL_COLUMNS,
    StateFile,
    UserState,
)
from verl_tui.rendering.text.hues import RUNS
from verl_tui.rendering.text.piece import Piece, natural, told_apart
from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.run_id import run_id
from verl_tui.runs.views.state import State, state

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from verl_tui.monitor import Monitor
    from verl_tui.runs.run import Run

ORDERS = ("as found", "state", "name", "reward", "activity")
"""Orders of the list."""
_STATES = (
    State.CRASHED,
    State.STALLED,
    State.RUNNING,
    State.WAITING,
    State.UNKNOWN,
    State.ENDED,
    State.FINISHED,
    State.NO_TRAINING,
)
"""States from those that need attention to those that are over."""
_TOGETHER = 60.0
"""Seconds within which files were written at about the same time: heuristic, a step or a copy."""
id_of = cached_by_revision(run_id)
_FIRST = pattern(r"(?:[^\W_]*\d[eE]-)?[^\W_]+|")
"""The first word of a name; `lr1e-6` is one word."""


class RunListing:
    """Which runs are listed, and in which order."""

    def __init__(self, file: StateFile | None = None) -> None:
        """Make the listing, with what a file remembers."""
        self.file = file or StateFile()
        self.order = ORDERS[0]
        self.reverse = False
        self.filter = ""
        """Lists only the runs whose name contains this in any case, or that meet this condition;
        all where none does.
        """

    @property
    def kept(self) -> UserState:
        """The columns, the groups and the hidden runs."""
        return self.file.state

    def keep(self, **chosen: tuple[str, ...]) -> str:
        """Choose columns, the usual ones for none, groups or hidden runs; return why these are not
        remembered.
        """
        if chosen.get("run_columns") == ():
            chosen = {"run_columns": USUAL_COLUMNS}
        return self.file.change(lambda state: replace(state, **chosen))  # type: ignore[arg-type]

    def runs(self, known: Iterable[Run], at: Moment) -> list[Run]:
        """Return the runs that are not hidden and that the filter leaves, in their order."""
        shown = self.unhidden(known)
        found = self.narrowed(shown, at)[0] or shown
        listed = ordered(found, self.order, at, reverse=self.reverse)
        return [run for group in self.gathered(listed, at).values() for run in group]

    def unhidden(self, known: Iterable[Run]) -> list[Run]:
        """Return the runs that the user has not hidden, all where no other is there."""
        hidden, runs = self.kept.hidden_runs, list(known)
        return [run for run in runs if hidden and id_of(run) not in hidden] or runs

    def narrowed(self, runs: Sequence[Run], at: Moment) -> tuple[list[Run], str]:
        """Return the runs that match the filter; why it cannot be read, or how many runs have no
        value of what it compares.
        """
        wanted, note = self.filter.casefold(), ""
        found = [run for run in runs if not wanted or wanted in run.name.casefold()]
        if not found:
            from verl_tui.comparison.run_columns import CONDITION, meeting

            try:
                if CONDITION.search(self.filter):
                    return meeting(self.filter, runs, at)
            except ValueError as error:
                note = str(error)
        return found, note

    def gathered(self, listed: Sequence[Run], at: Moment) -> dict[str, list[Run]]:
        """Return runs by the words for their group, all in one group if there are none."""
        if not self.kept.run_groups:
            return {"": list(listed)}
        from verl_tui.comparison.run_columns import text_of, value_of

        groups: dict[str, list[Run]] = {}
        names = without_shared_start([run.name for run in listed])
        for run, own in zip(listed, names, strict=True):
            words = [
                first_word(own)
                if column == "name"
                else f"{column} {text_of(value_of(column, run, at)) or 'unknown'}"
                for column in self.kept.run_groups
            ]
            groups.setdefault(" · ".join(words), []).append(run)
        return groups

    def next_order(self) -> None:
        """Sort by the next of `ORDERS`, or of the other columns."""
        orders = [*dict.fromkeys((*ORDERS, *self.kept.run_columns))]
        orders = [one for one in orders if one not in DRAWN]
        self.order, self.reverse = next_of(orders, self.order), False


def ordered(
    runs: Iterable[Run], order: str, at: Moment, *, reverse: bool = False
) -> list[Run]:
    """Return runs in an order of `ORDERS` or by a column, or the other way round; equal ones stay
    in the order found, those without a value and those that are no training come last.
    """
    keys: dict[str, Callable[[Run], Any]] = {
        "as found": lambda _: 0,
        "state": lambda run: _STATES.index(state(run, at.now)),
        "name": lambda run: natural(run.name),
        "activity": lambda run: -(run.last_record or 0.0),
    }
    if order in keys:
        listed = sorted(runs, key=keys[order])
        listed = listed[:: -1 if reverse else 1]
    else:
        from verl_tui.comparison.run_columns import sorted_by

        listed = sorted_by(order, [*runs], at, up=reverse)
    none = State.NO_TRAINING
    return sorted(
        listed, key=lambda run: run.step is None and state(run, at.now) is none
    )


def first_to_show(
    monitor: Monitor, now: float, listing: RunListing | None = None
) -> str | None:
    """Return the name of the run that needs a look first: one that is not hidden, with a critical
    finding, then the newest written; of those written at about the same time the first that was
    found.
    """
    known = (listing or RunListing()).unhidden(monitor.runs.values())
    verdicts, none = monitor.verdicts, Verdict()
    runs = (
        [
            one
            for one in known
            if verdicts.get(one.name, none).severity is Severity.CRITICAL
        ]
        or [run for run in known if run.step is not None]
        or ordered(known, ORDERS[0], Moment(now, monitor.verdicts))
    )
    newest = max(map(_written, runs), default=0.0)
    named = (run.name for run in runs if _written(run) >= newest - _TOGETHER)
    return next(named, None)


def _written(run: Run) -> float:
    """Return when a run was last written to, 0 where that is unknown."""
    return run.modified or run.last_record or 0.0


def first_word(name: str) -> str:
    """Return what a name begins with."""
    found = _FIRST.match(name)
    return (found and found[0]) or name


# -- selected runs ---------------------------------------------------------------------------------

LETTERS = "ABCDEF"
"""Letters that mark selected runs beside their colours; one for each that can be selected."""
_PART = pattern(r"(?<![^\W_])(?:[^\W_]*\d[eE]-)?[^\W_]*$")
"""The last word of a shared start, which may be incomplete; `lr1e-6` is one word."""


class Selection:
    """Selected runs in places, which decide letter and colour."""

    def __init__(self) -> None:
        self.revision = 0
        """Grows with every change."""
        self.baseline: str | None = None
        """The run that others are compared with, None for the first one."""
        self._places: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    def letter(self, name: str) -> Piece | None:
        """Return the letter of a run and its role, None if it is not selected."""
        place = self._places.get(name)
        return None if place is None else (LETTERS[place], RUNS[place])

    def names(self, known: Container[str]) -> list[str]:
        """Return the selected runs that are known, in the order of their places."""
        found = (name for name in self._places if name in known)
        return sorted(found, key=self._places.__getitem__)

    def toggle(self, name: str) -> bool:
        """Select or deselect a run; return False if all places are taken."""
        if self._places.pop(name, None) is None:
            free = {*range(len(LETTERS))}.difference(self._places.values())
            if not free:
                return False
            self._places[name] = min(free)
        self.revision += 1
        return True


def without_shared_start(names: Sequence[str]) -> list[str]:
    """Return names without the words that all of them start with."""
    if len(set(names)) < 2:
        return list(names)
    names = [*map(told_apart(tuple(names)).__getitem__, names)]
    start = commonprefix(names)  # noqa: RUF071 - of letters is what is wanted
    start = _PART.sub("", start)
    if start.rfind("(") > start.rfind(")"):
        start = start[: start.rindex("(")]  # keep brackets in pairs
    return [name[len(start) :] or name for name in names]
