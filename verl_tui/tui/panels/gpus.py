"""The GPUs of this host and those that the shown run has logged, which may be on another host."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from verl_tui.rendering.gpus.places import gpu_rows
from verl_tui.times import age
from verl_tui.tui.panels.panel import TextPanel
from verl_tui.tui.panels.spec import PanelSpec
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual.app import ComposeResult

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.tui.widgets.role_styled import Looks

_STALE = 30.0
"""Seconds after which the age of a reading is shown."""


_PLACE = """
    &.-medium > #gpus, &.-narrow > #gpus { display: none; }
    &.-narrow.-gpus > #gpus { display: block; }
    &.-tiny.-narrow.-gpus > #gpus, &.-pair.-narrow.-gpus > #gpus,
    &.-line.-narrow.-gpus > #gpus { display: none; }
"""
"""Its place in each layout of the dashboard."""


class GpusPanel(TextPanel):
    """Bars or a matrix of GPUs, and the last values of other figures that the run has logged."""

    TITLE = "gpus"
    PANEL = PanelSpec("gpus", "f5", "GPUs", rank=40, tab=40, css=_PLACE)
    FOOTER = (("chart.zoom", "Full screen"), ("list.down list.up", "Scroll"))
    LOOKS: ClassVar[Looks] = {
        "name": "bold $foreground",
        "bar": "$text-success on $foreground 15%",
        "gauge": "$text-primary on $foreground 15%",
        "value": "$foreground",
        "warn": "bold $text-warning",
        "dim": "$text-muted",
        "spark": "$text-primary",
        "odd": "bold $text-error",
    }
    ANSI_LOOKS: ClassVar[Mapping[str, str]] = {
        "bar": "$text-success on ansi_bright_black",
        "gauge": "$text-primary on ansi_bright_black",
    }
    GROUNDED = frozenset({"bar", "gauge"})

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._rows = Rows()
        self._view: View | None = None

    def compose(self) -> ComposeResult:
        """Make the rows."""
        yield self._rows

    def has_content(self, view: View) -> bool:
        """Return True if this host has GPUs."""
        return bool(view.monitor.gpus and view.monitor.gpus.gpus)

    def needed(self, view: View, width: int, height: int) -> int:
        """Return the rows of all devices and figures, one where there are none."""
        return len(gpu_rows(view, width, height, zoomed=False))

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
        rows = gpu_rows(view, width, height, zoomed=zoomed)
        if self.has_class("-bare") and not zoomed and height == 1 and rows:
            rows = [[("GPUs: ", "dim"), *rows[0]]]  # there is no frame to say so
        self._rows.set_strips(self.strips(rows))
        self.subtitle(_reading_age(view))


def _reading_age(view: View) -> str:
    """Return the age of an old reading; a host without devices is read only once."""
    reading = view.monitor.gpus
    if reading is None or not reading.gpus or view.now - reading.time <= _STALE:
        return ""
    return f"read {age(view.now - reading.time)} ago"
