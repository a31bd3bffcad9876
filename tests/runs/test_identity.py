"""Who a run is, read from its settings alone, and each word with the setting that says so."""

from __future__ import annotations

from typing import Any

import pytest
from trainings import training

from verl_tui.runs.views.identity import (
    Fact,
    as_data,
    identity,
    is_known,
    model_name,
)


def known(*metrics: str, **settings: Any) -> dict[str, Fact]:
    columns = {key: [0.5, 0.5] for key in metrics}
    return identity(training(columns, settings=settings))


def hyper(found: dict[str, Fact]) -> dict[str, str]:
    stated = as_data(found)["hyperparameters"]
    return {label: fact["value"] for label, fact in stated.items()}


GRPO = {
    "trainer__project_name": "gsm8k", "trainer__experiment_name": "try 7", "algorithm__adv_estimator": "grpo",
    "algorithm__use_kl_in_reward": False, "algorithm__kl_ctrl__kl_coef": 0.001,
    "actor_rollout_ref__model__path": "Qwen/Qwen3-8B", "actor_rollout_ref__model__lora_rank": 0,
    "actor_rollout_ref__actor__optim__lr": 1e-6, "critic__optim__lr": 1e-5,
    "actor_rollout_ref__actor__use_kl_loss": True, "actor_rollout_ref__actor__kl_loss_coef": 0.01,
    "actor_rollout_ref__actor__clip_ratio": 0.2, "actor_rollout_ref__actor__clip_ratio_low": 0.2,
    "actor_rollout_ref__actor__clip_ratio_high": 0.2, "actor_rollout_ref__actor__ppo_mini_batch_size": 256,
    "actor_rollout_ref__actor__entropy_coeff": 0, "actor_rollout_ref__rollout__n": 8,
    "actor_rollout_ref__rollout__name": "vllm", "actor_rollout_ref__rollout__temperature": 1.0,
    "data__train_batch_size": 1024, "data__max_prompt_length": 512, "data__max_response_length": 8192,
    "trainer__total_epochs": 15, "trainer__total_training_steps": None, "trainer__n_gpus_per_node": 8,
    "trainer__nnodes": 2,
}  # fmt: skip


def test_verl():
    found = known(**GRPO)
    assert found["project"] == ("project", "gsm8k", "trainer.project_name")
    assert found["experiment"] == ("experiment", "try 7", "trainer.experiment_name")
    assert "group" not in found
    assert found["algorithm"] == ("algorithm", "GRPO", "algorithm.adv_estimator")
    assert found["model"] == ("model", "Qwen/Qwen3-8B", "actor_rollout_ref.model.path")
    assert hyper(found) == {
        "learning rate": "1e-06",
        "batch": "1024 × 8 responses",
        "mini batch": "256",
        "KL penalty": "0.01 in the loss",
        "clip": "0.2",
        "entropy bonus": "0",
        "longest prompt": "512",
        "longest response": "8192",
        "temperature": "1",
        "epochs": "15",
        "GPUs": "8 × 2 nodes",
        "engine": "vllm",
    }
    assert found["learning rate"].key == "actor_rollout_ref.actor.optim.lr"
    assert found["batch"].key == "data.train_batch_size, actor_rollout_ref.rollout.n"


def test_wandb_names_hold_where_the_trainer_states_others():
    found = known(**GRPO, wandb__project="P", wandb__name="N", wandb__group="G")
    assert [fact.value for fact in found.values()][:3] == ["P", "N", "G"]


def test_trl():
    found = known(
        learning_rate=1e-6, num_generations=8, beta=0.04, model_name_or_path="/models/Qwen2.5-7B", epsilon=0.2,
        max_completion_length=1024, per_device_train_batch_size=2, temperature=0.9, num_train_epochs=3, max_steps=-1,
        use_vllm=True, epsilon_high=0.28,
    )  # fmt: skip
    assert found["algorithm"] == ("algorithm", "GRPO", "num_generations")
    assert found["model"].value == "Qwen2.5-7B"
    assert hyper(found) == {
        "learning rate": "1e-06",
        "responses per prompt": "8",
        "batch per device": "2",
        "KL penalty": "0.04",
        "clip": "0.2 to 0.28",
        "longest response": "1024",
        "temperature": "0.9",
        "epochs": "3",
        "engine": "vllm",
    }


VERL = "algorithm.adv_estimator"
MODE = "actor_rollout_ref.actor.policy_loss.loss_mode"


@pytest.mark.parametrize(
    ("settings", "words", "key"),
    [
        ({VERL: "gae"}, "PPO", VERL),
        ({VERL: "rloo"}, "RLOO", VERL),
        ({VERL: "reinforce_plus_plus"}, "REINFORCE++", VERL),
        ({VERL: "remax"}, "ReMax", VERL),
        ({VERL: "my_own"}, "my_own", VERL),
        ({VERL: "grpo", MODE: "gspo"}, "GSPO", f"{MODE}, {VERL}"),
        ({VERL: "grpo", MODE: "vanilla"}, "GRPO", VERL),
        ({VERL: "grpo", MODE: "kl_cov"}, "GRPO with KL-Cov", f"{VERL}, {MODE}"),
        ({VERL: "grpo", "algorithm.filter_groups.enable": True}, "DAPO", "algorithm.filter_groups.enable"),
        ({VERL: "grpo", "reward_model.reward_manager": "dapo"}, "DAPO", "reward_model.reward_manager"),
        ({"advantage_estimator": "group_norm"}, "GRPO", "advantage_estimator"),
        ({"algorithm": "ppo"}, "PPO", "algorithm"),
        ({"model.partial_pretrain": "Qwen/Qwen3-1.7B"}, "SFT", "model.partial_pretrain"),
        ({"num_generations": 4, "normalize_advantages": True}, "RLOO", "num_generations, normalize_advantages"),
        ({"grpo.num_prompts_per_step": 32}, "GRPO", "grpo.num_prompts_per_step"),
    ],
)  # fmt: skip
def test_algorithm_by_settings(settings, words, key):
    assert known(**settings)["algorithm"] == ("algorithm", words, key)


@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        ("critic/score/mean critic/vf_loss", "PPO"),
        ("train/loss train/lr(1e-3)", "SFT"),
        ("train/completion_length train/reward", "GRPO"),
        ("frac_reward_zero_std reward", "GRPO or RLOO"),
        ("objective/rlhf_reward policy/approxkl_avg loss/value_avg", "PPO"),
        ("objective/rlhf_reward policy/approxkl_avg", "RLOO"),
        ("train/rewards/chosen train/rewards/margins train/rewards/accuracies", "DPO"),
        ("train/rewards/chosen train/rewards/margins train/kl", "KTO"),
        ("rewards/chosen rewards/accuracies log_odds_ratio", "ORPO"),
        ("critic/score/mean actor/pg_loss", None),
        ("train/loss train/lr train/reward", None),
        ("", None),
    ],
)
def test_algorithm_by_metrics_only_where_one_trainer_writes_them(metrics, words):
    found = known(*metrics.split()).get("algorithm")
    assert (found.value if found else None) == words


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"use_kl_loss": True, "use_kl_in_reward": False, "kl_loss_coef": 3, "kl_ctrl__kl_coef": 1}, "3 in the loss"),
        ({"use_kl_loss": False, "use_kl_in_reward": True, "kl_loss_coef": 1, "kl_ctrl__kl_coef": 2}, "2 in the reward"),
        ({"use_kl_loss": False, "use_kl_in_reward": False, "kl_loss_coef": 1, "kl_ctrl__kl_coef": 2}, "none"),
        ({"use_kl_loss": False, "kl_loss_coef": 1, "kl_ctrl__kl_coef": 2}, "2"),
        ({"beta": 0.04}, "0.04"),
        ({}, None),
    ],
)  # fmt: skip
def test_the_kl_penalty_in_force(settings, words):
    assert hyper(known(**settings)).get("KL penalty") == words


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("/c/models--Qwen--Qwen2-7B-Instruct/snapshots/f2826a00ceef68f0f2b946d945ecc04", "Qwen/Qwen2-7B-Instruct"),
        ("~/models/deepseek-llm-7b-chat", "deepseek-llm-7b-chat"),
        ("/ckpts/exp1/checkpoint-250/", "exp1/checkpoint-250"),
        ("/ckpts/exp1/global_step_30/actor/huggingface", "exp1/global_step_30/actor/huggingface"),
        ("gpt2", "gpt2"),
        ("/", ""),
    ],
)  # fmt: skip
def test_what_people_call_a_model(path, name):
    assert model_name(path) == name


def test_settings_that_tell_experiments_apart():
    assert is_known("actor_rollout_ref.actor.optim.lr")
    assert is_known("actor_rollout_ref.rollout.name")
    assert not is_known("trainer.experiment_name")
