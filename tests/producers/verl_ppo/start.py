"""Starts verl's own PPO trainer on the CPU: python start.py TOY [SETTING=VALUE]..., in the run's
directory.

TOY is what `toy.py` wrote. The process becomes the trainer's; the settings are Hydra's, those given
here come last.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROLLOUT = "actor_rollout_ref.rollout"


def settings(toy):
    """Return the settings of a run with eight prompts a step, four responses each."""
    model = "actor_rollout_ref.model"
    actor = "actor_rollout_ref.actor"
    ref = "actor_rollout_ref.ref"
    return {
        "algorithm.adv_estimator": "grpo",
        "data.train_files": toy / "train.parquet",
        "data.val_files": toy / "val.parquet",
        "data.train_batch_size": 8,
        "data.max_prompt_length": 32,
        "data.max_response_length": 16,
        "data.dataloader_num_workers": 0,
        f"{model}.path": toy / "model",
        f"+{model}.override_config.attn_implementation": "eager",
        f"{model}.enable_gradient_checkpointing": False,
        f"{model}.use_remove_padding": False,
        f"{actor}.optim.lr": 3e-3,
        f"{actor}.ppo_mini_batch_size": 8,
        f"{actor}.ppo_micro_batch_size_per_gpu": 32,
        f"{actor}.use_kl_loss": True,
        f"{actor}.use_torch_compile": False,
        f"{ref}.use_torch_compile": False,
        f"{ref}.log_prob_micro_batch_size_per_gpu": 32,
        f"{ROLLOUT}.name": "hf",
        f"{ROLLOUT}.n": 4,
        f"{ROLLOUT}.tensor_model_parallel_size": 1,
        f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": 32,
        "trainer.logger": "[console,tensorboard,wandb,file]",
        "trainer.project_name": "toy",
        "trainer.experiment_name": "letters",
        "trainer.n_gpus_per_node": 1,
        "trainer.nnodes": 1,
        "trainer.total_training_steps": 20,
        "trainer.total_epochs": 5,
        "trainer.save_freq": 5,
        "trainer.test_freq": 5,
        "trainer.log_val_generations": 4,
        "trainer.rollout_data_dir": "rollouts",
        "trainer.validation_data_dir": "validations",
        "trainer.default_local_dir": "checkpoints",
        "ray_kwargs.ray_init.num_cpus": 9,
        "+ray_kwargs.ray_init.num_gpus": 1,
        "+ray_kwargs.ray_init.include_dashboard": False,
    }


def of_version(minor):
    """Return the settings that one version alone has.

    Args:
        minor: 6 for verl 0.6.
    """
    if minor < 9:
        return {
            f"{ROLLOUT}.mode": "sync",
            f"{ROLLOUT}.load_format": "safetensors",
            f"{ROLLOUT}.top_k": 0,
            f"{ROLLOUT}.val_kwargs.top_k": 0,
            "custom_reward_function.path": HERE / "reward.py",
            "custom_reward_function.name": "compute_score",
            # The tensors that balancing leaves among the metrics are more than its file logger can
            # write.
            "trainer.balance_batch": False,
        }
    return {
        f"{ROLLOUT}.agent.num_workers": 1,
        "reward.custom_reward_function.path": HERE / "reward.py",
        "reward.custom_reward_function.name": "compute_score",
        "reward.num_workers": 1,
        "transfer_queue.backend.SimpleStorage.num_data_storage_units": 1,
    }


def main(toy, more):
    """Become the trainer."""
    stated = settings(toy) | of_version(int(version("verl").split(".")[1]))
    quiet = {
        "HF_HUB_OFFLINE": "1",
        "WANDB_MODE": "offline",
        "OMP_NUM_THREADS": "1",
        "VERL_FILE_LOGGER_ROOT": ".",
    }
    command = [
        sys.executable,
        "-m",
        "verl.trainer.main_ppo",
        *(f"{key}={value}" for key, value in stated.items()),
    ]
    os.execve(
        sys.executable,
        [*command, *more],
        os.environ | quiet | {"PYTHONPATH": str(HERE)},
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
