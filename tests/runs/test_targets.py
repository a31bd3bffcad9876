"""Targets of metrics: when a run reached them; which value is the best one."""

from __future__ import annotations

import pytest
from log_reading import read_run
from run_views import make_run

from verl_tui.runs.views.checkpoints import Best, BestBy, best, targets_of

LOSS = "critic/vf_loss"
FALLS = {LOSS: [1.0 / step for step in range(1, 121)]}


def test_what_is_better_high_is_reached_from_below():
    (found,) = targets_of(make_run(), {"reward": 0.5})
    assert found["key"] == "critic/score/mean"
    assert found["reached_step"] == 42  # 1 - exp(-42 / 60) is 0.503
    assert found["step"] == 120
    assert (found["best_step"], found["best"]) == (found["step"], found["value"])


def test_what_is_better_low_is_reached_from_above():
    (found,) = targets_of(make_run(columns=FALLS), {"value_loss": 0.1})
    assert found["reached_step"] == 10


def test_what_is_never_reached_and_what_is_not_logged():
    run = make_run(columns=FALLS)
    found = targets_of(
        run, {"reward": 2.0, "entropy": 1.0, "no/such": 1.0, LOSS: float("nan")}
    )
    assert [(one["metric"], one["reached_step"]) for one in found] == [("reward", None)]


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ("reward", BestBy("reward")),
        ("val/acc:max", BestBy("val/acc", lowest=False)),
        ("val/loss:min", BestBy("val/loss", lowest=True)),
        ("a:b", BestBy("a:b")),
        (":min", BestBy(":min")),
    ],
)
def test_what_picks_the_best(text, by):
    assert BestBy.of(text) == by


def test_what_a_restart_gave_up_is_neither_the_best_nor_reaches_a_target(tmp_path):
    path = tmp_path / "train.log"
    form = "step:{} - actor/entropy:0.5 - critic/score/mean:{}\n"
    first = [form.format(at, at / 100) for at in range(1, 81)]
    again = [form.format(at, at / 200) for at in range(41, 61)]
    path.write_text("".join([*first, "Setting global step to 40\n", *again]))
    run = read_run(path)
    top = best(run)
    assert top is not None
    assert (top.step, top.value) == (40, 0.4)
    (found,) = targets_of(run, {"reward": 0.5})
    assert (found["reached_step"], found["best_step"], found["step"]) == (None, 40, 60)


def _at(found: Best | None) -> int | None:
    return None if found is None else found.step


def test_the_best_is_the_first_of_the_highest_or_the_lowest():
    run = make_run(columns={LOSS: [0.5, 0.9, 0.1, 0.9, 0.1, *[0.5] * 115]})
    assert _at(best(run, "value_loss")) == 3
    assert _at(best(run, LOSS, lowest=False)) == 2
    assert _at(best(run, LOSS, lowest=True)) == 3
    assert best(run, "no/such") is None
