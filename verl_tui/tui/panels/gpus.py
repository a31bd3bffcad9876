"""The GPUs of this host and those that the shown run has logged, which may be on another host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.arrange import FRAME
from verl_tui.rendering.gpus.places import edges, gpu_row, gpu_rows
from verl_tui.rendering.text.piece import fit
from verl_tui.times import age
from verl_tui.tui.panels.panel import PanelSpec, TextPanel

if TYPE_CHECKING:
    from verl_tui.rendering.session.snapshot import View

_STALE = 30.0
"""Seconds after which the age of a reading is shown."""


_COLUMNS, _ROWS = 100, 30
"""Columns and rows of a dashboard below which devices have a single row."""


class GpusPanel(TextPanel):
    """Bars or a matrix of GPUs."""

    TITLE = "GPUs"
    PANEL = PanelSpec("gpus", "f5", "GPUs", rank=40, tab=40, share=0.28)
    FOOTER = """
        chart.zoom         Full screen
        list.down list.up  Scroll
    """

    def needed(self, view: View, width: int, height: int) -> int:
        """Return the rows of all devices, one where there are none; on a small screen
        one for devices, and none for the reason why there are none.
        """
        room = max(1, int(height * self.PANEL.share) - FRAME)
        rows, devices = gpu_rows(view, width, room, zoomed=False)
        large = width + FRAME >= _COLUMNS and height + FRAME >= _ROWS
        return len(rows if large else devices[:1])

    def write(self, view: View, width: int, height: int) -> None:
        """Write the newest reading and the newest logged values."""
        zoomed = self.has_class("-zoomed")
        rows, devices = gpu_rows(view, width, height, zoomed=zoomed)
        if self.has_class("-bare"):  # no frame says so
            row = gpu_row(devices, width - zoomed)
            rows = [row, *rows * zoomed] if row else [[("GPUs: ", "dim"), *rows[0]]]
        self._rows.set(rows)
        self.TITLE, remarks = edges(devices)
        self.write_title()
        reading = view.monitor.gpus
        # a host without devices is read only once
        if reading and reading.gpus and view.now - reading.time > _STALE:
            remarks += f"  read {age(view.now - reading.time)} ago"
        self.subtitle(fit(remarks.strip(), width), "$text-warning")
