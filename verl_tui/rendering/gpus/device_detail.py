"""One device over several rows: its row, its past as columns, its processes. For a panel that fills
the screen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.rendering.text.block_levels import tall
from verl_tui.rendering.text.printable import cut, middle, wrapped
from verl_tui.rendering.text.wrap import ellipsis

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.records import Gpu, GpuProcess
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.views.devices import Device

MOST_PROCESSES = 8
"""Processes shown of one device."""
_GIB = 1 << 30
_LEAST_PAST = 16
"""Cells below which the past is not worth rows of its own."""


def past(device: Device, width: int, height: int, *, ascii_only: bool = False) -> list[Pieces]:
    """Draw a device's past as columns, with the scale before it; nothing where there is no past or
    no room.
    """
    room = width - 5
    if not device.history or height < 1 or room < _LEAST_PAST:
        return []
    rows = tall(device.history, room, height, ascii_only=ascii_only)
    scale = ["100%", *[""] * (height - 2), "0%"] if height > 1 else [""]
    return [
        [(words.rjust(4) + " ", "dim"), (row, "spark")]
        for words, row in zip(scale, rows, strict=True)
    ]


def processes(
    gpu: Gpu, width: int, belongs: Callable[[GpuProcess], str], *, ascii_only: bool = False
) -> list[Pieces]:
    """Write a device's processes: number, name, memory, and how they belong to the run that is
    shown.

    Args:
        gpu: The device.
        width: Most cells a row may take.
        belongs: Says how a process belongs to the run, nothing where that is not known.
        ascii_only: Write ASCII alone.
    """
    found = gpu.processes or ()
    rows = [
        _process(process, belongs(process), width, ascii_only=ascii_only)
        for process in found[:MOST_PROCESSES]
    ]
    if len(found) > MOST_PROCESSES:
        rows.append(
            [
                (line, "dim")
                for line in wrapped(f"  +{len(found) - MOST_PROCESSES} processes", width)[:1]
            ]
        )
    return rows


def _process(process: GpuProcess, tie: str, width: int, *, ascii_only: bool) -> Pieces:
    """Write one process; what does not fit goes from the end, the name is cut first."""
    pid = f"  {process.pid} "
    memory = "" if process.memory is None else f" {process.memory / _GIB:.1f} GiB"
    words = f"  {tie}" if tie else ""
    room = width - cell_len(pid) - cell_len(memory) - cell_len(words)
    if room < 8 and words:
        room, words = room + cell_len(words), ""
    if room < 4 and memory:
        room, memory = room + cell_len(memory), ""
    name = middle(process.name or "name not visible", max(0, room), ascii_only=ascii_only)
    role = "name" if tie else "value"
    row: Pieces = [
        (pid, "dim"),
        (name, role if process.name else "dim"),
        (memory, "value"),
        (words, "dim"),
    ]
    return cut(row, width, ellipsis(ascii_only=ascii_only))
