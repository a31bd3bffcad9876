"""Rows of the GPU panel for the devices of one place.

In a panel a few devices take a row each, more become a matrix. On a full screen each device has a
row, with its history and its processes below.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from verl_tui.rendering.gpus import device_detail
from verl_tui.rendering.gpus.device_rows import device_rows
from verl_tui.rendering.gpus.matrix import matrix
from verl_tui.rendering.gpus.remarks import callouts, device_summary, name, side_by_side
from verl_tui.rendering.text.piece import cells_of
from verl_tui.rendering.text.printable import cut
from verl_tui.rendering.text.wrap import ELLIPSIS, fit_left

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.records import GpuProcess
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
    running = [
        device_detail.processes(device.gpu, width, belongs) for device in devices
    ]
    above = _callouts(devices, width)
    if (
        len(devices) > _ALWAYS_ROWS
        and len(above) + sum(1 + len(rows) for rows in running) > height
    ):
        above = [*overview_rows(devices, width, height), []]
    spare = height - len(above) - sum(1 + len(rows) for rows in running)
    tall = min(_TALLEST, spare // max(1, len(devices)))
    pasts = [
        device_detail.history_chart(device, width, tall if tall > 1 else 0)
        for device in devices
    ]
    rows = _rows(devices, width, past=not any(pasts))
    lines = above
    for device, row, past, processes in zip(devices, rows, pasts, running, strict=True):
        covers = device_detail.covers(device, width - cells_of(row)) if past else []
        lines += [[*row, *covers], *past, *processes]
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
