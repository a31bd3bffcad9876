"""The GPUs of this host, and what the shown run has logged of its own, which may be those of
another host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.gpus.logged_figures import figure_rows, figures
from verl_tui.rendering.gpus.sections import detail_rows, panel_rows
from verl_tui.rendering.text.printable import middle, wrapped
from verl_tui.runs.views.devices import CLUSTER, Device, host, logged_devices, owns, same_host
from verl_tui.runs.views.state import State, state
from verl_tui.times import age
from verl_tui.tui.panels.panel import TextPanel
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.run import Run

_ROLES = ("name", "bar", "gauge", "value", "warn", "dim", "spark", "odd")
_STALE = 30.0
"""Seconds after which a reading is called old."""
_GOING = frozenset({State.WAITING, State.RUNNING, State.STALLED, State.UNKNOWN})
"""States of a run whose devices are those that its host has now."""


class _Section(NamedTuple):
    """The devices of one place, with what else is known there."""

    heading: str
    devices: list[Device]
    below: list[Pieces]


class GpusPanel(TextPanel):
    """Bars or a matrix for the GPUs of this host and those that the run has logged, and last values
    of its own log.
    """

    TITLE = "gpus"
    FOOTER = (("chart.zoom", "Full screen"), ("list.down list.up", "Scroll"))
    PREFIX = "gpus"
    STYLED_ROLES = _ROLES
    GROUNDED = frozenset({"gauge"})
    DEFAULT_CSS = """
    GpusPanel {
        & > .gpus--name { color: $foreground; text-style: bold; }
        & > .gpus--bar { color: $text-success; }
        & > .gpus--gauge { color: $text-primary; background: $foreground 15%; }
        & > .gpus--value { color: $foreground; }
        & > .gpus--warn { color: $text-warning; text-style: bold; }
        & > .gpus--dim { color: $text-muted; }
        & > .gpus--spark { color: $text-primary; }
        & > .gpus--odd { color: $text-error; text-style: bold; }
    }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._rows = Rows()
        self._view: View | None = None

    def compose(self) -> ComposeResult:
        """Make the rows."""
        yield self._rows

    def show(self, view: View) -> None:
        """Show the newest reading and the newest logged values."""
        self._view = view
        self.redraw()

    def redraw(self) -> None:
        """Write the rows of what was shown last."""
        view = self._view
        width, height = self._rows.size
        if view is None or width < 1 or height < 1:
            return
        zoomed = self.has_class("-zoomed")
        lines = _lines(view, width, height, zoomed=zoomed)
        if len(lines) > height and width > 1:  # leave room for the scroll bar
            lines = _lines(view, width - 1, height, zoomed=zoomed)
        self._rows.set_strips(self.strips(lines))
        reading = view.monitor.gpus
        # A host without devices is read once: its silence is no news.
        old = reading is not None and bool(reading.gpus) and view.now - reading.time > _STALE
        self.subtitle(f"read {age(view.now - reading.time)} ago" if old and reading else "")


def _lines(view: View, width: int, height: int, *, zoomed: bool) -> list[Pieces]:
    """Write everything; each place with devices has its share of the height."""
    sections = _sections(view, width)
    placed = sum(bool(section.devices) for section in sections)
    headed = len(sections) > 1 or bool(sections and sections[0].heading)
    # Over a full screen what stands below devices is to be in sight, too; in a small panel it can
    # be scrolled to.
    taken = (2 * len(sections) - 1 if headed else 0) + (
        sum(len(section.below) for section in sections) if zoomed else 0
    )
    share = max(1, height - taken) // max(1, placed)
    belongs = owns(view.run) if view.run is not None else lambda _: ""
    lines: list[Pieces] = []
    for section in sections:
        if lines and len(lines) + 2 < height:
            lines.append([])
        if section.heading:
            lines.append([(middle(section.heading, width, ascii_only=view.ascii), "dim")])
        if zoomed:
            lines += detail_rows(section.devices, width, share, belongs, ascii_only=view.ascii)
        else:
            lines += panel_rows(section.devices, width, share, ascii_only=view.ascii)
        lines += section.below
    return lines


def _sections(view: View, width: int) -> list[_Section]:
    """Return what there is to show: the devices of this host, those of the run, the nearer to the
    run first.
    """
    here, words = _local(view, width)
    reading, run = view.monitor.gpus, view.run
    name = reading.host if reading is not None else ""
    devices, below, place = _of_run(run, view, width) if run is not None else ([], [], "")
    if run is not None and here and state(run, view.now) in _GOING:
        devices = [device for device in devices if not same_host(device.node or place, name)]
    if not devices and not below:
        return [_Section("", here, words)]
    logged = _Section(_whence(run, place if devices else ""), devices, below)
    if not here:
        # Where the run's devices are known, that this host has none is an aside.
        return [logged, _Section("", [], words)] if devices else [_Section("", [], words), logged]
    local = _Section(
        (f"this host, {name}" if name else "this host") if devices else "", here, words
    )
    elsewhere = bool(devices and place and name and not same_host(place, name))
    return [logged, local] if elsewhere else [local, logged]


def _whence(run: Run | None, place: str) -> str:
    """Say where devices are known from that are not this host's."""
    if run is not None and any(key.startswith(CLUSTER) for key in run.keys):
        return f"of the cluster, {place}" if place else "of the cluster"
    return f"as logged on {place}" if place else "as logged by the run"


def _local(view: View, width: int) -> tuple[list[Device], list[Pieces]]:
    """Return the devices of this host, and why there are none or not all."""
    reading = view.monitor.gpus
    if reading is None:
        devices, problem = [], "no reading yet"
    else:
        devices = view.monitor.gpu_history.devices(reading)
        problem = reading.problem or ("" if devices else "no GPU found here")
    words = wrapped(problem, width, ascii_only=view.ascii) if problem else ()
    return devices, [[(line, "dim")] for line in words]


def _of_run(run: Run, view: View, width: int) -> tuple[list[Device], list[Pieces], str]:
    """Return the devices that a run has logged, its other figures, and the host it was started
    on.
    """
    devices, used = logged_devices(run)
    found, left_out = figures(run, used)
    below = figure_rows(found, width, ascii_only=view.ascii) if found else []
    if left_out:
        below += [[(line, "dim")] for line in wrapped(f"+{left_out} more", width)]
    nodes = {device.node for device in devices}
    if len(nodes) == 1:  # said once, in the heading
        (node,) = nodes
        return [device._replace(node="") for device in devices], below, node or host(run)
    return devices, below, "" if nodes else host(run)
