"""Kinds of conditions: one file a family, one entry here a kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.health.conditions.falls import Cliff, Slide
from verl_tui.health.conditions.restarts import Drops, Scaled, Streak
from verl_tui.health.conditions.spread import Jump, Surge, Zero
from verl_tui.health.conditions.stays import Noisy, Range, Stays
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


def _stays(rule: Rule, outside: Range, kind: type[Stays] = Stays) -> Stays:
    return kind(outside, rule.window, rule.share, rule.clear, rule.trend, rule.climb)


def _jump(rule: Rule, limit: float) -> Jump:
    floor = max(rule.floor, limit)
    least = rule.least or rule.window
    past = (rule.tail, rule.ignore * floor, rule.window, least)
    return Jump(rule.factor, rule.spread, floor, *past, rule.hold)


KINDS: dict[str, Callable[[Rule, float, tuple[int, ...]], Condition]] = {
    "above": lambda rule, limit, _: _stays(rule, Range(high=limit)),
    "at-least": lambda rule, limit, _: _stays(rule, Range(high=limit, inclusive=True)),
    "below": lambda rule, limit, _: _stays(rule, Range(low=limit)),
    "outside": lambda rule, _, __: _stays(rule, Range(rule.low, rule.high)),
    "noisy": lambda rule, limit, _: _stays(rule, Range(high=limit), Noisy),
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
