"""Runs with planted numbers, for the tests of health."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.health.finding import failed
from verl_tui.health.guide_settings import load_guide
from verl_tui.health.judge import Judge
from verl_tui.records import Batch, MetricRows, Record, Settings, SourceStatus
from verl_tui.runs.run import Run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.health.finding import Episode, Finding, Verdict
    from verl_tui.health.guide import Guide

STATUS = SourceStatus(path="x", format="f", rank=5)
# One name that only this dialect's writers use decides whose a log is.
VERL = {"critic/returns/mean": 0.0}
TUTORIAL = {"rollout/sample_count": 64.0}
OTHER = {"completions/max_length": 100.0, "frac_reward_zero_std": 0.1}


def batch(*records: Record, status: SourceStatus = STATUS, live: bool = False) -> Batch:
    return Batch(run="r", status=status, records=records, live=live)


def rows(
    columns: Mapping[str, Sequence[float]],
    steps: Sequence[int] | None = None,
    order: int = 0,
    **more: Any,
) -> MetricRows:
    count = len(next(iter(columns.values())))
    at = list(steps) if steps is not None else list(range(1, count + 1))
    return MetricRows(
        keys=tuple(columns),
        steps=at,
        columns=[list(values) for values in columns.values()],
        orders=list(range(order, order + count)),
        **more,
    )


def planted(
    columns: Mapping[str, Sequence[float]],
    beside: Mapping[str, float] = VERL,
    settings: Mapping[str, Any] | None = None,
    steps: Sequence[int] | None = None,
) -> Run:
    """Return a run with these columns, and constant ones that say whose names it uses."""
    run = Run("r")
    count = min(map(len, columns.values()))
    everything = {
        **{key: values[:count] for key, values in columns.items()},
        **{key: [value] * count for key, value in beside.items() if key not in columns},
    }
    status = STATUS._replace(format="tutorial JSONL") if beside is TUTORIAL else STATUS
    if settings:
        run.apply(batch(Settings(settings, "x"), status=status), now=0.0)
    run.apply(batch(rows(everything, steps), status=status), now=0.0)
    return run


def judge(run: Run, guide: Guide | None = None, now: float = 1.0) -> Verdict:
    return Judge(guide or load_guide(), run).verdict(now)


def ids(verdict: Verdict) -> set[str]:
    return {finding.id for finding in verdict.findings}


def reason(verdict: Verdict, id: str) -> str | None:
    return next((one.reason for one in verdict.not_judged if one.id == id), None)


def wave(
    count: int, middle: float, height: float = 0.0, *, shift: float = 0.0
) -> list[float]:
    """Return a repeatable oscillation without a trend."""
    return [middle + height * math.sin(2.4 * i + shift) for i in range(count)]


def noisy(values: Sequence[float], size: float, seed: int = 1) -> list[float]:
    """Return values with noise of a standard deviation."""
    chance = random.Random(seed)
    return [value + chance.gauss(0.0, size) for value in values]


def found(verdict: Verdict, id: str) -> Finding | None:
    """Return the first finding of an id, None where there is none."""
    return next((one for one in verdict.findings if one.id == id), None)


def episodes(verdict: Verdict, id: str) -> list[Episode]:
    """Return all episodes of an id."""
    return [one for one in verdict.history if one.id == id]


def ramp(
    start: float,
    end: float,
    count: int = 300,
    begin: int = 0,
    finish: int | None = None,
) -> list[float]:
    """Return values that go from one level to another between two points."""
    last = count if finish is None else finish
    shares = (min(1.0, max(0.0, (i - begin) / (last - begin))) for i in range(count))
    return [start + (end - start) * share for share in shares]


OVER = "over"


class Case(NamedTuple):
    """Columns of a run, and what a rule says of them."""

    id: str
    columns: Mapping[str, Sequence[float]]
    says: str | None
    beside: Mapping[str, float]
    settings: Mapping[str, Any] | None
    why: str
    facts: Mapping[str, object]


def case(
    id: str,
    columns: Mapping[str, Sequence[float]],
    says: str | None = None,
    *,
    beside: Mapping[str, float] = VERL,
    settings: Mapping[str, Any] | None = None,
    why: str = "",
    **facts: object,
) -> Case:
    """Return a case.

    Args:
        id: Of the rule.
        columns: What is logged.
        says: Parts of what the finding says, with `…` between them; None: it was never raised; OVER:
            it was once.
        beside: Constant figures that say whose names the log uses.
        settings: Of the run.
        why: Part of the reason for which the rule is not judged.
        facts: Further fields of the finding.
    """
    return Case(id, columns, says, beside, settings, why, facts)


def hold(one: Case) -> None:
    """Check what is said of a case."""
    verdict = judge(planted(one.columns, one.beside, one.settings))
    assert not [rule for rule in verdict.not_judged if failed(rule.reason)]
    reported = found(verdict, one.id)
    assert one.why in (reason(verdict, one.id) or "")
    if one.says is None or one.says == OVER:
        assert reported is None
        cleared = [bool(past.cleared_step) for past in episodes(verdict, one.id)]
        assert cleared == [True] * bool(one.says)
        return
    assert reported is not None
    said = "\n".join((reported.message, *reported.evidence, reported.advice or ""))
    for words in one.says.split("…"):
        assert words in said
    for name, value in one.facts.items():
        assert getattr(reported, name) == value
