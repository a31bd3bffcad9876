"""Kinds of conditions: one file a family, one entry here a kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.conditions.changes import (
    cliff,
    jump,
    scaled,
    shift,
    slide,
    surge,
    vanish,
    zero,
)
from verl_tui.health.conditions.column import Candidates, Column, Judged, breaches_of
from verl_tui.health.conditions.stays import (
    course,
    level,
    opening,
    same,
    stays,
    streak,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.health.guide import Rule


class Kind(NamedTuple):
    """A kind of conditions."""

    words: str
    """The entry of `words.toml`."""
    find: Callable[[Column, Rule, float], Candidates]
    """Returns what a column shows to a rule, with its threshold."""
    fields: tuple[str, ...] = ("threshold", "window")
    """The fields that a rule must have."""

    def judge(self, column: Column, rule: Rule, limit: float) -> Judged:
        """Return what is found in a column; of a breach that holds also its newest point."""
        steps, candidates = column.steps, self.find(column, rule, limit)
        found = breaches_of(self.words, steps, steps, candidates, rule.unit)
        if found.facts is not None:
            found.facts["at"] = int(steps[-1])
            found.facts["last"] = float(column.values[-1])
        return found


_FACTOR, _COUNT, _LIMIT = ("factor", "window"), ("threshold", "count"), ("threshold",)
# fmt: off
KINDS = {
    "above": Kind("stays", stays),
    "at-least": Kind("stays", stays),
    "below": Kind("stays", stays),
    "outside": Kind("stays", stays, ("low", "high", "window")),
    "zero": Kind("zero", zero, ("window", "count")),
    "jump": Kind("jump", jump, ("factor", "spread", "window")),
    "cliff": Kind("cliff", lambda of, r, x: cliff(of, r.window, r.recent, 3 * r.recent, x)),
    "vanish": Kind("vanish", lambda of, r, x: vanish(of, x, 3 * x, r.recent, r.window)),
    "surge": Kind("surge", surge, _FACTOR),
    "shift": Kind("shift", shift),
    "slide": Kind("slide", slide, _LIMIT),
    "fall": Kind("slide", slide, _LIMIT),
    "scaled": Kind("scaled", scaled, _FACTOR),
    "streak": Kind("streak", streak, _COUNT),
    "drops": Kind("streak", streak, _COUNT),
    "opening": Kind("opening", opening, _LIMIT),
    "same": Kind("same", same, ("count",)),
    "level": Kind("level", level, ("window",)),
    "course": Kind("course", course, ("window",)),
}
# fmt: on
