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

    from verl_tui.health.blocks import Block, BlockHistory
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

    def judge_blocks(
        self, blocks: BlockHistory, inputs: BlockInputs
    ) -> BlockFinding | None:
        """Find devices that are idle while others work."""
        newest = blocks[-_LASTS:]
        idle = []
        for i, key in enumerate(inputs.keys):
            if all(self._idles(block, i, inputs) for block in newest):
                idle.append(key)
        if not idle:
            return None
        return self._block_finding(newest, idle, inputs)

    def _idles(self, block: Block, i: int, inputs: BlockInputs) -> bool:
        levels = block.levels
        scale: float = inputs.depends_on
        others = [*levels[:i], *levels[i + 1 :]]
        known = [level * scale for level in others if not math.isnan(level)]
        working = [level for level in known if level >= self.rule.threshold]
        if not working or 2 * len(working) < len(known):
            return False
        usual = fmean(working)
        if usual < _WORKING:
            return False
        return levels[i] * scale < min(self.rule.threshold, _APART * usual)

    def _block_finding(
        self, newest: BlockHistory, idle: Sequence[str | None], inputs: BlockInputs
    ) -> BlockFinding:
        scale = inputs.depends_on
        last = newest[-1]
        levels = {
            key: level * scale
            for key, level in zip(inputs.keys, last.levels, strict=True)
        }
        names = ", ".join(map(_device, idle))
        shares = ", ".join(f"{number(levels[key])}%" for key in idle)
        working = [level for key, level in levels.items() if key not in idle]
        others = fmean(filterfalse(math.isnan, working))
        since = self._newest.since if self._newest is not None else newest[0].first
        return BlockFinding(
            since,
            f"{names} idle beside others that work",
            f"{names} {'work' if len(idle) > 1 else 'works'} at {shares} "
            f"while the others of {len(levels)} work at {number(others)}%, since step {since}",
            tuple(
                f"{key}: {number(level)}% up to step {last.last}"
                for key, level in levels.items()
            ),
            idle[0],
        )


def _device(key: str | None) -> str:
    """Return a device's name: `GPU 3`, with its host where the key names one."""
    _, _, rest = (key or "").partition("gpu.")
    _, _, node = rest.partition("/l:")
    return f"GPU {rest.split('.')[0]}" + (f" of {node}" if node else "")
