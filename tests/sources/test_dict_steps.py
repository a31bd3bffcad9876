"""The steps of dicts on a console: from bars before and behind them, from epochs, by counting, and over
restarts.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from dict_consoles import (
    BUFFERED,
    CAPTURED,
    CLEAR,
    EVALUATED,
    TRL,
    bar,
    bare_bar,
    kept_back,
    trained,
)
from log_reading import drain, read_run, values

from verl_tui.records import EventKind, MetricRows
from verl_tui.runs.views.state import State, state
from verl_tui.sources.formats.console import reader as console
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_the_step_is_that_of_the_trainings_bar(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(TRL)
    run = read_run(path)
    assert values(run, "reward") == {at: at / 4 for at in range(2, 21, 2)}
    assert values(run, "eval_loss") == {6: 0.25}, (
        "an evaluation's own bar tells no step"
    )
    assert math.isnan(values(run, "grad_norm")[4])
    assert values(run, "kl")[20] == 1e-05
    assert (run.step, run.total_steps, run.restarts) == (20, 20, [])
    assert run.dialect == "other"
    assert state(run, 0.0) is State.FINISHED
    assert "train_loss" not in run.keys


def ppo_of_trl(step: int, total: int = 4, **others: float) -> str:
    """Return what TRL's PPO prints of a step: it clears the bar of the step before, and paints that
    one again before the next.
    """
    logs = {"eps": 1, "objective/kl": step / 8, "objective/rlhf_reward": -0.5}
    logs |= {
        "objective/scores": step / 4,
        **others,
        "lr": 1e-06,
        "episode": 8 * step,
        "epoch": 0.1,
    }
    before = bar(step - 1, total)
    return f"{CLEAR}{logs}\n{before}{bar(step, total)}"


def test_trls_ppo_prints_a_step_before_the_bar_goes_on_to_it(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    steps = (ppo_of_trl(step, **{"loss/value_avg": 0.5}) for step in range(1, 5))
    path.write_text("===training policy===\n" + bar(0, 4) + "".join(steps) + "\n")
    run = read_run(path)
    assert values(run, "objective/scores") == {1: 0.25, 2: 0.5, 3: 0.75, 4: 1.0}
    assert (run.step, run.total_steps) == (4, 4)
    assert run.sources[str(path)].status.title == "TRL console"


@pytest.mark.parametrize("bars", [(-1, 0), (0,), ()])
@pytest.mark.parametrize("first", ["", bar(0, 4)])
def test_the_steps_of_trls_ppo_without_clearings(
    bars: tuple[int, ...], first: str, tmp_path: Path
) -> None:
    """Of all bars around a dict a console may have kept some, or none."""
    lines = [first]
    for step in range(1, 5):
        printed = ppo_of_trl(step, **{"loss/value_avg": 0.5})
        lines.append(printed.removeprefix(CLEAR).partition("\n")[0])
        lines += [bar(step + at, 4) for at in bars]
    path = tmp_path / "train.log"
    path.write_text("\n".join(lines) + "\n")
    run = read_run(path)
    assert values(run, "objective/scores") == {1: 0.25, 2: 0.5, 3: 0.75, 4: 1.0}
    assert run.step == 4


def test_the_end_is_reported_without_a_bar(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(
        "{'loss': 0.5, 'epoch': 0.5}\n{'train_runtime': '91.5', 'train_loss': '0.5', 'epoch': '1'}\n"
    )
    run = read_run(path)
    assert [event.kind for event in run.events] == [EventKind.FINISHED]
    assert run.step == 1


@pytest.mark.parametrize(
    ("stated", "every"), [("", 1), ("TrainingArguments(logging_steps=10, x=1)\n", 10)]
)
def test_without_a_bar_dicts_are_counted(
    tmp_path: Path, stated: str, every: int
) -> None:
    path = tmp_path / "train.log"
    dicts = [
        {"loss": f"{n / 8:.4g}", "learning_rate": "1e-06", "epoch": f"{n / 100}"}
        for n in range(1, 6)
    ]
    path.write_text(
        stated
        + "".join(f"{logs}\n" for logs in dicts)
        + "{'eval_loss': 'nan', 'epoch': '0.05'}\n"
    )
    run = read_run(path)
    assert values(run, "loss") == {n * every: n / 8 for n in range(1, 6)}, (
        "numbers in quotes are numbers"
    )
    assert list(values(run, "eval_loss")) == [5 * every]
    assert math.isnan(values(run, "eval_loss")[5 * every])


def printed(at: int, each: int = 400) -> str:
    """Return a dict of a step, so many of which are an epoch."""
    return f"{{'loss': {at / 8}, 'reward': {at / 100}, 'epoch': {at / each:.4g}}}\n"


def is_logged(at: int, every: int, *, first: bool = False) -> bool:
    return at % every == 0 or (first and at == 1)


@pytest.mark.parametrize("draw", [bar, bare_bar])
@pytest.mark.parametrize(
    ("total", "every", "first"),
    [
        (40, 1, False),
        (45, 5, False),
        (70, 10, False),
        (150, 25, False),
        (32, 8, False),
        (60, 10, True),
        (80, 20, True),
    ],
)
def test_the_bar_that_was_cleared_for_a_dict_is_missing_in_a_copy(
    draw: Callable[[int, int], str],
    total: int,
    every: int,
    first: bool,
    tmp_path: Path,
) -> None:
    steps = range(1, total + 1)
    logged = [at for at in steps if is_logged(at, every, first=first)]
    lines = (
        printed(at) * (at in logged) + draw(at, total).strip("\r\n") + "\n"
        for at in steps
    )
    path = tmp_path / "train.log"
    path.write_text("".join(lines))
    run = read_run(path)
    assert values(run, "loss") == {at: at / 8 for at in logged}
    assert (run.step, run.total_steps) == (total, total)
    assert state(run, 0.0) is State.FINISHED


def test_without_a_dict_a_bar_that_begins_again_is_another_attempt(
    tmp_path: Path,
) -> None:
    attempts = [range(5), range(7)]
    dicts = "".join(f"{printed(at)}{bare_bar(at, 90)}" for at in (50, 60, 70))
    path = tmp_path / "train.log"
    path.write_text(
        dicts
        + "".join(
            f"worker exited, attempt {n} of 3\n"
            + "".join(bare_bar(at, 90) for at in one)
            for n, one in enumerate(attempts)
        )
    )
    run = read_run(path)
    assert (run.step, run.total_steps) == (6, 90)
    assert state(run, 0.0) is not State.FINISHED


def test_the_bar_of_an_evaluation_as_long_as_the_training_is_no_other_attempt(
    tmp_path: Path,
) -> None:
    evaluation = "".join(bare_bar(at, 90, 1.0) for at in range(91))
    dicts = "".join(f"{printed(at)}{bare_bar(at, 90)}" for at in (50, 60))
    path = tmp_path / "train.log"
    path.write_text(f"{dicts}{evaluation}{bare_bar(60, 90)}{bare_bar(61, 90)}")
    run = read_run(path)
    assert run.restarts == []


def test_a_bar_that_begins_again_with_its_dicts_is_one_restart(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    steps = [
        f"{bare_bar(at, 20)}{{'loss': 0.5, 'learning_rate': 0.001, 'epoch': {at / 80}}}\n{bare_bar(at, 20)}"
        for at in range(1, 9)
    ]
    attempt = bare_bar(0, 20) + "".join(steps)
    path.write_text(attempt * 2)
    run = read_run(path)
    assert [mark.step for mark in run.restarts] == [1]


def test_a_second_training_in_one_log_is_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(
        TRL + bar(0, 12) + "".join(trained(at, 12, 1) for at in range(1, 5)) + "\n"
    )
    run = read_run(path)
    assert [mark.step for mark in run.restarts] == [1]
    assert values(run, "reward")[4] == 1.0
    assert (run.step, run.total_steps) == (4, 12)


def test_bars_that_tqdm_leaves_out(tmp_path: Path) -> None:
    """Of quick steps, and after a resumption, hardly any is drawn but the one behind each dict."""
    path = tmp_path / "train.log"
    dicts = "".join(
        f"{CLEAR}{{'loss': {at / 8}, 'epoch': {at / 80}}}\n{bar(at, 80)}"
        for at in range(45, 60, 5)
    )
    after = f"{bar(0, 8)}{CLEAR}{{'eval_loss': 0.5, 'epoch': 0.6875}}\n{bar(55, 80)}{bar(8, 8)}{CLEAR}"
    end = f"{{'loss': 7.5, 'epoch': 0.75}}\n{bar(60, 80)}{CLEAR}{{'reward': 1, 'epoch': 0.75}}\n{bar(60, 80)}\n"
    path.write_text(bar(0, 80) + bar(45, 80) + dicts + after + end)
    run = read_run(path)
    assert values(run, "loss") == {45: 45 / 8, 50: 50 / 8, 55: 55 / 8, 60: 60 / 8}
    assert values(run, "reward") == {60: 1.0}, "a second dict of one step"
    assert (run.step, run.total_steps, run.restarts) == (60, 80, [])


def test_dicts_that_a_buffer_kept_back_are_of_the_steps_at_which_the_bar_was_cleared(
    tmp_path: Path,
) -> None:
    path = tmp_path / "train.log"
    path.write_text(BUFFERED)
    run = read_run(path)
    assert values(run, "loss") == {at: at / 8 for at in range(2, 42, 2)}
    assert values(run, "eval_loss") == {20: 0.25}
    assert (run.step, run.total_steps, run.restarts) == (40, 40, [])
    assert state(run, 0.0) is State.FINISHED
    assert [source.status.note for source in run.sources.values()] == [None, None]


def test_dicts_among_which_bars_are_rare_are_counted_and_this_is_said(
    tmp_path: Path,
) -> None:
    """W&B keeps bars and dicts of a console in the order in which it saw them last."""
    path = tmp_path / "output.log"
    path.write_text(CAPTURED)
    run = read_run(path)
    assert values(run, "loss") == {at: at / 8 for at in range(1, 19)}
    assert (run.step, run.total_steps, run.restarts) == (18, 40, [])
    said = run.sources[str(path)].status.note
    assert said is not None
    assert said.startswith("18 steps are estimated")


def test_dicts_before_a_bar_lie_evenly_before_it(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(f"{bar(0, 100)[1:]}\n{kept_back((1, 2, 3))}{bar(38, 100)[1:]}\n")
    assert list(values(read_run(path), "loss")) == [12, 24, 36]


def test_a_dict_before_the_first_bar_leaves_the_later_ones_to_their_bars(
    tmp_path: Path,
) -> None:
    path = tmp_path / "train.log"
    later = "".join(f"{kept_back((at,))}{bar(at, 20)[1:]}\n" for at in (10, 15))
    path.write_text(f"{kept_back((1,))}{bar(5, 20)[1:]}\n{later}")
    assert list(values(read_run(path), "loss")) == [1, 10, 15]


def test_a_dict_between_the_bars_of_two_steps_is_of_the_first(tmp_path: Path) -> None:
    """So W&B keeps a console, without the clearing and with the bar as it was seen last."""
    path = tmp_path / "output.log"
    steps = "".join(f"{bar(at, 40)[1:]}\n{kept_back((at,))}" for at in (1, 2, 3))
    evaluation = f"{bar(3, 40)[1:]}\n{EVALUATED}{bar(4, 40)[1:]}\n{kept_back((4,))}"
    left_out = f"{bar(6, 40)[1:]}\n{kept_back((6,))}{bar(7, 40)[1:]}\n"
    path.write_text(
        f"{bar(0, 40)[1:]}\n{steps}{evaluation}{kept_back((5,))}{left_out}{bar(8, 40)[1:]}\n"
    )
    run = read_run(path)
    assert values(run, "loss") == {at: at / 8 for at in (1, 2, 3, 4, 5, 6)}
    assert values(run, "eval_loss") == {3: 0.25}


def test_a_step_that_no_bar_states_is_estimated_by_the_interval(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    stated = "".join(
        f"{bar(at, 40)[1:]}\n{kept_back((at,))}{bar(at + 1, 40)[1:]}\n"
        for at in (5, 10)
    )
    path.write_text(
        f"{bar(0, 40)[1:]}\n{stated}{bar(13, 40)[1:]}\n{kept_back((15,))}{bar(16, 40)[1:]}\n"
    )
    run = read_run(path)
    assert values(run, "loss") == {at: at / 8 for at in (5, 10, 15)}
    said = run.sources[str(path)].status.note
    assert said is not None
    assert said.startswith("1 step is estimated")


def test_two_dicts_at_one_bar_leave_the_later_ones_to_bars_that_are_known_to_be_in_order(
    tmp_path: Path,
) -> None:
    path = tmp_path / "train.log"
    later = "".join(f"{CLEAR}{kept_back((at,))}{bar(at, 40)}" for at in (20, 30))
    both = f"{CLEAR}{kept_back((6, 8))}{bar(8, 40)}"
    path.write_text(f"{bar(0, 40)}{trained(2, 40)}{trained(4, 40)}{both}{later}\n")
    assert values(read_run(path), "loss") == {at: at / 8 for at in (2, 4, 6, 8, 20, 30)}


def test_two_dicts_without_a_bar_between_them_show_that_bars_are_in_no_order(
    tmp_path: Path,
) -> None:
    path = tmp_path / "output.log"
    error = "Traceback (most recent call last):\nKeyError: 1\n"
    later = f"{bar(10, 40)[1:]}\n{kept_back((3,))}{bar(12, 40)[1:]}\n"
    path.write_text(f"{bar(0, 40)[1:]}\n{kept_back((1, 2))}{error}{later}")
    assert values(read_run(path), "loss") == {at: at / 8 for at in (1, 2, 3)}


def test_a_dict_is_shown_as_soon_as_the_bar_behind_it_is_painted(
    tmp_path: Path,
) -> None:
    path = tmp_path / "train.log"
    source = FileSource(path, console)
    shown = []
    for text in (
        bar(0, 20),
        bar(5, 20),
        CLEAR,
        "{'loss': 0.5, 'epoch': 0.1}\n",
        bar(5, 20),
    ):
        with path.open("a") as file:
            file.write(text)
        shown.append(
            [list(one.steps) for one in drain(source) if isinstance(one, MetricRows)]
        )
    assert shown == [[], [], [], [], [[5]]]


def test_once_bars_have_ceased_a_dict_is_shown_at_once(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    source = FileSource(path, console)
    path.write_text(
        f"{bar(0, 400)}{trained(2, 400)}{trained(4, 400)}\n{kept_back(range(6, 72, 2))}"
    )
    drain(source)
    with path.open("a") as file:
        file.write(kept_back((72,)))
    assert [
        list(one.steps) for one in drain(source) if isinstance(one, MetricRows)
    ] == [[72]]


def test_a_dict_without_a_bar_behind_it_is_shown_once_nothing_more_comes(
    tmp_path: Path,
) -> None:
    path = tmp_path / "train.log"
    path.write_text(
        f"{bar(0, 20)}\n{{'loss': 0.5, 'epoch': 0.1}}\nTraceback (most recent call last):\nKeyError: 1\n"
    )
    assert values(read_run(path), "loss") == {1: 0.5}


@pytest.mark.parametrize(
    ("written", "step", "total"),
    [
        (
            "{'loss': '0.5', 'epoch': '0.1', 'global_step/max_steps': '10/438', 'elapsed_time': '1s'}",
            10,
            438,
        ),
        ("{'loss': 0.5, 'step': 10}", 10, None),
        ("{'train/loss': 0.5, 'train/global_step': 10, 'epoch': 0.1}", 10, None),
        ("{'loss': 0.5, 'current_steps': 10, 'total_steps': 438}", 10, 438),
        ("{'actor_loss': 0.5, 'iteration': 10}", 10, None),
        ("{'reward_mean': 0.5, 'iter': '10'}", 10, None),
    ],
)
def test_a_stated_step_is_believed_before_any_bar(
    tmp_path: Path, written: str, step: int, total: int | None
) -> None:
    path = tmp_path / "train.log"
    path.write_text(
        f"{trained(4)}{bar(6, 20)}{CLEAR}{written}\n{bar(6, 20)}\n{written.replace('10', '12')}\n"
    )
    run = read_run(path)
    (key,) = {
        key
        for key in run.keys
        if key.startswith(("loss", "train/", "actor", "reward_"))
    } - {
        "reward",
        "loss",
    } or {"loss"}
    assert [at for at in values(run, key) if at > 4] == [step, 12]
    assert total is None or run.total_steps in (20, total)
    assert not {"step", "iter", "iteration", "current_steps", "max_steps"} & set(
        run.keys
    )


def test_a_resumed_training_goes_on_where_its_bar_says(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(
        TRL
        + bar(0, 30)
        + "".join(trained(at, 30, 1).lstrip("\r") for at in range(11, 15))
        + "\n"
    )
    run = read_run(path)
    assert [mark.step for mark in run.restarts] == [11]
    assert values(run, "loss") == {
        at: at / 8 for at in (*range(2, 12, 2), *range(11, 15), *range(16, 21, 2))
    }
    assert (run.step, run.total_steps) == (14, 30)


@pytest.mark.parametrize(("ended", "total"), [(True, 40), (False, 40), (False, 20)])
def test_a_training_that_goes_on_with_another_bar_and_repeats_no_step_is_a_restart(
    tmp_path: Path, ended: bool, total: int
) -> None:
    """Killed just behind a checkpoint, or given more steps once it had finished."""
    path = tmp_path / "train.log"
    reached = 20 if ended else 8
    before = (
        TRL
        if ended
        else bar(0, 20) + "".join(trained(at) for at in range(2, 10, 2)) + "\n"
    )
    after = "".join(
        trained(at, total).lstrip("\r") for at in range(reached + 2, reached + 8, 2)
    )
    path.write_text(before + bar(0, total) + after + "\n")
    run = read_run(path)
    assert [(mark.step, mark.reason) for mark in run.restarts] == [
        (reached + 2, f"went on from step {reached} after another start")
    ]
    assert list(values(run, "reward")) == list(range(2, reached + 8, 2))


def test_a_training_that_repeats_only_the_last_step_goes_on_from_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "train.log"
    before, after = ("".join(map(trained, steps)) for steps in ((2, 4, 6, 8), (8, 10)))
    path.write_text(f"{bar(0, 20)}{before}\n{bar(0, 20)}{after.lstrip()}\n")
    run = read_run(path)
    assert [(mark.step, mark.reason) for mark in run.restarts] == [
        (8, "went on from step 8 after another start")
    ]
