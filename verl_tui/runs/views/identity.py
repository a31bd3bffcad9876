"""Which experiment a run is: project, group, algorithm, model, and the settings that people compare
first.

Everything is said as the settings state it, with the setting it was read from; what nothing states
is not said. Names are those of verl (`verl/trainer/config/ppo_trainer.yaml`, `sft_trainer.yaml`),
of TRL's and Hugging Face's arguments as they reach W&B, of OpenRLHF, slime and NeMo-RL, and of the
tutorials.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.runs.settings import is_open, number
from verl_tui.runs.stated_sizes import EACH, GPUS, NODES, PROMPTS, stated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from verl_tui.runs.run import Run
    from verl_tui.runs.settings import RunSettings


class Fact(NamedTuple):
    """One thing said of a run."""

    label: str
    value: str
    key: str
    """The settings (or the metric) that say so."""


class Identity(NamedTuple):
    """What tells a run from others; None where nothing states it."""

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
        named = (self.project, self.experiment, self.group, self.algorithm, self.model)
        return (*(fact for fact in named if fact is not None), *self.hyperparameters)


def identity(run: Run) -> Identity:
    """Return what is known of the experiment that a run is."""
    settings = run.config
    return Identity(
        _fact(settings, "project", _PROJECT),
        _fact(settings, "experiment", _EXPERIMENT),
        _fact(settings, "group", _GROUP),
        _by_settings(settings) or _by_metrics(run),
        _model(settings),
        tuple(fact for made in _HYPERPARAMETERS if (fact := made(settings)) is not None),
    )


def is_known(key: str) -> bool:
    """Return whether a setting is one that says which experiment a run is, beside its names."""
    parts = key.replace("/", ".").split(".")
    return any(".".join(parts[at:]) in _KNOWN for at in range(len(parts)))


# -- names -----------------------------------------------------------------------------------------

_PROJECT = (
    "wandb.project",
    "trainer.project_name",
    "project_name",
    "wandb_project",
    "logger.wandb.project",
)
_EXPERIMENT = (
    "wandb.name",
    "trainer.experiment_name",
    "experiment_name",
    "run_name",
    "exp_name",
    "wandb_run_name",
)
_GROUP = ("wandb.group", "wandb_group", "trainer.group_name", "run_group", "WANDB_RUN_GROUP")
_MODEL = (
    "actor_rollout_ref.model.path",
    "model.partial_pretrain",  # verl's SFT trainer
    "model.path",
    "model_name_or_path",
    "policy.model_name",  # NeMo-RL
    "hf_checkpoint",  # slime
    "pretrain",  # OpenRLHF
    "model_name",
    "_name_or_path",  # Hugging Face's own configuration of the model
    "model",
)
_CACHED = re.compile(r"models--([^/]+?)--([^/]+)")
_NO_NAME = re.compile(
    r"(?:checkpoint[-_]|global_step_?)\d+|huggingface|hf|actor|model|snapshots?|[0-9a-f]{20,}"
)


def _fact(settings: RunSettings, label: str, names: Sequence[str]) -> Fact | None:
    found = stated(settings, names)
    return None if found is None else Fact(label, said(found[1]), found[0])


def _model(settings: RunSettings) -> Fact | None:
    found = stated(settings, _MODEL)
    return (
        None
        if found is None or not isinstance(found[1], str)
        else Fact("model", model_name(found[1]), found[0])
    )


def model_name(path: str) -> str:
    """Return the part of a model's path that people call it by: `/cache/models--Qwen--Qwen3-8B/…`
    is Qwen/Qwen3-8B.
    """
    if cached := _CACHED.search(path):
        return f"{cached[1]}/{cached[2]}"
    parts = [part for part in path.split("/") if part]
    if len(parts) <= 2 and not path.startswith(("/", "~", ".")):
        return "/".join(parts)
    name = parts[-1:]
    for before in reversed(parts[:-1]):
        if not _NO_NAME.fullmatch(name[0]):
            break
        name.insert(0, before)  # a checkpoint is told by whose it is
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


def _by_settings(settings: RunSettings) -> Fact | None:
    for look in (_dapo, _by_estimator, _by_word, _by_arguments):
        if (found := look(settings)) is not None:
            return Fact("algorithm", *found)
    return None


def _dapo(settings: RunSettings) -> tuple[str, str] | None:
    """DAPO is GRPO with dynamic sampling and its own reward manager (verl's recipe `dapo`)."""
    filtered = stated(settings, ("algorithm.filter_groups.enable",))
    if filtered is not None and filtered[1] is True:
        return "DAPO", filtered[0]
    manager = stated(settings, ("reward_model.reward_manager", "reward.reward_manager.name"))
    return ("DAPO", manager[0]) if manager is not None and manager[1] == "dapo" else None


def _by_estimator(settings: RunSettings) -> tuple[str, str] | None:
    found = stated(settings, ("algorithm.adv_estimator", "adv_estimator", "advantage_estimator"))
    if found is None:
        return None
    key, word = found[0], str(found[1]).lower()
    words = _ESTIMATORS.get(word, said(found[1]))
    mode = stated(settings, ("policy_loss.loss_mode",))
    if (
        mode is not None
        and (other := _LOSSES.get(str(mode[1]).lower())) is not None
        and other != words
    ):
        return other, f"{mode[0]}, {key}"
    if mode is not None and (added := _ADDED.get(str(mode[1]).lower())) is not None:
        return f"{words} with {added}", f"{key}, {mode[0]}"
    low, high = _clips(settings)
    if low is not None and high is not None and high[1] > low[1]:
        return f"{words} with clip-higher", f"{key}, {high[0]}"
    return words, key


def _by_word(settings: RunSettings) -> tuple[str, str] | None:
    """Where a setting simply names the algorithm, as the tutorials' do."""
    for name in ("algorithm", "algorithm.name", "algo", "rl_algorithm"):
        word = settings.values.get(name)
        if isinstance(word, str) and word and not is_open(word):
            return _ESTIMATORS.get(word.lower(), said(word)), name
    return None


def _by_arguments(settings: RunSettings) -> tuple[str, str] | None:
    """By arguments that only one trainer has."""
    if (
        "num_generations" in settings.values
    ):  # TRL: `GRPOConfig`, and `RLOOConfig`, which alone has the other
        key = "normalize_advantages"
        return (
            ("RLOO", f"num_generations, {key}")
            if key in settings.values
            else ("GRPO", "num_generations")
        )
    if "model.partial_pretrain" in settings.values:
        return "SFT", "model.partial_pretrain"
    named = next((key for key in settings.values if key.startswith("grpo.")), None)  # NeMo-RL
    return ("GRPO", named) if named is not None else None


_SPOKEN = (
    # Metric -> algorithm, where only one writes it. TRL's GRPO and RLOO trainers log the same
    # names.
    ("critic/vf_loss", "PPO"),
    ("ppo/policy_loss", "PPO"),
    ("rewards/margins", "DPO"),
    ("rewards/chosen", "DPO"),
    ("completion_length", "GRPO"),
    ("frac_reward_zero_std", "GRPO or RLOO"),
)
_TUNING = ("train/loss", "train/lr", "train/lr(1e-3)", "val/loss")
"""verl's SFT trainer; two of them tell it."""


def _by_metrics(run: Run) -> Fact | None:
    keys = set(run.keys)
    for metric, words in _SPOKEN:
        for key in (metric, f"train/{metric}"):
            if key in keys:
                return Fact("algorithm", words, f"metric {key}")
    tuned = [key for key in _TUNING if key in keys]
    if len(tuned) > 1 and "reward" not in run.indicators:
        return Fact("algorithm", "SFT", f"metric {tuned[0]}")
    return None


# -- hyperparameters -------------------------------------------------------------------------------

_LR = (
    "actor_rollout_ref.actor.optim.lr",
    "actor.optim.lr",
    "optim.lr",
    "actor_learning_rate",
    "learning_rate",
    "lr",
)
_BATCH = ("train_batch_size", "batch_size")
_PER_DEVICE = ("per_device_train_batch_size",)
_MINI = (
    "actor_rollout_ref.actor.ppo_mini_batch_size",
    "ppo_mini_batch_size",
    "mini_batch_size",
    "global_batch_size",
)
_LOW = ("actor.clip_ratio_low", "clip_ratio_low", "ratio_clip_min")
_HIGH = (
    "actor.clip_ratio_high",
    "clip_ratio_high",
    "epsilon_high",
    "eps_clip_high",
    "ratio_clip_max",
)
_CLIP = ("actor.clip_ratio", "clip_ratio", "cliprange", "clip_range", "eps_clip", "epsilon")
_ENTROPY = (
    "actor_rollout_ref.actor.entropy_coeff",
    "actor.entropy_coeff",
    "entropy_coeff",
    "entropy_coef",
)
_PROMPT = ("data.max_prompt_length", "max_prompt_length", "max_prompt_len")
_RESPONSE = (
    "data.max_response_length",
    "max_response_length",
    "max_completion_length",
    "max_new_tokens",
    "rollout_max_response_len",
)
_TEMPERATURE = (
    "actor_rollout_ref.rollout.temperature",
    "rollout.temperature",
    "rollout_temperature",
    "temperature",
)
_EPOCHS = ("trainer.total_epochs", "num_train_epochs", "total_epochs", "num_epochs")
_STEPS = ("trainer.total_training_steps", "total_training_steps", "max_steps")
_ENGINE = ("actor_rollout_ref.rollout.name", "rollout.name", "vllm_mode", "use_vllm")
_LORA = ("actor_rollout_ref.model.lora_rank", "model.lora_rank", "lora_rank", "lora_r")
_KL_LOSS = ("actor.kl_loss_coef", "kl_loss_coef", "beta")
_KL_REWARD = ("algorithm.kl_ctrl.kl_coef", "kl_ctrl.kl_coef", "init_kl_coef", "kl_coef")
_KNOWN = frozenset(
    name
    for names in (
        *(
            _MODEL,
            _LR,
            PROMPTS,
            _BATCH,
            _PER_DEVICE,
            EACH,
            _MINI,
            _LOW,
            _HIGH,
            _CLIP,
            _ENTROPY,
            _PROMPT,
            _RESPONSE,
            _TEMPERATURE,
            _EPOCHS,
        ),
        *(_STEPS, GPUS, NODES, _ENGINE, _LORA, _KL_LOSS, _KL_REWARD),
        (
            "adv_estimator",
            "advantage_estimator",
            "loss_mode",
            "use_kl_loss",
            "use_kl_in_reward",
            "use_kl_loss",
        ),
    )
    for name in names
)


def said(value: object) -> str:
    """Return a setting's value in few characters: `1e-06`, `off`."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str) and re.fullmatch(r"[-+]?\d+(?:\.\d*)?[eE][-+]?\d+", value):
        return f"{float(value):.6g}"  # YAML reads `1e-6` as text
    return str(value)


def _plain(label: str, names: Sequence[str]) -> Callable[[RunSettings], Fact | None]:
    return lambda settings: _fact(settings, label, names)


def _positive(label: str, names: Sequence[str]) -> Callable[[RunSettings], Fact | None]:
    """Say a figure that means nothing unless it is above 0."""

    def fact(settings: RunSettings) -> Fact | None:
        found = stated(settings, names)
        value = number(found[1]) if found is not None else None
        return (
            Fact(label, said(found[1]), found[0])
            if found is not None and value is not None and value > 0
            else None
        )

    return fact


def _times(
    label: str, names: Sequence[str], by: Sequence[str], word: str
) -> Callable[..., Fact | None]:
    """Say one figure times another: `1024 × 5`."""

    def fact(settings: RunSettings) -> Fact | None:
        one, other = stated(settings, names), stated(settings, by)
        if one is None:
            return None
        if other is None:
            return Fact(label, said(one[1]), one[0])
        words = word if other[1] == 1 else f"{word}s"
        return Fact(label, f"{said(one[1])} × {said(other[1])} {words}", f"{one[0]}, {other[0]}")

    return fact


def _batch(settings: RunSettings) -> Fact | None:
    """Say how many responses a step works on; TRL's batches count responses already, others' count
    prompts.
    """
    if stated(settings, PROMPTS) is not None:
        return _times("batch", PROMPTS, EACH, "response")(settings)
    return _fact(settings, "responses per prompt", EACH) or _fact(settings, "batch", _BATCH)


def _kl(settings: RunSettings) -> Fact | None:
    """Say the KL penalty that is in force: verl has one in the loss and one in the reward, each
    with a switch.
    """
    found = []
    for use, names, where in (
        ("use_kl_loss", _KL_LOSS, "loss"),
        ("use_kl_in_reward", _KL_REWARD, "reward"),
    ):
        switch, coefficient = stated(settings, (use,)), stated(settings, names)
        if switch is not None and switch[1] is False:
            found.append(("", switch[0]))
        elif coefficient is not None and (
            switch is not None or not any(value for value, _ in found)
        ):
            # Without a switch (verl before v0.3) the penalty is in the reward unless it is in the
            # loss.
            value = (
                f"{said(coefficient[1])} in the {where}"
                if switch is not None
                else said(coefficient[1])
            )
            found.append((value, coefficient[0]))
    values = [value for value, _ in found if value]
    keys = ", ".join(key for value, key in found if value or not values)
    return Fact("KL penalty", ", ".join(values) or "none", keys) if found else None


def _clips(settings: RunSettings) -> tuple[tuple[str, float] | None, tuple[str, float] | None]:
    """Return the lower and the upper clip range where they are set apart."""
    low, high = stated(settings, (*_LOW, *_CLIP)), stated(settings, _HIGH)
    below, above = number(low[1]) if low else None, number(high[1]) if high else None
    return (
        (low[0], below) if low is not None and below is not None else None,
        (high[0], above) if high is not None and above is not None else None,
    )


def _clip(settings: RunSettings) -> Fact | None:
    low, high = _clips(settings)
    if low is not None and high is not None and low[1] != high[1]:
        return Fact("clip", f"{low[1]:g} to {high[1]:g}", f"{low[0]}, {high[0]}")
    return _fact(settings, "clip", (*_CLIP, *_LOW))


def _engine(settings: RunSettings) -> Fact | None:
    found = stated(settings, _ENGINE)
    if found is None or not found[0].endswith("use_vllm"):
        return _fact(settings, "engine", _ENGINE)
    return Fact("engine", "vllm", found[0]) if found[1] is True else None


_HYPERPARAMETERS: tuple[Callable[[RunSettings], Fact | None], ...] = (
    _plain("learning rate", _LR),
    _batch,
    _plain("batch per device", _PER_DEVICE),
    _plain("mini batch", _MINI),
    _kl,
    _clip,
    _plain("entropy bonus", _ENTROPY),
    _plain("longest prompt", _PROMPT),
    _plain("longest response", _RESPONSE),
    _plain("temperature", _TEMPERATURE),
    _positive("LoRA rank", _LORA),
    _positive("epochs", _EPOCHS),
    _positive("total steps", _STEPS),
    _times("GPUs", GPUS, NODES, "node"),
    _engine,
)


def as_data(found: Identity) -> Iterator[tuple[str, Any]]:
    """Yield the identity ready for JSON: names, then the hyperparameters by their labels."""
    for name in ("project", "experiment", "group", "algorithm", "model"):
        fact = getattr(found, name)
        yield name, None if fact is None else {"value": fact.value, "key": fact.key}
    yield (
        "hyperparameters",
        {fact.label: {"value": fact.value, "key": fact.key} for fact in found.hyperparameters},
    )
