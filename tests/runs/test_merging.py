"""One run from several sources: which value holds, where it comes from, and where the run began
anew.
"""

from __future__ import annotations

from typing import Any

import pytest
from log_reading import NOW, values

from verl_tui.records import (
    Batch,
    Event,
    EventKind,
    MetricRows,
    Record,
    Restart,
    SourceStatus,
)
from verl_tui.runs.run import Run
from verl_tui.runs.views.provenance import leading, provenance_words

RANKS = {
    "verl console": 3,
    "W&B run": 4,
    "tensorboard events": 5,
    "verl file logger": 6,
}


def source(path: str, format: str, ordinal: int = 0) -> SourceStatus:
    return SourceStatus(path, format, RANKS[format], ordinal, modified=1000.0)


CONSOLE = source("train.log", "verl console")
LOGGER = source("exp.jsonl", "verl file logger", 1)
WANDB = source("run.wandb", "W&B run", 1)
FIRST, SECOND = (source(f"tb/{n}", "tensorboard events", 1) for n in (1, 2))
STATE = source("state.json", "tensorboard events", 1)


def rows(points: dict[int, float], order: int = 0, **more: Any) -> MetricRows:
    orders = range(order, order + len(points))
    return MetricRows(("a",), list(points), (list(points.values()),), orders, **more)


def level(steps: range, value: float = 1.0, order: int = 0, **more: Any) -> MetricRows:
    return rows(dict.fromkeys(steps, value), order, **more)


Told = tuple[SourceStatus, tuple[Record, ...]]


def run_of(*told: Told) -> Run:
    """Return a run of which sources tell, one after the other."""
    run = Run("run")
    for status, records in told:
        run.apply(Batch("run", status, records), NOW)
        if "a" in run.keys:
            run.series("a")
    return run


# -- values ----------------------------------------------------------------------------------------

COUNTED: Told = (CONSOLE, (rows({1: 0.1, 2: 0.2, 3: 0.3, 4: 0.4}, estimated=True),))
STATED: Told = (STATE, (rows({5: 0.11, 10: 0.22, 15: 0.33, 20: 0.44}),))
GAPS = [(CONSOLE, (rows({1: 0.1, 2: 0.2, 3: 0.3}),)), (LOGGER, (rows({2: 0.22, 4: 0.44}),))]  # fmt: skip


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        # the better source holds and the other fills the gaps
        (GAPS, {1: 0.1, 2: 0.22, 3: 0.3, 4: 0.44}),
        (GAPS[::-1], {1: 0.1, 2: 0.22, 3: 0.3, 4: 0.44}),
        # a better one that begins anew with each start beats a console that goes on
        (
            [
                (CONSOLE, (rows({1: 0.1, 2: 0.2}), Restart("steps went back"), rows({2: 0.3, 3: 0.4}, 2))),
                (LOGGER, (rows({2: 0.3125, 3: 0.4125}),)),
            ],
            {1: 0.1, 2: 0.3125, 3: 0.4125},
        ),
        # what knows the steps holds beside what counts them, which is a record ahead
        ([COUNTED, STATED], {5: 0.11, 10: 0.22, 15: 0.33, 20: 0.44}),
        ([STATED, COUNTED], {5: 0.11, 10: 0.22, 15: 0.33, 20: 0.44}),
        ([COUNTED, STATED, (CONSOLE, (rows({25: 0.5}, 4, estimated=True),))],
         {5: 0.11, 10: 0.22, 15: 0.33, 20: 0.44, 25: 0.5}),
        # a console fills what others leave out: W&B was on after the resumption, events tell of every tenth step
        (
            [
                (CONSOLE, (level(range(1, 61), estimated=True),)), (WANDB, (level(range(41, 51), 2.0),)),
                (FIRST, (rows({10: 3.0, 20: 3.0}),)),
            ],
            dict.fromkeys(range(1, 61), 1.0) | dict.fromkeys(range(41, 51), 2.0) | {10: 3.0, 20: 3.0},
        ),
    ],
)  # fmt: skip
def test_which_value_holds(told, expected):
    assert values(run_of(*told), "a") == expected


def test_where_values_come_from():
    run = run_of(*GAPS)
    assert leading(run) == {"exp.jsonl": 1}
    assert provenance_words(run, "a") == (
        "verl console train.log (2 of 4)",
        "verl file logger exp.jsonl (2 of 4)",
    )
    run = run_of(COUNTED, STATED)
    assert run.tail("a", 2) == pytest.approx([0.33, 0.44])
    assert run.measured("a", 2) == [0.33, 0.44]
    assert len(provenance_words(run, "a")) == 1


# -- restarts --------------------------------------------------------------------------------------


def goes_back(steps: tuple[int, int], path: str, order: int = 0) -> tuple[Record, ...]:
    """Return a step, and an earlier one of another start."""
    first, second = ({step: 1.0} for step in steps)
    return rows(first, order), Restart(path), rows(second, order)


@pytest.mark.parametrize(
    ("told", "restarts", "step"),
    [
        # a further file goes on from an earlier step: the run is where its newest file is
        ([(FIRST, (level(range(1, 61)),)), (SECOND, (rows({51: 2.0, 52: 2.0}, 999),))], [(51, "tb/2")], 52),
        # begun again from scratch; two that write at the same time stand beside each other
        (
            [
                (FIRST, (level(range(1, 61), times=[100.0 + at for at in range(60)]),)),
                (SECOND, (rows({1: 2.0, 2: 2.0}, 999, times=(900.0, 901.0)),)),
                (source("tb/worker/1", "tensorboard events"), (rows({1: 2.0, 2: 2.0}, times=(900.5, 901.5)),)),
            ],
            [(1, "tb/2")], 2,
        ),
        # an evaluation after the training, for which Hugging Face's trainer begins another file
        ([(FIRST, (level(range(1, 61)),)), (SECOND, (rows({60: 2.0}, 999),))], [], 60),
        # the validation before the first step is part of it; the other source is a step behind
        (
            [(LOGGER, goes_back((at - 1, at), "exp.jsonl")) for at in (7, 8)]
            + [(CONSOLE, goes_back((at - 1, at), "train.log")) for at in (8, 9)],
            [(7, "exp.jsonl"), (8, "exp.jsonl")], 9,
        ),
        # it dies and goes on from the same step again
        (
            [(of, goes_back((11, 10), of.path)) for of in (LOGGER, CONSOLE) for _ in range(2)],
            [(10, "exp.jsonl"), (10, "exp.jsonl")], 10,
        ),
        # several sources show one
        (
            [
                (CONSOLE, (level(range(1, 4)), Restart("x"), rows({2: 1.0}, 5))), (FIRST, (level(range(1, 4)),)),
                (SECOND, (rows({2: 1.0}, 9),)),
            ],
            [(2, "train.log")], 2,
        ),
    ],
)  # fmt: skip
def test_where_the_run_began_anew(told, restarts, step):
    run = run_of(*told)
    assert [(mark.step, mark.path) for mark in run.restarts] == restarts
    assert run.step == step


def test_what_a_console_says_of_the_end_weighs_more_than_an_exit_code():
    point = rows({3: 1.0})
    fatal = Event(EventKind.FATAL, "died", 9, 3)
    exited = Event(EventKind.EXITED, "code 0", 9, 3)
    done = Event(EventKind.FINISHED, "done", 9, 3)
    told: list[Told] = [(WANDB, (point, exited)), (CONSOLE._replace(ordinal=2), (point, fatal))]  # fmt: skip
    told.append((source("other.log", "verl console", 3), (done,)))
    outcomes = [run_of(*told[:count]).outcome for count in (1, 2, 3)]
    assert outcomes == [exited, fatal, done]
