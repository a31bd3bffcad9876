"""Parts of a reward that the total hides: one is saturated and carries it, or has never scored."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.windows import lately, means
from verl_tui.health.diagnoses.diagnosis import InBlocks, Shown, Told, diagnosis, went
from verl_tui.health.finding import Severity, number
from verl_tui.health.reward import components, gains, silent_parts
from verl_tui.means import finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.conditions.windows import Blocks, Flags, Places
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.series import Series

_HIGHEST = 0.95
"""The total is at its top at so much of its highest so far: heuristic."""
_EQUAL = 1e-6
_HAVE = ("has", "have")
_MOST, _WINDOW = 12, 12
"""Most parts to compare, and newest blocks in which one is saturated: 120 points, longer than any
start: heuristic.
"""
_CLIMB = 0.2
"""A saturated component must have gained a fifth of its top, or it is a constant: heuristic."""
_TOP, _FOOT = 0.1, 0.25
"""On average it stays within a tenth of its range from its top, and never a quarter below; its
climb began where it was last within a quarter of its range from its lowest.
"""
_STILL = 0.08
"""Another component moves if since then it has gained so much of that range: heuristic."""
_OWN = 0.5
"""Or if half of its own level is new: heuristic."""
_CEILING, _HIGH = 0.9, 0.75
"""One that stays within a tenth of its own top is at its ceiling, as is one that is never below
three quarters of a scale from 0 to 1: heuristic.
"""
_LATELY = 4
"""Newest blocks that show a component's present level."""


@diagnosis("component-imbalance/never-scored", "reward")
def never_scored(context: RuleContext, rule: Rule) -> Told | str | None:
    """Find parts at their floor at all points, under a total that is at its top or rises."""
    reward = context.known(context.indicators["reward"])
    parts = components(context.run.keys, context.indicators["reward"])
    if len(parts) < 2:
        return "the log has no components of the reward"
    if reward is None or len(reward) < rule.window:
        return f"needs {rule.window} points, has {0 if reward is None else len(reward)}"
    silent = silent_parts(context, parts, rule.window)
    level = fmean(finite(reward.tail(rule.window)) or [0.0])
    is_top = level >= _HIGHEST * reward.highest > 0
    if not silent or not (is_top or gains(reward.values)):
        return None
    told = _scoreless(silent, level, reward.steps[-1])
    if is_top:
        return told
    # what still rises may come to score
    return told._replace(case="rises", severity=Severity.INFO)


def _scoreless(silent: Sequence[Series], level: float, step: int) -> Told:
    return Told(
        {
            "names": ", ".join([one.key for one in silent]),
            "have": _HAVE[len(silent) > 1],
            "points": max(map(len, silent)),
            "level": level,
        },
        [
            f"{one.key}: {number(one.highest)} at all of {len(one)} points"
            for one in silent
        ],
        since=min(one.steps[0] for one in silent),
        step=step,
        key=silent[0].key,
    )


@diagnosis("component-imbalance", "reward")
def component_imbalance(context: RuleContext, _: Rule) -> InBlocks | str:
    """Find a component at its top for long, while no other has gained anything."""
    reward = context.indicators["reward"]
    keys = components(context.run.keys, reward)
    if len(keys) < 2:
        return "the log has no components of the reward"
    return InBlocks((reward, *keys[:_MOST]), _find, needs=14)


def _find(blocks: Blocks, of: InBlocks) -> Shown:
    low, top, known = blocks.lowest, blocks.highest, blocks.known
    reach = top - low
    least = np.array([lately(one, _WINDOW) for one in blocks.levels])
    mean = np.array([means(one, _WINDOW) for one in known])
    size = np.maximum(abs(top), abs(low))
    saturated = (reach > _CLIMB * size) & (mean >= top - _TOP * reach)
    saturated &= least >= top - _FOOT * reach
    # at its own top, or at that of a scale from 0 to 1
    at_top = (least >= top - _EQUAL * abs(top)) | ((top <= 1) & (low >= _HIGH))
    at_top |= np.isnan(least) | (least >= _CEILING * top) & (top > 0)
    carries, foot = np.zeros((2, blocks.size), np.int64)
    stuck = np.zeros(known.shape, bool)
    for i in reversed(range(1, len(of.keys))):
        is_stuck, climb = _stuck(blocks, i, at_top)
        new = saturated[i] & is_stuck.any(axis=0)
        carries[new], foot[new], stuck[:, new] = i, climb[new], is_stuck[:, new]
    begins = carries > 0

    def since(at: int) -> int:
        one = carries[at]
        high = known[one, foot[at] : at + 1] >= top[one, at] - _TOP * reach[one, at]
        return int(blocks.last[foot[at] + np.argmax(high)])

    def told(at: int, since: int) -> Told:
        one, others = carries[at], np.flatnonzero(stuck[:, at])
        start, last = int(blocks.last[foot[at]]), int(blocks.last[at])
        return Told(
            {
                "top": float(top[one, at]),
                "names": ", ".join(of.keys[other] or "" for other in others),
                "have": _HAVE[len(others) > 1],
                "foot": start,
            },
            [
                went(of.keys[j], known[j, foot[at]], known[j, at], start, last)
                + f" (means of {of.size} points)"
                for j in (one, *others, 0)
            ],
            since=since,
            key=of.keys[one],
        )

    return Shown(begins, begins, since, told)


def _stuck(blocks: Blocks, i: int, at_top: Flags) -> tuple[Flags, Places]:
    """Return which parts are stuck where one is at its top, none where any moves, and the blocks at
    the foot of that one's climb.
    """
    low, top = blocks.lowest[i], blocks.highest[i]
    places = np.arange(blocks.size)
    is_low = blocks.known[i] <= low + _FOOT * (top - low)
    foot = np.maximum.accumulate(np.where(is_low, places, 0))
    now = np.array([means(one, _LATELY) for one in blocks.known])
    gain = now - blocks.known[:, foot]
    moves = (gain >= _OWN * abs(now)) & (now > 0) | ~(gain < _STILL * (top - low))
    moves &= ~at_top
    stuck = ~at_top & ~moves
    stuck[[0, i]] = moves[[0, i]] = False
    return stuck & ~moves.any(axis=0), foot
