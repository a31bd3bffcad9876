"""Keys of the screen of all metrics: its own, then those that all screens of charts have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.binding import Binding

from verl_tui.tui.keys.chart_keys import KEYS
from verl_tui.tui.widgets.chart import READING

if TYPE_CHECKING:
    from textual.binding import BindingType

METRICS_KEYS: list[BindingType] = [
    Binding("escape", "back", "Back", id="metrics.back"),
    Binding("q,m", "dismiss", "Close", show=False, id="metrics.close"),
    Binding("v", "turn", "Table or charts", id="metrics.view"),
    Binding("slash", "filter", "Filter", key_display="/", id="metrics.filter"),
    Binding("s", "sort", "Sort", id="metrics.sort"),
    Binding(
        "S", "reverse", "Sort the other way round", show=False, id="metrics.reverse"
    ),
    Binding("space", "pin", "Pin", id="metrics.pin"),
    Binding("enter", "zoom", "Full screen", id="metrics.zoom"),
    Binding(
        "greater_than_sign",
        "shape('columns', 1)",
        "More columns",
        show=False,
        id="metrics.more_columns",
    ),
    Binding(
        "less_than_sign",
        "shape('columns', -1)",
        "Fewer columns",
        show=False,
        id="metrics.fewer_columns",
    ),
    Binding(
        "right_parenthesis",
        "shape('rows', 1)",
        "More rows",
        show=False,
        id="metrics.more_rows",
    ),
    Binding(
        "left_parenthesis",
        "shape('rows', -1)",
        "Fewer rows",
        show=False,
        id="metrics.fewer_rows",
    ),
    Binding(
        "0",
        "reset",
        "Reset: as many as fit, all steps, no filter",
        show=False,
        id="metrics.reset",
    ),
    *(binding for binding in KEYS if binding.key not in ("s", "S")),
    Binding(
        "W",
        "write_table",
        "Write all listed metrics to a CSV file",
        show=False,
        id="metrics.table",
    ),
    *READING,
    Binding("h", "grid('move', -1)", "Previous chart", show=False, id="metrics.left"),
    Binding("l", "grid('move', 1)", "Next chart", show=False, id="metrics.right"),
    Binding("j,down", "grid('shelf', 1)", "Row below", show=False, id="metrics.down"),
    Binding("k,up", "grid('shelf', -1)", "Row above", show=False, id="metrics.up"),
    Binding(
        "pagedown", "grid('page', 1)", "Next page", show=False, id="metrics.page_down"
    ),
    Binding(
        "pageup", "grid('page', -1)", "Previous page", show=False, id="metrics.page_up"
    ),
    Binding("g", "grid('end', -1)", "First", show=False, id="metrics.first"),
    Binding("G", "grid('end', 1)", "Last", show=False, id="metrics.last"),
    Binding(
        "left_square_bracket",
        "other(-1)",
        "Previous run",
        show=False,
        id="run.previous",
    ),
    Binding("right_square_bracket", "other(1)", "Next run", show=False, id="run.next"),
]
