"""The cause of dead groups: a solved or hopeless task, a constant scorer, or answers that are
alike.
"""

from __future__ import annotations

from bisect import bisect_right
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.components import components
from verl_tui.health.conditions.condition import number
from verl_tui.health.diagnoses.dead_share import NO_SPREAD, SHARES
from verl_tui.health.diagnoses.never_scored import silent_parts
from verl_tui.health.learnt import scale_top
from verl_tui.health.limits import all_cut
from verl_tui.means import finite
from verl_tui.runs.settings import number as as_number

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.series import Series

_LATELY = 20
"""Points up to the step in question that count."""
_MOSTLY = 0.7
"""Share of the dead groups that are all right, or all wrong, for that to be their cause:
heuristic.
"""
_TOP, _BOTTOM = 0.95, 0.05
"""A mean reward from here on, or down to here, on a scale from 0 to 1, is a solved or a hopeless
task: heuristic.
"""
_BEST, _NEARLY, _BEGUN = 0.9, 0.85, 5
"""Otherwise it is solved at nine tenths of its range so far or, if its scale ends at 1, at so much
of the way there, as a penalty may take some of it; its first points must have lain below half.
Heuristic.
"""
_EARLY, _GROUPS, _ENOUGH = 50, "samples/groups", 160
"""Within so many points and groups a hard task that scores now and then may still be learnt."""
_LEARNT = 0.25
"""One that has once given this much of its full score is not that hard: the policy has lost it.
Heuristic.
"""
_SAMPLES = (
    "samples/dead_groups",
    "samples/groups_all_right",
    "samples/groups_all_wrong",
    "samples/unique_share",
    _GROUPS,
)
_ROUNDING = 1e-6
"""Share of their size by which scores of one value differ: single precision leaves no more."""
_COLD = 0.3
"""A sampling temperature at or below gives nearly the same answer each time: heuristic, usual is
0.6 to 1.
"""
_ALIKE = 0.5
"""Share of different answers at or below which they are alike: heuristic."""
_LOST = 0.5
"""If the share has fallen below half of its beginning, the policy has lost its variety; else it
never had any.
"""


class DeadCause(NamedTuple):
    """The cause of dead groups."""

    words: str
    """One clause."""
    advice: str
    """Empty where the rule's own says all."""
    calm: bool = False
    """True if it is no fault: solved, or so early that a hard task looks the same."""


_HARDER = (
    "Take harder prompts, or stop here and keep the best checkpoint; "
    "DAPO's dynamic sampling skips such groups."
)
_EASIER = (
    "Take easier prompts, or look at the scorer: "
    "score a right answer by hand: does the scorer understand its format?"
)
_SCORER = (
    "Score a good and a bad answer by hand: "
    "if both get the same score, the scorer is broken or too lenient."
)
_WARMER = (
    "Raise the sampling temperature of the rollouts (1.0 is usual for training); "
    "validation may stay cold."
)
_VARIETY = (
    "Go back to a checkpoint from before answers became alike; "
    "raise the temperature, add an entropy or a KL term."
)
_CUT = DeadCause(
    "every answer is cut at the limit of response length, so none scores",
    "Raise the limit of response length, or find out why responses grow.",
)
_SOLVED = DeadCause(
    "the task is solved: nothing is left to learn from these prompts",
    _HARDER,
    calm=True,
)


def _of_reward(
    context: RuleContext, reward: Sequence[float], step: int
) -> DeadCause | None:
    """Return what the reward and the cut answers show: it is always the same, or at its top."""
    if all_cut(context.at(step)):
        return _CUT
    shown = _always_dead if reward[-1:] == [1] else _may_be_one_score
    if _is_constant(reward) and shown(context, step):
        return _constant(reward[-1])
    if _at_its_top(reward):
        return _without_a_part(context.at(step)) or _SOLVED
    return None


def dead_cause(context: RuleContext, step: int) -> DeadCause | None:
    """Return the cause of dead groups by what was known at a step, None if it is unknown."""
    reward = _known(context.run.present(context.indicators.get("reward")), step)
    by_reward = _of_reward(context, reward, step)
    if by_reward is not None:
        return by_reward
    cold = _temperature(context)
    if cold is not None:
        name, value = cold
        return DeadCause(f"sampling is too cold: {name} is {number(value)}", _WARMER)
    if _share(context, "samples/groups_all_right", step) >= _MOSTLY:
        return _SOLVED
    alike = _variety(context, step)
    if alike is not None and alike.advice == _VARIETY:
        return alike
    return _hopeless(context, reward, step) or alike


def _without_a_part(context: RuleContext) -> DeadCause | None:
    """Return that a reward is at its top although a part of it has never scored, None where all
    have.
    """
    parts = components(context.run.keys, context.indicators.get("reward"))
    silent = silent_parts(context, parts, _LATELY) if len(parts) > 1 else ()
    if not silent:
        return None
    names = ", ".join(one.key for one in silent)
    words = f"the reward is at its top without {names}, which never scored"
    return DeadCause(words, _EASIER, calm=True)


def _hopeless(
    context: RuleContext, reward: Sequence[float], step: int
) -> DeadCause | None:
    all_wrong = _share(context, "samples/groups_all_wrong", step)
    if all_wrong < _MOSTLY and not _at_its_bottom(reward):
        return None
    return DeadCause(
        "the task is too hard so far: nearly all answers score 0",
        _EASIER,
        calm=max(reward, default=0.0) < _LEARNT and _is_early(context, reward, step),
    )


def _is_constant(reward: Sequence[float]) -> bool:
    if not reward:
        return False
    return max(reward) - min(reward) <= _ROUNDING * max(map(abs, reward))


def _at_its_bottom(reward: Sequence[float]) -> bool:
    """Return whether the reward is next to 0 on a scale from 0 to 1."""
    if not reward or min(reward) < 0 or max(reward) > 1:
        return False
    return fmean(reward[-_LATELY:]) <= _BOTTOM


def _always_dead(context: RuleContext, step: int) -> bool:
    """Return whether no group has ever had a spread, as far as is known: means alone may hide that
    some had.
    """
    spreads = _known(context.run.present(context.indicators.get("reward_std")), step)
    if spreads:
        return max(spreads) <= NO_SPREAD
    shares = _known(context.run.present(context.first_key(SHARES)), step)
    return min(shares, default=1.0) >= 1.0


def _may_be_one_score(context: RuleContext, step: int) -> bool:
    """Return whether nothing shows that scores differ behind a mean that stays the same."""
    reward = context.indicators.get("reward", "").removesuffix("mean")
    ends = (
        _known(context.run.present(f"{reward}{end}"), step) for end in ("max", "min")
    )
    spreads = _known(context.run.present(context.indicators.get("reward_std")), step)
    apart = (high - low for high, low in zip(*ends, strict=False))
    return max((*spreads, *apart), default=0.0) <= NO_SPREAD


def may_be_constant(context: RuleContext, step: int) -> bool:
    """Return whether nothing shows that the scores of a group differ."""
    return _always_dead(context, step) and _may_be_one_score(context, step)


def _is_early(context: RuleContext, reward: Sequence[float], step: int) -> bool:
    groups = _known(context.run.present(context.names.get(_GROUPS)), step)
    return len(reward) < _EARLY and sum(groups) < _ENOUGH


def seen_by(context: RuleContext) -> Hashable:
    """Return all that a cause at a past step depends on: while this stays the same, so does the
    cause.
    """
    figures = (
        "reward",
        "reward_std",
        "truncated_share",
    )  # the reward's ends come with it
    indicators = map(context.indicators.get, figures)
    keys = (*indicators, *map(context.names.get, (*_SAMPLES, *SHARES)))
    revisions = []
    for key in keys:
        series = context.run.series(key) if key is not None else None
        revisions.append(series.revision if series is not None else 0)
    return keys, tuple(revisions), context.end, _temperature(context)


def _at_its_top(reward: Sequence[float]) -> bool:
    """Return whether the reward is next to the top of its scale and, but for 1, far above its
    beginning.
    """
    if not reward:
        return False
    lately = fmean(reward[-_LATELY:])
    low = min(reward)
    high = max(reward)
    if low >= 0 and high <= 1 and lately >= _TOP:
        return True
    if len(reward) <= _LATELY:
        return False
    begun = fmean(reward[:_BEGUN])
    top = scale_top(high)
    share = _NEARLY if top == 1 else _BEST
    reach = top - low
    return lately >= low + share * reach and begun <= low + _LOST * reach


def _constant(score: float) -> DeadCause:
    if score == 0:
        return DeadCause(
            "every answer so far has scored 0: "
            "the task is too hard, or the scorer cannot read the answers",
            _EASIER,
        )
    return DeadCause(
        f"every answer so far has scored {number(score)}: the scorer is constant",
        _SCORER,
    )


def _variety(context: RuleContext, step: int) -> DeadCause | None:
    """Return the cause that answers are alike, from the beginning or since later; None if they are
    not or there are no samples.
    """
    shares = _known(
        context.run.present(context.names.get("samples/unique_share")), step
    )
    if not shares:
        return None
    now = fmean(shares[-_LATELY:])
    if now > _ALIKE:
        return None
    before = fmean(shares[:_LATELY])
    if max(shares[:_LATELY]) * _LOST < now:
        return DeadCause(
            f"answers have been alike from the beginning ({now:.0%} of them differ): too cold",
            _WARMER,
        )
    return DeadCause(
        f"answers have become alike: {now:.0%} of them differ, {before:.0%} at the beginning",
        _VARIETY,
    )


def _temperature(context: RuleContext) -> tuple[str, float] | None:
    """Return the setting that makes sampling cold, None where it is warm or unknown."""
    config = context.run.config
    stated = config.find(["rollout.temperature"]) or config.find(["temperature"])
    if stated is None:
        return None
    name, setting = stated
    value = as_number(setting)
    if "val" in name:
        return None  # validation may be as cold as it likes
    if value is None or not 0 <= value <= _COLD:
        return None
    return name, value


def _share(context: RuleContext, name: str, step: int) -> float:
    """Return the share of the dead groups that are of a kind, 0 if it is unknown."""
    of_kind = _known(context.run.present(context.names.get(name)), step)
    dead = _known(context.run.present(context.names.get("samples/dead_groups")), step)
    all_dead = sum(dead[-_LATELY:])
    if all_dead <= 0:
        return 0.0
    return sum(of_kind[-_LATELY:]) / all_dead


def _known(series: Series | None, step: int) -> Sequence[float]:
    if series is None:
        return ()
    return finite(series.values[: bisect_right(series.steps, step)])
