"""`check --against`: bands on both sides of a baseline, breaches, exit codes, lines and data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from compared_runs import KL, LENGTH, LR, SEED, VALIDATION, noise, recipe, run_of
from hypothesis import given
from hypothesis import strategies as st
from test_compare_command import write

from verl_tui.check.data import OUTCOMES, outcome
from verl_tui.check.note import gate_lines
from verl_tui.cli import main
from verl_tui.comparison.differences import WIDTHS, Against, Held, hold
from verl_tui.given_files import UsageError
from verl_tui.health.guide_settings import load_guide
from verl_tui.plain_data import plain

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from verl_tui.runs.run import Run


def held(
    run: Run, *baseline: Run, widths: Mapping[str, float | None] = WIDTHS
) -> Against:
    return hold(run, baseline, load_guide(), widths)


def breaches(found: Against) -> dict[str, str | None]:
    return {one.figure: one.breach for one in found.figures}


def figure(found: Against, id: str) -> Held:
    return next(one for one in found.figures if one.figure == id)


def steady(name: str, reward: float, **more: float) -> Run:
    """Return a run whose values hardly vary."""
    metrics = {LENGTH: 200.0, "timing_s/step": 20.0, KL: 0.05, **more}
    return run_of(name, noise(reward, len(name), by=1e-4), recipe(), metrics)


def test_bands_have_two_sides():
    base = steady("base", 0.5)
    low = held(steady("low", 0.4), base)
    high = held(steady("high", 0.6), base)
    assert breaches(low)["final_reward"] == "worse"
    assert breaches(high)["final_reward"] == "better"
    assert breaches(held(steady("like", 0.51), base))["final_reward"] is None
    band = figure(low, "final_reward")
    assert band.low == pytest.approx(0.475, abs=1e-3)
    assert band.high == pytest.approx(0.525, abs=1e-3)


@pytest.mark.parametrize(
    ("metric", "value", "figure", "breach"),
    [
        (LENGTH, 300.0, "response_length", "changed"),
        ("timing_s/step", 30.0, "step_time", "worse"),
        ("timing_s/step", 10.0, "step_time", "better"),
        ("timing_s/step", 21.0, "step_time", None),
        (KL, 0.2, "highest_policy_kl", "changed"),
        (KL, 0.055, "highest_policy_kl", None),
    ],
)
def test_each_figure_knows_its_good_side(metric, value, figure, breach):
    found = held(steady("run", 0.5, **{metric: value}), steady("base", 0.5))
    assert breaches(found)[figure] == breach


def test_what_may_be_chance_is_no_breach_unless_the_user_sets_the_band():
    run = run_of("run", noise(0.5, 1, by=0.3))
    base = run_of("base", noise(0.5, 2, by=0.3))
    band = figure(held(run, base), "final_reward")
    assert band.value is not None
    assert abs(band.value - band.baseline) > 0.05 * band.baseline
    assert band.breach is None
    fixed = held(run, base, widths={"final_reward": 0.05})
    assert figure(fixed, "final_reward").breach


def test_several_seeds_make_a_baseline_and_their_spread_its_band():
    centres = (0.4, 0.5, 0.6)
    seeds = [
        run_of(f"s{n}", noise(centre, n), recipe(**{SEED: n}))
        for n, centre in enumerate(centres)
    ]
    wide = figure(held(run_of("new", noise(0.7, 9), recipe()), *seeds), "final_reward")
    assert wide.baseline == pytest.approx(0.5, abs=0.01)
    # 4.303 × 0.1 × √(1 + 1/3)
    assert wide.high - wide.baseline == pytest.approx(0.497, abs=0.03)
    other = run_of("other", noise(0.5, 8), recipe(**{LR: 1e-3}))
    with pytest.raises(UsageError, match="differ by more than their seed"):
        held(seeds[0], seeds[1], other)


def test_what_is_missing_or_cannot_be_compared_is_said():
    base = steady("base", 0.5, **{VALIDATION: 0.5})
    found = held(steady("run", 0.5, **{"val-core/math/acc/mean@1": 0.5}), base)
    reasons = {one["figure"]: one["reason"] for one in found.not_compared}
    assert "different metrics" in reasons["last_validation"]
    assert reasons["throughput"] == "the baseline has none"
    assert breaches(held(steady("run", 0.5), base))["last_validation"] == "missing"


@given(*(st.lists(st.floats(), max_size=25) for _ in range(3)))
def test_any_values_give_data_and_lines(mine, one, other):
    seeds = [
        run_of(f"s{at}", values, recipe(**{SEED: at}), {VALIDATION: values})
        for at, values in enumerate((mine, one, other))
    ]
    found = plain(held(*seeds))
    json.dumps(found, allow_nan=False)
    assert outcome(found) in OUTCOMES
    assert next(gate_lines(found))[1].plain.startswith("against s1, s2")


# -- the command -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("centre", "code"), [(0.5, 0), (0.3, 2), (0.8, 1)])
def test_the_exit_code_is_a_gate(centre, code, tmp_path, asked):
    base = write(tmp_path, "base", 0.5)
    new = write(tmp_path, "new", centre, seed=2)
    asked("check", new, code=0)
    shown = asked("check", new, "--against", base, code=code).out
    assert "base:" not in shown, "the baseline itself is not reported"
    breached = {
        0: "within all bands",
        1: "better: final reward",
        2: "worse: final reward",
    }
    assert breached[code] in shown
    shown = asked("check", tmp_path, "--against", "base", "--json", code=code).out
    (run,) = json.loads(shown)["runs"]
    assert run["against"]["baseline"] == ["base"]
    assert run["against"]["step"] == 40
    kinds = {one["figure"]: one["breach"] for one in run["against"]["figures"]}
    assert kinds["final_reward"] == {0: None, 1: "better", 2: "worse"}[code]


CENTRES = {"worst": 0.3, "like": 0.5, "best": 0.8, "alike": 0.505}


def sweep(folder: Path, *names: str) -> list[str]:
    """Write runs of a sweep; return their paths."""
    return [str(write(folder / "runs", one, CENTRES[one], seed=2)) for one in names]


def hollow(folder: Path) -> str:
    """Write the log of a run that has not made a step; return its path."""
    log = folder / "hollow.log"
    log.write_text("Using config trainer.total_training_steps=40\nloading the model\n")
    return str(log)


def test_a_sweep_is_a_table_with_a_line_a_run_the_worst_first(tmp_path, asked):
    runs = sweep(tmp_path, "like", "best", "worst", "alike")
    base = ["--against", str(write(tmp_path / "reference", "base", 0.5))]
    lines = asked("check", *runs, *base, code=2).out.splitlines()
    head, columns, *table, _, counts = lines
    counts_of = "worst first (-v: all of each): 1 worse, 1 better, 2 within"
    assert head == f"against base, {counts_of}"
    assert columns.split()[:4] == ["run", "against", "verdict", "step"]
    assert [line.split()[0] for line in table] == ["worst", "best", "like", "alike"]
    assert "40    worse: final reward 0.3" in table[0]
    assert table[2].endswith("no warning  40")
    assert counts == "4 runs: 4 without a warning"
    runs.append(hollow(tmp_path))
    found = json.loads(asked("check", *runs, *base, "--json", code=2).out)
    order = ["worst", "hollow", "best", "like", "alike"]
    assert found["against"] == {
        "baseline": ["base"],
        "worst_first": order,
        "outcomes": {"worse": 1, "not comparable": 1, "better": 1, "within": 2},
    }
    outcomes = {one["name"]: one["against"]["outcome"] for one in found["runs"]}
    assert [outcomes[name] for name in order] == [
        *("worse", "not comparable", "better", "within", "within")
    ]
    shown = asked("check", *runs, *base, "-v", code=2).out
    assert "worse: final reward" in shown.partition("against base, worst")[0]


@pytest.mark.parametrize(
    ("names", "code"),
    [(("like", "alike"), 0), (("like", "best"), 1), (("best", "worst"), 2)],
)
def test_the_exit_code_is_that_of_the_worst_run(names, code, tmp_path):
    base = ["--against", str(write(tmp_path / "reference", "base", 0.5))]
    runs = sweep(tmp_path, *names)
    assert main(["check", *runs, *base]) == code
    assert main(["check", *runs, hollow(tmp_path), *base]) == (2 if code == 2 else 3)


def test_a_group_of_seeds_is_a_baseline_and_what_lies_beside_it_is_not_held(
    tmp_path, asked
):
    for seed in (1, 2, 3):
        write(tmp_path / "reference", f"base-seed{seed}", 0.5, seed=seed)
    (tmp_path / "reference" / "notes.log").write_text("as agreed on Monday\n")
    runs = sweep(tmp_path, "like", "worst")
    base = ["--against", tmp_path / "reference"]
    found = json.loads(asked("check", *runs, *base, "--json", code=2).out)
    assert [one["name"] for one in found["runs"]] == ["like", "worst"]
    assert found["against"]["baseline"] == [f"base-seed{n}" for n in (1, 2, 3)]
    said = asked("check", tmp_path, "--against", "base-seed", code=2).out
    assert "against reference/base-seed1, reference/base-seed2, " in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--against", "nobody"], "nobody is none of the runs"),
        (["--against", "n" * 300], "is none of the runs"),
        (["--against", "new"], "no run is left"),
        (["--band", "final_reward=5%"], "--against"),
        (["--against", "new", "--band", "reward=5%"], "none of final_reward"),
        (["--against", "new", "--band", "final_reward=much"], "has no share"),
    ],
)
def test_what_makes_no_sense(words, sentence, tmp_path, asked):
    assert sentence in asked("check", write(tmp_path, "new", 0.5), *words, code=64).err
