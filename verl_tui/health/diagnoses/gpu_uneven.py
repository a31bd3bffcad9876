"""One device of a run idles while the others work."""

from __future__ import annotations

import math
from itertools import filterfalse
from statistics import fmean
from typing import TYPE_CHECKING, ClassVar

from verl_tui.health.applicability.metrics import unused_device
from verl_tui.health.conditions.condition import number
from verl_tui.health.diagnoses.diagnosis import (
    BlockDiagnosis,
    BlockFinding,
    BlockInputs,
)
from verl_tui.runs.views.devices import utilization_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.blocks import BlockHistory
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

    def judge_blocks(self, blocks: BlockHistory) -> BlockFinding | None:
        """Find devices that are idle while others work."""
        newest = blocks[-_LASTS:]
        percent = [[one * self.depends_on for one in block.levels] for block in newest]
        idle = [
            i
            for i in range(len(self.keys))
            if all(self._idles(levels, i) for levels in percent)
        ]
        if not idle:
            return None
        since = self.newest.since if self.newest is not None else newest[0].first
        return self._told(percent[-1], idle, since, newest[-1].last)

    def _told(
        self, levels: Sequence[float], idle: Sequence[int], since: int, last: int
    ) -> BlockFinding:
        working = [level for i, level in enumerate(levels) if i not in idle]
        evidence = [
            f"{key}: {number(level)}% up to step {last}"
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

    def _idles(self, levels: Sequence[float], i: int) -> bool:
        """Return whether a device does little beside others that work; levels are in percent."""
        known = [*filterfalse(math.isnan, (*levels[:i], *levels[i + 1 :]))]
        working = [level for level in known if level >= self.rule.threshold]
        if not working or 2 * len(working) < len(known):
            return False
        usual = fmean(working)
        least = min(self.rule.threshold, _APART * usual)
        return usual >= _WORKING and levels[i] < least


def _device(key: str | None) -> str:
    """Return a device's name: `GPU 3`, with its host where the key names one."""
    _, _, rest = (key or "").partition("gpu.")
    _, _, node = rest.partition("/l:")
    return f"GPU {rest.split('.')[0]}" + (f" of {node}" if node else "")
