"""Reward and validation that no longer move, by a trend test over a long window."""

from __future__ import annotations

from itertools import compress
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.diagnoses.diagnosis import InBlocks, Onset, Onsets, Told, diagnosis
from verl_tui.indicators import validation_keys

if TYPE_CHECKING:
    from verl_tui.health.blocks import Blocks
    from verl_tui.health.conditions.windows import Flags
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext

_FLAT_T = 2.0
"""Below two standard errors a slope is no trend."""
_VALIDATIONS = 5
"""Validations in the window without which their trend is not known: heuristic."""
_MOST_VALIDATIONS = 8
_SIZE = 20
_VALIDATED = ("the log has no validation", "validation shows none either")


@diagnosis("plateau", "reward")
def plateau(context: RuleContext, rule: Rule) -> InBlocks:
    """Find a window in which neither the reward nor any validation score has a trend."""
    validations = validation_keys(context.run.keys)[:_MOST_VALIDATIONS]
    keys = (context.indicators["reward"], *validations)
    needs = max(4, rule.window // _SIZE)
    return InBlocks(keys, _find, size=_SIZE, needs=needs, patience=2)


def _find(blocks: Blocks, of: InBlocks) -> Onsets:
    places = np.arange(len(blocks))
    slopes = [blocks.slopes(i, places, of.needs) for i in range(len(of.keys))]
    counts, changes, t = map(np.array, zip(*slopes, strict=True))
    is_flat = (counts >= _VALIDATIONS) & (abs(t) < _FLAT_T)
    flat: Flags = np.logical_and.reduce(is_flat)

    def told(at: int, since: int) -> Told:  # noqa: ARG001 - the window moves on
        window = blocks[at + 1 - of.needs : at + 1]
        first, last = int(window.first[0]), int(window.last[-1])
        return Told(
            {
                "steps": last - first + 1,
                "mean": fmean(window.known(0)),
                "change": float(changes[0, at]),
                "validated": _VALIDATED[len(of.keys) > 1],
            },
            [
                f"{key}: slope {slope:+.1f} standard errors from level over {len(window)} "
                f"blocks of {of.size} points"
                for key, slope in zip(of.keys, t[:, at], strict=True)
            ],
            key=of.keys[0],
        )

    def sign(at: int) -> Onset:
        return Onset(int(blocks.first[at + 1 - of.needs]), flat, told)

    few = [*compress(of.keys[1:], counts[1:, -1] < _VALIDATIONS)]
    last = f"validations in the last {of.needs * of.size} points"
    reason = f"needs {_VALIDATIONS} {last}, {few[0]} has fewer" if few else None
    return Onsets(flat, sign, reason)
