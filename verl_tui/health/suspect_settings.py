"""Settings that may have caused a failure: sentences with the setting, its value and the usual
figure.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from verl_tui.health.finding import number
from verl_tui.health.limits import (
    KL_COEF,
    RESPONSE_LIMITS,
    adaptive,
    kl_coefficient,
    positive_setting,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from verl_tui.runs.run import Run

_LEARNING_RATE = 1e-5
"""Ten times the 1e-6 that verl's own trainer configuration has for the actor: heuristic."""
_CLIP = 0.3
"""PPO's usual clip range is 0.1–0.3 (Schulman et al. 2017, section 6.1): beyond it is wide."""


def _drift(run: Run) -> Sequence[str]:
    """Return the settings that let a policy run away: a weak or fixed KL term, a high learning
    rate, a wide clip.
    """
    found = [*weak_kl_term(run)]
    for settings, most, where in _HIGH:
        stated = positive_setting(run, settings)
        if stated is not None and stated[1] > most:
            found.append(f"config: {_setting(run, *stated)} is {where}")
    return found


def weak_kl_term(run: Run) -> Sequence[str]:
    """Return the settings by which the KL term is weak, or its controller a fixed one."""
    found = []
    coefficient = kl_coefficient(run)
    low, high = KL_COEF
    if coefficient is not None and coefficient[1] < low:
        words = _setting(run, *coefficient)
        found.append(f"config: {words} is below {number(low)}–{number(high)}")
    if adaptive(run) is False:
        stated = run.config.find(_CONTROLLERS)
        fixed = "the KL controller is a fixed one"
        words = fixed if stated is None else _setting(run, *stated)
        found.append(f"config: {words}: the KL controller does not adapt")
    return found


def _length(run: Run) -> Sequence[str]:
    """Return the limit of response length where the settings state it."""
    stated = positive_setting(run, RESPONSE_LIMITS)
    return [] if stated is None else [f"config: {_setting(run, *stated)}"]


CAUSES: Mapping[str, Callable[[Run], Sequence[str]]] = {
    "": lambda _: [],
    "drift": _drift,
    "length": _length,
}
"""Name in the guide -> returns the settings that may be to blame, a sentence each."""
_CONTROLLERS = [
    "kl_controller",
    "kl_ctrl.type",
    "kl_ctrl_type",
    "kl_ctrl",
    "adap_kl_ctrl",
]
_HIGH = (
    (
        ("actor.optim.lr", "actor_lr", "actor_learning_rate", "learning_rate", "lr"),
        _LEARNING_RATE,
        f"above {number(_LEARNING_RATE)} (heuristic)",
    ),
    (
        ("actor.clip_ratio", "clip_ratio", "cliprange", "clip_range", "epsilon"),
        _CLIP,
        f"wider than the usual 0.1–{number(_CLIP)}",
    ),
)
"""Settings, the highest usual value, and what a higher one is."""


def _setting(run: Run, key: str, value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        words = number(value)
    else:
        words = str(value)
    origin = PurePath(run.settings_origin.get(key, "")).name
    return f"{key} {words}" + (f" ({origin})" if origin and origin != "console" else "")
