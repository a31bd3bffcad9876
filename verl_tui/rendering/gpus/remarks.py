"""Many devices at a glance: remarks on those that stand out, a summary, and a matrix with a row for
each node and a cell for each device. Widths are terminal cells.

All remarks but those on lost devices are heuristics on recent averages, since every device idles
briefly between two kernels.
"""

from __future__ import annotations

import math
from operator import itemgetter
from statistics import median
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from verl_tui.records import POWER_CAP
from verl_tui.rendering.text.printable import cut, printable, wrapped
from verl_tui.rendering.text.wrap import ELLIPSIS, fit_left
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from verl_tui.records import Gpu
    from verl_tui.rendering.text.piece import Piece, Pieces
    from verl_tui.runs.views.devices import Device

IDLE = 10.0
"""Utilisation in percent below which a device is idle while another one works."""
WORKS = 40.0
"""Utilisation in percent from which on a device works."""
UNEVEN = 30.0
"""Difference between the most and the least busy device that is remarked, in percentage points."""
HOT_CELSIUS = 85.0
"""Temperature that is marked: data centre boards slow down from a few degrees above it."""
FULL_SHARE = 0.98
"""Share of used memory that is marked: the next allocation may fail."""
_NAMED = 4
"""Most devices listed by name; the others are counted."""


def finite(value: float | None) -> float | None:
    """Return a finite value, None for others."""
    return value if value is not None and math.isfinite(value) else None


def name(device: Device) -> str:
    """Return the name of a device: `3`, or `node2:3` among several nodes."""
    return f"{device.node}:{device.gpu.index}" if device.node else device.gpu.index


def _busy(device: Device) -> float | None:
    """Return a device's utilisation from 0 to 100, None where it is unknown."""
    percent = finite(device.gpu.utilization)
    return None if percent is None else min(max(percent, 0.0), 100.0)


def _lately(devices: Iterable[Device]) -> list[tuple[float, Device]]:
    """Return how busy the devices have been lately that are still there."""
    return [
        (device.lately, device)
        for device in devices
        if device.lately is not None and not device.gpu.fault
    ]


def _idle(devices: Sequence[Device]) -> list[Device]:
    """Return the devices that are idle while others work, and have not always been."""
    known = _lately(devices)
    if max((percent for percent, _ in known), default=0.0) < WORKS:
        return []
    return [device for percent, device in known if percent < IDLE and device.worked]


def _throttled(gpu: Gpu) -> str | None:
    """Return by what a device is throttled, None where it is not, or by its power limit only."""
    found = (f" {word}" for word in gpu.throttle or () if word != POWER_CAP)
    return next(found, None)


def hot(gpu: Gpu) -> str | None:
    """Return the temperature of a device that is about to slow down from heat, None of others."""
    celsius = finite(gpu.temperature) or 0.0
    return f" {celsius:.0f}°C" if celsius >= HOT_CELSIUS else None


def full(gpu: Gpu) -> str | None:
    """Return an empty text where nearly all memory of a device is in use, else None."""
    used, total = gpu.memory_used, gpu.memory_total
    return "" if used is not None and total and used >= FULL_SHARE * total else None


_TRAITS = {"throttled": _throttled, "hot": hot, "memory full": full}
"""What a device is marked for by itself."""


def device_summary(devices: Sequence[Device], *, short: bool = False) -> list[str]:
    """Return number, utilisation, idle ones and power of devices, `short` in fewer letters."""
    nodes = len({device.node for device in devices})
    parts = [counted(len(devices), "GPU") + f" on {nodes} nodes" * (nodes > 1)]
    if known := [percent for percent in map(_busy, devices) if percent is not None]:
        form = "{:.0f}/{:.0f}/{:.0f}%" if short else "min {:.0f} med {:.0f} max {:.0f}%"
        parts.append(form.format(min(known), median(known), max(known)))
    if idlers := _idle(devices):
        parts.append(f"{len(idlers)} idle: {_listed([*map(name, idlers)])}")
    watts = sum(finite(device.gpu.power) or 0.0 for device in devices)
    power = f"{watts / 1000:.1f} kW" if watts >= 1000 else f"{watts:.0f} W"
    return [*parts, *[power] * (watts > 0)]


def callouts(devices: Sequence[Device], *, with_idle: bool = True) -> Iterator[str]:
    """Yield a few words for each remark; idle devices may be left to the summary."""
    idlers = _idle(devices)
    never = [device for device in devices if not device.worked]
    found: dict[str, list[str]] = {}
    for one in devices:
        if one.gpu.fault:
            found.setdefault(one.gpu.fault, []).append(name(one))
    found["idle"] = [*map(name, idlers * with_idle)]
    unused = never * (len(never) < len(devices))
    found["never at work, maybe not this run's"] = [*map(name, unused)]
    for trait, of in _TRAITS.items():
        said = ((name(one), of(one.gpu)) for one in devices)
        found[trait] = [whose + text for whose, text in said if text is not None]
    for what, names in found.items():
        if names:
            yield f"{what}: GPU {_listed(names)}"
    rest = [one for one in devices if one not in (*idlers, *never)]
    known = sorted(_lately(rest), key=itemgetter(0))
    if known and known[-1][0] - known[0][0] >= UNEVEN:
        (low, least), (high, most) = known[0], known[-1]
        yield f"uneven lately: GPU {name(least)} {low:.0f}%, GPU {name(most)} {high:.0f}%"


def _listed(names: Sequence[str]) -> str:
    more = f" +{len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def side_by_side(parts: Iterable[str], width: int) -> list[str]:
    """Return parts side by side in lines; only parts longer than a line are broken."""
    lines: list[str] = []
    for part in parts:
        if lines and cell_len(lines[-1]) + 2 + cell_len(part) <= width:
            lines[-1] += f"  {part}"
        else:
            lines += wrapped(part, width)
    return lines


# -- the matrix ------------------------------------------------------------------------------------

_MARKS = {
    "lost": "x",
    "idle": "!",
    "throttled": "v",
    "hot": "^",
    "memory full": "#",
    "unknown": "?",
}
"""Meanings with their marks; a device gets the first that applies."""
_NUMBER, _DIGIT = 4, 1
"""Cells of a device as percentage with its mark, as the tens digit or its mark."""
_HIGH, _LOW = 70.0, 30.0
_LONGEST_NAME = 20


def matrix(devices: Sequence[Device], width: int, height: int) -> list[Pieces]:
    """Lay out devices as a matrix with its legend.

    Args:
        devices: In the order to show, those of one node side by side.
        width: Most cells a row may take.
        height: Rows that fit; they decide how much a cell shows, more rows may be returned.
    """
    nodes: dict[str, list[Device]] = {}
    for device in devices:
        nodes.setdefault(device.node, []).append(device)
    if width < 1 or not nodes:
        return []
    marks = _marks(devices)
    words, rows = "% busy", _matrix_rows(nodes, marks, width, _NUMBER)
    if len(rows) >= height:
        words, rows = "tens of % busy", _matrix_rows(nodes, marks, width, _DIGIT)
    used = {*marks.values()}
    legend = [f"{mark} {means}" for means, mark in _MARKS.items() if mark in used]
    rows += [[(line, "dim")] for line in side_by_side([words, *legend], width)]
    return [cut(row, width, ELLIPSIS) for row in rows]


def _matrix_rows(
    nodes: Mapping[str, Sequence[Device]],
    marks: Mapping[int, str],
    width: int,
    cell: int,
) -> list[Pieces]:
    """Write the devices of each node, behind its name and, of several rows, the first index."""
    across = max(map(len, nodes.values()))
    longest = min(max(map(cell_len, nodes)), _LONGEST_NAME, max(3, width // 3))
    room, number = longest + bool(longest), 0
    if across * cell > width - room:
        every = [device.gpu.index for members in nodes.values() for device in members]
        number = max(map(cell_len, every)) + 1
        fitting = max(1, (width - room - number) // cell)
        # a power of two, whose multiples are easily found
        across = min(across, 1 << (fitting.bit_length() - 1))
    rows: list[Pieces] = []
    for node, members in nodes.items():
        for at in range(0, len(members), across):
            shown = "" if at else fit_left(printable(node), longest)
            index = members[at].gpu.index.rjust(number - 1) + " " if number else ""
            row = [
                _cell(one, marks[id(one)], cell) for one in members[at : at + across]
            ]
            rows.append([(set_cell_size(shown, room) + index, "dim"), *row])
    return rows


def _marks(devices: Sequence[Device]) -> dict[int, str]:
    """Return the mark of each device by its identity."""
    idlers = {id(device) for device in _idle(devices)}
    marks = {}
    for device in devices:
        holds = {"lost": bool(device.gpu.fault), "unknown": _busy(device) is None}
        if not any(holds.values()):
            holds["idle"] = id(device) in idlers
            holds |= {word: of(device.gpu) is not None for word, of in _TRAITS.items()}
        signs = (mark for word, mark in _MARKS.items() if holds.get(word))
        marks[id(device)] = next(signs, " ")
    return marks


def _cell(device: Device, mark: str, cell: int) -> Piece:
    percent = _busy(device)
    role = "value"
    if percent is None or percent < _LOW:
        role = "dim"
    elif percent >= _HIGH:
        role = "bar"
    if mark not in " ?":
        role = "warn"
    if cell == _DIGIT:
        return (
            mark if percent is None or mark != " " else str(min(9, int(percent // 10)))
        ), role
    return (f"{mark:>3} " if percent is None else f"{percent:3.0f}{mark}"), role
