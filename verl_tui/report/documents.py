"""A report as a document, by a template each: one page of HTML without script or request, in which
text from logs is never markup, and Markdown with tables as GitHub and GitLab draw them.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.comparison import written as comparison
from verl_tui.given_files import replacing
from verl_tui.patterns import pattern
from verl_tui.plain_data import Data, plain
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.rendering.session.run_order import LETTERS
from verl_tui.rendering.text.piece import text_of
from verl_tui.report import sentences
from verl_tui.report.reported_samples import masked
from verl_tui.report.svg import PAGE_STYLE, TEMPLATES, policy, svg
from verl_tui.text import fenced
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.comparison.tables import TextTable
    from verl_tui.report.record import Report, ReportedRun
    from verl_tui.report.run_charts import ReportChart, RunCurve
    from verl_tui.runs.views.checkpoints import Best

_SIZE = (76, 12)
"""Cells of a curve that is drawn in text."""
_NO_NAME = pattern(r"[^a-z0-9]+")
_GAPS = pattern(r"\n{3,}")
_KEPT = "\0"
"""Stands for a line's end in a block of code until gaps have been closed: no text has one."""


def write_new(path: Path, text: str, *, replace: bool) -> None:
    """Write a file that nobody sees half written; a link there is never followed.

    Raises:
        OSError: It exists and is not to be replaced, or cannot be written.
    """
    if replace and path.exists() and not path.is_file():
        raise OSError(None, "not a file that could be replaced", str(path))
    with replacing(path, ours=replace, new=not replace) as file:
        file.write(text)


def write_charts(
    report: Report, folder: Path | None, *, replace: bool = False
) -> list[Path]:
    """Write each chart that can be drawn as a file into a directory; return their paths in order.

    Raises:
        OSError: One exists, or cannot be written.
    """
    paths: list[Path] = []
    if folder is None:
        return paths
    folder.mkdir(parents=True, exist_ok=True)
    for chart in report.charts:
        plain = _NO_NAME.sub("-", chart.title.lower()).strip("-")[:40] or "chart"
        path = folder / f"{plain}.svg"
        if path in paths:
            path = folder / f"{plain}-{len(paths) + 1}.svg"
        if written := svg(chart, path.stem, alone=True):
            write_new(path, f"{written}\n", replace=replace)
            paths.append(path)
    return paths


def report_text(report: Report, form: str, charts: Sequence[Path], target: str) -> str:
    """Return a report as text.

    Args:
        report: What it says.
        form: `md`, `html` or `json`.
        charts: Files of the charts, which Markdown shows in place of text.
        target: The file that it will be in, `-` for standard output.
    """
    if form == "html":
        return _filled("html", report).lstrip() + "\n"
    if form == "json":
        return json.dumps(as_data(report), allow_nan=False) + "\n"
    folder = Path.cwd() if target == "-" else Path(target).parent
    files = [os.path.relpath(path, folder) for path in charts]
    text = _filled("md", report, files=iter(files), linked=bool(files))
    return _GAPS.sub("\n\n", text.strip()).replace(_KEPT, "\n") + "\n"


def _filled(form: str, report: Report, **more: object) -> str:
    TEMPLATES.filters |= {one.__name__: one for one in _FILTERS}
    return TEMPLATES.get_template(f"report.{form}.jinja").render(
        report=report,
        letters=LETTERS,
        policy=policy(PAGE_STYLE),
        style=PAGE_STYLE,
        svg=svg,
        next=next,
        **more,
    )


def table(table: TextTable) -> str:
    """Return a table in Markdown."""
    line = sentences.line
    rows = tuple(tuple(map(line, row)) for row in table.rows)
    clean = table._replace(columns=tuple(map(line, table.columns)), rows=rows)
    return "\n".join(comparison.markdown_table(clean))


def in_text(chart: ReportChart) -> str:
    """Return a chart as the screen draws it, without colour: of the runs that have letters."""
    lettered = (
        tuple(one for one in chart.curves if one.place is not None) or chart.curves[:1]
    )
    data = replace(chart, curves=lettered).overlaid._replace(shades=())
    rows = ChartRenderer().rows(data, *_SIZE)
    return masked("\n".join(text_of(row).rstrip() for row in rows))


def fenced_block(text: str) -> str:
    """Return text in a block of code in which no gap is closed."""
    return fenced(text).replace("\n", _KEPT)


_FILTERS = (counted, comparison.escaped, fenced_block, in_text, table)
"""Of the templates, beside the sentences."""


# -- for programs: JSON ----------------------------------------------------------------------------

VERSION = 1
"""Version of the schema: grows when a field is removed or changes its meaning."""
_MOST_POINTS, _MOST_OF_GREY = 200, 50
"""Most stretches of steps that a curve is summed up in, for runs with a colour and without."""


def as_data(report: Report) -> Data:
    """Return a report ready for JSON: no value is NaN or infinite."""
    return {
        "version": VERSION,
        "title": report.title,
        "made": {
            "verl_tui": report.version,
            "time": report.made,
            "command": report.command,
            "not_read": list(report.unread),
            "left_out": list(report.left_out),
        },
        "runs": [_run(run) for run in report.runs],
        "comparison": comparison.as_data(report.comparison),
        "charts": [_chart(chart) for chart in report.charts],
    }


def _run(run: ReportedRun) -> Data:
    same = {name: run.described[name] for name in ("id", "verdict", "why", "next")}
    return {
        "name": run.name,
        **same,
        "check": run.described,
        "bests": plain([_best(one) for one in run.bests]),
        "samples": plain(run.excerpts),
        "hours": run.hours,
        "notes": [{"step": step, "text": text} for step, text in run.notes],
    }


def _best(best: Best) -> Data:
    known = best._asdict()
    del known["lowest"]
    for name in ("nearest", "latest"):
        known[f"{name}_checkpoint"] = known.pop(name)
    return known


def _chart(chart: ReportChart) -> Data:
    return {
        "family": chart.family,
        "title": chart.title,
        "unit": chart.unit or None,
        "indicator": chart.indicator,
        "notes": list(chart.notes),
        "curves": [_curve(one) for one in chart.curves],
    }


def _curve(curve: RunCurve) -> Data:
    """Return the least and the greatest value of each stretch of steps, by its first step."""
    points = curve.data.main.points
    most = _MOST_OF_GREY if curve.place is None else _MOST_POINTS
    first, last = min(points.steps, default=0), max(points.steps, default=0)
    per = -(-(last - first + 1) // most)
    lows, highs, odds = points.query(first, per, most)
    steps = range(first, first + most * per, per)
    known = [
        (step, low, high)
        for step, low, high in zip(steps, lows, highs, strict=True)
        if low is not None and high is not None
    ]
    return {
        "run": curve.run,
        "key": curve.data.key,
        "steps": [step for step, _, _ in known],
        # in six digits, which is more than a curve can show
        "least": [float(f"{low:.6g}") for _, low, _ in known],
        "greatest": [float(f"{high:.6g}") for _, _, high in known],
        "not_finite": list(compress(steps, odds)),
    }
