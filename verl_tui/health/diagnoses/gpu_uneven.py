"""One device of a run idles while the others work."""

from __future__ import annotations

import math
from itertools import filterfalse
from statistics import fmean
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from verl_tui.health.applicability.metrics import unused_device
from verl_tui.health.diagnoses.diagnosis import (
    BlockDiagnosis,
    BlockFinding,
    BlockInputs,
)
from verl_tui.health.finding import number
from verl_tui.runs.views.devices import utilization_keys

if TYPE_CHECKING:
    from verl_tui.health.blocks import BlockHistory
    from verl_tui.health.conditions.windows import Flags
    from verl_tui.health.rule_context import RuleContext

_WORKING = 60.0
"""Percent from which on a device works: the second tutorial's bound."""
_APART = 0.6
"""An idle device does at most so much of what the others do: heuristic, they never work quite
alike.
"""
_LASTS = 2
"""Blocks in a row that must show it: devices dip in turn."""
_MOST = 64


class GpuUneven(BlockDiagnosis):
    """A device below 50% for ten points while the mean of the others is that of work."""

    RULE = "gpu-uneven"
    size: ClassVar[int] = 5
    patience: ClassVar[int] = 2
    needs: ClassVar[int] = _LASTS

    def inputs(self, context: RuleContext) -> BlockInputs | str:
        """Look at the devices whose utilisation the run has logged."""
        devices = utilization_keys(context.run)
        used = [key for key in devices if unused_device(context, key) is None][:_MOST]
        if len(used) < 2:
            return "the log shows fewer than two devices that the run uses"
        highest = max(
            series.highest
            for key in used
            if (series := context.run.series(key)) is not None
        )
        return BlockInputs(tuple(used), 100.0 if highest <= 1.0 else 1.0)

    def may_begin(self, blocks: BlockHistory) -> Flags:
        """Return where a device idles."""
        found: Flags = np.logical_or.reduce(self._idle(blocks), axis=1)
        return found

    def lasts(self, _: BlockHistory, begins: Flags) -> Flags:
        """Return where one idles."""
        return begins

    def judge_blocks(self, blocks: BlockHistory) -> BlockFinding | None:
        """Find devices that are idle while others work."""
        idle = np.flatnonzero(self._idle(blocks)[-1]).tolist()
        if not idle:
            return None
        newest = blocks[-_LASTS:]
        since = self.newest.since if self.newest is not None else newest[0].first
        levels = [one * self.depends_on for one in newest[-1].levels]
        working = [level for i, level in enumerate(levels) if i not in idle]
        evidence = [
            f"{key}: {number(level)}% up to step {newest[-1].last}"
            for key, level in zip(self.keys, levels, strict=True)
        ]
        return self.told(
            since,
            self.keys[idle[0]],
            evidence,
            names=", ".join(_device(self.keys[i]) for i in idle),
            work=("works", "work")[len(idle) > 1],
            shares=", ".join(f"{number(levels[i])}%" for i in idle),
            count=len(levels),
            others=fmean(filterfalse(math.isnan, working)),
        )

    def _idle(self, blocks: BlockHistory) -> Flags:
        """Return for each block which devices did little in the last ones beside others that
        worked.
        """
        percent = np.column_stack(
            [blocks.levels(i) * self.depends_on for i in range(len(self.keys))]
        )
        works = percent >= self.rule.threshold
        count = works.sum(axis=1)
        with np.errstate(invalid="ignore"):
            usual = np.where(works, percent, 0.0).sum(axis=1) / count
        # of the others; who works does not idle
        is_used = 2 * count >= np.isfinite(percent).sum(axis=1) - 1
        least = np.where(is_used & (usual >= _WORKING), _APART * usual, 0.0)
        idle = percent < np.minimum(self.rule.threshold, least)[:, None]
        idle[1:] &= idle[:-1].copy()
        return idle


def _device(key: str | None) -> str:
    """Return a device's name: `GPU 3`, with its host where the key names one."""
    _, _, rest = (key or "").partition("gpu.")
    _, _, node = rest.partition("/l:")
    return f"GPU {rest.split('.')[0]}" + (f" of {node}" if node else "")
