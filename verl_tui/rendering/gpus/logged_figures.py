"""Rows of the metrics that a run has logged about its hosts, memory and utilisation."""

from __future__ import annotations

import math
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


class LoggedFigure(NamedTuple):
    """The last value of a metric that the run has logged."""

    label: str
    value: str
    share: float | None
    """Value as a share of its maximum, None if that is unknown."""
    role: str
    series: Series


def figures(run: Run, used: Collection[str]) -> tuple[list[LoggedFigure], int]:
    """Return the figures that a run has logged of its hosts, and the number of those left out.

    Args:
        run: The run.
        used: Keys that are shown elsewhere.
    """
    keys = [key for key in _wanted_keys(run) if key not in used]
    labels = [describe(key).label for key in keys]
    found = []
    for key, label in zip(keys[:_MOST], labels, strict=False):
        series = run.present(key)
        if series is not None and not _says_nothing(key, series):
            plain = label if labels.count(label) == 1 else _of_node(label, key)
            found.append(_value(_short(plain), key, series))
    return found, max(0, len(keys) - _MOST)


def _of_node(label: str, key: str) -> str:
    """Return a label that is unique among equal ones: with the node, else the key."""
    node = key.partition("/l:")[2]
    return f"{label} {node}" if node else key


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


def _value(label: str, key: str, series: Series) -> LoggedFigure:
    """Return the last value, with its share if it has a maximum."""
    value = series.values[-1]
    unit = describe(key).unit
    if modern(key) == _MFU and value == 0:  # verl writes 0 for an unknown model or GPU
        return LoggedFigure(label, "unknown", None, "dim", series)
    if not math.isfinite(value):
        return LoggedFigure(label, value_text(value, ""), None, "odd", series)
    if unit == "percent" and not _OF_WANDB.fullmatch(key) and _in_shares(series):
        unit = "share"
    if unit == "share":
        return LoggedFigure(label, value_text(value, "share"), value, "value", series)
    if unit == "percent":
        return LoggedFigure(label, value_text(value, "%"), value / 100, "value", series)
    return LoggedFigure(label, value_text(value, unit), None, "value", series)


def _in_shares(series: Series) -> bool:
    """True if a percentage is logged as a share of 1, as some programs do."""
    span = series.steps[-1] - series.steps[0] + 1
    _, (most,), _ = series.pyramid.query(series.steps[0], span, 1)
    return most is not None and most <= 1


def figure_rows(logged: list[LoggedFigure], width: int) -> list[Pieces]:
    """Return a row for each figure, in columns: label, bar, value, sparkline."""
    values = max(5, *(cell_len(item.value) for item in logged))
    longest = max(cell_len(item.label) for item in logged)
    columns: list[TextColumn[LoggedFigure]] = [
        TextColumn("", lambda one, n: [(middle(one.label, n), "dim")], 8, 8, longest),
        TextColumn("", lambda one, n: [_gauge(one.share, n)], _GAUGE, 1),
        TextColumn("", lambda one, _: [(one.value, one.role)], values, 9, right=True),
        TextColumn("", _spark, _LEAST_SPARK, 2, most=_MOST_SPARK),
    ]
    if all(item.share is None for item in logged):
        del columns[1]
    table = FittedTable(columns, width)
    return [table.row(item) for item in logged]


def _spark(figure: LoggedFigure, cells: int) -> Pieces:
    return spark_pieces(sparkline(figure.series, cells), "spark")


def _gauge(share: float | None, cells: int) -> Piece:
    return ("", "") if share is None else (gauge(share, cells), "gauge")
