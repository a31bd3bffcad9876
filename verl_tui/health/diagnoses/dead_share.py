"""The share of dead groups: by samples, the trainer's own key, a filter's count, or the mean."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.conditions.condition import number
from verl_tui.health.limits import figure, setting
from verl_tui.health.streams import Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.series import Series

SAMPLES = "samples/dead_groups"
SHARES = (
    SAMPLES,
    "frac_reward_zero_std",
    "train/frac_reward_zero_std",
    "rollout/zero_std/all",
    "train/zero_std_fraction",
)
"""Shares of dead groups, best first: those of the dumps, then the trainers' own (TRL and
others).
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
    """The metric that it is read or worked out from."""
    figures: tuple[float, ...] = ()
    """What it is worked out with; where one of these changes, it is another figure."""
    work_out: Callable[[float], float] | None = None
    """Makes the share of the metric's value; None where that is the share."""
    words: str = ""
    """How it was worked out."""
    beside: tuple[str, ...] = ()
    """The metric that holds the scores' spread: where there is none, all groups are dead whatever
    the share says.
    """

    def stream(self) -> Stream:
        """Return a stream of the share."""
        return (
            Stream("or no spread", limit=NO_SPREAD)
            if self.beside
            else Stream("value", work_out=self.work_out)
        )


def dead_share(context: RuleContext) -> DeadShare | str:
    """Return the best figure that a log has, or why it has none."""
    names = context.names
    if key := next((names[name] for name in SHARES if name in names), None):
        spread = context.indicators.get("reward_std") if key != names.get(SAMPLES) else None
        return DeadShare(key, beside=(spread,) if spread is not None else ())
    batch = figure(context.run, ("data.train_batch_size", "train_batch_size"))
    if _EVICTED in names and batch is not None:
        return _filtered(names[_EVICTED], batch[1])
    return _bound(context, batch[1] if batch is not None else None)


def _filtered(key: str, kept: float) -> DeadShare:
    return DeadShare(
        key,
        (kept,),
        lambda evicted: max(0.0, evicted) / (max(0.0, evicted) + kept),
        f"what the filter threw out, of that and the {number(kept)} that it kept",
    )


def _bound(context: RuleContext, batch: float | None) -> DeadShare | str:
    """Return what 0/1 rewards prove: of prompts that are right with a mean p, p^n + (1−p)^n are
    dead at least.

    It is least where all prompts are equally hard (Jensen's inequality; arXiv 2606.18487).
    """
    nothing = "neither samples in groups nor the trainer tell the share of dead groups"
    reward = context.run.present(context.names.get("critic/score/mean"))
    samples = figure(context.run, ("rollout.n",))
    if reward is None or samples is None or batch is None:
        return nothing
    n = samples[1]
    estimator = setting(context.run, ["adv_estimator"])
    if n < 2 or (estimator is not None and estimator[1] in _UNGROUPED):
        return "samples of one prompt are not compared: there are no groups"
    filtered = setting(context.run, ["filter_groups.enable"])
    if filtered is not None and filtered[1] is True:
        return "dead groups are filtered out, and how many is not logged"
    if not _zeros_and_ones(reward, batch * n):
        return f"{nothing}, and rewards are not known to be 0 or 1"
    return DeadShare(
        reward.key,
        (n,),
        lambda p: min(1.0, max(0.0, p)) ** n + (1 - min(1.0, max(0.0, p))) ** n,
        f"at least, by the mean of 0/1 rewards p and {number(n)} samples a prompt: "
        f"p^{n:g} + (1−p)^{n:g}",
    )


def _zeros_and_ones(reward: Series, count: float) -> bool:
    """Return whether every mean is that of so many zeros and ones."""
    values = [value for value in reward.tail(_LOOKED) if math.isfinite(value)]
    if len(values) < _LEAST:
        return False
    return all(
        0 <= value <= 1 and abs(value * count - round(value * count)) < _WHOLE for value in values
    )
