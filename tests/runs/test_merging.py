"""One run from several sources: which value holds, where it comes from, and where the run began
anew.
"""

from __future__ import annotations

import pytest
from log_reading import NOW, values

from verl_tui.records import (
    Batch,
    Event,
    EventKind,
    MetricRows,
    Restart,
    SourceStatus,
)
from verl_tui.runs.run import Run
from verl_tui.runs.views.provenance import leading, provenance_words

CONSOLE = ("verl console", 3)
LOGGER = ("verl file logger", 6)
EVENTS = ("tensorboard events", 5)


def status(path, kind, ordinal=0, modified=1000.0):
    return SourceStatus(path, kind[0], kind[1], ordinal, modified=modified)


def rows(key, points, *, order=0, times=()):
    return MetricRows(
        (key,),
        list(points),
        (list(points.values()),),
        range(order, order + len(points)),
        times,
    )


@pytest.fixture
def run():
    return Run("run")


def tell(run, source, *records, live=False):
    run.apply(Batch(run.name, source, records, live), NOW)


@pytest.mark.parametrize("console_first", [True, False])
def test_the_better_source_holds_and_the_other_fills_the_gaps(run, console_first):
    batches = [
        (status("train.log", CONSOLE, 0), rows("a", {1: 0.1, 2: 0.2, 3: 0.3})),
        (status("exp.jsonl", LOGGER, 1), rows("a", {2: 0.22, 4: 0.44})),
    ]
    for source, record in batches if console_first else reversed(batches):
        tell(run, source, record)
    assert values(run, "a") == {1: 0.1, 2: 0.22, 3: 0.3, 4: 0.44}
    assert leading(run) == {"exp.jsonl": 1}
    assert provenance_words(run, "a") == (
        "verl console train.log (2 of 4)",
        "verl file logger exp.jsonl (2 of 4)",
    )


def test_a_better_source_that_begins_anew_with_each_start_beats_a_console_that_goes_on(
    run,
):
    console = status("train.log", CONSOLE, 0)
    tell(
        run,
        console,
        rows("a", {1: 0.1, 2: 0.2}),
        Restart("steps went back"),
        rows("a", {2: 0.3, 3: 0.4}, order=2),
    )
    tell(run, status("exp.jsonl", LOGGER, 1), rows("a", {2: 0.3125, 3: 0.4125}))
    assert values(run, "a") == {1: 0.1, 2: 0.3125, 3: 0.4125}
    assert [mark.step for mark in run.restarts] == [2]


def estimated(key, points, *, order=0):
    """Return rows whose steps their log does not state."""
    return rows(key, points, order=order)._replace(estimated=True)


@pytest.mark.parametrize("console_first", [True, False])
def test_a_source_that_knows_the_steps_holds_and_no_step_is_invented_beside_it(
    run, console_first
):
    """The console counts where every fifth step is logged, and is one record ahead of the trainer's
    own history.
    """
    batches = [
        (
            status("train.log", CONSOLE, 0),
            estimated("a", {1: 0.1, 2: 0.2, 3: 0.3, 4: 0.4}),
        ),
        (
            status("state.json", EVENTS, 1),
            rows("a", {5: 0.11, 10: 0.22, 15: 0.33, 20: 0.44}),
        ),
    ]
    for source, record in batches if console_first else reversed(batches):
        tell(run, source, record)
        list(run.series("a").steps)
    assert values(run, "a") == {5: 0.11, 10: 0.22, 15: 0.33, 20: 0.44}
    assert run.tail("a", 2) == pytest.approx([0.33, 0.44])
    assert run.measured("a", 2) == [0.33, 0.44]
    assert len(provenance_words(run, "a")) == 1
    tell(run, batches[0][0], estimated("a", {25: 0.5}, order=4))
    assert values(run, "a")[25] == 0.5, "what is not in the history yet is shown"


def test_a_console_fills_what_the_others_leave_out(run):
    """W&B was on only after the resumption, the events tell of every tenth step."""
    tell(
        run,
        status("train.log", CONSOLE, 0),
        estimated("a", dict.fromkeys(range(1, 61), 1.0)),
    )
    tell(
        run,
        status("run.wandb", ("W&B run", 4), 1),
        rows("a", dict.fromkeys(range(41, 51), 2.0)),
    )
    tell(run, status("tb", EVENTS, 2), rows("a", {10: 3.0, 20: 3.0}))
    expected = (
        dict.fromkeys(range(1, 61), 1.0)
        | dict.fromkeys(range(41, 51), 2.0)
        | {10: 3.0, 20: 3.0}
    )
    assert values(run, "a") == expected


def test_a_further_file_that_goes_on_from_an_earlier_step_is_a_restart(run):
    tell(run, status("tb/1", EVENTS), rows("a", dict.fromkeys(range(1, 61), 1.0)))
    assert run.step == 60
    tell(run, status("tb/2", EVENTS), rows("a", {51: 2.0, 52: 2.0}, order=999))
    assert [(mark.step, mark.path) for mark in run.restarts] == [(51, "tb/2")]
    assert run.step == 52, "the run is where its newest file is"


def test_a_training_begun_again_from_scratch_is_a_restart(run):
    first = MetricRows(
        ("a",),
        range(1, 61),
        ([1.0] * 60,),
        range(60),
        [100.0 + step for step in range(60)],
    )
    tell(run, status("tb/1", EVENTS), first)
    tell(
        run,
        status("tb/2", EVENTS),
        rows("a", {1: 2.0, 2: 2.0}, order=999, times=(900.0, 901.0)),
    )
    assert [(mark.step, mark.path) for mark in run.restarts] == [(1, "tb/2")]
    assert run.step == 2
    tell(
        run,
        status("tb/worker/1", EVENTS),
        rows("a", {1: 2.0, 2: 2.0}, times=(900.5, 901.5)),
    )
    assert [mark.path for mark in run.restarts] == ["tb/2"], (
        "two that write at the same time stand beside each other"
    )


def test_an_evaluation_after_the_training_is_no_restart(run):
    """Hugging Face's trainer begins another events file for it."""
    tell(
        run, status("tb/1", EVENTS), rows("eval/loss", dict.fromkeys(range(1, 61), 1.0))
    )
    tell(run, status("tb/2", EVENTS), rows("eval/loss", {60: 2.0}, order=999))
    assert run.restarts == []
    assert run.step == 60


def test_the_validation_before_the_first_step_is_part_of_the_restart(run):
    for path, kind, steps in (
        ("exp.jsonl", LOGGER, (7, 8)),
        ("train.log", CONSOLE, (8, 9)),
    ):
        for step in steps:
            tell(
                run,
                status(path, kind),
                rows("a", {step - 1: 1.0}),
                Restart(path),
                rows("a", {step: 1.0}),
            )
    shown = [(mark.step, mark.path) for mark in run.restarts]
    assert shown == [(7, "exp.jsonl"), (8, "exp.jsonl")], "the other is a step behind"


def test_a_run_that_dies_and_goes_on_from_the_same_step_again_is_two_restarts(run):
    for path, kind in (("exp.jsonl", LOGGER), ("train.log", CONSOLE)):
        for _ in range(2):
            tell(
                run,
                status(path, kind),
                rows("a", {11: 1.0}),
                Restart(path),
                rows("a", {10: 1.0}),
            )
    assert [mark.step for mark in run.restarts] == [10, 10]


def test_several_sources_show_one_restart(run):
    tell(
        run,
        status("train.log", CONSOLE),
        rows("a", {1: 1.0, 2: 1.0, 3: 1.0}),
        Restart("x"),
        rows("a", {2: 1.0}, order=5),
    )
    tell(run, status("tb/1", EVENTS, 1), rows("a", {1: 1.0, 2: 1.0, 3: 1.0}))
    tell(run, status("tb/2", EVENTS, 1), rows("a", {2: 1.0}, order=9))
    assert [mark.step for mark in run.restarts] == [2]


def test_what_a_console_says_of_the_end_weighs_more_than_an_exit_code(run):
    fatal = Event(EventKind.FATAL, "died", 9, 3)
    exited = Event(EventKind.EXITED, "code 0", 9, 3)
    tell(run, status("run.wandb", ("W&B run", 4)), rows("a", {3: 1.0}), exited)
    assert run.outcome == exited
    tell(run, status("train.log", CONSOLE, 1), rows("a", {3: 1.0}), fatal)
    assert run.outcome == fatal
    tell(run, status("other.log", CONSOLE, 2), Event(EventKind.FINISHED, "done", 9, 3))
    assert run.outcome.kind is EventKind.FINISHED
