"""A report as one page of HTML: no script, no request, and text from logs is never markup."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from verl_tui.rendering.session.selection import LETTERS
from verl_tui.report import sentences
from verl_tui.report.stylesheet import PAGE_STYLE, policy
from verl_tui.report.svg import svg
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.report.drawing import ChartDrawing
    from verl_tui.report.record import Report
    from verl_tui.report.run_charts import ReportChart

_FILTERS = (
    sentences.best_table,
    sentences.caption,
    sentences.comparison_tables,
    counted,
    sentences.excerpt_heading,
    sentences.findings_of,
    sentences.heading,
    sentences.line,
    sentences.made_by,
    sentences.more_findings,
    sentences.sample_origin,
    sentences.sources_table,
    sentences.verdict_word,
)


def as_html(
    report: Report, drawn: Sequence[tuple[ReportChart, ChartDrawing | None]]
) -> str:
    """Return a report as a page.

    Args:
        report: What it says.
        drawn: Its charts with their drawings.
    """
    pages = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters.update({one.__name__: one for one in _FILTERS})
    pages.filters["initial"] = sentences.capital
    text: str = pages.get_template("page.html.jinja").render(
        report=report,
        drawn=drawn,
        letters=LETTERS,
        no_curves=sentences.NO_CURVES,
        policy=policy(PAGE_STYLE),
        style=PAGE_STYLE,
        svg=svg,
    )
    return text.lstrip() + "\n"
