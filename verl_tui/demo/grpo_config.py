"""The resolved configuration of the simulated GRPO run, cut down to its informative settings."""

from __future__ import annotations

from typing import Any

from verl_tui.demo import curves, rollouts

PROJECT = "verl_examples"
EXPERIMENT = "run_grpo_gsm8k"
TEST_FREQ = 10
"""Steps between two validations."""
SAVE_FREQ = 50
"""Steps between two checkpoints."""
GPUS = 8
MAX_RESPONSE_LENGTH = 1024
KL_LOSS_COEF = 0.001
LEARNING_RATE = 1e-6

_MODEL = "Qwen/Qwen2.5-0.5B-Instruct"


def resolved() -> dict[str, Any]:
    """Return the configuration as verl's driver prints it: sections sorted, nothing left to
    interpolate.
    """
    return {
        "actor_rollout_ref": _actor_rollout_ref(),
        "algorithm": {
            "adv_estimator": "grpo",
            "gamma": 1.0,
            "kl_ctrl": {
                "horizon": 10000,
                "kl_coef": 0.001,
                "target_kl": 0.1,
                "type": "fixed",
            },
            "kl_penalty": "kl",
            "lam": 1.0,
            "norm_adv_by_std_in_grpo": True,
            "use_kl_in_reward": False,
        },
        "critic": {"enable": None},
        "data": {
            "max_prompt_length": 512,
            "max_response_length": MAX_RESPONSE_LENGTH,
            "prompt_key": "prompt",
            "seed": None,
            "shuffle": False,
            "train_batch_size": rollouts.PROMPTS,
            "train_files": ["data/gsm8k/train.parquet"],
            "truncation": "error",
            "val_files": ["data/gsm8k/test.parquet"],
        },
        "reward_model": {"enable": False, "reward_manager": "naive"},
        "trainer": _trainer(),
    }


def _actor_rollout_ref() -> dict[str, Any]:
    return {
        "actor": {
            "clip_ratio": 0.2,
            "clip_ratio_c": 3.0,
            "clip_ratio_high": 0.2,
            "clip_ratio_low": 0.2,
            "entropy_coeff": 0,
            "grad_clip": 1.0,
            "kl_loss_coef": KL_LOSS_COEF,
            "kl_loss_type": "low_var_kl",
            "loss_agg_mode": "token-mean",
            "optim": {"lr": LEARNING_RATE, "lr_warmup_steps": 0, "weight_decay": 0.01},
            "ppo_epochs": 1,
            "ppo_mini_batch_size": rollouts.PROMPTS // 2,
            "strategy": "fsdp",
            "use_kl_loss": True,
        },
        "model": {
            "enable_gradient_checkpointing": True,
            "path": _MODEL,
            "use_remove_padding": True,
        },
        "rollout": {
            "calculate_log_probs": True,
            "gpu_memory_utilization": 0.6,
            "mode": "async",
            "n": rollouts.GROUP,
            "name": "vllm",
            "temperature": 1.0,
            "tensor_model_parallel_size": 1,
            "top_p": 1.0,
            "val_kwargs": {"do_sample": False, "n": 1, "temperature": 0},
        },
    }


def _trainer() -> dict[str, Any]:
    return {
        "critic_warmup": 0,
        "default_local_dir": "checkpoints",
        "experiment_name": EXPERIMENT,
        "logger": ["console", "file"],
        "n_gpus_per_node": GPUS,
        "nnodes": 1,
        "project_name": PROJECT,
        "resume_mode": "auto",
        "rollout_data_dir": "rollouts",
        "save_freq": SAVE_FREQ,
        "test_freq": TEST_FREQ,
        "total_epochs": curves.GRPO_STEPS * rollouts.PROMPTS // rollouts.TRAIN_SIZE,
        "total_training_steps": curves.GRPO_STEPS,
        "use_v1": True,
        "v1": {"trainer_mode": "sync"},
        "val_before_train": True,
        "validation_data_dir": "validation",
    }
