"""Exemptions by what else a run logs and how it writes numbers: better figures, devices in use,
asynchronous training, a 0 that may be a rounded one.
"""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from verl_tui.health.rule_context import present_names
from verl_tui.runs.cached import cached_by_keys
from verl_tui.runs.views.devices import WORKED, memory_key, never_worked

if TYPE_CHECKING:
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.run import Run

_LATELY, _IDLE = 10, 50.0
"""Newest points of a GPU's utilisation, and the percentage below which it is idle (the guide)."""
_HELD = 3.0
"""Percent of a device's memory that a process holds at least: a context alone takes less."""
_STALENESS = (
    "training/off_policy/trajectory_staleness/max",
    "fully_async/count/stale_trajectory_processed",
)
_ASYNCHRONOUS = ("fully_async/", "separate_async/", "rollouter/")


def judged_as_idle(context: RuleContext, key: str) -> str | None:
    """Exempt a utilisation that is so low that it is called idle."""
    series = context.known(key)
    known = context.finite(key, _LATELY)
    if series is None or not known:
        return None
    scale = 100.0 if series.highest <= 1.0 else 1.0
    if scale * fmean(known) < _IDLE:
        return "below 50%: judged by gpu-idle"
    return None


def unused_device(context: RuleContext, key: str) -> str | None:
    """Exempt a device whose memory holds next to nothing, or that has never worked: W&B logs all
    devices of a host, not only the run's, and others may hold memory there.
    """
    memory = context.run.present(memory_key(key))
    point = memory.last_finite if memory is not None else None
    if memory is not None and point is not None and memory.highest < _HELD:
        return (
            "the run does not use this device: "
            f"{memory.key} has never reached {_HELD:g}%"
        )
    if not never_worked(context.run, key):
        return None
    return f"whether the run uses this device is unknown: {key} has never reached {WORKED:g}%"


def asynchronous(context: RuleContext, _key: str) -> str | None:
    """Exempt what compares engine and trainer at the same weights where samples are older than the
    weights.
    """
    if name := _asynchronous_name(context.run):
        differ = "so the two differ by design"
        return f"asynchronous training samples with older weights, {differ} ({name})"
    for name in _STALENESS:
        series = context.known(context.names.get(name))
        if series is not None and series.highest > 0:
            return f"samples are older than the weights, so the two differ by design ({series.key})"
    return None


@cached_by_keys
def _asynchronous_name(run: Run) -> str | None:
    """Return the first name that only asynchronous training writes."""
    names = present_names(run.keys)
    return next((name for name in names if name.startswith(_ASYNCHRONOUS)), None)


RATES = ("actor/lr", "learning_rate", "train/learning_rate", "train/lr", "lr")
"""Names of the learning rate, verl's first."""
_NEWEST = 10
"""Newest points of a metric to check."""
_END, _LOW = 0.9, 0.5
"""Share of a run from which on its schedule may be over, and of its highest that a rate has come
down to before it is 0: otherwise it was switched off.
"""
_DIGITS = 4
_WHOLE_LOG = ("policy_loss", "grad_norm", "entropy", "reward_std", "reward")


def rate_rounded(context: RuleContext, key: str) -> str | None:
    """Exempt a learning rate of 0 that may be rounded, as consoles with three digits print it."""
    kl = context.run.present(context.indicators.get("reference_kl"))
    if kl is not None and any(value != 0 for value in kl.tail(_NEWEST)):
        moves = f"{kl.key} is not 0, so the policy moves"
        return f"{moves}: {key} is rounded, or has fallen to 0 at the end"
    return few_digits(context, key)


def schedule_over(context: RuleContext, key: str) -> str | None:
    """Exempt a learning rate that has come down to 0: at the end of its schedule there is nothing
    left to learn; in the middle of a run it is too early for that.
    """
    rate = context.known(key)
    run = context.run
    if rate is None or rate.highest <= 0 or rate.values[-1] != 0:
        return None
    last = next(value for value in reversed(rate.values) if value != 0)
    early = run.total_steps and (run.step or 0) < _END * run.total_steps
    if early or abs(last) > _LOW * rate.highest:
        return None
    return f"{key} has come down to 0: it is at the end of its schedule"


def few_digits(context: RuleContext, key: str) -> str | None:
    """Exempt a figure of 0 that may be rounded, in a log without any number of many digits."""
    whole = (*map(context.indicators.get, _WHOLE_LOG), context.first_key(RATES))
    newest = [value for one in whole for value in context.finite(one, _NEWEST)]
    if any(round(value, _DIGITS) != value for value in newest):
        return None
    return f"all numbers have few digits: {key} may be rounded"
