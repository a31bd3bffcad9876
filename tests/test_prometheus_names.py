"""The names of metrics in Prometheus, and that no two keys of a run share one."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.prometheus_names import OWN, named, names_of

VALID = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


@pytest.mark.parametrize(
    ("key", "name", "factor"),
    [
        ("actor/ppo_kl", "verl_actor_ppo_kl", 1.0),
        ("critic/score/mean", "verl_critic_score_mean", 1.0),
        ("timing_s/step", "verl_timing_s_step_seconds", 1.0),
        ("timing_per_token_ms/gen", "verl_timing_per_token_gen_seconds", 1e-3),
        ("timing_per_token_ms_gen", "verl_timing_per_token_gen_seconds", 1e-3),
        ("actor/perf/max_memory_allocated_gb", "verl_actor_perf_max_memory_allocated_bytes", 2.0**30),
        ("system/proc.memory.availableMB", "verl_system_proc_memory_available_bytes", 2.0**20),
        ("system/disk.sda.usagePercent/l:node1", "verl_system_disk_sda_usage_l_node1_ratio", 1e-2),
        ("system/gpu_util", "verl_system_gpu_util_ratio", 1e-2),
        ("system/gpu.0.temp", "verl_system_gpu_0_temp_celsius", 1.0),
        ("response_length/clip_ratio", "verl_response_length_clip_ratio", 1.0),
        ("samples/dead_groups", "verl_samples_dead_groups_ratio", 1.0),
        ("val-core/openai/gsm8k/reward/mean@1", "verl_val_core_openai_gsm8k_reward_mean_at_1", 1.0),
        ("actor/lr(1e-4)", "verl_actor_lr", 1e-4),
        ("train/total_tokens(B)", "verl_train_total_tokens", 1e9),
        ("vllm:num_preemptions_total", "verl_vllm_num_preemptions_total", 1.0),
        ("loss", "verl_loss", 1.0),
    ],
)  # fmt: skip
def test_a_key_is_named_in_base_units(key, name, factor):
    assert named(key) == (name, factor)


@pytest.mark.parametrize(
    "key", ["verl_average_reward", "training_steps_total", "run/state", "metric_info"]
)
def test_no_key_takes_a_name_that_the_exporter_writes_itself(key):
    assert named(key).name not in OWN
    assert named(key).name.startswith("verl_")


def test_two_keys_of_a_run_never_share_a_name():
    names = names_of(["a/b", "a_b", "a.b", "奖励", "损失"])
    assert names["a/b"].name == "verl_a_b"
    assert len({name.name for name in names.values()}) == 5


@given(st.lists(st.text(max_size=300), unique=True, max_size=8))
def test_any_key_has_a_valid_name_of_its_own(keys):
    names = names_of(keys)
    assert len({name.name for name in names.values()}) == len(keys)
    assert all(
        VALID.fullmatch(name.name) and name.name not in OWN and len(name.name) < 230
        for name in names.values()
    )
    assert all(name.factor > 0 for name in names.values())
