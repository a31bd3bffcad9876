"""Exemptions for single batches: means of few scores swing by chance."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.swings import spreads, swings
from verl_tui.health.limits import positive_setting
from verl_tui.means import finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.conditions.windows import Numbers
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

_NEWEST, _ENOUGH = 100, 20
"""Newest points that show its present swings, and how many are needed."""
_CALM = 0.1
"""Below this standard deviation there is nothing to excuse: the guide's figure is 0.14."""
_BEYOND = 1.5
"""Swings this many times as large as chance makes them are more than chance: heuristic."""
_STRETCH, _MOST = 40, 25
"""Points of a stretch of the past, and number of stretches, evenly spread over the run."""
_CALMER = 5.0
"""A stretch in which it swung a fifth as far. Chance alone makes less: answers to one prompt, each
its own score at first, become one score where it is learnt, so that groups of sixteen swing four
times as far as at first.
"""
_HELD, _JUMP, _PEAK = 1000, 1.0, 0.5
"""Newest points searched for jumps of the loss, size of a jump, and share of the largest from which
on others count; the KL must account for half of each.
"""
_PROMPTS = ("data.train_batch_size", "rollout_batch_size", "num_prompts_per_step")
"""verl's name; OpenRLHF's and slime's; NeMo RL's."""
_GROUP = 8.0
"""Answers to a prompt by TRL's default."""


def by_batch_size(context: RuleContext, key: str) -> str | None:
    """Exempt swings on a scale from 0 to 1 that the batch size explains, or that were there from
    the start.

    A batch of so many prompts, each all right or all wrong, swings most: by the root of m(1−m) by
    their number. Where that number is unknown, only swings much larger than they used to be are
    more than chance. The tutorials' own logs are judged by the guide's figure as it stands.
    """
    series = context.known(key)
    if context.run.dialect == "tutorial" or series is None:
        return None
    newest = finite(series.tail(_NEWEST))
    if len(newest) < _ENOUGH or spreads([newest])[0] < _CALM:
        return None
    (now,) = _draws([newest])
    prompts = prompts_a_step(context.run)
    if prompts is not None and now * _BEYOND**2 < prompts:
        return None
    if _was_calmer(series.values, now):
        return None
    if prompts is not None:
        return f"the mean of {prompts:g} prompts swings that much by chance"
    return f"the number of prompts in a batch is unknown, and {key} swings no more than it used to"


def _was_calmer(values: Sequence[float], now: float) -> bool:
    """Return whether some stretch of the past swung much less than the newest points."""
    last = len(values) - _STRETCH
    starts = range(0, max(1, last), max(1, last // _MOST))
    stretches = [np.array(values[at : at + _STRETCH]) for at in starts]
    known = [one[np.isfinite(one)] for one in stretches]
    for size in set(map(len, known)):
        alike = [one for one in known if len(one) == size >= _ENOUGH]
        if alike and _draws(alike).max() >= _CALMER**2 * now:
            return True
    return False


def by_reference_kl(context: RuleContext, key: str) -> str | None:
    """Exempt a loss that jumps where the KL to the reference jumps as far at that step: it is a
    term of the loss.

    TRL's loss holds β times that KL, so that one answer far from the reference makes it jump.
    verl's policy loss is next to 0 and holds no such term: its jumps are many times those of a KL.
    """
    loss = context.known(key)
    kl = context.known(context.indicators.get("reference_kl"))
    if loss is None or kl is None or len(loss) < _ENOUGH:
        return None
    high = loss.first_beyond(_JUMP)
    if high is None and loss.first_beyond(-_JUMP, down=True) is None:
        return None
    if not _makes_up_for_jumps(kl, loss):
        return None
    return f"{kl.key} jumps as far at that step: it is a term of the loss"


def _makes_up_for_jumps(kl: Series, loss: Series) -> bool:
    """Return whether a KL rises as many times beyond its usual size wherever the loss jumps."""
    usual_loss = median(map(abs, loss.tail(_NEWEST)))
    usual_kl = median(map(abs, kl.tail(_NEWEST)))
    if not 0 < usual_loss < math.inf or not 0 < usual_kl < math.inf:
        return False
    peaks = _peaks(loss)
    for step in peaks:
        least = _PEAK * _times(loss, step, usual_loss)
        if not _times(kl, step, usual_kl) >= least:
            return False
    return bool(peaks)


def _peaks(loss: Series) -> list[int]:
    """Return the steps of the largest jumps lately, none where even these are small."""
    lately = list(zip(loss.steps[-_HELD:], loss.tail(_HELD), strict=True))
    least = max(_PEAK * max(abs(value) for _, value in lately), _JUMP)
    return [step for step, value in lately if abs(value) >= least]


def _times(series: Series, step: int, usual: float) -> float:
    """Return how many times its usual value a metric has at a step, 0 if it has no point there."""
    point = series.at(step)
    if point is None or point.step != step:
        return 0.0
    return abs(point.value) / usual


def prompts_a_step(run: Run) -> float | None:
    """Return the least number of prompts of a step, None if the settings do not state it."""
    prompts = _stated(run, *_PROMPTS)
    if prompts is not None:
        return prompts
    # TRL counts answers, for each device; how many devices there are is not stated.
    answers = _stated(run, "per_device_train_batch_size")
    if answers is None:
        return None
    rounds = _stated(run, "gradient_accumulation_steps") or 1.0
    group = _stated(run, "num_generations") or _GROUP
    return max(1.0, answers * rounds / group)


def _stated(run: Run, *names: str) -> float | None:
    """Return the positive number that the settings have under one of these names."""
    stated = positive_setting(run, names)
    return stated[1] if stated is not None else None


def _draws(stretches: Sequence[Sequence[float] | Numbers]) -> Numbers:
    """Return how many independent scores of 0 or 1 have a mean that swings as far as each stretch
    of so many values.
    """
    values = np.array(stretches)
    with np.errstate(all="ignore"):
        mean, far = values.mean(axis=1), swings(values)
        draws: Numbers = mean * (1 - mean) / (far * far)
    return np.where(far > 0, draws, math.inf)
