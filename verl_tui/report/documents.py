"""A report as a document, by a template each: one page of HTML without script or request, in which
text from logs is never markup, and Markdown with tables as GitHub and GitLab draw them.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from verl_tui.comparison.written import escaped, markdown_table
from verl_tui.given_files import replacing
from verl_tui.patterns import pattern
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.rendering.session.run_order import LETTERS
from verl_tui.rendering.text.piece import text_of
from verl_tui.report import sentences
from verl_tui.report.as_data import as_data
from verl_tui.report.drawing import ChartDrawing, drawing_of
from verl_tui.report.reported_samples import masked
from verl_tui.report.stylesheet import PAGE_STYLE, policy
from verl_tui.report.svg import svg
from verl_tui.text import fenced
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.comparison.tables import TextTable
    from verl_tui.report.record import Report
    from verl_tui.report.run_charts import ReportChart

    Drawn = Sequence[tuple[ReportChart, ChartDrawing | None]]

_SIZE = (76, 12)
"""Cells of a curve that is drawn in text."""
_NO_NAME = pattern(r"[^a-z0-9]+")
_GAPS = pattern(r"\n{3,}")
_KEPT = "\0"
"""Stands for a line's end in a block of code until gaps have been closed: no text has one."""


def drawn_charts(report: Report) -> Drawn:
    """Return the charts of a report with their drawings."""
    return [(chart, drawing_of(chart)) for chart in report.charts]


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
    drawn: Drawn, folder: Path | None, *, replace: bool = False
) -> list[Path]:
    """Write each chart as a file into a directory; return their paths in order.

    Raises:
        OSError: One exists, or cannot be written.
    """
    paths: list[Path] = []
    if folder is None:
        return paths
    folder.mkdir(parents=True, exist_ok=True)
    for chart, picture in drawn:
        plain = _NO_NAME.sub("-", chart.title.lower()).strip("-")[:40] or "chart"
        path = folder / f"{plain}.svg"
        if path in paths:
            path = folder / f"{plain}-{len(paths) + 1}.svg"
        if picture is not None:
            written = svg(chart, picture, path.stem, alone=True)
            write_new(path, written + "\n", replace=replace)
            paths.append(path)
    return paths


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
    documents.filters |= {one.__name__: one for one in _FILTERS}
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


def table(table: TextTable) -> str:
    """Return a table in Markdown."""
    line = sentences.line
    rows = tuple(tuple(map(line, row)) for row in table.rows)
    clean = table._replace(columns=tuple(map(line, table.columns)), rows=rows)
    return "\n".join(markdown_table(clean))


def in_text(chart: ReportChart) -> str:
    """Return a chart as the screen draws it, without colour: of the runs that have letters."""
    lettered = (
        tuple(one for one in chart.curves if one.place is not None) or chart.curves[:1]
    )
    overlaid = chart._replace(curves=lettered).overlaid
    data = overlaid._replace(shades=())
    rows = ChartRenderer().rows(data, *_SIZE)
    return masked("\n".join(text_of(row).rstrip() for row in rows))


def fenced_block(text: str) -> str:
    """Return text in a block of code in which no gap is closed."""
    return fenced(text).replace("\n", _KEPT)


_FILTERS = (
    sentences.best_table,
    sentences.capital,
    sentences.caption,
    sentences.comparison_tables,
    counted,
    escaped,
    sentences.excerpt_heading,
    fenced_block,
    sentences.heading,
    in_text,
    sentences.line,
    sentences.made_by,
    sentences.run_name,
    sentences.sample_origin,
    sentences.verdict_word,
    sentences.verdicts_table,
    table,
)
