"""The written forms of a report."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.report.as_data import as_data
from verl_tui.report.documents import as_html, as_markdown
from verl_tui.report.drawing import drawing_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.report.drawing import ChartDrawing
    from verl_tui.report.record import Report
    from verl_tui.report.run_charts import ReportChart


def drawn_charts(report: Report) -> list[tuple[ReportChart, ChartDrawing | None]]:
    """Return the charts of a report with their drawings."""
    return [(chart, drawing_of(chart)) for chart in report.charts]


def report_text(
    report: Report,
    pictures: Sequence[tuple[ReportChart, ChartDrawing | None]],
    form: str,
    charts: Sequence[Path],
    target: str,
) -> str:
    """Return a report as text.

    Args:
        report: What it says.
        pictures: Its charts with their drawings.
        form: `md`, `html` or `json`.
        charts: Files of the charts, which Markdown shows in place of text.
        target: The file that it will be in, `-` for standard output.
    """
    if form == "html":
        return as_html(report, pictures)
    if form == "json":
        return json.dumps(as_data(report), allow_nan=False) + "\n"
    folder = Path.cwd() if target == "-" else Path(target).parent
    return as_markdown(
        report, pictures, [os.path.relpath(path, folder) for path in charts]
    )
