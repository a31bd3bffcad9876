"""`check`: the report's schema, values that are no numbers, the note for people, and the exit
code.
"""

from __future__ import annotations

import json
import math
import os
import re
from typing import TYPE_CHECKING, Any

import pytest
from command_line import python

from verl_tui.check.data import (
    HEALTHY,
    NOTHING_READABLE,
    exit_code,
    report,
)
from verl_tui.check.note import note_text
from verl_tui.config import Config
from verl_tui.monitor import load

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from verl_tui.monitor import Monitor

NOW = 1_790_000_000.0


def write(path: Path, lines: Iterable[dict[str, Any] | str], age: float = 5.0) -> Path:
    """Write a log whose last change lies `age` seconds before NOW."""
    text = "".join(
        (line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, (NOW - age, NOW - age))
    return path


def ppo(step: int, kl: float = 0.02, reward: float = 2.5) -> dict[str, Any]:
    return {"scope": "rollout", "step": step, "reward_mean": reward, "kl_div": kl}


def rewarded(folder: Path, rewards: Iterable[float]) -> None:
    """Write a log with a reward a step."""
    lines = [ppo(step, reward=one) for step, one in enumerate(rewards, 1)]
    write(folder / "verl_logs.jsonl", lines)


def look(*paths: Path) -> tuple[dict[str, Any], Monitor]:
    monitor = load([str(path) for path in paths], Config(), NOW)
    return report(monitor, NOW), monitor


def note(*paths: Path, **how: Any) -> str:
    found, monitor = look(*paths)
    return note_text(found, monitor, NOW, **how)


def of(severity: str) -> dict[str, Any]:
    """Return a report of one run with a single finding."""
    sources = [{"format": "tutorial JSONL", "records": 1}]
    run = {"sources": sources, "findings": [{"id": "x", "severity": severity}]}
    return {"version": 1, "runs": [run]}


SCHEMA = {
    "run": "name id paths dialect state step total_steps last_record_age_s last_record_by indicators "
    "findings not_judged sources best targets history identity losses remaining_s phase verdict why next",
    "identity": "project experiment group algorithm model hyperparameters",
    "source": "path format program records unreadable note",
    "best": "indicator key step value checkpoint nearest_checkpoint latest_checkpoint called_best "
    "called_best_at",
    "episode": "id severity since_step raised_step cleared_step message",
    "finding": "id severity step since_step message evidence advice source consequence_of",
    "rule": "id reason",
}


def test_the_schema_to_the_letter(tmp_path):
    folder = tmp_path / "run_a"
    lines = [*(ppo(step, kl=0.3) for step in range(1, 31)), "{broken"]
    log = write(folder / "verl_logs.jsonl", lines)
    (folder / "global_step_30").mkdir()
    found, _ = look(folder)
    assert list(found) == ["version", "runs", "passed_over"]
    assert found["version"] == 1
    (run,) = found["runs"]
    shown = {
        "run": run,
        "identity": run["identity"],
        "source": run["sources"][0],
        "best": run["best"],
        "episode": run["history"][0],
        "finding": run["findings"][0],
        "rule": run["not_judged"][0],
    }
    for name, fields in SCHEMA.items():
        assert sorted(shown[name]) == sorted(fields.split()), name
    assert (run["name"], run["dialect"], run["step"]) == ("run_a", "tutorial", 30)
    assert (run["total_steps"], run["targets"]) == (None, [])
    assert str(log) in run["paths"]
    assert run["last_record_age_s"] == 5.0
    kl = {"key": "rollout/kl_div", "value": 0.3, "step": 30}
    assert run["indicators"]["policy_kl"] == kl
    (read,) = [one for one in run["sources"] if one["path"] == str(log)]
    assert (read["format"], read["program"]) == ("tutorial JSONL", None)
    assert (read["records"], read["unreadable"]) == (30, 1)
    assert (run["best"]["step"], run["best"]["checkpoint"]) == (1, None)
    near = {"step": 30, "path": str(folder / "global_step_30")}
    near |= {"value": 2.5, "complete": None}
    assert run["best"]["nearest_checkpoint"] == run["best"]["latest_checkpoint"] == near
    by_id = {finding["id"]: finding for finding in run["findings"]}
    breaker, follows = by_id["circuit-breaker-kl"], by_id["kl-high"]
    assert breaker["consequence_of"] is None
    assert follows["consequence_of"] == "circuit-breaker-kl"
    assert (breaker["severity"], breaker["since_step"]) == ("critical", 1)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "null"])
def test_what_is_no_number_is_null_and_said_to_be(tmp_path, value):
    line = json.dumps(ppo(3)).replace("0.02", value)
    found, monitor = look(write(tmp_path / "a.jsonl", [ppo(1), ppo(2), line]))
    (run,) = found["runs"]
    expected = {"key": "rollout/kl_div", "value": None, "finite": False, "step": 3}
    assert run["indicators"]["policy_kl"] == expected
    json.dumps(found, allow_nan=False)
    assert re.search(r"policy KL +not finite", note_text(found, monitor, NOW))


REWARDS = {
    "the first highest finite one": ((1.0, 3.0, 3.0, math.nan, 2.0), (2, 3), 2, 2),
    "the later one is nearer in its value": ((1, 1, 3, 2, 1), (2, 4), 3, 4),
    "the earlier one is": ((1, 2, 3, 1, 1), (2, 4), 3, 2),
    "neither is": ((1, 2, 3, 2, 1), (2, 4), 3, 2),
}
"""Rewards, the steps of checkpoints, the best step, and that of the checkpoint nearest to it."""


@pytest.mark.parametrize("name", REWARDS)
def test_the_best_step_and_the_checkpoint_nearest_to_it(tmp_path, name):
    rewards, saved, step, near = REWARDS[name]
    rewarded(tmp_path / "run", rewards)
    for at in saved:
        (tmp_path / "run" / f"global_step_{at}").mkdir()
    best = look(tmp_path / "run")[0]["runs"][0]["best"]
    assert (best["step"], best["value"]) == (step, 3.0)
    own = str(tmp_path / "run" / f"global_step_{step}") if step in saved else None
    assert best["checkpoint"] == own
    assert (best["nearest_checkpoint"] or {"step": step})["step"] == near
    assert best["latest_checkpoint"]["step"] == saved[-1]


def test_the_nearest_checkpoint_is_named_where_the_best_step_has_none(tmp_path):
    rewarded(tmp_path / "run", (1.0, 1.5, 2.0, 3.0, 2.0, 1.8))
    folder = tmp_path / "run" / "checkpoints"
    for name in ("global_step_2", "global_step_6", "best_model", "best_step_5"):
        (folder / name).mkdir(parents=True)
    (folder / "latest_checkpointed_iteration.txt").write_text("2")
    best = look(tmp_path / "run")[0]["runs"][0]["best"]
    near, latest = best["nearest_checkpoint"], best["latest_checkpoint"]
    assert best["checkpoint"] is None
    assert (near["step"], near["value"]) == (5, 2.0)
    assert (latest["step"], latest["complete"]) == (6, False)
    called = {path.rpartition("/")[2] for path in best["called_best"]}
    assert called == {"best_model", "best_step_5"}
    text = note(tmp_path / "run")
    for said in (
        "best reward 3 at step 4; no checkpoint of that step, the nearest is of",
        "the newest checkpoint is of step 6 (not known to be complete",
        "the trainer itself calls best: ",
    ):
        assert said in text


def test_targets(tmp_path):
    rewarded(tmp_path / "run", (0.5 * step for step in range(1, 6)))
    targets = {"reward": 1.5, "rollout/reward_mean": 9.0, "validation": 0.7}
    monitor = load([str(tmp_path / "run")], Config(targets=targets), NOW)
    found = report(monitor, NOW)
    reached, missed = found["runs"][0]["targets"]
    expected = {"metric": "reward", "key": "rollout/reward_mean", "target": 1.5}
    expected |= {"reached_step": 3, "value": 2.5, "step": 5}
    assert expected.items() <= reached.items()
    expected = {"reached_step": None, "best": 2.5, "best_step": 5}
    assert expected.items() <= missed.items()
    text = note_text(found, monitor, NOW)
    assert "  target reward 1.5: reached at step 3, now 2.5\n" in text
    assert "  target rollout/reward_mean 9: not reached, best 2.5 at step 5\n" in text


def test_an_info_is_no_warning():
    assert exit_code(of("info")) == HEALTHY


def test_settings_alone_are_nothing_readable(tmp_path):
    write(tmp_path / "run" / "verl_logs.jsonl", ["{broken", "{broken too"])
    write(tmp_path / "run" / "config.yaml", ["a: 1"])
    found, _ = look(tmp_path / "run" / "verl_logs.jsonl")
    assert [run["step"] for run in found["runs"]] == [None]
    assert exit_code(found) == NOTHING_READABLE
    assert exit_code({"version": 1, "runs": []}) == NOTHING_READABLE


def test_the_note_tells_what_a_colleague_would(tmp_path):
    run = tmp_path / "run_a"
    lines = [ppo(step, kl=0.02 if step < 20 else 0.3) for step in range(1, 41)]
    broken = ["{broken", "[1]", "{again", "{and again"]
    path = write(run / "verl_logs.jsonl", [*lines, *broken])
    write(run / "config.yaml", ["trainer:", "  total_training_steps: 80"])
    text = note(run)
    first, why, next_, *_ = text.splitlines()
    assert first == (
        "run_a: critical at step 40 of 80 (50%), running, last record just now by its file's time"
    )
    assert why.startswith(
        "  why: circuit breaker tripped at step 24: policy KL was above 0.2 "
    )
    assert re.fullmatch(
        "  next: stop the run and go back to the last good checkpoint; then .*"
        r"\. No checkpoint from before step 20 is known",
        next_,
    )
    assert re.search(
        r"^  policy KL +0\.3 nats/token +rollout/kl_div, step 40$", text, re.MULTILINE
    )
    for said in (
        "  best reward 2.5 at step 1; no checkpoint is known\n",
        "  critical circuit-breaker-kl, since step 20:\n    - ",
        "    +1 consequence, --consequences writes them out: kl-high\n",
        "    source: verl tutorials' indicator guide\n",
        f"  read {path}: tutorial JSONL, 40 records, 4 unreadable lines\n",
        f"    {path}:41: not JSON: ",
        f"    {path}:42: JSON, but no object\n",
        "    and 1 more\n",
    ):
        assert said in text
    assert "warning kl-high" not in text
    unfolded = note(run, unfolded=True)
    _, _, after = unfolded.partition("    +1 consequence:\n")
    assert "      warning kl-high, since step 20: " in after
    assert "        advice: " in unfolded


def complete(step: int) -> dict[str, Any]:
    """Return a step with all that a training is judged by."""
    wave = (step % 7) / 100
    data = {"critic/score/mean": 0.3 + 0.001 * step + wave, "actor/ppo_kl": 0.0001}
    data |= {"actor/entropy": 0.5 + wave, "actor/grad_norm": 0.5 + wave}
    data |= {"response_length/mean": 300.0 + 100 * wave}
    return {"step": step, "data": data}


@pytest.mark.parametrize(
    ("steps", "left_out", "said"),
    [
        (80, "", "healthy"),
        (80, "actor/entropy", "not logged: entropy"),
        (25, "", "not checked: reward, response length"),
    ],
)
def test_only_what_was_judged_in_all_is_called_healthy(steps, left_out, said, tmp_path):
    lines = [complete(step) for step in range(1, steps + 1)]
    for line in lines:
        line["data"].pop(left_out, None)
    write(tmp_path / "run" / "log.jsonl", lines)
    first, why, *_ = note(tmp_path / "run", colour=True, width=200).splitlines()
    green = "\x1b[32mhealthy" in first
    assert green is (said == "healthy")
    assert said in why or green
    assert green or "32m" not in first
    assert exit_code(look(tmp_path / "run")[0]) == HEALTHY


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"task_success": 0.5}, "no indicator of this log is known, nothing to check"),
        ({"grad_norm": 0.5}, "rules checked, none found anything; not logged: reward, KL, entropy, response length"),
    ],
)  # fmt: skip
def test_what_cannot_be_judged_is_not_too_short(row, why, tmp_path):
    write(tmp_path / "run" / "log.jsonl", [{"step": i, **row} for i in range(1, 1558)])
    first, second, *_ = note(tmp_path / "run").splitlines()
    assert second.endswith(why)
    assert "yet" not in first


def test_a_finished_run_says_which_checkpoint_to_keep(tmp_path):
    write(tmp_path / "run" / "config.yaml", ["trainer: {total_training_steps: 30}"])
    lines = [ppo(step, reward=2.5 + 0.01 * (step == 20)) for step in range(1, 31)]
    write(tmp_path / "run" / "verl_logs.jsonl", lines)
    (tmp_path / "run" / "global_step_30").mkdir()
    first, _, next_, *_ = note(tmp_path / "run").splitlines()
    assert first.startswith(
        "run: no warning, finished after all 30 steps, last record "
    )
    assert next_.endswith("30, the nearest to the best reward (2.51 at step 20)")
    (tmp_path / "run" / "global_step_20").mkdir()
    next_ = note(tmp_path / "run").splitlines()[2]
    keep = "  next: keep the checkpoint of step 20, where the reward was best (2.51)"
    assert next_ == keep


def test_foreign_text_is_no_markup_and_no_escape(tmp_path):
    named = tmp_path / "[red]run[/red] :smile:"
    write(named / "verl_logs.jsonl", [ppo(1), "{\x1b[31mred"])
    write(tmp_path / "odd\x1b[2Jname" / "verl_logs.jsonl", [ppo(1)])
    text = note(tmp_path)
    assert "[red]run[/red] :smile:: " in text
    assert "\x1b" not in text


def test_headless_modules_load_nothing_that_draws():
    program = (
        "import sys, verl_tui.monitor, verl_tui.check.data, verl_tui.exporters.csv, verl_tui.cli\n"
        "print({'textual', 'rich.console'} & {*sys.modules})"
    )
    assert python("-c", program).stdout == "set()\n"


@pytest.mark.parametrize(
    "form",
    [
        "2026-03-01 10:00:{at},104 - rl - INFO - rl_loss: -0.1{at}, reward: 0.2{at}, l2_norm: 0.14",
        "epoch 0 step {at} loss 0.{at} kl 0.0{at} acc 0.4{at}% 12s",
        "Epoch:[1/3]({at}/90), Reward: -0.{at}, KL_ref: 0.0{at}, Actor Loss: 0.0{at}",
        "{at} | Return: 1{at}.5 | Entropy: 1.{at} | Grad norm: 3e-0{at}",
        "step {at}: loss 0.{at}",
        'train {{"iteration": {at}, "loss": 0.{at}, "rewards": {{"mean": 0.{at}}}}}',
    ],
)
def test_steps_in_no_known_form_are_said_to_be_there(form, tmp_path):
    head = "Loading the model\nConfig: lr=5e-06, groups=8, kl=0.1\n"
    lines = [form.format(at=at) for at in range(10, 90)]
    log = write(tmp_path / "own" / "train.log", [head, *lines], age=7200.0)
    found, monitor = look(log)
    shown = note_text(found, monitor, NOW)
    assert "its steps cannot be read" in shown.splitlines()[0]
    assert (
        f"80 lines with metrics are in no known form, as line {len(lines) + 3}: "
        in shown
    )
    (run,) = found["runs"]
    assert run["step"] is None
    assert run["state"] == "ended?"


@pytest.mark.parametrize(
    "line",
    [
        "reward function: score=0.{at} len=1{at} format=1.0",  # of a sample
        "(Worker pid=4{at}) entropy_coeff=0.1, kl_loss_coef=0.01, mini_batch=64",
        "[env 2] step {at} reward 0.5 turns 3",
    ],
)
def test_numbers_before_the_first_step_are_not_taken_for_steps(line, tmp_path):
    begun = ["INFO: Total training steps: 90"]
    lines = [line.format(at=at) for at in range(10, 40)]
    shown = note(write(tmp_path / "verl" / "train.log", [*begun, *lines]))
    assert "waiting for the first of 90 steps" in shown
    assert "no known form" not in shown


def test_a_file_without_a_line_of_a_training_is_said_to_have_none(tmp_path):
    lines = ["# Runs", "", "- warning: the third failed, see the errors below"]
    path = write(tmp_path / "INDEX.md", lines, age=7200.0)
    monitor = load([str(path)], Config(), NOW)
    found = report(monitor, NOW)
    said = note_text(found, monitor, NOW, width=None, colour=False)
    assert exit_code(found) == NOTHING_READABLE
    assert said.startswith("INDEX: no training found in it\n")
    assert "plain text, 0 records" in said
    assert "verl console" not in said


def test_a_training_without_rewards_tells_its_losses(tmp_path):
    lines = [
        {"step": step, "loss": 4.0 / step, "eval_loss": 5.0 / step, "grad_norm": 1}
        for step in (1, 2, 4)
    ]
    (tmp_path / "trainer_state.json").write_text(
        json.dumps({"global_step": 4, "max_steps": 4, "log_history": lines})
    )
    found, _ = look(tmp_path)
    assert found["runs"][0]["losses"] == {
        "loss": {"value": 1.0, "step": 4},
        "eval_loss": {"value": 1.25, "step": 4},
    }
    text = note(tmp_path)
    assert "reward" not in text, "it never has one"
    assert "; not checked: loss" in text
    assert (
        "  loss             1     loss, step 4\n  validation loss  1.25  eval_" in text
    )
