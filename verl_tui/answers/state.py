"""The state of a run, in one line, its findings, and where its hours went."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from verl_tui.check.data import run_data, times_in_words
from verl_tui.given_files import NothingError
from verl_tui.health.finding import Severity
from verl_tui.ledger import in_words, ledger, listed
from verl_tui.runs.views.provenance import has_estimated_steps
from verl_tui.runs.views.state import state_words
from verl_tui.text import one_line
from verl_tui.words import counted, percent_done

if TYPE_CHECKING:
    from verl_tui.answers.run_reading import Reading
    from verl_tui.plain_data import Data

_FIELDS = """
state step total_steps steps_estimated progress remaining_s last_record_age_s last_record_by verdict
finding findings phase"""
LONG = 64 * 2**20
"""Bytes from which a log is read from its end: the verdict takes all of it."""


def state_of(reading: Reading, *, in_words: bool = False) -> Data | None:
    """Return how a run is, its state as screens say it or as programs read it; None if more of it
    has to be read.
    """
    run = reading.run
    if not reading.whole and run.step is None:
        return None
    known = {**run_data(run, reading.verdict, reading.guide, reading.now)}
    findings = known["findings"]
    known["steps_estimated"] = has_estimated_steps(run)
    known["progress"] = _progress(known["step"], known["total_steps"])
    known["finding"] = findings[0]["id"] if findings else None
    known["findings"] = len(findings)
    if in_words:
        known["state"] = state_words(run, known["state"])
    if not reading.whole:
        known["verdict"] = known["findings"] = None
        # only a line number in an unread part would show the stage of a start
        if any(source.stage for source in run.sources.values()):
            known["phase"] = None
    return reading.part | {name: known[name] for name in _FIELDS.split()}


def _progress(step: int | None, total: int | None) -> float | None:
    return min(1.0, step / total) if step is not None and total else None


def state_lines(found: Data) -> Iterator[str]:
    """Yield the answer as a line of text."""
    parts, done = [found["state"]], found["progress"]
    if found["step"] is not None:
        parts.append(f"step {found['step']}")
        if done is not None:
            parts[-1] += f" of {found['total_steps']} ({percent_done(done)})"
    parts += times_in_words(found)
    parts += filter(None, (_judged(found), found["phase"]))
    yield f"{one_line(found['run'])}: {', '.join(parts)}"


def _judged(found: Data) -> str:
    if found["read"] == "end":
        return "not checked (only the end was read: --whole)"
    worst = f" ({found['finding']})" if found["finding"] else ""
    return f"{found['verdict'] or 'no verdict yet'}{worst}"


def findings_of(reading: Reading, least: str) -> Data:
    """Return the findings on a run, the worst first.

    Args:
        reading: The run, all of it read.
        least: The lowest severity to include.
    """
    verdict, lowest = reading.verdict, Severity[least.upper()]
    listed = [one.as_data() for one in verdict.findings if one.severity >= lowest]
    return {
        **reading.part,
        "total": len(verdict.findings),
        "left_out": len(verdict.findings) - len(listed),
        "not_judged": len(verdict.not_judged),
        "findings": listed,
    }


def findings_lines(found: Data) -> Iterator[str]:
    """Yield the answer as lines of text."""
    if not found["findings"]:
        left = f" ({counted(found['left_out'], 'finding')} of less weight)"
        yield f"{one_line(found['run'])}: no findings{left if found['left_out'] else ''}"
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


def ledger_of(reading: Reading) -> Data:
    """Return where the hours of a run went, all of which has been read.

    Raises:
        NothingError: Nothing tells how long its steps took.
    """
    run = reading.run
    found = ledger(run, reading.verdict, reading.guide, reading.now)
    if found is None:
        why = "nothing tells how long its steps took" if run.step else "no step so far"
        raise NothingError(f"{one_line(run.name)}: {why}")
    return {**reading.part, **found}


def ledger_lines(found: Data) -> Iterator[str]:
    """Yield the answer as lines of text, the columns of its table separated by tabs."""
    first, *more = in_words(found)
    yield f"{one_line(found['run'])}: {first}"
    for _, cells in listed(found):
        yield "\t".join(one_line(cell, 300) for cell in cells)
    yield from more
