"""Dicts of metrics on a console: their steps, their values in every spelling, and what only looks like them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_reading import feed_in_pieces, read_run, values

from verl_tui.records import Event, EventKind
from verl_tui.runs.state import State, state
from verl_tui.sources import console
from verl_tui.sources.gather import Row


def bar(at: int, total: int) -> str:
    """Return a bar as tqdm draws it."""
    return f"\r{100 * at // total:3d}%|##        | {at}/{total} [00:05<21:00,  5.06s/it]"


CLEAR = "\r" + " " * 40 + "\r"


def trained(at: int, total: int = 20, every: int = 2) -> str:
    """Return what Hugging Face prints for `every` steps up to one: bars, the dict, the bar again."""
    bars = "".join(bar(step, total) for step in range(at - every + 1, at + 1))
    logs = {"loss": at / 8, "grad_norm": math.nan if at == 4 else 0.5, "reward": at / 4, "kl": 1e-05, "epoch": at / 80}
    return f"{bars}{CLEAR}{logs}\n{bar(at, total)}"


def evaluated(at: int) -> str:
    """Return an evaluation: a bar of its own, a dict, the training's bar again."""
    return f"{bar(0, 8)}{bar(7, 8)}{CLEAR}{CLEAR}{{'eval_loss': 0.25, 'epoch': {at / 80}}}\n{bar(at, 20)}"


TRL = (
    "Loading checkpoint shards: 100%|####| 4/4 [00:01<00:00]\nMap:  50%|####  | 4/8 [00:01<00:00]\n"
    + bar(0, 20)
    + "".join(trained(at) for at in (2, 4, 6))
    + evaluated(6)
    + trained(8)
    + "".join(trained(at) for at in range(10, 21, 2))
    + CLEAR
    + "{'train_runtime': 91.5, 'train_loss': 0.125, 'epoch': 0.25}\n"
    + bar(20, 20)
    + "\n"
)
SLIME = """\
(RolloutManager pid=7) [2025-11-02 10:00:00] rollout.py:88 - perf 0: {'perf/rollout_time': 12.5, 'own': tensor(3)}
(Actor pid=8) rollout 0: {'rollout/raw_reward': 0.25, 'rollout/logp': tensor(-0.5, device='cuda:0')}
(Actor pid=8) step 0: {'train/pg_loss': 0.5, 'train/grad_norm': np.float64(2.0), 'train/lr-pg_0': 1e-06}
(Actor pid=8) step 1: {'train/pg_loss': 1.5, 'train/grad_norm': np.float64(4.0), 'train/lr-pg_0': 1e-06}
(RolloutManager pid=7) eval 0: {'eval/aime': 0.125, 'eval/aime-truncated_ratio': None, 'eval/ids': [1, 2]}
(Actor pid=8) rollout 1: {'rollout/raw_reward': 0.75, 'rollout/logp': tensor(-0.25, device='cuda:0')}
(Actor pid=8) step 2: {'train/pg_loss': nan, 'train/grad_norm': inf, 'train/lr-pg_0': 1e-06}
"""
OPENRLHF = """\
(T pid=3) INFO 11-02 10:00:00 ppo_trainer.py:91] ✨ Global step 1: {'policy_loss': -0.5, 'reward': 0.25, 'kl': 0}
(T pid=3) INFO 11-02 10:00:09 ppo.py:91] ✨ Global step 2: {'policy_loss': -0.25, 'reward': 0.5, 'kl': 1e-3}
INFO 11-02 10:00:15 ppo.py:91] ✨ Global step 3: {'policy_loss': -0.125, 'reward': 0.75, 'kl': 2e-3}
"""
CONSOLES = {"trl": TRL, "slime": SLIME, "openrlhf": OPENRLHF}


@pytest.mark.parametrize("name", CONSOLES)
def test_a_console_is_recognised(name: str) -> None:
    assert console.matches(Path("a.log"), CONSOLES[name].encode())


@pytest.mark.parametrize(
    "head",
    ["", "{'loss': 1}", "{'epoch': 1}", "step 1: {'a': 1}", "We set {'lr': 1} and 'epoch': 2.\n", "{'a': 1}\n" * 9],
)
def test_not_every_text_is_a_console(head: str) -> None:
    assert not console.matches(Path("a.log"), head.encode())


def test_the_step_is_that_of_the_trainings_bar(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(TRL)
    run = read_run(path)
    assert values(run, "reward") == {at: at / 4 for at in range(2, 21, 2)}
    assert values(run, "eval_loss") == {6: 0.25}, "an evaluation's own bar tells no step"
    assert math.isnan(values(run, "grad_norm")[4])
    assert values(run, "kl")[20] == 1e-05
    assert (run.step, run.total_steps, run.restarts) == (20, 20, [])
    assert run.dialect == "other"
    assert state(run, 0.0) is State.FINISHED
    assert "train_loss" not in run.keys


def test_the_end_is_told_without_a_bar(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("{'loss': 0.5, 'epoch': 0.5}\n{'train_runtime': '91.5', 'train_loss': '0.5', 'epoch': '1'}\n")
    run = read_run(path)
    assert [event.kind for event in run.events] == [EventKind.FINISHED]
    assert run.step == 1


@pytest.mark.parametrize(("stated", "every"), [("", 1), ("TrainingArguments(logging_steps=10, x=1)\n", 10)])
def test_without_a_bar_dicts_are_counted(tmp_path: Path, stated: str, every: int) -> None:
    path = tmp_path / "train.log"
    dicts = [{"loss": f"{n / 8:.4g}", "learning_rate": "1e-06", "epoch": f"{n / 100}"} for n in range(1, 6)]
    path.write_text(stated + "".join(f"{logs}\n" for logs in dicts) + "{'eval_loss': 'nan', 'epoch': '0.05'}\n")
    run = read_run(path)
    assert values(run, "loss") == {n * every: n / 8 for n in range(1, 6)}, "numbers in quotes are numbers"
    assert list(values(run, "eval_loss")) == [5 * every]
    assert math.isnan(values(run, "eval_loss")[5 * every])


def test_a_second_training_in_one_log_is_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(TRL + bar(0, 12) + "".join(trained(at, 12, 1) for at in range(1, 5)) + "\n")
    run = read_run(path)
    assert [mark.step for mark in run.restarts] == [1]
    assert values(run, "reward")[4] == 1.0
    assert (run.step, run.total_steps) == (4, 12)


def test_bars_that_tqdm_leaves_out(tmp_path: Path) -> None:
    """Of quick steps, and after a resumption, hardly any is drawn but the one behind each dict."""
    path = tmp_path / "train.log"
    dicts = "".join(f"{CLEAR}{{'loss': {at / 8}, 'epoch': {at / 80}}}\n{bar(at, 80)}" for at in range(45, 60, 5))
    after = f"{bar(0, 8)}{CLEAR}{{'eval_loss': 0.5, 'epoch': 0.6875}}\n{bar(55, 80)}{bar(8, 8)}{CLEAR}"
    end = f"{{'loss': 7.5, 'epoch': 0.75}}\n{bar(60, 80)}{CLEAR}{{'reward': 1, 'epoch': 0.75}}\n{bar(60, 80)}\n"
    path.write_text(bar(0, 80) + bar(45, 80) + dicts + after + end)
    run = read_run(path)
    # Only of the second one nothing tells yet how far apart they are.
    assert values(run, "loss") == {45: 50 / 8, 55: 55 / 8, 60: 60 / 8}
    assert values(run, "reward") == {60: 1.0}, "a second dict of one step"
    assert (run.step, run.total_steps, run.restarts) == (60, 80, [])


def test_slime(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(SLIME)
    run = read_run(path)
    assert values(run, "rollout/raw_reward") == {0: 0.25, 1: 0.75}
    assert values(run, "rollout/logp") == {0: -0.5, 1: -0.25}
    assert values(run, "train/pg_loss")[0] == 1.0, "updates of one rollout are averaged"
    assert math.isnan(values(run, "train/pg_loss")[1])
    assert values(run, "train/grad_norm") == {0: 3.0, 1: math.inf}
    assert values(run, "own") == {0: 3.0}
    assert values(run, "eval/aime") == {0: 0.125}
    assert run.restarts == []
    assert (run.dialect, run.indicators["reward"], run.indicators["validation"]) == (
        "other", "rollout/raw_reward", "eval/aime",
    )  # fmt: skip


def test_slimes_updates_without_a_rollout_keep_their_number(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("step 7: {'train/loss': 0.5}\nstep 8: {'train/loss': 0.25}\n")
    assert values(read_run(path), "train/loss") == {7: 0.5, 8: 0.25}


def test_openrlhf(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(OPENRLHF)
    run = read_run(path)
    assert values(run, "policy_loss") == {1: -0.5, 2: -0.25, 3: -0.125}
    assert values(run, "kl") == {1: 0.0, 2: 0.001, 3: 0.002}


@pytest.mark.parametrize(
    "line",
    [
        "{'loss': 0.5}",
        "{'epoch': 1, 'role': 'user', 'content': 'hi'}",
        "The model said {'loss': 0.5, 'epoch': 1}",
        "{'loss': 0.5, 'epoch': 1} is what it said",
        "{'loss': 0.5, 'epoch': 1, 'x': {'y': 1}}",
        "{'loss': 0.5, 'epoch': 1, 'x': f(2)}",
        "{'loss': 0.5, 'epoch': 1",
        "{'loss': '0.5s', 'epoch': 1.5.2}",
        "rollout 3: {'a': 1}",
        "step 3: {'rollout/a': 1}",
        "mystep 3: {'train/a': 1}",
        "Global step 3: {'a': 1}",
    ],
)
def test_what_only_looks_like_metrics(line: str) -> None:
    assert not [r for r in console.ConsoleDecoder().decode(line.encode(), 1) if isinstance(r, Row | Event)]


def test_a_dict_does_not_become_settings(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("{'loss': 0.5, 'epoch': 1}\n")
    assert read_run(path).settings == {}


def test_half_a_dict_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("{'loss': 0.5, 'epoch': 0.1}\n{'loss': 0.2")
    run = read_run(path)
    assert values(run, "loss") == {1: 0.5}


def test_checkpoints_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(TRL + "[INFO|trainer.py:3503] 2025-01-02 >> Saving model checkpoint to out/checkpoint-500\n")
    assert read_run(path).checkpoints == {500: "out/checkpoint-500"}


@pytest.mark.parametrize("name", CONSOLES)
@given(cuts=st.lists(st.integers(0, 10**6), max_size=12))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_cut_gives_the_same_run(tmp_path: Path, name: str, cuts: list[int]) -> None:
    path, data = tmp_path / "train.log", CONSOLES[name].encode()
    whole, _ = feed_in_pieces(path, console, data, [])
    pieces, _ = feed_in_pieces(path, console, data, cuts)
    assert pieces.keys == whole.keys
    assert {key: repr(values(pieces, key)) for key in pieces.keys} == {
        key: repr(values(whole, key)) for key in whole.keys
    }
    assert (pieces.step, pieces.total_steps, pieces.outcome) == (whole.step, whole.total_steps, whole.outcome)


@pytest.mark.parametrize("name", CONSOLES)
@given(at=st.integers(0, 10**6), byte=st.integers(0, 255))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_flipped_byte_is_survived(tmp_path: Path, name: str, at: int, byte: int) -> None:
    data = bytearray(CONSOLES[name].encode())
    data[at % len(data)] = byte
    run, _ = feed_in_pieces(tmp_path / "train.log", console, bytes(data), [])
    assert run.keys
