"""A report as one page of HTML: no script, no request, and text from logs is never markup."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from verl_tui.rendering.session.selection import LETTERS
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
from verl_tui.report.stylesheet import PAGE_STYLE, policy
from verl_tui.report.svg import svg
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.comparison.statistic_tables import TextTable
    from verl_tui.report.drawing import ChartDrawing
    from verl_tui.report.record import Report, ReportedRun
    from verl_tui.report.reported_samples import ReportedSample
    from verl_tui.report.run_charts import ReportChart
    from verl_tui.report.sentences import WrittenFinding

_KEY = (
    "Shaded: the healthy band. ▲ a finding begins, and its stretch of the curve has its colour. "
    "┊ restart, ◆ checkpoint, ★ best value."
)
_SECTIONS = {
    "verdicts": "Verdicts",
    "comparison": "Comparison",
    "curves": "Curves",
    "findings": "Findings",
    "checkpoints": "Best checkpoints",
    "samples": "Samples",
    "origin": "How this was made",
}


def as_html(
    report: Report, drawn: Sequence[tuple[ReportChart, ChartDrawing | None]]
) -> str:
    """Return a report as a page.

    Args:
        report: What it says.
        drawn: Its charts with their drawings.
    """
    sections = _SECTIONS | ({"comparison": "Figures"} if report.alone else {})
    bodies = {
        "verdicts": _verdicts(report),
        "comparison": _comparison(report),
        "curves": _curves(report, drawn),
        "findings": _findings(report),
        "checkpoints": _table(best_table(report), "checkpoints"),
        "samples": _samples(report),
        "origin": _origin(report),
    }
    return "".join(
        (*_head(report, sections), *_body(sections, bodies), "</main></body></html>\n")
    )


def _head(report: Report, sections: dict[str, str]) -> Iterator[str]:
    title = escape(f"Report: {line(report.title)}")
    yield '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy(PAGE_STYLE)}">\n'
    yield '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
    yield '<meta name="referrer" content="no-referrer">\n'
    yield f"<title>{title}</title>\n<style>{PAGE_STYLE}</style></head>\n"
    origin = report.origin
    yield f"<body><header><h1>{escape(line(report.title))}</h1>"
    made = f"Training report, {origin.made}, by verl-tui {origin.version}"
    yield f'<p class="muted">{escape(made)}</p>'
    yield '<nav aria-label="Sections"><ul>'
    for name, title in sections.items():
        yield f'<li><a href="#{name}">{title}</a></li>'
    yield "</ul></nav></header>\n<main>"


def _body(sections: dict[str, str], bodies: dict[str, Iterator[str]]) -> Iterator[str]:
    for name, title in sections.items():
        yield f'<section aria-labelledby="{name}"><h2 id="{name}">{title}</h2>'
        yield from bodies[name]
        yield "</section>\n"


def _name(run: ReportedRun, *, alone: bool) -> str:
    """Return a run's name, with its letter where there are several."""
    name = escape(line(run.name))
    if alone or run.place is None:
        return name
    letter = LETTERS[run.place]
    return f'<span class="sign run-{run.place + 1}">{letter}</span> {name}'


def _verdicts(report: Report) -> Iterator[str]:
    yield '<ul class="verdicts">'
    for run in report.runs:
        word = verdict_word(run)
        role = "muted" if word.startswith("no ") else word
        yield f"<li><strong>{_name(run, alone=report.alone)}</strong> "
        yield f'<span class="word {role}">{escape(word)}</span> '
        yield f'<span class="muted">{escape(line(run.condition))}</span>'
        yield f"<p>{escape(line(run.why))}</p></li>" if run.why else "</li>"
    yield "</ul>"


def _scroll_start(label: str) -> str:
    """Return the beginning of what is scrolled sideways where it is too wide, by keys, too."""
    return (
        f'<div class="scroll" role="region" aria-label="{escape(label)}" tabindex="0">'
    )


def _table(table: TextTable, label: str) -> Iterator[str]:
    if table.rows:
        kind = ' class="numbers"' if table.numbers else ""
        yield _scroll_start(table.heading or label)
        yield f"<table{kind}><thead><tr>"
        yield from (
            f'<th scope="col">{escape(line(one))}</th>' for one in table.columns
        )
        yield "</tr></thead><tbody>"
        for first, *rest in table.rows:
            yield f'<tr><th scope="row">{escape(line(first))}</th>'
            yield from (f"<td>{escape(line(cell))}</td>" for cell in rest)
            yield "</tr>"
        yield "</tbody></table></div>"
    if table.note:
        yield f'<p class="note">{escape(line(table.note))}</p>'


def _comparison(report: Report) -> Iterator[str]:
    for table in comparison_tables(report):
        yield f"<h3>{escape(capital(line(table.heading)))}</h3>"
        yield from _table(table, table.heading)
    if report.comparison.notes:
        yield "<h3>Notes</h3><ul>"
        yield from (
            f"<li>{escape(line(note))}</li>" for note in report.comparison.notes
        )
        yield "</ul>"


def _curves(
    report: Report, drawn: Sequence[tuple[ReportChart, ChartDrawing | None]]
) -> Iterator[str]:
    if not any(picture for _, picture in drawn):
        yield f"<p>{NO_CURVES}.</p>"
        return
    if not report.alone:
        yield '<ul class="legend">'
        for run in report.runs:
            if run.place is not None:
                yield f"<li>{_name(run, alone=False)}</li>"
        if report.drawn.grey:
            yield f'<li class="muted">grey: {counted(len(report.drawn.grey), "other run")}</li>'
        yield "</ul>"
    yield f'<p class="note">{_KEY}</p><div class="charts">'
    for at, (chart, picture) in enumerate(drawn):
        yield from _figure(chart, picture, f"chart-{at + 1}")
    yield "</div>"


def _figure(
    chart: ReportChart, picture: ChartDrawing | None, name: str
) -> Iterator[str]:
    same = chart.family.lower() == chart.title.lower()
    family = "" if same else f' <span class="muted">{escape(chart.family)}</span>'
    yield f"<figure><h3>{escape(heading(chart))}{family}</h3>"
    if picture is None:
        yield "<p>No value is a number.</p>"
    else:
        yield svg(chart, picture, name)
    yield f"<figcaption>{escape(caption(chart, picture))}</figcaption></figure>"


def _findings(report: Report) -> Iterator[str]:
    found = [run for run in report.runs if run.detailed and run.described["findings"]]
    if not found:
        yield "<p>Nothing was found.</p>"
    for run in found:
        yield f"<h3>{_name(run, alone=report.alone)}</h3>"
        if run.next:
            yield f"<p><strong>Next:</strong> {escape(line(run.next))}</p>"
        for finding in findings_of(run):
            yield from _finding(finding)
        if more := more_findings(run):
            yield f'<p class="note">{more}</p>'


def _finding(one: WrittenFinding) -> Iterator[str]:
    yield f'<article class="{one.severity}"><p><span class="word {one.severity}">{one.severity}'
    yield f"</span> {escape(one.message)}</p>"
    about = " · ".join(part for part in (one.id, one.since) if part)
    yield f'<p class="note">{escape(about)}</p>'
    if one.evidence:
        yield (
            "<ul>"
            + "".join(f"<li>{escape(text)}</li>" for text in one.evidence)
            + "</ul>"
        )
    if one.advice:
        yield f"<p><strong>Advice:</strong> {escape(one.advice)}</p>"
    if one.consequences:
        yield f"<p>What follows from it: {escape(', '.join(one.consequences))}</p>"
    if one.source:
        yield f'<p class="note">Threshold: {escape(one.source)}</p>'
    yield "</article>"


def _samples(report: Report) -> Iterator[str]:
    for run in report.runs:
        if run.excerpts is None:
            continue
        yield f"<h3>{_name(run, alone=report.alone)}</h3>"
        yield f'<p class="note">{escape(line(capital(sample_origin(run.excerpts))))}</p>'
        for one in run.excerpts.shown:
            yield from _excerpt(one)


def _excerpt(one: ReportedSample) -> Iterator[str]:
    yield f"<h4>{escape(capital(excerpt_heading(one)))}</h4>"
    parts = (
        ("prompt", one.prompt),
        ("response", one.response),
        ("truth", one.ground_truth),
    )
    for label, text in parts:
        if text:
            yield f'<p class="label">{"ground truth" if label == "truth" else label}</p>'
            yield f"<pre>{escape(text)}</pre>"


def _origin(report: Report) -> Iterator[str]:
    yield "<dl>"
    for name, value in made_by(report):
        shown = f"<code>{escape(value)}</code>" if name == "command" else escape(value)
        yield f"<dt>{escape(name)}</dt><dd>{shown}</dd>"
    yield "</dl><h3>Files read</h3>"
    yield from _table(sources_table(report), "Files read")
