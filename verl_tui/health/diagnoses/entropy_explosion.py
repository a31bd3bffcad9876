"""Entropy climbs far beyond its own past while responses grow or the reward falls: the policy turns
to noise.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from verl_tui.health.blocks import lately
from verl_tui.health.conditions.condition import number
from verl_tui.health.diagnoses.diagnosis import (
    BlockDiagnosis,
    BlockFinding,
    BlockInputs,
    column,
)

if TYPE_CHECKING:
    from verl_tui.health.blocks import Block, BlockHistory
    from verl_tui.health.conditions.windows import Flags
    from verl_tui.health.rule_context import RuleContext

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


class _Explosion(NamedTuple):
    since: int
    usual: float
    signs: tuple[str, ...]


class EntropyExplosion(BlockDiagnosis):
    """Entropy above twice its own past and above where the run began, with length up or reward
    down.

    With a rising reward it is exploration (a raised upper clip): no alarm.
    """

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

    def judge_blocks(
        self, blocks: BlockHistory, inputs: BlockInputs
    ) -> BlockFinding | None:
        """Compare the newest blocks with those before."""
        if self.open is None:
            self._found = _explosion(blocks)
        found = self._found
        if found is None or not blocks[-1].levels[0] >= _OVER * found.usual:
            return None
        now = blocks[-1].levels[0]
        last = blocks[-1].last
        return BlockFinding(
            found.since,
            f"rose to {number(now)}, {number(now / found.usual)} times its own past",
            f"entropy rose to {number(now)} at step {last}, {number(now / found.usual)} times "
            "what it was before step "
            f"{found.since} ({number(found.usual)}), while {' and '.join(found.signs)}",
            (
                f"{inputs.keys[0]}: usual {number(found.usual)}, {number(now)} at step {last} "
                f"(mean of {self.size} "
                "points)",
                *found.signs,
            ),
            inputs.keys[0],
        )


def _explosion(blocks: BlockHistory) -> _Explosion | None:
    # A run begins with high entropy: a return to where it began is no explosion. Most blocks come
    # no further than this.
    least = max([_LEAST, *column(blocks[:3], 0)])
    now = column(blocks[-_NOW:], 0)
    if len(now) < _NOW or min(now) < least:
        return None
    past = blocks[-_NOW - _PAST : -_NOW]
    entropy = column(past, 0)
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
    length = column(past, 1)
    reward = column(past, 2)
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
