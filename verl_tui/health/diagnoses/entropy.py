"""Entropy that leaves its course: it falls towards 0 while the reward stands still, or climbs far
beyond its own past while responses grow or the reward falls.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean, median
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from verl_tui.health.blocks import lately
from verl_tui.health.components import components, weights
from verl_tui.health.conditions.condition import Judged, open_breach
from verl_tui.health.conditions.falls import Vanish
from verl_tui.health.diagnoses.dead_groups import NO_SPREAD, SHARES
from verl_tui.health.diagnoses.diagnosis import (
    BlockDiagnosis,
    BlockFinding,
    BlockInputs,
)
from verl_tui.health.finding import Finding, Severity, number
from verl_tui.health.inputs import column_of
from verl_tui.health.learnt import SOLVED, RewardPart, all_at_top, is_solved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.blocks import Block, BlockHistory
    from verl_tui.health.conditions.condition import Breach
    from verl_tui.health.conditions.windows import Flags
    from verl_tui.health.finding import Episode
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


class EntropyCollapse(BlockDiagnosis):
    """Entropy halves and nears 0 over a stretch in which the reward gains nothing, or is gone from
    the first steps; with a rising reward it would be convergence.
    """

    RULE = "entropy-collapse"
    requires: ClassVar[tuple[str, ...]] = ("entropy", "reward")
    needs: ClassVar[int] = 7
    _first_steps: Sequence[Breach] = ()
    """Collapses in the first steps."""

    @property
    def episodes(self) -> Sequence[Episode]:
        """All findings so far; a collapse in the first steps is not repeated by the blocks."""
        early = [self.episode(breach) for breach in self._first_steps]
        later = [one for one in super().episodes if not _is_within_any(one, early)]
        return [*early, *later]

    def look(self, context: RuleContext) -> Finding | str | None:
        """Judge the first steps; if they show nothing, the blocks."""
        found = super().look(context)
        found = (self._early(context) if self.keys else None) or found
        why = _dead(context)
        if why is None:
            return found
        if isinstance(found, Finding):
            message = f"{found.message}; the run is dead: {why}"
            return replace(found, severity=Severity.CRITICAL, message=message)
        return self._dead_from_the_start(context, why) or found

    def _dead_from_the_start(self, context: RuleContext, why: str) -> Finding | None:
        """Return that there has been no entropy at any point, nor a reward at its top."""
        keys = map(context.indicators.get, self.requires)
        entropy, reward = map(context.known, keys)
        if entropy is None or reward is None or len(entropy) < 2 * _DEAD:
            return None
        if entropy.highest > _NIL or not 0 <= reward.highest < SOLVED:
            return None
        return self.finding(
            {"count": len(entropy), "most": entropy.highest, "why": why},
            case="from-the-start",
            since=entropy.steps[0],
            step=entropy.steps[-1],
            key=entropy.key,
            severity=Severity.CRITICAL,
        )

    def _early(self, context: RuleContext) -> Finding | None:
        entropy = context.run.indicator("entropy")
        if entropy is None:
            return None
        points, step = column_of([entropy], context.end)
        gone = Judged(Vanish(_GONE, _BACK, _RECENT, _EARLY), points)
        # Judged by what was known when it was raised: what comes later changes no history.
        self._first_steps = [
            breach
            for breach in gone.breaches
            if not _has_learnt(context.at(breach.raised))
        ]
        held = open_breach(self._first_steps)
        if held is None:
            return None
        message, *evidence = gone.report(self.rule.title, context.duration)
        return self.finding(
            {"gone": message},
            [f"{entropy.key}: {words}" for words in evidence],
            case="early",
            since=held.since,
            step=step,
            key=entropy.key,
        )

    def inputs(self, context: RuleContext) -> BlockInputs | str:
        """Look at entropy, reward and the parts of it with their weights."""
        entropy, reward = map(context.indicators.__getitem__, self.requires)
        parts = components(context.run.keys, reward)
        known = weights(context.run, parts)
        part_weights = tuple(known.get(key, 1.0) for key in parts)
        return BlockInputs((entropy, reward, *parts), part_weights)

    def may_begin(self, blocks: BlockHistory) -> Flags:
        """Return where entropy is low enough, and has lately been far higher."""
        entropy = blocks.levels(0)
        low: Flags = entropy <= _LEFT * np.fmax.reduce(entropy[:3])
        highest = -lately(-entropy, _LAGS[-1] + 1)
        return low & (entropy <= _FALL * highest)

    def judge_blocks(self, blocks: BlockHistory) -> BlockFinding | None:
        """Compare the newest block with earlier ones."""
        opening = max(blocks[:3].known(0), default=0.0)
        now = blocks[-1].levels[0]
        if opening <= 0 or not 0 <= now <= _LEFT * opening or _converged(blocks):
            return None
        if self._all_at_top(blocks):
            return None
        if self.newest is not None and not _risen(blocks[-10:]):
            return self._told(blocks, self.newest.since, opening)
        brink = _brink(blocks)
        if brink is None:
            return None
        return self._told(blocks, self.began(brink), opening)

    def _all_at_top(self, blocks: BlockHistory) -> bool:
        """Return whether the reward is a sum, all of whose parts are at their top."""
        levels = blocks[-1].levels
        parts = []
        for i, weight in enumerate(self.depends_on, start=2):
            low, high = blocks.reach(i)
            parts.append(RewardPart(levels[i], high, low < 0, weight))
        return all_at_top(parts, levels[1])

    def _told(self, blocks: BlockHistory, start: int, opening: float) -> BlockFinding:
        stretch = blocks.since(start)
        reward = stretch.known(1)
        return self.told(
            start,
            self.keys[0],
            opening=opening,
            begun=stretch.known(0)[0],
            share=blocks[-1].levels[0] / opening,
            reward=self.keys[1],
            reward_then=reward[0],
            reward_now=reward[-1],
            change=reward[-1] - reward[0],
            slope=stretch.course(1).t,
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


def _is_within_any(episode: Episode, others: Sequence[Episode]) -> bool:
    """Return whether an episode was raised while another one held."""
    raised = episode.raised_step or 0
    return any(one.cleared_step is None or raised <= one.cleared_step for one in others)


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


def _converged(blocks: BlockHistory) -> bool:
    """Return whether the task is solved, or came most of the way on a scale from 0 to 1."""
    low, best = blocks.reach(1)
    if not 0 <= low <= best <= 1:
        return False
    reward = blocks.levels(1)
    first, now = reward[~np.isnan(reward)][[0, -1]].tolist()
    # What was learnt within the first block shows in how much was left to learn after it.
    most = now >= _NEARLY and now - first >= _LEARNT * (1 - first)
    return most or is_solved(now, low, best)


def _brink(blocks: BlockHistory) -> int | None:
    """Return the last step at which entropy was still near where it began to fall while the reward
    did not rise; None where it did not fall so.
    """
    for lag in _LAGS:
        stretch = blocks[-lag - 1 :]
        if len(stretch) > lag and _fallen(stretch) and not _risen(stretch):
            near = _NEAR * stretch[0].levels[0]
            high = [block.last for block in stretch if block.levels[0] >= near]
            return high[-1] if high else stretch[0].last
    return None


def _fallen(stretch: BlockHistory) -> bool:
    values = stretch.known(0)
    if len(values) < 4 or values[-1] > _FALL * values[0]:
        return False
    return stretch.course(0).t <= _FALL_T


def _risen(stretch: BlockHistory) -> bool:
    rises = ((_FLAT_T, _GAIN), (_SURE_T, _SURE_GAIN))
    is_known = len(stretch.known(1)) >= 4
    return not is_known or any(stretch.moves(1, *least) for least in rises)


class _Explosion(NamedTuple):
    since: int
    usual: float
    signs: tuple[str, ...]


class EntropyExplosion(BlockDiagnosis):
    """Entropy above twice its own past and above where the run began, with length up or reward
    down: the policy turns to noise.

    With a rising reward it is exploration (a raised upper clip): no alarm.
    """

    RULE = "entropy-explosion"
    requires: ClassVar[tuple[str, ...]] = ("entropy",)
    size: ClassVar[int] = 5
    needs: ClassVar[int] = 8
    _found: _Explosion | None = None

    def inputs(self, context: RuleContext) -> BlockInputs | str:
        """Return entropy, response length and reward."""
        names = ("entropy", "response_length", "reward")
        entropy, length, reward = map(context.indicators.get, names)
        if length is None and reward is None:
            return "the log has neither response length nor reward"
        return BlockInputs((entropy, length, reward))

    def may_begin(self, blocks: BlockHistory) -> Flags:
        """Return where entropy is high enough."""
        entropy = blocks.levels(0)
        low = lately(entropy, _PAST + _NOW)
        return (entropy >= _LEAST) & (entropy >= _TIMES * low)

    def lasts(self, blocks: BlockHistory, _: Flags) -> Flags:
        """Return where entropy is still far above its usual size."""
        assert self._found is not None
        found: Flags = blocks.levels(0) >= _OVER * self._found.usual
        return found

    def judge_blocks(self, blocks: BlockHistory) -> BlockFinding | None:
        """Compare the newest blocks with those before."""
        if self.open is None:
            self._found = _explosion(blocks)
        found = self._found
        now = blocks[-1].levels[0]
        if found is None or not now >= _OVER * found.usual:
            return None
        return self.told(
            found.since,
            self.keys[0],
            found.signs,
            usual=found.usual,
            times=now / found.usual,
            signs=" and ".join(found.signs),
        )


def _explosion(blocks: BlockHistory) -> _Explosion | None:
    # A run begins with high entropy: a return to where it began is no explosion. Most blocks come
    # no further than this.
    least = max([_LEAST, *blocks[:3].known(0)])
    now = blocks[-_NOW:].known(0)
    if len(now) < _NOW or min(now) < least:
        return None
    past = blocks[-_NOW - _PAST : -_NOW]
    entropy = past.known(0)
    usual = median(entropy) if len(entropy) >= _NOW else 0.0
    if usual <= 0 or min(now) < _TIMES * usual:
        return None
    signs = _signs(past, blocks[-1])
    if not signs:
        return None
    quiet = [block.first for block in past if block.levels[0] < _OVER * usual]
    since = quiet[-1] if quiet else past[-1].first
    return _Explosion(since, usual, signs)


def _signs(past: BlockHistory, now: Block) -> tuple[str, ...]:
    """Return the other signs in words; none if the reward rises."""
    signs = []
    length = past.known(1)
    reward = past.known(2)
    if reward:
        usual = median(reward)
        size = max(abs(max(reward)), abs(min(reward)))
        if now.levels[2] >= usual + _MORE * size:
            return ()
        if now.levels[2] <= usual - _LESS * size:
            way = f"from {number(usual)} to {number(now.levels[2])}"
            signs.append(f"the reward fell {way}")
    usual_length = median(length) if length else 0.0
    if now.levels[1] >= _LONGER * usual_length > 0:
        way = f"from {number(usual_length)} to {number(now.levels[1])}"
        signs.append(f"responses grew {way}")
    return tuple(signs)
