"""Kinds of conditions: one file a family, one entry here a kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.conditions.falls import Cliff, Slide
from verl_tui.health.conditions.restarts import Drops, Scaled, Streak
from verl_tui.health.conditions.spread import Jump, Surge, Zero
from verl_tui.health.conditions.stays import Noisy, Range, Stays, Swings
from verl_tui.health.conditions.trend import Rising

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.health.conditions.condition import Condition
    from verl_tui.health.guide import Rule


class Kind(NamedTuple):
    """A kind of conditions."""

    make: Callable[[Rule, float, tuple[int, ...]], Condition]
    """Returns the condition of a rule with its threshold and the first steps of the run's later
    segments.
    """
    fields: tuple[str, ...] = ("threshold", "window")
    """The fields that a rule must have."""


def make(rule: Rule, unit: float, restarts: tuple[int, ...]) -> Condition:
    """Return the condition of a rule.

    Args:
        rule: The rule.
        unit: What the threshold is a multiple of; 1 for an absolute one.
        restarts: First steps of the run's later segments.
    """
    return KINDS[rule.condition].make(rule, rule.threshold * unit, restarts)


def _stays(rule: Rule, outside: Range, kind: type[Stays] = Stays) -> Stays:
    return kind(outside, rule.window, rule.share, rule.clear, rule.trend, rule.climb)


def _jump(rule: Rule, limit: float, _: object) -> Jump:
    floor = max(rule.floor, limit)
    least = rule.least or rule.window
    past = (rule.tail, rule.ignore * floor, rule.window, least)
    return Jump(rule.factor, rule.spread, floor, *past, rule.hold)


KINDS = {
    "above": Kind(lambda rule, limit, _: _stays(rule, Range(high=limit))),
    "at-least": Kind(
        lambda rule, limit, _: _stays(rule, Range(high=limit, inclusive=True))
    ),
    "below": Kind(lambda rule, limit, _: _stays(rule, Range(low=limit))),
    "outside": Kind(
        lambda rule, _, __: _stays(rule, Range(rule.low, rule.high)),
        ("low", "high", "window"),
    ),
    "noisy": Kind(lambda rule, limit, _: _stays(rule, Range(high=limit), Noisy)),
    "swings": Kind(lambda rule, limit, _: Swings(limit, rule.window)),
    "zero": Kind(
        lambda rule, _, __: Zero(rule.window, rule.count), ("window", "count")
    ),
    "jump": Kind(_jump, ("factor", "spread", "window")),
    "cliff": Kind(
        lambda rule, limit, _: Cliff(rule.window, rule.recent, 3 * rule.recent, limit)
    ),
    "surge": Kind(
        lambda rule, _, __: Surge(rule.window, rule.recent, rule.factor, rule.floor),
        ("factor", "window"),
    ),
    "rising": Kind(
        lambda rule, _, __: Rising(rule.window, rule.factor), ("factor", "window")
    ),
    "slide": Kind(lambda _, limit, __: Slide(limit, steep=False), ("threshold",)),
    "fall": Kind(lambda _, limit, __: Slide(limit, steep=True), ("threshold",)),
    "scaled": Kind(
        lambda rule, _, marks: Scaled(rule.factor, rule.window, rule.floor, marks),
        ("factor", "window"),
    ),
    "streak": Kind(
        lambda rule, limit, marks: Streak(limit, rule.count, marks),
        ("threshold", "count"),
    ),
    "drops": Kind(
        lambda rule, limit, marks: Drops(limit, rule.count, marks),
        ("threshold", "count"),
    ),
}
