"""Conditions: causal functions of a metric's whole column, of which nothing found depends on later
points. Each returns where it may begin, and what it is from there on.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from verl_tui.health.finding import WORDS, Finding, Severity, filled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from verl_tui.health.conditions.windows import Places

KEPT_BREACHES = 100
"""Breaches remembered of one metric: a history is read by people."""


class Breach(NamedTuple):
    """A breach from its first step until it was over."""

    since: int
    """First step of the breach."""
    raised: int
    """Step at which it was certain."""
    what: str
    """A few words to follow the metric's title: `was above 0.1, mean 0.14`."""
    cleared: int | None = None
    """Step at which it was over, None while it lasts."""
    severity: Severity | None = None
    """Another one than the guide's."""


def open_breach(breaches: Sequence[Breach]) -> Breach | None:
    """Return the breach that holds now, None without one."""
    return breaches[-1] if breaches and breaches[-1].cleared is None else None


class Found(NamedTuple):
    """What a rule finds in one column, now and before."""

    now: Finding | str | None
    """The finding now, or why it does not judge, or None if nothing is found."""
    breaches: Iterable[Breach] = ()
    """All so far, oldest first."""
    title: str = ""
    """What the words of breaches follow."""
    key: str | None = None
    """The log's own key of the metric that was judged."""


class Column(NamedTuple):
    """Finite numbers by ascending step."""

    steps: NDArray[np.int64]
    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.steps)


class Spell(NamedTuple):
    """A breach in a column, by places; one that comes back soon is the same breach."""

    first: int
    raised: int
    """Where it was certain."""
    cleared: int | None
    facts: Mapping[str, Any]
    """What its words have blanks for; `case` names other words than the usual ones."""


class Shown(NamedTuple):
    """What a column shows."""

    needs: int
    """Fewest points to judge."""
    places: Iterable[int]
    """Where a breach may begin, ascending: it does where none holds."""
    spell: Callable[[int], Spell]
    """Returns that which begins at a place."""
    cooldown: int = 0
    """Points within which a breach that comes back is the same one, so that a value that oscillates
    around its threshold is reported once.
    """
    seen: int | None = None
    """How many points count, if not all do."""
    now: Callable[[int], Mapping[str, Any]] = lambda _: {}
    """Returns what else is known of a breach that holds and began at a step."""


class Judged:
    """What is found in a column, or in blocks."""

    def __init__(
        self, kind: str, steps: Places, shown: Shown, starts: Places | None = None
    ) -> None:
        """Find all breaches.

        Args:
            kind: The name of its words.
            steps: The step of each place.
            shown: What is shown at these.
            starts: The steps from which breaches began, if they are others.
        """
        self.words, self._shown = WORDS[kind], shown
        self.breaches: deque[Breach] = deque(maxlen=KEPT_BREACHES)
        self.spell: Spell | None = None
        """The newest one."""
        self.newest = 0, 0.0
        """Step and value of a column's newest point."""
        self.seen = len(steps) if shown.seen is None else shown.seen
        begun = steps if starts is None else starts
        until: int | None = -1
        for place in shown.places:
            if until is None:
                break
            if place > until:
                spell = shown.spell(place)
                since, raised = int(begun[spell.first]), int(steps[spell.raised])
                breach = Breach(since, raised, filled(self._case(spell), spell.facts))
                if self.spell and spell.raised - until <= shown.cooldown:
                    breach = self.breaches.pop()
                self.spell, until = spell, spell.cleared
                end = None if until is None else int(steps[until])
                self.breaches.append(breach._replace(cleared=end))

    def _case(self, spell: Spell) -> str:
        own = self.words.get(spell.facts.get("case", ""), {})
        return str({**self.words, **own}["what"])

    @property
    def needs(self) -> str | None:
        """Why it cannot be judged yet, None where there are enough points."""
        needs = self._shown.needs
        return f"needs {needs} points, has {self.seen}" if self.seen < needs else None

    @property
    def open(self) -> Breach | None:
        """The breach that holds now."""
        return open_breach(self.breaches)

    @property
    def facts(self) -> Mapping[str, Any]:
        """What is known of it."""
        assert self.open is not None
        assert self.spell is not None
        since = self.open.since
        return {**self.spell.facts, "since": since, **self._shown.now(since)}


def segments(column: Column, restarts: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield the first place of each segment of a run, and the one behind its last."""
    starts = np.searchsorted(column.steps, sorted(restarts)).tolist()
    yield from pairwise(sorted({0, *starts, len(column)}))
