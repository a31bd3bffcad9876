"""The steps of dicts on a console: from bars before and behind them, from epochs, by counting, and over
restarts.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

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
from log_reading import drain, notes, read_text, values

from verl_tui.records import EventKind, MetricRows
from verl_tui.runs.views.state import State, state
from verl_tui.sources.formats.console import reader as console
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ERROR = "Traceback (most recent call last):\nKeyError: 1\n"


class Console(NamedTuple):
    """A console, and the steps of its dicts."""

    text: str
    steps: Sequence[int]
    """Of the losses."""
    printed: Sequence[int] = ()
    """The losses in eighths, where these are not the steps."""
    now: tuple[int, int | None] | None = None
    """The step, and how many there are."""
    more: Mapping[str, Sequence[int]] = {}
    """Other metrics, and their steps."""
    restarts: Sequence[int] = ()
    note: str | None = None
    """How what is said of it begins, empty for nothing."""
    finished: bool = False


def line(at: int, total: int) -> str:
    """Return a bar on a line of its own."""
    return f"{bar(at, total)[1:]}\n"


def printed(at: int) -> str:
    return f"{{'loss': {at / 8}, 'reward': {at / 100}, 'epoch': {at / 400:.4g}}}\n"


def cleared(
    draw: Callable[[int, int], str], total: int, every: int, *, first: bool = False
) -> Console:
    """Return a copy of a console in which the bar that was cleared for a dict is missing."""
    logged = [at for at in range(1, total + 1) if at % every == 0 or (first and at == 1)]  # fmt: skip
    lines = (
        printed(at) * (at in logged) + draw(at, total).strip("\r\n") + "\n"
        for at in range(1, total + 1)
    )
    return Console("".join(lines), logged, now=(total, total), finished=True)


def each(*steps: int, total: int) -> str:
    """Return dicts, each with the bar of its step behind it."""
    return "".join(f"{printed(at)}{bare_bar(at, total)}" for at in steps)


QUOTED = "".join(f"{{'loss': '{n / 8:.4g}', 'epoch': '{n / 100}'}}\n" for n in range(1, 6))  # fmt: skip
QUOTED += "{'eval_loss': 'nan', 'epoch': '0.05'}\n"
ATTEMPT = bare_bar(0, 20) + "".join(
    f"{bare_bar(at, 20)}{{'loss': 0.5, 'learning_rate': 0.001, 'epoch': {at / 80}}}\n{bare_bar(at, 20)}"
    for at in range(1, 9)
)
LEFT_OUT = (
    bar(0, 80) + bar(45, 80)
    + "".join(f"{CLEAR}{{'loss': {at / 8}, 'epoch': {at / 80}}}\n{bar(at, 80)}" for at in range(45, 60, 5))
    + f"{bar(0, 8)}{CLEAR}{{'eval_loss': 0.5, 'epoch': 0.6875}}\n{bar(55, 80)}{bar(8, 8)}{CLEAR}"
    + f"{{'loss': 7.5, 'epoch': 0.75}}\n{bar(60, 80)}{CLEAR}{{'reward': 1, 'epoch': 0.75}}\n{bar(60, 80)}\n"
)  # fmt: skip
BETWEEN = (
    line(0, 40) + "".join(f"{line(at, 40)}{kept_back((at,))}" for at in (1, 2, 3))
    + f"{line(3, 40)}{EVALUATED}{line(4, 40)}{kept_back((4,))}{kept_back((5,))}"
    + f"{line(6, 40)}{kept_back((6,))}{line(7, 40)}{line(8, 40)}"
)  # fmt: skip
UNSTATED = line(0, 40) + "".join(
    f"{line(at, 40)}{kept_back((at,))}{line(at + 1, 40)}" for at in (5, 10)
)
CONSOLES = {
    "kept back by a buffer: of the steps at which the bar was cleared": Console(
        BUFFERED, range(2, 42, 2), now=(40, 40), more={"eval_loss": [20]}, note="", finished=True
    ),
    "bars are rare, as W&B keeps them: counted": Console(
        CAPTURED, range(1, 19), now=(18, 40), note="18 steps are estimated"
    ),
    "no bar: counted, numbers in quotes": Console(QUOTED, range(1, 6), more={"eval_loss": [5]}),
    "no bar, but the interval": Console(
        f"TrainingArguments(logging_steps=10, x=1)\n{QUOTED}", range(10, 60, 10), range(1, 6), more={"eval_loss": [50]}
    ),
    **{
        f"a copy without the bars that were cleared, every {every} of {total}, {draw.__name__}": cleared(draw, total, every)
        for draw in (bar, bare_bar)
        for total, every in ((40, 1), (45, 5), (70, 10), (150, 25), (32, 8))
    },
    "such a copy with the first step": cleared(bar, 60, 10, first=True),
    "such a copy with bare bars": cleared(bare_bar, 80, 20, first=True),
    "an evaluation as long as the training": Console(
        each(50, 60, total=90) + "".join(bare_bar(at, 90, 1.0) for at in range(91)) + bare_bar(60, 90) + bare_bar(61, 90),
        [1, 60], [50, 60],
    ),
    "a bar that begins again with its dicts": Console(ATTEMPT * 2, range(1, 9), [4] * 8, restarts=[1]),
    "a second training": Console(
        TRL + bar(0, 12) + "".join(trained(at, 12, 1) for at in range(1, 5)) + "\n",
        [1, 2, 3, 4, *range(6, 21, 2)], now=(4, 12), restarts=[1],
    ),
    "a resumed training": Console(
        TRL + bar(0, 30) + "".join(trained(at, 30, 1).lstrip("\r") for at in range(11, 15)) + "\n",
        sorted({*range(2, 12, 2), *range(11, 15), *range(16, 21, 2)}), now=(14, 30), restarts=[11],
    ),
    "bars that tqdm leaves out, a second dict of a step": Console(
        LEFT_OUT, [45, 50, 55, 60], now=(60, 80), more={"reward": [60]}
    ),
    "before a bar they lie evenly": Console(
        f"{line(0, 100)}{kept_back((1, 2, 3))}{line(38, 100)}", [12, 24, 36], [1, 2, 3]
    ),
    "one before the first bar leaves the later ones to their bars": Console(
        f"{kept_back((1,))}{line(5, 20)}" + "".join(f"{kept_back((at,))}{line(at, 20)}" for at in (10, 15)), [1, 10, 15]
    ),
    "one between the bars of two steps is of the first": Console(BETWEEN, range(1, 7), more={"eval_loss": [3]}),
    "a step that no bar states": Console(
        f"{UNSTATED}{line(13, 40)}{kept_back((15,))}{line(16, 40)}", [5, 10, 15], note="1 step is estimated"
    ),
    "two at one bar leave the later ones to bars in order": Console(
        f"{bar(0, 40)}{trained(2, 40)}{trained(4, 40)}{CLEAR}{kept_back((6, 8))}{bar(8, 40)}"
        + "".join(f"{CLEAR}{kept_back((at,))}{bar(at, 40)}" for at in (20, 30)) + "\n",
        [2, 4, 6, 8, 20, 30],
    ),
    "two without a bar between them show that bars are in no order": Console(
        f"{line(0, 40)}{kept_back((1, 2))}{ERROR}{line(10, 40)}{kept_back((3,))}{line(12, 40)}", [1, 2, 3]
    ),
    "no bar behind it": Console(f"{bar(0, 20)}\n{{'loss': 0.5, 'epoch': 0.1}}\n{ERROR}", [1], [4]),
}  # fmt: skip


@pytest.mark.parametrize("one", CONSOLES.values(), ids=CONSOLES)
def test_the_steps_of_dicts(one, tmp_path):
    run = read_text(tmp_path, one.text)
    eighths = one.printed or one.steps
    assert values(run, "loss") == {
        step: at / 8 for step, at in zip(one.steps, eighths, strict=True)
    }
    assert {key: [*values(run, key)] for key in one.more} == one.more
    assert [mark.step for mark in run.restarts] == [*one.restarts]
    assert one.now in (None, (run.step, run.total_steps))
    if one.note is not None:
        assert notes(run).startswith(one.note)
        assert bool(notes(run)) is bool(one.note)
    assert (state(run, 0.0) is State.FINISHED) or not one.finished


def test_what_else_the_training_of_a_bar_says(tmp_path):
    run = read_text(tmp_path, TRL)
    assert values(run, "reward") == {at: at / 4 for at in range(2, 21, 2)}
    assert values(run, "eval_loss") == {6: 0.25}, "its own bar tells no step"
    assert math.isnan(values(run, "grad_norm")[4])
    assert values(run, "kl")[20] == 1e-05
    assert (run.step, run.total_steps, run.restarts) == (20, 20, [])
    assert run.dialect == "other"
    assert state(run, 0.0) is State.FINISHED
    assert "train_loss" not in run.keys


def ppo_of_trl(step: int, total: int = 4) -> str:
    """Return what TRL's PPO prints of a step: it clears the bar of the step before, and paints that
    one again before the next.
    """
    logs = {
        "objective/kl": step / 8, "objective/rlhf_reward": -0.5, "objective/scores": step / 4, "loss/value_avg": 0.5,
        "lr": 1e-06, "episode": 8 * step, "epoch": 0.1,
    }  # fmt: skip
    return f"{CLEAR}{logs}\n{bar(step - 1, total)}{bar(step, total)}"


def bars_kept(bars: tuple[int, ...], first: str) -> str:
    """Return a console of TRL's PPO without clearings: of all bars it may have kept some, or none."""
    lines = [first]
    for step in range(1, 5):
        lines.append(ppo_of_trl(step).removeprefix(CLEAR).partition("\n")[0])
        lines += [bar(step + at, 4) for at in bars]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "text",
    [
        "===training policy===\n" + bar(0, 4) + "".join(map(ppo_of_trl, range(1, 5))) + "\n",
        *(bars_kept(bars, first) for bars in ((-1, 0), (0,), ()) for first in ("", bar(0, 4))),
    ],
)  # fmt: skip
def test_trls_ppo_prints_a_step_before_the_bar_goes_on_to_it(text, tmp_path):
    run = read_text(tmp_path, text)
    assert values(run, "objective/scores") == {1: 0.25, 2: 0.5, 3: 0.75, 4: 1.0}
    assert run.step == 4
    assert run.sources[str(tmp_path / "train.log")].status.title == "TRL console"


def test_the_end_is_reported_without_a_bar(tmp_path):
    end = "{'train_runtime': '91.5', 'train_loss': '0.5', 'epoch': '1'}\n"
    run = read_text(tmp_path, "{'loss': 0.5, 'epoch': 0.5}\n" + end)
    assert [event.kind for event in run.events] == [EventKind.FINISHED]
    assert run.step == 1


def test_the_named_bar_of_a_training_shows_its_step_without_a_dict(tmp_path):
    run = read_text(tmp_path, "Train: " + bar(31, 90).lstrip() + "[INFO:swift] saved\n")
    assert (run.step, run.total_steps) == (31, 90)


def test_without_a_dict_a_bar_that_begins_again_is_another_attempt(tmp_path):
    attempts = "".join(
        "worker exited, another attempt\n" + "".join(bare_bar(at, 90) for at in steps)
        for steps in (range(5), range(7))
    )
    run = read_text(tmp_path, each(50, 60, 70, total=90) + attempts)
    assert (run.step, run.total_steps) == (6, 90)
    assert state(run, 0.0) is not State.FINISHED


@pytest.mark.parametrize(
    ("text", "appended", "shown"),
    [
        # as soon as the bar behind it is painted
        ("", [bar(0, 20), bar(5, 20), CLEAR, printed(5), bar(5, 20)], [[], [], [], [], [[5]]]),
        # at once, where bars have ceased
        (f"{bar(0, 400)}{trained(2, 400)}{trained(4, 400)}\n{kept_back(range(6, 72, 2))}", [kept_back((72,))], [[[72]]]),
    ],
)  # fmt: skip
def test_when_a_dict_is_shown(text, appended, shown, tmp_path):
    path = tmp_path / "train.log"
    path.write_text(text)
    source = FileSource(path, console)
    drain(source)
    found = []
    for more in appended:
        with path.open("a") as file:
            file.write(more)
        found.append([list(one.steps) for one in drain(source) if isinstance(one, MetricRows)])  # fmt: skip
    assert found == shown


@pytest.mark.parametrize(
    ("written", "key", "total"),
    [
        ("{'loss': '0.5', 'epoch': '0.1', 'global_step/max_steps': '10/438', 'elapsed_time': '1s'}", "loss", 438),
        ("{'loss': 0.5, 'step': 10}", "loss", None),
        ("{'train/loss': 0.5, 'train/global_step': 10, 'epoch': 0.1}", "train/loss", None),
        ("{'loss': 0.5, 'current_steps': 10, 'total_steps': 438}", "loss", 438),
        ("{'actor_loss': 0.5, 'iteration': 10}", "actor_loss", None),
        ("{'reward_mean': 0.5, 'iter': '10'}", "reward_mean", None),
    ],
)  # fmt: skip
def test_a_stated_step_is_believed_before_any_bar(tmp_path, written, key, total):
    stated = f"{written}\n{bar(6, 20)}\n{written.replace('10', '12')}\n"
    run = read_text(tmp_path, f"{trained(4)}{bar(6, 20)}{CLEAR}{stated}")
    assert [at for at in values(run, key) if at > 4] == [10, 12]
    assert total is None or run.total_steps in (20, total)
    assert not {"step", "iter", "iteration", "current_steps", "max_steps"} & {*run.keys}


def goes_on(before: str, reached: int, total: int) -> str:
    """Return a console that goes on with another bar and repeats no step."""
    after = range(reached + 2, reached + 8, 2)
    return before + bar(0, total) + "".join(trained(at, total).lstrip("\r") for at in after) + "\n"  # fmt: skip


KILLED = bar(0, 20) + "".join(map(trained, range(2, 10, 2))) + "\n"


@pytest.mark.parametrize(
    ("text", "reached", "begun"),
    [
        # killed just behind a checkpoint, or given more steps once it had finished
        (goes_on(TRL, 20, 40), 20, 22),
        (goes_on(KILLED, 8, 40), 8, 10),
        (goes_on(KILLED, 8, 20), 8, 10),
        # it repeats the last step
        (f"{KILLED}{bar(0, 20)}{(trained(8) + trained(10)).lstrip()}\n", 8, 8),
    ],
)
def test_what_goes_on_after_another_start_is_a_restart(tmp_path, text, reached, begun):
    run = read_text(tmp_path, text)
    assert [(mark.step, mark.reason) for mark in run.restarts] == [
        (begun, f"went on from step {reached} after another start")
    ]
