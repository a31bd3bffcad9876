"""One device of a run idles while the others work."""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.diagnoses.diagnosis import InBlocks, Shown, Told, diagnosis
from verl_tui.health.exemptions import unused_device
from verl_tui.health.finding import number
from verl_tui.runs.views.devices import utilization_keys

if TYPE_CHECKING:
    from verl_tui.health.blocks import Blocks
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext

_WORKING = 60.0
"""Percent from which on a device works: the second tutorial's bound."""
_APART = 0.6
"""An idle device does at most so much of what the others do: heuristic, they never work quite
alike.
"""
_MOST = 64


@diagnosis("gpu-uneven")
def uneven_gpus(context: RuleContext, rule: Rule) -> InBlocks | str:
    """Find a device below 50% for ten points while the mean of the others is that of work."""
    devices = utilization_keys(context.run)
    used = [key for key in devices if unused_device(context, key) is None][:_MOST]
    if len(used) < 2:
        return "the log shows fewer than two devices that the run uses"
    highest = max(one.highest for one in filter(None, map(context.run.series, used)))
    of = 100.0 if highest <= 1.0 else 1.0, rule.threshold
    # Two blocks in a row must show it: devices dip in turn.
    return InBlocks(tuple(used), _find, of, 5, 2, lasts=False, patience=2)


def _find(blocks: Blocks, of: InBlocks) -> Shown:
    scale, least = of.of
    percent = scale * blocks.levels
    works = percent >= least
    count = works.sum(axis=0)
    usual = np.where(works, percent, 0.0).sum(axis=0) / np.maximum(1, count)
    # of the others; who works does not idle
    is_used = 2 * count >= np.isfinite(percent).sum(axis=0) - 1
    most = np.where(is_used & (usual >= _WORKING), _APART * usual, 0.0)
    idle = percent < np.minimum(least, most)
    idle[:, 1:] &= idle[:, :-1].copy()
    begins = idle.any(axis=0)

    def told(at: int, since: int) -> Told:
        levels, is_idle = percent[:, at], idle[:, at]
        names = [*compress(of.keys, is_idle)]
        return Told(
            {
                "names": ", ".join(map(_device, names)),
                "work": ("works", "work")[len(names) > 1],
                "shares": ", ".join(f"{number(one)}%" for one in levels[is_idle]),
                "count": len(levels),
                "others": float(np.nanmean(levels[~is_idle])),
            },
            [
                f"{key}: {number(level)}% up to step {blocks.last[at]}"
                for key, level in zip(of.keys, levels, strict=True)
            ],
            since=since,
            key=names[0],
        )

    return Shown(begins, begins, lambda at: int(blocks.first[at - 1]), told)


def _device(key: str | None) -> str:
    """Return a device's name: `GPU 3`, with its host where the key names one."""
    _, _, rest = (key or "").partition("gpu.")
    _, _, node = rest.partition("/l:")
    return f"GPU {rest.split('.')[0]}" + (f" of {node}" if node else "")
