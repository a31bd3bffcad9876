"""Base of all conditions: causal functions of a metric's whole column."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from verl_tui.health.finding import filled, number
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

WORDS = toml_table(__file__, "words.toml")
"""What conditions say, by their kind."""
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


def open_breach(breaches: Sequence[Breach]) -> Breach | None:
    """Return the breach that holds now, None without one."""
    return breaches[-1] if breaches and breaches[-1].cleared is None else None


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
    """What its condition's words have blanks for; of a breach that holds, how it is now."""


class Condition(ABC):
    """A causal check of a whole column: what it finds up to a point depends on nothing after it."""

    needs: int
    """Fewest points to judge."""
    cooldown: int = 0
    """Points within which a breach that comes back is the same one, so that a value that oscillates
    around its threshold is reported once.
    """
    words: str = ""
    """Its entry in `words.toml`; its name if empty."""

    @abstractmethod
    def spells(self, column: Column) -> Iterable[Spell]:
        """Return all breaches, oldest first; the last one may hold."""

    def now(self, column: Column, since: int) -> Mapping[str, object]:  # noqa: ARG002 - most do
        """Return what else is known of a breach that holds and began at a step."""
        return {}

    def derived(self, column: Column) -> Column:
        """Return the numbers that are judged; a condition may derive others."""
        return column

    def seen(self, column: Column) -> int:
        """Return how many points count."""
        return len(column)


class Judged:
    """What a condition finds in a column."""

    def __init__(self, condition: Condition, column: Column) -> None:
        self.condition = condition
        self.seen = condition.seen(column)
        self.column = condition.derived(column)
        self.breaches: deque[Breach] = deque(maxlen=KEPT_BREACHES)
        self.spell: Spell | None = None
        """The newest one."""
        with np.errstate(over="raise", divide="ignore", invalid="ignore"):
            for one in condition.spells(self.column):
                self._note(one, self.spell)
                self.spell = one

    def _note(self, spell: Spell, before: Spell | None) -> None:
        steps = self.column.steps
        what = filled(self._words("what"), spell.facts)
        breach = Breach(int(steps[spell.first]), int(steps[spell.raised]), what)
        over = before.cleared if before is not None else None
        if over is not None and spell.raised - over <= self.condition.cooldown:
            breach = self.breaches.pop()
        end = int(steps[spell.cleared]) if spell.cleared is not None else None
        self.breaches.append(breach._replace(cleared=end))

    @property
    def has_enough(self) -> bool:
        """True if there are enough points to judge."""
        return self.seen >= self.condition.needs

    @property
    def open(self) -> Breach | None:
        """The breach that holds now."""
        return open_breach(self.breaches)

    def _words(self, part: str, case: str = "") -> Any:
        kind = WORDS[self.condition.words or type(self.condition).__name__.lower()]
        return kind.get(case, {}).get(part, kind[part])

    def report(
        self, title: str, duration: Callable[[int], str], note: str = "", says: str = ""
    ) -> Sequence[str]:
        """Return the message on the breach that holds now, and its evidence, a sentence each.

        Args:
            title: The metric in a few words, e.g. `policy KL`.
            duration: Formats a number of steps, with minutes where the pace is known.
            note: What the threshold is relative to, e.g. `128% of the limit 512, assumed`.
            says: A sentence's beginning that replaces `<title> has stayed <where>`.
        """
        assert self.open is not None
        assert self.spell is not None
        since, last = self.open.since, float(self.column.values[-1])
        step = int(self.column.steps[-1])
        facts = {
            **self.spell.facts,
            **self.condition.now(self.column, since),
            "title": title,
            "since": since,
            "long": duration(step - since + 1),
            "last": last,
            "newest": f"{number(last)} at step {step}",
            "note": note and f" ({note})",
            "says": says,
        }
        often = "says-often" if facts.get("stayed") == "mostly stayed" else "says"
        case = often if says else ""
        said = [self._words("message", case), *self._words("evidence")]
        own = self.spell.facts.get("sentences", ())
        return [*(filled(one, facts) for one in said), *own]
