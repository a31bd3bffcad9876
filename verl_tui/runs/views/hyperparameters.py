"""The settings that people compare first, by the names of verl and of other trainers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.runs.settings import number
from verl_tui.runs.stated_sizes import EACH, GPUS, NODES, PROMPTS, stated_setting
from verl_tui.runs.views.facts import Fact, fact, short

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.runs.settings import RunSettings

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
_CLIP = (
    "actor.clip_ratio",
    "clip_ratio",
    "cliprange",
    "clip_range",
    "eps_clip",
    "epsilon",
)
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
KNOWN = frozenset(
    (
        *(
            *_LR,
            *PROMPTS,
            *_BATCH,
            *_PER_DEVICE,
            *EACH,
            *_MINI,
            *_LOW,
            *_HIGH,
            *_CLIP,
            *_ENTROPY,
        ),
        *(
            *_PROMPT,
            *_RESPONSE,
            *_TEMPERATURE,
            *_EPOCHS,
            *_STEPS,
            *GPUS,
            *NODES,
            *_ENGINE,
            *_LORA,
        ),
        *(*_KL_LOSS, *_KL_REWARD, "use_kl_loss", "use_kl_in_reward"),
    )
)
"""Settings that hyperparameters are read from."""


def _plain(label: str, names: Sequence[str]) -> Callable[[RunSettings], Fact | None]:
    return lambda settings: fact(settings, label, names)


def _positive(label: str, names: Sequence[str]) -> Callable[[RunSettings], Fact | None]:
    """Write a figure that only has a meaning above 0."""

    def made(settings: RunSettings) -> Fact | None:
        found = stated_setting(settings, names)
        value = number(found[1]) if found is not None else None
        if found is not None and value is not None and value > 0:
            return Fact(label, short(found[1]), found[0])
        return None

    return made


def _times(
    label: str, names: Sequence[str], by: Sequence[str], word: str
) -> Callable[..., Fact | None]:
    """Write a product of two figures: `1024 × 5`."""

    def made(settings: RunSettings) -> Fact | None:
        one = stated_setting(settings, names)
        other = stated_setting(settings, by)
        if one is None:
            return None
        if other is None:
            return Fact(label, short(one[1]), one[0])
        words = word if other[1] == 1 else f"{word}s"
        return Fact(
            label,
            f"{short(one[1])} × {short(other[1])} {words}",
            f"{one[0]}, {other[0]}",
        )

    return made


def _batch(settings: RunSettings) -> Fact | None:
    """Write the number of responses per step; TRL's batches count responses already, others' count
    prompts.
    """
    if stated_setting(settings, PROMPTS) is not None:
        return _times("batch", PROMPTS, EACH, "response")(settings)
    return fact(settings, "responses per prompt", EACH) or fact(
        settings, "batch", _BATCH
    )


def _kl(settings: RunSettings) -> Fact | None:
    """Return the KL penalty in force: verl has one in the loss and one in the reward, each with a
    switch.
    """
    loss = _penalty(settings, "use_kl_loss", _KL_LOSS, "loss")
    reward = _penalty(settings, "use_kl_in_reward", _KL_REWARD, "reward")
    found = list(filter(None, (loss, reward)))
    if not found:
        return None
    in_force = [penalty for penalty in found if penalty.value]
    if len(in_force) > 1 and not found[1].switched:
        # without a switch (verl before v0.3) the penalty is in one place only
        in_force.pop()
    values = ", ".join(penalty.value for penalty in in_force) or "none"
    return Fact(
        "KL penalty", values, ", ".join(penalty.key for penalty in in_force or found)
    )


class _Penalty(NamedTuple):
    value: str
    """The coefficient in words, empty where the penalty is switched off."""
    key: str
    switched: bool
    """True if a setting switches it on or off."""


def _penalty(
    settings: RunSettings, use: str, names: Sequence[str], where: str
) -> _Penalty | None:
    """Return one of the KL penalties, None where nothing states it."""
    switch = stated_setting(settings, (use,))
    coefficient = stated_setting(settings, names)
    if switch is not None and switch[1] is False:
        return _Penalty("", switch[0], switched=True)
    if coefficient is None:
        return None
    place = f" in the {where}" if switch is not None else ""
    return _Penalty(
        f"{short(coefficient[1])}{place}", coefficient[0], switch is not None
    )


def clips(
    settings: RunSettings,
) -> tuple[tuple[str, float] | None, tuple[str, float] | None]:
    """Return the lower and the upper clip range where they are set apart."""
    low = stated_setting(settings, (*_LOW, *_CLIP))
    high = stated_setting(settings, _HIGH)
    below = number(low[1]) if low else None
    above = number(high[1]) if high else None
    return (
        (low[0], below) if low is not None and below is not None else None,
        (high[0], above) if high is not None and above is not None else None,
    )


def _clip(settings: RunSettings) -> Fact | None:
    low, high = clips(settings)
    if low is not None and high is not None and low[1] != high[1]:
        return Fact("clip", f"{low[1]:g} to {high[1]:g}", f"{low[0]}, {high[0]}")
    return fact(settings, "clip", (*_CLIP, *_LOW))


def _engine(settings: RunSettings) -> Fact | None:
    found = stated_setting(settings, _ENGINE)
    if found is None or not found[0].endswith("use_vllm"):
        return fact(settings, "engine", _ENGINE)
    if found[1] is not True:
        return None
    return Fact("engine", "vllm", found[0])


HYPERPARAMETERS: tuple[Callable[[RunSettings], Fact | None], ...] = (
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
