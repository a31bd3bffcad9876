"""The cause of dead groups: a solved or hopeless task, a constant scorer, or answers that are
alike.
"""

from __future__ import annotations

from operator import sub
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.components import components
from verl_tui.health.conditions.condition import number
from verl_tui.health.diagnoses.dead_share import NO_SPREAD, SHARES
from verl_tui.health.diagnoses.never_scored import silent_parts
from verl_tui.health.learnt import scale_top
from verl_tui.health.limits import all_cut
from verl_tui.runs.settings import number as as_number

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from verl_tui.health.rule_context import RuleContext

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


def dead_cause(context: RuleContext) -> DeadCause | None:
    """Return the cause of dead groups by what is known in a context, None if it is unknown."""
    reward = context.finite(context.indicators.get("reward"))
    by_reward = _of_reward(context, reward)
    if by_reward is not None:
        return by_reward
    cold = _temperature(context)
    if cold is not None:
        name, value = cold
        return DeadCause(f"sampling is too cold: {name} is {number(value)}", _WARMER)
    if _share(context, "samples/groups_all_right") >= _MOSTLY:
        return _SOLVED
    alike = _variety(context)
    if alike is not None and alike.advice == _VARIETY:
        return alike
    return _hopeless(context, reward) or alike


def _of_reward(context: RuleContext, reward: Sequence[float]) -> DeadCause | None:
    """Return what the reward and the cut answers show: it is always the same, or at its top."""
    if all_cut(context):
        return _CUT
    shown = _always_dead if reward[-1:] == [1] else _may_be_one_score
    if _is_constant(reward) and shown(context):
        return _constant(reward[-1])
    if _at_its_top(reward):
        return _without_a_part(context) or _SOLVED
    return None


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


def _hopeless(context: RuleContext, reward: Sequence[float]) -> DeadCause | None:
    all_wrong = _share(context, "samples/groups_all_wrong")
    if all_wrong < _MOSTLY and not _at_its_bottom(reward):
        return None
    groups = context.finite(context.names.get(_GROUPS))
    is_early = len(reward) < _EARLY and sum(groups) < _ENOUGH
    return DeadCause(
        "the task is too hard so far: nearly all answers score 0",
        _EASIER,
        calm=max(reward, default=0.0) < _LEARNT and is_early,
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


def _always_dead(context: RuleContext) -> bool:
    """Return whether no group has ever had a spread, as far as is known: means alone may hide that
    some had.
    """
    spreads = context.finite(context.indicators.get("reward_std"))
    if spreads:
        return max(spreads) <= NO_SPREAD
    return min(context.finite(context.first_key(SHARES)), default=1.0) >= 1.0


def _may_be_one_score(context: RuleContext) -> bool:
    """Return whether nothing shows that scores differ behind a mean that stays the same."""
    reward = context.indicators.get("reward", "").removesuffix("mean")
    high, low = (context.finite(f"{reward}{end}") for end in ("max", "min"))
    spreads = context.finite(context.indicators.get("reward_std"))
    return max((*spreads, *map(sub, high, low)), default=0.0) <= NO_SPREAD


def may_be_constant(context: RuleContext, step: int) -> bool:
    """Return whether nothing shows, up to a step, that the scores of a group differ."""
    then = context.at(step)
    return _always_dead(then) and _may_be_one_score(then)


def seen_by(context: RuleContext) -> Hashable:
    """Return all that a cause at a past step depends on: while this stays the same, so does the
    cause.
    """
    figures = ("reward", "reward_std", "truncated_share")
    indicators = map(context.indicators.get, figures)  # the reward's ends come with it
    names = map(context.names.get, (*_SAMPLES, *SHARES))
    return context.revisions((*indicators, *names)), _temperature(context)


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


def _variety(context: RuleContext) -> DeadCause | None:
    """Return the cause that answers are alike, from the beginning or since later; None if they are
    not or there are no samples.
    """
    shares = context.finite(context.names.get("samples/unique_share"))
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


def _share(context: RuleContext, name: str) -> float:
    """Return the share of the dead groups that are of a kind, 0 if it is unknown."""
    dead = sum(context.finite(context.names.get("samples/dead_groups"))[-_LATELY:])
    of_kind = context.finite(context.names.get(name))
    return sum(of_kind[-_LATELY:]) / dead if dead > 0 else 0.0
