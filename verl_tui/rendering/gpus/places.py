"""The devices of this host and those that the shown run has logged, place by place, as the rows of
a panel.

In a panel a few devices take a row each, more become a matrix. On a full screen each device has a
row, with its history and its processes below.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from operator import itemgetter
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len, set_cell_size

from verl_tui.records import POWER_CAP
from verl_tui.rendering.gpus.device_rows import (
    device_rows,
    figure_rows,
    finite,
    full,
    history_rows,
    hot,
    process_rows,
)
from verl_tui.rendering.text.piece import cells_of, text_of
from verl_tui.rendering.text.printable import cut, middle, paragraph, printable, wrapped
from verl_tui.rendering.text.wrap import ELLIPSIS, fit_left
from verl_tui.runs.views.devices import (
    Device,
    host,
    logged_devices,
    logs_cluster,
    owns,
    same_host,
)
from verl_tui.runs.views.state import State, state
from verl_tui.times import duration
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from verl_tui.records import Gpu, GpuProcess
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Piece, Pieces

_ACTIVE = frozenset({State.WAITING, State.RUNNING, State.STALLED, State.UNKNOWN})
"""States of a run that may use the devices as they are now."""
_ALWAYS_ROWS = 2
"""Most devices that are never a matrix, however small the panel."""
_TALLEST = 6
"""Most rows of a device's history."""
_SHORT = 40
"""Width below which a summary is shortened, in cells."""


class DevicePlace(NamedTuple):
    """The devices of one place, and the rows below them."""

    heading: str = ""
    devices: Sequence[Device] = ()
    below: Sequence[Pieces] = ()


def gpu_rows(view: View, width: int, height: int, *, zoomed: bool) -> list[Pieces]:
    """Return the rows of a panel of this size; those that must scroll are a cell narrower.

    Args:
        view: The state to show.
        width: Most cells a row may take.
        height: Rows there is room for.
        zoomed: Whether each device is shown with its past and its processes.
    """
    rows = _all_rows(view, width, height, zoomed=zoomed)
    if len(rows) > height and width > 1:
        rows = _all_rows(view, width - 1, height, zoomed=zoomed)
    return rows


def _all_rows(view: View, width: int, height: int, *, zoomed: bool) -> list[Pieces]:
    places = device_places(view, width)
    share = _height_of_each(places, height, zoomed=zoomed)
    rows: list[Pieces] = []
    for place in places:
        if rows and len(rows) + 2 < height:
            rows.append([])
        if place.heading:
            rows.append([(middle(place.heading, width), "dim")])
        if zoomed:
            belongs = owns(view.run) if view.run is not None else lambda _: ""
            rows += detail_rows(place.devices, width, share, belongs)
        else:
            many = len(place.devices) > max(share, _ALWAYS_ROWS)
            rows += _panel_rows(tuple(place.devices), width, share if many else None)
        rows += place.below
    return rows


def _height_of_each(places: Sequence[DevicePlace], height: int, *, zoomed: bool) -> int:
    """Return the rows for the devices of each place that has some.

    Zoomed, the rows below the devices stay in sight; a small panel scrolls to them, and gives each
    device of a single place its own row where all of them fit.
    """
    occupied = [place.devices for place in places if place.devices]
    if len(occupied) == 1 and not zoomed and len(occupied[0]) <= height:
        return height
    headed = len(places) > 1 or any(place.heading for place in places)
    beside = (2 * len(places) - 1) * headed
    beside += sum(len(place.below) for place in places) * zoomed
    return max(1, (height - beside) // max(1, len(occupied)))


# -- the devices of a place ------------------------------------------------------------------------


# devices are read more rarely than runs make steps, and measured, then drawn
@lru_cache(maxsize=4)
def _panel_rows(
    devices: tuple[Device, ...], width: int, most: int | None
) -> list[Pieces]:
    """Write each device into a row, or all into so many rows."""
    if most is not None:
        return _overview_rows(devices, width, most)
    return [*_rows(devices, width), *_warnings(callouts(devices), width)]


def _warnings(remarks: Iterable[str], width: int) -> list[Pieces]:
    return [[(line, "warn")] for line in side_by_side(remarks, width)]


def _overview_rows(devices: Sequence[Device], width: int, height: int) -> list[Pieces]:
    """Write many devices: a summary, the matrix, remarks."""
    words = side_by_side(device_summary(devices, short=width < _SHORT), width)
    remarks = _warnings(callouts(devices, with_idle=False), width)
    cells = matrix(devices, width, height - len(words) - len(remarks))
    return [*([(line, "name")] for line in words), *cells, *remarks]


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
    running = [process_rows(device.gpu, width, belongs) for device in devices]
    least = sum(1 + len(rows) for rows in running)
    lines = _warnings(callouts(devices), width)
    if len(devices) > _ALWAYS_ROWS and len(lines) + least > height:
        lines = [*_overview_rows(devices, width, height), []]
    spare = (height - len(lines) - least) // max(1, len(devices))
    pasts = [history_rows(one, width, min(_TALLEST, spare)) for one in devices]
    rows = _rows(devices, width, past=not any(pasts))
    for device, row, past, processes in zip(devices, rows, pasts, running, strict=True):
        words = f"below: the last {duration(device.span)}" if past else ""
        room = width - cells_of(row)
        known = device.span is not None and room > len(words)
        lines += [[*row, *[(words.rjust(room), "dim")] * known], *past, *processes]
    return lines


def _rows(devices: Sequence[Device], width: int, *, past: bool = True) -> list[Pieces]:
    longest = max(4, width // 3)
    gpus = [replace(one.gpu, index=fit_left(name(one), longest)) for one in devices]
    pasts = [one.history for one in devices]
    return device_rows(gpus, width, pasts if past and any(pasts) else ())


# -- the places ------------------------------------------------------------------------------------


def device_places(view: View, width: int) -> list[DevicePlace]:
    """Return this host and, if it has logged any devices or figures, the run; the run first where
    its devices are known to be elsewhere.
    """
    here = _this_host(view, width)
    where = view.monitor.gpus.host if view.monitor.gpus is not None else ""
    logged, run_host = _logged_place(view, width, where if here.devices else "")
    if not logged.devices and not logged.below:
        return [here]
    if not here.devices:
        return _without_own(here, logged, width)
    if not logged.devices:
        return [here, logged]
    here = here._replace(heading=", ".join(filter(None, ("this host", where))))
    elsewhere = run_host and where and not same_host(run_host, where)
    return [logged, here] if elsewhere else [here, logged]


def _without_own(
    here: DevicePlace, logged: DevicePlace, width: int
) -> list[DevicePlace]:
    """Return the places where this host has no devices; why it has none stands in the heading of
    the run's where that fits: two rows less.
    """
    heading = f"{logged.heading}; {text_of(here.below[0])}"
    if len(here.below) == 1 and cell_len(heading) <= width:
        return [logged._replace(heading=heading)]
    return [logged, here] if logged.devices else [here, logged]


def _this_host(view: View, width: int) -> DevicePlace:
    """Return the devices of this host, and the reason where some or all are missing."""
    reading = view.monitor.gpus
    if reading is None:
        return DevicePlace(below=[[("no reading yet", "dim")]])
    devices = view.monitor.gpu_history.devices(reading)
    problem = reading.problem or ("" if devices else "no GPU found here")
    return DevicePlace("", devices, paragraph(problem, "dim", width))


def _logged_place(view: View, width: int, local_host: str) -> tuple[DevicePlace, str]:
    """Return the devices and figures that the shown run has logged, and the host they are on.

    Args:
        view: The state to show.
        width: Most cells a row may take.
        local_host: Name of this host if its devices are shown: those that an active run has logged
            of it are the same and left out.
    """
    run = view.run
    if run is None:
        return DevicePlace(), ""
    devices, used = logged_devices(run)
    below = figure_rows(run, used, width)
    nodes = sorted({device.node for device in devices})
    run_host = "" if nodes[1:] else "".join(nodes) or host(run)
    if run_host:  # named once, in the heading
        devices = [device._replace(node="") for device in devices]
    if local_host and state(run, view.now) in _ACTIVE:
        devices = _elsewhere(devices, run_host, local_host)
    heading = _heading(logs_cluster(run), run_host if devices else "")
    return DevicePlace(heading, devices, below), run_host


def _elsewhere(
    devices: Sequence[Device], run_host: str, local_host: str
) -> list[Device]:
    """Return the devices that are on another host."""
    return [one for one in devices if not same_host(one.node or run_host, local_host)]


def _heading(cluster: bool, whose: str) -> str:
    """Return the source of devices that are not read here."""
    if cluster:
        return "of the cluster" + f", {whose}" * bool(whose)
    return f"newest logged {f'on {whose}' if whose else 'by the run'}"


# -- many devices at a glance ----------------------------------------------------------------------

# All remarks but those on lost devices are heuristics on recent averages, since every device idles
# briefly between two kernels.
IDLE = 10.0
"""Utilisation in percent below which a device is idle while another one works."""
WORKS = 40.0
"""Utilisation in percent from which on a device works."""
UNEVEN = 30.0
"""Difference between the most and the least busy device that is remarked, in percentage points."""
_NAMED = 4
"""Most devices listed by name; the others are counted."""


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
    unused = never * (len(never) < len(devices))
    found = _by_fault(devices)
    found["idle"] = [*map(name, idlers * with_idle)]
    found["never at work, maybe not this run's"] = [*map(name, unused)]
    found |= {trait: _marked(of, devices) for trait, of in _TRAITS.items()}
    for what, names in found.items():
        if names:
            yield f"{what}: GPU {_listed(names)}"
    rest = [one for one in devices if one not in (*idlers, *never)]
    yield from _uneven(sorted(_lately(rest), key=itemgetter(0)))


def _by_fault(devices: Sequence[Device]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in devices:
        if one.gpu.fault:
            found.setdefault(one.gpu.fault, []).append(name(one))
    return found


def _marked(of: Callable[[Gpu], str | None], devices: Sequence[Device]) -> list[str]:
    said = ((name(one), of(one.gpu)) for one in devices)
    return [whose + text for whose, text in said if text is not None]


def _uneven(known: Sequence[tuple[float, Device]]) -> Iterator[str]:
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
