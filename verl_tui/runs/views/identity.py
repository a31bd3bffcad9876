"""Run identity: project, group, algorithm, model, and the settings that people compare first.

Everything is given as the settings state it, with the setting it was read from; facts that no
setting states are left out. Names are those of verl (`verl/trainer/config/ppo_trainer.yaml`,
`sft_trainer.yaml`), of TRL's and Hugging Face's arguments as they reach W&B, of OpenRLHF, slime and
NeMo-RL, and of the tutorials.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.runs.settings import EACH, GPUS, NODES, PROMPTS, is_open, number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.runs.run import Run
    from verl_tui.runs.settings import RunSettings


class Fact(NamedTuple):
    """One fact about a run."""

    label: str
    value: str
    key: str
    """The settings (or the metric) that state it."""


_NAMES = {
    "project": "wandb.project trainer.project_name project_name wandb_project logger.wandb.project",
    "experiment": "wandb.name trainer.experiment_name experiment_name run_name exp_name"
    " wandb_run_name",
    "group": "wandb.group wandb_group trainer.group_name run_group WANDB_RUN_GROUP",
}
"""Label of a fact -> the settings that state it, the first one first."""
_KNOWN = {
    # verl, its SFT trainer; NeMo-RL, slime, OpenRLHF; Hugging Face's own configuration of a model.
    "model": "actor_rollout_ref.model.path model.partial_pretrain model.path model_name_or_path"
    " policy.model_name hf_checkpoint pretrain model_name _name_or_path model",
    "learning rate": "actor_rollout_ref.actor.optim.lr actor.optim.lr optim.lr actor_learning_rate"
    " learning_rate lr",
    "batch": "train_batch_size batch_size",
    "batch per device": "per_device_train_batch_size",
    "responses per prompt": " ".join(EACH),
    "mini batch": "actor_rollout_ref.actor.ppo_mini_batch_size ppo_mini_batch_size mini_batch_size"
    " global_batch_size",
    "clip": "actor.clip_ratio clip_ratio cliprange clip_range eps_clip epsilon actor.clip_ratio_low"
    " clip_ratio_low ratio_clip_min",
    "lower clip": "actor.clip_ratio_low clip_ratio_low ratio_clip_min actor.clip_ratio clip_ratio"
    " cliprange clip_range eps_clip epsilon",
    "upper clip": "actor.clip_ratio_high clip_ratio_high epsilon_high eps_clip_high ratio_clip_max",
    "entropy bonus": "actor_rollout_ref.actor.entropy_coeff actor.entropy_coeff entropy_coeff"
    " entropy_coef",
    "longest prompt": "data.max_prompt_length max_prompt_length max_prompt_len",
    "longest response": "data.max_response_length max_response_length max_completion_length"
    " max_new_tokens rollout_max_response_len",
    "temperature": "actor_rollout_ref.rollout.temperature rollout.temperature rollout_temperature"
    " temperature",
    "LoRA rank": "actor_rollout_ref.model.lora_rank model.lora_rank lora_rank lora_r",
    "epochs": "trainer.total_epochs num_train_epochs total_epochs num_epochs",
    "total steps": "trainer.total_training_steps total_training_steps max_steps",
    "engine": "actor_rollout_ref.rollout.name rollout.name vllm_mode use_vllm",
    "loss": "actor.kl_loss_coef kl_loss_coef beta",
    "reward": "algorithm.kl_ctrl.kl_coef kl_ctrl.kl_coef init_kl_coef kl_coef",
}
"""The same for facts that identify an experiment, beside its names."""
_SPELLINGS = {label: names.split() for label, names in {**_NAMES, **_KNOWN}.items()}
_ABOVE_ZERO = frozenset({"LoRA rank", "epochs", "total steps"})
"""Facts that only have a meaning above 0."""
_KL_SWITCHES = {"loss": "use_kl_loss", "reward": "use_kl_in_reward"}
"""Place of verl's KL penalty -> its switch."""
_IDENTIFYING = frozenset(
    (
        *chain.from_iterable(_SPELLINGS[label] for label in _KNOWN),
        *(*PROMPTS, *GPUS, *NODES, *_KL_SWITCHES.values()),
        *("adv_estimator", "advantage_estimator", "loss_mode"),
    )
)


class Identity(NamedTuple):
    """Names and settings that identify a run; None where nothing states one."""

    project: Fact | None
    experiment: Fact | None
    group: Fact | None
    algorithm: Fact | None
    model: Fact | None
    hyperparameters: tuple[Fact, ...]
    """In the order in which people ask for them; only those that are stated."""

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Everything that is known, in the order of showing."""
        *named, hyperparameters = self
        return (*filter(None, named), *hyperparameters)


def identity(run: Run) -> Identity:
    """Return what is known of the experiment that a run is."""
    settings = run.config
    project, experiment, group = (_fact(settings, label) for label in _NAMES)
    asked = (
        _fact(settings, one) if isinstance(one, str) else one(settings)
        for one in _HYPERPARAMETERS
    )
    hyperparameters = tuple(found for found in asked if found is not None)
    algorithm = by_settings(settings) or by_metrics(run)
    model = _model(settings)
    return Identity(project, experiment, group, algorithm, model, hyperparameters)


def as_data(found: Identity) -> dict[str, Any]:
    """Return the identity ready for JSON: names, then the hyperparameters by their labels."""
    *named, hyperparameters = found
    data: dict[str, Any] = dict(zip(found._fields, map(_data, named), strict=False))
    data["hyperparameters"] = {fact.label: _data(fact) for fact in hyperparameters}
    return data


def _data(fact: Fact | None) -> dict[str, str] | None:
    return None if fact is None else {"value": fact.value, "key": fact.key}


def is_known(key: str) -> bool:
    """Return whether a setting identifies the experiment, beside its names."""
    parts = key.replace("/", ".").split(".")
    return any(".".join(parts[at:]) in _IDENTIFYING for at in range(len(parts)))


def short(value: object) -> str:
    """Return a setting's value in few characters: `1e-06`, `off`."""
    if isinstance(value, bool):
        return "on" if value else "off"
    # YAML reads `1e-6` as text
    if isinstance(value, str) and re.fullmatch(
        r"[-+]?\d+(?:\.\d*)?[eE][-+]?\d+", value
    ):
        value = float(value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _fact(settings: RunSettings, label: str) -> Fact | None:
    """Return the first setting that states a fact."""
    found = settings.stated(_SPELLINGS[label])
    if found is None or (label in _ABOVE_ZERO and not (number(found[1]) or 0.0) > 0):
        return None
    return Fact(label, short(found[1]), found[0])


# -- hyperparameters -------------------------------------------------------------------------------


def _batch(settings: RunSettings) -> Fact | None:
    """Return the number of responses per step; TRL's batches count responses already, others' count
    prompts.
    """
    return (
        _times(settings, "batch", (PROMPTS, EACH), "response")
        or _fact(settings, "responses per prompt")
        or _fact(settings, "batch")
    )


def _gpus(settings: RunSettings) -> Fact | None:
    return _times(settings, "GPUs", (GPUS, NODES), "node")


def _times(
    settings: RunSettings, label: str, names: Sequence[Sequence[str]], word: str
) -> Fact | None:
    """Return a product of two figures, `1024 × 5 responses`, or the first of them alone."""
    one, other = map(settings.stated, names)
    if one is None or other is None:
        return None if one is None else Fact(label, short(one[1]), one[0])
    many = f"{short(other[1])} {word}{'s' * (other[1] != 1)}"
    return Fact(label, f"{short(one[1])} × {many}", f"{one[0]}, {other[0]}")


def _kl(settings: RunSettings) -> Fact | None:
    """Return the KL penalty in force: verl has one in the loss and one in the reward, each with a
    switch. Without a switch (before v0.3) the penalty is in one place only.
    """
    in_force: dict[str, str] = {}
    off: list[str] = []
    for place, name in _KL_SWITCHES.items():
        key, switch = settings.stated((name,)) or ("", None)
        coefficient = settings.stated(_SPELLINGS[place])
        if switch is False:
            off.append(key)
        elif coefficient is not None and (key or not in_force):
            where = f" in the {place}" * bool(key)
            in_force[coefficient[0]] = f"{short(coefficient[1])}{where}"
    stated = ", ".join(in_force or off)
    words = ", ".join(in_force.values()) or "none"
    return Fact("KL penalty", words, stated) if stated else None


def _clips(settings: RunSettings) -> list[tuple[str, float]]:
    """Return the lower and the upper clip range where they are set apart and differ, each with its
    key; else none.
    """
    stated = (
        settings.stated(_SPELLINGS[f"{side} clip"]) for side in ("lower", "upper")
    )
    sizes = [(one[0], number(one[1])) for one in stated if one is not None]
    found = [(key, size) for key, size in sizes if size is not None]
    return found if len(found) > 1 and found[0][1] != found[1][1] else []


def _clip(settings: RunSettings) -> Fact | None:
    found = _clips(settings)
    if not found:
        return _fact(settings, "clip")
    (one, low), (other, high) = found
    return Fact("clip", f"{low:g} to {high:g}", f"{one}, {other}")


def _engine(settings: RunSettings) -> Fact | None:
    found = _fact(settings, "engine")
    if found is None or not found.key.endswith("use_vllm"):
        return found
    return found._replace(value="vllm") if found.value == "on" else None


_HYPERPARAMETERS: tuple[str | Callable[[RunSettings], Fact | None], ...] = (
    "learning rate", _batch, "batch per device", "mini batch", _kl, _clip, "entropy bonus",
    "longest prompt", "longest response", "temperature", "LoRA rank", "epochs", "total steps",
    _gpus, _engine,
)  # fmt: skip


# -- model -----------------------------------------------------------------------------------------

_CACHED = pattern(r"models--([^/]+?)--([^/]+)")
_NO_NAME = pattern(
    r"(?:checkpoint[-_]|global_step_?)\d+|huggingface|hf|actor|model|snapshots?|[0-9a-f]{20,}"
)


def _model(settings: RunSettings) -> Fact | None:
    found = settings.stated(_SPELLINGS["model"])
    if found is None or not isinstance(found[1], str):
        return None
    return Fact("model", model_name(found[1]), found[0])


def model_name(path: str) -> str:
    """Return the part of a model's path that people call it by: `/cache/models--Qwen--Qwen3-8B/…`
    is Qwen/Qwen3-8B.
    """
    cached = _CACHED.search(path)
    if cached:
        return f"{cached[1]}/{cached[2]}"
    parts = [part for part in path.split("/") if part]
    if len(parts) <= 2 and not path.startswith(("/", "~", ".")):
        return "/".join(parts)
    name = parts[-1:]
    for before in reversed(parts[:-1]):
        if not _NO_NAME.fullmatch(name[0]):
            break
        name.insert(0, before)  # a checkpoint is named by its owner
    return "/".join(name)


# -- algorithm -------------------------------------------------------------------------------------

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
_DAPO = {
    # DAPO is GRPO with dynamic sampling and its own reward manager (verl's recipe `dapo`).
    ("algorithm.filter_groups.enable",): True,
    ("reward_model.reward_manager", "reward.reward_manager.name"): "dapo",
}
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


def by_settings(settings: RunSettings) -> Fact | None:
    """Return the algorithm that the settings state."""
    for names, word in _DAPO.items():
        found = settings.stated(names)
        if found is not None and found[1] == word:
            return Fact("algorithm", "DAPO", found[0])
    return _by_estimator(settings) or _by_word(settings) or _by_arguments(settings)


def _by_estimator(settings: RunSettings) -> Fact | None:
    found = settings.stated(
        ("algorithm.adv_estimator", "adv_estimator", "advantage_estimator")
    )
    if found is None:
        return None
    key = found[0]
    name = _ESTIMATORS.get(str(found[1]).lower(), short(found[1]))
    origin, mode = settings.stated(("policy_loss.loss_mode",)) or ("", "")
    loss = str(mode).lower()
    if _LOSSES.get(loss, name) != name:
        return Fact("algorithm", _LOSSES[loss], f"{origin}, {key}")
    if loss in _ADDED:
        return Fact("algorithm", f"{name} with {_ADDED[loss]}", f"{key}, {origin}")
    clips = _clips(settings)
    if clips and clips[1][1] > clips[0][1]:
        return Fact("algorithm", f"{name} with clip-higher", f"{key}, {clips[1][0]}")
    return Fact("algorithm", name, key)


def _by_word(settings: RunSettings) -> Fact | None:
    """Return the algorithm that a setting simply names, such as the tutorials'."""
    for name in ("algorithm", "algorithm.name", "algo", "rl_algorithm"):
        word = settings.values.get(name)
        if isinstance(word, str) and word and not is_open(word):
            return Fact("algorithm", _ESTIMATORS.get(word.lower(), short(word)), name)
    return None


def _by_arguments(settings: RunSettings) -> Fact | None:
    """Return the algorithm by arguments that only one trainer has, and those arguments."""
    nemo = next((key for key in settings.values if key.startswith("grpo.")), "grpo.")
    # TRL: `GRPOConfig`, and `RLOOConfig`, which alone has the other
    for keys, word in (
        (("num_generations", "normalize_advantages"), "RLOO"),
        (("num_generations",), "GRPO"),
        (("model.partial_pretrain",), "SFT"),
        ((nemo,), "GRPO"),
    ):
        if settings.values.keys() >= set(keys):
            return Fact("algorithm", word, ", ".join(keys))
    return None


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
