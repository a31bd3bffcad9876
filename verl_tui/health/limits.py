"""Limits that rules are relative to, in the run's settings, the user's, or assumed; and settings
that may have caused a failure, a sentence each with the setting, its value and the usual figure.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.health.finding import number
from verl_tui.health.guide import ASSUMED_RESPONSE_LIMIT, Guide
from verl_tui.health.rule_context import METRICS, RuleContext
from verl_tui.patterns import pattern
from verl_tui.runs.settings import NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from verl_tui.runs.run import Run

_PARTS = pattern(r"[./]")
_LATELY, _ALL = 5, 0.98
"""Newest points, and the share of cut responses from which all are: heuristic."""


class Limit(NamedTuple):
    """A limit with its origin."""

    value: float
    words: str
    """E.g. `the limit 1,024 (data.max_response_length)` or `the limit 512 (assumed)`."""


def response_limit(run: Run, guide: Guide) -> Limit:
    """Return the longest response in tokens: the run's settings, else the user's, else the
    tutorials' 512.
    """
    # `data.max_response_length` before others: verl's rollout section repeats it for engines of its
    # own.
    origin, value = run.config.positive("response_limit")
    if not origin:
        origin = "your settings" if guide.response_limit else "assumed"
        value = guide.response_limit or ASSUMED_RESPONSE_LIMIT
    return Limit(value, f"the limit {number(value)} ({origin})")


_OWN_FORMAT = "tutorial JSONL"
_OWN_LENGTHS = ("rollout/response_length_mean", "generation/length")


def assumed_limit(context: RuleContext) -> bool:
    """Return whether the longest response is not stated, nor that of the tutorials: their 512 where
    response lengths are those of their own JSONL.
    """
    run = context.run
    if context.guide.response_limit or run.config.positive("response_limit")[0]:
        return False
    own = any(state.status.format == _OWN_FORMAT for state in run.sources.values())
    is_length = run.indicators.get("response_length") in _OWN_LENGTHS
    return not (own and is_length and run.dialect == "tutorial")


def all_cut(context: RuleContext) -> bool:
    """Return whether nearly all of the newest responses were cut, and no answer scored."""
    shares = context.indicator("truncated_share")
    rewards = context.indicator("reward")
    if not shares or not rewards:
        return False
    return min(shares.values[-_LATELY:]) >= _ALL and max(rewards.values[-_LATELY:]) <= 0


def stated_limit(run: Run, what: str) -> Limit | None:
    """Return a limit that only the run's own settings can state, by its name in `settings.toml`."""
    name, value = run.config.positive(what)
    return Limit(value, f"{name} {number(value)}") if name else None


def adaptive(run: Run) -> bool | None:
    """Return whether the run's KL controller is the adaptive one, None if no setting says so."""
    # verl: algorithm.kl_ctrl.type; TRL: adap_kl_ctrl; the tutorials write it in several ways.
    for key, value in run.settings.items():
        *_, scope, name = "", *_PARTS.split(key.lower())
        if "kl" in name and "adap" in name and isinstance(value, bool):
            return value
        is_kind = name in NAMES["kl_controller"] or (name == "type" and "kl" in scope)
        if is_kind and isinstance(value, str):
            return "adap" in value.lower()
    return None


def target_kl(run: Run, _guide: Guide) -> Limit:
    """Return the target of the KL to the reference, else the guide's 0.1."""
    return stated_target(run) or Limit(0.1, "the guide's 0.1, as target_kl is unknown")


def stated_target(run: Run) -> Limit | None:
    """Return the target that the run's settings state and that is in force, None where there is
    none.

    verl's settings always hold `target_kl`, but only the adaptive controller reads it
    (`ppo_trainer.yaml`: type fixed).
    """
    name, value = run.config.positive("target_kl")
    is_read = adaptive(run)
    if is_read is None:
        is_read = run.dialect == "tutorial"
    words = f"the target {number(value)} ({name})"
    return Limit(value, words) if name and is_read else None


def no_staleness_limit(run: Run) -> str | None:
    """Return the setting by which staleness is not limited, none if it is limited or unknown."""
    name, value = run.config.named("staleness_limit")
    return name if str(value).lower() in ("none", "null", "~", "") else None


def staleness_limit(run: Run, _guide: Guide) -> Limit:
    """Return how many versions a trajectory may lag behind: the run's setting, else verl's default
    of 8.
    """
    assumed = "verl's default max_off_policy_threshold of 8 (assumed)"
    return stated_limit(run, "staleness_limit") or Limit(8.0, assumed)


KL_COEF = (0.01, 0.1)
"""Band of the KL coefficient in the verl tutorials' guide."""
_FAR = 1.0
"""Nats a token that are far from the reference whatever the coefficient: healthy runs without a KL
term have stayed below 0.5.
"""


def kl_coefficient(run: Run) -> tuple[str, float]:
    """Return the coefficient of the KL term that is in force where the run's settings state one,
    behind its name, which is empty where they do not.
    """
    _, used = run.config.named("kl_loss")
    kind = "kl_loss_coefficient" if used is True else "kl_coefficient"
    return run.config.positive(kind)


def kl_scale(run: Run, _guide: Guide) -> Limit:
    """Return the KL from which the policy is far from the reference if no target is in force.

    The guide's 0.1 holds at its own coefficients; a weaker term lets the policy go further by
    design. Where none is known it holds too, as long as a reward tells whether the distance has
    bought anything.
    """
    name, stated = kl_coefficient(run)
    least, most = KL_COEF
    if not name and "reward" in run.indicators:
        return Limit(most, f"the guide's {number(most)}, as no coefficient is known")
    if least <= stated <= most:
        return Limit(most, f"the guide's {number(most)} at {name} {number(stated)}")
    return Limit(_FAR, "1 nat per token, far at any coefficient")


_NO_CLIP = 10.0
"""A bound so high clips nothing: heuristic."""


def gradient_clip(run: Run, _guide: Guide) -> Limit:
    """Return the norm that gradients are clipped at where the run's settings state one that bites,
    else 1.
    """
    stated = stated_limit(run, "gradient_clip")
    if stated and stated.value <= _NO_CLIP:
        return stated
    return Limit(1.0, "the usual bound of 1")


def kl_band(run: Run, guide: Guide) -> Limit:
    """Return the top of the healthy band of reference KL: twice the target, as the guide's 0.1 is
    twice its 0.05.
    """
    stated = stated_target(run)
    if not stated:
        return target_kl(run, guide)
    return Limit(2 * stated.value, f"twice {stated.words}")


LIMITS: Mapping[str, Callable[[Run, Guide], Limit]] = {
    "": lambda *_: Limit(1.0, ""),
    "response-limit": response_limit,
    "target-kl": target_kl,
    "kl-band": kl_band,
    "staleness-limit": staleness_limit,
    "gradient-clip": gradient_clip,
    "kl-scale": kl_scale,
}
"""Name in the guide -> the limit for a run."""


def v1_trainer(run: Run) -> str | None:
    """Return the evidence that the run is of verl's v1 trainer (v0.9 and later), None where it is
    not.
    """
    name, stated = run.config.named("v1_trainer")
    if isinstance(stated, bool):
        return f"{name} is set" if stated else None
    first = METRICS["v1_trainer"]
    key = next((key for key in run.keys if key.startswith(first)), None)
    return key and f"the log has {key}"


_LEARNING_RATE = 1e-5
"""Ten times the 1e-6 that verl's own trainer configuration has for the actor: heuristic."""
_CLIP = 0.3
"""PPO's usual clip range is 0.1–0.3 (Schulman et al. 2017, section 6.1): beyond it is wide."""


class Suspect(NamedTuple):
    """A setting that may be to blame: what is unusual about its value, the nearest usual one, and
    how many times that it is off.
    """

    key: str
    value: Any
    why: str
    proposed: Any = None
    times: float = 1.0

    def words(self, run: Run) -> str:
        """Return it as evidence, with its value and where that was read."""
        named = f" {_setting(run, self.key, self.value)}" * bool(self.key)
        return f"config:{named}{self.why}"


def _drift(run: Run) -> Sequence[Suspect]:
    """Return the settings that let a policy run away: a weak or fixed KL term, a high learning
    rate, a wide clip.
    """
    found = [*weak_kl_term(run)]
    for what, (most, where) in _HIGH.items():
        name, value = run.config.positive(what)
        if value > most:
            found.append(Suspect(name, value, f" is {where}", most, value / most))
    return found


def weak_kl_term(run: Run) -> Sequence[Suspect]:
    """Return the settings by which the KL term is weak, or its controller a fixed one."""
    loss, in_loss = run.config.named("kl_loss")
    reward, in_reward = run.config.named("kl_penalty")
    if loss and reward and not (in_loss or in_reward):
        return [Suspect(loss, in_loss, ": no KL term is in force", proposed=True)]
    found = []
    name, value = kl_coefficient(run)
    low, high = KL_COEF
    if 0 < value < low:
        why = f" is below {number(low)}–{number(high)}"
        found.append(Suspect(name, value, why, low, low / value))
    if adaptive(run) is False:
        key, stated = run.config.named("kl_controller")
        why = f"{':' * bool(key)} the KL controller does not adapt"
        found.append(Suspect(key, stated, why))
    return found


def strong_kl_term(run: Run) -> Sequence[Suspect]:
    """Return the coefficient of a KL term so strong that it may hold the policy back."""
    name, value = kl_coefficient(run)
    low, high = KL_COEF
    why = f" is above {number(low)}–{number(high)}: it may hold the policy back"
    return [Suspect(name, value, why, high, value / high)] if value > high else []


def _length(run: Run) -> Sequence[Suspect]:
    """Return the limit of response length where the settings state it."""
    name, value = run.config.positive("response_limit")
    return [Suspect(name, round(value), "", 2 * round(value))] if name else []


CAUSES: Mapping[str, Callable[[Run], Sequence[Suspect]]] = {
    "": lambda _: [],
    "drift": _drift,
    "held-back": strong_kl_term,
    "length": _length,
}
"""Name in the guide -> returns the settings that may be to blame."""
_HIGH = {
    "learning_rate": (_LEARNING_RATE, f"above {number(_LEARNING_RATE)} (heuristic)"),
    "clip_range": (_CLIP, f"wider than the usual 0.1–{number(_CLIP)}"),
}
"""Kind of setting -> the highest usual value, and what a higher one is."""


def _setting(run: Run, key: str, value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        words = number(value)
    else:
        words = str(value)
    origin = PurePath(run.config.origins.get(key, "")).name
    return f"{key} {words}" + (f" ({origin})" if origin and origin != "console" else "")
