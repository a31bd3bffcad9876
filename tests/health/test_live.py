"""Live equals finished: what was reported at a step does not depend on how much came after."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest
from planted import OTHER, STATUS, TUTORIAL, VERL, batch, rows
from scenarios.failures import FAILURES
from scenarios.failures import planted as failing

from verl_tui.health.diagnoses import DIAGNOSES
from verl_tui.health.guide_settings import load_guide
from verl_tui.health.judge import Judge
from verl_tui.records import Settings
from verl_tui.runs.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.health.finding import Verdict
    from verl_tui.records import Record

    Columns = Mapping[str, Sequence[float | None]]

OF_THE_PRESENT = frozenset(
    id for id, diagnosis in DIAGNOSES.items() if diagnosis.by_clock
)
"""They depend on the time of day, which a finished log no longer has."""


class Reported(NamedTuple):
    """An episode, with all that must not depend on when it is asked for."""

    id: str
    key: str | None
    severity: str
    since: int | None
    raised: int | None
    cleared: int | None


def reported(verdict: Verdict) -> set[Reported]:
    return {
        Reported(
            one.id,
            one.key,
            one.severity.word,
            one.since_step,
            one.raised_step,
            one.cleared_step,
        )
        for one in verdict.history
        if one.id not in OF_THE_PRESENT
    }


def live(
    columns: Columns, dialect: str, settings: Mapping[str, object]
) -> Iterator[tuple[int, set[Reported]]]:
    """Yield the steps after which a run that grows is judged, with what had been reported by then: one,
    five or eighteen steps come between.
    """
    run = Run("r")
    status = (
        STATUS._replace(format="tutorial JSONL") if dialect == "tutorial" else STATUS
    )
    if settings:
        run.apply(batch(Settings(settings, "x"), status=status), now=0.0)
    watching = Judge(load_guide(), run)
    count = max(map(len, columns.values()))
    for i in range(count):
        row = {
            key: [value]
            for key, values in columns.items()
            if (value := values[i]) is not None
        }
        run.apply(batch(rows(row, [i + 1], order=i), status=status), now=0.0)
        if i % 24 in (0, 1, 6) or i == count - 1:
            yield i + 1, reported(watching.verdict(1.0))


def finished(
    columns: Columns, dialect: str, settings: Mapping[str, object], step: int
) -> set[Reported]:
    """Return what is reported of a run that is read at once as it was at a step."""
    run = run_of(columns, dialect, settings, step)
    return reported(Judge(load_guide(), run).verdict(1.0))


def run_of(
    columns: Columns, dialect: str, settings: Mapping[str, object], step: int
) -> Run:
    """Return a run that is read at once as it was at a step."""
    run = Run("r")
    status = (
        STATUS._replace(format="tutorial JSONL") if dialect == "tutorial" else STATUS
    )
    records: list[Record] = [Settings(settings, "x")] if settings else []
    for key, values in columns.items():
        points = [
            (i + 1, value) for i, value in enumerate(values[:step]) if value is not None
        ]
        records.append(
            rows({key: [value for _, value in points]}, [at for at, _ in points])
        )
    run.apply(batch(*records, status=status), now=0.0)
    return run


def compare(
    columns: Columns,
    dialect: str,
    settings: Mapping[str, object] | None = None,
    *,
    every: int = 38,
) -> set[Reported]:
    """Hold a run that grows against the same run when it has ended, and against what it was now and
    then.
    """
    known = list(live(columns, dialect, settings or {}))
    last = known[-1][0]
    whole = finished(columns, dialect, settings or {}, last)
    assert known[-1][1] == whole
    for step, episodes in known:
        assert {one[:5] for one in episodes} == {
            one[:5] for one in whole if (one.raised or 0) <= step
        }, step
    for step, episodes in known[every::every]:
        assert finished(columns, dialect, settings or {}, step) == episodes, step
    return whole


PLANTED = {
    "reward-zero": ("critic/score/mean", "reward"),
    "reward-cliff": ("critic/score/mean", "reward"),
    "policy-collapse": ("reward", "kl"),
    "kl-high": ("ppo_kl",),
    "ref-kl-above-band": ("kl", "reward"),
    "gpu-idle": ("util", "reward"),
    "grad-norm-spike": ("grad_norm",),
    "grad-norm-rising": ("grad_norm",),
    "length-collapse": ("length", "critic/score/mean", "reward", "val", "eval"),
    "weights-not-synced": ("val", "eval", "lr", "learning_rate"),
    "entropy-collapse": ("entropy", "critic/score/mean", "reward"),
    "entropy-explosion": ("entropy", "critic/score/mean", "reward", "length"),
    "clip-saturation": ("clip",),
    "length-explosion": ("length", "critic/score/mean", "reward", "clip"),
    "dead-groups": ("zero_std", "reward"),
    "component-imbalance": ("rewards/", "reward"),
    "reward-hacking": ("reward", "val", "eval"),
    "plateau": ("critic/score/mean", "reward", "val", "eval"),
    "slow-phase": ("timing_s", "step_time"),
    "no-signal": ("critic/advantages", "critic/score/mean"),
}
"""Failure -> parts of the names of what is looked at: few metrics are quickly judged at every
step.
"""


@pytest.mark.parametrize(
    "id",
    [
        pytest.param(id, marks=() if at % 6 == 0 else pytest.mark.thorough)
        for at, id in enumerate(PLANTED)
    ],
)
def test_a_run_that_grows_is_judged_as_it_is_when_it_has_ended(id):
    failure = next(one for one in FAILURES if one.id == id and not one.form)
    world, _ = failing(failure, failure.dialects[-1], 0)
    needed = {"verl": VERL, "tutorial": TUTORIAL, "other": OTHER}[world.dialect]
    columns: Columns = {key: [value] * world.steps for key, value in needed.items()}
    columns |= {
        key: values
        for key, values in world.columns.items()
        if any(part in key for part in PLANTED[id])
    }
    whole = compare(columns, world.dialect, world.settings)
    assert id in {one.id for one in whole} or id == "dead-groups"


# -- found by runs without a fault -----------------------------------------------------------------


@pytest.mark.parametrize("points", [1, 2])
def test_a_log_of_every_tenth_step_is_silent_for_ten_steps(points):
    run = Run("r")
    for i in range(points):
        row = rows({"reward": [0.4], "step_time": [40.0]}, [10 * i + 10], order=i)
        grown = STATUS._replace(bytes_read=100 * i + 100, modified=400.0 * i)
        run.apply(batch(row, status=grown, live=True), now=400.0 * i)
    last = 400.0 * (points - 1)
    watching = Judge(load_guide(), run)
    assert "hang" not in {one.id for one in watching.verdict(last + 399.0).findings}
    assert "hang" in {one.id for one in watching.verdict(last + 2500.0).findings}
