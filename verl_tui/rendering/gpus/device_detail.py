"""Details of a device below its row, for a panel that fills the screen: history and processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.rendering.text.block_levels import tall
from verl_tui.rendering.text.printable import cut, middle, wrapped
from verl_tui.rendering.text.wrap import ELLIPSIS
from verl_tui.times import duration
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.records import Gpu, GpuProcess
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.views.devices import Device

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


def processes(
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
