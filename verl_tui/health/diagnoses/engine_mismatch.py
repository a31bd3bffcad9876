"""Inference engine and trainer disagree beyond verl's figures, and the gradient norm climbs with
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.windows import rolling
from verl_tui.health.diagnoses.diagnosis import (
    InBlocks,
    Onset,
    Onsets,
    Told,
    diagnosis,
    went,
)
from verl_tui.health.finding import number

if TYPE_CHECKING:
    from verl_tui.health.blocks import Blocks
    from verl_tui.health.conditions.windows import Flags, Places
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext

_CORRECTION = "verl docs/algo/rollout_corr.md"
_LIMITS: tuple[tuple[str, float, str], ...] = (
    ("training/rollout_probs_diff_mean", 0.01, "verl docs/faq/faq.rst"),
    ("rollout_corr/kl", 0.1, _CORRECTION),
    ("actor/rollout_corr/kl", 0.1, _CORRECTION),
    ("rollout_corr/chi2_token", 1.0, _CORRECTION),
    ("actor/rollout_corr/chi2_token", 1.0, _CORRECTION),
    ("rollout_corr/rollout_is_std", 1.0, _CORRECTION),
    ("actor/rollout_corr/rollout_is_std", 1.0, _CORRECTION),
)
"""Metric (verl's present name), the figure beyond which engine and trainer disagree, and its
source.
"""
_LAGS = (5, 10, 20)
"""Blocks over which the gradient norm must have climbed: 50 to 200 points."""
_CLIMB = 1.5
"""By half: heuristic, the document says `rises`."""
_TREND_T = 3.0
_LASTS = 3
"""Newest blocks that must all be beyond."""


@diagnosis("engine-mismatch", "grad_norm")
def engine_mismatch(context: RuleContext, _: Rule) -> InBlocks | str:
    """Find a figure of the mismatch beyond its limit while the gradient norm climbs."""
    found = tuple([one for one in _LIMITS if one[0] in context.names])
    if not found:
        return "the log has no figure of the mismatch"
    figures = [context.names[name] for name, _, _ in found]
    return InBlocks((context.indicators["grad_norm"], *figures), _find, found, needs=5)


def _find(blocks: Blocks, of: InBlocks) -> Onsets:
    limits = np.array([[limit] for _, limit, _ in of.of])
    beyond = np.array(
        [rolling(one, _LASTS) == _LASTS for one in abs(blocks.levels[1:]) > limits]
    )
    lasts: Flags = np.logical_or.reduce(beyond)
    lags = _climbs(blocks)

    def told(at: int, since: int) -> Told:
        stretch = blocks[: at + 1].since(since)
        norm = stretch.known(0)
        shown = np.flatnonzero(beyond[:, at]).tolist()
        now = blocks.levels[1:, at].tolist()
        evidence = [
            f"{of.keys[1 + i]}: {number(now[i])} (mean of {of.size} points), "
            f"beyond {number(of.of[i][1])} ({of.of[i][2]})"
            for i in shown
        ]
        first, last = int(stretch.last[0]), int(stretch.last[-1])
        return Told(
            {
                "now": now[shown[0]],
                "limit": of.of[shown[0]][1],
                "begun": norm[0],
                "norm": norm[-1],
                "since": first,
            },
            [*evidence, went(of.keys[0], norm, first, last)],
            key=of.keys[1 + shown[0]],
        )

    return Onsets(
        lasts & (lags > 0),
        lambda at: Onset(int(blocks.last[at + 1 - lags[at]]), lasts, told),
    )


def _climbs(blocks: Blocks) -> Places:
    """Return over how many of the last blocks the gradient norm climbs at each, 0 where it does
    not.
    """
    norm = blocks.levels[0]
    found = np.zeros(len(blocks), np.int64)
    for lag in reversed(_LAGS):
        places = np.arange(lag - 1, len(blocks))
        counts, _, t = blocks.slopes(0, places, lag)
        before = norm[: len(places)]
        climbs = (norm[places] >= _CLIMB * before) & (before > 0) & (t >= _TREND_T)
        found[places[climbs & (counts == lag)]] = lag
    return found
