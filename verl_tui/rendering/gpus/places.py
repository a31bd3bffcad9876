"""The devices of this host and those that the shown run has logged, place by place, as the rows of
a panel.

In a panel a few devices take a row each, more become a matrix. On a full screen each device has a
row, with its history and its processes below.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.rendering.gpus.device_rows import (
    device_rows,
    figure_rows,
    history_rows,
    process_rows,
)
from verl_tui.rendering.gpus.remarks import (
    callouts,
    device_summary,
    matrix,
    name,
    side_by_side,
)
from verl_tui.rendering.text.piece import cells_of, text_of
from verl_tui.rendering.text.printable import middle, paragraph
from verl_tui.rendering.text.wrap import fit_left
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from verl_tui.records import GpuProcess
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces

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
        # why there are none stands in the heading of the run's where that fits: two rows less
        heading = f"{logged.heading}; {text_of(here.below[0])}"
        if len(here.below) == 1 and cell_len(heading) <= width:
            return [logged._replace(heading=heading)]
        return [logged, here] if logged.devices else [here, logged]
    if not logged.devices:
        return [here, logged]
    here = here._replace(heading=", ".join(filter(None, ("this host", where))))
    elsewhere = run_host and where and not same_host(run_host, where)
    return [logged, here] if elsewhere else [here, logged]


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
        devices = [
            one for one in devices if not same_host(one.node or run_host, local_host)
        ]
    whose = run_host if devices else ""
    if logs_cluster(run):
        heading = "of the cluster" + f", {whose}" * bool(whose)
    else:
        heading = f"newest logged {f'on {whose}' if whose else 'by the run'}"
    return DevicePlace(heading, devices, below), run_host
