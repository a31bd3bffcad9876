"""New files of a report: whole or not at all, none replaced unless that is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.report.svg import svg
from verl_tui.whole_file import replacing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from verl_tui.report.drawing import ChartDrawing
    from verl_tui.report.run_charts import ReportChart


def write_new(path: Path, text: str, *, replace: bool = False) -> None:
    """Write a file that nobody sees half written.

    Args:
        path: Its path; a link there is never followed.
        text: What is in it.
        replace: Whether a file that exists is replaced.

    Raises:
        OSError: It exists, or cannot be written.
    """
    if replace and path.exists() and not path.is_file():
        raise OSError(None, "not a file that could be replaced", str(path))
    with replacing(path, ours=replace, new=not replace) as file:
        file.write(text)


def write_charts(
    drawn: Sequence[tuple[ReportChart, ChartDrawing | None]],
    folder: Path | None,
    *,
    replace: bool = False,
) -> list[Path]:
    """Write each chart as a file into a directory; return their paths in order.

    Raises:
        OSError: One exists, or cannot be written.
    """
    if folder is None:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for chart, name in zip(drawn, chart_names([one for one, _ in drawn]), strict=True):
        one, picture = chart
        if picture is not None:
            path = folder / f"{name}.svg"
            write_new(path, svg(one, picture, name, alone=True) + "\n", replace=replace)
            paths.append(path)
    return paths


def chart_names(charts: Sequence[ReportChart]) -> list[str]:
    """Return a name for each chart that is safe in paths and ids, each once."""
    names: list[str] = []
    for chart in charts:
        plain = "".join(
            c if c.isascii() and c.isalnum() else "-" for c in chart.title.lower()
        )
        name = "-".join(filter(None, plain.split("-")))[:40] or "chart"
        names.append(name if name not in names else f"{name}-{len(names) + 1}")
    return names
