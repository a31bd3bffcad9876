"""All metrics as a table."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.containers import Container

from verl_tui.rendering.metrics.metric_rows import (
    layout,
    metric_heading,
    metric_row,
)
from verl_tui.rendering.metrics.shown import BUDGET
from verl_tui.rendering.text.family_colours import FAMILIES
from verl_tui.rendering.text.printable import wrapped
from verl_tui.tui.terminal.lazy_strips import LazyStrips
from verl_tui.tui.widgets.role_styled import RoleStyled
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.strip import Strip
    from textual.timer import Timer

    from verl_tui.rendering.metrics.metric_rows import TableLayout
    from verl_tui.rendering.metrics.shown import ListedMetrics
    from verl_tui.tui.widgets.role_styled import Looks

_WITH_HEAD = 6
"""Least height of a table with the names of its columns."""


class MetricTable(Container, RoleStyled):
    """One row for each metric; rows are made when they come into sight."""

    LOOKS: ClassVar[Looks] = {
        "heading": "bold $text-muted",
        "prefix": "$text-muted",
        "name": "$foreground",
        "value": "$foreground",
        "dim": "$text-muted",
        "odd": "bold $text-error",
        "pin": "$text-warning",
        **FAMILIES,
    }
    DEFAULT_CSS = """
    MetricTable {
        height: 1fr;
        & > #metrics-head { height: 1; }
        & > #metrics-rows { height: 1fr; scrollbar-gutter: stable; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._head = Rows(id="metrics-head")
        self._head.can_focus = False
        self._rows = Rows(choosing=True, id="metrics-rows")
        self._shown: ListedMetrics | None = None
        self._keys: tuple[str, ...] = ()
        self._until = 0.0
        """Time until which rows are made; the others wait."""
        self.later: Timer | None = None
        """Makes the rows that there was no time to make at once; None where none waits."""
        self._made_of: tuple[object, ...] = ()
        self._made: dict[str, Strip] = {}
        """Rows made from that state, by key."""
        self._stale: dict[str, Strip] = {}
        """Rows of earlier steps, shown until newer ones are made."""

    def compose(self) -> ComposeResult:
        """Make the names of the columns, which stay in sight, and the rows."""
        yield self._head
        yield self._rows

    @property
    def rows(self) -> Rows:
        """The list itself."""
        return self._rows

    @property
    def chosen(self) -> str | None:
        """Key of the chosen metric."""
        at = self._rows.chosen
        if at is not None and at < len(self._keys):
            return self._keys[at]
        return None

    def show(self, shown: ListedMetrics, chosen: str | None) -> None:
        """Draw the rows in sight, the chosen metric among them."""
        self._shown = shown
        self._keys = shown.keys
        width = self._rows.width if self.is_attached else 0
        if width < 1:
            return
        at = 0 if self._keys else None
        if chosen in self._keys:
            at = self._keys.index(chosen)
        self._draw(shown, width)
        if at != self._rows.chosen:
            self._rows.chosen = at
        if at is not None:
            self._rows.reveal(at)

    def _draw(self, shown: ListedMetrics, width: int) -> None:
        columns = layout(width, max(map(cell_len, self._keys), default=0))
        self._head.display = bool(self._keys) and self.size.height >= _WITH_HEAD
        self._head.set_strips([self.inked(metric_heading(columns, shown.order))])
        if not self._keys:
            said = wrapped(shown.otherwise, width)
            self._rows.set_strips([self.inked([(part, "dim")]) for part in said])
            return
        run = shown.view.run
        made_of = (
            run,
            run.revision if run is not None else 0,
            columns,
            shown.user.pins,
        )
        if made_of != self._made_of:
            self._stale = (
                {**self._stale, **self._made}
                if (made_of[0], made_of[2]) == self._made_of[:3:2]
                else {}
            )
            self._made = {}
            self._made_of = made_of
        self._until = monotonic() + BUDGET
        keys = self._keys
        self._rows.set_strips(
            LazyStrips(len(keys), lambda at: self._row(keys[at], shown, columns))
        )

    def _row(self, key: str, shown: ListedMetrics, columns: TableLayout) -> Strip:
        """Return a row; where there is no time to make it now, the old one, or the name alone."""
        made = self._made.get(key)
        run = shown.view.run
        if made is not None:
            return made
        pinned = key in shown.user.pins
        if monotonic() > self._until:
            if self.later is None:
                self.later = self.set_timer(0.005, self._go_on)
            return self._stale.get(key) or self.inked(
                metric_row(key, None, columns, pinned=pinned)
            )
        series = run.series(key) if run is not None else None
        end = run.end if run is not None else None
        named = run.indicators.items() if run is not None else ()
        indicator = next((name for name, of in named if of == key), None)
        pieces = metric_row(
            key, series, columns, pinned=pinned, end=end, indicator=indicator
        )
        self._made[key] = self.inked(pieces)
        return self._made[key]

    def _go_on(self) -> None:
        """Make the rows that were not made in time."""
        self.later = None
        if self._shown is not None and self.display and self._rows.width > 0:
            self._draw(self._shown, self._rows.width)

    def notify_style_update(self) -> None:
        """Take the colours of another theme."""
        super().notify_style_update()
        self._made_of = ()
