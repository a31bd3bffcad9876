"""Rows of the GPU panel for the devices of one place.

In a panel a few devices take a row each, more become a matrix. On a full screen each device has a
row, with its history and its processes below.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.rendering.charts.sparkline import tall
from verl_tui.rendering.gpus.device_rows import device_rows
from verl_tui.rendering.gpus.matrix import matrix
from verl_tui.rendering.gpus.remarks import callouts, device_summary, name, side_by_side
from verl_tui.rendering.text.piece import cells_of
from verl_tui.rendering.text.printable import cut, middle, wrapped
from verl_tui.rendering.text.wrap import ELLIPSIS, fit_left
from verl_tui.times import duration
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.records import Gpu, GpuProcess
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.views.devices import Device


_ALWAYS_ROWS = 2
"""Most devices that are never a matrix, however small the panel."""
_TALLEST = 6
_SHORT = 40
"""Width below which a summary is shortened, in cells."""


def panel_rows(devices: Sequence[Device], width: int, height: int) -> list[Pieces]:
    """Write devices into a small panel.

    Args:
        devices: In the order to show.
        width: Most cells a row may take.
        height: Rows that fit; devices that need more become a matrix.
    """
    most = None if len(devices) <= max(height, _ALWAYS_ROWS) else height
    return list(_panel_rows(tuple(devices), width, most))


# devices are read more rarely than runs make steps, and measured, then drawn
@lru_cache(maxsize=4)
def _panel_rows(
    devices: tuple[Device, ...], width: int, most: int | None
) -> Sequence[Pieces]:
    """Write each device into a row, or all into so many rows."""
    if most is not None:
        return overview_rows(devices, width, most)
    return [*_rows(devices, width), *_callouts(devices, width)]


def overview_rows(devices: Sequence[Device], width: int, height: int) -> list[Pieces]:
    """Write many devices: a summary, the matrix, remarks."""
    words = side_by_side(device_summary(devices, short=width < _SHORT), width)
    callouts = _callouts(devices, width, with_idle=False)
    cells = matrix(devices, width, height - len(words) - len(callouts))
    return [*([(line, "name")] for line in words), *cells, *callouts]


def detail_rows(
    devices: Sequence[Device],
    width: int,
    height: int,
    belongs: Callable[[GpuProcess], str],
) -> list[Pieces]:
    """Write devices on a full screen: each with its history and its processes.

    Args:
        devices: In the order to show.
        width: Most cells a row may take.
        height: Rows that fit, which the histories share.
        belongs: Names the relation of a process to the shown run.
    """
    running = [process_rows(device.gpu, width, belongs) for device in devices]
    above = _callouts(devices, width)
    if (
        len(devices) > _ALWAYS_ROWS
        and len(above) + sum(1 + len(rows) for rows in running) > height
    ):
        above = [*overview_rows(devices, width, height), []]
    spare = height - len(above) - sum(1 + len(rows) for rows in running)
    tall = min(_TALLEST, spare // max(1, len(devices)))
    pasts = [
        history_chart(device, width, tall if tall > 1 else 0) for device in devices
    ]
    rows = _rows(devices, width, past=not any(pasts))
    lines = above
    for device, row, past, processes in zip(devices, rows, pasts, running, strict=True):
        words = covers(device, width - cells_of(row)) if past else []
        lines += [[*row, *words], *past, *processes]
    return lines


def _rows(devices: Sequence[Device], width: int, *, past: bool = True) -> list[Pieces]:
    longest = max(4, width // 3)
    gpus = [
        replace(device.gpu, index=fit_left(name(device), longest)) for device in devices
    ]
    if past and any(device.history for device in devices):
        pasts = [device.history for device in devices]
    else:
        pasts = []
    rows = device_rows(gpus, width, past=pasts)
    return [cut(list(row), width, ELLIPSIS) for row in rows]


def _callouts(
    devices: Sequence[Device], width: int, *, with_idle: bool = True
) -> list[Pieces]:
    remarks = callouts(devices, with_idle=with_idle)
    return [[(line, "warn")] for line in side_by_side(remarks, width)]


MOST_PROCESSES = 8
"""Processes shown of one device."""
_GIB = 1 << 30
_LEAST_HISTORY = 16
"""Smallest width of a history in rows of its own, in cells."""


def history_chart(device: Device, width: int, height: int) -> list[Pieces]:
    """Draw a device's utilisation over time as columns behind a scale, nothing without room."""
    room = width - 5
    if not device.history or height < 1 or room < _LEAST_HISTORY:
        return []
    rows = tall(device.history, room, height)
    scale = ["100%", *[""] * (height - 2), "0%"] if height > 1 else [""]
    return [
        [(words.rjust(4) + " ", "dim"), (row, "spark")]
        for words, row in zip(scale, rows, strict=True)
    ]


def covers(device: Device, room: int) -> Pieces:
    """Say how long a time the history below a device's row covers, at the right of so many cells;
    nothing where that is unknown or has no room.
    """
    if device.span is None:
        return []
    words = f"below: the last {duration(device.span)}"
    if room > len(words):
        return [(words.rjust(room), "dim")]
    return []


def process_rows(
    gpu: Gpu, width: int, belongs: Callable[[GpuProcess], str]
) -> list[Pieces]:
    """Return a row for each process: id, name, memory, and its relation to the shown run.

    Args:
        gpu: The device.
        width: Most cells a row may take.
        belongs: Names the relation of a process to the run, empty if unknown.
    """
    found = gpu.processes or ()
    rows = [
        _process(process, belongs(process), width) for process in found[:MOST_PROCESSES]
    ]
    if len(found) > MOST_PROCESSES:
        more = f"  +{counted(len(found) - MOST_PROCESSES, 'process', 'processes')}"
        rows.append([(line, "dim") for line in wrapped(more, width)[:1]])
    return rows


def _process(process: GpuProcess, relation: str, width: int) -> Pieces:
    """Write one process; the name is cut first, then columns go from the end."""
    pid = f"  {process.pid} "
    memory = "" if process.memory is None else f" {process.memory / _GIB:.1f} GiB"
    words = f"  {relation}" if relation else ""
    room = width - cell_len(pid) - cell_len(memory) - cell_len(words)
    if room < 8:
        room = room + cell_len(words)
        words = ""
    if room < 4:
        room = room + cell_len(memory)
        memory = ""
    role = "name" if relation else "value"
    if not process.name:
        role = "dim"
    name = middle(process.name or "name not visible", max(0, room))
    row: Pieces = [(pid, "dim"), (name, role), (memory, "value"), (words, "dim")]
    return cut(row, width, ELLIPSIS)
