"""What each metric is: label, unit, direction and group, described once, as data.

A log's own key is never changed. `modern` only says under which of verl's present names to look it
up. Facts are from verl's source, mostly `verl/trainer/ppo/metric_utils.py`, `core_algos.py`,
`ray_trainer.py`, `v1/trainer_base.py`, `verl/workers/engine_workers.py` and
`docs/algo/rollout_corr.md`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

Direction = Literal["up", "down", "near", ""]
"""What is good: more, less, close to a target (0 unless the note says otherwise), or neither."""

Group = Literal[
    "reward", "validation", "kl", "loss", "length", "optimisation", "throughput", "timing", "memory", "system",
    "async", "engine", "data", "samples", "other",
]  # fmt: skip
"""What a metric is about; charts and lists are ordered by it."""

Part = Literal["mean", "max", "min"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric as people read it."""

    key: str
    """The log's own key."""
    label: str
    """A few words for a title or a legend."""
    unit: str = ""
    """`s`, `tokens`, `tokens/s/GPU`, `share` (0..1), `percent` (0..100), `nats/token`, `GiB` …,
    empty where none.
    """
    direction: Direction = ""
    group: Group = "other"
    note: str = ""
    """What a reader of the number should know, empty where the label says it all."""


_Row = tuple[str, str, str, Direction, Group, str]  # key, label, unit, direction, group, note

# `{a,b}` in a key stands for one key each: the choice fills `{}` in the label, or follows it
# (`mean` goes unsaid).
_VERL: tuple[_Row, ...] = (
    (
        "critic/score/{mean,max,min}",
        "reward",
        "",
        "up",
        "reward",
        "raw reward per response, before any KL penalty",
    ),
    (
        "critic/rewards/{mean,max,min}",
        "reward after KL",
        "",
        "up",
        "reward",
        "the score unless use_kl_in_reward",
    ),
    (
        "critic/advantages/{mean,max,min}",
        "advantage",
        "",
        "",
        "optimisation",
        "all exactly 0: no group has variance",
    ),
    (
        "critic/returns/{mean,max,min}",
        "return",
        "",
        "",
        "optimisation",
        "per token; GRPO: equals the advantage",
    ),
    ("critic/values/{mean,max,min}", "value estimate", "", "", "optimisation", ""),
    (
        "critic/vf_explained_var",
        "explained variance",
        "",
        "up",
        "optimisation",
        "1 perfect, 0 useless, < 0 harmful",
    ),
    ("critic/vf_loss", "value loss", "", "down", "loss", "half the clipped squared error"),
    ("critic/vf_clipfrac", "value clip fraction", "share", "", "optimisation", ""),
    ("critic/vpred_mean", "predicted value", "", "", "optimisation", ""),
    ("critic/grad_norm", "critic gradient norm", "", "", "optimisation", "before clipping"),
    ("critic/lr", "critic learning rate", "", "", "optimisation", ""),
    (
        "actor/pg_loss",
        "policy loss",
        "",
        "",
        "loss",
        "hovers around 0 in GRPO and on-policy PPO; no sign of progress",
    ),
    (
        "actor/loss",
        "total loss",
        "",
        "",
        "loss",
        "policy loss with KL and entropy terms, verl v0.8 and later",
    ),
    (
        "actor/pg_clipfrac",
        "clip fraction",
        "share",
        "",
        "optimisation",
        "0 where training is on-policy",
    ),
    ("actor/pg_clipfrac_lower", "dual-clip fraction", "share", "", "optimisation", "near 0"),
    (
        "actor/ppo_kl",
        "policy KL",
        "nats/token",
        "near",
        "kl",
        "to the old policy, k1: may be negative, 0 on-policy",
    ),
    (
        "actor/kl_loss",
        "reference KL in loss",
        "nats/token",
        "near",
        "kl",
        "k3 by default: ≥ 0, rises slowly",
    ),
    ("actor/kl_coef", "KL loss coefficient", "", "", "kl", "constant"),
    (
        "actor/reward_kl_penalty",
        "reference KL in reward",
        "nats/token",
        "near",
        "kl",
        "k1 by default: may be negative",
    ),
    ("actor/reward_kl_penalty_coeff", "KL penalty coefficient", "", "", "kl", ""),
    (
        "actor/entropy",
        "entropy",
        "nats/token",
        "",
        "optimisation",
        "before the update; in token-sum modes a sum",
    ),
    (
        "actor/entropy_loss",
        "entropy during update",
        "nats/token",
        "",
        "optimisation",
        "positive, not negated",
    ),
    (
        "actor/grad_norm",
        "gradient norm",
        "",
        "",
        "optimisation",
        "before clipping, mean over mini-batches",
    ),
    ("actor/lr", "learning rate", "", "", "optimisation", ""),
    (
        "perf/mfu/{actor,critic,actor_infer}",
        "MFU {}",
        "share",
        "up",
        "throughput",
        "exactly 0: unknown model or GPU",
    ),
    (
        "actor/perf/max_memory_{allocated,reserved}_gb",
        "peak GPU memory {}",
        "GiB",
        "",
        "memory",
        "peak: it only rises",
    ),
    (
        "critic/perf/max_memory_{allocated,reserved}_gb",
        "critic peak GPU memory {}",
        "GiB",
        "",
        "memory",
        "only rises",
    ),
    (
        "{actor,critic}/perf/cpu_memory_used_gb",
        "host memory, {}",
        "GiB",
        "down",
        "memory",
        "a steady rise is a leak",
    ),
    (
        "response_length/{mean,max,min}",
        "response length",
        "tokens",
        "",
        "length",
        "with tool tokens in multi-turn",
    ),
    (
        "response_length/clip_ratio",
        "truncated share",
        "share",
        "down",
        "length",
        "truncation only before verl v0.9",
    ),
    (
        "response_length_non_aborted/{mean,max,min}",
        "response length, not aborted",
        "tokens",
        "",
        "length",
        "",
    ),
    (
        "response_length_non_aborted/clip_ratio",
        "truncated share, not aborted",
        "share",
        "down",
        "length",
        "",
    ),
    (
        "response/aborted_ratio",
        "aborted share",
        "share",
        "down",
        "samples",
        "responses of length 0",
    ),
    ("prompt_length/{mean,max,min}", "prompt length", "tokens", "", "length", ""),
    (
        "prompt_length/clip_ratio",
        "truncated prompt share",
        "share",
        "down",
        "length",
        "truncation only before verl v0.9",
    ),
    (
        "training/num_turns/{mean,max,min}",
        "turns",
        "turns",
        "",
        "samples",
        "messages of a conversation; verl v0.9.1: also num_turns/*",
    ),
    ("val-aux/num_turns/{mean,max,min}", "validation turns", "turns", "", "samples", ""),
    ("tool_call_counts/{mean,max,min}", "tool calls", "calls", "", "samples", ""),
    (
        "timing_s/step",
        "step time",
        "s",
        "down",
        "timing",
        "without validation (verl v0.6 and later)",
    ),
    (
        "timing_s/gen",
        "generation time",
        "s",
        "down",
        "timing",
        "verl v0.9 and later: waiting for samples",
    ),
    ("timing_s/testing", "validation time", "s", "down", "timing", ""),
    (
        "timing_s/agent_loop/num_preempted/{mean,max,min}",
        "preemptions",
        "",
        "down",
        "engine",
        "a count, no seconds",
    ),
    (
        "timing_s/agent_loop/generate_sequences/{mean,max,min}",
        "agent generation",
        "s",
        "down",
        "timing",
        "",
    ),
    (
        "timing_s/agent_loop/tool_calls/{mean,max,min}",
        "agent tool calls",
        "s",
        "down",
        "timing",
        "",
    ),
    (
        "timing_s/agent_loop/compute_score/{mean,max,min}",
        "agent scoring",
        "s",
        "down",
        "timing",
        "",
    ),
    (
        "timing_s/agent_loop/slowest/generate_sequences",
        "slowest agent: generation",
        "s",
        "down",
        "timing",
        "",
    ),
    (
        "timing_s/agent_loop/slowest/tool_calls",
        "slowest agent: tool calls",
        "s",
        "down",
        "timing",
        "",
    ),
    (
        "timing_s/agent_loop/slowest/compute_score",
        "slowest agent: scoring",
        "s",
        "down",
        "timing",
        "",
    ),
    (
        "timing_s/agent_loop/slowest/num_preempted",
        "slowest agent: preemptions",
        "",
        "down",
        "engine",
        "a count",
    ),
    (
        "timing_s/agent_loop/slowest/{prompt,response}_length",
        "slowest agent: {} length",
        "tokens",
        "",
        "length",
        "",
    ),
    (
        "timing_s/generation_timing/topk_ratio",
        "slowest requests' share",
        "share",
        "down",
        "timing",
        "no seconds",
    ),
    (
        "perf/total_num_tokens",
        "tokens per step",
        "tokens",
        "",
        "data",
        "prompts and responses, padding rows included",
    ),
    ("perf/time_per_step", "step time", "s", "down", "timing", "equals timing_s/step"),
    (
        "perf/throughput",
        "throughput per GPU",
        "tokens/s/GPU",
        "up",
        "throughput",
        "prime-rl: of all GPUs together",
    ),
    ("global_seqlen/{mean,max,min}", "tokens per rank", "tokens", "", "data", ""),
    (
        "global_seqlen/minmax_diff",
        "tokens per rank, spread",
        "tokens",
        "down",
        "data",
        "before balancing",
    ),
    ("global_seqlen/balanced_{min,max}", "tokens per rank, balanced", "tokens", "", "data", ""),
    ("training/global_step", "step", "steps", "", "data", ""),
    ("training/epoch", "epoch", "epochs", "", "data", "from 0"),
    (
        "training/rollout_probs_diff_{mean,max,std}",
        "engine probability gap",
        "share",
        "down",
        "engine",
        "docs: < 0.005",
    ),
    (
        "training/rollout_probs_diff_valid",
        "engine probability gap valid",
        "",
        "",
        "engine",
        "0 or 1",
    ),
    (
        "training/rollout_actor_probs_pearson_corr",
        "engine correlation",
        "",
        "up",
        "engine",
        "1: engines agree",
    ),
    (
        "training/off_policy/trajectory_spans/{mean,max,min}",
        "weight versions",
        "versions",
        "",
        "async",
        "1: just one",
    ),
    (
        "training/off_policy/trajectory_staleness/{mean,max,min}",
        "staleness",
        "versions",
        "down",
        "async",
        "",
    ),
    # verl v0.9, `v1/replay_buffer.py`: what leaves the replay buffer before training, of validation
    # as of training.
    (
        "{training,validation}/off_policy/evicted_samples",
        "prompts evicted as stale, {}",
        "prompts",
        "down",
        "async",
        "groups of samples; only where above 0",
    ),
    (
        "{training,validation}/filter_groups/evicted_samples",
        "prompts without variance, {}",
        "prompts",
        "down",
        "samples",
        "left out by the filter of DAPO; their share: over themselves and train_batch_size",
    ),
    (
        "{training,validation}/filter_groups/discarded_surplus_samples",
        "surplus prompts, {}",
        "prompts",
        "",
        "samples",
        "more than the batch takes",
    ),
    (
        "{training,validation}/rollout_failure/evicted_samples",
        "prompts evicted as failed, {}",
        "prompts",
        "down",
        "samples",
        "",
    ),
    ("rollout/spec_accept_rate", "speculative accept rate", "share", "up", "engine", ""),
    ("rollout/spec_accept_length", "speculative accept length", "tokens", "up", "engine", ""),
    (
        "rollout_corr/kl",
        "engine KL",
        "nats/token",
        "near",
        "engine",
        "rollout against trainer, k1: may be negative",
    ),
    ("rollout_corr/k3_kl", "engine KL, k3", "nats/token", "down", "engine", "never negative"),
    ("rollout_corr/{training,rollout}_ppl", "{} perplexity", "", "", "engine", ""),
    (
        "rollout_corr/{training,rollout}_log_ppl",
        "{} log-perplexity",
        "nats/token",
        "",
        "engine",
        "log-prob negated",
    ),
    (
        "rollout_corr/log_ppl_{diff,abs_diff}",
        "log-perplexity {}",
        "nats/token",
        "near",
        "engine",
        "",
    ),
    (
        "rollout_corr/log_ppl_diff_{max,min}",
        "log-perplexity diff",
        "nats/token",
        "near",
        "engine",
        "",
    ),
    ("rollout_corr/ppl_ratio", "perplexity ratio", "", "near", "engine", "target 1"),
    (
        "rollout_corr/chi2_{token,seq}",
        "χ² per {}",
        "",
        "down",
        "engine",
        "per token above 1: severe shift",
    ),
    (
        "rollout_corr/rollout_is_mean",
        "importance weight",
        "",
        "near",
        "engine",
        "target 1; 0.5 to 2 is usual",
    ),
    ("rollout_corr/rollout_is_{max,min}", "importance weight", "", "near", "engine", "target 1"),
    (
        "rollout_corr/rollout_is_std",
        "importance weight spread",
        "",
        "down",
        "engine",
        "> 1: too high",
    ),
    (
        "rollout_corr/rollout_is_eff_sample_size",
        "effective sample size",
        "share",
        "up",
        "engine",
        "< 0.3: too low",
    ),
    (
        "fully_async/trainer/idle_ratio",
        "trainer idle share",
        "share",
        "down",
        "async",
        "waiting over step time",
    ),
    ("fully_async/rollouter/idle_ratio", "rollouter idle share", "share", "down", "async", ""),
    ("fully_async/total_wait_time", "wait for samples", "s", "down", "async", ""),
    ("fully_async/partial/partial_ratio", "partial rollout share", "share", "", "async", ""),
)

# verl's SFT trainer (`verl/trainer/sft_trainer.py`), the tutorials' logs, then other frameworks by
# their own sources. Figures that `verl_tui.evaluation` makes of samples, what tells most of
# learning first.
_SAMPLES: tuple[_Row, ...] = (
    ("samples/score", "score of samples", "", "up", "reward", "mean"),
    ("samples/groups", "prompt groups", "", "", "samples", "prompts with several samples"),
    (
        "samples/dead_groups",
        "dead groups",
        "share",
        "down",
        "samples",
        "prompts whose samples all score the same",
    ),
    (
        "samples/repetition",
        "repetition",
        "share",
        "down",
        "samples",
        "n-grams that came before, or runs of one character",
    ),
    (
        "samples/distinct_2",
        "distinct-2",
        "share",
        "up",
        "samples",
        "different word pairs, over all responses",
    ),
    ("samples/unique_share", "unique responses", "share", "up", "samples", ""),
    (
        "samples/ngram_entropy",
        "n-gram entropy",
        "share",
        "up",
        "samples",
        "of word pairs; 1: no pair comes twice",
    ),
    (
        "samples/score_std",
        "score spread of samples",
        "",
        "",
        "samples",
        "standard deviation over all samples",
    ),
    (
        "samples/groups_all_wrong",
        "groups all wrong",
        "share",
        "down",
        "samples",
        "all the same score, 0 or less",
    ),
    (
        "samples/groups_all_right",
        "groups all right",
        "share",
        "",
        "samples",
        "all at the scale's top",
    ),
    ("samples/score_min", "lowest score of samples", "", "", "samples", ""),
    ("samples/score_max", "highest score of samples", "", "", "samples", ""),
    ("samples/response_chars", "response length of samples", "characters", "", "data", "mean"),
    ("samples/count", "number of samples", "", "", "data", "as many as the log or the dump shows"),
    ("samples/read_share", "dump read", "share", "", "data", "how much of it the figures are of"),
)

_OTHERS: tuple[_Row, ...] = (
    ("loss/mean", "loss", "", "", "loss", ""),
    ("loss", "loss", "", "", "loss", "falls in SFT; in RL no sign of progress"),
    ("lr", "learning rate", "", "", "optimisation", ""),
    ("learning_rate", "learning rate", "", "", "optimisation", ""),
    ("optim/lr", "learning rate", "", "", "optimisation", ""),
    ("lr-pg_0", "learning rate", "", "", "optimisation", ""),
    ("probs_ratio", "probability ratio", "", "near", "optimisation", "new to old policy, target 1"),
    ("val/loss", "validation loss", "", "down", "validation", ""),
    ("train/mfu", "MFU", "share", "up", "throughput", "exactly 0: unknown model or GPU"),
    ("train/time(s)", "step time", "s", "down", "timing", ""),
    ("train/global_tokens", "tokens per step", "tokens", "", "data", ""),
    (
        "train/total_tokens(B)",
        "tokens so far",
        "10⁹ tokens",
        "",
        "data",
        "from 0 again after a resume",
    ),
    ("epoch", "epoch", "epochs", "", "data", ""),
    ("global_step", "step", "steps", "", "data", ""),
    ("elapsed_time", "elapsed time", "s", "", "timing", ""),
    ("rollout/reward_{mean,max,min}", "reward", "", "up", "reward", ""),
    ("reward_{mean,max,min}", "reward", "", "up", "reward", ""),
    ("reward/{mean,max,min}", "reward", "", "up", "reward", ""),
    ("rollout/reward_std", "reward spread", "", "", "reward", ""),
    ("reward/std", "reward spread", "", "", "reward", ""),
    ("reward_std", "reward spread", "", "", "reward", ""),
    (
        "group_reward_std",
        "reward spread in a group",
        "",
        "",
        "reward",
        "0: the group gives no signal",
    ),
    ("reward", "reward", "", "up", "reward", ""),
    ("rewards", "reward", "", "up", "reward", ""),
    ("rewards/{mean,max,min}", "reward", "", "up", "reward", ""),
    ("scores", "reward", "", "up", "reward", ""),
    ("scores/{mean,max,min}", "reward", "", "up", "reward", ""),
    ("reward/reward", "reward of a response", "", "up", "reward", "mean of the step's responses"),
    ("reward/tps", "tokens per second", "tokens/s", "up", "throughput", "of one response"),
    ("avg_reward", "reward", "", "up", "reward", ""),
    ("verl_average_reward", "reward", "", "up", "reward", ""),
    ("rollout/sample_count", "samples", "samples", "", "samples", ""),
    ("rollout/response_length_{mean,max,min}", "response length", "tokens", "", "length", ""),
    ("generation/length", "response length", "tokens", "", "length", ""),
    ("generation/log_prob", "log-probability", "nats/token", "", "engine", ""),
    ("{ppo,rollout}/kl_div", "policy KL", "nats/token", "near", "kl", "new against old policy"),
    ("kl_div", "policy KL", "nats/token", "near", "kl", "new against old policy"),
    ("kl/divergence", "reference KL", "nats/token", "near", "kl", ""),
    ("train/kl_div", "reference KL", "nats/token", "near", "kl", ""),
    ("kl", "reference KL", "nats/token", "near", "kl", "TRL, OpenRLHF: k3, never negative"),
    ("kl_loss", "reference KL in loss", "nats/token", "near", "kl", ""),
    ("kl_penalty", "reference KL in reward", "nats/token", "near", "kl", ""),
    ("ppo_kl", "policy KL", "nats/token", "near", "kl", "may be negative"),
    ("policy_kl_error", "policy KL", "nats/token", "near", "kl", ""),
    ("policy/loss", "policy loss", "", "", "loss", ""),
    ("value/loss", "value loss", "", "down", "loss", ""),
    ("policy_loss", "policy loss", "", "", "loss", ""),
    ("pg_loss", "policy loss", "", "", "loss", ""),
    ("value_loss", "value loss", "", "down", "loss", ""),
    ("critic_loss", "value loss", "", "down", "loss", ""),
    ("entropy", "entropy", "nats/token", "", "optimisation", ""),
    ("entropy_loss", "entropy", "nats/token", "", "optimisation", ""),
    ("approx_entropy", "entropy", "nats/token", "", "optimisation", ""),
    ("rollout/entropy", "entropy", "nats/token", "", "optimisation", ""),
    ("entropy/all/mean", "entropy", "nats/token", "", "optimisation", ""),
    (
        "clip_ratio",
        "clip fraction",
        "share",
        "",
        "optimisation",
        "of the policy update, not of response length",
    ),
    ("clip_ratio/region_mean", "clip fraction", "share", "", "optimisation", ""),
    ("pg_clipfrac", "clip fraction", "share", "", "optimisation", ""),
    ("grad_norm", "gradient norm", "", "", "optimisation", ""),
    ("optim/grad_norm", "gradient norm", "", "", "optimisation", ""),
    ("system/gpu_util", "GPU utilisation", "percent", "up", "system", ""),
    ("{system/,}gpu_utilization", "GPU utilisation", "percent", "up", "system", ""),
    ("gpu_util", "GPU utilisation", "percent", "up", "system", ""),
    (
        "{system/,}memory_util",
        "GPU memory activity",
        "percent",
        "",
        "system",
        "NVML: of the controller, not occupancy",
    ),
    ("throughput/samples_per_second", "samples per second", "samples/s", "up", "throughput", ""),
    ("verl_sample_generation_seconds", "generation time", "s", "down", "timing", ""),
    ("verl_training_steps_total", "step", "steps", "", "data", ""),
    ("verl_gpu_memory_used_bytes", "GPU memory used", "bytes", "", "memory", ""),
    ("ray_node_gpus_utilization", "GPU utilisation", "percent", "up", "system", ""),
    (
        "ray_node_gram_{used,available}",
        "GPU memory {}",
        "MiB",
        "",
        "memory",
        "MiB, although Ray describes it as bytes",
    ),
    ("DCGM_FI_DEV_GPU_UTIL", "GPU utilisation", "percent", "up", "system", ""),
    ("DCGM_FI_DEV_FB_USED", "GPU memory used", "MiB", "", "memory", ""),
    ("tools/call_frequency", "tool calls per completion", "", "", "samples", ""),
    ("tools/failure_frequency", "failed tool calls", "share", "down", "samples", "of all calls"),
    ("cispo_clip_ratio", "clip fraction, CISPO", "share", "", "optimisation", ""),
    ("entropy_coef", "entropy coefficient", "", "", "optimisation", ""),
    ("aux_loss", "auxiliary loss", "", "", "loss", "balances the load of experts"),
    ("vespo/phi_seq_mean", "sequence weight, VESPO", "", "", "optimisation", ""),
    (
        "debug/vllm_vs_local_logprob_diff_mean",
        "engine log-prob gap",
        "nats/token",
        "down",
        "engine",
        "open-instruct",
    ),
    (
        "debug/vllm_local_reverse_kl",
        "engine KL, reverse",
        "nats/token",
        "near",
        "engine",
        "open-instruct",
    ),
    (
        "kl_sample_train_v1",
        "engine KL",
        "nats/token",
        "near",
        "engine",
        "Tinker: sampler against trainer",
    ),
    ("js_divergence_error", "engine JS divergence", "nats/token", "down", "engine", "NeMo-RL"),
    (
        "tq_storage_utilization_ratio",
        "sample queue used",
        "share",
        "",
        "async",
        "TransferQueue: keys of its capacity",
    ),
    ("frac_reward_zero_std", "share of groups without variance", "share", "down", "samples", ""),
    ("dynamic_filtering_pass_rate", "groups kept by the filter", "share", "up", "samples", ""),
    (
        "baseline_reward/pct_{0,1,mixed}",
        "groups solved {}",
        "share",
        "",
        "samples",
        "only mixed groups give signal",
    ),
    ("completion_length", "response length", "tokens", "", "length", ""),
    ("completions/{mean,max,min}_length", "response length", "tokens", "", "length", ""),
    (
        "completions/{mean,max,min}_terminated_length",
        "response length, terminated",
        "tokens",
        "",
        "length",
        "",
    ),
    ("completions/clipped_ratio", "truncated share", "share", "down", "length", ""),
    ("response_clip_ratio", "truncated share", "share", "down", "length", ""),
    ("rollout/truncated_ratio", "truncated share", "share", "down", "length", ""),
    ("response_length", "response length", "tokens", "", "length", ""),
    ("rollout/response_lengths", "response length", "tokens", "", "length", ""),
    ("rollout/response_len/{mean,max,min}", "response length", "tokens", "", "length", ""),
    ("mean_gen_tokens_per_sample", "response length", "tokens", "", "length", ""),
    ("rollout/raw_reward", "reward", "", "up", "reward", ""),
    ("rollout/rewards", "shaped reward", "", "up", "reward", ""),
    (
        "sampling/sampling_logp_difference/{mean,max}",
        "engine log-prob gap",
        "nats/token",
        "down",
        "engine",
        "",
    ),
    ("logprobs_diff", "engine log-prob gap", "nats/token", "down", "engine", ""),
    ("train_rollout_logprob_abs_diff", "engine log-prob gap", "nats/token", "down", "engine", ""),
    ("mismatch_kl/all/mean", "engine KL", "nats/token", "near", "engine", ""),
    ("gen_kl_error", "engine KL", "nats/token", "near", "engine", ""),
    (
        "token_mult_prob_error",
        "engine probability error",
        "",
        "near",
        "engine",
        "target 1; above 1.05 NeMo-RL warns",
    ),
    ("ois", "importance weight", "", "near", "engine", "slime: new to old policy, target 1"),
    ("step_time", "step time", "s", "down", "timing", ""),
    ("timing/step_total", "step time", "s", "down", "timing", ""),
    ("perf/step_time", "step time", "s", "down", "timing", ""),
    ("timing/train/total_step_time", "step time", "s", "down", "timing", ""),
    ("time/step", "step time", "s", "down", "timing", ""),
    ("perf/tokens_per_gpu_per_sec", "throughput per GPU", "tokens/s/GPU", "up", "throughput", ""),
    ("perf/throughput_per_gpu", "throughput per GPU", "tokens/s/GPU", "up", "throughput", ""),
    ("perf/actor_train_tflops", "training speed", "TFLOPS", "up", "throughput", ""),
    ("perf/mfu", "MFU", "percent", "up", "throughput", "prime-rl: 0..100"),
    ("perf/peak_memory", "peak GPU memory", "GiB", "", "memory", "it only rises"),
    ("num_tokens", "tokens so far", "tokens", "", "data", "TRL: from the start, not per step"),
    ("total_flos", "operations so far", "FLOP", "", "data", ""),
    ("runtime", "run time", "s", "", "timing", ""),
    ("{samples,steps}_per_second", "{} per second", "", "up", "throughput", ""),
)

# Tried in order on verl's present name where no table has it. `{0}` in a label is the pattern's
# last group.
_FAMILIES: tuple[_Row, ...] = (
    (r"samples/(.+)", "{0} (samples)", "", "up", "samples", "mean of this field of the samples"),
    (
        r"val-core/(.+/acc/.+)",
        "{0}",
        "",
        "up",
        "validation",
        "failed sessions count as 0 from verl v0.9.1 (V1) on",
    ),
    (r"val-core/(.+)", "{0}", "", "up", "validation", ""),
    (
        r"val-aux/(.+/std@\d+|.+@\d+/std)",
        "{0}",
        "",
        "",
        "validation",
        "over bootstrap samples where more than one",
    ),
    (
        r"val-aux/(.+/acc_success_only/.+)",
        "{0}",
        "",
        "up",
        "validation",
        "without failed sessions, as acc was before verl v0.9.1",
    ),
    (r"val-aux/(.+)", "{0}", "", "", "validation", ""),
    (
        r"timing_s/agent_loop/.*(num_preempted.*)",
        "{0}",
        "",
        "down",
        "engine",
        "a count, no seconds",
    ),
    (r"(?:timing_s/)+(.+)", "{0} time", "s", "down", "timing", ""),
    (r"timing_per_token_ms/(.+)", "{0} per token", "ms/token", "down", "timing", ""),
    (r"(?:timing/train|timing|time)/(.+)", "{0} time", "s", "down", "timing", ""),
    (r"performance/(.*tokens_per_sec_per_gpu)", "{0}", "tokens/s/GPU", "up", "throughput", ""),
    (r"performance/(.+)", "{0}", "", "", "throughput", ""),
    (r"perf/(.*memory.*_gb)", "{0}", "GiB", "", "memory", ""),
    (r"perf/mfu/(.+)", "MFU {0}", "share", "up", "throughput", "exactly 0: unknown model or GPU"),
    (r"perf/(.*_time)", "{0}", "s", "down", "timing", ""),
    (r"perf/(.*_ratio)", "{0}", "share", "", "throughput", ""),
    (r"perf/(.+)", "{0}", "", "", "throughput", ""),
    (r"global_seqlen/(.+)", "{0}", "tokens", "", "data", ""),
    (
        r"rollout_corr/(rollout_is_(?:seq_)?(?:ratio_)?fraction.*|.*oob_ratio)",
        "{0}",
        "share",
        "down",
        "engine",
        "",
    ),
    (r"rollout_corr/(rollout_rs_.*fraction.*)", "{0}", "share", "", "engine", "rejection sampling"),
    (r"rollout_corr/(.+)", "{0}", "", "", "engine", ""),
    (r"rollout/moe/(.+)", "expert load {0}", "", "near", "engine", ""),
    (
        r"(?:training|validation)/off_policy/(evicted_samples_staleness/.+)",
        "{0}",
        "versions",
        "down",
        "async",
        "",
    ),
    (
        r"validation/(?:off_policy|filter_groups|rollout_failure)/(.+)",
        "{0}",
        "",
        "",
        "async",
        "of the replay buffer",
    ),
    (r"training/reward/(.+)", "reward part {0}", "", "up", "reward", ""),
    (r"reward_extra/(.+)/std", "reward part {0} spread", "", "", "reward", ""),
    (r"reward_extra/(.+?)(?:/mean)?", "reward part {0}", "", "up", "reward", ""),
    (r"critic/rewards/(.+)", "reward part {0}", "", "up", "reward", ""),
    (
        r"tq_partition_(production)_progress.*",
        "sample queue, {0}",
        "share",
        "",
        "async",
        "low: the trainer waits for rollouts",
    ),
    (
        r"tq_partition_(consumption)_progress.*",
        "sample queue, {0}",
        "share",
        "",
        "async",
        "low: rollouts wait for the trainer",
    ),
    (r"tq_(.+)", "sample queue: {0}", "", "", "async", "TransferQueue"),
    (r"training/off_policy/(trajectory_.+)", "{0}", "versions", "", "async", ""),
    (r"training/off_policy/(.+)", "{0}", "", "down", "async", "present only where above 0"),
    (
        r"training/(filter_groups|rollout_failure)/(.+)",
        "{0}",
        "samples",
        "",
        "samples",
        "present only where above 0",
    ),
    (r"training/(.+)", "{0}", "", "", "other", ""),
    (r"fully_async/processing_time/(.+)", "sample time {0}", "s", "down", "async", ""),
    (
        r"(?:fully_async|separate_async|dynamic_resource)/(.*_ratio|.*utilization)",
        "{0}",
        "share",
        "",
        "async",
        "",
    ),
    (
        r"(?:fully_async|separate_async|dynamic_resource)/(.*_(?:time|seconds|s))",
        "{0}",
        "s",
        "",
        "async",
        "",
    ),
    (r"(?:fully_async|separate_async|dynamic_resource)/(.+)", "{0}", "", "", "async", ""),
    (r"checkpoint_engine/(payload_mbytes)", "{0}", "MB", "", "async", "delta weight sync"),
    (r"checkpoint_engine/(.+)", "{0}", "", "", "async", "delta weight sync"),
    (r"off_policy/dropped", "rollouts dropped", "", "down", "async", "too stale"),
    (r"off_policy/(.+)", "staleness {0}", "versions", "down", "async", ""),
    (r"variance_proxy/(.+)", "{0}", "", "", "optimisation", ""),
    (r"gdpo/(.+)", "reward part {0}", "", "up", "reward", ""),
    (r"rewards/(.+)[/_]std", "reward part {0} spread", "", "", "reward", ""),
    (r"rewards/(.+?)(?:/mean)?", "reward part {0}", "", "up", "reward", ""),
    (r"val/(.+)", "validation {0}", "", "up", "validation", ""),
    (r"actor/mtp_losses/(.+)", "MTP loss {0}", "", "down", "loss", ""),
    (
        r"(?:actor/)?distillation/(overlap_ratio)",
        "distillation {0}",
        "share",
        "",
        "loss",
        "of the top tokens",
    ),
    (
        r"(?:actor/)?distillation/(.+_mass(?:_min|_max)?)",
        "distillation {0}",
        "share",
        "",
        "loss",
        "of the top tokens",
    ),
    (
        r"(?:actor/)?distillation/(.+)",
        "distillation {0}",
        "",
        "",
        "loss",
        "no unit or good direction is known",
    ),
    (r"reward/(.+)", "reward: {0}", "", "", "reward", ""),
    (r"progress/(.*tokens)", "{0}", "tokens", "", "data", ""),
    (r"progress/(.+)", "{0}", "", "", "data", ""),
    (r"profiling/(?:Time taken: )?(.+)", "{0}", "s", "down", "timing", ""),
    (r"lr-pg_(\d+)", "learning rate, group {0}", "", "", "optimisation", ""),
    (
        r"probs_ratio_(.+)",
        "probability ratio {0}",
        "",
        "near",
        "optimisation",
        "new to old policy, target 1",
    ),
    (r"clip_ratio/(.+)", "clip fraction {0}", "share", "", "optimisation", ""),
    (r"sampling/(importance_sampling_ratio/.+)", "{0}", "", "near", "engine", "target 1"),
    (r"rollout/zero_std/(.+)", "groups without variance, {0}", "groups", "down", "samples", ""),
    (r"rollout/(.*log_probs)", "{0}", "nats/token", "", "engine", ""),
    (
        r"(?:eval|validation)/(.+)[-/]truncated_ratio",
        "validation truncated share {0}",
        "share",
        "down",
        "validation",
        "",
    ),
    (r"train/agg/.+/reward/(mean|max|min)", "reward {0}", "", "up", "reward", ""),
    (r"(.*_length[/_](?:mean|max|min))", "{0}", "tokens", "", "length", ""),
    # W&B's system figures (docs.wandb.ai/models/ref/python/experiments/system-metrics); `/l:` names
    # the node where a run has several.
    (
        r"(?:system|cluster)/gpu\.(\d+)\.gpu(?:/l:.+)?",
        "GPU {0} utilisation",
        "percent",
        "up",
        "system",
        "",
    ),
    (
        r"(?:system|cluster)/gpu\.(\d+)\.memoryAllocated(?:/l:.+)?",
        "GPU {0} memory",
        "percent",
        "",
        "system",
        "occupancy",
    ),
    (
        r"(?:system|cluster)/gpu\.(\d+)\.temp(?:/l:.+)?",
        "GPU {0} temperature",
        "°C",
        "",
        "system",
        "",
    ),
    (
        r"(?:system|cluster)/gpu\.(\d+)\.powerWatts(?:/l:.+)?",
        "GPU {0} power",
        "W",
        "",
        "system",
        "",
    ),
    (
        r"(?:system|cluster)/gpu\.(\d+)\.memoryAllocatedBytes(?:/l:.+)?",
        "GPU {0} memory",
        "bytes",
        "",
        "system",
        "",
    ),
    (
        r"cluster/gpu\.(\d+)\.xid(?:/l:.+)?",
        "GPU {0} last Xid",
        "",
        "",
        "system",
        "NVIDIA's number of the last error",
    ),
    (r"cluster/cpu(?:/l:.+)?", "host CPU", "percent", "", "system", "of all cores"),
    (
        r"cluster/memory_percent(?:/l:.+)?",
        "host memory",
        "percent",
        "",
        "system",
        "of all processes",
    ),
    (r"system/cpu(?:/l:.+)?", "CPU of the process", "percent", "", "system", "of all cores"),
    (
        r"system/memory_percent(?:/l:.+)?",
        "host memory",
        "percent",
        "",
        "system",
        "of all processes",
    ),
    (
        r"system/proc\.memory\.availableMB(?:/l:.+)?",
        "host memory available",
        "MB",
        "",
        "system",
        "",
    ),
    (r"system/proc\.memory\.rssMB(?:/l:.+)?", "process memory", "MB", "", "system", "resident"),
    (
        r"system/proc\.memory\.percent(?:/l:.+)?",
        "process memory share",
        "percent",
        "",
        "system",
        "of the host's",
    ),
    (r"system/proc\.cpu\.threads(?:/l:.+)?", "process threads", "", "", "system", ""),
    (r"system/disk\.(.+)\.usagePercent(?:/l:.+)?", "disk {0} used", "percent", "", "system", ""),
    (r"system/disk\.(.+)\.usageGB(?:/l:.+)?", "disk {0} used", "GB", "", "system", ""),
    (r"system/disk\.in(?:/l:.+)?", "disk read", "MB", "", "system", "since the run began"),
    (r"system/disk\.out(?:/l:.+)?", "disk written", "MB", "", "system", "since the run began"),
    (
        r"system/disk\.(.+)\.in(?:/l:.+)?",
        "disk {0} read",
        "MB",
        "",
        "system",
        "since the run began",
    ),
    (
        r"system/disk\.(.+)\.out(?:/l:.+)?",
        "disk {0} written",
        "MB",
        "",
        "system",
        "since the run began",
    ),
    (
        r"system/network\.sent(?:/l:.+)?",
        "network sent",
        "bytes",
        "",
        "system",
        "since the run began",
    ),
    (
        r"system/network\.recv(?:/l:.+)?",
        "network received",
        "bytes",
        "",
        "system",
        "since the run began",
    ),
    (r"(?:vllm|sglang):(.+_tokens)_per_second", "engine {0}", "tokens/s", "up", "engine", ""),
    (r"(?:vllm|sglang):(.+)_per_second", "engine {0}", "1/s", "", "engine", ""),
    (r"(?:vllm|sglang):(.+)_seconds", "engine {0}", "s", "down", "engine", ""),
    (
        r"(?:vllm:(?:kv_|gpu_)?(cache_usage)_perc|sglang:(token_usage|cache_hit_rate))",
        *("engine {0}", "share", "", "engine", "0..1, whatever its name says"),
    ),
    (r"vllm:(.+_total)", "vLLM {0}", "", "", "engine", "a running total"),
    (r"(?:vllm|sglang):(.+)", "engine {0}", "", "", "engine", ""),
)

_RENAMED: dict[str, str] = {
    "mfu/actor": "perf/mfu/actor",
    "mfu/critic": "perf/mfu/critic",
    "critic/kl": "actor/reward_kl_penalty",
    "critic/kl_coeff": "actor/reward_kl_penalty_coeff",
    "num_turns/mean": "training/num_turns/mean",
    "num_turns/max": "training/num_turns/max",
    "num_turns/min": "training/num_turns/min",
    "perf/max_memory_allocated_gb": "actor/perf/max_memory_allocated_gb",
    "perf/max_memory_reserved_gb": "actor/perf/max_memory_reserved_gb",
    "perf/cpu_memory_used_gb": "actor/perf/cpu_memory_used_gb",
    "trainer/idle_ratio": "fully_async/trainer/idle_ratio",
}
"""Old key -> verl's present key. `actor/entropy_loss` is not here: verl logs it again, beside
`actor/entropy`.
"""

_TWICE = "num_turns/"
"""Keys that verl's V1 trainer logs again as `training/num_turns/…` (`v1/trainer_base.py`)."""

_RENAMED_FAMILIES: tuple[tuple[re.Pattern[str], str], ...] = (
    # OpenRLHF and NeMo-RL write to `timing/` too; theirs are no old names of verl's.
    (re.compile(r"timing/(?!train/|generation$|step_total$)(.+)"), r"timing_s/\1"),
    (re.compile(r"(?:val/)?test_score/(.+)"), r"val-core/\1/reward/mean@1"),
    (re.compile(r"mismatch/(?:mismatch_)?(.+)"), r"rollout_corr/\1"),
    (re.compile(r"rollouter/(.+)"), r"fully_async/rollouter/\1"),
)

_MONITORED = re.compile(r"rl_insight_monitor_(.+)")
"""What verl's rl_insight puts before every key."""

# Exporters: CSV writes `/` as `_`, so does verl's rl_insight logger; MLflow writes `@` as `_at_`,
# `(` and `)` as `_`.
_FLAT_FAMILIES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(
            r"(timing_s|timing_per_token_ms|global_seqlen|rollout_corr|val_test_score|test_score)_(.+)"
        ),
        r"\1/\2",
    ),
    (
        re.compile(
            r"(timing)_(gen|ref|values|adv|old_log_prob|update_actor|update_critic|testing|step)"
        ),
        r"\1/\2",
    ),
    (re.compile(r"(mismatch)_((?:mismatch|rollout)_.+)"), r"\1/\2"),
    (re.compile(r"val[-_]aux_num_turns_(mean|max|min)"), r"val-aux/num_turns/\1"),
    (re.compile(r"val[-_](core|aux)_(.+)_([^_]+)_((?:mean|std)@\d+)"), r"val-\1/\2/\3/\4"),
    (
        re.compile(r"val[-_](core|aux)_(.+)_([^_]+)_((?:maj|best|worst)@\d+)_(mean|std)"),
        r"val-\1/\2/\3/\4/\5",
    ),
)
_AT = re.compile(r"(?<![^/_])(mean|std|maj|best|worst)_at_(?=\d)")
_SCALE = re.compile(r"(?<=lr)[(_](1e-\d{1,3})[)_]$")
_SUFFIXED = re.compile(r"(.*[^/_])[/_](mean|avg|max|min)")
_PREFIXED = re.compile(r"((?:.*/)?(?:completions|moe)/)(mean|avg|max|min)_(.+)")
_RESAMPLED = re.compile(r"(?:maj|best|worst)@\d+[/_](?:mean|std)$")
_QUANTILE = re.compile(r"(.+)/(p05|p25|p50|p75|p95)")
_QUANTILES = {"p50": "median"}
_CHOICE = re.compile(r"\{([^{}]+)\}")
_VALIDATION = re.compile(r"(?:eval|validation)[/_](.+)")
_VALIDATION_FIGURE = re.compile(r"val_(samples/.+)")
_PREFIX = re.compile(r"(?:train[/_]|actor/(?=rollout_corr/))(.+)")
# No real key comes near; longer text is foreign and not worth a pattern's time.
_LONGEST_KEY = 400


def _expand(row: _Row) -> list[tuple[str, Metric]]:
    """Return the keys that a row of a table stands for."""
    key, label, unit, direction, group, note = row
    choice = _CHOICE.search(key)
    if choice is None:
        return [(key, Metric(key, label, unit, direction, group, note))]
    expanded = []
    for part in choice[1].split(","):
        name = key[: choice.start()] + part + key[choice.end() :]
        words = label.replace("{}", part.replace("_", " ")) if "{}" in label else label
        if part in ("max", "min", "std"):
            words = f"{words} {part}"
        expanded.append((name, Metric(name, words, unit, direction, group, note)))
    return expanded


_METRICS: dict[str, Metric] = dict(
    pair for row in (*_OTHERS, *_SAMPLES, *_VERL) for pair in _expand(row)
)
_PLACES = {row[0]: place for place, row in enumerate(_SAMPLES)}
_PATTERNS = tuple((re.compile(row[0]), Metric(*row)) for row in _FAMILIES)
_SCALED_KEYS = (
    "actor/lr(1e-4)",
    "critic/lr(1e-4)",
    "train/lr(1e-3)",
    "train/time(s)",
    "train/total_tokens(B)",
)
_FLAT = {key.replace("/", "_"): key for row in _VERL for key, _ in _expand(row)}
_FLAT |= {key.replace("/", "_"): key for key in (*_RENAMED, *_SCALED_KEYS)}


@cache
def slashed(key: str) -> str:
    """Undo an exporter's spelling: `critic_score_mean` -> `critic/score/mean`, `mean_at_1` ->
    `mean@1`.

    Only names that verl is known to log are changed; all others are returned as they are.
    """
    if len(key) > _LONGEST_KEY:
        return key
    key = _AT.sub(r"\1@", _MONITORED.sub(r"\1", key))
    if "/" in key:
        return key
    if key in _FLAT:
        return _FLAT[key]
    for pattern, form in _FLAT_FAMILIES:
        if match := pattern.fullmatch(key):
            return match.expand(form).replace("val_test_score/", "val/test_score/")
    return key


@cache
def modern(key: str) -> str:
    """Return verl's present name of a key, or the key itself: for describing and matching, never
    for export.

    verl renamed keys between v0.1 and v0.9 (`timing/gen` -> `timing_s/gen`, `critic/kl` ->
    `actor/reward_kl_penalty` …). Where the old key's values were scaled too, `scale` has the
    factor.
    """
    if len(key) > _LONGEST_KEY:
        return key
    name = slashed(_SCALE.sub("", key))
    if name in _RENAMED:
        return _RENAMED[name]
    for pattern, form in _RENAMED_FAMILIES:
        if match := pattern.fullmatch(name):
            return match.expand(form)
    return name


def shown(keys: Iterable[str]) -> tuple[str, ...]:
    """Return keys without those whose figures are there under verl's present name: V1 logs the
    turns under both.
    """
    known = tuple(keys)
    there = {slashed(key) for key in known}
    return tuple(
        key for key in known if not (slashed(key).startswith(_TWICE) and modern(key) in there)
    )


def scale(key: str) -> float:
    """Return what a logged value is to be multiplied with to mean what `modern(key)` means; mostly
    1.

    `actor/lr(1e-4)` (verl v0.1) holds the learning rate times 10⁴, `train/lr(1e-3)` (verl's SFT)
    times 10³.
    """
    match = _SCALE.search(key)
    return float(match[1]) if match else 1.0


@cache
def family(key: str) -> tuple[str, Part] | None:
    """Return the family of a statistic and which one it is, so that one chart can show mean, max
    and min.

    `critic/score/max` -> (`critic/score`, `max`), `reward_mean` -> (`reward`, `mean`),
    `completions/min_length` -> (`completions/length`, `min`); an average counts as a mean. The stem
    keeps the log's own spelling.

    Returns:
        Stem and part, or None for a key that stands alone.
    """
    if len(key) > _LONGEST_KEY or _RESAMPLED.search(slashed(key)):
        return None
    if match := _SUFFIXED.fullmatch(key):
        return match[1], _part(match[2])
    if match := _PREFIXED.fullmatch(key):
        return match[1] + match[3], _part(match[2])
    return None


def _part(word: str) -> Part:
    return "max" if word == "max" else "min" if word == "min" else "mean"


def place(key: str) -> int:
    """Return where a figure of samples stands among those of its group, what tells most first; 0 of
    all others.
    """
    return _PLACES.get(key.removeprefix("val_"), 0)


@cache
def describe(key: str) -> Metric:
    """Describe any key: by the tables, else by its family, else as an unknown metric under its own
    name.

    Units are those of the logged value: a scaled key such as `actor/lr(1e-4)` has the unit `1e-4`.
    """
    if len(key) > _LONGEST_KEY:
        return Metric(key, key)
    if match := _QUANTILE.fullmatch(key):
        whole = describe(match[1])
        return replace(whole, key=key, label=f"{whole.label}, {_QUANTILES.get(match[2], match[2])}")
    found = _known(modern(key)) or Metric(key, key)
    scaled = _SCALE.search(key)
    return replace(found, key=key, unit=scaled[1]) if scaled else replace(found, key=key)


def _known(name: str) -> Metric | None:
    if name in _METRICS:
        return _METRICS[name]
    for pattern, metric in _PATTERNS:
        if match := pattern.fullmatch(name):
            return replace(
                metric, label=metric.label.replace("{0}", _words(match[match.lastindex or 0]))
            )
    if match := _VALIDATION_FIGURE.fullmatch(name):
        figure = describe(match[1])
        group: Group = "validation" if figure.group == "reward" else figure.group
        return replace(figure, label=f"validation {figure.label}", group=group)
    if match := _VALIDATION.fullmatch(name):
        known = _known(match[1])
        if known is None:
            return Metric(
                name, f"validation {_words(match[1])}", direction="up", group="validation"
            )
        return replace(known, label=f"validation {known.label}", group="validation")
    # TRL, OpenRLHF and NeMo-RL put `train/` before each name on W&B, verl's bypass mode `actor/`
    # before some.
    if match := _PREFIX.fullmatch(name):
        return _known(modern(match[1]))
    return None


def _words(name: str) -> str:
    """Turn a key's tail into words, leaving the names of data sets as they are."""
    return (
        name if "@" in name else " ".join(name.replace("_", " ").replace("/", " ").split()) or name
    )
