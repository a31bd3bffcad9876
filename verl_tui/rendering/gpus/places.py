"""The devices of this host and those that the shown run has logged, place by place, as the rows of
a panel.

In a panel a few devices take a row each, more become a matrix. On a full screen each device has a
row, with its history and its processes below.
"""

from __future__ import annotations

from functools import lru_cache
from math import nan
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len, set_cell_size

from verl_tui.means import clamp, gathered
from verl_tui.rendering.charts.sparkline import tall
from verl_tui.rendering.gpus.device_rows import (
    device_rows,
    history_rows,
    name,
    process_rows,
    troubles,
    worth,
)
from verl_tui.rendering.text.piece import (
    Piece,
    Pieces,
    TextRows,
    cells_of,
    cut,
    fit,
    fit_left,
    fit_words,
    paragraph,
    printable,
)
from verl_tui.runs.views.devices import (
    WORKS,
    Device,
    behind,
    host,
    is_used,
    logged_devices,
    logs_cluster,
    memory_percent,
    owns,
    same_host,
)
from verl_tui.runs.views.state import State, state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from verl_tui.records import GpuProcess, GpuReading
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run

_ACTIVE = frozenset({State.WAITING, State.RUNNING, State.STALLED, State.UNKNOWN})
"""States of a run that may use the devices as they are now."""
_ALWAYS_ROWS = 2
"""Most devices that are never a matrix, however small the panel."""
_SEPARATOR = " · "
_HALF_A_WORD = 10
"""Cells in which nothing can be said but that there is more."""
_WORDS = len("GPUs 999 · busy 100%")
"""Cells in a row for words on several devices."""
_TALLEST = 6
"""Most rows of a device's history."""


class DevicePlace(NamedTuple):
    """The devices of one place."""

    heading: str = ""
    devices: Sequence[Device] = ()
    why: str = ""
    """Why some or all are missing."""


def gpu_row(devices: Sequence[Device], width: int) -> Pieces:
    """Return what there is to say of devices in a row, nothing where there are none; with a level
    for each of several, or of fewer where what stands out needs the room.
    """
    if not devices:
        return []
    parts, remarks = device_summary(devices), "  ".join(["", *callouts(devices)])
    room = width - cell_len(remarks)
    levels = _levels(devices, room)
    if not levels:
        room, levels = width, _levels(devices, width)
    room -= cells_of(levels) + 2 * (cell_len(remarks) > 0 and room == width)
    if cell_len(_SEPARATOR.join(parts)) > room:
        parts = [part.replace("busy ", "").replace("memory", "mem") for part in parts]
    while parts[1:] and cell_len(_SEPARATOR.join(parts)) > room:
        del parts[-1]
    words = "".join(_SEPARATOR + part for part in parts[1:])
    row = [(parts[0], "value"), *levels, (words, "value")]
    return cut([*row, (_remark(remarks, width - cells_of(row)), "warn")], width)


def _remark(words: str, room: int) -> str:
    """Return remarks cut after a word, or to an ellipsis where nothing could be said."""
    return fit_words(words, room) if room > _HALF_A_WORD else fit(words, min(room, 3))


def _levels(devices: Sequence[Device], width: int) -> Pieces:
    """Return how busy each of several devices is, in a cell; where there are too many the worst of
    so many at a time.
    """
    whole, room, each, by = _whole(devices), width - _WORDS, 1, " "
    while len(whole) > (room - len(by)) * each and len(by) < room:
        each, by = each * 2, f" worst of {each * 2} "
    if len(whole) <= _ALWAYS_ROWS or len(by) >= room:
        return []
    marks = _marks(whole)

    def health(one: Device) -> tuple[bool, float]:
        return marks[id(one)] in " ?", _busy(one) or 0.0

    chunks = (whole[at : at + each] for at in range(0, len(whole), each))
    worst = (min(chunk, key=health) for chunk in chunks)
    return [(by, "dim"), *(_cell(one, marks[id(one)], _LEVEL) for one in worst)]


def gpu_rows(
    view: View, width: int, height: int, *, zoomed: bool
) -> tuple[TextRows, Sequence[Device]]:
    """Return the rows of a panel of this size, a cell narrower as they may have to scroll, and the
    devices of its first place.

    Args:
        view: The state to show.
        width: Most cells a row may take.
        height: Rows there is room for.
        zoomed: Whether each device is shown with its past and its processes.
    """
    width = max(1, width - 1)
    places = device_places(view)
    reasons = [paragraph(place.why, "dim", width) for place in places]
    beside = sum(map(len, reasons)) * zoomed
    share = _height_of_each(places, height, beside, zoomed=zoomed)
    rows: TextRows = []
    for place, why in zip(places, reasons, strict=True):
        if rows and len(rows) + 2 < height:
            rows.append([])
        rows += paragraph(place.heading, "dim", width)
        if zoomed:
            belongs = owns(view.run) if view.run else lambda _: ""
            rows += detail_rows(place.devices, width, share, belongs)
        else:
            many = len(place.devices) > max(share, _ALWAYS_ROWS)
            rows += _panel_rows(tuple(place.devices), width, share if many else None)
        rows += why
    return rows, first_devices(places)


def edges(devices: Sequence[Device]) -> tuple[str, str]:
    """Return the title of a panel with the figures of all devices, and what stands out among them,
    for its lower edge.
    """
    words = device_summary(devices) if devices else ["GPUs"]
    return _SEPARATOR.join(words), "  ".join(callouts(devices))


def first_devices(places: Iterable[DevicePlace]) -> Sequence[Device]:
    """Return the devices of the first place that has any, which the figures in a row are of."""
    return next((place.devices for place in places if place.devices), ())


def _height_of_each(
    places: Sequence[DevicePlace], height: int, beside: int, *, zoomed: bool
) -> int:
    """Return the rows for the devices of each place that has some, with so many beside them; a
    small panel gives each device of a single place its own row where all of them fit.
    """
    occupied = [place.devices for place in places if place.devices]
    if len(occupied) == 1 and not zoomed and len(occupied[0]) <= height:
        return height
    if any(place.heading for place in places):
        beside += 2 * len(places) - 1
    return max(1, (height - beside) // max(1, len(occupied)))


# -- the devices of a place ------------------------------------------------------------------------


# devices are read more rarely than runs make steps, and measured, then drawn
@lru_cache(maxsize=4)
def _panel_rows(devices: tuple[Device, ...], width: int, most: int | None) -> TextRows:
    """Write each device into a row, or all into so many rows."""
    if most is not None:
        return matrix(devices, width, most)
    return device_rows(devices, width)


def detail_rows(
    devices: Sequence[Device],
    width: int,
    height: int,
    belongs: Callable[[GpuProcess], str],
) -> TextRows:
    """Write devices on a full screen: each with its history and its processes.

    Args:
        devices: In the order to show.
        width: Most cells a row may take.
        height: Rows that fit, which the histories share.
        belongs: Names the relation of a process to the shown run.
    """
    running = [process_rows(device.gpu, width, belongs) for device in devices]
    least = sum(1 + len(rows) for rows in running)
    many = len(devices) > _ALWAYS_ROWS and least > height
    lines = [*matrix(devices, width, height), []] if many else []
    spare = (height - len(lines) - least) // max(1, len(devices))
    pasts = [history_rows(one, width, min(_TALLEST, spare)) for one in devices]
    rows = device_rows(devices, width, past=not any(pasts))
    for row, past, processes in zip(rows, pasts, running, strict=True):
        lines += [row, *past, *processes]
    return lines


# -- the places ------------------------------------------------------------------------------------


def device_places(view: View) -> list[DevicePlace]:
    """Return this host and, if it has logged any devices, the run; the run first where its devices
    are known to be elsewhere, and alone where this host has none.
    """
    here, (logged, run_host) = _this_host(view), _logged_place(view)
    if not logged.devices:
        return [here]
    if not here.devices:
        return [logged._replace(heading=f"{logged.heading}; {here.why}")]
    where = view.monitor.gpus.host if view.monitor.gpus else ""
    here = here._replace(heading="this host" + f", {where}" * bool(where))
    elsewhere = run_host and where and not same_host(run_host, where)
    return [logged, here] if elsewhere else [here, logged]


def _this_host(view: View) -> DevicePlace:
    """Return the devices of this host, and the reason where some or all are missing."""
    reading = view.monitor.gpus
    if not reading:
        return DevicePlace(why="no reading yet")
    devices = view.monitor.gpu_history.devices(reading)
    if not view.run or state(view.run, view.now) not in _ACTIVE:
        devices = [one._replace(worked=False) for one in devices]  # nothing needs them
    none = "" if devices else "no GPU found here"
    return DevicePlace("", devices, reading.problem or none)


def _logged_place(view: View) -> tuple[DevicePlace, str]:
    """Return the devices that the shown run has logged, and the host they are on."""
    run = view.run
    devices = logged_devices(run) if run else []
    if not run or not devices:
        return DevicePlace(), ""
    nodes = sorted({device.node for device in devices})
    run_host = "" if nodes[1:] else "".join(nodes) or host(run)
    if run_host:  # named once, in the heading
        devices = [device._replace(node="") for device in devices]
    if state(run, view.now) in _ACTIVE:
        devices = _elsewhere(devices, run_host, view.monitor.gpus)
    return DevicePlace(_heading(run, run_host), devices), run_host


def _heading(run: Run, run_host: str) -> str:
    """Return where the devices come from that are not read here."""
    heading = f"newest logged {f'on {run_host}' if run_host else 'by the run'}"
    if logs_cluster(run):
        heading = "of the cluster" + f", {run_host}" * bool(run_host)
    return f"{heading} (charts: means of steps)"


def _elsewhere(
    devices: list[Device], run_host: str, reading: GpuReading | None
) -> list[Device]:
    """Return logged devices without those of this host, where it has any: they are the same."""
    if not reading or not reading.gpus:
        return devices
    return [one for one in devices if not same_host(one.node or run_host, reading.host)]


# -- many devices at a glance ----------------------------------------------------------------------

# All remarks but those on lost devices are heuristics on recent averages, since every device idles
# briefly between two kernels.
IDLE = 10.0
"""Utilisation in percent below which a device is idle while another one works."""
_NAMED = 4
"""Most devices listed by name; the others are counted."""


def _busy(device: Device) -> float | None:
    """Return a device's utilisation from 0 to 100, None where it is unknown."""
    percent = device.gpu.utilization
    return None if percent is None else clamp(percent, 0.0, 100.0)


def _idle(devices: Sequence[Device]) -> list[Device]:
    """Return the used devices that are idle while another one works."""
    known = [(one, one.lately) for one in devices if one.lately is not None]
    if max((percent for _, percent in known), default=0.0) < WORKS:
        return []
    return [one for one, percent in known if percent < IDLE and is_used(one)]


def _whole(devices: Sequence[Device]) -> Sequence[Device]:
    """Return the devices without the instances that parts of them are."""
    return [one for one in devices if ":" not in one.gpu.index]


def device_summary(devices: Sequence[Device]) -> list[str]:
    """Return how many devices there are, what part of those in use and of their memory is busy, and
    the power of all: the newest figures.
    """
    devices, used = _whole(devices), _used(devices)
    count = f"{len(used)} of " * (len(used) < len(devices)) + f"{len(devices)}"
    watts = sum(device.gpu.power or 0.0 for device in devices)
    power = f"{watts / 1000:.1f} kW" if watts >= 1000 else f"{watts:.0f} W"
    shares = {"busy": busy_percent(devices), "memory": memory_percent(used)}
    said = (f"{of} {one:.0f}%" for of, one in shares.items() if one is not None)
    return [f"GPUs {count}", *said, *[power] * (watts > 0)]


def _used(devices: Sequence[Device]) -> Sequence[Device]:
    """Return the devices in use, all where none is."""
    devices = _whole(devices)
    return [one for one in devices if is_used(one)] or devices


def busy_percent(devices: Sequence[Device]) -> float | None:
    """Return how busy the devices in use are, None where that is unknown."""
    known = [one for one in map(_busy, _used(devices)) if one is not None]
    return fmean(known) if known else None


def callouts(devices: Sequence[Device]) -> Iterator[str]:
    """Yield a few words for each remark."""
    idlers = _idle(devices)
    never = [device for device in devices if not device.worked]
    lag = [one for one in behind(devices) if one not in idlers]
    found = {
        "lately idle": [*map(name, idlers)],
        "lately behind the others": [f"{name(one)} {one.lately:.0f}%" for one in lag],
        "never at work, maybe not this run's": [
            *map(name, never * (len(never) < len(devices)))
        ],
    }
    for one in devices:
        for what, words in troubles(one.gpu).items():
            found.setdefault(what, []).append(name(one) + words)
    for what, names in found.items():
        if names:
            yield f"{what}: GPU {_listed(names)}"


def _listed(names: Sequence[str]) -> str:
    more = f" +{len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


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
_NUMBER, _LEVEL = 5, 1
"""Cells of a device as a percentage with its level and its mark, as a level or its mark."""
_LONGEST_NAME = 20


def matrix(devices: Sequence[Device], width: int, height: int) -> TextRows:
    """Lay out devices as a matrix with its legend.

    Args:
        devices: In the order to show, those of one node side by side.
        width: Most cells a row may take.
        height: Rows that fit; they decide how much a cell shows, more rows may be returned.
    """
    nodes = gathered((device.node, device) for device in devices)
    if width < 1 or not nodes:
        return []
    marks = _marks(devices)
    words, rows = "% busy", _matrix_rows(nodes, marks, width, _NUMBER)
    if len(rows) >= height:
        words, rows = "▁ 0 to ▇ 100% busy", _matrix_rows(nodes, marks, width, _LEVEL)
    used = {*marks.values()}
    legend = [f"{mark} {means}" for means, mark in _MARKS.items() if mark in used]
    rows += paragraph(", ".join([words, *legend]), "dim", width)
    return [cut(row, width) for row in rows]


def _matrix_rows(
    nodes: Mapping[str, Sequence[Device]],
    marks: Mapping[int, str],
    width: int,
    cell: int,
) -> TextRows:
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
    rows: TextRows = []
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
        holds = {*troubles(device.gpu)}
        if device.gpu.fault:
            holds = {"lost"}
        elif _busy(device) is None:
            holds = {"unknown"}
        elif id(device) in idlers:
            holds.add("idle")
        signs = (mark for word, mark in _MARKS.items() if word in holds)
        marks[id(device)] = next(signs, " ")
    return marks


def _cell(device: Device, mark: str, cell: int) -> Piece:
    percent = _busy(device)
    role = worth(device) if mark in " ?" else "warn"
    (level,) = tall([nan if percent is None else percent], 1, 1)
    if cell == _LEVEL:
        return (level if mark == " " else mark), role
    if percent is None:
        return f"{mark:>3}  ", role
    return f"{percent:3.0f}{level}{mark}", role  # `-` before it is a sign in ASCII
