"""Lays out the devices of one place as rows of text, as much of each as there is room for.

Few devices are a row each; more than there are rows become a matrix. Over a full screen every
device has a row, with its past and its processes below. Pure functions, no Textual.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from verl_tui.rendering.gpus import device_detail
from verl_tui.rendering.gpus.device_rows import gpu_rows
from verl_tui.rendering.gpus.matrix import matrix
from verl_tui.rendering.gpus.remarks import callouts, name, packed, summary
from verl_tui.rendering.text.printable import cut
from verl_tui.rendering.text.wrap import ellipsis, fit_left

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.records import GpuProcess
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.views.devices import Device

_ALWAYS_ROWS = 2
"""Devices that are never a matrix, however few rows there are."""
_TALLEST = 6
_SHORT = 40
"""Cells below which a summary is said in fewer letters."""


def panel_rows(
    devices: Sequence[Device], width: int, height: int, *, ascii_only: bool = False
) -> list[Pieces]:
    """Write devices into a small panel.

    Args:
        devices: In the order to show.
        width: Most cells a row may take.
        height: Rows there is room for; where devices need more, they become a matrix.
        ascii_only: Draw with ASCII alone.
    """
    if len(devices) > max(height, _ALWAYS_ROWS):
        return overview_rows(devices, width, height, ascii_only=ascii_only)
    return [
        *_rows(devices, width, ascii_only=ascii_only),
        *_callouts(devices, width, ascii_only=ascii_only),
    ]


def overview_rows(
    devices: Sequence[Device], width: int, height: int, *, ascii_only: bool = False
) -> list[Pieces]:
    """Write many devices: a summary, the matrix, what stands out."""
    words = packed(summary(devices, short=width < _SHORT), width, ascii_only=ascii_only)
    standing = _callouts(devices, width, idlers_said=True, ascii_only=ascii_only)
    cells = matrix(devices, width, height - len(words) - len(standing), ascii_only=ascii_only)
    return [*([(line, "name")] for line in words), *cells, *standing]


def detail_rows(
    devices: Sequence[Device],
    width: int,
    height: int,
    belongs: Callable[[GpuProcess], str],
    *,
    ascii_only: bool = False,
) -> list[Pieces]:
    """Write devices over a full screen: each with its past and its processes.

    Args:
        devices: In the order to show.
        width: Most cells a row may take.
        height: Rows there is room for, which the pasts share.
        belongs: Says how a process belongs to the run that is shown.
        ascii_only: Draw with ASCII alone.
    """
    running = [
        device_detail.processes(device.gpu, width, belongs, ascii_only=ascii_only)
        for device in devices
    ]
    above = _callouts(devices, width, ascii_only=ascii_only)
    if len(devices) > _ALWAYS_ROWS and len(above) + sum(1 + len(rows) for rows in running) > height:
        above = [*overview_rows(devices, width, height, ascii_only=ascii_only), []]
    spare = height - len(above) - sum(1 + len(rows) for rows in running)
    tall = min(_TALLEST, spare // max(1, len(devices)))
    pasts = [
        device_detail.past(device, width, tall if tall > 1 else 0, ascii_only=ascii_only)
        for device in devices
    ]
    rows = _rows(devices, width, past=not any(pasts), ascii_only=ascii_only)
    lines = above
    for row, past, processes in zip(rows, pasts, running, strict=True):
        lines += [row, *past, *processes]
    return lines


def _rows(
    devices: Sequence[Device], width: int, *, past: bool = True, ascii_only: bool
) -> list[Pieces]:
    longest, mark = max(4, width // 3), ellipsis(ascii_only=ascii_only)
    gpus = [replace(device.gpu, index=fit_left(name(device), longest, mark)) for device in devices]
    pasts = (
        [device.history for device in devices]
        if past and any(device.history for device in devices)
        else []
    )
    rows = gpu_rows(gpus, width, ascii=ascii_only, past=pasts)
    return [cut([(text, role) for text, role in row], width, mark) for row in rows]


def _callouts(
    devices: Sequence[Device], width: int, *, idlers_said: bool = False, ascii_only: bool
) -> list[Pieces]:
    said = callouts(devices, idlers_said=idlers_said)
    return [[(line, "warn")] for line in packed(said, width, ascii_only=ascii_only)]
