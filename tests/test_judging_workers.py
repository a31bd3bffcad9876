"""Runs that workers judge: the same verdicts, and none lost."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from run_views import NOW, make_run

from verl_tui.config import Config
from verl_tui.health.judging import Judging
from verl_tui.judging_workers import verdicts_from_workers

if TYPE_CHECKING:
    from verl_tui.runs.run import Run

NAMES = [f"run-{number}" for number in range(6)]


def runs() -> list[Run]:
    """Return runs of which every second one has a KL that is too high."""
    return [
        make_run(name, columns={"actor/ppo_kl": [0.9 * (n % 2)] * 120})
        for n, name in enumerate(NAMES)
    ]


class EndsItsWorker:
    """Ends the process in which it is unpacked."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (1,)


def test_verdicts_are_those_made_here() -> None:
    config = Config(workers=2, guide={"rules": {"kl-high": {"threshold": 0.5}}})
    judging = Judging(config.guide)
    here = {run.name: judging.judge(run).verdict(NOW) for run in runs()}
    found = dict(verdicts_from_workers(runs(), config, NOW, share=100))
    assert found == here
    assert {bool(verdict.findings) for verdict in found.values()} == {True, False}


@pytest.mark.parametrize("most", [0, 1])
def test_a_single_worker_would_gain_nothing(most: int) -> None:
    found = verdicts_from_workers(runs(), Config(workers=most), NOW, share=100)
    assert not [*found]


def test_few_rows_are_not_worth_a_worker() -> None:
    assert not [*verdicts_from_workers(runs(), Config(workers=2), NOW)]


def test_what_cannot_travel_is_left_to_the_caller() -> None:
    known = runs()
    known[2].gpus = lambda: None  # type: ignore[assignment]
    found = dict(verdicts_from_workers(known, Config(workers=2), NOW, share=100))
    assert [*found] == [name for name in NAMES if name != "run-2"]


def test_runs_of_a_worker_that_dies_are_left_to_the_caller() -> None:
    known = runs()
    known[0].gpus = EndsItsWorker()  # type: ignore[assignment]
    found = dict(verdicts_from_workers(known, Config(workers=2), NOW, share=100))
    assert [*found] == ["run-3", "run-4", "run-5"]
