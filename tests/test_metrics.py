"""The catalogue of metrics: tables, renames, exporters' spellings, families."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tui import metrics
from verl_tui.metrics import (
    GROUPS,
    describe,
    expanded,
    family,
    known_metrics,
    modern,
    read_table,
    scale,
    slashed,
)

_WORDS = """
    train eval val val-core val_core timing timing_s mismatch test_score rollout_corr critic score mean max min mean@8
    best@4 mean_at_1 lr(1e-4) lr_1e-3_ completions mean_length / _ @
"""
WORDS = st.sampled_from([*_WORDS.split(), "\n"])
KEYS = st.one_of(
    st.text(),
    st.lists(WORDS, max_size=8).map("/".join),
    st.lists(WORDS, max_size=8).map("_".join),
)


def test_old_names_lead_to_present_ones():
    for old, new in [
        ("actor/lr(1e-4)", "actor/lr"),
        ("critic/lr(1e-4)", "critic/lr"),
        ("timing/gen", "timing_s/gen"),
        ("timing/update_actor", "timing_s/update_actor"),
        ("mfu/actor", "perf/mfu/actor"),
        ("mfu/critic", "perf/mfu/critic"),
        ("test_score/openai/gsm8k", "val-core/openai/gsm8k/reward/mean@1"),
        ("val/test_score/openai/gsm8k", "val-core/openai/gsm8k/reward/mean@1"),
        ("critic/kl", "actor/reward_kl_penalty"),
        ("critic/kl_coeff", "actor/reward_kl_penalty_coeff"),
        ("mismatch/mismatch_kl", "rollout_corr/kl"),
        ("mismatch/rollout_is_mean", "rollout_corr/rollout_is_mean"),
        ("num_turns/mean", "training/num_turns/mean"),
        ("perf/max_memory_allocated_gb", "actor/perf/max_memory_allocated_gb"),
        ("perf/max_memory_reserved_gb", "actor/perf/max_memory_reserved_gb"),
        ("perf/cpu_memory_used_gb", "actor/perf/cpu_memory_used_gb"),
        ("rollouter/idle_ratio", "fully_async/rollouter/idle_ratio"),
        ("trainer/idle_ratio", "fully_async/trainer/idle_ratio"),
    ]:
        assert modern(old) == new
        assert modern(new) == new
        assert describe(old).label == describe(new).label
        assert describe(old).key == old


def test_exporters_spellings_are_undone():
    for exported, key in [
        ("critic_score_mean", "critic/score/mean"),
        ("actor_ppo_kl", "actor/ppo_kl"),
        ("response_length_clip_ratio", "response_length/clip_ratio"),
        ("perf_mfu_actor", "perf/mfu/actor"),
        ("timing_s_update_actor", "timing_s/update_actor"),
        (
            "timing_s_agent_loop_slowest_prompt_length",
            "timing_s/agent_loop/slowest/prompt_length",
        ),
        ("timing_per_token_ms_gen", "timing_per_token_ms/gen"),
        ("rollout_corr_rollout_is_mean", "rollout_corr/rollout_is_mean"),
        ("val-core_openai_gsm8k_acc_mean@1", "val-core/openai_gsm8k/acc/mean@1"),
        (
            "val_core_openai_gsm8k_reward_mean_at_16",
            "val-core/openai_gsm8k/reward/mean@16",
        ),
        ("val-aux_math_acc_best@4_std", "val-aux/math/acc/best@4/std"),
        ("val_test_score_gsm8k", "val/test_score/gsm8k"),
        ("val-core/openai/gsm8k/acc/mean_at_1", "val-core/openai/gsm8k/acc/mean@1"),
        ("val-aux/gsm8k/acc/best_at_4/mean", "val-aux/gsm8k/acc/best@4/mean"),
        ("reward_mean", "reward_mean"),
        ("format_at_1", "format_at_1"),
    ]:
        assert slashed(exported) == key


def test_no_key_is_described_twice():
    tables = map(read_table, ("verl", "other_frameworks", "samples"))
    keys = [one.key for table in tables for line in table for one in expanded(line)]
    assert sorted(keys) == sorted(set(keys))


@pytest.mark.parametrize("table", ["verl", "other_frameworks", "samples", "patterns"])
def test_tables_state_their_columns_and_known_groups(table):
    text = (Path(metrics.__file__).parent / f"{table}.txt").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if not line.startswith("#")]
    columns = ["key", "label", "unit", "good", "group", "note"]
    assert [cell.strip() for cell in rows[0].split(" | ")] == columns
    for line in read_table(table):
        assert line.direction in ("up", "down", "near", ""), line
        assert line.group in GROUPS, line


def test_every_table_entry_is_reachable_and_well_formed():
    for key in sorted(known_metrics()):
        metric = describe(key)
        assert metric.key == key
        assert metric.label
        assert "{" not in metric.label
        assert metric.group != "other"


@pytest.mark.parametrize(
    ("key", "label", "unit", "group"),
    [
        # by the tables, in any spelling
        ("critic/score/max", "reward max", "", "reward"),
        ("critic_score_max", "reward max", "", "reward"),
        ("rl_insight_monitor_critic_score_mean", "reward", "", "reward"),
        ("train/lr_1e-3_", "learning rate", "×1e-3", "optimisation"),
        ("timing/gen", "generation time", "s", "timing"),
        ("train/kl", "reference KL", "nats/token", "kl"),
        ("train/completions/mean_length", "response length", "tokens", "length"),
        ("critic/rewards/mean", "reward after KL", "", "reward"),
        ("critic/rewards/format", "reward part format", "", "reward"),
        # by patterns
        ("timing_s/some_new_phase", "some new phase time", "s", "timing"),
        ("timing_s/timing_s/param_sync", "param sync time", "s", "timing"),
        ("timing_s/agent_loop/slowest/num_preempted", "slowest agent: preemptions", "", "engine"),
        ("rewards/format/std", "reward part format spread", "", "reward"),
        ("fully_async/processing_time/tp95", "sample time tp95", "s", "async"),
        ("training/filter_groups/evicted_samples", "prompts without variance, training", "prompts", "samples"),
        ("tq_partition_production_progress", "sample queue, production", "share", "async"),
        ("system/memory_percent/l:node-1", "host memory", "percent", "system"),
        ("system/disk./mnt/data.usageGB", "disk mnt data used", "GiB", "system"),
        ("assistant_response_length_mean", "assistant response length mean", "tokens", "length"),
        # of a validation
        ("val-core/openai/gsm8k/acc/mean@1", "openai/gsm8k/acc/mean@1", "", "validation"),
        ("eval_loss", "validation loss", "", "validation"),
        ("eval/gsm8k", "validation gsm8k", "", "validation"),
        ("val_samples/score", "validation score of samples", "", "validation"),
        ("val_samples/dead_groups", "validation dead groups", "share", "samples"),
        ("samples/acc", "acc (samples)", "", "samples"),
    ],
)  # fmt: skip
def test_describes(key, label, unit, group):
    found = describe(key)
    assert (found.key, found.label) == (key, label)
    assert (found.unit, found.group) == (unit, group)


def test_counts_of_samples_are_bookkeeping():
    """They say nothing of learning, and so stand with the other sizes, behind everything that
    does.
    """
    for name in ("count", "read_share", "response_chars"):
        for key in (f"samples/{name}", f"val_samples/{name}"):
            assert describe(key).group == "data"
            assert describe(key).direction == ""


@pytest.mark.parametrize(
    ("key", "factor"),
    [
        ("actor/lr(1e-4)", 1e-4),
        ("train/lr(1e-3)", 1e-3),
        ("train/lr_1e-3_", 1e-3),
        ("actor/lr", 1),
        ("x(1e-3)", 1),
    ],
)
def test_scale(key, factor):
    assert scale(key) == factor


@pytest.mark.parametrize(
    ("key", "stem", "part"),
    [
        ("critic/score/mean", "critic/score", "mean"),
        ("critic/score/max", "critic/score", "max"),
        ("critic_score_min", "critic_score", "min"),
        ("reward_mean", "reward", "mean"),
        ("rollout/reward_max", "rollout/reward", "max"),
        ("completions/mean_length", "completions/length", "mean"),
        ("train/completions/min_length", "train/completions/length", "min"),
        ("completions/max_terminated_length", "completions/terminated_length", "max"),
        ("fully_async/processing_time/avg", "fully_async/processing_time", "mean"),
        ("rollout/moe/max_vio/layer_0", "rollout/moe/vio/layer_0", "max"),
        ("training/rollout_probs_diff_mean", "training/rollout_probs_diff", "mean"),
        ("rollout_corr/rollout_is_max", "rollout_corr/rollout_is", "max"),
        ("clip_ratio/low_min", "clip_ratio/low", "min"),
    ],
)
def test_families(key, stem, part):
    assert family(key) == (stem, part)


@pytest.mark.parametrize(
    "key",
    [
        "mean", "/max", "_min", "", "actor/pg_loss", "global_seqlen/minmax_diff",
        "perf/max_memory_allocated_gb", "val-aux/gsm8k/acc/best@4/mean",
        "val-core_gsm8k_acc_maj@8_mean", "val-aux/gsm8k/acc/best_at_4/mean",
        "val-core/gsm8k/acc/mean@8", "mean_gen_tokens_per_sample", "timing_s/gen",
    ],
)  # fmt: skip
def test_keys_that_stand_alone(key):
    assert family(key) is None


@given(KEYS)
def test_any_text_is_described(key):
    metric = describe(key)
    assert metric.key == key
    assert metric.label or not key
    assert metric.direction in ("up", "down", "near", "")
    assert metric.group in GROUPS
    assert scale(key) > 0


PIECES = "_ / a_ val_core_ train/ eval_ mean@1_ @ { max/ (1e-3)"


@pytest.mark.parametrize("piece", PIECES.split())
def test_hostile_keys_cost_no_time(piece):
    start = time.process_time()
    for length in (390, 100_000):
        key = (piece * length)[:length]
        describe(key)
        modern(key)
        family(key)
    assert time.process_time() - start < 2
