"""Recognise whose names a log uses: verl's own, those of its tutorials, or another framework's."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Literal

from verl_tui.distributions import one_each
from verl_tui.metrics import slashed
from verl_tui.patterns import NamePattern
from verl_tui.trainers import writers

if TYPE_CHECKING:
    from collections.abc import Collection

Dialect = Literal["tutorial", "verl", "other"]

# Names that several write, so that they speak only where nothing clearer does.
_SHARED: dict[Dialect, NamePattern] = {
    "verl": NamePattern(
        r"perf/throughput|training/(?:global_step|epoch)|(?:actor|critic)/(?:lr|grad_norm)"
        r"|mismatch/(?:mismatch|rollout)_.+"
    ),
    "tutorial": NamePattern(
        r"policy_loss|value_loss|entropy|clip_ratio|kl|grad_norm|train/reward"
        r"|(?:prompt|response)_length_\w+"
        r"|gpu_util|gpu_utilization|memory_util"
    ),
    "other": NamePattern(
        r"loss|reward|lr|learning_rate|epoch|num_tokens|entropy_loss"
        r"|train/(?:grad_norm|epoch|lr|entropy)"
        r"|(?:actor|critic)_(?:lr|grad_norm)"
    ),
}
_CLEAR: dict[Dialect, NamePattern] = {
    "verl": NamePattern(
        r"(?:actor|critic)/.+|(?:timing_s|timing_per_token_ms|global_seqlen|rollout_corr"
        r"|fully_async|separate_async)/.+"
        r"|val-(?:core|aux)/.+|(?:val/)?test_score/.+|(?:perf/)?mfu/(?:actor|critic|actor_infer)"
        r"|perf/(?:total_num_tokens|time_per_step|(?:max|cpu)_memory_.+)"
        r"|training/(?:rollout_(?:probs|actor)_.+"
        r"|(?:off_policy|num_turns|filter_groups|rollout_failure)/.+)"
        r"|(?:prompt_length|response_length|response_length_non_aborted)/.+|response/aborted_ratio"
        r"|timing/(?:gen|ref|values|adv|old_log_prob|update_actor|update_critic|testing"
        r"|save_checkpoint)"
        r"|train/(?:lr\(1e-\d\)|time\(s\)|total_tokens\(B\)|global_tokens|mfu)"
    ),
    "tutorial": NamePattern(
        r"rollout/(?:reward_(?:mean|std|max|min)|kl_div|sample_count|response_length_\w+)"
        r"|ppo/(?:(?:policy|value|entropy|total)_loss|entropy|clip_ratio|grad_norm|kl_\w+)"
        r"|system/(?:gpu|memory)_\w+|sample/\w+|reward/(?:mean|std|reward|tps)"
        r"|avg_reward|verl_\w+|reward_mean|kl_div|train/kl_div|kl/divergence|policy/loss|value/loss"
        r"|generation/(?:length|log_prob)|throughput/samples_per_second"
    ),
    "other": NamePattern(
        r"(?:train/)?(?:rewards/.+|completions?[/_].+|sampling/.+|clip_ratio/.+"
        r"|frac_reward_zero_std|group_reward_std"
        r"|response_length|response_clip_ratio|ppo_kl|critic_loss|logprobs_diff|gen_kl_error"
        r"|token_mult_prob_error|vllm_kl|ppo_clip_ratio"
        r"|policy_kl_error|approx_entropy|mean_gen_tokens_per_sample|baseline_reward/.+|kl_penalty)"
        r"|train/(?:kl|kl_loss|reward_std|learning_rate|policy_loss|pg_\w+|entropy_loss|lr-pg_\d+"
        r"|actor_\w+|ois|agg/.+"
        r"|train_rollout_\w+|approx_kl)"
        r"|rollout/(?:raw_reward|rewards|response_lengths|response_len/.+|truncated_ratio"
        r"|zero_std/.+|entropy|ep_\w+)"
        r"|perf/(?:step_time|tokens_per_gpu_per_sec|actor_train_tflops|throughput_per_gpu|mfu"
        r"|peak_memory)"
        r"|(?:entropy|mismatch_kl)/all/.+|loss/mean"
        r"|(?:optim|time|progress|off_policy|performance|(?:train/)?objective)/.+"
        r"|timing/(?:train/.+|generation|step_total)|ppo/\w+/.+|ppo/(?:mean|std)_\w+"
    ),
}


def dialect(keys: Collection[str]) -> Dialect:
    """Say whose names a log uses: verl's own, those of its tutorials, or another framework's.

    The own metrics of a trainer that has a file of its own decide, then one name that only verl
    writes. Otherwise clear names are counted, then names that
    several share; a tie is `other`, since the tutorials' thresholds must not judge what they were
    not written for.
    """
    return "other" if writers(keys) else _by_names(keys)


def _by_names(keys: Collection[str]) -> Dialect:
    count = Counter(evidence for key in one_each(keys) for evidence in _evidence(key))
    if count["verl", True]:
        return "verl"
    tutorial = count["tutorial", True]
    other = count["other", True]
    if tutorial or other:
        return "tutorial" if tutorial > other else "other"
    verl, tutorial, other = (
        count[name, False] for name in ("verl", "tutorial", "other")
    )
    if tutorial > max(verl, other):
        return "tutorial"
    if verl > max(tutorial, other):
        return "verl"
    return "other"


@cache
def _evidence(key: str) -> tuple[tuple[Dialect, bool], ...]:
    """Return whose name a key is, each with whether it is theirs alone."""
    shared: tuple[tuple[Dialect, bool], ...] = tuple(
        (name, False) for name, form in _SHARED.items() if form.fullmatch(key)
    )
    if shared:
        return shared
    name = slashed(key)
    return tuple(
        (whose, True) for whose, form in _CLEAR.items() if form.fullmatch(name)
    )
