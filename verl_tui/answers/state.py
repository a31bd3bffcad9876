"""The state of a run, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.check.opening import judging_rules, verdict
from verl_tui.health.finding import Severity
from verl_tui.health.judge import Judge
from verl_tui.runs.views.provenance import has_estimated_steps
from verl_tui.runs.views.signs_of_life import phase
from verl_tui.runs.views.state import State, remaining, silence, state
from verl_tui.text import one_line
from verl_tui.times import age, duration
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from verl_tui.answers.run_reading import Reading
    from verl_tui.health.finding import Verdict
    from verl_tui.health.guide import Guide
    from verl_tui.runs.run import Run


LONG = 64 * 2**20
"""Bytes from which on a log is read from its end: the verdict takes all of it."""


def state_of(reading: Reading, guide: Guide, now: float) -> dict[str, Any] | None:
    """Return how a run is; None if more of it has to be read.

    Args:
        reading: The run.
        guide: The rules in force.
        now: Seconds since the epoch.
    """
    run = reading.run
    if not reading.whole and run.step is None:
        return None
    found = Judge(guide, run).verdict(now) if reading.whole else None
    findings = () if found is None else found.findings
    return {
        **reading.part,
        "state": state(run, now).value,
        "step": run.step,
        "total_steps": run.total_steps,
        "steps_estimated": has_estimated_steps(run),
        "progress": _progress(run),
        "remaining_s": _seconds(remaining(run, now)),
        **_age(run, now),
        "verdict": None if found is None else _word(run, guide, found),
        "finding": findings[0].id if findings else None,
        "findings": None if found is None else len(findings),
        "phase": _phase(reading, now),
    }


def _progress(run: Run) -> float | None:
    total = run.total_steps
    if run.step is not None and total:
        return min(1.0, run.step / total)
    return None


def _seconds(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _age(run: Run, now: float) -> dict[str, Any]:
    """Return the age of the newest record, and which clock dates it."""
    quiet = silence(run, now)
    by = "file" if run.dated_by_file else "record"
    return {
        "last_record_age_s": _seconds(quiet),
        "last_record_by": None if quiet is None else by,
    }


def _phase(reading: Reading, now: float) -> str | None:
    """Return what the run is or was doing; None once it has finished, or if only a line number in
    an unread part would show it.
    """
    run = reading.run
    staged = any(source.stage is not None for source in run.sources.values())
    if state(run, now) is State.FINISHED or (staged and not reading.whole):
        return None
    return phase(run)


def _word(run: Run, guide: Guide, found: Verdict) -> str | None:
    """Return the verdict as `check` says it, None where there is nothing to judge by."""
    described = {
        "findings": [finding.as_data() for finding in found.findings],
        "not_judged": [{"id": rule.id} for rule in found.not_judged],
        "indicators": run.indicators,
    }
    return verdict(described, judging_rules(described, guide)) or None


def state_line(found: Mapping[str, Any]) -> str:
    """Return the answer as a line of text."""
    step, total, progress = (found[key] for key in ("step", "total_steps", "progress"))
    parts = [found["state"]]
    if step is not None:
        of = f" of {total} ({int(100 * progress)}%)" if progress is not None else ""
        parts.append(f"step {step}{of}")
    if found["steps_estimated"]:
        parts.append("steps estimated")
    if found["remaining_s"] is not None:
        parts.append(f"about {duration(found['remaining_s'])} left")
    if found["last_record_age_s"] is not None:
        ago = age(found["last_record_age_s"])
        parts.append(
            "last record just now" if ago == "now" else f"last record {ago} ago"
        )
    parts.append(_judged(found))
    if found["phase"]:
        parts.append(found["phase"])
    return f"{one_line(found['run'])}: {', '.join(parts)}"


def _judged(found: Mapping[str, Any]) -> str:
    if found["read"] == "end":
        return "not judged (only the end was read: --whole)"
    worst = f" ({found['finding']})" if found["finding"] else ""
    return f"{found['verdict'] or 'no verdict yet'}{worst}"


def findings_of(
    reading: Reading, guide: Guide, now: float, least: str = "info"
) -> dict[str, Any]:
    """Return the findings on a run, the worst first.

    Args:
        reading: The run, all of it read.
        guide: The rules in force.
        now: Seconds since the epoch.
        least: The lowest severity to include.
    """
    verdict = Judge(guide, reading.run).verdict(now)
    listed = [
        one for one in verdict.findings if one.severity >= Severity[least.upper()]
    ]
    return {
        **reading.part,
        "total": len(verdict.findings),
        "left_out": len(verdict.findings) - len(listed),
        "not_judged": len(verdict.not_judged),
        "findings": [finding.as_data() for finding in listed],
    }


def findings_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the answer as lines of text."""
    if not found["findings"]:
        if found["left_out"]:
            of = f" ({counted(found['left_out'], 'finding')} of less weight)"
        else:
            of = ""
        yield f"{one_line(found['run'])}: no findings{of}"
    for finding in found["findings"]:
        words = f"{finding['severity']} {finding['id']}"
        if finding["since_step"] is not None:
            words += f" since step {finding['since_step']}"
        if finding["consequence_of"]:
            words += f", follows from {finding['consequence_of']}"
        yield f"{words}: {one_line(finding['message'], 1000)}"
        for evidence in finding["evidence"]:
            yield f"  - {one_line(evidence, 1000)}"
        if finding["advice"]:
            yield f"  advice: {one_line(finding['advice'], 1000)}"
