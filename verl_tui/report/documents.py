"""A report as a document, by a template each: one page of HTML without script or request, in which
text from logs is never markup, and Markdown with tables as GitHub and GitLab draw them.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from verl_tui.comparison.written import escaped, markdown_table
from verl_tui.patterns import pattern
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.rendering.session.selection import LETTERS
from verl_tui.rendering.text.piece import text_of
from verl_tui.report import sentences
from verl_tui.report.as_data import as_data
from verl_tui.report.drawing import drawing_of
from verl_tui.report.masked import masked
from verl_tui.report.stylesheet import PAGE_STYLE, policy
from verl_tui.report.svg import svg
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.comparison.tables import TextTable
    from verl_tui.report.drawing import ChartDrawing
    from verl_tui.report.record import Report
    from verl_tui.report.run_charts import ReportChart

    Drawn = Sequence[tuple[ReportChart, ChartDrawing | None]]

_SIZE = (76, 12)
"""Cells of a curve that is drawn in text."""
_TICKS = pattern("`+")
_GAPS = pattern(r"\n{3,}")
_KEPT = "\0"
"""Stands for a line's end in a block of code until gaps have been closed: no text has one."""


def drawn_charts(report: Report) -> Drawn:
    """Return the charts of a report with their drawings."""
    return [(chart, drawing_of(chart)) for chart in report.charts]


def report_text(
    report: Report, drawn: Drawn, form: str, charts: Sequence[Path], target: str
) -> str:
    """Return a report as text.

    Args:
        report: What it says.
        drawn: Its charts with their drawings.
        form: `md`, `html` or `json`.
        charts: Files of the charts, which Markdown shows in place of text.
        target: The file that it will be in, `-` for standard output.
    """
    if form == "html":
        return _filled("html", report, drawn).lstrip() + "\n"
    if form == "json":
        return json.dumps(as_data(report), allow_nan=False) + "\n"
    folder = Path.cwd() if target == "-" else Path(target).parent
    files = [os.path.relpath(path, folder) for path in charts]
    text = _filled("md", report, drawn, files=iter(files), linked=bool(files))
    return _GAPS.sub("\n\n", text.strip()).replace(_KEPT, "\n") + "\n"


def _filled(form: str, report: Report, drawn: Drawn, **more: object) -> str:
    documents = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=select_autoescape(["html.jinja"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    documents.filters.update({one.__name__: one for one in _FILTERS})
    documents.filters |= {"initial": sentences.capital, "table": _table}
    return documents.get_template(f"report.{form}.jinja").render(
        report=report,
        drawn=drawn,
        letters=LETTERS,
        no_curves=sentences.NO_CURVES,
        policy=policy(PAGE_STYLE),
        style=PAGE_STYLE,
        svg=svg,
        next=next,
        **more,
    )


def _table(table: TextTable) -> str:
    line = sentences.line
    rows = tuple(tuple(map(line, row)) for row in table.rows)
    clean = table._replace(columns=tuple(map(line, table.columns)), rows=rows)
    return "\n".join(markdown_table(clean))


def in_text(chart: ReportChart) -> str:
    """Return a chart as the screen draws it, without colour: of the runs that have letters."""
    lettered = (
        tuple(one for one in chart.curves if one.place is not None) or chart.curves[:1]
    )
    overlaid = replace(chart, curves=lettered).overlaid
    data = overlaid._replace(envelope=None, spread=())
    rows = ChartRenderer().rows(data, *_SIZE)
    return masked("\n".join(text_of(row).rstrip() for row in rows))


def fenced(text: str) -> str:
    """Return text in a block of code that it cannot end."""
    longest = max((len(one) for one in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}".replace("\n", _KEPT)


_FILTERS = (
    sentences.best_table,
    sentences.caption,
    sentences.comparison_tables,
    counted,
    escaped,
    sentences.excerpt_heading,
    fenced,
    sentences.findings_of,
    sentences.heading,
    in_text,
    sentences.line,
    sentences.made_by,
    sentences.more_findings,
    sentences.run_name,
    sentences.sample_origin,
    sentences.sources_table,
    sentences.verdict_word,
    sentences.verdicts_table,
)
