"""One look at runs as data for programs, and as an exit code for cron."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from verl_tui.check.opening import judgement
from verl_tui.health.finding import Verdict
from verl_tui.indicators import INDICATORS, factor
from verl_tui.plain_data import plain
from verl_tui.runs.run_id import run_id
from verl_tui.runs.views.checkpoints import BestBy, best, called_best, targets_of
from verl_tui.runs.views.identity import as_data, identity
from verl_tui.runs.views.provenance import losses
from verl_tui.runs.views.signs_of_life import phase
from verl_tui.runs.views.state import State, remaining, silence, state
from verl_tui.sources.formats.catalog import FORMATS
from verl_tui.sources.http.address_run import SERVER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from verl_tui.comparison.bands import Against
    from verl_tui.health.finding import Episode
    from verl_tui.health.guide import Guide
    from verl_tui.monitor import Monitor
    from verl_tui.records import SourceStatus
    from verl_tui.runs.run import Run
    from verl_tui.runs.views.checkpoints import Checkpoint

VERSION = 1
"""Version of the report's schema: grows when a field is removed or changes its meaning."""

HEALTHY, WARNING, CRITICAL, NOTHING_READABLE = 0, 1, 2, 3
"""Exit codes of `check`."""
_LOG_FORMATS = frozenset((*(format.name for format in FORMATS), SERVER))


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
    runs = [
        run_data(
            run,
            monitor.verdicts.get(run.name, Verdict()),
            monitor.guide,
            now,
            by,
            monitor.config.targets,
        )
        for run in chosen
    ]
    for described in runs:
        if held is not None:
            described["against"] = against_data(held[described["name"]])
    passed = [{"path": one.path, "reason": one.reason} for one in monitor.passed]
    return {"version": VERSION, "runs": runs, "passed_over": passed}


def against_data(held: Against) -> dict[str, Any]:
    """Return a run's comparison with a baseline, ready for JSON."""
    found: dict[str, Any] = plain(held)
    return found


def gate_code(against: Mapping[str, Any]) -> int:
    """Return 2 where a figure is worse than its band, 1 where one is outside it in another way or
    is missing, 3 where there was nothing to compare, else 0.
    """
    if all(one["breach"] == "missing" for one in against["figures"]):
        return NOTHING_READABLE
    found = {one["breach"] for one in against["figures"]}
    if "worse" in found:
        return CRITICAL
    if found - {None}:
        return WARNING
    return HEALTHY


def exit_code(report: Mapping[str, Any], *, strict: bool = False) -> int:
    """Return 0 for healthy, 1 if the worst finding is a warning, 2 if it is critical, 3 if nothing
    is readable; runs compared with a baseline are also judged by that, see `gate_code`.

    Args:
        report: What `report` returned.
        strict: Whether 3 is also returned for a run without a verdict, unless another is critical.
    """
    if not is_readable(report):
        return NOTHING_READABLE
    codes = {HEALTHY}
    for run in report["runs"]:
        codes |= {_CODES[finding["severity"]] for finding in run["findings"]}
        if "against" in run:
            codes.add(gate_code(run["against"]))
        if strict and run["verdict"] is None:
            codes.add(NOTHING_READABLE)
    return CRITICAL if CRITICAL in codes else max(codes)


_CODES = {"critical": CRITICAL, "warning": WARNING, "info": HEALTHY}


def is_readable(report: Mapping[str, Any]) -> bool:
    """Return whether there was a record in any log: not in settings or dumps beside one."""
    # The format of a console is named after its program.
    return any(
        source["records"]
        and (source["format"] in _LOG_FORMATS or source["program"] is not None)
        for run in report["runs"]
        for source in run["sources"]
    )


def run_data(
    run: Run,
    verdict: Verdict,
    guide: Guide,
    now: float,
    by: BestBy = BestBy(),  # noqa: B008 - it is immutable
    wanted: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Return what is known of a run, as the report has it.

    Args:
        run: The run.
        verdict: The verdict on it.
        guide: The rules by which it was judged.
        now: Seconds since the epoch.
        by: The metric that the best checkpoint is chosen by.
        wanted: The user's targets.
    """
    left = remaining(run, now)
    current = state(run, now)
    described = {
        "name": run.name,
        "id": run_id(run),
        "paths": list(run.paths),
        "dialect": run.dialect,
        "state": current.value,
        "step": run.step,
        "total_steps": run.total_steps,
        **_age(run, now),
        "indicators": _indicators(run),
        "findings": [finding.as_data() for finding in verdict.findings],
        "not_judged": [
            {"id": rule.id, "reason": rule.reason} for rule in verdict.not_judged
        ],
        "sources": [source_data(source.status) for source in run.sources.values()],
        "best": _best(run, by),
        "targets": [one._asdict() for one in targets_of(run, wanted or {})],
        "history": [_episode(episode) for episode in verdict.history],
        "identity": as_data(identity(run)),
        "losses": _losses(run),
        "remaining_s": None if left is None else round(left, 3),
        "phase": None if current is State.FINISHED else phase(run),
    }
    return {**described, **judgement(described, run, guide)}


def _age(run: Run, now: float) -> dict[str, Any]:
    quiet = silence(run, now)
    by = "file" if run.dated_by_file else "record"
    return {
        "last_record_age_s": None if quiet is None else round(quiet, 3),
        "last_record_by": None if quiet is None else by,
    }


def _episode(episode: Episode) -> dict[str, Any]:
    described = {**episode._asdict(), "severity": episode.severity.word}
    del described["key"]
    return described


def source_data(status: SourceStatus) -> dict[str, Any]:
    """Return what was read of a source, ready for JSON."""
    same = ("program", "records", "unreadable", "note")
    rest = {name: getattr(status, name) for name in same}
    return {"path": status.path, "format": status.title, **rest}


def _losses(run: Run) -> dict[str, dict[str, Any]]:
    """Return the newest losses of a training without rewards, by key."""
    found = {}
    for key in losses(run):
        series = run.present(key)
        if series is not None:
            last = value_fields(series.values[-1])
            found[key] = {**last, "step": series.steps[-1]}
    return found


def _indicators(run: Run) -> dict[str, dict[str, Any]]:
    found = {}
    for id in INDICATORS:
        series = run.present(run.indicators.get(id))
        if series is not None:
            value = value_fields(series.values[-1], factor(id, series.key))
            found[id] = {"key": series.key, **value, "step": series.steps[-1]}
    return found


def value_fields(value: float, factor: float = 1) -> dict[str, Any]:
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
        "checkpoint": found.checkpoint and found.checkpoint.path,
        "nearest_checkpoint": _checkpoint(found.nearest),
        "latest_checkpoint": _checkpoint(found.latest),
        "called_best": [checkpoint.path for checkpoint in called],
        "called_best_at": [checkpoint._asdict() for checkpoint in called],
    }


def _checkpoint(checkpoint: Checkpoint | None) -> dict[str, Any] | None:
    return checkpoint and checkpoint._asdict()
