"""Devices as one row each, in columns that align between them. Widths are terminal cells."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.patterns import pattern
from verl_tui.records import POWER_CAP
from verl_tui.rendering.charts.sparkline import gauge, tall
from verl_tui.rendering.text.table import FittedTable, TextColumn
from verl_tui.rendering.text.wrap import fit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.records import Gpu
    from verl_tui.rendering.text.piece import Piece, Pieces

HOT_CELSIUS = 85.0
"""Temperature that is marked: data centre boards slow down from a few degrees above it."""
FULL_SHARE = 0.98
"""Share of used memory that is marked: the next allocation may fail."""

_GIB = 1 << 30
_LONGEST_NAME = 16
_LONGEST_BAR, _MOST_HISTORY = 24, 40
_REASON = len("power brake")
"""Cells for a throttle reason, kept free so that nothing moves when one comes and goes."""
_NOTHING = "–"

# Words that all boards of a host share, or that are less informative than the model.
_NOISE = pattern(
    r"-?\b(?:NVIDIA|GeForce|Tesla|Quadro|Generation|Blackwell|Server|Workstation|Edition|GPU"
    r"|SXM\d*|PCIe|HBM\w*|\d+ ?GB)\b",
    re.IGNORECASE,
)
_INSTANCE = pattern(r"\bMIG\b.*")


def gpu_model(name: str) -> str:
    """Return the model: `H100` of `NVIDIA H100 80GB HBM3`, `MIG 1g.10gb` of an instance."""
    instance = _INSTANCE.search(name)
    if instance is not None:
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
        _column(lambda d, n: [_bar(d[0].utilization, n)], 4, 5, most=_LONGEST_BAR),
        _column(lambda d, _: [_number(d[0].utilization, "%")], 4, 8, right=True),
        _column(lambda d, n: [_history(d[1], n)], 8, 1, most=_MOST_HISTORY),
        _column(lambda d, n: _used(d[0], brief=n < whole), brief, 7, most=whole, right=True),
        _column(lambda d, _: [_celsius(d[0])], 5, 6, right=True),
        _column(lambda d, n: [_watts(d[0], n < limited)], power, 4, most=limited, right=True),
        _column(lambda d, _: _throttle_reason(d[0]), _REASON, 2),
    ]  # fmt: skip
    if not with_past:
        del columns[4]
    return FittedTable(columns, width)


_column: Callable[..., TextColumn[_Device]] = partial(TextColumn, "", gap=1)


def _history(past: Sequence[float], cells: int) -> Piece:
    return tall(past, cells, 1)[0].rjust(cells), "spark"


def _celsius(gpu: Gpu) -> Piece:
    return _number(gpu.temperature, "°C", HOT_CELSIUS)


def _watts(gpu: Gpu, brief: bool) -> Piece:
    return _power(gpu, brief=brief), "value"


def _bar(percent: float | None, cells: int) -> Piece:
    return gauge((finite(percent) or 0.0) / 100, cells), "bar"


def _number(value: float | None, unit: str, warn: float = math.inf) -> Piece:
    value = finite(value)
    if value is None:
        return _NOTHING, "dim"
    return f"{value:.0f}{unit}", "warn" if value >= warn else "value"


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
    return [(label, "dim"), (words, "warn" if is_full(gpu) else "value")]


def is_full(gpu: Gpu) -> bool:
    """Return whether nearly all memory of a device is in use."""
    used, total = gpu.memory_used, gpu.memory_total
    return used is not None and bool(total) and used >= FULL_SHARE * (total or 0)


def _power(gpu: Gpu, *, brief: bool = True) -> str:
    """Write the power now, `512W`, and its limit, `512/700W`."""
    power, limit = finite(gpu.power), finite(gpu.power_limit)
    if power is None:
        return _NOTHING
    return f"{power:.0f}W" if brief or limit is None else f"{power:.0f}/{limit:.0f}W"


def _throttle_reason(gpu: Gpu) -> Pieces:
    """Return the worst reason for throttled clocks."""
    if not gpu.throttle:
        return []
    reason = gpu.throttle[0]
    return [(reason[:_REASON], "dim" if reason == POWER_CAP else "warn")]


def finite(value: float | None) -> float | None:
    """Return a finite value, None for others."""
    return value if value is not None and math.isfinite(value) else None
