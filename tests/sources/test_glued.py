"""Metrics on a console with something else glued to them, as where several processes print at once:
no value is lost, none is invented, and what cannot be told apart is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from log_reading import notes, read_text, values

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.runs.run import Run

BAR = "  48%|████▊     | 12/25 [00:41<00:44,  3.4s/it]"
OTHERS = [
    "(WorkerDict pid=31) weights are synchronised",
    "(RewardLoop pid=8, ip=10.0.0.4) took:7 - tries:2",
    "\x1b[36m(WorkerDict pid=31)\x1b[0m weights are synchronised",
    " INFO 02-11 17:40:12 [llm_engine.py:310] 4 requests are running",
    "WARNING the queue is full",
    "/usr/lib/python3/site-packages/torch/distributed.py:4807: UserWarning: no device id",
    "2026-02-11 17:40:12,311 - INFO - kl:7 - weights are synchronised",
    "[rank3]: [W211 17:40:12] destroy_process_group() was not called",
    "Training Progress:" + BAR,
    BAR,
]


def verl(step: int) -> str:
    return f"step:{step} - critic/score/mean:0.5 - actor/pg_loss:-0.125 - timing_s/step:{step}7.5"


def trl(step: int) -> str:
    return f"{{'loss': 0.{step}, 'rewards': {{'total': 0.25}}, 'step': {step}, 'epoch': 0.{step}}}"


def read(tmp_path: Path, *lines: str) -> Run:
    return read_text(tmp_path, "".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize("other", [*OTHERS, f"(TaskRunner pid=5) {verl(2)}", verl(2)])
def test_what_is_printed_behind_a_step_line_costs_it_nothing(tmp_path, other):
    run = read(tmp_path, verl(1) + other, verl(3), "(TaskRunner pid=5) " + verl(4))
    steps = [1, 2, 3, 4] if "step:2" in other else [1, 3, 4]
    assert values(run, "timing_s/step") == {step: step * 10 + 7.5 for step in steps}
    assert set(run.keys) == {"critic/score/mean", "actor/pg_loss", "timing_s/step"}
    assert "not read" not in notes(run)


@pytest.mark.parametrize("other", [*OTHERS, trl(2), " " + trl(2)])
def test_what_is_printed_behind_a_dict_costs_it_nothing(tmp_path, other):
    run = read(tmp_path, trl(1) + other, trl(3), trl(4))
    steps = [1, 2, 3, 4] if "'step': 2" in other else [1, 3, 4]
    assert values(run, "loss") == {step: step / 10 for step in steps}
    assert values(run, "rewards/total") == dict.fromkeys(steps, 0.25)


@pytest.mark.parametrize("line", [verl, trl])
@pytest.mark.parametrize(
    "other", ["weights are synchronised", "(WorkerDict pid=31) saved", "took 3.5", BAR]
)
def test_what_is_printed_before_them_costs_them_nothing(tmp_path, line, other):
    run = read(tmp_path, line(1), other + line(2), line(3))
    assert run.step == 3
    assert {len(values(run, key)) for key in run.keys} == {3}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (verl(2) + "17:40:12 INFO saved", 1),
        (verl(2) + "/25", 1),
        (verl(2) + "/25 is done", 1),
        ("step:2 - actor/name:7B-chat - critic/score/mean:0.5 - actor/pg_loss:1.5", 1),
        ("step:2 - critic/score/mean:0.5 - a/c:1 - a/note:none yet - a/b:x", 2),
        (trl(2).replace("0.25", "[1, 2]"), 1),
        (trl(2).replace("0.25", "<object>"), 1),
    ],
)
def test_what_cannot_be_told_apart_is_said(tmp_path, line, said):
    run = read(tmp_path, verl(1), line)
    assert f"{said} printed value" in notes(run)
    assert "not read: no number, or glued to text" in notes(run)
    assert all(value < 100 for key in run.keys for value in values(run, key).values())


def test_values_of_any_form_and_within_each_other(tmp_path):
    run = read(
        tmp_path,
        "step:1 - x/y:1 - a/b:tensor(2.0, device='cuda:0')",
        "{'loss': array(0.5, dtype=float32), 'reward': {'a': {'b': 1}}, 'ok': True, 'step': 2, 'epoch': 1}",
    )
    assert {key: values(run, key) for key in run.keys} == {
        "x/y": {1: 1.0},
        "reward/a/b": {2: 1.0},
        "a/b": {1: 2.0},
        "loss": {2: 0.5},
        "ok": {2: 1.0},
        "epoch": {2: 1.0},
    }


def test_a_line_that_wandb_cut_loses_its_last_metric(tmp_path):
    line = "step:2 - " + " - ".join(f"a/m{at}:{at}.5" for at in range(900))
    run = read(tmp_path, verl(1), line[:4096])
    assert values(run, "a/m286") == {2: 286.5}
    assert "a/m287" not in run.keys
    assert "1 step line was cut where W&B kept it" in notes(run)
