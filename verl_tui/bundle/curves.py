"""The curves of a run: all of them as a table, the most important ones drawn as text."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from verl_tui.exporters.csv import write_csv
from verl_tui.rendering.charts.page import ChartFilter, list_charts
from verl_tui.rendering.charts.plan import ChartLook
from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.rendering.session.snapshot import View
from verl_tui.rendering.text.piece import text_of

if TYPE_CHECKING:
    from verl_tui.monitor import Monitor
    from verl_tui.runs.run import Run

_MOST = 8 * 2**20
"""Characters of the table that are kept: the header and the last rows."""
_CHARTS = 12
_WIDTH, _HEIGHT = 100, 14


def metrics_csv(run: Run) -> tuple[str, str]:
    """Return a description of all numeric metrics, and these as CSV; only the last steps of a table
    that is too long.
    """
    out = io.StringIO(newline="")
    write_csv(run, out)
    text = out.getvalue()
    if len(text) <= _MOST:
        return "all numeric metrics by step", text
    header, _, rows = text.partition("\n")
    kept = rows[-_MOST:].partition("\n")[2]
    about = (
        f"all numeric metrics, the last {kept.count(chr(10)):,} "
        f"of {rows.count(chr(10)):,} steps"
    )
    return about, f"{header}\n{kept}"


def charts(monitor: Monitor, run: Run, now: float) -> str:
    """Return the first charts of the dashboard as text."""
    view = View(monitor, run, now)
    found = list_charts(view, ChartFilter())[:_CHARTS]
    if not found:
        return "This run has no numbers to draw.\n"
    drawn = []
    for one in found:
        rows = ChartRenderer().rows(chart_data(one, view, ChartLook()), _WIDTH, _HEIGHT)
        drawn.append("\n".join(text_of(row).rstrip() for row in rows))
    return "\n\n".join(drawn) + "\n"
