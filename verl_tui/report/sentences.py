"""Sentences and tables of a report that all its written forms share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.comparison.statistic_tables import TextTable
from verl_tui.comparison.tables import tables
from verl_tui.rendering.session.selection import LETTERS
from verl_tui.report.masked import masked
from verl_tui.text import one_line
from verl_tui.words import counted, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from verl_tui.report.drawing import ChartDrawing
    from verl_tui.report.record import Report, ReportedRun
    from verl_tui.report.reported_samples import ReportedSample, ReportedSamples
    from verl_tui.report.run_charts import ReportChart
    from verl_tui.runs.views.checkpoints import Best

LONGEST = 2000
"""Characters of a line."""
_MOST_FINDINGS = 12
_MOST_EVIDENCE = 8
_MOST_SOURCES = 200
"""Files that are listed."""
NO_CURVES = "no metric has a number that could be drawn"


class WrittenFinding(NamedTuple):
    """A finding that is written out."""

    severity: str
    id: str
    since: str
    message: str
    evidence: tuple[str, ...]
    advice: str
    source: str
    consequences: tuple[str, ...]
    """Ids of the findings that only follow from it."""


def line(text: str) -> str:
    """Return text from a log in one line, without secrets and home directories."""
    return masked(one_line(text, LONGEST))


def findings_of(run: ReportedRun) -> list[WrittenFinding]:
    """Return the findings of a run, the worst first."""
    found = run.described["findings"]
    primary = [one for one in found if one["consequence_of"] is None][:_MOST_FINDINGS]
    return [_finding(one, _following(one, found, primary)) for one in primary]


def _following(
    finding: Mapping[str, Any],
    found: list[Mapping[str, Any]],
    primary: list[Mapping[str, Any]],
) -> tuple[str, ...]:
    first = next(one for one in primary if one["id"] == finding["id"])
    if first is not finding:
        return ()
    followers = (one["id"] for one in found if one["consequence_of"] == finding["id"])
    return tuple(dict.fromkeys(followers))


def _finding(one: Mapping[str, Any], consequences: tuple[str, ...]) -> WrittenFinding:
    since = one["since_step"]
    evidence = [line(text) for text in one["evidence"][:_MOST_EVIDENCE]]
    more = len(one["evidence"]) - len(evidence)
    if more > 0:
        evidence.append(f"{more} more in `check`")
    return WrittenFinding(
        one["severity"],
        one["id"],
        f"since step {since}" if since is not None else "",
        line(one["message"]),
        tuple(evidence),
        line(one["advice"] or ""),
        line(one["source"]),
        consequences,
    )


def more_findings(run: ReportedRun) -> str:
    """Return a sentence on findings that are left out, empty where none is."""
    count = sum(one["consequence_of"] is None for one in run.described["findings"])
    count -= _MOST_FINDINGS
    return f"{counted(count, 'more finding')}: see `check`" if count > 0 else ""


def verdict_word(run: ReportedRun) -> str:
    """Return the verdict as a word."""
    return run.verdict or "no verdict"


def verdicts_table(report: Report) -> TextTable:
    """Return the verdict on each run and why."""
    rows = tuple(
        (run_name(report, run), verdict_word(run), run.condition, run.why)
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
    if not report.alone:
        return found
    return [one for one in found if one.rows and one.numbers]


def best_table(report: Report) -> TextTable:
    """Return the best steps and their checkpoints."""
    found = [(run, one) for run in report.runs for one in run.bests]
    if not found:
        return TextTable("", note="no reward and no validation is logged")
    rows: list[tuple[str, ...]] = []
    for run, labelled in found:
        best = labelled.best
        place = (line(run.name), labelled.label, number(best.value), str(best.step))
        rows.append((*place, *_saved(best)))
    columns = ("run", "best", "value", "at step", "checkpoint", "newest checkpoint")
    if any(row[-1] for row in rows):
        return TextTable("", columns, tuple(rows), numbers=False)
    rows = [row[:4] for row in rows]
    note = "no checkpoint is known"
    return TextTable("", columns[:4], tuple(rows), note, numbers=False)


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


def caption(chart: ReportChart, picture: ChartDrawing | None) -> str:
    """Return the words below a chart: keys, how it is smoothed, which runs it lacks."""
    parts = [line(note) for note in chart.notes]
    if picture is not None and picture.smoothing:
        behind = " over the values" if picture.has_values else ""
        parts.append(f"averages (smoothing {picture.smoothing:g}){behind}")
    if picture is not None and picture.odds:
        parts.append("✗ values that are no numbers")
    return " · ".join(parts)


def chart_in_words(chart: ReportChart, picture: ChartDrawing) -> str:
    """Return a chart in words, for those who cannot see it."""
    first, last = picture.reach
    parts = [f"{chart.title} over steps {first} to {last}"]
    for one in chart.curves[:6]:
        main = one.data.main
        if main is not None and len(main.points.values):
            parts.append(f"{line(one.run)} ends at {number(main.points.values[-1])}")
    if len(chart.curves) > 6:
        parts.append(counted(len(chart.curves) - 6, "other run"))
    return "; ".join(parts) + "."


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


def sources_table(report: Report) -> TextTable:
    """Return the files that were read, those of one run and one format together."""
    read: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for run in report.runs:
        for one in run.described["sources"]:
            read.setdefault((run.name, one["format"]), []).append(one)
    rows = [_source(*key, files) for key, files in read.items()]
    more = len(rows) - _MOST_SOURCES
    note = f"{counted(more, 'more row')} left out" if more > 0 else ""
    columns = ("run", "format", "files", "records", "unreadable lines")
    return TextTable(
        "Files read", columns, tuple(rows[:_MOST_SOURCES]), note, numbers=False
    )


def _source(run: str, format: str, files: list[Mapping[str, Any]]) -> tuple[str, ...]:
    records = sum(file["records"] for file in files)
    unreadable = sum(file["unreadable"] for file in files)
    path = line(files[0]["path"])
    if len(files) > 1:
        path += f" and {len(files) - 1:,} more"
    return (
        line(run),
        format,
        path,
        f"{records:,}",
        f"{unreadable:,}" if unreadable else "",
    )


def made_by(report: Report) -> Iterator[tuple[str, str]]:
    """Yield how the report was made: a name and its value."""
    yield "made", report.origin.made
    yield "by", f"verl-tui {report.origin.version}"
    yield "command", line(report.origin.command)
    for at, sentence in enumerate(report.origin.sentences[:_MOST_SOURCES]):
        yield "" if at else "not read", line(sentence)
    for at, sentence in enumerate(report.left_out):
        yield "" if at else "left out", sentence
