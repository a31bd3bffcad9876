"""A report as Markdown for a pull request: tables, and curves as text or as files beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from verl_tui.comparison.as_text import escaped, markdown_table
from verl_tui.comparison.tables import TextTable
from verl_tui.patterns import pattern
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.rendering.session.selection import LETTERS
from verl_tui.rendering.text.piece import text_of
from verl_tui.report.masked import masked
from verl_tui.report.sentences import (
    NO_CURVES,
    best_table,
    capital,
    caption,
    comparison_tables,
    excerpt_heading,
    findings_of,
    heading,
    line,
    made_by,
    more_findings,
    sample_origin,
    sources_table,
    verdict_word,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.report.drawing import ChartDrawing
    from verl_tui.report.record import Report, ReportedRun
    from verl_tui.report.reported_samples import ReportedSample
    from verl_tui.report.run_charts import ReportChart
from verl_tui.report.sentences import WrittenFinding

_SIZE = (76, 12)
"""Cells of a curve that is drawn in text."""
_TICKS = pattern("`+")


def as_markdown(
    report: Report,
    drawn: Sequence[tuple[ReportChart, ChartDrawing | None]],
    files: Sequence[str] = (),
) -> str:
    """Return a report as Markdown with tables as GitHub and GitLab draw them.

    Args:
        report: What it says.
        drawn: Its charts with their drawings.
        files: Paths of the drawn charts, from where the report will be; empty to draw them in
            text.
    """
    blocks = [
        f"# {escaped(line(report.title))}",
        f"Training report, {report.origin.made}, by verl-tui {report.origin.version}",
        *_verdicts(report),
        *_comparison(report),
        "## Curves",
        *_curves(report, drawn, files),
        "## Findings",
        *_findings(report),
        "## Best checkpoints",
        *_table(best_table(report)),
        "## Samples",
        *_samples(report),
        "## How this was made",
        *_origin(report),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _name(run: ReportedRun, *, alone: bool) -> str:
    letter = "" if alone or run.place is None else f"{LETTERS[run.place]} "
    return letter + line(run.name)


def _verdicts(report: Report) -> Iterator[str]:
    yield "## Verdicts"
    rows = tuple(
        (
            _name(run, alone=report.alone),
            verdict_word(run),
            line(run.condition),
            line(run.why),
        )
        for run in report.runs
    )
    yield from _table(
        TextTable("", ("run", "verdict", "state", "why"), rows, numbers=False)
    )


def _table(table: TextTable) -> Iterator[str]:
    rows = tuple(tuple(map(line, row)) for row in table.rows)
    clean = table._replace(columns=tuple(map(line, table.columns)), rows=rows)
    yield "\n".join(markdown_table(clean))
    yield escaped(line(table.note))


def _comparison(report: Report) -> Iterator[str]:
    yield "## Figures" if report.alone else "## Comparison"
    for table in comparison_tables(report):
        yield f"### {escaped(capital(line(table.heading)))}"
        yield from _table(table)
    if report.comparison.notes:
        yield "### Notes"
        yield "\n".join(f"- {escaped(line(note))}" for note in report.comparison.notes)


def _curves(
    report: Report,
    drawn: Sequence[tuple[ReportChart, ChartDrawing | None]],
    files: Sequence[str],
) -> Iterator[str]:
    if not any(picture for _, picture in drawn):
        yield f"{capital(NO_CURVES)}."
        return
    if not report.alone:
        lettered = (run for run in report.runs if run.place is not None)
        yield "\n".join(f"- {escaped(_name(run, alone=False))}" for run in lettered)
    rest = iter(files)
    for chart, picture in drawn:
        yield f"### {escaped(heading(chart))}"
        file = next(rest, None) if picture is not None else None
        yield from _curve(chart, picture, file)


def _curve(
    chart: ReportChart, picture: ChartDrawing | None, file: str | None
) -> Iterator[str]:
    """Yield a chart as a file, or in text, and what is said of it."""
    if picture is None:
        yield "No value is a number."
    elif file is not None:
        yield f"![{escaped(line(chart.title))}]({quote(file)})"
    else:
        yield _fenced(_in_text(chart))
    if file is not None or not chart.alone:  # the title of a curve in text has its key
        yield escaped(caption(chart, picture if file is not None else None))


def _in_text(chart: ReportChart) -> str:
    """Return a chart as the screen draws it, without colour: of the runs that have letters."""
    lettered = (
        tuple(one for one in chart.curves if one.place is not None) or chart.curves[:1]
    )
    overlaid = replace(chart, curves=lettered).overlaid
    data = overlaid._replace(envelope=None, spread=())
    rows = ChartRenderer().rows(data, *_SIZE)
    return masked("\n".join(text_of(row).rstrip() for row in rows))


def _fenced(text: str) -> str:
    """Return text in a block of code that it cannot end."""
    longest = max((len(one) for one in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def _findings(report: Report) -> Iterator[str]:
    found = [run for run in report.runs if run.detailed and run.described["findings"]]
    if not found:
        yield "Nothing was found."
    for run in found:
        yield f"### {escaped(_name(run, alone=report.alone))}"
        yield f"**Next:** {escaped(line(run.next))}" if run.next else ""
        for finding in findings_of(run):
            yield "\n".join(_finding(finding))
        yield more_findings(run)


def _finding(one: WrittenFinding) -> Iterator[str]:
    about = ", ".join(part for part in (f"`{one.id}`", one.since) if part)
    yield f"- **{one.severity}** {escaped(one.message)} ({about})"
    yield from (f"  - {escaped(text)}" for text in one.evidence)
    if one.advice:
        yield f"  - advice: {escaped(one.advice)}"
    if one.consequences:
        yield f"  - what follows from it: {', '.join(one.consequences)}"
    if one.source:
        yield f"  - threshold: {escaped(one.source)}"


def _samples(report: Report) -> Iterator[str]:
    for run in report.runs:
        if run.excerpts is None:
            continue
        yield f"### {escaped(_name(run, alone=report.alone))}"
        yield escaped(line(capital(sample_origin(run.excerpts))))
        for one in run.excerpts.shown:
            yield from _excerpt(one)


def _excerpt(one: ReportedSample) -> Iterator[str]:
    yield f"<details><summary>{capital(excerpt_heading(one))}</summary>"
    parts = {
        "prompt": one.prompt,
        "response": one.response,
        "ground truth": one.ground_truth,
    }
    for label, text in parts.items():
        if text:
            yield f"{label}:"
            yield _fenced(text)
    yield "</details>"


def _origin(report: Report) -> Iterator[str]:
    rows = tuple(made_by(report))
    yield "\n".join(
        f"- {escaped(f'{name}: {value}' if name else value)}" for name, value in rows
    )
    yield from _table(sources_table(report))
