"""The algorithm that a run trains with, by its settings or by its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.runs.settings import is_open
from verl_tui.runs.stated_sizes import stated_setting
from verl_tui.runs.views.facts import Fact, short
from verl_tui.runs.views.hyperparameters import clips

if TYPE_CHECKING:
    from verl_tui.runs.run import Run
    from verl_tui.runs.settings import RunSettings

_ESTIMATORS = {
    # verl: `AdvantageEstimator` in `verl/trainer/ppo/core_algos.py`; others by their own arguments.
    "gae": "PPO",
    "ppo": "PPO",
    "grpo": "GRPO",
    "grpo_vectorized": "GRPO",
    "grpo_passk": "GRPO pass@k",
    "group_norm": "GRPO",
    "dr_grpo": "Dr. GRPO",
    "gspo": "GSPO",
    "reinforce": "REINFORCE",
    "reinforce_baseline": "REINFORCE with baseline",
    "reinforce_plus_plus": "REINFORCE++",
    "reinforce_plus_plus_baseline": "REINFORCE++ with baseline",
    "remax": "ReMax",
    "rloo": "RLOO",
    "rloo_vectorized": "RLOO",
    "opo": "OPO",
    "gpg": "GPG",
    "gdpo": "GDPO",
}
_LOSSES = {
    # verl: `actor.policy_loss.loss_mode`, the names registered in `core_algos.py`.
    "gspo": "GSPO",
    "geo_mean": "GMPO",
    "cispo": "CISPO",
    "sapo": "SAPO",
    "gpg": "GPG",
}
_ADDED = {"clip_cov": "Clip-Cov", "kl_cov": "KL-Cov"}


def by_settings(settings: RunSettings) -> Fact | None:
    """Return the algorithm that the settings state."""
    for look in (_dapo, _by_estimator, _by_word, _by_arguments):
        found = look(settings)
        if found is not None:
            return Fact("algorithm", *found)
    return None


def _dapo(settings: RunSettings) -> tuple[str, str] | None:
    """DAPO is GRPO with dynamic sampling and its own reward manager (verl's recipe `dapo`)."""
    filtered = stated_setting(settings, ("algorithm.filter_groups.enable",))
    if filtered is not None and filtered[1] is True:
        return "DAPO", filtered[0]
    manager = stated_setting(
        settings, ("reward_model.reward_manager", "reward.reward_manager.name")
    )
    if manager is not None and manager[1] == "dapo":
        return "DAPO", manager[0]
    return None


def _by_estimator(settings: RunSettings) -> tuple[str, str] | None:
    found = stated_setting(
        settings, ("algorithm.adv_estimator", "adv_estimator", "advantage_estimator")
    )
    if found is None:
        return None
    key = found[0]
    word = str(found[1]).lower()
    name = _ESTIMATORS.get(word, short(found[1]))
    mode = stated_setting(settings, ("policy_loss.loss_mode",))
    loss = str(mode[1]).lower() if mode is not None else ""
    if mode is not None and _LOSSES.get(loss, name) != name:
        return _LOSSES[loss], f"{mode[0]}, {key}"
    if mode is not None and loss in _ADDED:
        return f"{name} with {_ADDED[loss]}", f"{key}, {mode[0]}"
    low, high = clips(settings)
    if low is not None and high is not None and high[1] > low[1]:
        return f"{name} with clip-higher", f"{key}, {high[0]}"
    return name, key


def _by_word(settings: RunSettings) -> tuple[str, str] | None:
    """Return the algorithm that a setting simply names, such as the tutorials'."""
    for name in ("algorithm", "algorithm.name", "algo", "rl_algorithm"):
        word = settings.values.get(name)
        if isinstance(word, str) and word and not is_open(word):
            return _ESTIMATORS.get(word.lower(), short(word)), name
    return None


def _by_arguments(settings: RunSettings) -> tuple[str, str] | None:
    """Return the algorithm by arguments that only one trainer has, and those arguments."""
    # TRL: `GRPOConfig`, and `RLOOConfig`, which alone has the other
    if "num_generations" in settings.values:
        key = "normalize_advantages"
        if key in settings.values:
            return "RLOO", f"num_generations, {key}"
        return "GRPO", "num_generations"
    if "model.partial_pretrain" in settings.values:
        return "SFT", "model.partial_pretrain"
    # NeMo-RL
    named = next((key for key in settings.values if key.startswith("grpo.")), None)
    return ("GRPO", named) if named is not None else None


_UNIQUE_METRICS = (
    # Metrics -> algorithm, where only one writes them all; the first that are there hold. TRL's
    # GRPO and RLOO trainers log the same names. Of those that learn from preferences only KTO's,
    # which knows no pairs, logs its estimate of the KL, and only ORPO's the odds.
    (("critic/vf_loss",), "PPO"),
    (("ppo/policy_loss",), "PPO"),
    (("log_odds_ratio",), "ORPO"),
    (("odds_ratio_loss",), "ORPO"),
    (("rewards/chosen", "kl"), "KTO"),
    (("rewards/margins",), "DPO"),
    (("rewards/chosen",), "DPO"),
    (("loss/value_avg", "objective/rlhf_reward"), "PPO"),
    (("policy/approxkl_avg", "objective/rlhf_reward"), "RLOO"),
    (("completion_length",), "GRPO"),
    (("frac_reward_zero_std",), "GRPO or RLOO"),
)
_SFT_METRICS = ("train/loss", "train/lr", "train/lr(1e-3)", "val/loss")
"""verl's SFT trainer; two of these keys identify it."""


def by_metrics(run: Run) -> Fact | None:
    """Return the only algorithm that writes some of the metrics."""
    keys = set(run.keys)
    for metrics, words in _UNIQUE_METRICS:
        for prefix in ("", "train/"):
            if keys.issuperset(prefix + metric for metric in metrics):
                return Fact("algorithm", words, f"metric {prefix}{metrics[0]}")
    tuned = [key for key in _SFT_METRICS if key in keys]
    if len(tuned) > 1 and "reward" not in run.indicators:
        return Fact("algorithm", "SFT", f"metric {tuned[0]}")
    return None
