"""Devices as one row each, in columns that align between them, their history and processes. Widths
are terminal cells.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.patterns import pattern
from verl_tui.records import POWER_CAP
from verl_tui.rendering.charts.sparkline import gauge, tall
from verl_tui.rendering.gpus.remarks import finite, full, hot
from verl_tui.rendering.text.printable import middle
from verl_tui.rendering.text.table import FittedTable, TextColumn
from verl_tui.rendering.text.wrap import fit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.records import Gpu, GpuProcess
    from verl_tui.rendering.text.piece import Piece, Pieces
    from verl_tui.runs.views.devices import Device

_GIB = 1 << 30
_LONGEST_NAME = 16
_LONGEST_BAR, _MOST_HISTORY = 24, 40
_REASON = len("power brake")
"""Cells for a throttle reason, kept free so that nothing moves when one comes and goes."""
_NOTHING = "–"
_LEAST_HISTORY = 16
"""Smallest width of a history in rows of its own, in cells."""

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


def device_rows(
    gpus: Sequence[Gpu], width: int, *, past: Sequence[Sequence[float]] = ()
) -> list[Pieces]:
    """Lay out devices as one row each, e.g. `0 H100 ██████▉   87% mem 62.1/79.6 GiB 71°C 512/700W`.

    Unknown values show as `–`.

    Args:
        gpus: The devices, in the order to show.
        width: Most cells a row may take; rows may stay shorter.
        past: Utilisation of each device until now, oldest first; empty to show none.
    """
    if width <= 0 or not gpus:
        return [[] for _ in gpus]
    histories = past or [()] * len(gpus)
    table = _table(gpus, width, with_past=bool(past))
    return [table.row(device) for device in zip(gpus, histories, strict=True)]


_Device = tuple["Gpu", "Sequence[float]"]
"""A device, and its utilisation until now."""
_column: Callable[..., TextColumn[_Device]] = partial(TextColumn, "", gap=1)


def _table(gpus: Sequence[Gpu], width: int, *, with_past: bool) -> FittedTable[_Device]:
    def longest(text: Callable[[Gpu], str]) -> int:
        return max(cell_len(text(gpu)) for gpu in gpus)

    index, power = longest(lambda gpu: gpu.index), longest(_power)
    limited = longest(lambda gpu: _power(gpu, brief=False))
    model = min(_LONGEST_NAME, longest(lambda gpu: gpu_model(gpu.name)))
    brief, whole = longest(_memory), longest(lambda gpu: _memory(gpu, brief=False))
    # What it is in so many cells, how wide, how long it stays.
    columns: list[TextColumn[_Device]] = [
        TextColumn("", lambda d, n: [(fit(d[0].index, n), "name")], index, 9),
        _column(lambda d, n: [(fit(gpu_model(d[0].name), n), "name")], model, 3),
        _column(lambda d, n: [_bar(d[0], n)], 4, 5, most=_LONGEST_BAR),
        _column(lambda d, _: [_number(d[0].utilization, "%")], 4, 8, right=True),
        _column(lambda d, n: [_history(d[1], n)], 8, 1, most=_MOST_HISTORY),
        _column(lambda d, n: _used(d[0], brief=n < whole), brief, 7, most=whole, right=True),
        _column(lambda d, _: [_celsius(d[0])], 5, 6, right=True),
        _column(lambda d, n: [_watts(d[0], n < limited)], power, 4, most=limited, right=True),
        _column(lambda d, _: [_reason(d[0])], _REASON, 2),
    ]  # fmt: skip
    if not with_past:
        del columns[4]
    return FittedTable(columns, width)


def _bar(gpu: Gpu, cells: int) -> Piece:
    return gauge((finite(gpu.utilization) or 0.0) / 100, cells), "bar"


def _history(past: Sequence[float], cells: int) -> Piece:
    return tall(past, cells, 1)[0].rjust(cells), "spark"


def _number(value: float | None, unit: str, role: str = "value") -> Piece:
    value = finite(value)
    return (_NOTHING, "dim") if value is None else (f"{value:.0f}{unit}", role)


def _celsius(gpu: Gpu) -> Piece:
    return _number(gpu.temperature, "°C", "value" if hot(gpu) is None else "warn")


def _memory(gpu: Gpu, *, brief: bool = True) -> str:
    """Write the memory in use and in all, `62/80G` or `mem 62.1/79.6 GiB`."""
    digits = 0 if brief else 1
    known = (
        _NOTHING if size is None else f"{size / _GIB:.{digits}f}"
        for size in (gpu.memory_used, gpu.memory_total)
    )
    words = "/".join(known)
    return f"{words}G" if brief else f"mem {words} GiB"


def _used(gpu: Gpu, *, brief: bool) -> Pieces:
    label = "" if brief else "mem "
    words = _memory(gpu, brief=brief).removeprefix(label)
    return [(label, "dim"), (words, "value" if full(gpu) is None else "warn")]


def _power(gpu: Gpu, *, brief: bool = True) -> str:
    """Write the power now, `512W`, and its limit, `512/700W`."""
    power, limit = finite(gpu.power), finite(gpu.power_limit)
    if power is None:
        return _NOTHING
    return f"{power:.0f}W" if brief or limit is None else f"{power:.0f}/{limit:.0f}W"


def _watts(gpu: Gpu, brief: bool) -> Piece:
    return _power(gpu, brief=brief), "value"


def _reason(gpu: Gpu) -> Piece:
    """Return the worst reason for throttled clocks."""
    reason = next(iter(gpu.throttle or ()), "")
    return reason[:_REASON], "dim" if reason == POWER_CAP else "warn"


# -- below a device's row --------------------------------------------------------------------------


def history_rows(device: Device, width: int, height: int) -> list[Pieces]:
    """Draw a device's utilisation over time as columns behind a scale, nothing without room."""
    room = width - 5
    if not device.history or height < 2 or room < _LEAST_HISTORY:
        return []
    scale = ["100%", *[""] * (height - 2), "0%"]
    return [
        [(words.rjust(4) + " ", "dim"), (row, "spark")]
        for words, row in zip(scale, tall(device.history, room, height), strict=True)
    ]


def process_rows(
    gpu: Gpu, width: int, belongs: Callable[[GpuProcess], str]
) -> list[Pieces]:
    """Return a row for each process: id, name, memory, and its relation to the shown run.

    Args:
        gpu: The device.
        width: Most cells a row may take.
        belongs: Names the relation of a process to the run, empty if unknown.
    """
    found = [(one, belongs(one)) for one in gpu.processes or ()]
    longest = max([cell_len(_process_name(one)) for one, _ in found], default=0)
    pid = max([len(f"  {one.pid}") for one, _ in found], default=0)
    held = max([len(_held(one)) for one, _ in found], default=0)
    columns: list[TextColumn[tuple[GpuProcess, str]]] = [
        TextColumn("", lambda one, _: [(f"  {one[0].pid}", "dim")], pid, 9),
        TextColumn("", _named, 8, 8, longest, gap=1),
        TextColumn("", lambda one, _: [(_held(one[0]), "value")], held, 2, right=True, gap=1),
        TextColumn("", lambda one, n: [(fit(one[1], n), "dim")], 8, 1, width),
    ]  # fmt: skip
    table = FittedTable(columns, width)
    return [table.row(one) for one in found]


def _process_name(process: GpuProcess) -> str:
    return process.name or "name not visible"


def _named(one: tuple[GpuProcess, str], cells: int) -> Pieces:
    process, relation = one
    role = "name" if relation else "value"
    return [(middle(_process_name(process), cells), role if process.name else "dim")]


def _held(process: GpuProcess) -> str:
    return "" if process.memory is None else f"{process.memory / _GIB:.1f} GiB"
