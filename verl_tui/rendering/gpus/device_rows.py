"""Devices as one row each, in columns that align between them, their history and processes. Widths
are terminal cells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from verl_tui.patterns import pattern
from verl_tui.records import POWER_CAP, Gpu, GpuProcess
from verl_tui.rendering.charts.sparkline import gauge, tall
from verl_tui.rendering.text.piece import Piece, Pieces, TextRows, fit, fit_left, middle
from verl_tui.rendering.text.table import WIDEST, TextColumn, table_rows
from verl_tui.runs.views.devices import Device, is_used, memory_percent
from verl_tui.times import duration

HOT_CELSIUS = 85.0
"""Temperature that is marked: data centre boards slow down from a few degrees above it."""
FULL = 98.0
"""Percent of memory in use that is marked: the next allocation may fail. Less is no bad sign, as
engines reserve their memory.
"""
GOOD, LOW = 70.0, 50.0
"""Utilisation in percent from which a device is well used, and below which it waits: the tutorials'
indicator guide, as the rule `gpu-idle` and the charts' band have it.
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


def troubles(gpu: Gpu) -> dict[str, str]:
    """Return what a device is marked for by itself, and words on it: its power limit is no
    trouble.
    """
    found = {gpu.fault: ""} if gpu.fault else {}
    for reason in gpu.throttle or ():
        if reason != POWER_CAP:
            found.setdefault("throttled", f" {reason}")
    if (gpu.temperature or 0.0) >= HOT_CELSIUS:
        found["hot"] = f" {gpu.temperature:.0f}°C"
    if (memory_percent([Device(gpu)]) or 0.0) >= FULL:
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
    return table_rows(devices, width, columns)


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
    role = worth(device)
    share = (device.gpu.utilization or 0.0) / 100
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

    def both(digits: int) -> str:
        sizes = (gpu.memory_used, gpu.memory_total)
        return "/".join(
            _NOTHING if one is None else f"{one / _GIB:.{digits}f}" for one in sizes
        )

    whole = f"{both(1)} GiB"
    if len(whole) + 4 <= cells:
        return [("mem ", "dim"), (whole, role)]
    return [(f"{both(0)}G", role)]


def _power(device: Device, cells: int) -> Pieces:
    """Write the power now, `512W`, and its limit, `512/700W`."""
    power, limit = device.gpu.power, device.gpu.power_limit
    if power is not None and limit is not None:
        words = f"{power:.0f}/{limit:.0f}W"
        if len(words) <= cells:
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
    columns = [
        TextColumn("", lambda one, _: [(f"  {one[0].pid}", "dim")], WIDEST, 9),
        TextColumn("", _process_name, 8, 8, WIDEST, gap=1),
        TextColumn("", _held, WIDEST, 2, right=True, gap=1),
        TextColumn("", lambda one, n: [(fit(one[1], n), "dim")], 8, 1, width),
    ]
    return table_rows(found, width, columns)


def _process_name(one: tuple[GpuProcess, str], cells: int) -> Pieces:
    process, relation = one
    role = "name" if relation else "value"
    name = middle(process.name or "name not visible", cells)
    return [(name, role if process.name else "dim")]


def _held(one: tuple[GpuProcess, str], _: int) -> Pieces:
    held = one[0].memory
    return [("" if held is None else f"{held / _GIB:.1f} GiB", "value")]
