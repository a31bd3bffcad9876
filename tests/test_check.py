"""`check`: the report's schema, values that are no numbers, the note for people, and the exit
code.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

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


def look(*paths: Path) -> tuple[dict[str, Any], Monitor]:
    monitor = load([str(path) for path in paths], Config(), NOW)
    return report(monitor, NOW), monitor


def note(*paths: Path, **how: Any) -> str:
    found, monitor = look(*paths)
    return note_text(found, monitor, NOW, **how)


def of(severity: str) -> dict[str, Any]:
    """Return a report of one run with a single finding."""
    finding = {"id": "x", "severity": severity}
    sources = [{"format": "tutorial JSONL", "records": 1}]
    return {
        "version": 1,
        "runs": [{"sources": sources, "findings": [finding] if severity else []}],
    }


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


def test_the_schema_to_the_letter(tmp_path: Path) -> None:
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
def test_what_is_no_number_is_null_and_said_to_be(tmp_path: Path, value: str) -> None:
    line = json.dumps(ppo(3)).replace("0.02", value)
    found, monitor = look(write(tmp_path / "a.jsonl", [ppo(1), ppo(2), line]))
    (run,) = found["runs"]
    assert run["indicators"]["policy_kl"] == {
        "key": "rollout/kl_div",
        "value": None,
        "finite": False,
        "step": 3,
    }
    json.dumps(found, allow_nan=False)
    assert re.search(r"policy KL +not finite", note_text(found, monitor, NOW))


def test_the_best_is_the_first_highest_finite_reward_with_its_own_checkpoint(
    tmp_path: Path,
) -> None:
    rewards = (1.0, 3.0, 3.0, float("nan"), 2.0)
    write(
        tmp_path / "run" / "verl_logs.jsonl",
        [ppo(step, reward=r) for step, r in enumerate(rewards, 1)],
    )
    for step in (2, 3):
        (tmp_path / "run" / f"global_step_{step}").mkdir()
    best = look(tmp_path / "run")[0]["runs"][0]["best"]
    assert (best["step"], best["value"]) == (2, 3.0)
    assert best["checkpoint"] == str(tmp_path / "run" / "global_step_2")
    assert best["latest_checkpoint"]["step"] == 3


@pytest.mark.parametrize(
    ("rewards", "near"),
    [((1, 1, 3, 2, 1), 4), ((1, 2, 3, 1, 1), 2), ((1, 2, 3, 2, 1), 2)],
)
def test_of_two_checkpoints_as_near_the_better_one_is_named(
    tmp_path: Path, rewards: tuple[float, ...], near: int
) -> None:
    records = [ppo(step, reward=one) for step, one in enumerate(rewards, 1)]
    write(tmp_path / "run" / "verl_logs.jsonl", records)
    for step in (2, 4):
        (tmp_path / "run" / f"global_step_{step}").mkdir()
    best = look(tmp_path / "run")[0]["runs"][0]["best"]
    assert (best["step"], best["nearest_checkpoint"]["step"]) == (3, near)


def test_the_nearest_checkpoint_is_named_where_the_best_step_has_none(
    tmp_path: Path,
) -> None:
    rewards = (1.0, 1.5, 2.0, 3.0, 2.0, 1.8)
    write(
        tmp_path / "run" / "verl_logs.jsonl",
        [ppo(step, reward=r) for step, r in enumerate(rewards, 1)],
    )
    for name in ("global_step_2", "global_step_6", "best_model", "best_step_5"):
        (tmp_path / "run" / "checkpoints" / name).mkdir(parents=True)
    (tmp_path / "run" / "checkpoints" / "latest_checkpointed_iteration.txt").write_text(
        "2"
    )
    best = look(tmp_path / "run")[0]["runs"][0]["best"]
    near, latest = best["nearest_checkpoint"], best["latest_checkpoint"]
    assert best["checkpoint"] is None
    assert (near["step"], near["value"]) == (5, 2.0)
    assert (latest["step"], latest["complete"]) == (6, False)
    called = {path.rpartition("/")[2] for path in best["called_best"]}
    assert called == {"best_model", "best_step_5"}
    text = note(tmp_path / "run")
    assert (
        "best reward 3 at step 4; no checkpoint of that step, the nearest is of" in text
    )
    assert "the newest checkpoint is of step 6 (not known to be complete" in text
    assert "the trainer itself calls best: " in text


def test_targets(tmp_path: Path) -> None:
    write(
        tmp_path / "run" / "verl_logs.jsonl",
        [ppo(step, reward=0.5 * step) for step in range(1, 6)],
    )
    config = Config(
        targets={"reward": 1.5, "rollout/reward_mean": 9.0, "validation": 0.7}
    )
    monitor = load([str(tmp_path / "run")], config, NOW)
    found = report(monitor, NOW)
    reached, missed = found["runs"][0]["targets"]
    assert (reached["metric"], reached["key"], reached["target"]) == (
        "reward",
        "rollout/reward_mean",
        1.5,
    )
    assert (reached["reached_step"], reached["value"], reached["step"]) == (3, 2.5, 5)
    assert (missed["reached_step"], missed["best"], missed["best_step"]) == (
        None,
        2.5,
        5,
    )
    text = note_text(found, monitor, NOW)
    assert "  target reward 1.5: reached at step 3, now 2.5\n" in text
    assert "  target rollout/reward_mean 9: not reached, best 2.5 at step 5\n" in text


def test_an_info_is_no_warning() -> None:
    assert exit_code(of("info")) == HEALTHY


def test_settings_alone_are_nothing_readable(tmp_path: Path) -> None:
    write(tmp_path / "run" / "verl_logs.jsonl", ["{broken", "{broken too"])
    write(tmp_path / "run" / "config.yaml", ["a: 1"])
    found, _ = look(tmp_path / "run" / "verl_logs.jsonl")
    assert [run["step"] for run in found["runs"]] == [None]
    assert exit_code(found) == NOTHING_READABLE
    assert exit_code({"version": 1, "runs": []}) == NOTHING_READABLE


def test_the_note_tells_what_a_colleague_would(tmp_path: Path) -> None:
    lines = [ppo(step, kl=0.02 if step < 20 else 0.3) for step in range(1, 41)]
    write(
        tmp_path / "run_a" / "verl_logs.jsonl",
        [*lines, "{broken", "[1]", "{again", "{and again"],
    )
    write(
        tmp_path / "run_a" / "config.yaml", ["trainer:", "  total_training_steps: 80"]
    )
    text = note(tmp_path / "run_a")
    first, why, next_, *_ = text.splitlines()
    assert first == (
        "run_a: critical at step 40 of 80 (50%), running, last record just now by its file's time"
    )
    assert why.startswith(
        "  why: circuit breaker tripped at step 24: policy KL was above 0.2 "
    )
    assert next_.startswith(
        "  next: stop the run and go back to the last good checkpoint; then "
    )
    assert next_.endswith(". No checkpoint from before step 20 is known")
    assert re.search(
        r"^  policy KL +0\.3 nats/token +rollout/kl_div, step 40$", text, re.MULTILINE
    )
    assert "  best reward 2.5 at step 1; no checkpoint is known\n" in text
    assert "  critical circuit-breaker-kl, since step 20:\n    - " in text
    assert "    +1 consequence, --consequences writes them out: kl-high\n" in text
    assert "warning kl-high" not in text
    unfolded = note(tmp_path / "run_a", unfolded=True)
    assert unfolded.index("    +1 consequence:\n") < unfolded.index(
        "      warning kl-high, since step 20: "
    )
    assert "        advice: " in unfolded
    assert "    source: verl tutorials' indicator guide\n" in text
    path = tmp_path / "run_a" / "verl_logs.jsonl"
    assert f"  read {path}: tutorial JSONL, 40 records, 4 unreadable lines\n" in text
    assert f"    {path}:41: not JSON: " in text
    assert f"    {path}:42: JSON, but no object\n" in text
    assert "    and 1 more\n" in text


def complete(step: int) -> dict[str, Any]:
    """Return a step with all that a training is judged by."""
    wave = (step % 7) / 100
    return {
        "step": step,
        "data": {
            "critic/score/mean": 0.3 + 0.001 * step + wave,
            "actor/ppo_kl": 0.0001,
            "actor/entropy": 0.5 + wave,
            "response_length/mean": 300.0 + 100 * wave,
            "actor/grad_norm": 0.5 + wave,
        },
    }


@pytest.mark.parametrize(
    ("steps", "left_out", "said"),
    [
        (80, "", "healthy"),
        (80, "actor/entropy", "not logged: entropy"),
        (25, "", "not judged: reward, response length"),
    ],
)
def test_only_what_was_judged_in_all_is_called_healthy(
    steps: int, left_out: str, said: str, tmp_path: Path
) -> None:
    lines = [complete(step) for step in range(1, steps + 1)]
    for line in lines:
        line["data"].pop(left_out, None)
    write(tmp_path / "run" / "log.jsonl", lines)
    first, why, *_ = note(tmp_path / "run", colour=True).splitlines()
    green = "\x1b[32mhealthy" in first
    assert green is (said == "healthy")
    assert said in why or green
    assert green or "32m" not in first
    assert exit_code(look(tmp_path / "run")[0]) == HEALTHY


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"task_success": 0.5}, "no indicator of this log is known, nothing to judge"),
        (
            {"grad_norm": 0.5},
            "rules judged, none found anything; not logged: reward, KL, entropy, response length",
        ),
    ],
)
def test_what_cannot_be_judged_is_not_too_short(
    row: dict[str, float], why: str, tmp_path: Path
) -> None:
    write(tmp_path / "run" / "log.jsonl", [{"step": i, **row} for i in range(1, 1558)])
    first, second, *_ = note(tmp_path / "run").splitlines()
    assert second.endswith(why)
    assert "yet" not in first


def test_a_finished_run_says_which_checkpoint_to_keep(tmp_path: Path) -> None:
    write(tmp_path / "run" / "config.yaml", ["trainer: {total_training_steps: 30}"])
    lines = [ppo(step, reward=2.5 + 0.01 * (step == 20)) for step in range(1, 31)]
    write(tmp_path / "run" / "verl_logs.jsonl", lines)
    (tmp_path / "run" / "global_step_30").mkdir()
    first, _, next_, *_ = note(tmp_path / "run").splitlines()
    assert first.startswith(
        "run: no warning, finished after all 30 steps, last record "
    )
    assert next_ == (
        "  next: keep the checkpoint of step 30, the nearest to the best reward (2.51 at step 20)"
    )
    (tmp_path / "run" / "global_step_20").mkdir()
    assert note(tmp_path / "run").splitlines()[2] == (
        "  next: keep the checkpoint of step 20, where the reward was best (2.51)"
    )


def test_foreign_text_is_no_markup_and_no_escape(tmp_path: Path) -> None:
    write(
        tmp_path / "[red]run[/red] :smile:" / "verl_logs.jsonl",
        [ppo(1), "{\x1b[31mred"],
    )
    (tmp_path / "odd\x1b[2Jname").mkdir()
    write(tmp_path / "odd\x1b[2Jname" / "verl_logs.jsonl", [ppo(1)])
    text = note(tmp_path)
    assert "[red]run[/red] :smile:: " in text
    assert "\x1b" not in text


def test_headless_modules_load_nothing_that_draws() -> None:
    program = (
        "import sys, importlib\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(name)\n"
        "    print(name, *{'textual', 'rich.console'} & {*sys.modules})"
    )
    modules = [
        "verl_tui.monitor",
        "verl_tui.check.data",
        "verl_tui.exporters.csv",
        "verl_tui.cli",
    ]
    done = subprocess.run(
        [sys.executable, "-c", program, *modules],
        capture_output=True,
        text=True,
        check=True,
    )
    # one that draws would stand behind its name
    assert done.stdout.splitlines() == modules


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
def test_steps_in_no_known_form_are_said_to_be_there(form: str, tmp_path: Path) -> None:
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
def test_numbers_before_the_first_step_are_not_taken_for_steps(
    line: str, tmp_path: Path
) -> None:
    begun = ["INFO: Total training steps: 90"]
    lines = [line.format(at=at) for at in range(10, 40)]
    shown = note(write(tmp_path / "verl" / "train.log", [*begun, *lines]))
    assert "waiting for the first of 90 steps" in shown
    assert "no known form" not in shown


def test_a_file_without_a_line_of_a_training_is_said_to_have_none(
    tmp_path: Path,
) -> None:
    lines = ["# Runs", "", "- warning: the third failed, see the errors below"]
    path = write(tmp_path / "INDEX.md", lines, age=7200.0)
    monitor = load([str(path)], Config(), NOW)
    found = report(monitor, NOW)
    said = note_text(found, monitor, NOW, width=None, colour=False)
    assert exit_code(found) == NOTHING_READABLE
    assert said.startswith("INDEX: no training found in it\n")
    assert "plain text, 0 records" in said
    assert "verl console" not in said


def test_a_training_without_rewards_tells_its_losses(tmp_path: Path) -> None:
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
    assert "reward" not in note(tmp_path), "it never has one"
    assert "; not judged: loss" in note(tmp_path)
    assert (
        "  loss             1     loss, step 4\n  validation loss  1.25  eval_loss"
        in note(tmp_path)
    )
