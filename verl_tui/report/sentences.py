"""Sentences and tables of a report that all its written forms share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.comparison.tables import TextTable, tables
from verl_tui.ledger import in_words, listed
from verl_tui.rendering.session.run_order import LETTERS
from verl_tui.report.reported_samples import ReportedSample, ReportedSamples, masked
from verl_tui.text import one_line
from verl_tui.words import number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.report.record import Report, ReportedRun
    from verl_tui.report.run_charts import ReportChart
    from verl_tui.runs.views.checkpoints import Best

LONGEST = 2000
"""Characters of a line."""
_MOST_UNREAD = 200
"""Sentences on files that were not read."""
_HOURS = ("where they went", "time", "share", "evidence")


def line(text: str) -> str:
    """Return text from a log in one line, without secrets and home directories."""
    return masked(one_line(text, LONGEST))


def verdicts_table(report: Report) -> TextTable:
    """Return the verdict on each run and why."""
    rows = tuple(
        (
            run_name(report, run),
            run.described["verdict"] or "no verdict",
            run.condition,
            run.described["why"] or "",
        )
        for run in report.runs
    )
    return TextTable("", ("run", "verdict", "state", "why"), rows, numbers=False)


def run_name(report: Report, run: ReportedRun) -> str:
    """Return the name of a run behind its letter, which it has where it is compared."""
    lettered = not report.alone and run.place is not None
    return f"{LETTERS[run.place or 0]} {run.name}" if lettered else run.name


def comparison_tables(report: Report) -> list[TextTable]:
    """Return the tables of the comparison; of a single run only those of its figures."""
    found = [one for one in tables(report.comparison) if one.rows or one.note]
    if report.alone:
        found = [one for one in found if one.rows and one.numbers]
    return [*found, *_hours_tables(report)]


def _hours_tables(report: Report) -> Iterator[TextTable]:
    """Yield where the hours of each run went whose samples are shown."""
    for run in report.runs:
        if run.hours and run.excerpts is not None:
            heading = line(f"{run.hours['unit']} of {run.name}")
            rows = [cells for _, cells in listed(run.hours)]
            note = ". ".join((*in_words(run.hours), ""))
            yield TextTable(heading, _HOURS, rows, note, numbers=False)


def best_table(report: Report) -> TextTable:
    """Return the best steps and their checkpoints."""
    rows = [
        (line(run.name), one.metric, number(one.value), str(one.step), *_saved(one))
        for run in report.runs
        for one in run.bests
    ]
    if not rows:
        return TextTable("", note="no reward and no validation is logged")
    columns = ("run", "best", "value", "at step", "checkpoint", "newest checkpoint")
    if any(row[-1] for row in rows):
        return TextTable("", columns, rows, numbers=False)
    note = "no checkpoint is known"
    return TextTable("", columns[:4], [row[:4] for row in rows], note, numbers=False)


def _saved(best: Best) -> tuple[str, str]:
    """Return the checkpoint of a best step, or the nearest one, and the newest."""
    newest = "" if best.latest is None else f"step {best.latest.step}"
    if best.checkpoint is not None:
        return line(best.checkpoint.path), newest
    if best.nearest is None:
        return "", newest
    nearest = best.nearest
    value = "" if nearest.value is None else f" ({number(nearest.value)})"
    return f"nearest: step {nearest.step}{value}, {line(nearest.path)}", newest


def heading(chart: ReportChart) -> str:
    """Return the name of a chart as a heading; keys stay as the log has them."""
    is_key = any(sign in chart.title for sign in "/_")
    return line(chart.title if is_key else capital(chart.title))


def capital(text: str) -> str:
    """Return a text that begins with a capital letter."""
    return text[:1].upper() + text[1:]


def caption(chart: ReportChart, *, drawn: bool = True) -> str:
    """Return the words below a chart: keys, which runs it lacks; where it is drawn how it is
    smoothed.
    """
    parts = [line(note) for note in chart.notes]
    drawing = chart.drawing if drawn else None
    if drawing is not None and drawing.smoothing:
        around = " in the band of the values" * (len(chart.curves) == 1)
        parts.append(f"averages (smoothing {drawing.smoothing:g}){around}")
    if drawing is not None and drawing.odds:
        parts.append("✗ values that are no numbers")
    return " · ".join(parts)


def excerpt_heading(one: ReportedSample) -> str:
    """Return why a sample is shown, and its score."""
    score = "no score" if one.score is None else f"score {number(one.score)}"
    return f"{one.why} ({score})"


def sample_origin(found: ReportedSamples) -> str:
    """Return the origin of a run's samples."""
    if found.step is None:
        return found.note
    validation = ", validation" if found.validation else ""
    return f"step {found.step}{validation}; {found.note}"


def made_by(report: Report) -> Iterator[tuple[str, str]]:
    """Yield how the report was made: a name and its value."""
    yield "made", report.made
    yield "by", f"verl-tui {report.version}"
    yield "command", line(report.command)
    for at, sentence in enumerate(report.unread[:_MOST_UNREAD]):
        yield "" if at else "not read", line(sentence)
    for at, sentence in enumerate(report.left_out):
        yield "" if at else "left out", sentence
