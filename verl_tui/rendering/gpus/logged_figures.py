"""Rows of the metrics that a run has logged about its hosts, memory and utilisation."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.metrics import describe, modern
from verl_tui.patterns import NamePattern
from verl_tui.rendering.charts.sparkline import gauge, spark_pieces, sparkline
from verl_tui.rendering.text.numbers import value_text
from verl_tui.rendering.text.printable import middle
from verl_tui.rendering.text.table import FittedTable, TextColumn
from verl_tui.runs.cached import cached_by_keys

if TYPE_CHECKING:
    from collections.abc import Collection

    from verl_tui.rendering.text.piece import Piece, Pieces
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

_MEMORY = NamePattern(r"(?:\w+/)?perf/max_memory_\w+_gb")
_MFU = "perf/mfu/actor"
_OF_WANDB = NamePattern(
    r"system/(?:gpu\.\d+\.(?:gpu|memoryAllocated|temp|powerWatts)|cpu|memory_percent)(?:/l:.+)?"
)
"""W&B's system metrics that are shown, of a dozen for each GPU."""
_HOST_MEMORY = NamePattern(r"system/memory_percent(?:/l:.+)?")
_LEAST_OF_HOST = 1e-3
"""Percent of a host's memory below which nothing can run on it."""
_MOST = 40
"""Most metrics shown, since some logs have hundreds."""
_GAUGE = 8
_LEAST_SPARK = 6
_MOST_SPARK = 24


class _LoggedFigure(NamedTuple):
    """The last value of a metric that the run has logged."""

    label: str
    value: str
    role: str
    share: float | None
    """Value as a share of its maximum, None if that is unknown."""
    series: Series


def figure_rows(run: Run, used: Collection[str], width: int) -> list[Pieces]:
    """Return a row for each figure that a run has logged of its hosts, in columns: label, bar,
    value, sparkline; and how many are left out.

    Args:
        run: The run.
        used: Keys that are shown elsewhere.
        width: Cells of a row.
    """
    keys = [key for key in _wanted_keys(run) if key not in used]
    count = Counter(describe(key).label for key in keys)
    logged = []
    for key in keys[:_MOST]:
        series = run.present(key)
        if series is not None and not _says_nothing(key, series):
            label = describe(key).label
            unique = label if count[label] == 1 else key
            logged.append(_LoggedFigure(_short(unique), *_value(key, series), series))
    rows = _table(logged, width) if logged else []
    left_out = len(keys) - _MOST
    return [*rows, [(f"+{left_out} more", "dim")]] if left_out > 0 else rows


def _short(label: str) -> str:
    """Shorten a label by words that are obvious in this panel."""
    label = label.removeprefix("system/").replace("peak GPU memory ", "peak ")
    return label.replace("CPU of the process", "process CPU")


@cached_by_keys
def _wanted_keys(run: Run) -> list[str]:
    return [key for key in run.keys if _wanted(key)]


def _wanted(key: str) -> bool:
    if key.startswith("system/"):
        return "." not in key or _OF_WANDB.fullmatch(key) is not None
    name = modern(key) if "memory" in key or "mfu" in key else ""
    return name == _MFU or _MEMORY.fullmatch(name) is not None


def _says_nothing(key: str, series: Series) -> bool:
    """Return whether memory is what no machine has: none at all, as verl logs where there is no
    GPU, or next to nothing of the host's, as W&B does where a container has no limit.
    """
    bounds = series.pyramid.bounds(series.steps[0], series.steps[-1])
    if bounds is None:
        return False
    if _HOST_MEMORY.fullmatch(key):
        return bounds[1] < _LEAST_OF_HOST
    return _MEMORY.fullmatch(modern(key)) is not None and bounds[1] == 0


def _value(key: str, series: Series) -> tuple[str, str, float | None]:
    """Return the last value in words, its role, and its share if it has a maximum."""
    value = series.values[-1]
    unit = describe(key).unit
    if modern(key) == _MFU and value == 0:  # verl writes 0 for an unknown model or GPU
        return "unknown", "dim", None
    if not math.isfinite(value):
        return value_text(value, ""), "odd", None
    share = {"share": value, "percent": value / 100}.get(unit)
    return value_text(value, unit), "value", share


def _table(logged: list[_LoggedFigure], width: int) -> list[Pieces]:
    values = max(5, *(cell_len(item.value) for item in logged))
    longest = max(cell_len(item.label) for item in logged)
    columns: list[TextColumn[_LoggedFigure]] = [
        TextColumn("", lambda one, n: [(middle(one.label, n), "dim")], 8, 8, longest),
        TextColumn("", lambda one, n: [_gauge(one.share, n)], _GAUGE, 1),
        TextColumn("", lambda one, _: [(one.value, one.role)], values, 9, right=True),
        TextColumn("", _spark, _LEAST_SPARK, 2, most=_MOST_SPARK),
    ]
    if all(item.share is None for item in logged):
        del columns[1]
    table = FittedTable(columns, width)
    return [table.row(item) for item in logged]


def _spark(figure: _LoggedFigure, cells: int) -> Pieces:
    return spark_pieces(sparkline(figure.series, cells), "spark")


def _gauge(share: float | None, cells: int) -> Piece:
    return ("", "") if share is None else (gauge(share, cells), "gauge")
