"""Comparisons of runs: final values, seeds, differences, correlations, and what cannot be said."""

from __future__ import annotations

import json
from math import inf, nan
from typing import TYPE_CHECKING, Any

import pytest
from compared_runs import (
    BATCH,
    LENGTH,
    LR,
    MODEL,
    SEED,
    VALIDATION,
    comparison,
    noise,
    recipe,
    run_of,
)
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.comparison.compare import measured_differently
from verl_tui.comparison.differences import SEEDS, WITHIN_RUN
from verl_tui.comparison.statistics import deviation
from verl_tui.comparison.written import as_csv, as_data, as_markdown, as_text
from verl_tui.given_files import UsageError
from verl_tui.means import mean
from verl_tui.runs.run_id import all_meant, find_run

if TYPE_CHECKING:
    from verl_tui.comparison.compare import Comparison
    from verl_tui.comparison.differences import Difference


def of(found: Comparison, figure: str, group: str) -> Difference:
    return next(
        one for one in found.differences if (one.figure, one.group) == (figure, group)
    )


def written(found: Comparison) -> str:
    return " | ".join(found.notes)


# -- figures ---------------------------------------------------------------------------------------


def test_the_final_reward_is_the_mean_of_the_last_tenth_of_the_median_run():
    rewards = [n / 400 for n in range(400)]
    found = comparison(
        run_of("long", rewards), run_of("short", rewards[:200]), run_of("one", [1.0])
    )
    assert found.runs[0].count == 20
    final = found.runs[0].figures["final_reward"]
    assert final.value == pytest.approx(mean(rewards[-20:]))
    assert final.sd == pytest.approx(deviation(rewards[-20:]))
    assert final.n == 20
    assert found.runs[2].figures["final_reward"].n == 1


def test_a_training_without_a_reward_goes_by_its_loss_of_which_less_is_better():
    one, two = (
        run_of(name, noise(centre, 1, 400), key="train/loss")
        for name, centre in (("a", 2.0), ("b", 1.5))
    )
    found = comparison(one, two)
    assert found.runs[0].count == 40
    assert of(found, "final_loss", "b").verdict == "better"
    assert "lowest final loss: b" in as_text(found)
    dpo = run_of("dpo", noise(0.5, 1), more={"rewards/margins": 1.0}, key="loss")
    sft = run_of("sft", noise(2.0, 1), more={"val/loss": 1.0}, key="train/loss")
    apart = comparison(dpo, sft)
    assert "losses are of different algorithms: DPO, SFT" in written(apart)
    beside = comparison(run_of("a", [0.5] * 9, more={"loss": 1.0}))
    assert beside.runs[0].figures["final_loss"].value is None


# -- seeds -----------------------------------------------------------------------------------------


def test_runs_that_differ_only_by_what_a_seed_changes_are_together():
    runs = []
    for n in (1, 2, 3):
        other = {
            "trainer.experiment_name": f"x{n}", "trainer.default_local_dir": f"/ckpt/x{n}",
            "trainer.rollout_data_dir": f"/a/{n}", "server.port": f"80{n}0", "wandb.id": f"r{n}",
            "date": f"2026-11-0{n}", MODEL: f"/disk{n}/models/Qwen3-8B",
            "data.train_files": f"/disk{n}/gsm8k/train.parquet", SEED: n,
        }  # fmt: skip
        runs.append(run_of(f"x{n}", noise(0.5, n), recipe(**other)))
    found = comparison(*runs, run_of("other", noise(0.4, 9), recipe(**{LR: 5e-6})))
    assert [len(group.members) for group in found.groups] == [3, 1]
    group = found.groups[0]
    finals = [one.figures["final_reward"].value for one in group.members]
    assert group.figures["final_reward"].value == pytest.approx(mean(finals))  # type: ignore[arg-type]
    assert group.figures["final_reward"].sd == pytest.approx(deviation(finals))  # type: ignore[arg-type]
    assert group.figures["final_reward"].n == 3


@pytest.mark.parametrize(
    "other",
    [
        {LR: 2e-6},
        {"data.train_files": "/disk/math/train.parquet"},
        {"custom_reward_function.path": "/code/strict.py"},
        {MODEL: "Qwen/Qwen3-4B"},
        {"trainer.nnodes": 2},
        {"algorithm.use_kl_in_reward": True},
    ],
)
def test_what_changes_the_training_is_no_seed(other):
    base = {
        "data.train_files": "/disk/gsm8k/train.parquet",
        "custom_reward_function.path": "/code/lenient.py",
        "trainer.nnodes": 1,
        "algorithm.use_kl_in_reward": False,
    }
    found = comparison(
        run_of("a", noise(0.5, 1), recipe(**base)),
        run_of("b", noise(0.5, 2), recipe(**{**base, SEED: 2, **other})),
    )
    assert len(found.groups) == 2


def test_without_settings_only_a_seed_in_the_name_puts_runs_together():
    names = ("grpo-seed1", "grpo-seed2", "ppo-seed1", "grpo-3", "grpo-4")
    found = comparison(*(run_of(name, noise(0.5, at)) for at, name in enumerate(names)))
    groups = [group.name for group in found.groups]
    assert groups == ["grpo", "ppo-seed1", "grpo-3", "grpo-4"]
    assert "names differ only by the seed" in written(found)
    assert "no settings are known of grpo-seed1" in written(found)


# -- differences -----------------------------------------------------------------------------------


def seeds(name: str, centres: tuple[float, ...], lr: float) -> list[object]:
    return [
        run_of(
            f"{name}-seed{n}",
            noise(centre, n + round(lr * 1e8)),
            recipe(**{LR: lr, SEED: n}),
        )
        for n, centre in enumerate(centres)
    ]


def test_over_seeds_better_is_said_only_where_the_interval_excludes_zero():
    base = seeds("base", (0.50, 0.52, 0.51), 1e-6)
    better = seeds("up", (0.70, 0.72, 0.71), 2e-6)
    alike = seeds("same", (0.40, 0.66, 0.5), 3e-6)
    found = comparison(*base, *better, *alike)  # type: ignore[arg-type]
    up = of(found, "final_reward", "up")
    assert up.basis is SEEDS
    assert up.n == (3, 3)
    assert up.verdict == "better"
    assert up.low is not None
    assert up.high is not None
    assert up.low < 0.2 < up.high
    assert of(found, "final_reward", "same").verdict == "no clear difference"
    assert of(comparison(*better, *base), "final_reward", "base").verdict == "worse"  # type: ignore[arg-type]


def test_single_runs_are_compared_by_their_last_values_which_is_said():
    one = run_of("one", noise(0.5, 1))
    two = run_of("two", noise(0.8, 2), more={LENGTH: 90.0})
    found = comparison(one, two)
    assert of(found, "final_reward", "two").basis is WITHIN_RUN
    assert of(found, "final_reward", "two").verdict == "better"
    assert "they say nothing of other seeds" in as_text(found)
    alike = comparison(one, run_of("x", noise(0.5, 3)))
    assert of(alike, "final_reward", "x").verdict == "no clear difference"


def test_less_is_better_of_times_and_neither_of_lengths():
    runs = []
    for name, centre in (("one", 10.0), ("two", 20.0)):
        more = {LENGTH: noise(centre, 2), "timing_s/step": noise(centre, 3)}
        runs.append(run_of(name, noise(0.5, 1), more=more))
    found = comparison(*runs)
    assert of(found, "step_time", "two").verdict == "worse"
    assert of(found, "response_length", "two").verdict == "higher"


def test_the_first_lines_say_which_reached_most_and_whether_that_is_certain():
    base = seeds("base", (0.50, 0.52, 0.51), 1e-6)
    up = seeds("up", (0.70, 0.72, 0.71), 2e-6)
    first = as_text(comparison(*base, *up)).splitlines()[1]  # type: ignore[arg-type]
    assert first.startswith("highest final reward: up, 0.7")
    assert first.endswith(" (better)")
    turned = as_text(comparison(*up, *base)).splitlines()[1]  # type: ignore[arg-type]
    assert turned.endswith(" (the baseline)")
    bare = run_of("bare", [], more={LENGTH: [10.0] * 40})
    without = as_text(comparison(bare, *up)).splitlines()[1]  # type: ignore[arg-type]
    assert "up" in without
    assert not without.endswith("baseline)"), "one without the figure is not it"


# -- what does not mean the same -------------------------------------------------------------------


def test_rewards_on_two_scales_are_not_compared_but_a_scale_nobody_knows_is_no_other_scale():
    binary = {"reward/mean": [0.2, 0.3, 0.4, 0.5] * 10}
    spread = {"reward/std": [(m * (1 - m)) ** 0.5 for m in binary["reward/mean"]]}
    bounded = run_of("bounded", binary["reward/mean"], more=spread, key="reward/mean")
    wide = run_of("wide", noise(3.0, 1), key="reward/mean")
    unknown = run_of("unknown", noise(0.5, 1), key="reward/mean")
    found = comparison(bounded, wide)
    assert not [one for one in found.differences if one.figure == "final_reward"]
    assert "rewards are on different scales" in written(found)
    assert of(comparison(bounded, unknown), "final_reward", "unknown").low is not None


def test_validations_on_several_data_sets_are_compared_on_the_one_that_all_have():
    math = "val-core/math/acc/mean@1"
    both = run_of("both", noise(0.5, 1), more={VALIDATION: 0.8, math: 0.3})
    one = run_of("one", noise(0.5, 2), more={math: 0.4})
    found = comparison(both, one)
    assert of(found, "last_validation", "one")[2:4] == (0.3, 0.4)
    apart = comparison(run_of("gsm", noise(0.5, 1), more={VALIDATION: 0.8}), one)
    assert not [one for one in apart.differences if one.figure == "last_validation"]
    assert "validations are of different metrics" in written(apart)
    # Scores of the few samples that a console prints are no validation that both have.
    printed = {"val_samples/score": 1.0}
    apart = comparison(
        run_of("gsm", noise(0.5, 1), more={VALIDATION: 0.8} | printed),
        run_of("one", noise(0.5, 2), more={math: 0.4} | printed),
    )
    assert "validations are of different metrics" in written(apart)


# -- correlations ----------------------------------------------------------------------------------


def sweep(count: int, **other: str) -> Comparison:
    runs = []
    for n in range(count):
        varied = {LR: 1e-6 * (n + 1), BATCH: 64 * (1 + n * 7 % count)}
        varied |= dict.fromkeys(other.values(), (1 + n) * 2)
        runs.append(run_of(f"r{n}", noise(0.3 + n / 20, n), recipe(**varied)))
    return comparison(*runs)


def with_reward(found: Comparison, setting: str) -> Any:
    """Return how a setting goes with the final reward."""
    known = (one for one in found.association.found if one.figure == "final_reward")
    return next(one for one in known if one.settings == (setting,))


def test_which_setting_goes_with_the_reward():
    found = sweep(8).association.found
    first = next(one for one in found if one.figure == "final_reward")
    assert first[:5] == ((LR,), "final_reward", "spearman", 1.0, 8)
    assert first.beyond_chance
    assert not with_reward(sweep(8), BATCH).beyond_chance


def test_how_many_of_many_pairs_chance_alone_explains_is_said():
    few = sweep(8)
    assert "beyond it by chance alone" not in as_text(few)
    found = [*few.association.found] * 20
    many = few._replace(association=few.association._replace(found=found))
    assert f"Of {len(found)} pairs, about {len(found) // 20} would" in as_text(many)


def test_a_switch_is_ranked_by_its_two_levels_and_names_are_not_ranked():
    kinds = ("grpo", "gae", "rloo")
    runs = []
    for n in range(10):
        other = {"a.use_kl_loss": n % 2 == 1, "algorithm.adv_estimator": kinds[n % 3]}
        rewards = noise(0.3 + 0.2 * (n % 2), n)
        runs.append(run_of(f"r{n}", rewards, recipe(**other, **{BATCH: n + 1})))
    found = comparison(*runs)
    switch = with_reward(found, "a.use_kl_loss")
    assert (switch.coefficient, switch.levels) == (1.0, ("false", "true"))
    assert switch.beyond_chance
    assert found.association.unranked == ["algorithm.adv_estimator"]
    assert "have no order: algorithm.adv_estimator" in as_text(found)


# -- bad input -------------------------------------------------------------------------------------


def test_bad_input_gets_a_sentence_and_the_rest_is_done():
    found = comparison(
        run_of("good", noise(0.5, 1)),
        run_of("nothing", []),
        run_of("lost", [nan] * 20),
        run_of("gaps", [0.5] * 15 + [nan, inf] + [0.5] * 3),
        run_of("lengths", [1.0] * 20, key=LENGTH),
    )
    said = written(found)
    assert "not compared, as no step is known: nothing" in said
    for sentence in (
        "10 of the last 10 rewards of lost are not finite: it has no final reward",
        "2 of the last 10 rewards of gaps are not finite and are left out",
        "lengths logs no reward",
    ):
        assert sentence in said
    assert of(found, "final_reward", "gaps").value == 0.5
    assert "a single run" in written(comparison(run_of("good", [0.5])))


@given(st.lists(st.lists(st.floats(), max_size=30), min_size=1, max_size=7))
def test_any_values_give_a_comparison_in_all_forms(columns):
    runs = [
        run_of(f"r{at}", values, recipe(**{LR: 10.0**-at}), {VALIDATION: values})
        for at, values in enumerate(columns)
    ]
    found = comparison(*runs)
    json.dumps(as_data(found), allow_nan=False)
    assert as_csv(found).count("\n") == len(runs) + 1
    for text in (as_text(found), as_text(found, 60), as_markdown(found)):
        assert "r0" in text


# -- how it is written -----------------------------------------------------------------------------


def test_hostile_names_stay_text():
    bad = "a|b\x1b[31m<img src=x>`\n# head"
    found = comparison(
        run_of(bad, [0.5] * 20, {BATCH: "x|y\x1b[2J"}),
        run_of("b", [0.4] * 20, {BATCH: 1}),
    )
    marked, plain = as_markdown(found), as_text(found)
    assert "\x1b" not in marked + plain
    assert "\\<img src=x\\>" in marked
    table = [line for line in marked.splitlines() if line.startswith("| ")]
    assert any("img" in line for line in table)
    assert not any(line.startswith("# head") for line in marked.splitlines())


def test_tables_go_on_below_where_the_terminal_is_narrow():
    found = sweep(6)
    assert max(map(len, as_text(found, 100).splitlines())) <= 100
    assert "final reward" in as_text(found, 40)


def test_a_run_is_named_in_full_in_part_or_by_its_path():
    runs = [run_of(name, [0.5]) for name in ("gsm8k-1", "gsm8k-12", "math")]
    assert find_run(runs, "gsm8k-1") is runs[0]
    assert find_run(runs, "ma") is runs[2]
    assert find_run(runs, "./math") is runs[2]
    assert all_meant(runs, "gsm8k") == runs[:2]
    with pytest.raises(UsageError, match="gsm8k may be gsm8k-1, gsm8k-12"):
        find_run(runs, "gsm8k")
    with pytest.raises(UsageError, match="none of the runs: gsm8k-1"):
        find_run(runs, "x")


ACCURACY = "val-core/gsm8k/acc/mean@1"
SUCCESSFUL = "val-aux/gsm8k/acc_success_only/mean@1"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ((ACCURACY,), (ACCURACY, SUCCESSFUL), "acc of new counts failed sessions as 0"),
        ((ACCURACY, SUCCESSFUL), (ACCURACY, SUCCESSFUL), ""),
        ((ACCURACY,), (ACCURACY,), ""),
    ],
)
def test_what_versions_of_verl_measure_in_two_ways_is_said(old, new, said):
    runs = [
        run_of(name, [0.5, 0.75], {}, dict.fromkeys(keys, 0.5))
        for name, keys in (("old", old), ("new", new))
    ]
    found = " ".join(measured_differently(runs))
    assert said in found
    assert bool(found) is bool(said)
