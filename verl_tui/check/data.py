"""One look at runs as data for programs, and as an exit code for cron."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from verl_tui.check.codes import CRITICAL, HEALTHY, NOTHING_READABLE, WARNING
from verl_tui.check.gate import against_data, gate_code
from verl_tui.check.opening import judgement
from verl_tui.health.finding import Verdict
from verl_tui.indicators import INDICATORS, factor
from verl_tui.runs.run_id import run_id
from verl_tui.runs.views.checkpoints import BestBy, best, called_best, targets_of
from verl_tui.runs.views.identity import as_data, identity
from verl_tui.runs.views.provenance import losses
from verl_tui.runs.views.signs_of_life import phase
from verl_tui.runs.views.state import State, remaining, silence, state
from verl_tui.sources.formats.catalog import FORMATS
from verl_tui.sources.http import prometheus_server as prometheus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.comparison.bands import Against
    from verl_tui.health.finding import Episode
    from verl_tui.monitor import Monitor
    from verl_tui.records import SourceStatus
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Point, Series
    from verl_tui.runs.views.checkpoints import Checkpoint, Target

VERSION = 1
"""Version of the report's schema: grows when a field is removed or changes its meaning."""

_LOG_FORMATS = frozenset((*(format.name for format in FORMATS), prometheus.name))


def report(
    monitor: Monitor,
    now: float,
    by: BestBy = BestBy(),  # noqa: B008 - it is immutable
    held: Mapping[str, Against] | None = None,
) -> dict[str, Any]:
    """Return a report on all runs, ready for JSON: no value is NaN or infinite.

    Args:
        monitor: Has read and judged.
        now: Seconds since the epoch.
        by: The metric that the best checkpoint is chosen by.
        held: The runs compared with a baseline, by name: only these are reported; None for a report
            on all runs.
    """
    chosen = [run for run in monitor.runs.values() if held is None or run.name in held]
    runs = [_run(run, monitor, now, by) for run in chosen]
    for described in runs:
        if held is not None:
            described["against"] = against_data(held[described["name"]])
    passed = [{"path": one.path, "reason": one.reason} for one in monitor.passed]
    return {"version": VERSION, "runs": runs, "passed_over": passed}


def exit_code(report: Mapping[str, Any], *, strict: bool = False) -> int:
    """Return 0 for healthy, 1 if the worst finding is a warning, 2 if it is critical, 3 if nothing
    is readable; runs compared with a baseline are also judged by that, see `gate_code`.

    Args:
        report: What `report` returned.
        strict: Whether 3 is also returned for a run without a verdict, unless another is critical.
    """
    runs = report["runs"]
    if not is_readable(report):
        return NOTHING_READABLE
    codes = [gate_code(run["against"]) for run in runs if "against" in run]
    codes.append(_health_code(runs))
    if strict and any(run["verdict"] is None for run in runs):
        codes.append(NOTHING_READABLE)
    return CRITICAL if CRITICAL in codes else max(codes)


def is_readable(report: Mapping[str, Any]) -> bool:
    """Return whether there was a record in any log."""
    sources = [source for run in report["runs"] for source in run["sources"]]
    return any(map(_is_log_with_records, sources))


def _health_code(runs: Sequence[Mapping[str, Any]]) -> int:
    """Return the exit code of the worst finding."""
    found = {finding["severity"] for run in runs for finding in run["findings"]}
    if "critical" in found:
        return CRITICAL
    return WARNING if "warning" in found else HEALTHY


def _is_log_with_records(source: Mapping[str, Any]) -> bool:
    """Return whether a source is a log, not settings or dumps beside one, and was readable."""
    # The format of a console is named after its program.
    is_log = source["format"] in _LOG_FORMATS or source["program"] is not None
    return is_log and bool(source["records"])


def _run(run: Run, monitor: Monitor, now: float, by: BestBy) -> dict[str, Any]:
    quiet = silence(run, now)
    dated_by = "file" if run.dated_by_file else "record"
    verdict = monitor.verdicts.get(run.name, Verdict())
    described = {
        "name": run.name,
        "id": run_id(run),
        "paths": list(run.paths),
        "dialect": run.dialect,
        "state": state(run, now).value,
        "step": run.step,
        "total_steps": run.total_steps,
        "last_record_age_s": None if quiet is None else round(quiet, 3),
        "last_record_by": None if quiet is None else dated_by,
        "indicators": _indicators(run),
        "findings": [finding.as_data() for finding in verdict.findings],
        "not_judged": [
            {"id": rule.id, "reason": rule.reason} for rule in verdict.not_judged
        ],
        "sources": [_source(source.status) for source in run.sources.values()],
        "best": _best(run, by),
        "targets": [
            _target(target) for target in targets_of(run, monitor.config.targets)
        ],
        "history": [_episode(episode) for episode in verdict.history],
        "identity": as_data(identity(run)),
        "losses": _losses(run),
        **_course(run, now),
    }
    return {**described, **judgement(described, run, monitor.guide)}


def _course(run: Run, now: float) -> dict[str, Any]:
    """Return what a run is at and how long it will take."""
    left = remaining(run, now)
    return {
        "remaining_s": None if left is None else round(left, 3),
        "phase": None if state(run, now) is State.FINISHED else phase(run),
    }


def _episode(episode: Episode) -> dict[str, Any]:
    described = {**episode._asdict(), "severity": episode.severity.word}
    del described["key"]
    return described


def _source(status: SourceStatus) -> dict[str, Any]:
    return {
        "path": status.path,
        "format": status.title,
        "program": status.program,
        "records": status.records,
        "unreadable": status.unreadable,
        "note": status.note,
    }


def _losses(run: Run) -> dict[str, dict[str, Any]]:
    """Return the newest losses of a training without rewards, by key."""
    found = {}
    for key in losses(run):
        last = _newest(run.present(key))
        if last is not None:
            found[key] = {**_value(last.value, 1), "step": last.step}
    return found


def _newest(series: Series | None) -> Point | None:
    return series.last if series is not None else None


def _indicators(run: Run) -> dict[str, dict[str, Any]]:
    found = {}
    for id in INDICATORS:
        series = run.present(run.indicators.get(id))
        last = _newest(series)
        if series is not None and last is not None:
            found[id] = {
                "key": series.key,
                **_value(last.value, factor(id, series.key)),
                "step": last.step,
            }
    return found


def _value(value: float, factor: float) -> dict[str, Any]:
    """Return a value for JSON, which knows neither NaN nor infinity."""
    if not math.isfinite(value):
        return {"value": None, "finite": False}
    return {"value": value if factor == 1 else value * factor}


def _best(run: Run, by: BestBy) -> dict[str, Any] | None:
    """Return where the metric was best, first of equals, with the checkpoints of that step, next to
    it, and newest.
    """
    found = best(run, by.metric, lowest=by.lowest)
    if found is None:
        return None
    called = called_best(run)
    return {
        "indicator": found.metric,
        "key": found.key,
        "step": found.step,
        "value": found.value,
        "checkpoint": None if found.checkpoint is None else found.checkpoint.path,
        "nearest_checkpoint": _checkpoint(found.nearest),
        "latest_checkpoint": _checkpoint(found.latest),
        "called_best": [checkpoint.path for checkpoint in called],
        "called_best_at": [checkpoint._asdict() for checkpoint in called],
    }


def _checkpoint(checkpoint: Checkpoint | None) -> dict[str, Any] | None:
    return None if checkpoint is None else checkpoint._asdict()


def _target(target: Target) -> dict[str, Any]:
    return {
        "metric": target.metric,
        "key": target.key,
        "target": target.target,
        "reached_step": None if target.reached is None else target.reached.step,
        "value": None if target.last is None else target.last.value,
        "step": None if target.last is None else target.last.step,
        "best": None if target.best is None else target.best.value,
        "best_step": None if target.best is None else target.best.step,
    }
