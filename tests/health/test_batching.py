"""The verdict depends on the log, never on how it was read."""

from __future__ import annotations

import random
from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st
from planted import batch, judge, rows
from property_examples import examples

from verl_tui.health.guide_settings import load_guide
from verl_tui.health.judge import Judge
from verl_tui.runs.run import Run

COUNT = 160


def _columns(seed: int, names: list[str], count: int = COUNT) -> dict[str, list[float]]:
    """Return columns that wander, spike, stand still and turn NaN, so that conditions begin and
    end.
    """
    chance = random.Random(seed)
    columns = {}
    for name in names:
        level, values = chance.choice([0.05, 0.2, 1.0, 3.0]), []
        for _ in range(count):
            level *= chance.choice([0.9, 1.0, 1.0, 1.1])
            odd = chance.random()
            values.append(
                float("nan")
                if odd < 0.01
                else level * 30
                if odd < 0.02
                else 0.0
                if odd < 0.04
                else level
            )
        columns[name] = values
    return columns


TUTORIAL_KEYS = """
rollout/reward_mean rollout/reward_std ppo/kl_div kl/divergence ppo/policy_loss ppo/grad_norm
ppo/clip_ratio rollout/response_length_mean system/gpu_util ppo/entropy samples/repetition
""".split()  # noqa: SIM905 - to be read as text
VERL_KEYS = """
critic/score/mean actor/ppo_kl actor/kl_loss actor/pg_loss actor/grad_norm actor/pg_clipfrac
critic/advantages/max critic/advantages/min rollout_corr/kl rollout_corr/rollout_is_mean
response_length/clip_ratio response/aborted_ratio critic/vf_explained_var timing_s/step timing_s/gen
actor/entropy response_length/mean samples/acc samples/format samples/dead_groups samples/repetition
samples/distinct_2 val-core/x/acc/mean@1 training/rollout_probs_diff_mean
""".split()  # noqa: SIM905


@settings(max_examples=examples(1 / 4))
@given(
    seed=st.integers(0, 10_000),
    cuts=st.sets(st.integers(1, COUNT - 1), max_size=12),
    verl=st.booleans(),
    rests=st.booleans(),
)
def test_any_split_gives_the_same_verdict(seed, cuts, verl, rests):
    columns = _columns(seed, VERL_KEYS if verl else TUTORIAL_KEYS)
    run = Run("r")
    growing = Judge(load_guide(), run)
    edges = [0, *sorted(cuts), COUNT]
    for start, end in pairwise(edges):
        part = {key: values[start:end] for key, values in columns.items()}
        run.apply(batch(rows(part, range(start + 1, end + 1), start)), now=0.0)
        verdict = growing.verdict(1.0)
        if rests:
            growing.forget_figures()
            assert growing.verdict(1.0) == verdict
    assert verdict == judge(run)


@settings(max_examples=examples(1 / 4))
@example(seed=96, again=32, final=0.0)  # a reward that was no number for a moment
@given(
    seed=st.integers(0, 10_000), again=st.integers(0, COUNT - 1), final=st.floats(0, 10)
)
def test_replaced_values_count_and_old_ones_do_not(seed, again, final):
    columns = _columns(seed, TUTORIAL_KEYS)
    run = Run("r")
    growing = Judge(load_guide(), run)
    run.apply(batch(rows(columns)), now=0.0)
    growing.verdict(1.0)
    changed = {key: [final] for key in columns}
    run.apply(batch(rows(changed, [again + 1], COUNT)), now=0.0)
    fresh = Run("r")
    fresh.apply(
        batch(
            rows(
                {
                    key: [*values[:again], final, *values[again + 1 :]]
                    for key, values in columns.items()
                }
            )
        ),
        now=0.0,
    )
    assert growing.verdict(1.0) == judge(run) == judge(fresh)
