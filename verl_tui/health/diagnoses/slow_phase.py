"""One phase of the step takes much longer than it used to, and a good part of the step."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import median
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from verl_tui.health.conditions.condition import number
from verl_tui.health.diagnoses.diagnosis import (
    BlockDiagnosis,
    BlockFinding,
    BlockInputs,
    column,
)
from verl_tui.metrics import describe
from verl_tui.patterns import NamePattern

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.health.blocks import BlockHistory
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
    each: float | None
    """Seconds a token before, None where tokens are not known."""

    def holds(self, blocks: BlockHistory) -> Flags:
        """Return which blocks are slow."""
        level, tokens = blocks.levels(self.column), blocks.levels(1)
        least = np.full(len(blocks), _OVER * self.usual)
        if self.each is not None:
            by_tokens = _OVER * self.each * np.where(tokens > 0, tokens, 0.0)
            least = np.maximum(least, by_tokens)
        found: Flags = level >= least
        return found


class SlowPhase(BlockDiagnosis):
    """A part of the step's time grows against its own past, and not only with the tokens it works
    on.
    """

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
        """Return where a phase takes longer than it ever did."""
        found = np.zeros(len(blocks), bool)
        low, _ = blocks.reach()
        for i in range(2, len(self._inputs.keys)):
            found |= blocks.levels(i) >= _SLOWER * low[:, i]
        return found

    def judge_blocks(
        self, blocks: BlockHistory, inputs: BlockInputs
    ) -> BlockFinding | None:
        """Compare each phase with its past, and report the one that costs most."""
        if (
            self.open is not None
            and self._newest is not None
            and self._slow is not None
        ):
            since = self._newest.since
        else:
            newest = blocks[-_NOW:]
            past = _past(blocks)
            found = (
                _find(newest, past, i, self.reach(i)[0])
                for i in range(2, len(inputs.keys))
            )
            self._slow = max((one for one in found if one is not None), default=None)
            since = _since(blocks, self._slow) if self._slow is not None else 0
        if self._slow is None or not self._slow.holds(blocks[-1:])[0]:
            return None
        return self._block_finding(blocks, self._slow, since, inputs)

    def _block_finding(
        self, blocks: BlockHistory, slow: _Slow, since: int, inputs: BlockInputs
    ) -> BlockFinding:
        i = slow.column
        usual = slow.usual
        key = inputs.keys[i]
        now = blocks[-1].levels[i]
        step = blocks[-1].levels[0]
        last = blocks[-1].last
        share = "" if key == inputs.keys[0] else f", {now / step:.0%} of the step"
        return BlockFinding(
            since,
            f"slowed: {key} from {number(usual)} s to {number(now)} s",
            f"{key} takes {number(now)} s{share}, {number(now / usual)} times what it took "
            f"before step {since} "
            f"({number(usual)} s)",
            (
                f"{key}: usual {number(usual)} s, {number(now)} s at step {last} (mean of "
                f"{self.size} points)",
                f"{inputs.keys[0]}: {number(step)} s at step {last}",
            ),
            key,
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


def _find(
    newest: BlockHistory, past: Sequence[BlockHistory], i: int, lowest: float
) -> _Slow | None:
    """Return by how much a phase is slower than it was, None where it is not.

    Args:
        newest: The newest blocks.
        past: Blocks that make the usual time.
        i: The phase's column.
        lowest: Its lowest level so far.
    """
    levels: list[float] = newest.levels(i).tolist()
    now = min(levels)
    step = newest[-1].levels[0]
    # Most phases are too short to matter, or no slower than they ever were: that is quickly seen.
    matters = now >= _SHARE * step and now >= _SLOWER * lowest
    # More than the whole step is no part of it: a sum over workers, or another unit.
    matters = matters and not levels[-1] > _WHOLE * step
    usual = _usual(column, past, i) if matters else None
    if usual is None or not now >= _SLOWER * usual or not now - usual >= _SHARE * step:
        return None
    # Longer responses take longer: that is no fault of the phase.
    each = _usual(_per_token, past, i)
    if (
        each is not None
        and min(_per_token(newest, i), default=math.inf) < _SLOWER * each
    ):
        return None
    return _Slow(now - usual, i, usual, each)


def _per_token(blocks: BlockHistory, i: int) -> Sequence[float]:
    """Return the times of a phase for one token, without the blocks whose tokens are unknown."""
    tokens = blocks.levels(1)
    is_known = (tokens > 0) & ~np.isnan(blocks.levels(i))
    each: list[float] = (blocks.levels(i)[is_known] / tokens[is_known]).tolist()
    return each


def _usual(
    of: Callable[[BlockHistory, int], Sequence[float]],
    stretches: Sequence[BlockHistory],
    i: int,
) -> float | None:
    """Return the least of the medians of stretches that are long enough, None where there is
    none.
    """
    known = [of(stretch, i) for stretch in stretches]
    usual = [median(levels) for levels in known if len(levels) >= _LEAST_PAST]
    level = min(usual, default=0.0)
    return level if level > 0 else None


def _since(blocks: BlockHistory, slow: _Slow) -> int:
    """Return the first step of the first block of the growth."""
    others = np.flatnonzero(~slow.holds(blocks)).tolist()
    begin = others[-1] + 1 if others else 0
    return blocks[min(begin, len(blocks) - 1)].first
