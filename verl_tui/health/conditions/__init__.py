"""Kinds of conditions: one file a family, one entry here a kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.conditions.falls import cliff, slide
from verl_tui.health.conditions.restarts import scaled, streak
from verl_tui.health.conditions.spread import jump, surge, zero
from verl_tui.health.conditions.stays import Range, stays, swings
from verl_tui.health.conditions.trend import rising

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


KINDS = {
    "above": Kind(lambda one, rule, limit, _: stays(one, rule, Range(high=limit))),
    "at-least": Kind(
        lambda one, rule, limit, _: stays(one, rule, Range(high=limit, inclusive=True))
    ),
    "below": Kind(lambda one, rule, limit, _: stays(one, rule, Range(low=limit))),
    "outside": Kind(
        lambda one, rule, *_: stays(one, rule, Range(rule.low, rule.high)),
        ("low", "high", "window"),
    ),
    "noisy": Kind(
        lambda one, rule, limit, _: stays(one, rule, Range(high=limit), noise=True)
    ),
    "swings": Kind(lambda one, rule, limit, _: swings(one, limit, rule.window)),
    "zero": Kind(
        lambda one, rule, *_: zero(one, rule.window, rule.count), ("window", "count")
    ),
    "jump": Kind(
        lambda one, rule, limit, _: jump(one, rule, limit),
        ("factor", "spread", "window"),
    ),
    "cliff": Kind(
        lambda one, rule, limit, _: cliff(
            one, rule.window, rule.recent, 3 * rule.recent, limit
        )
    ),
    "surge": Kind(lambda one, rule, *_: surge(one, rule), ("factor", "window")),
    "rising": Kind(
        lambda one, rule, *_: rising(one, rule.window, rule.factor),
        ("factor", "window"),
    ),
    "slide": Kind(
        lambda one, _, limit, __: slide(one, limit, steep=False), ("threshold",)
    ),
    "fall": Kind(
        lambda one, _, limit, __: slide(one, limit, steep=True), ("threshold",)
    ),
    "scaled": Kind(
        lambda one, rule, _, marks: scaled(
            one, rule.factor, rule.window, rule.floor, marks
        ),
        ("factor", "window"),
    ),
    "streak": Kind(
        lambda one, rule, limit, marks: streak(one, limit, rule.count, marks),
        ("threshold", "count"),
    ),
    "drops": Kind(
        lambda one, rule, limit, marks: streak(
            one, limit, rule.count, marks, drops=True
        ),
        ("threshold", "count"),
    ),
}
