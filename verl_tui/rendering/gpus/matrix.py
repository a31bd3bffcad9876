"""Many devices as a matrix: a row for each node, a cell for each device, as rich as the room
allows.

A cell is a block with a percentage, the percentage alone, or one digit that stands for its tens. A
mark behind it, or in the digit's place, says what is wrong with the device. Pure functions; widths
are terminal cells.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.rendering.gpus.remarks import busy, full, hot, idle, packed, throttled
from verl_tui.rendering.text.block_levels import level
from verl_tui.rendering.text.printable import cut, printable
from verl_tui.rendering.text.wrap import ellipsis, fit_left

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.views.devices import Device

MARKS = {"!": "idle", "v": "throttled", "^": "hot", "#": "memory full", "?": "unknown"}
"""What stands behind a percentage; the first that holds."""
_BLOCK, _NUMBER, _DIGIT = 6, 4, 1
"""Cells that a device takes in each look."""
_BUSY = 70.0
_LOW = 30.0
_LONGEST_NAME = 20


class _Plan(NamedTuple):
    """How the matrix is laid out."""

    cell: int
    name: int
    """Cells of a node's name, 0 where nodes have none."""
    number: int
    """Cells of the number of a row's first device, 0 where a node has one row only."""
    across: int
    """Devices in a row."""
    rows: int


def matrix(
    devices: Sequence[Device], width: int, height: int, *, ascii_only: bool = False
) -> list[Pieces]:
    """Lay out devices as a matrix with its legend.

    Args:
        devices: In the order to show, those of one node side by side.
        width: Most cells a row may take.
        height: Rows there is room for; decides how rich a cell is, more rows may be returned.
        ascii_only: Draw with ASCII alone.
    """
    if width < 1 or not devices:
        return []
    nodes: dict[str, list[Device]] = {}
    for device in devices:
        nodes.setdefault(device.node, []).append(device)
    plan = _plan(nodes, width, height - 1)
    marks = {id(device): mark for device, mark in zip(devices, _marks(devices), strict=True)}
    mark = ellipsis(ascii_only=ascii_only)
    rows = _header(nodes, plan, width, mark) if plan.rows + 2 <= height else []
    for node, members in nodes.items():
        for at in range(0, len(members), plan.across):
            part = members[at : at + plan.across]
            label = _label("" if at else node, part[0].gpu.index, plan, ascii_only=ascii_only)
            cells = [
                piece
                for d in part
                for piece in _cell(d, marks[id(d)], plan.cell, ascii_only=ascii_only)
            ]
            rows.append(cut([(label, "dim"), *cells], width, mark))
    return [*rows, *([(line, "dim")] for line in _legend(set(marks.values()), plan.cell, width))]


def _plan(nodes: Mapping[str, Sequence[Device]], width: int, height: int) -> _Plan:
    """Return the richest look whose rows are all in sight, else that of the fewest rows."""
    plans = [_laid(nodes, width, cell) for cell in (_BLOCK, _NUMBER, _DIGIT)]
    fitting = [plan for plan in plans if plan.rows <= height]
    # A node in one row is easier to read than a block in each cell.
    whole = [plan for plan in fitting if not plan.number and plan.cell != _DIGIT]
    return next(iter(whole or fitting), min(plans, key=lambda plan: plan.rows))


def _laid(nodes: Mapping[str, Sequence[Device]], width: int, cell: int) -> _Plan:
    most = max(map(len, nodes.values()))
    name = min(max(map(cell_len, nodes)), _LONGEST_NAME, max(3, width // 3))
    room = width - (name + 1 if name else 0)
    number = 0
    across = most
    if most * cell > room:
        number = max(cell_len(device.gpu.index) for members in nodes.values() for device in members)
        if room - number - 1 < cell:  # a label that leaves no room for a device is none
            name, number, room = 0, 0, width + 1
        fitting = max(1, (room - number - 1) // cell)
        across = min(
            most, 1 << (fitting.bit_length() - 1)
        )  # a power of two: its multiples are easily found
    return _Plan(
        cell,
        name,
        number,
        across,
        sum(math.ceil(len(members) / across) for members in nodes.values()),
    )


def _label(node: str, number: str, plan: _Plan, *, ascii_only: bool) -> str:
    """Return whose devices a row shows, and where it begins if nodes have several rows."""
    words = fit_left(
        printable(node, ascii_only=ascii_only), plan.name, ellipsis(ascii_only=ascii_only)
    )
    label = words + " " * (plan.name - cell_len(words) + 1) if plan.name else ""
    return f"{label}{number.rjust(plan.number)} " if plan.number else label


def _header(
    nodes: Mapping[str, Sequence[Device]], plan: _Plan, width: int, mark: str
) -> list[Pieces]:
    """Return the devices' numbers above their columns, nothing where a column has no number of its
    own.
    """
    numbers = [device.gpu.index for device in max(nodes.values(), key=len)]
    alike = all(
        [d.gpu.index for d in members] == numbers[: len(members)] for members in nodes.values()
    )
    if plan.number or plan.cell == _DIGIT or not alike:
        return []
    before = " " * (plan.name + 1 if plan.name else 0)
    digits = 4 if plan.cell == _BLOCK else 3
    return [
        cut(
            [(before + "".join(n.rjust(digits).ljust(plan.cell) for n in numbers), "dim")],
            width,
            mark,
        )
    ]


def _marks(devices: Sequence[Device]) -> list[str]:
    idlers = {id(device) for device in idle(devices)}
    return [_mark(device, id(device) in idlers) for device in devices]


def _mark(device: Device, idles: bool) -> str:
    if busy(device) is None:
        return "?"
    signs = (("!", idles), ("v", throttled(device)), ("^", hot(device)), ("#", full(device)))
    return next((sign for sign, holds in signs if holds), " ")


def _cell(device: Device, mark: str, cell: int, *, ascii_only: bool) -> Pieces:
    percent = busy(device)
    role = "warn" if mark not in " ?" else _role(percent)
    if cell == _DIGIT:
        tens = "?" if percent is None else str(min(9, int(percent // 10)))
        return [(tens if mark == " " else mark, role)]
    number = "?".rjust(3) + " " if percent is None else f"{percent:3.0f}{mark}"
    if cell == _NUMBER:
        return [(number, role)]
    block = " " if percent is None else level(percent, ascii_only=ascii_only)
    return [(block, role), (number, role), (" ", "")]


def _role(percent: float | None) -> str:
    if percent is None or percent < _LOW:
        return "dim"
    return "bar" if percent >= _BUSY else "value"


def _legend(marks: set[str], cell: int, width: int) -> list[str]:
    what = "tens of % busy" if cell == _DIGIT else "% busy"
    return packed(
        (what, *(f"{mark} {words}" for mark, words in MARKS.items() if mark in marks)), width
    )
