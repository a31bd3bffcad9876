"""The devices of this host and those that the shown run has logged, place by place, as the rows of
a panel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.rendering.gpus.logged_figures import figure_rows, figures
from verl_tui.rendering.gpus.place_rows import detail_rows, panel_rows
from verl_tui.rendering.text.piece import text_of
from verl_tui.rendering.text.printable import middle, wrapped
from verl_tui.runs.views.devices import (
    Device,
    host,
    logged_devices,
    logs_cluster,
    owns,
    same_host,
)
from verl_tui.runs.views.state import State, state

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.run import Run

_ACTIVE = frozenset({State.WAITING, State.RUNNING, State.STALLED, State.UNKNOWN})
"""States of a run that may use the devices as they are now."""


class DevicePlace(NamedTuple):
    """The devices of one place, and the rows below them."""

    heading: str
    devices: list[Device]
    below: list[Pieces]


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
            heading = middle(place.heading, width)
            rows.append([(heading, "dim")])
        devices = place.devices
        if zoomed:
            belongs = owns(view.run) if view.run is not None else lambda _: ""
            rows += detail_rows(devices, width, share, belongs)
        else:
            rows += panel_rows(devices, width, share)
        rows += place.below
    return rows


def _height_of_each(places: Sequence[DevicePlace], height: int, *, zoomed: bool) -> int:
    """Return the rows for the devices of each place that has some.

    Zoomed, the rows below the devices stay in sight; a small panel scrolls to them, and gives each
    device of a single place its own row where all of them fit.
    """
    occupied = [place.devices for place in places if place.devices]
    least = 1
    if len(occupied) == 1 and not zoomed and len(occupied[0]) <= height:
        least = len(occupied[0])
    left = height - _rows_beside(places, zoomed=zoomed)
    return max(least, left // max(1, len(occupied)))


def _rows_beside(places: Sequence[DevicePlace], *, zoomed: bool) -> int:
    """Return the rows of headings and gaps, zoomed also those below the devices."""
    rows = 0
    if len(places) > 1 or any(place.heading for place in places):
        rows += 2 * len(places) - 1
    if zoomed:
        rows += sum(len(place.below) for place in places)
    return rows


def device_places(view: View, width: int) -> list[DevicePlace]:
    """Return this host and, if it has logged any devices or figures, the run; the run first where
    its devices are known to be elsewhere.
    """
    here = _this_host(view, width)
    name = _host_name(view)
    logged, run_host = _logged_place(view, width, name if here.devices else "")
    if not here.devices:
        return _without_own(here, logged, width)
    if not logged.devices:
        return [here, logged] if logged.below else [here]
    here = here._replace(heading=f"this host, {name}" if name else "this host")
    elsewhere = run_host and name and not same_host(run_host, name)
    if elsewhere:
        return [logged, here]
    return [here, logged]


def _without_own(
    here: DevicePlace, logged: DevicePlace, width: int
) -> list[DevicePlace]:
    """Return the places where this host has no devices; why it has none stands in the heading of
    the run's where that fits: two rows less.
    """
    if not logged.devices and not logged.below:
        return [here]
    heading = f"{logged.heading}; {text_of(here.below[0])}"
    if len(here.below) == 1 and cell_len(heading) <= width:
        return [logged._replace(heading=heading)]
    return [logged, here] if logged.devices else [here, logged]


def _host_name(view: View) -> str:
    if view.monitor.gpus is None:
        return ""
    return view.monitor.gpus.host


def _this_host(view: View, width: int) -> DevicePlace:
    """Return the devices of this host, and the reason where some or all are missing."""
    reading = view.monitor.gpus
    if reading is None:
        devices = []
        problem = "no reading yet"
    else:
        devices = view.monitor.gpu_history.devices(reading)
        problem = reading.problem or ("" if devices else "no GPU found here")
    lines = wrapped(problem, width) if problem else ()
    return DevicePlace("", devices, [[(line, "dim")] for line in lines])


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
        return DevicePlace("", [], []), ""
    devices, used = logged_devices(run)
    below = _figure_rows(run, used, width)
    run_host = _only_host(run, devices)
    if run_host:  # named once, in the heading
        devices = [device._replace(node="") for device in devices]
    if local_host and state(run, view.now) in _ACTIVE:
        devices = [
            device
            for device in devices
            if not same_host(device.node or run_host, local_host)
        ]
    heading = _heading(run, run_host if devices else "")
    return DevicePlace(heading, devices, below), run_host


def _only_host(run: Run, devices: Sequence[Device]) -> str:
    """Return the host that all devices of a run are on, empty if there are several."""
    nodes = {device.node for device in devices}
    if len(nodes) > 1:
        return ""
    return next(iter(nodes), "") or host(run)


def _figure_rows(run: Run, used: set[str], width: int) -> list[Pieces]:
    """Return what a run has logged of its host and its devices otherwise."""
    found, left_out = figures(run, used)
    rows = figure_rows(found, width) if found else []
    if left_out:
        rows += [[(line, "dim")] for line in wrapped(f"+{left_out} more", width)]
    return rows


def _heading(run: Run, run_host: str) -> str:
    """Return the source of devices that are not read here."""
    if logs_cluster(run):
        return f"of the cluster, {run_host}" if run_host else "of the cluster"
    where = f"logged on {run_host}" if run_host else "logged by the run"
    return f"newest {where}"
