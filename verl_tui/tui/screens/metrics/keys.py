"""Keys of the screen of all metrics: its own, then those that all screens of charts have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.tui.keys.act import act
from verl_tui.tui.keys.chart_keys import KEYS
from verl_tui.tui.widgets.chart import READING

if TYPE_CHECKING:
    from textual.binding import BindingType

METRICS_KEYS: list[BindingType] = [
    act("escape", "back", "metrics.back", "Back", show=True),
    act("q,m", "dismiss", "metrics.close", "Close"),
    act("v", "turn", "metrics.view", "Table or charts", show=True),
    act("slash", "filter", "metrics.filter", "Filter", show=True),
    act("s", "sort", "metrics.sort", "Sort", show=True),
    act("S", "reverse", "metrics.reverse", "Sort the other way round"),
    act("space", "pin", "metrics.pin", "Pin", show=True),
    act("enter", "zoom", "metrics.zoom", "Full screen", show=True),
    act(
        "greater_than_sign",
        "shape('columns', 1)",
        "metrics.more_columns",
        "More columns",
    ),
    act(
        "less_than_sign",
        "shape('columns', -1)",
        "metrics.fewer_columns",
        "Fewer columns",
    ),
    act("right_parenthesis", "shape('rows', 1)", "metrics.more_rows", "More rows"),
    act("left_parenthesis", "shape('rows', -1)", "metrics.fewer_rows", "Fewer rows"),
    act("0", "reset", "metrics.reset", "Reset: as many as fit, all steps, no filter"),
    *(binding for binding in KEYS if binding.key not in ("s", "S")),
    act("W", "write_table", "metrics.table", "Write all listed metrics to a CSV file"),
    *READING,
    act("h", "grid('move', -1)", "metrics.left", "Previous chart"),
    act("l", "grid('move', 1)", "metrics.right", "Next chart"),
    act("j,down", "grid('shelf', 1)", "metrics.down", "Row below"),
    act("k,up", "grid('shelf', -1)", "metrics.up", "Row above"),
    act("pagedown", "grid('page', 1)", "metrics.page_down", "Next page"),
    act("pageup", "grid('page', -1)", "metrics.page_up", "Previous page"),
    act("g", "grid('end', -1)", "metrics.first", "First"),
    act("G", "grid('end', 1)", "metrics.last", "Last"),
    act("left_square_bracket", "other(-1)", "run.previous", "Previous run"),
    act("right_square_bracket", "other(1)", "run.next", "Next run"),
]
