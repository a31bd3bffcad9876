"""Settings that may have caused a failure: sentences with the setting, its value and the usual
figure.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.conditions.condition import number
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


class Suspect(NamedTuple):
    """A setting that may be to blame."""

    name: str
    """`kl_coef`, `kl_controller`, `learning_rate`, `clip_ratio` or `max_response_length`."""
    words: str


def drift_causes(run: Run) -> Sequence[Suspect]:
    """Return the settings that let a policy run away: a weak or fixed KL term, a high learning
    rate, a wide clip.
    """
    found = [_kl_coef(run), _controller(run)]
    for name, settings, most, where in _HIGH:
        stated = positive_setting(run, settings)
        if stated is not None and stated[1] > most:
            words = f"config: {_setting(run, *stated)} is {where}"
            found.append(Suspect(name, words))
    return [one for one in found if one is not None]


def length_cause(run: Run) -> Sequence[Suspect]:
    """Return the limit of response length where the settings state it."""
    stated = positive_setting(run, RESPONSE_LIMITS)
    if stated is None:
        return []
    return [Suspect("max_response_length", f"config: {_setting(run, *stated)}")]


CAUSES: Mapping[str, Callable[[Run], Sequence[Suspect]]] = {
    "drift": drift_causes,
    "length": length_cause,
}
"""Name in the guide -> the settings to check."""


def _kl_coef(run: Run) -> Suspect | None:
    stated = kl_coefficient(run)
    low, high = KL_COEF
    if stated is None or stated[1] >= low:
        return None
    return Suspect(
        "kl_coef",
        f"config: {_setting(run, *stated)} is below {number(low)}–{number(high)}",
    )


def _controller(run: Run) -> Suspect | None:
    if adaptive(run) is not False:
        return None
    stated = run.config.find(
        ["kl_controller", "kl_ctrl.type", "kl_ctrl_type", "kl_ctrl", "adap_kl_ctrl"]
    )
    words = "the KL controller is a fixed one"
    if stated is not None:
        words = _setting(run, *stated)
    return Suspect(
        "kl_controller", f"config: {words}: the KL controller does not adapt"
    )


_HIGH = (
    (
        "learning_rate",
        ("actor.optim.lr", "actor_lr", "actor_learning_rate", "learning_rate", "lr"),
        _LEARNING_RATE,
        f"above {number(_LEARNING_RATE)} (heuristic)",
    ),
    (
        "clip_ratio",
        ("actor.clip_ratio", "clip_ratio", "cliprange", "clip_range", "epsilon"),
        _CLIP,
        f"wider than the usual 0.1–{number(_CLIP)}",
    ),
)
"""Public name of a suspect, its settings, the highest usual value, and what a higher one is."""


def _setting(run: Run, key: str, value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        words = number(value)
    else:
        words = str(value)
    origin = PurePath(run.settings_origin.get(key, "")).name
    return f"{key} {words}" + (f" ({origin})" if origin and origin != "console" else "")
