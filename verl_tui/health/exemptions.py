"""Exemptions: where a rule does not apply, by what a run logs, how it writes numbers, and its
settings. Each looks for evidence: figures that `words.toml` makes a reason of, or a reason itself.
"""

from __future__ import annotations

import re
from fractions import Fraction
from statistics import fmean
from typing import TYPE_CHECKING, TypeAlias

from verl_tui.health import reward
from verl_tui.health.conditions.column import trend
from verl_tui.health.finding import WORDS
from verl_tui.health.limits import (
    adaptive,
    assumed_limit,
    no_staleness_limit,
    stated_limit,
    stated_target,
    v1_trainer,
)
from verl_tui.health.rule_context import METRICS, RuleContext, present_names
from verl_tui.indicators import is_home_made, is_tutorials, validation_keys
from verl_tui.means import finite
from verl_tui.patterns import pattern
from verl_tui.runs.cached import cached_by_keys
from verl_tui.runs.views.devices import HELD, WORKED, memory_key, never_worked

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from verl_tui.runs.run import Run

    Exemption: TypeAlias = Callable[[RuleContext], object]

_LATELY, _IDLE = 10, 50.0
"""Newest points of a GPU's utilisation, and the percentage below which it is idle (the guide)."""


def judged_as_idle(context: RuleContext) -> bool:
    """Exempt a utilisation that is so low that it is called idle."""
    series, known = context.known(context.key), context.finite(context.key, _LATELY)
    if not series or not known:
        return False
    scale = 100.0 if series.highest <= 1.0 else 1.0
    return scale * fmean(known) < _IDLE


def unused_device(context: RuleContext) -> str | None:
    """Exempt a device whose memory holds next to nothing, or that has never worked: W&B logs all
    devices of a host, not only the run's, and others may hold memory there.
    """
    key = context.key
    memory = context.run.present(memory_key(key))
    if memory and memory.last_finite and memory.highest < HELD:
        never = f"{memory.key} has never reached {HELD:g}%"
        return f"the run does not use this device: {never}"
    if not never_worked(context.run, key):
        return None
    return f"whether the run uses this device is unknown: {key} has never reached {WORKED:g}%"


def asynchronous(context: RuleContext) -> str | None:
    """Exempt what compares engine and trainer at the same weights where samples are older than the
    weights.
    """
    stale = [context.known(name) for name in METRICS["staleness"]]
    older = [one.key for one in stale if one and one.highest > 0]
    return _asynchronous_name(context.run) or next(iter(older), None)


@cached_by_keys
def _asynchronous_name(run: Run) -> str | None:
    """Return the first name that only asynchronous training writes."""
    names, first = present_names(run.keys), METRICS["asynchronous"]
    return next((name for name in names if name.startswith(first)), None)


_NEWEST = 10
"""Newest points of a metric to check."""
_END, _LOW = 0.9, 0.5
"""Share of a run from which its schedule may be over, and of its highest that a rate has come down
to before it is 0: otherwise it was switched off.
"""
_DIGITS = 4
_WHOLE_LOG = ("policy_loss", "grad_norm", "entropy", "reward_std", "reward")


def rate_rounded(context: RuleContext) -> str | None:
    """Exempt a learning rate of 0 that may be rounded, as consoles with three digits print it."""
    key = context.key
    kl = context.run.present(context.indicators.get("reference_kl"))
    if kl and any(kl.tail(_NEWEST)):
        moves = f"{kl.key} is not 0, so the policy moves"
        return f"{moves}: {key} is rounded, or has fallen to 0 at the end"
    words = f"all numbers have few digits: {key} may be rounded"
    return words if few_digits(context) else None


def schedule_over(context: RuleContext) -> bool:
    """Exempt a learning rate that has come down to 0: at the end of its schedule there is nothing
    left to learn; in the middle of a run it is too early for that.
    """
    rate, run = context.known(context.key), context.run
    if not rate or rate.highest <= 0 or rate.values[-1] != 0:
        return False
    last = next(value for value in reversed(rate.values) if value != 0)
    late = (run.step or 0) >= _END * (run.total_steps or 0)
    return late and abs(last) <= _LOW * rate.highest


def few_digits(context: RuleContext) -> bool:
    """Exempt a figure of 0 that may be rounded, in a log without any number of many digits."""
    rate = context.first_key(METRICS["learning_rate"])
    whole = (*map(context.indicators.get, _WHOLE_LOG), rate)
    newest = [value for one in whole for value in context.finite(one, _NEWEST)]
    return all(round(value, _DIGITS) == value for value in newest)


_SEQUENCES = pattern(r"gspo|seq(?:uence)?(?:_|-|$)", re.IGNORECASE)
_KINDS = ["policy_loss.loss_mode", "loss_mode", "importance_sampling_level"]


def clips_sequences(context: RuleContext) -> str | None:
    """Exempt the clip fraction of GSPO: it clips about a hundred times as much by design (arXiv
    2507.18071).
    """
    for name in _KINDS:
        stated = context.run.config.find([name])
        if stated and _SEQUENCES.match(str(stated[1])):
            return f"{stated[0]} is {stated[1]}"
    return None


def no_sequence_weights(context: RuleContext) -> str | None:
    """Exempt rules on importance weights per sequence if weights are per token."""
    name, stated = context.run.config.named("importance_weights")
    if not name:
        return "it is unknown whether importance weights are per sequence: no settings were found"
    words = f"only for importance weights per sequence; {name} is {stated}"
    return None if stated == "sequence" else words


_EDGE, _WELL, _MOST_OF_IT = 3, 0.2, 0.5
"""First and newest points of a reward that has learnt at once if it has gained a fifth of its size,
and half of the way to its best so far: heuristic.
"""


def has_learnt_at_once(context: RuleContext) -> str | None:
    """Exempt what falls while the task is learnt as fast: the reward is near its best and well
    above its beginning; or there is no reward that tells.
    """
    values = context.finite(context.indicators.get("reward"))
    if not values:
        return "the log has no reward"
    first, now = values[:_EDGE], fmean(values[-_EDGE:])
    begun = fmean(first)
    least = max(_WELL * max(abs(begun), abs(now)), _MOST_OF_IT * (max(values) - begun))
    is_learnt = now - begun >= least and now > max(first)
    return "the task was learnt at once" if is_learnt else None


_COARSE, _PRECISION = 100, 1e-6
"""A share of at most so many answers may come again by chance (heuristic); single precision, which
trainers compute means in, is as close to it as this.
"""


def few_answers(context: RuleContext) -> str | None:
    """Exempt a score that may be a share of few answers, or while another one changes."""
    key = context.key
    for other in validation_keys(context.run.keys):
        if len({*context.finite(other, 2)}) > 1:
            return f"{other} has changed"
    known = context.finite(key, 1)
    share = Fraction(known[0] if known else 0).limit_denominator(_COARSE)
    is_coarse = not known or abs(share - known[0]) < _PRECISION
    return f"{key} may be a share of few answers" if is_coarse else None


_VALIDATIONS, _MOVES, _OF_REWARD = 5, 2.0, 200
"""Validations without which their trend is not known, the standard errors of one, and the rewards
beside which it is looked for.
"""


def validation_moves(context: RuleContext) -> str | None:
    """Exempt a level reward while validation moves, or is too rare to tell."""
    rewards = context.indicator("reward")
    for key in validation_keys(context.run.keys)[:1]:
        scores = context.known(key)
        first = rewards.steps[-_OF_REWARD:][0] if rewards else 0
        known = finite(scores.since(first).values()) if scores else []
        if len(known) < _VALIDATIONS:
            return (
                f"needs {_VALIDATIONS} validations beside the rewards, {key} has fewer"
            )
        if abs(trend(known).t) >= _MOVES:
            return f"{key} still moves"
    return None


_FACTOR = 0.999
"""A mean of factors from 1 upwards cannot be below, but for rounding."""


def exempt(
    context: RuleContext, keys: Sequence[str], names: Collection[str]
) -> str | None:
    """Return why a rule applies to none of its metrics by one of some exemptions, None if it does
    to one.
    """
    for name in filter(names.__contains__, context.rule.unless):
        find = BY_VALUES.get(name) or FOR_WHOLE_RUN[name]
        words: str = WORDS["exemptions"].get(name, "{found}")
        found = [(key, find(context._replace(key=key))) for key in keys]
        reasons = [words.format(key=key, found=one) for key, one in found if one]
        if len(reasons) == len(keys):
            return reasons[0]
    return None


BY_VALUES: Mapping[str, Exemption] = {
    "bounded-reward": lambda context: reward.bounded(context.run, context.end),
    "small-scale": reward.small_scale,
    "asynchronous": asynchronous,
    "synchronous": lambda context: not asynchronous(context),
    # NeMo-RL's error is no factor from 1 upwards.
    "no-factor": lambda context: (
        min(context.finite(context.key), default=1.0) < _FACTOR
    ),
    "judged-as-idle": judged_as_idle,
    "solved": reward.solved,
    "not-solved": lambda context: not reward.solved(context),
    "learning": reward.learning,
    "has-gained": reward.has_gained,
    "has-moved": reward.has_moved,
    "part-gains": reward.part_gains,
    "learnt-at-once": has_learnt_at_once,
    "reward-holds": reward.holds,
    "validation-moves": validation_moves,
    "few-answers": few_answers,
    "right-answers": reward.right_answers,
    "no-part-lost": reward.no_part_lost,
    "by-reference-kl": reward.by_reference_kl,
}
"""Name in the guide -> exemption that depends on a run's values and is evaluated at each step."""
_EXCUSES = (
    "learning", "has-gained", "has-moved", "part-gains", "solved", "reward-holds",
    "validation-moves", "few-answers", "right-answers", "no-part-lost",
)  # fmt: skip
WITHOUT_BREACH = BY_VALUES.keys() - {*_EXCUSES}
"""Those that say, too, that a rule cannot judge where it finds nothing; others excuse breaches."""
FOR_WHOLE_RUN: Mapping[str, Exemption] = {
    "adaptive": lambda context: adaptive(context.run),
    # verl's and others' KL to the reference.
    "no-target": lambda context: (
        context.run.dialect != "tutorial" and not stated_target(context.run)
    ),
    "has-target": lambda context: stated_target(context.run),
    "of-own-making": lambda context: is_home_made(context.key),
    # That trainer's are shares of the longest response in the batch.
    "v1-trainer": lambda context: v1_trainer(context.run),
    "not-v1-trainer": lambda context: not v1_trainer(context.run),
    "no-response-limit": lambda context: (
        not (
            context.guide.response_limit
            or stated_limit(context.run, "own_response_limit")
        )
    ),
    "no-prompt-limit": lambda context: not stated_limit(context.run, "prompt_limit"),
    "assumed-limit": assumed_limit,
    "no-staleness-limit": lambda context: no_staleness_limit(context.run),
    "clips-sequences": clips_sequences,
    "no-sequence-weights": no_sequence_weights,
    "has-reward": lambda context: "reward" in context.indicators,
    # One figure for single devices.
    "has-utilization": lambda context: context.indicators.get("gpu_utilization"),
    "unused-device": unused_device,
    "no-score": reward.is_no_score,
    # Home-made logs have the names without a scope, too, for other quantities.
    "another-name": lambda context: (
        not ("/" in context.key and is_tutorials(context.key))
    ),
    "rate-rounded": rate_rounded,
    "schedule-over": schedule_over,
    "few-digits": few_digits,
}
"""Name in the guide -> exemption that holds for the whole run."""
