"""The share of dead groups: by samples, the trainer's own key, a filter's count, or the mean."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from verl_tui.health.conditions.condition import Column, number
from verl_tui.health.inputs import column_of
from verl_tui.health.limits import positive_setting
from verl_tui.means import finite

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.health.conditions.windows import Numbers
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.series import Series

SAMPLES = "samples/dead_groups"
SHARES = (
    SAMPLES,
    "frac_reward_zero_std",
    "train/frac_reward_zero_std",
    "frac_zero_std",
    "train/frac_zero_std",
)
"""Shares of dead groups, best first: those of the dumps, then the trainers' own (TRL) and those
of home-made logs.
"""
_EVICTED = "training/filter_groups/evicted_samples"
"""Prompts without any spread that DAPO's filter threw out before the batch was full (verl
0.9.1).
"""
_UNGROUPED = ("gae", "remax", "reinforce_plus_plus")
"""Advantage estimators of verl that compare no samples of one prompt."""
_LOOKED, _LEAST = 20, 5
"""Newest points that show whether scores are 0 or 1, and how many there must be."""
NO_SPREAD = 1e-5
"""Standard deviation of scores that is rounding: single precision leaves some 1e-7 of scores that
are all alike, which trainers take for a spread.
"""
_WHOLE = 0.01
"""A mean of so many zeros and ones is a whole number of them; rounding leaves less than this."""


class DeadShare(NamedTuple):
    """The share of dead groups and where it comes from."""

    key: str
    """The metric that it is read or derived from."""
    derive: Callable[[Numbers], Numbers] | None = None
    """Derives the share from the metric's value; None where that is the share."""
    words: str = ""
    """How it was derived, to follow a title."""
    beside: tuple[str, ...] = ()
    """Metric of the scores' spread: where it is 0, all groups are dead whatever the share says."""

    def column(
        self, series: Sequence[Series], end: int | None
    ) -> tuple[Column, int | None]:
        """Return the share at each step, and the newest step."""
        kind = "without spread" if self.beside else "value"
        found, step = column_of(series, end, kind, limit=NO_SPREAD)
        if self.derive is not None:
            found = Column(found.steps, self.derive(found.values))
        return found, step


def dead_share(context: RuleContext) -> DeadShare | str:
    """Return the best figure that a log has, or why it has none."""
    names = context.names
    if key := context.first_key(SHARES):
        spread = context.indicators.get("reward_std")
        if key == names.get(SAMPLES) or spread is None:
            return DeadShare(key)
        return DeadShare(key, beside=(spread,))
    batch = positive_setting(context.run, ("data.train_batch_size", "train_batch_size"))
    if _EVICTED in names and batch is not None:
        return _filtered(names[_EVICTED], batch[1])
    return _bound(context, batch[1] if batch is not None else None)


def _filtered(key: str, kept: float) -> DeadShare:
    def share(evicted: Numbers) -> Numbers:
        discarded = np.maximum(0.0, evicted)
        return discarded / (discarded + kept)

    words = f" (prompts that the filter discarded, of these and the {number(kept)} that it kept)"
    return DeadShare(key, share, words)


def _bound(context: RuleContext, batch: float | None) -> DeadShare | str:
    """Return the share that 0/1 rewards prove: if prompts are answered right with a mean p, at
    least p^n + (1−p)^n of the groups are dead.

    It is least where all prompts are equally hard (Jensen's inequality; arXiv 2606.18487).
    """
    nothing = "neither grouped samples nor the trainer's metrics show the share of dead groups"
    reward = context.run.present(context.names.get("critic/score/mean"))
    samples = positive_setting(context.run, ("rollout.n",))
    if reward is None or samples is None or batch is None:
        return nothing
    n = samples[1]
    estimator = context.run.config.find(["adv_estimator"])
    if n < 2 or (estimator is not None and estimator[1] in _UNGROUPED):
        return "samples of one prompt are not compared: there are no groups"
    filtered = context.run.config.find(["filter_groups.enable"])
    if filtered is not None and filtered[1] is True:
        return "dead groups are filtered out, and how many is not logged"
    if not _zeros_and_ones(reward, batch * n):
        return f"{nothing}, and rewards are not known to be 0 or 1"
    words = (
        f" (at least, by the mean of 0/1 rewards p and {number(n)} samples a prompt: "
        f"p^{n:g} + (1−p)^{n:g})"
    )
    return DeadShare(reward.key, partial(_least_dead, samples=n), words)


def _least_dead(mean: Numbers, samples: float) -> Numbers:
    """Return the least share of groups of so many samples that are all right or all wrong."""
    p = np.clip(mean, 0.0, 1.0)
    share: Numbers = p**samples + (1 - p) ** samples
    return share


def _zeros_and_ones(reward: Series, count: float) -> bool:
    """Return whether every mean is that of so many zeros and ones."""
    values = finite(reward.tail(_LOOKED))
    if len(values) < _LEAST:
        return False
    if not all(0 <= value <= 1 for value in values):
        return False
    return all(abs(value * count - round(value * count)) < _WHOLE for value in values)
