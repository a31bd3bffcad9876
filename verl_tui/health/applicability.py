"""When a rule must hold its tongue: each silence looks for evidence and gives its reason as a
sentence.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from functools import lru_cache
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING

from verl_tui.evaluation import PREFIX
from verl_tui.health.batches import BATCH_EXEMPTIONS
from verl_tui.health.learnt import LEARNT_EXEMPTIONS
from verl_tui.health.limits import (
    adaptive,
    known_response_limit,
    no_staleness_limit,
    setting,
    stated_limit,
    stated_target,
    v1_trainer,
)
from verl_tui.health.rounded import ROUNDING_EXEMPTIONS
from verl_tui.runs.views.devices import memory_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

_POINTS = 100
"""Newest points that evidence is sought in."""
_ENOUGH = 5
"""Points without which there is no evidence: heuristic."""
_SCORES = 20
"""Scores without which their scale is not known: heuristic, a handful may lie anywhere."""
_MOST_SCORES = 2000
_AT_BOUND = 2
"""Scores at exactly 1 or −1 that are no chance."""
_LATELY, _IDLE = 10, 50.0
"""Points of a GPU's utilisation looked at, and the percentage below which it idles (the guide)."""
_HELD = 3.0
"""Percent of a device's memory that a process holds at least: a context alone takes less."""
_CLOSE = 0.1
"""Share by which a spread may differ from √(m(1−m)): batches are finite."""

_SCALES = {"reward/mean", "train/reward", "avg_reward"}
"""Spellings under which the tutorials themselves end healthy below 1 (at 0.92 and 0.82)."""
_FACTOR = 0.999
"""A mean of factors from 1 upwards cannot be below, but for rounding."""


def bounded_reward(context: RuleContext, _key: str) -> str | None:
    """Return the evidence that rewards are scores on a bounded scale, where the guide's 2–4 means
    nothing.
    """
    mean, spread = (context.known(context.indicators.get(id)) for id in ("reward", "reward_std"))
    return _binary_spread(mean, spread) or _bounded_scale(context.run)


def bounded(run: Run) -> str | None:
    """Return the evidence that a run's rewards are scores on a bounded scale."""
    return _binary_spread(run.indicator("reward"), run.indicator("reward_std")) or _bounded_scale(
        run
    )


def _bounded_scale(run: Run) -> str | None:
    if reason := _bounded_scores(run):
        return reason
    return _bounded_responses(run.series("reward/reward"))


def _binary_spread(mean: Series | None, spread: Series | None) -> str | None:
    """A spread of √(m(1−m)) is that of scores that are 0 or 1."""
    if mean is None or spread is None:
        return None
    pairs = _pairs(mean, spread)
    if len(pairs) < _ENOUGH or not all(0 <= m <= 1 for m, _ in pairs):
        return None
    like = sum(
        abs(s - math.sqrt(m * (1 - m))) <= max(0.01, _CLOSE * math.sqrt(m * (1 - m)))
        for m, s in pairs
    )
    if like < 0.8 * len(pairs):
        return None
    return f"rewards are 0 or 1: {spread.key} is √(m(1−m)) in {like} of the last {len(pairs)} points, m being {mean.key}"


def _pairs(first: Series, second: Series) -> list[tuple[float, float]]:
    """Return the newest finite values at steps that both have."""
    pairs = []
    for i in range(max(0, len(first) - _POINTS), len(first)):
        j = bisect_left(second.steps, first.steps[i])
        if j < len(second) and second.steps[j] == first.steps[i]:
            pair = (first.values[i], second.values[j])
            if all(map(math.isfinite, pair)):
                pairs.append(pair)
    return pairs


def _bounded_scores(run: Run) -> str | None:
    scores: list[float] = []
    for step in reversed(run.samples.steps):
        scores.extend(
            sample.score
            for sample in run.samples.at(step)
            if sample.score is not None and math.isfinite(sample.score)
        )
        if len(scores) >= _MOST_SCORES:
            break
    return _scale(scores, "the newest samples' scores") or _bounded_dumps(run)


def _bounded_dumps(run: Run) -> str | None:
    """Scores of dumps are not kept, only the lowest and the highest of each step."""
    low, high, count = (
        run.series(f"{PREFIX}{name}") for name in ("score_min", "score_max", "count")
    )
    if low is None or high is None or count is None or sum(count.tail(_POINTS)) < _SCORES:
        return None
    bounds = (min(low.tail(_POINTS), default=-math.inf), max(high.tail(_POINTS), default=math.inf))
    if not -1.0 <= bounds[0] <= bounds[1] <= 1.0 or not {*bounds} & {-1.0, 1.0}:
        return None
    return f"the newest samples' scores all lie within {bounds[0]:g} and {bounds[1]:g}: a bounded scale"


def _scale(scores: Sequence[float], what: str) -> str | None:
    if len(scores) < _SCORES:
        return None
    if all(score in (0.0, 1.0) for score in scores):
        return f"{what} ({len(scores)}) are all 0 or 1: a bounded scale"
    # Scores that merely stay below 1 may be low ones: only those that reach the bound show that
    # there is one.
    if (
        all(-1.0 <= score <= 1.0 for score in scores)
        and sum(abs(score) == 1.0 for score in scores) >= _AT_BOUND
    ):
        return (
            f"{what} ({len(scores)}) all lie within −1 and 1, and reach the bound: a bounded scale"
        )
    return None


def _bounded_responses(series: Series | None) -> str | None:
    """The tutorials' `reward` records, one a response; a step's mean still tells whether all of
    them were 0 or 1.
    """
    if series is None:
        return None
    values = [value for value in series.tail(_POINTS) if math.isfinite(value)]
    if not series.counts or max(series.counts[-_POINTS:]) == 1:
        return _scale(values, f"the values of {series.key}")
    counts = series.counts[-_POINTS:]
    if sum(counts) < _SCORES or len(values) != len(counts):
        return None
    whole = all(
        0 <= value <= 1 and abs(value * n - round(value * n)) < 1e-6
        for value, n in zip(values, counts, strict=True)
    )
    return f"the scores behind {series.key} are all 0 or 1: a bounded scale" if whole else None


def small_scale(context: RuleContext, _key: str) -> str | None:
    """Excuse spellings of the reward that the tutorials use for scores below 1, unless some value
    exceeds 1.
    """
    key = context.indicators.get("reward")
    series = context.known(key)
    if key not in _SCALES or series is None:
        return None
    if series.highest > 1:
        return None
    return f"{key} has never exceeded 1: it may be a score from 0 to 1, not the guide's 2–4 scale"


def stair_steps(context: RuleContext, key: str) -> str | None:
    """Excuse a KL that falls in stair steps, as the adaptive controller makes it."""
    series = context.known(key)
    # Where the settings name the controller, a level long after the last stair is its doing, too.
    looked = 10 * _POINTS if adaptive(context.run) else 2 * _POINTS
    if series is None or adaptive(context.run) is False or not stairs(series.tail(looked)):
        return None
    how = (
        "the controller is the adaptive one"
        if adaptive(context.run)
        else "as the adaptive controller makes it"
    )
    return f"{key} falls in stair steps, {how}: normal"


def stairs(values: Sequence[float]) -> bool:
    """Return whether values fall in stair steps: few falls make up most of the way, and between
    them little moves.
    """
    known = [value for value in values if math.isfinite(value)]
    if len(known) < 2 * _ENOUGH:
        return False
    way = max(known) - known[-1]
    changes = [after - before for before, after in pairwise(known)]
    falls = sorted((-change for change in changes if change < 0), reverse=True)
    steps, gone = 0, 0.0
    while steps < len(falls) and gone < 0.7 * way:
        gone += falls[steps]
        steps += 1
    if way <= 0 or steps < 2 or steps > 0.2 * len(known):
        return False
    usual = sorted(map(abs, changes))[len(changes) // 2]
    least = falls[steps - 1]
    treads = _treads(known, 0.1 * least)
    level = all(max(tread) - min(tread) <= 0.5 * least for tread in treads)
    return usual <= 0.1 * least and level and len(treads) <= 0.2 * len(known)


def _treads(values: Sequence[float], fall: float) -> list[list[float]]:
    """Cut values where they fall at least so far."""
    treads = [[values[0]]]
    for before, after in pairwise(values):
        if before - after >= fall:
            treads.append([])
        treads[-1].append(after)
    return treads


def no_target(context: RuleContext, key: str) -> str | None:
    """Excuse verl's and others' KL to the reference where no target is in force: it rises slowly by
    nature.
    """
    if context.run.dialect == "tutorial" or stated_target(context.run) is not None:
        return None
    return f"{key} rises slowly by nature, and no adaptive controller with a target_kl is known"


def has_reward(context: RuleContext, _key: str) -> str | None:
    """Excuse a figure alone where the reward tells what it has bought."""
    return "judged beside the reward" if "reward" in context.indicators else None


def has_target(context: RuleContext, _key: str) -> str | None:
    """Excuse the comparison with a run's own past where a target says more."""
    return "judged against target_kl" if stated_target(context.run) is not None else None


def v1(context: RuleContext, key: str) -> str | None:
    """Excuse clip ratios of verl's v1 trainer: they are shares of the longest response in the
    batch.
    """
    evidence = v1_trainer(context.run)
    return (
        f"from verl v0.9 on {key} is no share of truncated ones ({evidence})" if evidence else None
    )


def not_v1(context: RuleContext, _key: str) -> str | None:
    """Excuse what only makes sense for verl's v1 trainer."""
    return None if v1_trainer(context.run) else "only for verl's trainer from v0.9 on"


def no_response_limit(context: RuleContext, _key: str) -> str | None:
    """Excuse a comparison with a limit of response length that is not known."""
    if context.guide.response_limit is not None or stated_limit(context.run, "max_response_length"):
        return None
    return "data.max_response_length is not known: no settings were found"


def no_prompt_limit(context: RuleContext, _key: str) -> str | None:
    """Excuse a comparison with a limit of prompt length that is not known."""
    if stated_limit(context.run, "max_prompt_length"):
        return None
    return "data.max_prompt_length is not known: no settings were found"


def assumed_limit(context: RuleContext, key: str) -> str | None:
    """Excuse lengths whose limit would have to be assumed: the tutorials' 512 is that of their own
    logs.
    """
    if known_response_limit(context.run, context.guide) is not None:
        return None
    return f"the limit of response length is not known, and {key} is not of the tutorials' own logs"


def staleness_free(context: RuleContext, _key: str) -> str | None:
    """Excuse staleness that the settings do not bound."""
    stated = no_staleness_limit(context.run)
    return f"{stated} is null: staleness is not controlled in this run" if stated else None


_SEQUENCES = re.compile(r"gspo|seq(?:uence)?(?:_|-|$)", re.IGNORECASE)


def clips_sequences(context: RuleContext, key: str) -> str | None:
    """Excuse the clip fraction of GSPO: it clips about a hundred times as much by design (arXiv
    2507.18071).
    """
    for names in (["policy_loss.loss_mode", "loss_mode"], ["importance_sampling_level"]):
        stated = setting(context.run, names)
        if stated is not None and isinstance(stated[1], str) and _SEQUENCES.match(stated[1]):
            return f"{stated[0]} is {stated[1]}: it clips whole sequences, so that {key} is large by design"
    return None


def not_unit_scale(context: RuleContext, key: str) -> str | None:
    """Excuse a reward that is not known to go from 0 to 1: a swing has no size without a scale."""
    series = context.known(key)
    values = series.tail(_POINTS) if series is not None else ()
    known = [value for value in values if math.isfinite(value)]
    if len(known) >= _SCORES and all(0.0 <= value <= 1.0 for value in known):
        return None
    return f"{key} is not known to be on a scale from 0 to 1"


def judged_as_idle(context: RuleContext, key: str) -> str | None:
    """Excuse a utilisation that is so low that it is called idle."""
    series = context.known(key)
    known = (
        [value for value in series.tail(_LATELY) if math.isfinite(value)]
        if series is not None
        else []
    )
    scale = 100.0 if series is not None and series.highest <= 1.0 else 1.0
    return "below 50 %: judged by gpu-idle" if known and scale * fmean(known) < _IDLE else None


def unused_device(context: RuleContext, key: str) -> str | None:
    """Excuse a device whose memory holds next to nothing: W&B logs all devices of a host, not only
    the run's.
    """
    memory = context.run.present(memory_key(key))
    point = memory.last_finite if memory is not None else None
    if memory is None or point is None or memory.highest >= _HELD:
        return None
    return f"the run does not use this device: {memory.key} has never reached {_HELD:g} %"


def has_utilization(context: RuleContext, _key: str) -> str | None:
    """Excuse single devices where the log has a figure of all together."""
    known = context.indicators.get("gpu_utilization")
    return f"judged by {known}" if known else None


def has_spread(context: RuleContext, _key: str) -> str | None:
    """Excuse the spread over time where the log has the spread within a step."""
    known = context.indicators.get("reward_std")
    return f"judged by {known}" if known else None


_STALENESS = (
    "training/off_policy/trajectory_staleness/max",
    "fully_async/count/stale_trajectory_processed",
)
_ASYNCHRONOUS = ("fully_async/", "separate_async/", "rollouter/")


def asynchronous(context: RuleContext, _key: str) -> str | None:
    """Excuse what compares engine and trainer at the same weights where samples are older than the
    weights.
    """
    if name := _tells_of_asynchronous(tuple(context.names)):
        return f"asynchronous training samples with older weights, so the two differ by design ({name})"
    for name in _STALENESS:
        series = context.known(context.names.get(name))
        if series is not None and series.highest > 0:
            return f"samples are older than the weights, so the two differ by design ({series.key})"
    return None


@lru_cache(64)
def _tells_of_asynchronous(names: tuple[str, ...]) -> str | None:
    """Return the first name that only asynchronous training writes; names hardly change while a run
    goes on.
    """
    return next((name for name in names if name.startswith(_ASYNCHRONOUS)), None)


def synchronous(context: RuleContext, key: str) -> str | None:
    """Excuse what is only meant for asynchronous training."""
    return (
        None
        if asynchronous(context, key)
        else "judged by the stricter limits of synchronous training"
    )


def no_sequence_weights(context: RuleContext, _key: str) -> str | None:
    """Excuse what is only true of importance weights by sequence."""
    stated = setting(context.run, ["rollout_correction.rollout_is", "rollout_is"])
    if stated is None:
        return "whether importance weights are by sequence is not known: no settings were found"
    return (
        None
        if stated[1] == "sequence"
        else f"only for importance weights by sequence; {stated[0]} is {stated[1]}"
    )


def no_factor(context: RuleContext, key: str) -> str | None:
    """Excuse a figure that is no factor from 1 upwards, as NeMo-RL's error is."""
    series = context.known(key)
    low = None if series is None else series.first_beyond(_FACTOR, down=True)
    return (
        None
        if low is None
        else f"{key} is below 1 (step {low.step}): it is no factor, its unit is not known"
    )


EXEMPTIONS: Mapping[str, Callable[[RuleContext, str], str | None]] = {
    "bounded-reward": bounded_reward,
    "small-scale": small_scale,
    "stair-steps": stair_steps,
    "no-target": no_target,
    "has-target": has_target,
    "has-reward": has_reward,
    "v1-trainer": v1,
    "not-v1-trainer": not_v1,
    "no-response-limit": no_response_limit,
    "no-prompt-limit": no_prompt_limit,
    "has-spread": has_spread,
    "asynchronous": asynchronous,
    "synchronous": synchronous,
    "no-sequence-weights": no_sequence_weights,
    "no-factor": no_factor,
    "assumed-limit": assumed_limit,
    "not-unit-scale": not_unit_scale,
    "judged-as-idle": judged_as_idle,
    "unused-device": unused_device,
    "has-utilization": has_utilization,
    "no-staleness-limit": staleness_free,
    "clips-sequences": clips_sequences,
    **LEARNT_EXEMPTIONS,
    **ROUNDING_EXEMPTIONS,
    **BATCH_EXEMPTIONS,
}
"""Name in the guide -> the silence; each takes the judged key too."""

DEPEND_ON_VALUES = frozenset(
    {"bounded-reward", "small-scale", "stair-steps", "asynchronous", "synchronous", "no-factor"}
    | {"not-unit-scale", "judged-as-idle", *LEARNT_EXEMPTIONS, *BATCH_EXEMPTIONS}
)
"""Silences that depend on the run's numbers, so that they are asked as of each step; others hold
for the whole run.
"""
