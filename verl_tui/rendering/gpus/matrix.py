"""Many devices as a matrix: a row for each node, a cell for each device.

A cell is a percentage, or the tens digit of one, whichever fits. A mark behind it, or in the
digit's place, shows what is wrong with the device. Widths are terminal cells.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len, set_cell_size

from verl_tui.rendering.gpus.remarks import TRAITS, busy, idle, side_by_side
from verl_tui.rendering.text.printable import cut, printable
from verl_tui.rendering.text.wrap import ELLIPSIS, fit_left

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.rendering.text.piece import Piece, Pieces
    from verl_tui.runs.views.devices import Device

MARKS = {
    "lost": "x",
    "idle": "!",
    "throttled": "v",
    "hot": "^",
    "memory full": "#",
    "unknown": "?",
}
"""Meanings with their marks; a device gets the first that applies."""
_NUMBER, _DIGIT = 4, 1
"""Cells of a device as percentage, as digit."""
_BUSY = 70.0
_LOW = 30.0
_LONGEST_NAME = 20


class _MatrixLayout(NamedTuple):
    """Sizes of the matrix."""

    cell: int
    name: int
    """Cells of a node's name and the space behind it, 0 if nodes have none."""
    number: int
    """The same of the index of a row's first device, 0 if each node has one row."""
    across: int
    """Devices in a row."""


def matrix(devices: Sequence[Device], width: int, height: int) -> list[Pieces]:
    """Lay out devices as a matrix with its legend.

    Args:
        devices: In the order to show, those of one node side by side.
        width: Most cells a row may take.
        height: Rows that fit; they decide how much a cell shows, more rows may be returned.
    """
    nodes: defaultdict[str, list[Device]] = defaultdict(list)
    for device in devices:
        nodes[device.node].append(device)
    if width < 1 or not nodes:
        return []
    marks = _marks(devices)
    cell, rows = _NUMBER, _rows(nodes, marks, _layout(nodes, width, _NUMBER))
    if len(rows) >= height:
        cell, rows = _DIGIT, _rows(nodes, marks, _layout(nodes, width, _DIGIT))
    legend = ["tens of % busy" if cell == _DIGIT else "% busy"]
    used = set(marks.values())
    legend += [f"{mark} {words}" for words, mark in MARKS.items() if mark in used]
    rows += [[(line, "dim")] for line in side_by_side(legend, width)]
    return [cut(row, width, ELLIPSIS) for row in rows]


def _layout(
    nodes: Mapping[str, Sequence[Device]], width: int, cell: int
) -> _MatrixLayout:
    most = max(map(len, nodes.values()))
    longest = min(max(map(cell_len, nodes)), _LONGEST_NAME, max(3, width // 3))
    name = longest + 1 if longest else 0
    if most * cell <= width - name:
        return _MatrixLayout(cell, name, 0, most)
    indices = (device.gpu.index for members in nodes.values() for device in members)
    number = max(map(cell_len, indices)) + 1
    fitting = max(1, (width - name - number) // cell)
    # A power of two, whose multiples are easily found.
    return _MatrixLayout(cell, name, number, min(most, 1 << (fitting.bit_length() - 1)))


def _rows(
    nodes: Mapping[str, Sequence[Device]], marks: Mapping[int, str], plan: _MatrixLayout
) -> list[Pieces]:
    """Write the devices of each node, behind its name and, of several rows, the first index."""
    rows: list[Pieces] = []
    for node, members in nodes.items():
        for at in range(0, len(members), plan.across):
            shown = fit_left(printable(node), plan.name - 1) if not at else ""
            index = f"{members[at].gpu.index.rjust(plan.number - 1)} " * bool(
                plan.number
            )
            cells = [
                _cell(device, marks[id(device)], plan.cell)
                for device in members[at : at + plan.across]
            ]
            rows.append([(set_cell_size(shown, plan.name) + index, "dim"), *cells])
    return rows


def _marks(devices: Sequence[Device]) -> dict[int, str]:
    """Return the mark of each device by its identity."""
    idlers = {id(device) for device in idle(devices)}
    marks = {}
    for device in devices:
        holds = {"lost": bool(device.gpu.fault), "unknown": busy(device) is None}
        if not any(holds.values()):
            holds["idle"] = id(device) in idlers
            holds |= {word: of(device.gpu) is not None for word, of in TRAITS.items()}
        signs = (mark for word, mark in MARKS.items() if holds.get(word))
        marks[id(device)] = next(signs, " ")
    return marks


def _cell(device: Device, mark: str, cell: int) -> Piece:
    percent = busy(device)
    role = "dim" if percent is None or percent < _LOW else "value"
    role = "bar" if percent is not None and percent >= _BUSY else role
    role = "warn" if mark not in " ?" else role
    if cell == _DIGIT:
        tens = "?" if percent is None else str(min(9, int(percent // 10)))
        return (tens if mark == " " else mark), role
    if percent is None:
        return f"{mark:>3} ", role
    return f"{percent:3.0f}{mark}", role
