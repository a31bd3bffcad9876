"""Several runs side by side, compared with one of them, over the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len

from verl_tui.means import clamp
from verl_tui.rendering.choices import next_choice
from verl_tui.rendering.compare_rows import (
    fit_table,
    heading_rows,
    reward_row,
    sections,
    table_rows,
    where,
)
from verl_tui.rendering.text.hues import HUES
from verl_tui.rendering.text.printable import wrapped
from verl_tui.runs.views.alignment import Alignment
from verl_tui.tui.keys.act import act
from verl_tui.tui.keys.bindings import keys_to
from verl_tui.tui.keys.help_section import HelpSection
from verl_tui.tui.keys.tasks import COMPARE
from verl_tui.tui.panels.panel import TextPanel
from verl_tui.tui.panels.runs import RunsPanel
from verl_tui.tui.screens.overlay import Overlay
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.run import Run
    from verl_tui.tui.widgets.role_styled import Looks

_FLAT = 8
"""Least height of a table with a row that names the baseline, its first column."""
_SPARKED = 14
"""Least height of a table with the course of each run's reward above it."""
_MOST = 12
"""Most runs that are compared where none is selected."""
_NONE = "No run yet, so there is nothing to compare."


class _Table(Rows):
    """Rows that scroll up and down; the keys for sideways move the screen's columns."""

    BINDINGS: ClassVar[list[BindingType]] = [
        act("left,h", "screen.column(-1)"),
        act("right,l", "screen.column(1)"),
    ]


class ComparePanel(TextPanel):
    """The table below the names of its runs."""

    LOOKS: ClassVar[Looks] = {
        "heading": "bold $text-accent",
        "label": "$foreground",
        "value": "$foreground",
        "current": "bold $text-accent",
        "spark": "$text-primary",
        "dim": "$text-muted",
        "better": "$text-success",
        "worse": "$text-error",
        "differs": "$text-warning",
        **HUES,
    }
    DEFAULT_CSS = """
    ComparePanel {
        border: round $accent;
        border-title-color: $accent;
        background: $surface;
        & > #compare-head { height: 2; }
        & > #compare-table { height: 1fr; scrollbar-gutter: stable; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._head = Rows(id="compare-head")
        self._table = _Table(id="compare-table")
        self._head.can_focus = False
        self._shown: tuple[View, Sequence[Run], int, Alignment] | None = None

    def compose(self) -> ComposeResult:
        """Make the names, which stay while the table scrolls, and the table."""
        yield self._head
        yield self._table

    def show_runs(
        self, view: View, runs: Sequence[Run], current: int, alignment: Alignment
    ) -> None:
        """Draw these runs, the baseline first."""
        self._shown = view, runs, current, alignment
        self.redraw()

    def redraw(self) -> None:
        """Write the rows of what was shown last."""
        width = self._table.width
        if self._shown is None or width < 1:
            return
        view, runs, current, alignment = self._shown
        if not runs:
            self._head.set_strips([])
            nothing: list[Pieces] = [[(part, "dim")] for part in wrapped(_NONE, width)]
            self._table.set_strips(self.strips(nothing))
            return
        found = sections(view, runs, alignment)
        columns = fit_table(len(runs), width, current, found)
        names = heading_rows(view, runs, columns, current)
        if self.size.height < _FLAT:
            names = names[:1]
        elif self.size.height >= _SPARKED:
            names += filter(None, [reward_row(view, runs, columns, alignment)])
        height = self._head.styles.height
        if height is None or height.value != len(names):
            self._head.styles.height = len(names)
        self._head.set_strips(self.strips(names))
        self._table.set_strips(self.strips(table_rows(found, columns, width)))


class CompareScreen(Overlay[None]):
    """The selected runs in columns; without a selection the shown one and its neighbours."""

    HELP_SECTION = HelpSection("compare", (Overlay,), rank=50, task=COMPARE)
    BINDINGS: ClassVar[list[BindingType]] = [
        act("escape,q,C", "dismiss", "compare.close", "Close", show=True),
        act("left,h", "column(-1)", "compare.left", "Previous column", show=True),
        act("right,l", "column(1)", "compare.right", "Next column", show=True),
        act(
            "b", "baseline", "compare.baseline", "Make this run the baseline", show=True
        ),
        act(
            "x",
            "align",
            "compare.align",
            "Align: at the end, the same step, the same time",
            show=True,
        ),
        act("enter", "open", "compare.open", "Show this run", show=True),
    ]
    EDGE = (
        ("compare.left compare.right", "run"),
        ("compare.baseline", "baseline"),
        ("compare.align", "align"),
        ("compare.open", "shows the run"),
        ("compare.close", "closes"),
    )

    _panel: ComparePanel

    def __init__(self, view: View | None = None) -> None:
        super().__init__(ComparePanel(), view)
        self._current: str | None = None
        """Name of the run that the cursor is at."""
        self._alignment = Alignment.END

    @property
    def runs(self) -> list[Run]:
        """The runs that are compared, the baseline first."""
        view = self._view
        if view is None:
            return []
        shown = view.run.name if view.run is not None and not view.selected else None
        runs = view.selected or around(view.listed, shown, _MOST)
        names = [run.name for run in runs]
        wanted = (view.selection.baseline, shown)
        first = next((name for name in wanted if name in names), None)
        return sorted(runs, key=lambda run: run.name != first)

    def _at(self, runs: Sequence[Run]) -> int:
        """Return the column of the cursor, the first one where its run is gone."""
        return next((at for at, run in enumerate(runs) if run.name == self._current), 0)

    def draw(self, view: View) -> None:
        """Draw the newest state."""
        runs = self.runs
        self.entitle(self._title(view, runs))
        self._panel.subtitle(self.edge())
        self._panel.show_runs(view, runs, self._at(runs), self._alignment)

    def _title(self, view: View, runs: Sequence[Run]) -> str:
        """Return how many runs are compared, up to where, and the key that selects others."""
        select = f"{keys_to(self.app, RunsPanel, 'runs.select')} in the list selects"
        if len(runs) < 2:
            return f"compare: {select} more"
        count = len(runs) if view.selected else len(view.listed)
        part = ""
        more = ""
        if len(runs) < count:
            part = f" of {count}"
            more = f" · {select} others"
        title = f"compare {len(runs)}{part} runs, {where(runs, self._alignment)}"
        if cell_len(title + more) > self.title_room:
            return title
        return title + more

    # -- keys --------------------------------------------------------------------------------------

    def action_column(self, way: int) -> None:
        """Go to the next or previous run."""
        runs = self.runs
        if runs:
            at = clamp(self._at(runs) + way, 0, len(runs) - 1)
            self._current = runs[at].name
            self.redraw()

    def action_baseline(self) -> None:
        """Make the run of the current column the baseline."""
        runs = self.runs
        if runs and self._view is not None:
            name = runs[self._at(runs)].name
            self._current = name
            self._view.selection.baseline = name
            self.redraw()

    def action_align(self) -> None:
        """Compare at each run's end, at the last step all have, or after the same time."""
        self._alignment = next_choice(list(Alignment), self._alignment)
        self.redraw()

    def action_open(self) -> None:
        """Show the run of the current column on the dashboard."""
        runs = self.runs
        if runs:
            self.app.post_message(RunsPanel.Picked(runs[self._at(runs)].name))
        self.dismiss()


def around(listed: Sequence[Run], name: str | None, most: int) -> list[Run]:
    """Return at most so many runs of a list, those around the one of a name, or the first ones."""
    at = next((at for at, run in enumerate(listed) if run.name == name), 0)
    first = max(0, min(at - most // 2, len(listed) - most))
    return list(listed[first : first + most])
