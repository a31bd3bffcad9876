"""Many devices as a matrix: a row for each node, a cell for each device.

A cell is a percentage, or the tens digit of one, whichever fits. A mark behind it, or in the
digit's place, shows what is wrong with the device. Widths are terminal cells.
"""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.rendering.gpus.remarks import (
    busy,
    full,
    hot,
    idle,
    side_by_side,
    throttled,
)
from verl_tui.rendering.text.printable import cut, printable
from verl_tui.rendering.text.wrap import ELLIPSIS, fit_left

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.views.devices import Device

MARKS = {
    "x": "lost",
    "!": "idle",
    "v": "throttled",
    "^": "hot",
    "#": "memory full",
    "?": "unknown",
}
"""Marks with their meanings; a device gets the first that applies."""
_NUMBER, _DIGIT = 4, 1
"""Cells of a device as percentage, as digit."""
_BUSY = 70.0
_LOW = 30.0
_LONGEST_NAME = 20


class _MatrixLayout(NamedTuple):
    """Sizes of the matrix."""

    cell: int
    name: int
    """Cells of a node's name, 0 if nodes have none."""
    number: int
    """Cells of the index of a row's first device, 0 if each node has one row."""
    across: int
    """Devices in a row."""
    rows: int


def matrix(devices: Sequence[Device], width: int, height: int) -> list[Pieces]:
    """Lay out devices as a matrix with its legend.

    Args:
        devices: In the order to show, those of one node side by side.
        width: Most cells a row may take.
        height: Rows that fit; they decide how much a cell shows, more rows may be returned.
    """
    if width < 1 or not devices:
        return []
    nodes: defaultdict[str, list[Device]] = defaultdict(list)
    for device in devices:
        nodes[device.node].append(device)
    plans = [_layout_of(nodes, width, cell) for cell in (_NUMBER, _DIGIT)]
    layout = plans[plans[0].rows >= height]
    marks = _marks(devices)
    rows: list[Pieces] = []
    for node, members in nodes.items():
        name = node
        for at in range(0, len(members), layout.across):
            part = members[at : at + layout.across]
            row: Pieces = [(_label(name, part[0].gpu.index, layout), "dim")]
            name = ""  # it stands before the first row of a node only
            for device in part:
                row += _cell(device, marks[id(device)], layout.cell)
            rows.append(cut(row, width, ELLIPSIS))
    legend = _legend(set(marks.values()), layout.cell, width)
    return [*rows, *([(line, "dim")] for line in legend)]


def _layout_of(
    nodes: Mapping[str, Sequence[Device]], width: int, cell: int
) -> _MatrixLayout:
    most = max(map(len, nodes.values()))
    longest = max(map(cell_len, nodes))
    name = min(longest, _LONGEST_NAME, max(3, width // 3))
    room = width - (name + 1 if name else 0)
    number = 0
    across = most
    if most * cell > room:
        devices = chain.from_iterable(nodes.values())
        number = max(cell_len(device.gpu.index) for device in devices)
        if room - number - 1 < cell:  # no label rather than no room for a device
            name = 0
            number = 0
            room = width + 1
        fitting = max(1, (room - number - 1) // cell)
        # A power of two, whose multiples are easily found.
        across = min(most, 1 << (fitting.bit_length() - 1))
    rows = sum(math.ceil(len(members) / across) for members in nodes.values())
    return _MatrixLayout(cell, name, number, across, rows)


def _label(node: str, number: str, plan: _MatrixLayout) -> str:
    """Return the node of a row, and its first device's index if nodes have several rows."""
    words = fit_left(printable(node), plan.name)
    label = ""
    if plan.name:
        label = words + " " * (plan.name - cell_len(words) + 1)
    if plan.number:
        label += f"{number.rjust(plan.number)} "
    return label


def _marks(devices: Sequence[Device]) -> dict[int, str]:
    """Return the mark of each device by its identity."""
    idlers = {id(device) for device in idle(devices)}
    return {id(device): _mark(device, id(device) in idlers) for device in devices}


def _mark(device: Device, idles: bool) -> str:
    if device.gpu.fault:
        return "x"
    if busy(device) is None:
        return "?"
    signs = (
        ("!", idles),
        ("v", throttled(device)),
        ("^", hot(device)),
        ("#", full(device)),
    )
    return next((sign for sign, holds in signs if holds), " ")


def _cell(device: Device, mark: str, cell: int) -> Pieces:
    percent = busy(device)
    role = "warn" if mark not in " ?" else _role(percent)
    if cell == _DIGIT:
        tens = "?" if percent is None else str(min(9, int(percent // 10)))
        return [(tens if mark == " " else mark, role)]
    if percent is None:
        return [(f"{mark.strip() or '?':>3} ", role)]
    return [(f"{percent:3.0f}{mark}", role)]


def _role(percent: float | None) -> str:
    if percent is None or percent < _LOW:
        return "dim"
    return "bar" if percent >= _BUSY else "value"


def _legend(marks: set[str], cell: int, width: int) -> list[str]:
    what = "tens of % busy" if cell == _DIGIT else "% busy"
    meanings = (f"{mark} {words}" for mark, words in MARKS.items() if mark in marks)
    return side_by_side((what, *meanings), width)
