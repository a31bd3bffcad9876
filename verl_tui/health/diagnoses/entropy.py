"""Entropy that leaves its course: it falls towards 0 while the reward stands still, or climbs far
beyond its own past while responses grow or the reward falls.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.windows import lately, medians, pasts
from verl_tui.health.diagnoses.dead_groups import NO_SPREAD, SHARES
from verl_tui.health.diagnoses.diagnosis import InBlocks, Shown, Told, diagnosis
from verl_tui.health.exemptions import has_learnt_at_once
from verl_tui.health.finding import number
from verl_tui.health.reward import SOLVED, parts_solved

if TYPE_CHECKING:
    from verl_tui.health.conditions.windows import Blocks, Flags
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext

_LAGS = (5, 10, 20, 40)
"""Blocks over which a fall is searched for: collapses take from 50 to some hundred steps."""
_FALL, _LEFT, _FALL_T = 0.5, 0.15, -4.0
"""Over such a stretch entropy must have halved beyond doubt, and be at no more than so much of the
run's beginning: heuristic.
"""
_NEAR = 0.25
"""Up to a quarter of the way it has not begun to fall: entropy always declines somewhat."""
_LIKELY, _SURE = (2.0, 0.05), (4.0, 0.01)
"""A reward has risen if it likely gained a twentieth of its size, or beyond doubt a hundredth: near
its ceiling it gains little, and that is convergence.
"""
_NEARLY, _LEARNT = 0.9, 0.5
"""A run has converged, not collapsed, if its task is solved; or if its reward is at 0.9, having
gained half of what was left at its beginning.
"""
_DEAD, _NIL = 10, 0.01
"""Newest points in a row at which there is no entropy, in nats per token, and nothing to learn:
then the run is dead.
"""
_NOW, _PAST = 2, 40
"""Newest blocks that must be beyond, and those that make its own past."""
_TIMES, _OVER = 2.0, 1.5
"""Beyond twice its own past it explodes (users' reports), below half as much again it is over
(heuristic).
"""
_LEAST = 0.1
"""Nats a token below which a doubling is no explosion: heuristic."""
_LONGER, _LESS, _MORE = 1.2, 0.1, 0.05
"""Responses have grown if they are a fifth longer, a reward has fallen by a tenth of its size,
risen by a twentieth: heuristic.
"""


@diagnosis("entropy-collapse", "entropy", "reward")
def entropy_collapse(context: RuleContext, _: Rule) -> InBlocks | str:
    """Find entropy that halves and nears 0 over a stretch in which the reward gains nothing; with a
    rising reward, or once a task is solved, it would be convergence.
    """
    if done := parts_solved(context):
        return done
    keys = (context.indicators["entropy"], context.indicators["reward"])
    return InBlocks(keys, _find_collapse, needs=7, lasts=False)


def _find_collapse(blocks: Blocks, of: InBlocks) -> Shown:
    entropy = blocks.levels[0]
    opening = float(np.fmax.reduce(entropy[:3], initial=0.0))
    low = (opening > 0) & (entropy >= 0) & (entropy <= _LEFT * opening)
    # The task is solved, or most of the way on a scale from 0 to 1 is behind it; what was learnt
    # within the first block shows in how much was left to learn after it.
    now = blocks.known[1]
    first = now[np.isfinite(now)][:1].sum()
    done = (now >= _NEARLY) & (now - first >= _LEARNT * (1 - first)) | (now >= SOLVED)
    low &= ~(done & (blocks.lowest[1] >= 0) & (blocks.highest[1] <= 1))
    lags = np.zeros(blocks.size, np.int64)
    for lag in reversed(_LAGS) if low.any() else ():
        counts, _, t = blocks.slopes(0, lag + 1)
        falls = (counts >= 4) & (t <= _FALL_T)
        falls &= entropy <= _FALL * blocks.before(0, lag)
        falls[:lag] = False
        lags[low & falls & ~_risen(blocks, lag + 1)] = lag

    def told(at: int, since: int) -> Told:
        start = int(np.searchsorted(blocks.last, since))
        return Told(
            {
                "opening": opening,
                "begun": float(blocks.known[0, start]),
                "share": entropy[at] / opening,
                "reward": of.keys[1],
                "reward_then": float(now[start]),
                "reward_now": float(now[at]),
                "change": now[at] - now[start],
            },
            since=since,
            key=of.keys[0],
        )

    return Shown(
        lags > 0,
        (lags > 0) | (low & ~_risen(blocks, 10)),
        lambda at: int(blocks.last[blocks.brink(0, at, _NEAR, int(lags[at]))]),
        told,
    )


def _risen(blocks: Blocks, size: int) -> Flags:
    """Return where the reward has risen over so many blocks, as far as is known."""
    few: Flags = blocks.slopes(1, size)[0] < 4
    return few | blocks.moves(1, size, *_LIKELY) | blocks.moves(1, size, *_SURE)


@diagnosis("entropy-collapse/dead", "entropy", "reward")
def dead(context: RuleContext, _: Rule) -> Told | str | None:
    """Find that there is neither entropy nor anything to learn from, below the reward's top."""
    keys = (context.indicators[id] for id in ("entropy", "reward"))
    entropy, reward = map(context.known, keys)
    if entropy is None or reward is None:
        return "no values so far"
    if len(entropy) < 2 * _DEAD:
        return f"needs {2 * _DEAD} points, has {len(entropy)}"
    high = np.flatnonzero(~(abs(np.array(entropy.values)) <= _NIL))
    start = int(high.max(initial=-1)) + 1
    is_done = reward.highest > 1 or reward.values[-1] >= SOLVED
    lives = is_done or start > len(entropy) - _DEAD
    why = None if lives or has_learnt_at_once(context, "") else _why_dead(context)
    if why is None:
        return None
    # When it was certain depends on what else was logged by then: the history has its fall.
    return Told(
        {"most": max(entropy.values[start:]), "why": why},
        since=entropy.steps[start],
        step=entropy.steps[-1],
        key=entropy.key,
        certain=False,
    )


def _why_dead(context: RuleContext) -> str | None:
    """Return why nothing can change the policy any more, None where it may change."""
    if _most(context, context.indicators.get("grad_norm")) <= NO_SPREAD:
        return "the gradient norm is 0"
    spread = _most(context, context.indicators.get("reward_std"))
    shares = context.finite(context.first_key(SHARES), _DEAD)
    ends = (context.names.get(f"critic/advantages/{end}") for end in ("max", "min"))
    advantage = max(_most(context, end) for end in ends)
    if min(shares, default=0.0) >= 1 or min(spread, advantage) <= NO_SPREAD:
        return "all answers to a prompt have the same score"
    return None


def _most(context: RuleContext, key: str | None) -> float:
    """Return the greatest size of a metric's newest points, infinite where there are too few."""
    values = context.finite(key, _DEAD)
    return max(map(abs, values)) if len(values) == _DEAD else math.inf


@diagnosis("entropy-explosion", "entropy")
def entropy_explosion(context: RuleContext, _: Rule) -> InBlocks | str:
    """Find entropy above twice its own past and above where the run began, with length up or reward
    down: the policy turns to noise.

    With a rising reward it is exploration (a raised upper clip): no alarm.
    """
    names = ("entropy", "response_length", "reward")
    entropy, length, reward = map(context.indicators.get, names)
    if length is None and reward is None:
        return "the log has neither response length nor reward"
    return InBlocks((entropy, length, reward), _find_explosion, size=5, needs=8)


def _find_explosion(blocks: Blocks, of: InBlocks) -> Shown:
    entropy, length, reward = blocks.levels
    # A run begins with high entropy: a return to where it began is no explosion.
    least = float(np.fmax.reduce(entropy[:3], initial=_LEAST))
    now = lately(entropy, _NOW)
    high = (now >= least) & (now >= _TIMES * lately(entropy, _PAST + _NOW))
    places = np.flatnonzero(high)
    past = np.full((3, blocks.size), np.nan)
    past[:, places] = [
        medians(pasts(one, places, _PAST, _NOW)) for one in blocks.levels
    ]
    was, was_long, was_good = past
    size = np.maximum(abs(blocks.highest[2]), abs(blocks.lowest[2]))
    grew = (length >= _LONGER * was_long) & (was_long > 0)
    fell = reward <= was_good - _LESS * size
    rose = reward >= was_good + _MORE * size
    begins = (now >= _TIMES * was) & (was > 0) & (grew | fell) & ~rose

    def since(at: int) -> int:
        quiet = np.flatnonzero(entropy[: at + 1 - _NOW] < _OVER * was[at])
        return int(blocks.first[quiet[-1] if len(quiet) else at - _NOW])

    def told(at: int, since: int) -> Told:
        first = places[begins[places] & (places <= at)][-1]
        signs = [
            f"{words} from {number(before[first])} to {number(course[first])}"
            for words, shows, before, course in (
                ("the reward fell", fell, was_good, reward),
                ("responses grew", grew, was_long, length),
            )
            if shows[first]
        ]
        facts = {
            "usual": float(was[first]),
            "times": entropy[at] / was[first],
            "signs": " and ".join(signs),
        }
        return Told(facts, signs, since=since, key=of.keys[0])

    return Shown(begins, lambda at: entropy >= _OVER * was[at], since, told)
