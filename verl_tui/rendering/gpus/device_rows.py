"""Devices as one row each, in columns that align between them, their history and processes; and
what a run has logged about its hosts. Widths are terminal cells.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.metrics import describe, modern
from verl_tui.patterns import NamePattern, pattern
from verl_tui.records import POWER_CAP, Gpu, GpuProcess
from verl_tui.rendering.charts.sparkline import gauge, sparkline, tall
from verl_tui.rendering.text.numbers import value_text
from verl_tui.rendering.text.piece import fit, fit_left, middle
from verl_tui.rendering.text.table import WIDEST, FittedTable, TextColumn
from verl_tui.runs.cached import cached_by_keys
from verl_tui.runs.views.devices import Device, is_used, memory_percent
from verl_tui.times import duration

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from verl_tui.rendering.text.piece import Piece, Pieces, TextRows
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

HOT_CELSIUS = 85.0
"""Temperature that is marked: data centre boards slow down from a few degrees above it."""
FULL = 98.0
"""Percent of memory in use that is marked: the next allocation may fail. Less is no bad sign, as
engines reserve their memory.
"""
GOOD, LOW = 70.0, 50.0
"""Utilisation in percent from which on a device is well used, and below which it waits: the
tutorials' indicator guide, as the rule `gpu-idle` and the charts' band have it.
"""
_GIB = 1 << 30
_LONGEST_NAME = 16
_REASON = len("power brake")
"""Cells for a throttle reason, kept free so that nothing moves when one comes and goes."""
_NOTHING = "–"
_NOW = " now"
_SCALE = len("−3h 05m ") + len(_NOW)
"""Cells beside a history for the ends of its time."""
_LEAST_HISTORY = 16
"""Smallest width of a history in rows of its own."""


def finite(value: float | None) -> float | None:
    """Return a finite value, None for others."""
    return value if value is not None and math.isfinite(value) else None


def troubles(gpu: Gpu) -> dict[str, str]:
    """Return what a device is marked for by itself, and words on it: its power limit is no
    trouble.
    """
    found = {gpu.fault: ""} if gpu.fault else {}
    for reason in gpu.throttle or ():
        if reason != POWER_CAP:
            found.setdefault("throttled", f" {reason}")
    celsius, used = finite(gpu.temperature) or 0.0, memory_percent([Device(gpu)])
    if celsius >= HOT_CELSIUS:
        found["hot"] = f" {celsius:.0f}°C"
    if used is not None and used >= FULL:
        found["memory full"] = ""
    return found


# Words that all boards of a host share, or that are less informative than the model.
_NOISE = pattern(
    r"-?\b(?:NVIDIA|GeForce|Tesla|Quadro|Generation|Blackwell|Server|Workstation|Edition|GPU"
    r"|SXM\d*|PCIe|HBM\w*|\d+ ?GB)\b",
    re.IGNORECASE,
)
_INSTANCE = pattern(r"\bMIG\b.*")


def gpu_model(name: str) -> str:
    """Return the model: `H100` of `NVIDIA H100 80GB HBM3`, `MIG 1g.10gb` of an instance."""
    if instance := _INSTANCE.search(name):
        return instance.group()
    return " ".join(_NOISE.sub(" ", name).split()) or name


_column: Callable[..., TextColumn[Device]]
_column = partial(TextColumn, "", gap=1)


def name(device: Device) -> str:
    """Return the name of a device: `3`, or `node2:3` among several nodes."""
    return f"{device.node}:{device.gpu.index}" if device.node else device.gpu.index


def device_rows(
    devices: Sequence[Device], width: int, *, past: bool = True
) -> TextRows:
    """Lay out devices as one row each, e.g. `0 H100 ━━━━━━───  87% ━━━─ 62.1/79.6 GiB 71°C
    512/700W`; the time that the histories cover stands beside the first.

    Args:
        devices: In the order to show; unknown values show as `–`.
        width: Most cells a row may take.
        past: Whether histories are shown where there are any.
    """
    # What it is in so many cells, how wide, how long it stays.
    columns = [
        _column(_name, WIDEST, 9, gap=2),
        _column(_model, WIDEST, 2),
        _column(_bar, 4, 5, most=20),
        _column(_busy, 4, 8, right=True),
        _column(_memory_bar, 4, 3, most=12),
        _column(_memory, 8, 7, most=WIDEST, right=True),
        _column(_celsius, 5, 6, right=True),
        _column(_power, 5, 4, most=WIDEST, right=True),
        _column(_reason, _REASON, 1),
    ]
    if past and any(one.lately is not None for one in devices):
        history = partial(_past, first=devices[0])
        columns.append(_column(history, 8 + _SCALE, 0, most=40 + _SCALE))
    return [*map(FittedTable(columns, width, devices).row, devices)]


def worth(device: Device) -> str:
    """Return the role of a device's utilisation: by its mean, as it idles briefly between two
    kernels; one that the run does not use has none to judge.
    """
    if device.lately is None or not is_used(device) or LOW <= device.lately < GOOD:
        return "value"
    return "good" if device.lately >= GOOD else "warning"


def _name(device: Device, cells: int) -> Pieces:
    return [(fit_left(name(device), min(cells, _LONGEST_NAME)), "name")]


def _busy(device: Device, _: int) -> Pieces:
    return [_number(device.gpu.utilization, "%", worth(device))]


def _bar(device: Device, cells: int) -> Pieces:
    share = (finite(device.gpu.utilization) or 0.0) / 100
    role = worth(device)
    return gauge(share, cells, "gauge" if role == "value" else role)


def _past(device: Device, cells: int, *, first: Device) -> Pieces:
    """Draw the utilisation until now, newest at the end, between the ends of its time."""
    bars = tall(device.history, cells - _SCALE, 1)[0]
    begin = _since(device, cells - _SCALE) if device is first else ""
    return [
        (begin.rjust(cells - len(bars) - len(_NOW)), "dim"),
        (bars, "spark"),
        ((_NOW if begin and device.live else "").ljust(len(_NOW)), "dim"),
    ]


def _model(device: Device, cells: int) -> Pieces:
    return [(fit(gpu_model(device.gpu.name), min(cells, _LONGEST_NAME)), "name")]


def _number(value: float | None, unit: str, role: str = "value") -> Piece:
    value = finite(value)
    return (_NOTHING, "dim") if value is None else (f"{value:.0f}{unit}", role)


def _celsius(device: Device, _: int) -> Pieces:
    role = "warn" if "hot" in troubles(device.gpu) else "value"
    return [_number(device.gpu.temperature, "°C", role)]


def _memory_bar(device: Device, cells: int) -> Pieces:
    percent = memory_percent([device])
    role = "warning" if "memory full" in troubles(device.gpu) else "gauge"
    return [] if percent is None else gauge(percent / 100, cells, role)


def _memory(device: Device, cells: int) -> Pieces:
    """Write the memory in use and in all, `62/80G` or `mem 62.1/79.6 GiB`."""
    gpu = device.gpu
    role = "warn" if "memory full" in troubles(gpu) else "value"
    both = [one and one / _GIB for one in (gpu.memory_used, gpu.memory_total)]
    whole = "/".join(_NOTHING if one is None else f"{one:.1f}" for one in both) + " GiB"
    if len(whole) + 4 <= cells:
        return [("mem ", "dim"), (whole, role)]
    return [
        ("/".join(_NOTHING if one is None else f"{one:.0f}" for one in both), role),
        ("G", role),
    ]


def _power(device: Device, cells: int) -> Pieces:
    """Write the power now, `512W`, and its limit, `512/700W`."""
    power, limit = finite(device.gpu.power), finite(device.gpu.power_limit)
    words = (
        f"{power:.0f}/{limit:.0f}W" if power is not None and limit is not None else ""
    )
    if words and len(words) <= cells:
        return [(words, "value")]
    return [_number(power, "W")]


def _reason(device: Device, _: int) -> Pieces:
    """Return the worst reason for throttled clocks."""
    reason = next(iter(device.gpu.throttle or ()), "")
    return [(reason[:_REASON], "dim" if reason == POWER_CAP else "warn")]


# -- below a device's row --------------------------------------------------------------------------


def history_rows(device: Device, width: int, height: int) -> TextRows:
    """Draw a device's utilisation over time as columns, beside their scale and the time where they
    begin; nothing without room.
    """
    room = width - _SCALE
    if not device.history or height < 2 or room < _LEAST_HISTORY:
        return []
    bars = tall(device.history, room, height)
    scale = ["100% ", *[""] * (height - 2), f"{_since(device, room)}0% "]
    return [
        [(words.rjust(_SCALE), "dim"), (row, "spark")]
        for words, row in zip(scale, bars, strict=True)
    ]


def _since(device: Device, cells: int) -> str:
    """Return how long ago the first of so many cells of history was, empty where unknown."""
    if device.span is None:
        return ""
    share = min(1.0, cells / max(1, len(device.history)))
    return "−" * device.live + f"{duration(share * device.span)} "


def process_rows(
    gpu: Gpu, width: int, belongs: Callable[[GpuProcess], str]
) -> TextRows:
    """Return a row for each process: id, name, memory, and its relation to the shown run, which
    `belongs` names, empty if unknown.
    """
    found = [(one, belongs(one)) for one in gpu.processes or ()]
    columns: list[TextColumn[tuple[GpuProcess, str]]] = [
        TextColumn("", lambda one, _: [(f"  {one[0].pid}", "dim")], WIDEST, 9),
        TextColumn("", _process_name, 8, 8, WIDEST, gap=1),
        TextColumn("", _held, WIDEST, 2, right=True, gap=1),
        TextColumn("", lambda one, n: [(fit(one[1], n), "dim")], 8, 1, width),
    ]
    return [*map(FittedTable(columns, width, found).row, found)]


def _process_name(one: tuple[GpuProcess, str], cells: int) -> Pieces:
    process, relation = one
    role = "name" if relation else "value"
    name = middle(process.name or "name not visible", cells)
    return [(name, role if process.name else "dim")]


def _held(one: tuple[GpuProcess, str], _: int) -> Pieces:
    held = one[0].memory
    return [("" if held is None else f"{held / _GIB:.1f} GiB", "value")]


# -- what a run has logged of its hosts, memory and utilisation ------------------------------------

_PEAK_MEMORY = NamePattern(r"(?:\w+/)?perf/max_memory_\w+_gb")
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


class _Figure(NamedTuple):
    """The last value of a metric."""

    label: str
    value: str
    role: str
    share: float | None
    """Value as a share of its maximum, None if that is unknown."""
    series: Series


def figure_rows(run: Run, used: Collection[str], width: int) -> TextRows:
    """Return a row for each figure that a run has logged of its hosts, in columns: label, bar,
    value, sparkline; and how many are left out. `used` are the keys that are shown elsewhere.
    """
    keys = [key for key in _figure_keys(run) if key not in used and width > 0]
    found = [*_figures(run, keys)]
    columns: list[TextColumn[_Figure]] = [
        TextColumn("", lambda one, n: [(middle(one.label, n), "dim")], 8, 8, WIDEST),
        TextColumn("", _gauge, 8, 1),
        TextColumn("", lambda one, _: [(one.value, one.role)], WIDEST, 9, right=True),
        TextColumn("", lambda one, n: sparkline(one.series, n, "spark"), 6, 2, most=24),
    ]
    if all(one.share is None for one in found):
        del columns[1]
    rows = [*map(FittedTable(columns, width, found).row, found)]
    left_out = len(keys) - _MOST
    return [*rows, [(f"+{left_out} more", "dim")]] if left_out > 0 else rows


def _figures(run: Run, keys: Sequence[str]) -> Iterator[_Figure]:
    count = Counter(describe(key).label for key in keys)
    for key in keys[:_MOST]:
        series = run.present(key)
        if series is not None and not _says_nothing(key, series):
            label = describe(key).label
            yield _figure(key, label if count[label] == 1 else key, series)


@cached_by_keys
def _figure_keys(run: Run) -> list[str]:
    return [key for key in run.keys if _is_figure(key)]


def _is_figure(key: str) -> bool:
    if key.startswith("system/"):
        return "." not in key or _OF_WANDB.fullmatch(key) is not None
    name = modern(key) if "memory" in key or "mfu" in key else ""
    return name == _MFU or _PEAK_MEMORY.fullmatch(name) is not None


def _says_nothing(key: str, series: Series) -> bool:
    """Return whether memory is what no machine has: none at all, as verl logs where there is no
    GPU, or next to nothing of the host's, as W&B does where a container has no limit.
    """
    bounds = series.pyramid.bounds
    if bounds is None:
        return False
    if _HOST_MEMORY.fullmatch(key):
        return bounds[1] < _LEAST_OF_HOST
    return _PEAK_MEMORY.fullmatch(modern(key)) is not None and bounds[1] == 0


def _figure(key: str, label: str, series: Series) -> _Figure:
    """Return the last value in words, and its share if it has a maximum."""
    # words that are obvious in this panel
    label = label.removeprefix("system/").replace("peak GPU memory ", "peak ")
    label = label.replace("CPU of the process", "process CPU")
    value, unit = series.values[-1], describe(key).unit
    if modern(key) == _MFU and value == 0:  # verl writes 0 for an unknown model or GPU
        return _Figure(label, "unknown", "dim", None, series)
    if not math.isfinite(value):
        return _Figure(label, value_text(value, ""), "odd", None, series)
    share = {"share": value, "percent": value / 100}.get(unit)
    return _Figure(label, value_text(value, unit), "value", share, series)


def _gauge(one: _Figure, cells: int) -> Pieces:
    return [] if one.share is None else gauge(one.share, cells, "gauge")
