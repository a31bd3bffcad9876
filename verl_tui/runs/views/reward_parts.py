"""The parts that a reward is made of, by the names that trainers and their users give them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from verl_tui.distributions import one_each
from verl_tui.evaluation import PREFIX, RESERVED
from verl_tui.metrics import describe
from verl_tui.patterns import NamePattern
from verl_tui.runs.cached import cached_by_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from verl_tui.runs.run import Run

_COMPONENT = NamePattern(
    r"(?:train/)?rewards/(?P<trl>.+?)(?:/mean)?"
    r"|(?:training/reward|train/reward_components|reward_components|reward)/(?P<own>.+?)(?:/mean)?"
    r"|(?:critic/)?(?:reward_extra|reward_extra_info|extra_reward)/(?P<extra>.+?)/mean"
    r"|critic/rewards/(?!mean$|max$|min$|std$)(?P<parts>.+?)(?:/mean)?"
    r"|critic/(?!scores?/|rewards/|advantages/|returns/|values/|vf_)(?P<verl>\w+)/mean"
    r"|samples/(?:extra_)?(?P<dump>.+)"
)
"""TRL's `rewards/{function}/mean`, the parts that users add to verl (pull requests 4698, 5793,
4545; a reward manager returns them as `reward_extra_info`), and figures of a dump beside a sample's
score.
"""
_NO_COMPONENT = NamePattern(
    r".*[/_](?:length|len|tokens?|chars|words|turns?|time|seconds|latency|std|min|max|median|p\d\d"
    r"|kl|entropy|count"
    r"|number|num|penalty|costs?|errors?|failures?|violations?|advantages?|repetition|distinct_\d"
    r"|index|level"
    r"|difficulty|weight|temperature|loss|rate_limit|retries|calls|ratio|coef|coeff|mean)"
    r"|/(?:rewards?|scores?|total|sum|overall)"
    r"|/(?:chosen|rejected|margins|accuracies)|.*(?:penal|punish|overlong).*"
)
"""Numbers that are no part of a reward, or are meant to fall: amounts, spreads, costs, facts of the
task, totals; and what DPO calls rewards, of which that of the rejected answer falls as it learns.
"""
_FACT = NamePattern(r"/(?:num|n|is|has)_.+")
"""Facts of the task or of an answer."""


@lru_cache(256)
def components(keys: tuple[str, ...], reward: str | None) -> tuple[str, ...]:
    """Return the keys of a reward's parts; of several spellings of one part the first.

    Args:
        keys: All keys of a log.
        reward: Key of the reward itself.
    """
    # Called at each judgement, while keys hardly ever change.
    known: dict[str, str] = {}
    for key in sorted(
        one_each(keys), key=lambda key: (key.startswith(PREFIX), len(key), key)
    ):
        name = _name(key)
        if key == reward or name is None or name in known:
            continue
        known[name] = key
    return tuple(known.values())


def _name(key: str) -> str | None:
    """Return the name of a part, None if the key is not one."""
    found = _COMPONENT.fullmatch(key)
    # Our own figures of samples are no parts of a reward; an extra of such a name is
    # `samples/extra_…`.
    if found is None or key.removeprefix(PREFIX) in RESERVED:
        return None
    name = str(found[found.lastgroup or 0])
    # TRL names a part by its function, which may be called `is_short`.
    fact = found.lastgroup != "trl" and _FACT.fullmatch(f"/{name}")
    return None if fact or _NO_COMPONENT.fullmatch(f"/{name}") else name


_PENALTY = NamePattern(r"reward part (?!.* spread$).+")
_SAID = NamePattern(
    r"(?:reward part )?(.+?)(?:[ _](?:rewards?|func(?:tion)?|fn))*(?: \(samples\))?"
)
"""Labels of parts: what is said of each beside the others."""


@cached_by_keys
def named_parts(run: Run) -> Mapping[str, str]:
    """Return the keys of a reward's parts, penalties too, by their names; none where there is only
    one, which is the reward itself.
    """
    reward = run.indicators.get("reward")
    known = components(run.keys, reward)
    found: dict[str, str] = {}
    for key in run.keys:
        label = describe(key).label
        if key in known or (_PENALTY.fullmatch(label) and key != reward):
            said = _SAID.fullmatch(label)
            found.setdefault(said[1] if said else label, key)
    return found if len(found) > 1 else {}
