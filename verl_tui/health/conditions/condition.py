"""Conditions: causal functions of a metric's whole column, of which nothing found depends on later
points. Each yields its terms, then all breaches, oldest first; the last one may hold.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec

import numpy as np

from verl_tui.health.finding import filled, number
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

P = ParamSpec("P")
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


class Terms(NamedTuple):
    """What a condition needs."""

    needs: int
    """Fewest points to judge."""
    cooldown: int = 0
    """Points within which a breach that comes back is the same one, so that a value that oscillates
    around its threshold is reported once.
    """
    seen: int | None = None
    """How many points count, if not all do."""
    now: Callable[[int], Mapping[str, object]] | None = None
    """Returns what else is known of a breach that holds and began at a step."""


class Judged:
    """What a condition finds in a column."""

    def __init__(
        self, kind: str, column: Column, found: Iterator[Terms | Spell]
    ) -> None:
        self._kind = WORDS[kind]
        self.breaches: deque[Breach] = deque(maxlen=KEPT_BREACHES)
        self.spell: Spell | None = None
        """The newest one."""
        with np.errstate(over="raise", divide="ignore", invalid="ignore"):
            terms = next(found)
            assert isinstance(terms, Terms)
            self.terms: Terms = terms
            self.seen = len(column) if terms.seen is None else terms.seen
            self.column = column
            for one in found:
                assert isinstance(one, Spell)
                self._note(one, self.spell)
                self.spell = one

    def _note(self, spell: Spell, before: Spell | None) -> None:
        steps = self.column.steps
        what = filled(self._kind["what"], spell.facts)
        breach = Breach(int(steps[spell.first]), int(steps[spell.raised]), what)
        over = before.cleared if before is not None else None
        if over is not None and spell.raised - over <= self.terms.cooldown:
            breach = self.breaches.pop()
        end = int(steps[spell.cleared]) if spell.cleared is not None else None
        self.breaches.append(breach._replace(cleared=end))

    @property
    def needs(self) -> str | None:
        """Why it cannot be judged yet, None where there are enough points."""
        needs = self.terms.needs
        return f"needs {needs} points, has {self.seen}" if self.seen < needs else None

    @property
    def open(self) -> Breach | None:
        """The breach that holds now."""
        return open_breach(self.breaches)

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
            **(self.terms.now(since) if self.terms.now else {}),
            "title": title,
            "since": since,
            "long": duration(step - since + 1),
            "last": last,
            "newest": f"{number(last)} at step {step}",
            "note": note and f" ({note})",
            "says": says,
        }
        often = "says-often" if facts.get("stayed") == "mostly stayed" else "says"
        kind = {**self._kind, **self._kind.get(often if says else "", {})}
        said = [kind["message"], *kind["evidence"]]
        own = self.spell.facts.get("sentences", ())
        return [*(filled(one, facts) for one in said), *own]


def condition(
    find: Callable[Concatenate[Column, P], Iterator[Terms | Spell]],
) -> Callable[Concatenate[Column, P], Judged]:
    """Declare a function as a condition, with the words of its name."""

    def judged(column: Column, /, *args: P.args, **kwargs: P.kwargs) -> Judged:
        return Judged(find.__name__, column, find(column, *args, **kwargs))

    return judged


def spells(places: Iterable[int], spell: Callable[[int], Spell]) -> Iterator[Spell]:
    """Yield the breaches that begin at some places, ascending, each after the one before is over.

    Args:
        places: Where a breach may begin.
        spell: Returns that of a place.
    """
    until = -1
    for place in places:
        if place > until:
            one = spell(place)
            yield one
            if one.cleared is None:
                return
            until = one.cleared


def segments(column: Column, restarts: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield the first place of each segment of a run, and the one behind its last."""
    starts = np.searchsorted(column.steps, sorted(restarts)).tolist()
    yield from pairwise(sorted({0, *starts, len(column)}))
