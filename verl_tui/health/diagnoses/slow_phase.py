"""One phase of the step takes much longer than it used to, and a good part of the step."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import median
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from verl_tui.health.blocks import lately
from verl_tui.health.conditions.windows import rows
from verl_tui.health.diagnoses.diagnosis import (
    BlockDiagnosis,
    BlockFinding,
    BlockInputs,
)
from verl_tui.metrics import describe
from verl_tui.patterns import NamePattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.blocks import Block, BlockHistory
    from verl_tui.health.conditions.windows import Flags
    from verl_tui.health.rule_context import RuleContext

_PHASE = NamePattern(
    r"timing_s/(?!step$|testing$|save_checkpoint$|start_profile$|stop_profile$|dump_|.*/slowest/"
    r"|.*(?:/|_)(?:max|min)$).+"
)
"""Phases of every step. Validation and checkpoints have their own pace and are left out, as are
single responses.
"""
_NO_TIME = NamePattern(
    r"(?:.*(?:/|_))?(?:lengths?|tokens?|counts?|turns|ratio|share|num|num_.+|size|bytes)(?:/mean)?"
)
"""verl and its agent loops put figures under `timing_s/` that are no seconds:
`…/slowest/prompt_length`.
"""
_MOST = 20
_NOW = 2
"""Newest blocks that must be slow."""
_GAP = 2
_PAST = 20
"""Blocks of the past that make the usual time, and how many before the newest are left out for the
growth itself.
"""
_LEAST_PAST = 4
_SLOWER = 1.5
"""Half as long again as usual: heuristic."""
_SHARE = 0.1
"""The added time must be a tenth of the step: heuristic, less is not worth a finding."""
_WHOLE = 1.05
_OVER = 1.25
"""Below a quarter more than usual it is over."""


class _Slow(NamedTuple):
    """A phase that is slower than it was."""

    added: float
    """Seconds a step."""
    column: int
    usual: float
    """Seconds before."""
    each: float
    """Seconds a token before, 0 where tokens are not known."""

    def holds(self, blocks: BlockHistory) -> Flags:
        """Return which blocks are slow."""
        tokens = blocks.levels(1)
        least = self.each * np.where(tokens > 0, tokens, 0.0)
        found: Flags = blocks.levels(self.column) >= _OVER * np.maximum(
            least, self.usual
        )
        return found


class SlowPhase(BlockDiagnosis):
    """A part of the step's time grows against its own past, and not only with the tokens it works
    on.
    """

    RULE = "slow-phase"
    needs: ClassVar[int] = _NOW + _GAP + _LEAST_PAST + 1
    patience: ClassVar[int] = 3
    _slow: _Slow | None = None
    """The phase of the present finding."""

    def inputs(self, context: RuleContext) -> BlockInputs | str:
        """Return the whole step, the tokens processed, and all phases."""
        step = context.indicators.get("step_time")
        phases = _phases(context.run.keys)
        if step is None:
            return "the log has no time of a step"
        tokens = context.names.get("perf/total_num_tokens") or context.indicators.get(
            "response_length"
        )
        return BlockInputs((step, tokens, *(phases or [step])))

    def may_begin(self, blocks: BlockHistory) -> Flags:
        """Return where a phase takes a good part of the step, and longer than usual."""
        found = np.zeros(len(blocks), bool)
        for i in range(2, len(self.keys)):
            found |= _may_be_slow(blocks, i)
        return found

    def lasts(self, blocks: BlockHistory, _: Flags) -> Flags:
        """Return where the phase is still slow."""
        assert self._slow is not None
        return self._slow.holds(blocks)

    def judge_blocks(self, blocks: BlockHistory) -> BlockFinding | None:
        """Compare each phase with its past, and report the one that costs most."""
        since = self.newest.since if self.newest is not None else None
        if self.open is None or self._slow is None or since is None:
            found = [_find(blocks, i) for i in range(2, len(self.keys))]
            self._slow = max(filter(None, found), default=None)
            since = _since(blocks, self._slow) if self._slow is not None else 0
        slow = self._slow
        if slow is None or not slow.holds(blocks[-1:])[0]:
            return None
        return self._told(blocks[-1], slow, since)

    def _told(self, newest: Block, slow: _Slow, since: int) -> BlockFinding:
        step, now = newest.levels[0], newest.levels[slow.column]
        key = self.keys[slow.column]
        is_part = key != self.keys[0] and step > 0
        return self.told(
            since,
            key,
            usual=slow.usual,
            now=now,
            times=now / slow.usual,
            share=f", {now / step:.0%} of the step" if is_part else "",
        )


@lru_cache(256)
def _phases(keys: tuple[str, ...]) -> tuple[str, ...]:
    # Called at each judgement, while keys hardly ever change.
    return tuple(key for key in keys if _is_phase(key))[:_MOST]


def _is_phase(key: str) -> bool:
    """Return whether a key is the time of a part of the step, in seconds."""
    return (
        _PHASE.fullmatch(key) is not None
        and _NO_TIME.fullmatch(key) is None
        and describe(key).unit == "s"
    )


def _past(blocks: BlockHistory) -> Sequence[BlockHistory]:
    """Return the blocks before the newest ones that make the usual time: the last, and the first,
    by which what creeps is measured. The very first block warms up.
    """
    end = len(blocks) - _NOW - _GAP
    return blocks[max(1, end - _PAST) : end], blocks[1 : min(end, 1 + _PAST)]


def _may_be_slow(blocks: BlockHistory, i: int) -> Flags:
    """Return at which blocks `_find` may find a phase."""
    levels, step = blocks.levels(i), blocks.levels(0)
    now = lately(levels, _NOW)
    found: Flags = (now >= _SHARE * step) & (now >= _SLOWER * blocks.lowest(i))
    found &= ~(levels > _WHOLE * step)
    begun = blocks[1 : 1 + _PAST].known(i)
    first = median(begun) if len(begun) >= _LEAST_PAST else math.inf
    # With the whole of both stretches behind it, its usual time is known at once.
    places = np.flatnonzero(found)
    places = places[places >= _PAST + _NOW + _GAP]
    past = np.median(rows(levels, _PAST, places - _NOW - _GAP), axis=1)
    found[places] = ~(now[places] < _SLOWER * np.minimum(past, first))
    return found


def _find(blocks: BlockHistory, i: int) -> _Slow | None:
    """Return by how much the phase of a column is slower than it was, None where it is not."""
    newest = blocks[-_NOW:]
    levels: list[float] = newest.levels(i).tolist()
    now = min(levels)
    step = newest[-1].levels[0]
    # More than the whole step is no part of it: a sum over workers, or another unit.
    if not now >= _SHARE * step or levels[-1] > _WHOLE * step:
        return None
    past = _past(blocks)
    usual = _usual([stretch.known(i) for stretch in past])
    if not usual or now < _SLOWER * usual or not now - usual >= _SHARE * step:
        return None
    # Longer responses take longer: that is no fault of the phase.
    each = _usual([_per_token(stretch, i) for stretch in past])
    is_slower = min(_per_token(newest, i), default=math.inf) >= _SLOWER * each
    return _Slow(now - usual, i, usual, each) if is_slower else None


def _per_token(blocks: BlockHistory, i: int) -> Sequence[float]:
    """Return the times of a phase for one token, without the blocks whose tokens are unknown."""
    tokens = blocks.levels(1)
    is_known = (tokens > 0) & ~np.isnan(blocks.levels(i))
    each: list[float] = (blocks.levels(i)[is_known] / tokens[is_known]).tolist()
    return each


def _usual(stretches: Sequence[Sequence[float]]) -> float:
    """Return the least of the medians of stretches that are long enough, 0 where there is none."""
    usual = [median(levels) for levels in stretches if len(levels) >= _LEAST_PAST]
    return max(0.0, min(usual, default=0.0))


def _since(blocks: BlockHistory, slow: _Slow) -> int:
    """Return the first step of the first block of the growth."""
    others = np.flatnonzero(~slow.holds(blocks)).tolist()
    begin = others[-1] + 1 if others else 0
    return blocks[min(begin, len(blocks) - 1)].first
