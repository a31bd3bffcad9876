"""Which key of a log is which indicator, in every framework's names."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.indicators import (
    INDICATORS,
    dialect,
    factor,
    resolve,
    spellings,
    validation_keys,
)
from verl_tui.metrics import describe, modern

# The guide's table: an indicator, and its spellings in a dialect, in the guide's order.
GUIDE = {
    "tutorial": """
        reward: rollout/reward_mean reward/mean avg_reward train/reward verl_average_reward reward_mean
        reward_std: rollout/reward_std reward/std
        policy_kl: ppo/kl_div rollout/kl_div kl_div
        reference_kl: kl/divergence train/kl_div kl
        policy_loss: ppo/policy_loss policy/loss policy_loss
        value_loss: ppo/value_loss value/loss value_loss
        entropy: ppo/entropy ppo/entropy_loss entropy
        clip_fraction: ppo/clip_ratio clip_ratio
        grad_norm: ppo/grad_norm grad_norm
        response_length: rollout/response_length_mean generation/length
        log_prob: generation/log_prob
        throughput: throughput/samples_per_second
        generation_time: verl_sample_generation_seconds
        gpu_utilization: system/gpu_util system/gpu_utilization
        gpu_memory: system/memory_util
    """,
    "verl": """
        reward: critic/score/mean critic/rewards/mean
        policy_kl: actor/ppo_kl
        reference_kl: actor/kl_loss actor/reward_kl_penalty critic/kl
        policy_loss: actor/pg_loss
        value_loss: critic/vf_loss
        entropy: actor/entropy actor/entropy_loss
        clip_fraction: actor/pg_clipfrac
        grad_norm: actor/grad_norm
        response_length: response_length/mean
        truncated_share: response_length/clip_ratio
        log_prob: rollout_corr/rollout_log_ppl
        throughput: perf/throughput
        step_time: timing_s/step timing/step
        generation_time: timing_s/gen timing/gen
        validation: val-core/gsm8k/acc/mean@1 val/test_score/gsm8k test_score/gsm8k
        engine_mismatch: training/rollout_probs_diff_mean rollout_corr/kl mismatch/mismatch_kl
    """,
    "other": """
        validation: eval/reward eval/gsm8k eval_reward evaluator/avg_reward validation/accuracy
    """,
}
ROWS = [
    (name, whose, spellings.split())
    for whose, table in GUIDE.items()
    for name, spellings in re.findall(r"(\w+): (.*)", table)
]
SPELLINGS = [
    (name, whose, spelling) for name, whose, spellings in ROWS for spelling in spellings
]


def test_every_spelling_of_the_guide_resolves():
    for indicator, whose, spelling in SPELLINGS:
        assert resolve([spelling]) == {indicator: spelling}
        # `timing/step` alone is too common a name to tell.
        assert dialect([spelling]) == whose or spelling == "timing/step"


def test_the_guides_order_is_the_order_of_preference():
    for indicator, _, names in [row for row in ROWS if row[0] != "validation"]:
        # Old names of one present key are no preference of their own.
        present = list(
            {modern(spelling): spelling for spelling in reversed(names)}.values()
        )[::-1]
        for i in range(len(present)):
            assert resolve(present[i:])[indicator] == present[i]


def test_verl_keys_resolve_in_csv_spelling_too():
    for indicator, _, spelling in [row for row in SPELLINGS if row[1] == "verl"]:
        flat = spelling.replace("/", "_")
        assert resolve([flat]) == {indicator: flat}


IDS = """
    reward reward_std policy_kl reference_kl policy_loss value_loss entropy clip_fraction grad_norm response_length
    truncated_share log_prob throughput step_time generation_time gpu_utilization gpu_memory validation engine_mismatch
"""


def test_ids_are_public():
    assert list(INDICATORS) == IDS.split()
    for name, indicator in INDICATORS.items():
        assert indicator.id == name
        assert spellings(name) or name == "validation"


def test_the_keys_of_an_indicator_agree_with_their_descriptions():
    for indicator in INDICATORS.values():
        for spelling in spellings(indicator.id):
            if indicator.unit and describe(spelling).group != "other":
                assert describe(spelling).unit == indicator.unit, spelling


@pytest.mark.parametrize(
    ("keys", "indicator", "expected"),
    [
        ("response_length/clip_ratio", "clip_fraction", None),
        ("response_length_clip_ratio", "clip_fraction", None),
        ("response_length/clip_ratio clip_ratio", "clip_fraction", "clip_ratio"),
        ("rollout/kl_div ppo/kl_div kl_div", "policy_kl", "ppo/kl_div"),
        ("actor/kl_loss actor/ppo_kl", "policy_kl", "actor/ppo_kl"),
        ("actor/kl_loss actor/ppo_kl", "reference_kl", "actor/kl_loss"),
        ("kl kl_div", "reference_kl", "kl"),
        ("train/loss train/lr(1e-3) train/grad_norm", "policy_loss", None),
        ("loss grad_norm learning_rate", "policy_loss", None),
        ("train/loss train/reward", "policy_loss", "train/loss"),
        ("loss reward", "policy_loss", "loss"),
        ("train/loss train/pg_loss rollout/raw_reward", "policy_loss", "train/pg_loss"),
        ("loss/mean reward/mean", "policy_loss", "loss/mean"),
        ("reward/mean critic/score/mean", "reward", "critic/score/mean"),
        ("actor/entropy_loss actor/entropy", "entropy", "actor/entropy"),
        ("critic_kl actor/reward_kl_penalty", "reference_kl", "actor/reward_kl_penalty"),
        ("perf/throughput perf/throughput_per_gpu mismatch_kl/all/mean", "throughput", "perf/throughput_per_gpu"),
        ("verl_gpu_memory_used_bytes ray_node_gram_used", "gpu_memory", None),
        ("train/policy_kl_error", "policy_kl", None),
        ("policy_kl_error gen_kl_error", "engine_mismatch", "gen_kl_error"),
        ("logprobs_diff kl", "engine_mismatch", None),
        ("logprobs_diff vllm_kl", "engine_mismatch", "vllm_kl"),
        ("rollout/rewards", "reward", None),
        (
            "train/agg/all/agent/reward/mean train/agg/effective/agent/reward/mean",
            "reward",
            "train/agg/effective/agent/reward/mean",
        ),
        ("kl ratio forward_time_s", "policy_kl", "kl"),
        ("kl ratio forward_time_s", "reference_kl", None),
        ("train/kl reward", "reference_kl", "train/kl"),
        ("train/kl reward", "policy_kl", None),
        ("mean_reward std_reward", "reward", "mean_reward"),
        ("mean_reward std_reward", "reward_std", "std_reward"),
        ("mean_kl", "reference_kl", "mean_kl"),
        ("kl_divergence", "reference_kl", "kl_divergence"),
        ("train/kl_mean", "policy_kl", None),
        ("reward/total reward/format", "reward", "reward/total"),
        ("avg_completion_len", "response_length", "avg_completion_len"),
        ("entropy_mean", "entropy", "entropy_mean"),
        ("eval/perplexity eval/error_rate", "validation", None),
    ],
)  # fmt: skip
def test_preferences_and_traps(keys, indicator, expected):
    assert resolve(keys.split()).get(indicator) == expected


FRAMEWORKS = {
    "TRL": (
        "loss grad_norm learning_rate reward reward_std completions/mean_length completions/clipped_ratio kl entropy "
        "clip_ratio/region_mean sampling/sampling_logp_difference/mean step_time frac_reward_zero_std num_tokens",
        "reward reward_std reference_kl policy_loss entropy clip_fraction grad_norm response_length truncated_share "
        "step_time engine_mismatch",
    ),
    "OpenRLHF": (
        "train/reward train/group_reward_std train/response_length train/response_clip_ratio train/kl train/ppo_kl "
        "train/vllm_kl train/logprobs_diff train/ppo_clip_ratio train/entropy_loss train/policy_loss train/critic_loss train/actor_grad_norm "
        "timing/step_total timing/generation train/actor_lr",
        "reward reward_std policy_kl reference_kl policy_loss value_loss entropy clip_fraction grad_norm "
        "response_length truncated_share step_time generation_time engine_mismatch",
    ),
    "TRL's PPO": (
        "eps objective/kl objective/entropy objective/non_score_reward objective/rlhf_reward objective/scores "
        "policy/approxkl_avg policy/clipfrac_avg loss/policy_avg loss/value_avg val/clipfrac_avg policy/entropy_avg "
        "val/ratio val/ratio_var val/num_eos_tokens lr episode epoch",
        "reward policy_kl policy_loss value_loss entropy clip_fraction",
    ),
    "TRL's first PPO": (
        "objective/kl objective/kl_coef objective/entropy ppo/mean_non_score_reward ppo/mean_scores ppo/std_scores "
        "tokens/queries_len_mean tokens/responses_len_mean ppo/loss/policy ppo/loss/value ppo/loss/total "
        "ppo/policy/entropy ppo/policy/approxkl ppo/policy/policykl ppo/policy/clipfrac env/reward_mean",
        "reward policy_kl policy_loss value_loss entropy clip_fraction response_length",
    ),
    "OpenRLHF console": (
        "reward response_length kl policy_loss actor_lr",
        "reward response_length reference_kl",
    ),
    "slime": (
        "rollout/raw_reward rollout/rewards rollout/response_len/mean rollout/truncated_ratio train/pg_loss "
        "train/kl_loss train/ppo_kl train/train_rollout_logprob_abs_diff train/entropy_loss train/pg_clipfrac "
        "train/grad_norm perf/step_time perf/tokens_per_gpu_per_sec train/lr-pg_0",
        "reward policy_kl reference_kl policy_loss entropy clip_fraction grad_norm response_length truncated_share "
        "throughput step_time engine_mismatch",
    ),
    "prime-rl": (
        "reward/mean mismatch_kl/all/mean entropy/all/mean loss/mean optim/grad_norm optim/lr time/step "
        "time/wait_for_batch perf/throughput perf/throughput_per_gpu perf/mfu progress/total_tokens eval/aime24",
        "reward policy_loss entropy grad_norm throughput step_time validation engine_mismatch",
    ),
    "NeMo-RL": (
        "train/reward train/mean_gen_tokens_per_sample train/kl_penalty train/policy_kl_error train/gen_kl_error "
        "train/approx_entropy train/loss train/grad_norm train/lr timing/train/total_step_time timing/train/generation "
        "performance/tokens_per_sec_per_gpu validation/accuracy",
        "reward reference_kl policy_loss entropy grad_norm response_length throughput step_time "
        "generation_time validation engine_mismatch",
    ),
}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_other_frameworks(framework):
    keys, indicators = (words.split() for words in FRAMEWORKS[framework])
    assert dialect(keys) == "other"
    assert set(indicators) <= set(resolve(keys))
    assert all(describe(key).group != "other" for key in keys)


NO_SCORES = """
    eval/aime24-truncated_ratio eval/aime24/response_len/mean eval_completions/mean_length eval_runtime
    val/ratio val/ratio_var val/clipfrac_avg val/num_eos_tokens val/contain_eos_token
    val/model_contain_eos_token eval_sampling/sampling_logp_difference/mean eval_frac_reward_zero_std
    validation/avg_length
"""


@pytest.mark.parametrize("key", NO_SCORES.split())
def test_what_is_reported_of_an_evaluation_and_is_no_score(key):
    assert validation_keys((key,)) == ()


@pytest.mark.parametrize(
    ("keys", "whose"),
    [
        ("", "other"),
        ("step_rewards_BipedalWalker-v3", "other"),
        ("loss learning_rate grad_norm epoch", "other"),
        ("train/loss", "other"),
        ("train/loss train/grad_norm train/lr(1e-3) val/loss", "verl"),
        ("train/loss train/grad_norm train/lr train/global_tokens train/mfu", "verl"),
        ("rollout/reward_mean rollout/reward_std rollout/kl_div ppo/policy_loss ppo/value_loss ppo/entropy", "tutorial"),
        ("reward/mean kl/divergence policy/loss generation/length throughput/samples_per_second", "tutorial"),
        ("reward_mean reward_std response_length_mean policy_loss value_loss entropy learning_rate", "tutorial"),
        ("train/reward train/loss train/kl_div", "tutorial"),
        ("rollout/reward_mean training/global_step training/epoch", "tutorial"),
        ("ppo/policy/entropy ppo/mean_scores objective/kl ppo/loss/value", "other"),
        ("val-core/gsm8k/acc/mean@1", "verl"),
        ("timing/gen timing/step actor/lr(1e-4) critic/kl", "verl"),
        ("perf/throughput training/global_step", "verl"),
        ("critic_score_mean actor_ppo_kl response_length_mean", "verl"),
    ],
)  # fmt: skip
def test_dialects(keys, whose):
    assert dialect(keys.split()) == whose


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("val-core/openai/gsm8k/acc/mean_at_1", "val-core/openai/gsm8k/acc/mean_at_1"),
        ("val-core_gsm8k_acc_mean@1", "val-core_gsm8k_acc_mean@1"),
        ("val-aux/gsm8k/reward/mean@1 val-aux/num_turns/mean", "val-aux/gsm8k/reward/mean@1"),
        ("val-aux/num_turns/mean val/loss", ""),
        ("eval_loss eval_runtime eval_steps_per_second", ""),
        ("eval_loss eval_reward eval_completions/mean_length", "eval_reward"),
        ("eval/aime24 eval/loss eval/reward eval/avg_response_length", "eval/reward eval/aime24"),
        (
            "eval_logits/chosen eval_logps/rejected eval_rewards/chosen eval_mean_token_accuracy"
            " eval_rewards/accuracies eval_rewards/margins",
            "eval_rewards/accuracies",
        ),
        ("eval/logps/chosen eval/rewards/rejected", ""),
        ("avg_reward", ""),
        ("validation/off_policy/evicted_samples validation/filter_groups/evicted_samples", ""),
        ("validation/rollout_failure/evicted_samples validation/gsm8k", "validation/gsm8k"),
        ("val-core/math/acc/mean@1 val-aux/math/acc_success_only/mean@1", "val-core/math/acc/mean@1"),
        (
            "val-aux/num_turns/mean val-aux/gsm8k/reward/std@8 val-core/gsm8k/acc/best@8/mean"
            " val-core/math/reward/mean@8 val-core/gsm8k/acc/mean@8 val/loss critic/score/mean",
            "val-core/gsm8k/acc/mean@8 val-core/math/reward/mean@8 val-core/gsm8k/acc/best@8/mean",
        ),
    ],
)  # fmt: skip
def test_what_counts_as_validation_and_what_comes_first(keys, expected):
    assert validation_keys(tuple(keys.split())) == tuple(expected.split())
    first = resolve(keys.split()).get("validation", "")
    assert first == expected.partition(" ")[0]


@pytest.mark.parametrize("prefix", ["", "train/"])
def test_names_of_trls_ppo_mean_others_in_its_rloo(prefix):
    """RLOO's are of whole responses, and judged as if of tokens they would be far too high."""
    names = "objective/scores policy/approxkl_avg policy/clipfrac_avg loss/value_avg"
    ppo = [prefix + name for name in names.split()]
    assert resolve(ppo[:3]) == {"reward": ppo[0]}
    indicators = ("reward", "policy_kl", "clip_fraction", "value_loss")
    assert resolve(ppo) == dict(zip(indicators, ppo, strict=True))


def test_a_negated_log_probability():
    assert factor("log_prob", "rollout_corr/rollout_log_ppl") == -1
    assert factor("log_prob", "mismatch/mismatch_rollout_log_ppl") == -1
    assert factor("log_prob", "generation/log_prob") == 1


_FOREIGN = {key for keys, _ in FRAMEWORKS.values() for key in keys.split()}
KNOWN = sorted({spelling for _, _, spelling in SPELLINGS} | _FOREIGN)


@given(
    st.lists(st.one_of(st.text(), st.sampled_from(KNOWN)), unique=True),
    st.randoms(use_true_random=False),
)
def test_any_keys_resolve_whatever_their_order(keys, shuffle):
    found = resolve(keys)
    whose = dialect(keys)
    scores = validation_keys(tuple(keys))
    assert set(found.values()) <= set(keys)
    assert set(found) <= set(INDICATORS)
    shuffle.shuffle(keys)
    assert resolve(set(keys)) == found
    assert (dialect(set(keys)), validation_keys(tuple(keys))) == (whose, scores)


def quantiles(stem, *parts):
    return [f"{stem}/{part}" for part in (*parts, "p05", "p25", "p50", "p75", "p95")]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (quantiles("rewards", "mean", "min", "max"), {"reward": "rewards/mean"}),
        (quantiles("scores"), {"reward": "scores/p50"}),
        (["reward", *quantiles("rewards", "mean")], {"reward": "reward"}),
        (quantiles("rollout/response_lengths"), {"response_length": "rollout/response_lengths/p50"}),
        (quantiles("ppo/entropies"), {"entropy": "ppo/entropies/p50"}),
        (quantiles("critic/score"), {"reward": "critic/score/p50"}),
        (quantiles("eval/reward", "mean"), {"validation": "eval/reward/mean"}),
        (quantiles("score_std"), {}),
        (["rewards/p50", "rewards/p95"], {}),
    ],
)  # fmt: skip
def test_a_distribution_stands_in_where_there_is_nothing_else(keys, expected):
    assert resolve(keys) == expected
