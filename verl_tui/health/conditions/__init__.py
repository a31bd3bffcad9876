"""Kinds of conditions: one file a family, one entry here a kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.health.conditions.cliff import Cliff
from verl_tui.health.conditions.scale import Scaled
from verl_tui.health.conditions.slide import Slide
from verl_tui.health.conditions.spread import Jump, Leap, Surge, Zero
from verl_tui.health.conditions.stays import Noisy, Range, Stays, Steadiness
from verl_tui.health.conditions.streak import Drops, Streak
from verl_tui.health.conditions.swings import Swings
from verl_tui.health.conditions.trend import Rising

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.health.conditions.condition import Condition
    from verl_tui.health.guide import Rule


def make(rule: Rule, unit: float, restarts: tuple[int, ...]) -> Condition:
    """Return the condition of a rule.

    Args:
        rule: The rule.
        unit: What the threshold is a multiple of; 1 for an absolute one.
        restarts: First steps of the run's later segments.
    """
    return KINDS[rule.condition](rule, rule.threshold * unit, restarts)


def _steady(rule: Rule) -> Steadiness:
    return Steadiness(rule.window, rule.share, rule.clear, rule.trend, rule.climb)


def _jump(rule: Rule, limit: float) -> Jump:
    floor = max(rule.floor, limit)
    leap = Leap(rule.factor, rule.spread, floor, rule.tail, rule.ignore * floor)
    return Jump(
        leap, window=rule.window, least=rule.least or rule.window, hold=rule.hold
    )


KINDS: dict[str, Callable[[Rule, float, tuple[int, ...]], Condition]] = {
    "above": lambda rule, limit, _: Stays(Range(high=limit), _steady(rule)),
    "at-least": lambda rule, limit, _: Stays(
        Range(high=limit, inclusive=True), _steady(rule)
    ),
    "below": lambda rule, limit, _: Stays(Range(low=limit), _steady(rule)),
    "outside": lambda rule, _, __: Stays(Range(rule.low, rule.high), _steady(rule)),
    "noisy": lambda rule, limit, _: Noisy(Range(high=limit), _steady(rule)),
    "swings": lambda rule, limit, _: Swings(limit, rule.window),
    "zero": lambda rule, _, __: Zero(window=rule.window, count=rule.count),
    "jump": lambda rule, limit, _: _jump(rule, limit),
    "cliff": lambda rule, limit, _: Cliff(
        window=rule.window, recent=rule.recent, gap=3 * rule.recent, share=limit
    ),
    "surge": lambda rule, _, __: Surge(
        window=rule.window, recent=rule.recent, factor=rule.factor, floor=rule.floor
    ),
    "rising": lambda rule, _, __: Rising(window=rule.window, factor=rule.factor),
    "slide": lambda _, limit, __: Slide(share=limit, steep=False),
    "fall": lambda _, limit, __: Slide(share=limit, steep=True),
    "scaled": lambda rule, _, restarts: Scaled(
        factor=rule.factor, least=rule.window, floor=rule.floor, restarts=restarts
    ),
    "streak": lambda rule, limit, restarts: Streak(limit, rule.count, restarts),
    "drops": lambda rule, limit, restarts: Drops(limit, rule.count, restarts),
}
