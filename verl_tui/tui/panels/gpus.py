"""The GPUs of this host, and what the shown run has logged of its own, which may be those of another host."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rich.cells import cell_len

from verl_tui.metrics import describe, modern
from verl_tui.times import age
from verl_tui.tui.panels.panel import TextPanel
from verl_tui.tui.widgets.gpu_bar import gpu_rows
from verl_tui.tui.widgets.labels import value_text
from verl_tui.tui.widgets.rows import Rows
from verl_tui.tui.widgets.spark import BROKEN, gauge, sparkline
from verl_tui.tui.widgets.words import cut, middle, wrapped

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series
    from verl_tui.tui.view import View
    from verl_tui.tui.widgets.words import Pieces

_ROLES = ("name", "bar", "gauge", "value", "warn", "dim", "spark", "odd")
_MEMORY = re.compile(r"(?:\w+/)?perf/max_memory_\w+_gb")
_MFU = "perf/mfu/actor"
_OF_WANDB = re.compile(r"system/(?:gpu\.\d+\.(?:gpu|memoryAllocated|temp|powerWatts)|cpu|memory_percent)(?:/l:.+)?")
"""What is shown of W&B's system figures, most of which have dots in their names: there are a dozen for each GPU."""
_MOST = 40
"""Logged metrics shown: some logs have hundreds."""
_STALE = 30.0
"""Seconds after which a reading is called old."""
_GAUGE = 8
_LEAST_SPARK = 6
_MOST_SPARK = 24


class _Logged(NamedTuple):
    """The last value of a metric that the run has logged."""

    label: str
    value: str
    share: float | None
    """Where it lies between 0 and the most it can be, None where nothing tells."""
    role: str
    series: Series


class GpusPanel(TextPanel):
    """Bars for the GPUs of this host, and last values of the run's own log."""

    TITLE = "gpus"
    PREFIX = "gpus"
    GROUNDED = frozenset({"gauge"})
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"gpus--{role}" for role in _ROLES}
    DEFAULT_CSS = """
    GpusPanel {
        & > .gpus--name { color: $foreground; text-style: bold; }
        & > .gpus--bar { color: $text-success; }
        & > .gpus--gauge { color: $text-primary; background: $foreground 15%; }
        & > .gpus--value { color: $foreground; }
        & > .gpus--warn { color: $text-warning; text-style: bold; }
        & > .gpus--dim { color: $text-muted; }
        & > .gpus--spark { color: $text-primary; }
        & > .gpus--odd { color: $text-error; text-style: bold; }
    }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._rows = Rows()
        self._view: View | None = None

    def compose(self) -> ComposeResult:
        """Make the rows."""
        yield self._rows

    def show(self, view: View) -> None:
        """Show the newest reading and the newest logged values."""
        self._view = view
        self.redraw()

    def redraw(self) -> None:
        """Write the rows of what was shown last."""
        view = self._view
        width, height = self._rows.size
        if view is None or width < 1 or height < 1:
            return
        lines = self._lines(width, height)
        if len(lines) > height:  # leave room for the scroll bar
            lines = self._lines(width - 1, height)
        self._rows.set_rows(self.texts(lines))
        reading = view.monitor.gpus
        # A host without devices is read once: its silence is no news.
        old = reading is not None and bool(reading.gpus) and view.now - reading.time > _STALE
        self.subtitle(f"read {age(view.now - reading.time)} ago" if old and reading else "")

    def _lines(self, width: int, height: int) -> list[Pieces]:
        view = self._view
        if view is None or width < 1:
            return []
        lines = _local(view, width)
        logged, left_out = _logged(view.run) if view.run else ([], 0)
        if logged:
            if len(lines) + len(logged) + 2 <= height:
                lines.append([])
            lines.append([(middle("as logged by the run", width, ascii_only=view.ascii), "dim")])
            lines += _logged_rows(logged, width, ascii_only=view.ascii)
        if left_out:
            lines.append([(f"+{left_out} more"[:width], "dim")])
        return lines


def _local(view: View, width: int) -> list[Pieces]:
    """Write the GPUs of this host, and why there are none or not all."""
    reading = view.monitor.gpus
    if reading is None:
        problem: str | None = "no reading yet"
        lines: list[Pieces] = []
    else:
        problem = reading.problem or (None if reading.gpus else "no GPU found here")
        lines = [
            cut([(text, role) for text, role in row], width) for row in gpu_rows(reading.gpus, width, ascii=view.ascii)
        ]
    words = wrapped(problem, width, ascii_only=view.ascii) if problem else ()
    return [*lines, *([(line, "dim")] for line in words)]


def _logged(run: Run) -> tuple[list[_Logged], int]:
    """Return what the run has logged of its devices, and how many more metrics there are."""
    keys = [key for key in run.keys if _wanted(key)]
    labels = [describe(key).label for key in keys]
    found = []
    for key, label in zip(keys[:_MOST], labels, strict=False):
        series = run.series(key)
        if series is not None and series.last is not None:
            plain = label if labels.count(label) == 1 else key
            found.append(_value(_short(plain), key, series))
    return found, max(0, len(keys) - _MOST)


def _short(label: str) -> str:
    """Return a label without what goes without saying in this panel."""
    return label.removeprefix("system/").replace("peak GPU memory ", "peak ")


def _wanted(key: str) -> bool:
    if key.startswith("system/"):
        return "." not in key or _OF_WANDB.fullmatch(key) is not None
    name = modern(key) if "memory" in key or "mfu" in key else ""
    return name == _MFU or _MEMORY.fullmatch(name) is not None


def _value(label: str, key: str, series: Series) -> _Logged:
    """Write the last value, with its share where it has a greatest one."""
    value, unit = series.values[-1], describe(key).unit
    if modern(key) == _MFU and value == 0:  # verl's way to say that it does not know the model or the GPU
        return _Logged(label, "unknown", None, "dim", series)
    if not math.isfinite(value):
        return _Logged(label, value_text(value, ""), None, "odd", series)
    if unit == "share" or (unit == "percent" and not _OF_WANDB.fullmatch(key) and _in_shares(series)):
        return _Logged(label, value_text(value * 100, "%"), value, "value", series)
    if unit == "percent":
        return _Logged(label, value_text(value, "%"), value / 100, "value", series)
    return _Logged(label, value_text(value, unit), None, "value", series)


def _in_shares(series: Series) -> bool:
    """Tell whether a percentage is written as a share of 1, as some logs do."""
    span = series.steps[-1] - series.steps[0] + 1
    _, (most,), _ = series.pyramid.query(series.steps[0], span, 1)
    return most is not None and most <= 1


def _logged_rows(logged: list[_Logged], width: int, *, ascii_only: bool) -> list[Pieces]:
    """Write a row for each value: label, bar, value, sparkline, in columns."""
    values = max(5, *(cell_len(item.value) for item in logged))
    label = min(max(cell_len(item.label) for item in logged), max(width - values - 1 - _LEAST_SPARK - 2, 8))
    spare = width - label - values - 1
    bars = any(item.share is not None for item in logged) and spare >= _GAUGE + 2 + _LEAST_SPARK + 2
    spark = min(_MOST_SPARK, spare - 2 - (_GAUGE + 2 if bars else 0))
    rows = []
    for item in logged:
        name = middle(item.label, label, ascii_only=ascii_only)
        row: Pieces = [(name, "dim"), (" " * (label - cell_len(name) + 1), "")]
        if bars:
            filled = " " * _GAUGE if item.share is None else gauge(item.share, _GAUGE, ascii_only=ascii_only)
            row += [(" ", ""), (filled, "" if item.share is None else "gauge"), (" ", "")]
        row.append((item.value.rjust(values), item.role))
        if spark >= 4:
            text = sparkline(item.series, spark, ascii_only=ascii_only)
            row += [("  ", ""), *((c, "odd" if c == BROKEN else "spark") for c in text)]
        rows.append(cut(row, width))
    return rows
