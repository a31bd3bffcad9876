"""Kinds of conditions: one file a family, one entry here a kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.conditions.falls import cliff, slide, vanish, zero
from verl_tui.health.conditions.rises import jump, rising, scaled, surge
from verl_tui.health.conditions.stays import Range, stays, streak, swings

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.health.conditions.condition import Column, Judged
    from verl_tui.health.guide import Rule

    Restarts = tuple[int, ...]


class Kind(NamedTuple):
    """A kind of conditions."""

    judge: Callable[[Column, Rule, float, Restarts], Judged]
    """Returns what is found in a column by a rule, its threshold, and the first steps of the run's
    later segments.
    """
    fields: tuple[str, ...] = ("threshold", "window")
    """The fields that a rule must have."""


_FACTOR, _COUNT = ("factor", "window"), ("threshold", "count")
# fmt: off
KINDS = {
    "above": Kind(lambda of, rule, limit, _: stays(of, rule, Range(high=limit))),
    "at-least": Kind(lambda of, rule, limit, _: stays(of, rule, Range(high=limit, inclusive=True))),
    "below": Kind(lambda of, rule, limit, _: stays(of, rule, Range(low=limit))),
    "outside": Kind(
        lambda of, rule, *_: stays(of, rule, Range(rule.low, rule.high)), ("low", "high", "window")
    ),
    "swings": Kind(lambda of, rule, limit, _: swings(of, limit, rule.window)),
    "zero": Kind(lambda of, rule, *_: zero(of, rule.window, rule.count), ("window", "count")),
    "jump": Kind(lambda of, rule, limit, _: jump(of, rule, limit), ("factor", "spread", "window")),
    "cliff": Kind(
        lambda of, rule, limit, _: cliff(of, rule.window, rule.recent, 3 * rule.recent, limit)
    ),
    "vanish": Kind(
        lambda of, rule, limit, _: vanish(of, limit, 3 * limit, rule.recent, rule.window)
    ),
    "surge": Kind(lambda of, rule, *_: surge(of, rule), _FACTOR),
    "rising": Kind(lambda of, rule, *_: rising(of, rule.window, rule.factor), _FACTOR),
    "slide": Kind(lambda of, _, limit, __: slide(of, limit, steep=False), ("threshold",)),
    "fall": Kind(lambda of, _, limit, __: slide(of, limit, steep=True), ("threshold",)),
    "scaled": Kind(
        lambda of, rule, *_: scaled(of, rule.factor, rule.window, rule.floor), _FACTOR
    ),
    "streak": Kind(lambda of, rule, limit, marks: streak(of, limit, rule.count, marks), _COUNT),
    "drops": Kind(
        lambda of, rule, limit, marks: streak(of, limit, rule.count, marks, drops=True), _COUNT
    ),
}
# fmt: on
