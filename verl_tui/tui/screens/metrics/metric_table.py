"""All metrics as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.containers import Container

from verl_tui.rendering.metrics.metric_rows import ListedMetric, metric_table
from verl_tui.rendering.text.hues import FAMILIES
from verl_tui.rendering.text.printable import wrapped
from verl_tui.tui.terminal.lazy_strips import LazyStrips
from verl_tui.tui.widgets.role_styled import RoleStyled
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.strip import Strip

    from verl_tui.rendering.metrics.listing import ListedMetrics
    from verl_tui.rendering.text.table import FittedTable
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
        self._keys: tuple[str, ...] = ()

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
        self._keys = keys = shown.keys
        width = self._rows.width if self.is_attached else 0
        if width < 1:
            return
        longest = max(map(cell_len, keys), default=0)
        columns = metric_table(width, longest, shown.order)
        self._head.display = bool(keys) and self.size.height >= _WITH_HEAD
        self._head.set_strips([self.inked(columns.heading())])
        if keys:
            self._rows.set_strips(
                LazyStrips(len(keys), lambda at: self._row(keys[at], shown, columns))
            )
        else:
            said = wrapped(shown.otherwise, width)
            self._rows.set_strips([self.inked([(part, "dim")]) for part in said])
        self._rows.chosen = at = _place(chosen, keys)
        if at is not None:
            self._rows.reveal(at)

    def _row(
        self, key: str, shown: ListedMetrics, columns: FittedTable[ListedMetric]
    ) -> Strip:
        run = shown.view.run
        named = run.indicators.items() if run is not None else ()
        one = ListedMetric(
            key,
            run.series(key) if run is not None else None,
            key in shown.user.pins,
            run.end if run is not None else None,
            next((name for name, of in named if of == key), None),
        )
        return self.inked(columns.row(one))


def _place(chosen: str | None, keys: tuple[str, ...]) -> int | None:
    """Return the row of the chosen metric, else the first; None where there is none."""
    if chosen in keys:
        return keys.index(chosen)
    return 0 if keys else None
