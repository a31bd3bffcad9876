"""Entropy falls towards 0 while the reward stands still; with a rising reward it would be
convergence.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from verl_tui.health.components import components, weights
from verl_tui.health.conditions.condition import Judged, number, open_breach
from verl_tui.health.conditions.falls import Vanish
from verl_tui.health.diagnoses.dead_share import NO_SPREAD, SHARES
from verl_tui.health.diagnoses.diagnosis import (
    BlockDiagnosis,
    BlockFinding,
    BlockInputs,
    blocks_since,
    column,
    course,
)
from verl_tui.health.finding import Finding, NotJudged, Severity
from verl_tui.health.inputs import column_of
from verl_tui.health.learnt import RewardPart, all_at_top

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
_TOP, _LEARNT, _SOLVED = 0.95, 0.5, 0.9
"""A run has converged, not collapsed, if its reward is at 0.95 of 1; or at 0.9, having gained half
of what was left at its beginning.
"""


class EntropyCollapse(BlockDiagnosis):
    """Entropy halves and nears 0 over a stretch in which the reward gains nothing, or is gone from
    the first steps.
    """

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

    def judge(self, context: RuleContext) -> Finding | NotJudged | None:
        """Judge the first steps; if they show nothing, the blocks."""
        found = super().judge(context)
        early = self._early(context) if self._inputs.keys else None
        found = early if early is not None else found
        why = _dead(context)
        if why is None:
            return found
        if isinstance(found, Finding):
            message = f"{found.message}; the run is dead: {why}"
            return replace(found, severity=Severity.CRITICAL, message=message)
        return self._dead_from_the_start(context, why) or found

    def _dead_from_the_start(self, context: RuleContext, why: str) -> Finding | None:
        """Return that there has been no entropy at any point, nor a reward at its top."""
        key = context.indicators["entropy"]
        entropy, reward = (
            context.known(context.indicators[id]) for id in self.requires
        )
        if entropy is None or reward is None or len(entropy) < 2 * _DEAD:
            return None
        if entropy.highest > _NIL or not 0 <= reward.highest < _TOP:
            return None
        return self.finding(
            f"entropy has been next to 0 at all of {len(entropy)} points, and the reward is not "
            f"at its top; the run is dead: {why}",
            (f"{key}: {number(entropy.highest)} at most",),
            since=entropy.steps[0],
            step=entropy.steps[-1],
            key=key,
            severity=Severity.CRITICAL,
            advice=_EARLY_ADVICE,
        )

    def _early(self, context: RuleContext) -> Finding | None:
        key = context.indicators["entropy"]
        entropy = context.run.series(key)
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
            f"{message}, and the reward did not rise: the policy gives only one answer",
            [f"{key}: {words}" for words in evidence],
            since=held.since,
            step=step,
            key=key,
            advice=_EARLY_ADVICE,
        )

    def inputs(self, context: RuleContext) -> BlockInputs | str:
        """Look at entropy, reward and the parts of it with their weights."""
        entropy, reward = map(context.indicators.__getitem__, self.requires)
        parts = components(context.run.keys, reward)
        known = weights(context.run, parts)
        part_weights = tuple(known.get(key, 1.0) for key in parts)
        return BlockInputs((entropy, reward, *parts), part_weights)

    def may_begin(self, blocks: BlockHistory) -> Flags:
        """Return where entropy is low enough."""
        entropy = blocks.levels(0)
        found: Flags = entropy <= _LEFT * np.fmax.reduce(entropy[:3])
        return found

    def judge_blocks(
        self, blocks: BlockHistory, inputs: BlockInputs
    ) -> BlockFinding | None:
        """Compare the newest block with earlier ones."""
        opening = max(column(blocks[:3], 0), default=0.0)
        now = blocks[-1].levels[0]
        if opening <= 0 or not 0 <= now <= _LEFT * opening or self._converged(blocks):
            return None
        if self._all_at_top(blocks[-1], inputs):
            return None
        if self._newest is not None and not _risen(blocks[-10:]):
            return self._block_finding(blocks, self._newest.since, opening, inputs)
        stretch = _fall(blocks)
        if stretch is None:
            return None
        return self._block_finding(blocks, self.began(_brink(stretch)), opening, inputs)

    def _converged(self, blocks: BlockHistory) -> bool:
        """Return whether the task is solved: the reward is next to 1, the end of its scale, or came
        most of the way.
        """
        reward = column(blocks, 1)
        low, best = self.reach(1)
        if not reward or not 0 <= low <= best <= 1:
            return False
        first = reward[0]
        now = reward[-1]
        if now >= _TOP:
            return True
        # What was learnt within the first block shows in how much was left to learn after it.
        return now >= _SOLVED and now - first >= _LEARNT * (1 - first)

    def _all_at_top(self, block: Block, inputs: BlockInputs) -> bool:
        """Return whether the reward is a sum, all of whose parts are at their top."""
        parts = []
        for i, weight in enumerate(inputs.depends_on, start=2):
            low, high = self.reach(i)
            parts.append(RewardPart(block.levels[i], high, low < 0, weight))
        return all_at_top(parts, block.levels[1])

    def _block_finding(
        self, blocks: BlockHistory, start: int, opening: float, inputs: BlockInputs
    ) -> BlockFinding:
        stretch = blocks_since(blocks, start)
        now = blocks[-1]
        entropy = column(stretch, 0)
        reward = column(stretch, 1)
        change = reward[-1] - reward[0] if reward else 0.0
        return BlockFinding(
            start,
            f"fell to {number(entropy[-1])} with a flat reward",
            f"entropy fell from {number(entropy[0])} at step {start} "
            f"to {number(now.levels[0])} at step {now.last} "
            f"({now.levels[0] / opening:.0%} of the run's beginning) "
            f"while the reward did not rise ({change:+.2g})",
            (
                f"{inputs.keys[0]}: {number(opening)} at the beginning, "
                f"{number(entropy[0])} at step {start}, "
                f"{number(now.levels[0])} at step {now.last} (means of {self.size} points)",
                f"{inputs.keys[1]}: {number(reward[0])} at step {start}, "
                f"{number(reward[-1])} at step {now.last}: "
                f"slope {course(stretch, 1).t:+.1f} standard errors from level",
            ),
            inputs.keys[0],
        )


_EARLY_ADVICE = (
    "Start over with a lower learning rate, gradient clipping and a KL term; "
    "look at the first samples and at the gradient norm of the steps before."
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
    advantages = [
        value
        for end in ("max", "min")
        for value in _newest(context, context.names.get(f"critic/advantages/{end}"))
    ]
    if min(shares, default=0.0) >= 1 or _all_zero(spread) or _all_zero(advantages):
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
    best = max(values)
    least = max(_WELL * max(abs(begun), abs(now)), _MOST_OF_IT * (best - begun))
    return now - begun >= least and now > max(first)


def _fall(blocks: BlockHistory) -> BlockHistory | None:
    """Return the shortest stretch over which entropy fell while the reward did not rise."""
    for lag in _LAGS:
        stretch = blocks[-lag - 1 :]
        if len(stretch) > lag and _fallen(stretch) and not _risen(stretch):
            return stretch
    return None


def _brink(stretch: BlockHistory) -> int:
    """Return the last step at which entropy was still near where the stretch begins."""
    near = _NEAR * stretch[0].levels[0]
    high = [block.last for block in stretch if block.levels[0] >= near]
    if high:
        return high[-1]
    return stretch[0].last


def _fallen(stretch: BlockHistory) -> bool:
    values = column(stretch, 0)
    if len(values) < 4 or values[-1] > _FALL * values[0]:
        return False
    return course(stretch, 0).t <= _FALL_T


def _risen(stretch: BlockHistory) -> bool:
    values = column(stretch, 1)
    if len(values) < 4:
        return True
    line = course(stretch, 1)
    size = max(map(abs, values))
    if line.t >= _FLAT_T and line.change >= _GAIN * size:
        return True
    return line.t >= _SURE_T and line.change >= _SURE_GAIN * size
