"""Entropy that leaves its course: it falls towards 0 while the reward stands still, or climbs far
beyond its own past while responses grow or the reward falls.
"""

from __future__ import annotations

from functools import partial
from statistics import fmean, median
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.blocks import following, last_known, lately
from verl_tui.health.conditions.condition import open_breach
from verl_tui.health.conditions.falls import vanish
from verl_tui.health.diagnoses.dead_groups import NO_SPREAD, SHARES
from verl_tui.health.diagnoses.diagnosis import (
    FindingHistory,
    InBlocks,
    Onset,
    Onsets,
    Told,
    diagnosis,
)
from verl_tui.health.finding import Severity, number
from verl_tui.health.inputs import column_of
from verl_tui.health.reward import SOLVED, all_at_top, components, weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.blocks import Blocks
    from verl_tui.health.conditions.condition import Breach
    from verl_tui.health.conditions.windows import Flags, Places
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext

_LAGS = (5, 10, 20, 40)
"""Blocks over which a fall is searched for: collapses take from 50 to some hundred steps."""
_FALL = 0.5
"""Over such a stretch entropy must have halved: heuristic."""
_LEFT = 0.15
"""And be at no more than so much of the run's beginning: heuristic."""
_FALL_T = -4.0
_NEAR = 0.75
"""Down to three quarters it has not begun to fall: entropy always declines somewhat."""
_FLAT_T = 2.0
_SURE_T = 4.0
_GAIN, _SURE_GAIN = 0.05, 0.01
"""A reward has risen if it likely gained a twentieth of its size, or beyond doubt a hundredth: near
its ceiling it gains little, and that is convergence.
"""


_GONE, _BACK, _RECENT, _EARLY = 0.05, 0.15, 3, 60
"""Dead from its first steps: three points in a row at a twentieth of the beginning, within the
first 60 points; it is over beyond 0.15. Heuristic: what converges takes longer, and its reward
rises.
"""
_DEAD, _NIL = 10, 0.01
"""Newest points in a row at which there is no entropy, in nats per token, and nothing to learn:
then the run is dead.
"""
_WELL, _MOST_OF_IT = 0.2, 0.5
"""A reward has learnt if it has gained a fifth of its size, and half of the way to its best so far:
heuristic.
"""
_NEARLY, _LEARNT = 0.9, 0.5
"""A run has converged, not collapsed, if its task is solved; or if its reward is at 0.9, having
gained half of what was left at its beginning.
"""
_NOW = 2
"""Newest blocks that must be beyond."""
_PAST = 40
"""Blocks that make its own past."""
_TIMES, _OVER = 2.0, 1.5
"""Beyond twice its own past it explodes (users' reports), below half as much again it is over
(heuristic).
"""
_LEAST = 0.1
"""Nats a token below which a doubling is no explosion: heuristic."""
_LONGER = 1.2
"""Responses have grown if they are a fifth longer: heuristic."""
_LESS, _MORE = 0.1, 0.05
"""A reward has fallen by a tenth of its size, risen by a twentieth: heuristic."""


@diagnosis("entropy-collapse", "entropy", "reward")
def entropy_collapse(context: RuleContext, rule: Rule) -> InBlocks:
    """Find entropy that halves and nears 0 over a stretch in which the reward gains nothing, or
    that is gone from the first steps; with a rising reward it would be convergence.
    """
    entropy, reward = map(context.indicators.__getitem__, ("entropy", "reward"))
    parts = components(context.run.keys, reward)
    known = weights(context.run, parts)
    return InBlocks(
        (entropy, reward, *parts),
        _find_collapse,
        tuple([known.get(key, 1.0) for key in parts]),
        needs=7,
        then=partial(_with_first_steps, rule),
    )


def _find_collapse(blocks: Blocks, of: InBlocks) -> Onsets:
    entropy = blocks.levels[0]
    opening = max(blocks[:3].known(0), default=0.0)
    low = (opening > 0) & (entropy >= 0) & (entropy <= _LEFT * opening)
    parts = blocks.levels[2:], blocks.highest[2:], blocks.lowest[2:] < 0
    low &= ~all_at_top(*parts, np.array(of.of), blocks.levels[1])
    low &= ~_converged(blocks)
    places = np.flatnonzero(low)
    lags = np.zeros(len(blocks), np.int64)
    for lag in reversed(_LAGS):
        some = places[places >= lag]
        lags[some[_falls(blocks, some, lag)]] = lag
    lasts = lags > 0
    lasts[places] |= ~_risen(blocks, places, 10)

    def at(place: int) -> Onset:
        stretch = blocks[place - lags[place] : place + 1]
        near = stretch.levels[0] >= _NEAR * stretch.levels[0][0]
        brink = stretch.last[np.flatnonzero(near).max(initial=0)]
        return Onset(int(brink), lasts, told)

    def told(place: int, since: int) -> Told:
        stretch = blocks[: place + 1].since(since)
        reward = stretch.known(1)
        return Told(
            {
                "opening": opening,
                "begun": stretch.known(0)[0],
                "share": entropy[place] / opening,
                "reward": of.keys[1],
                "reward_then": reward[0],
                "reward_now": reward[-1],
                "change": reward[-1] - reward[0],
                "slope": stretch.course(1).t,
                "dead": "",
            },
            since=since,
            key=of.keys[0],
        )

    return Onsets(lags > 0, at)


def _falls(blocks: Blocks, places: Places, lag: int) -> Flags:
    """Return at which places entropy has halved over so many blocks and the reward did not rise."""
    entropy = blocks.levels[0]
    counts, _, t = blocks.slopes(0, places, lag + 1)
    found: Flags = (counts >= 4) & (t <= _FALL_T)
    found &= entropy[places] <= _FALL * following(entropy)[places - lag]
    return found & ~_risen(blocks, places, lag + 1)


def _risen(blocks: Blocks, places: Places, size: int) -> Flags:
    """Return at which places the reward has risen over so many blocks, as far as is known."""
    few: Flags = blocks.slopes(1, places, size)[0] < 4
    likely = blocks.moves(1, places, size, _FLAT_T, _GAIN)
    return few | likely | blocks.moves(1, places, size, _SURE_T, _SURE_GAIN)


def _converged(blocks: Blocks) -> Flags:
    """Return where the task is solved, or came most of the way on a scale from 0 to 1."""
    low, best = blocks.lowest[1], blocks.highest[1]
    now, first = last_known(blocks.levels[1]), (blocks.known(1) or [0.0])[0]
    # What was learnt within the first block shows in how much was left to learn after it.
    most = (now >= _NEARLY) & (now - first >= _LEARNT * (1 - first))
    found: Flags = (low >= 0) & (best <= 1) & (most | (now >= SOLVED))
    return found


def _with_first_steps(
    rule: Rule, context: RuleContext, found: FindingHistory
) -> FindingHistory:
    """Return what is found with a collapse in the first steps, which blocks do not repeat, and with
    why nothing can be learnt any more.
    """
    early, held = _early(context, rule)
    later = [one for one in found.breaches if not _is_within_any(one, early)]
    now = held or found.now
    why = _dead(context)
    if why is not None and isinstance(now, Told):
        facts = {**now.facts, "dead": f"; the run is dead: {why}"}
        now = now._replace(facts=facts, severity=Severity.CRITICAL)
    elif why is not None:
        now = _dead_from_the_start(context, why) or now
    return FindingHistory(now, [*early, *later])


def _dead_from_the_start(context: RuleContext, why: str) -> Told | None:
    """Return that there has been no entropy at any point, nor a reward at its top."""
    keys = map(context.indicators.get, ("entropy", "reward"))
    entropy, reward = map(context.known, keys)
    if entropy is None or reward is None or len(entropy) < 2 * _DEAD:
        return None
    if entropy.highest > _NIL or not 0 <= reward.highest < SOLVED:
        return None
    return Told(
        {"count": len(entropy), "most": entropy.highest, "why": why},
        case="from-the-start",
        since=entropy.steps[0],
        step=entropy.steps[-1],
        key=entropy.key,
        severity=Severity.CRITICAL,
    )


def _early(context: RuleContext, rule: Rule) -> tuple[Sequence[Breach], Told | None]:
    """Return the collapses in the first steps, and that which holds."""
    entropy = context.run.indicator("entropy")
    if entropy is None:
        return (), None
    points, step = column_of([entropy], context.end)
    gone = vanish(points, _GONE, _BACK, _RECENT, _EARLY)
    # Judged by what was known when it was raised: what comes later changes no history.
    early = [one for one in gone.breaches if not _has_learnt(context.at(one.raised))]
    held = open_breach(early)
    if held is None:
        return early, None
    message, *evidence = gone.report(rule.title, context.duration)
    return early, Told(
        {"gone": message, "dead": ""},
        [f"{entropy.key}: {words}" for words in evidence],
        case="early",
        since=held.since,
        step=step,
        key=entropy.key,
    )


def _dead(context: RuleContext) -> str | None:
    """Return why nothing can change a policy without entropy any more, None where it may change."""
    entropy = _newest(context, context.indicators.get("entropy"))
    if not entropy or not all(0 <= value <= _NIL for value in entropy):
        return None
    if _all_zero(_newest(context, context.indicators.get("grad_norm"))):
        return "the gradient norm is 0"
    spread = _newest(context, context.indicators.get("reward_std"))
    shares = _newest(context, context.first_key(SHARES))
    high, low = (
        _newest(context, context.names.get(f"critic/advantages/{end}"))
        for end in ("max", "min")
    )
    if min(shares, default=0.0) >= 1 or _all_zero(spread) or _all_zero([*high, *low]):
        return "all answers to a prompt have the same score"
    return None


def _all_zero(values: Sequence[float]) -> bool:
    return 0 <= max(map(abs, values), default=-1.0) <= NO_SPREAD


def _newest(context: RuleContext, key: str | None) -> Sequence[float]:
    """Return the newest points of a metric; none where there are too few or some are no numbers."""
    values = context.finite(key, _DEAD)
    return values if len(values) == _DEAD else ()


def _is_within_any(breach: Breach, others: Sequence[Breach]) -> bool:
    """Return whether a breach was raised while another one held."""
    return any(one.cleared is None or breach.raised <= one.cleared for one in others)


def _has_learnt(context: RuleContext) -> bool:
    """Return whether the reward is near its best and well above its beginning.

    A task may be learnt as fast as entropy falls.
    """
    values = context.finite(context.indicators["reward"])
    if len(values) < 2 * _RECENT - 1:
        return False
    first = values[:_RECENT]
    begun = fmean(first)
    now = fmean(values[-_RECENT:])
    least = max(_WELL * max(abs(begun), abs(now)), _MOST_OF_IT * (max(values) - begun))
    return now - begun >= least and now > max(first)


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


def _find_explosion(blocks: Blocks, of: InBlocks) -> Onsets:
    entropy = blocks.levels[0]
    # A run begins with high entropy: a return to where it began is no explosion.
    least = max([_LEAST, *blocks[:3].known(0)])
    low = lately(entropy, _PAST + _NOW)
    begins = (entropy >= least) & (entropy >= _TIMES * low)

    def at(place: int) -> Onset | None:
        found = _explosion(blocks[: place + 1], least)
        if found is None:
            return None
        since, usual, signs = found

        def told(place: int, since: int) -> Told:
            times = entropy[place] / usual
            facts = {"usual": usual, "times": times, "signs": " and ".join(signs)}
            return Told(facts, signs, since=since, key=of.keys[0])

        return Onset(since, entropy >= _OVER * usual, told)

    return Onsets(begins, at)


def _explosion(blocks: Blocks, least: float) -> tuple[int, float, Sequence[str]] | None:
    """Return since when entropy has exploded, its usual size, and the other signs in words."""
    now = blocks[-_NOW:].known(0)
    past = blocks[max(0, len(blocks) - _NOW - _PAST) : -_NOW]
    known = past.known(0)
    usual = median(known) if len(known) >= _NOW else 0.0
    is_high = len(now) == _NOW and min(now) >= max(least, _TIMES * usual)
    signs = _signs(past, blocks) if usual > 0 and is_high else ()
    if not signs:
        return None
    quiet = past.first[past.levels[0] < _OVER * usual]
    return int([past.first[-1], *quiet][-1]), usual, signs


def _signs(past: Blocks, blocks: Blocks) -> tuple[str, ...]:
    """Return the other signs in words; none if the reward rises."""
    signs = []
    _, length_now, reward_now = blocks.levels[:, -1].tolist()
    length, reward = past.known(1), past.known(2)
    if reward:
        usual = median(reward)
        size = max(abs(max(reward)), abs(min(reward)))
        if reward_now >= usual + _MORE * size:
            return ()
        if reward_now <= usual - _LESS * size:
            signs.append(
                f"the reward fell from {number(usual)} to {number(reward_now)}"
            )
    usual_length = median(length) if length else 0.0
    if length_now >= _LONGER * usual_length > 0:
        way = f"from {number(usual_length)} to {number(length_now)}"
        signs.append(f"responses grew {way}")
    return tuple(signs)
